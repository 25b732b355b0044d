/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which outcome each cell of a row has, and the Dirichlet-multinomial predictive of these outcomes
 * (_semi_continuous.pyx): of each the logarithm of its pseudo-count and cells, less that of all.
 */
#include "../_native/_lanes.h"

#define SEMI_CHUNK 64 /* cells handled together */
#define SEMI_PARTS 4  /* sums side by side, so that no addition waits for the one before */

/* Take in a row, without a branch that a cell decides. */
static void NAME(semi_read)(SemiBlock *block, const char *row)
{
    int64_t n = 0;
    for (int64_t f = 0; f < block->n_features; f++) {
        const float x = *(const float *)(row + block->offset[f]);
        const int32_t first = block->start[f], stop = block->start[f + 1];
        int32_t outcome = first;
        for (int32_t o = first + 1; o < stop; o++) outcome = x == block->atom[o] ? o : outcome;
        block->elsewhere[f] = outcome == first ? x : __builtin_nanf("");
        block->feature[n] = (int32_t)f;
        block->outcome[n] = outcome;
        n += x == x;
    }
    block->n_present = n;
}

static void NAME(semi_add_scores)(const SemiBlock *block, int64_t n_tiles, float *out)
{
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *own = block->log_own + tile * block->n_outcomes * LANES;
        const float *all = block->log_all + tile * block->n_features * LANES;
        LN sum[SEMI_PARTS];
        for (int part = 0; part < SEMI_PARTS; part++) sum[part] = NAME(set1)(0.0f);
        int64_t i = 0;
#define TERM(part, i)                                                                 \
    sum[part] = NAME(add)(sum[part],                                                  \
                          NAME(sub)(NAME(load)(own + block->outcome[i] * LANES),      \
                                    NAME(load)(all + block->feature[i] * LANES)));
        for (; i + SEMI_PARTS <= block->n_present; i += SEMI_PARTS) {
            TERM(0, i);
            TERM(1, i + 1);
            TERM(2, i + 2);
            TERM(3, i + 3);
        }
        for (; i < block->n_present; i++) TERM(0, i);
#undef TERM
        const LN total = NAME(add)(NAME(add)(sum[0], sum[2]), NAME(add)(sum[1], sum[3]));
        NAME(store)(out + tile * LANES, NAME(add)(NAME(load)(out + tile * LANES), total));
    }
}

INLINE double NAME(semi_prior)(const SemiBlock *block, int64_t f, int64_t o)
{
    return block->pseudo[(o == block->start[f] ? block->n_features : 0) + f];
}

INLINE double NAME(semi_prior_of_all)(const SemiBlock *block, int64_t f)
{
    return block->pseudo[block->n_features + f] +
           (block->start[f + 1] - block->start[f] - 1) * block->pseudo[f];
}

/* Log predictive of the outcomes of a row of slot k, which was read, in that slot without it. */
static float NAME(semi_score_without)(const SemiBlock *block, int64_t k)
{
    float share[SEMI_CHUNK] __attribute__((aligned(64)));
    LN sum = NAME(set1)(0.0f);
    for (int64_t start = 0; start < block->n_present; start += SEMI_CHUNK) {
        const int64_t rest = block->n_present - start;
        const int64_t count = rest < SEMI_CHUNK ? rest : SEMI_CHUNK;
        for (int64_t i = 0; i < count; i++) {
            const int64_t f = block->feature[start + i], o = block->outcome[start + i];
            const double others = (double)(block->count[o * block->n_slots + k] - 1);
            const double all = (double)(block->n[f * block->n_slots + k] - 1);
            share[i] = (float)((NAME(semi_prior)(block, f, o) + others) /
                               (NAME(semi_prior_of_all)(block, f) + all));
        }
        for (int64_t i = count; i < SEMI_CHUNK && i % LANES; i++) share[i] = 1.0f;
        for (int64_t i = 0; i < count; i += LANES)
            sum = NAME(add)(sum, NAME(log)(NAME(load)(share + i)));
    }
    return NAME(reduce_add)(sum);
}

/* Write the logarithms of `count` numbers to `out` at the places `at`. */
INLINE void NAME(semi_logarithms)(float *number, const int32_t *at, int64_t count, float *out)
{
    for (int64_t i = count; i < SEMI_CHUNK && i % LANES; i++) number[i] = 1.0f;
    for (int64_t i = 0; i < count && i < SEMI_CHUNK; i += LANES)
        NAME(store)(number + i, NAME(log)(NAME(load)(number + i)));
    for (int64_t i = 0; i < count; i++) out[(int64_t)at[i] * LANES] = number[i];
}

/* Slot k's cache of some features and outcomes, pairs side by side. */
INLINE void NAME(semi_cache)(SemiBlock *block, int64_t k, const int32_t *feature,
                             const int32_t *outcome, int64_t count)
{
    float own[SEMI_CHUNK] __attribute__((aligned(64)));
    float all[SEMI_CHUNK] __attribute__((aligned(64)));
    const int64_t tile = k / LANES, lane = k % LANES;
    for (int64_t i = 0; i < count; i++) {
        const int64_t f = feature[i], o = outcome[i];
        own[i] = (float)(NAME(semi_prior)(block, f, o) +
                         (double)block->count[o * block->n_slots + k]);
        all[i] = (float)(NAME(semi_prior_of_all)(block, f) +
                         (double)block->n[f * block->n_slots + k]);
    }
    NAME(semi_logarithms)(own, outcome, count,
                          block->log_own + tile * block->n_outcomes * LANES + lane);
    NAME(semi_logarithms)(all, feature, count,
                          block->log_all + tile * block->n_features * LANES + lane);
}

/* Count the row that was read in slot k (sign 1), or no longer (sign -1). */
static void NAME(semi_update)(SemiBlock *block, int64_t k, int sign)
{
    for (int64_t i = 0; i < block->n_present; i++) {
        block->n[block->feature[i] * block->n_slots + k] += sign;
        block->count[block->outcome[i] * block->n_slots + k] += sign;
    }
    for (int64_t start = 0; start < block->n_present; start += SEMI_CHUNK) {
        const int64_t rest = block->n_present - start;
        NAME(semi_cache)(block, k, block->feature + start, block->outcome + start,
                         rest < SEMI_CHUNK ? rest : SEMI_CHUNK);
    }
}

/* Slot k's cache as a pure function of its counts and of the hyperparameters. */
static void NAME(semi_refresh)(SemiBlock *block, int64_t k)
{
    int32_t feature[SEMI_CHUNK], outcome[SEMI_CHUNK];
    int64_t count = 0;
    for (int64_t f = 0; f < block->n_features; f++)
        for (int32_t o = block->start[f]; o < block->start[f + 1]; o++) {
            feature[count] = (int32_t)f;
            outcome[count++] = o;
            if (count == SEMI_CHUNK) {
                NAME(semi_cache)(block, k, feature, outcome, count);
                count = 0;
            }
        }
    NAME(semi_cache)(block, k, feature, outcome, count);
}
