/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The product of _product_kernels.h in float64, for rows of many counts: a sum of 10^6 logarithms
 * is known to 1 in float32.
 */
#include "../_native/_double_lanes.h"

#define LOOSE NAME(wide_loose)
/* Features at a time: their sums, even and odd, must find room in the registers. */
#if REGISTER == 64
#define AT_ONCE PRODUCT_GROUP
#else
#define AT_ONCE (PRODUCT_GROUP / 2)
#endif

typedef double NAME(wide_loose) __attribute__((vector_size(REGISTER), aligned(8), may_alias));

/* The sums of n_lanes features out of the `width` that stand side by side; n_lanes is a constant
 * where this is called. */
INLINE void NAME(wide_row)(const ProductRow *row, const double *weight, int64_t width,
                           const int n_lanes, double *sum)
{
    const uint32_t *entry = row->entry, *stop = entry + 2 * (row->n & ~(int64_t)1);
    const int n = n_lanes * (int)sizeof(double) / REGISTER;
    DREG even[AT_ONCE * sizeof(double) / REGISTER], odd[AT_ONCE * sizeof(double) / REGISTER];
    for (int t = 0; t < n; t++) even[t] = odd[t] = (DREG){0};
    for (; entry < stop; entry += 4) {
        const LOOSE *v = (const LOOSE *)(weight + entry[0] * width);
        const LOOSE *w = (const LOOSE *)(weight + entry[2] * width);
        const DREG x = (double)entry[1] - (DREG){0}, y = (double)entry[3] - (DREG){0};
        for (int t = 0; t < n; t++) {
            even[t] = FMA_REGISTER(x, (DREG)v[t], even[t]);
            odd[t] = FMA_REGISTER(y, (DREG)w[t], odd[t]);
        }
    }
    if (row->n & 1) {
        const LOOSE *v = (const LOOSE *)(weight + entry[0] * width);
        const DREG x = (double)entry[1] - (DREG){0};
        for (int t = 0; t < n; t++) even[t] = FMA_REGISTER(x, (DREG)v[t], even[t]);
    }
    for (int t = 0; t < n; t++) ((LOOSE *)sum)[t] = even[t] + odd[t];
}

/* `exact`: out is float64. */
static void NAME(product_wide)(const ProductWeights *weights, const ProductRow *row,
                               int64_t n_rows, int exact)
{
    const int64_t n_features = weights->n_features;
    const double *weight = weights->wide;
    for (int64_t k = 0; k < n_features; k += PRODUCT_GROUP) {
        const int64_t left = n_features - k;
        const int64_t n = left < PRODUCT_GROUP ? left : PRODUCT_GROUP;
        const double *constant = weights->constant + k;
        for (int64_t i = 0; i < n_rows; i++) {
            double sum[PRODUCT_GROUP];
            if (n > PRODUCT_GROUP / 2)
                for (int f = 0; f < PRODUCT_GROUP; f += AT_ONCE)
                    NAME(wide_row)(row + i, weight + f, PRODUCT_GROUP, AT_ONCE, sum + f);
            else
                NAME(wide_row)(row + i, weight, PRODUCT_GROUP / 2, PRODUCT_GROUP / 2, sum);
            for (int64_t f = 0; f < n; f++) sum[f] += constant[f] + row[i].constant;
            if (exact)
                memcpy((double *)row[i].out + k, sum, n * sizeof(double));
            else
                for (int64_t f = 0; f < n; f++) ((float *)row[i].out)[k + f] = (float)sum[f];
        }
        weight += weights->n_columns * PRODUCT_GROUP;
    }
}
#undef AT_ONCE
#undef LOOSE
