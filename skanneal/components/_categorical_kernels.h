/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Categorical with a Dirichlet prior: predictive (n_l + a_l) / (n + A), n the cells present.
 *     log p = score[entry] + constant,  score = log(n_l + a_l),  constant = - sum_f log(n_f + A_f).
 * A missing cell is an entry like the levels; its score is + log(n_f + A_f), which takes the
 * feature out of the constant again. So scoring never asks whether a cell is missing: it is one
 * load and one add per feature and register.
 */
#include "../_lanes.h"

#define BATCH 64 /* entries whose logarithms are taken together */

/* The entries (feature, code) of a row. */
INLINE void NAME(categorical_entries)(const CategoricalBlock *block, const char *row)
{
    int32_t *entry = block->entry;
    const int32_t *first = block->first, *offset = block->offset;
    int32_t f = 0;
    for (; f < block->width_stop[0]; f++) entry[f] = first[f] + *(const uint8_t *)(row + offset[f]);
    for (; f < block->width_stop[1]; f++) entry[f] = first[f] + *(const uint16_t *)(row + offset[f]);
    for (; f < block->width_stop[2]; f++) entry[f] = first[f] + *(const int32_t *)(row + offset[f]);
    for (; f < block->width_stop_gappy[0]; f++)
        entry[f] = first[f] + *(const uint8_t *)(row + offset[f]);
    for (; f < block->width_stop_gappy[1]; f++)
        entry[f] = first[f] + *(const uint16_t *)(row + offset[f]);
    for (; f < block->width_stop_gappy[2]; f++)
        entry[f] = first[f] + *(const int32_t *)(row + offset[f]);
}

static void NAME(categorical_add_scores)(const CategoricalBlock *block, const char *row,
                                         int64_t n_tiles, float *out)
{
    const int32_t n_features = block->n_features;
    NAME(categorical_entries)(block, row);
    const int32_t *entry = block->entry;
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *score = block->score + tile * block->n_entries * LANES;
        /* two sums, so that an addition need not wait for the one before it */
        LN even = NAME(add)(NAME(load)(out + tile * LANES),
                            NAME(load)(block->constant + tile * LANES));
        LN odd = NAME(set1)(0.0f);
        int32_t f = 0;
        for (; f + 2 <= n_features; f += 2) {
            even = NAME(add)(even, NAME(load)(score + (int64_t)entry[f] * LANES));
            odd = NAME(add)(odd, NAME(load)(score + (int64_t)entry[f + 1] * LANES));
        }
        if (f < n_features) even = NAME(add)(even, NAME(load)(score + (int64_t)entry[f] * LANES));
        NAME(store)(out + tile * LANES, NAME(add)(even, odd));
    }
}

/* Sum over the dense features of log(n + A_f), by cluster size: a direct-mapped table. */
static double NAME(categorical_memo)(CategoricalBlock *block, int64_t n)
{
    int64_t at = n & (CATEGORICAL_MEMO - 1);
    if (block->memo_size[at] != n) {
        double sum = 0.0;
        for (int32_t f = 0; f < block->n_dense; f++) sum += log((double)n + block->total[f]);
        block->memo_size[at] = n;
        block->memo_value[at] = sum;
    }
    return block->memo_value[at];
}

/* The constant, and the scores of missing cells, from the statistics of slot k. */
static void NAME(categorical_constant)(CategoricalBlock *block, int64_t k)
{
    const int64_t at = (k / LANES) * block->n_entries * LANES + k % LANES;
    double sum = block->n_dense ? NAME(categorical_memo)(block, block->size[k]) : 0.0;
    for (int32_t f = block->n_dense; f < block->n_features; f++) {
        const int64_t missing = at + (int64_t)(block->first[f + 1] - 1) * LANES;
        double log_total =
            log((double)(block->size[k] - block->count[missing]) + block->total[f]);
        block->score[missing] = (float)log_total;
        sum += log_total;
    }
    block->constant[k] = (float)-sum;
}

static void NAME(categorical_refresh)(CategoricalBlock *block, int64_t k)
{
    const int64_t at = (k / LANES) * block->n_entries * LANES + k % LANES;
    float value[BATCH] __attribute__((aligned(64)));
    for (int32_t start = 0; start < block->n_entries; start += BATCH) {
        const int32_t n = block->n_entries - start < BATCH ? block->n_entries - start : BATCH;
        for (int32_t i = 0; i < n; i++)
            value[i] = (float)block->count[at + (int64_t)(start + i) * LANES] +
                       block->pseudo_count_f[start + i];
        for (int32_t i = n; i < BATCH && i % LANES; i++) value[i] = 1.0f;
        for (int32_t i = 0; i < n; i += LANES)
            NAME(store)(value + i, NAME(log)(NAME(load)(value + i)));
        for (int32_t i = 0; i < n; i++) block->score[at + (int64_t)(start + i) * LANES] = value[i];
    }
    NAME(categorical_constant)(block, k);
}

/* Add (sign 1) or take out (sign -1) one row, and rewrite the entries it touches. */
static void NAME(categorical_update)(CategoricalBlock *block, const char *row, int64_t k, int sign)
{
    const int64_t at = (k / LANES) * block->n_entries * LANES + k % LANES;
    int32_t *count = block->count + at;
    float *score = block->score + at, value[BATCH] __attribute__((aligned(64)));
    block->size[k] += sign;
    NAME(categorical_entries)(block, row);
    for (int32_t start = 0; start < block->n_features; start += BATCH) {
        const int32_t n = block->n_features - start < BATCH ? block->n_features - start : BATCH;
        const int32_t *entry = block->entry + start;
        for (int32_t i = 0; i < n; i++) {
            int32_t *c = count + (int64_t)entry[i] * LANES;
            *c += sign;
            value[i] = (float)*c + block->pseudo_count_f[entry[i]];
        }
        for (int32_t i = n; i < BATCH && i % LANES; i++) value[i] = 1.0f;
        for (int32_t i = 0; i < n; i += LANES)
            NAME(store)(value + i, NAME(log)(NAME(load)(value + i)));
        for (int32_t i = 0; i < n; i++) score[(int64_t)entry[i] * LANES] = value[i];
    }
    NAME(categorical_constant)(block, k);
}
