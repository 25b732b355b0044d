/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Categorical with a Dirichlet prior: predictive (n_l + a_l) / (n + A), n the cells present.
 *     log p = score[entry] + constant,  score = log(n_l + a_l),  constant = - sum_f log(n_f + A_f).
 * A missing cell is an entry like the levels; its score is + log(n_f + A_f), which takes the
 * feature out of the constant again. So scoring needs no branch for missing cells: it takes one
 * load and one add per feature and register.
 */
#include "../_native/_lanes.h"
#include "../_native/_log_wide.h"

#define BATCH 64 /* entries whose logarithms are taken together */
#define FEW 8    /* counts below have log (a)_c as the logarithm of a product */

/* Where the cells of a row lie in a tile. A row step uses the same row three times. */
INLINE void NAME(categorical_cells)(CategoricalBlock *block, const char *row)
{
    if (block->row == row) return;
    block->row = row;
    int64_t *restrict at = block->cell_entry;
    const int32_t *restrict first = block->first, *restrict offset = block->offset;
    int64_t f = 0;
#define CELLS(type, stop) \
    for (; f < (stop); f++) at[f] = first[f] + (int64_t)*(const type *)(row + offset[f]);
    const int64_t stop[6] = {block->width_stop[0],       block->width_stop[1],
                             block->width_stop[2],       block->width_stop_gappy[0],
                             block->width_stop_gappy[1], block->width_stop_gappy[2]};
    CELLS(uint8_t, stop[0])
    CELLS(uint16_t, stop[1])
    CELLS(uint32_t, stop[2])
    CELLS(uint8_t, stop[3])
    CELLS(uint16_t, stop[4])
    CELLS(uint32_t, stop[5])
#undef CELLS
}

static void NAME(categorical_add_scores)(CategoricalBlock *block, const char *row,
                                         int64_t n_tiles, float *out)
{
    const int32_t n_features = block->n_features;
    NAME(categorical_cells)(block, row);
    const int64_t *at = block->cell_entry;
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *score = block->score + tile * block->n_entries * LANES;
        /* two sums, so that an addition need not wait for the one before it */
        LN even = NAME(add)(NAME(load)(out + tile * LANES),
                            NAME(load)(block->constant + tile * LANES));
        LN odd = NAME(set1)(0.0f);
        int32_t f = 0;
        for (; f + 2 <= n_features; f += 2) {
            even = NAME(add)(even, NAME(load)(score + at[f] * LANES));
            odd = NAME(add)(odd, NAME(load)(score + at[f + 1] * LANES));
        }
        if (f < n_features) even = NAME(add)(even, NAME(load)(score + at[f] * LANES));
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
    const int32_t *count = block->count + k * block->n_entries;
    float *score = block->score + (k / LANES) * block->n_entries * LANES + k % LANES;
    double sum = block->n_dense ? NAME(categorical_memo)(block, block->size[k]) : 0.0;
    for (int32_t f = block->n_dense; f < block->n_features; f++) {
        const int64_t missing = block->first[f + 1] - 1;
        double log_total = log((double)(block->size[k] - count[missing]) + block->total[f]);
        score[missing * LANES] = (float)log_total;
        sum += log_total;
    }
    block->constant[k] = (float)-sum;
}

static void NAME(categorical_refresh)(CategoricalBlock *block, int64_t k)
{
    const int32_t *count = block->count + k * block->n_entries;
    float *score = block->score + (k / LANES) * block->n_entries * LANES + k % LANES;
    float value[BATCH] __attribute__((aligned(64)));
    for (int32_t start = 0; start < block->n_entries; start += BATCH) {
        const int32_t n = block->n_entries - start < BATCH ? block->n_entries - start : BATCH;
        for (int32_t i = 0; i < n; i++)
            value[i] = (float)count[start + i] + block->pseudo_count_f[start + i];
        for (int32_t i = n; i < BATCH && i % LANES; i++) value[i] = 1.0f;
        for (int32_t i = 0; i < n; i += LANES)
            NAME(store)(value + i, NAME(log)(NAME(load)(value + i)));
        for (int32_t i = 0; i < n; i++) score[(int64_t)(start + i) * LANES] = value[i];
    }
    NAME(categorical_constant)(block, k);
}

/* log(c + pseudo-count) for c = 0 .. n - 1, by the code that larger counts use; n is 16 m. */
static void NAME(fill_log_table)(float *table, float pseudo_count, int64_t n)
{
    for (int64_t c = 0; c < n; c++) table[c] = (float)c + pseudo_count;
    for (int64_t c = 0; c < n; c += LANES)
        NAME(store)(table + c, NAME(log)(NAME(load)(table + c)));
}

/* The scores of the row's entries, with newly computed logarithms. */
static void NAME(categorical_logs)(const CategoricalBlock *block, const int32_t *count, float *score)
{
    float value[BATCH] __attribute__((aligned(64)));
    for (int32_t start = 0; start < block->n_features; start += BATCH) {
        const int32_t n = block->n_features - start < BATCH ? block->n_features - start : BATCH;
        const int64_t *at = block->cell_entry + start;
        for (int32_t i = 0; i < n; i++)
            value[i] = (float)count[at[i]] + block->pseudo_count_f[at[i]];
        for (int32_t i = n; i < BATCH && i % LANES; i++) value[i] = 1.0f;
        for (int32_t i = 0; i < n; i += LANES)
            NAME(store)(value + i, NAME(log)(NAME(load)(value + i)));
        for (int32_t i = 0; i < n; i++) score[at[i] * LANES] = value[i];
    }
}

/* Add (sign 1) or take out (sign -1) one row, and rewrite the entries it touches. */
static void NAME(categorical_update)(CategoricalBlock *block, const char *row, int64_t k, int sign)
{
    int32_t *restrict count = block->count + k * block->n_entries;
    float *restrict score = block->score + (k / LANES) * block->n_entries * LANES + k % LANES;
    const float *const *restrict logs = block->logs;
    const int64_t n_features = block->n_features;
    block->size[k] += sign;
    NAME(categorical_cells)(block, row);
    const int64_t *restrict at = block->cell_entry;
    if (logs != NULL && block->size[k] < block->log_size) { /* no count exceeds the slot's size */
        for (int64_t f = 0; f < n_features; f++) {
            int64_t c = count[at[f]] += sign;
            score[at[f] * LANES] = logs[at[f]][c];
        }
    } else {
        for (int64_t f = 0; f < n_features; f++) count[at[f]] += sign;
        NAME(categorical_logs)(block, count, score);
    }
    NAME(categorical_constant)(block, k);
}

/* Log predictive of a row of slot k in that slot without the row. */
static float NAME(categorical_score_without)(CategoricalBlock *block, const char *row, int64_t k)
{
    const int32_t *restrict count = block->count + k * block->n_entries;
    const float *const *restrict logs = block->logs;
    const int64_t n_dense = block->n_dense, rest = block->size[k] - 1;
    NAME(categorical_cells)(block, row);
    const int64_t *restrict at = block->cell_entry;
    float value[BATCH] __attribute__((aligned(64)));
    float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
#define REST(i) logs[at[f + i]][count[at[f + i]] - 1]
    if (logs != NULL && rest < block->log_size) {
        int64_t f = 0;
        for (; f + 4 <= n_dense; f += 4) {
            sum0 += REST(0);
            sum1 += REST(1);
            sum2 += REST(2);
            sum3 += REST(3);
        }
        for (; f < n_dense; f++) sum0 += REST(0);
#undef REST
    } else {
        LN total = NAME(set1)(0.0f);
        for (int64_t start = 0; start < n_dense; start += BATCH) {
            const int64_t n = n_dense - start < BATCH ? n_dense - start : BATCH;
            for (int64_t i = 0; i < n; i++)
                value[i] = (float)(count[at[start + i]] - 1) + block->pseudo_count_f[at[start + i]];
            for (int64_t i = n; i < BATCH && i % LANES; i++) value[i] = 1.0f;
            for (int64_t i = 0; i < n; i += LANES)
                total = NAME(add)(total, NAME(log)(NAME(load)(value + i)));
        }
        sum0 = NAME(reduce_add)(total);
    }
    double out = (double)((sum0 + sum1) + (sum2 + sum3));
    if (n_dense) out -= NAME(categorical_memo)(block, rest);
    for (int64_t f = n_dense; f < block->n_features; f++) {
        const int64_t missing = block->first[f + 1] - 1;
        if (at[f] == missing) continue;
        out += log((count[at[f]] - 1) + block->pseudo_count[at[f]]) -
               log((double)(rest - count[missing]) + block->total[f]);
    }
    return (float)out;
}

/* log Gamma(z) - log(2 pi) / 2, z >= FEW, to 1e-11. */
INLINE double NAME(log_gamma_above)(double z)
{
    const double r = 1.0 / z, r2 = r * r;
    return (z - 0.5) * NAME(log_wide)(z) - z +
           r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0 - r2 * (1.0 / 1680.0))));
}

/* out[g] += sign sum_i times[i] log (a[g])_count[i] for LANES values of a, with
 * (a)_c = a (a + 1) ... (a + c - 1); counts are above 0. */
static void NAME(add_log_rises)(const double *a, const int64_t *count, const int64_t *times,
                                int64_t n, double sign, double *out)
{
    double sum[LANES] = {0.0}, product[LANES];
    double many = 0.0; /* counts of FEW or more */
    for (int64_t i = 0; i < n; i++) {
        const double c = (double)count[i], t = (double)times[i];
        if (count[i] >= FEW) {
            many += t;
            for (int g = 0; g < LANES; g++) sum[g] += t * NAME(log_gamma_above)(a[g] + c);
            continue;
        }
        for (int g = 0; g < LANES; g++) product[g] = a[g];
        for (int64_t r = 1; r < count[i]; r++)
            for (int g = 0; g < LANES; g++) product[g] *= a[g] + (double)r;
        for (int g = 0; g < LANES; g++) sum[g] += t * NAME(log_wide)(product[g]);
    }
    if (many > 0.0) { /* log Gamma(a) = log Gamma(a + FEW) - log (a)_FEW */
        for (int g = 0; g < LANES; g++) product[g] = a[g];
        for (int r = 1; r < FEW; r++)
            for (int g = 0; g < LANES; g++) product[g] *= a[g] + (double)r;
        for (int g = 0; g < LANES; g++)
            sum[g] += many * (NAME(log_wide)(product[g]) - NAME(log_gamma_above)(a[g] + FEW));
    }
    for (int g = 0; g < LANES; g++) out[g] += sign * sum[g];
}
