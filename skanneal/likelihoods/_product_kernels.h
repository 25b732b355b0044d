/* SPDX-License-Identifier: BSD-3-Clause
 *
 * out[k] = constant of the row + constant of feature k + sum over the row's entries (j, x) of
 * x weight[j][k], in float32: for rows of so few counts that the sum loses nothing that matters.
 *
 * What an entry asks for is a few loads of weights, so it is their place that decides: a group of
 * 32 features takes 128 bytes per column, of which the columns that are not 0 in most rows stay in
 * the first cache and all in the second, and a block of rows goes over one group before the next.
 * Two sums per feature, of the even and of the odd entries, so that no addition waits for the last.
 */
#include "../_native/_lanes.h"

#define PARTS (64 / REGISTER) /* registers of a tile */
#define LOOSE NAME(loose)

/* Weights that came through a pickle start anywhere. */
typedef float NAME(loose) __attribute__((vector_size(REGISTER), aligned(4), may_alias));

/* The sums of n_tiles tiles, a constant where this is called. */
INLINE void NAME(product_row)(const ProductRow *row, const float *weight, const int n_tiles,
                              float *sum)
{
    const uint32_t *entry = row->entry, *stop = entry + 2 * (row->n & ~(int64_t)1);
    const int64_t width = n_tiles * LANES;
    REG even[2 * PARTS], odd[2 * PARTS];
    for (int t = 0; t < n_tiles * PARTS; t++) even[t] = odd[t] = (REG){0};
    for (; entry < stop; entry += 4) {
        const LOOSE *v = (const LOOSE *)(weight + entry[0] * width);
        const LOOSE *w = (const LOOSE *)(weight + entry[2] * width);
        const REG x = __builtin_convertvector((int32_t)entry[1] - (IREG){0}, REG);
        const REG y = __builtin_convertvector((int32_t)entry[3] - (IREG){0}, REG);
        for (int t = 0; t < n_tiles * PARTS; t++) {
            even[t] = FMA_REGISTER(x, (REG)v[t], even[t]);
            odd[t] = FMA_REGISTER(y, (REG)w[t], odd[t]);
        }
    }
    if (row->n & 1) {
        const LOOSE *v = (const LOOSE *)(weight + entry[0] * width);
        const REG x = __builtin_convertvector((int32_t)entry[1] - (IREG){0}, REG);
        for (int t = 0; t < n_tiles * PARTS; t++) even[t] = FMA_REGISTER(x, (REG)v[t], even[t]);
    }
    for (int t = 0; t < n_tiles * PARTS; t++) ((LOOSE *)sum)[t] = even[t] + odd[t];
}

static void NAME(product_scores)(const ProductWeights *weights, const ProductRow *row,
                                 int64_t n_rows)
{
    const int64_t n_features = weights->n_features;
    const float *weight = weights->weight;
    for (int64_t k = 0; k < n_features; k += PRODUCT_GROUP) {
        const int64_t left = n_features - k;
        const int64_t n = left < PRODUCT_GROUP ? left : PRODUCT_GROUP;
        const double *constant = weights->constant + k;
        for (int64_t i = 0; i < n_rows; i++) {
            float sum[PRODUCT_GROUP];
            if (n > LANES)
                NAME(product_row)(row + i, weight, 2, sum);
            else
                NAME(product_row)(row + i, weight, 1, sum);
            float *to = (float *)row[i].out + k;
            if (n == PRODUCT_GROUP)
                for (int f = 0; f < PRODUCT_GROUP; f++)
                    to[f] = (float)(sum[f] + (constant[f] + row[i].constant));
            else
                for (int64_t f = 0; f < n; f++)
                    to[f] = (float)(sum[f] + (constant[f] + row[i].constant));
        }
        weight += weights->n_columns * PRODUCT_GROUP;
    }
}
#undef PARTS
#undef LOOSE
