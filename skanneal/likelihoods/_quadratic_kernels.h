/* SPDX-License-Identifier: BSD-3-Clause
 *
 * out[i][k] = constant of feature k - |F_k (x_i - mean_k)|^2, F_k diagonal or a lower triangle.
 *
 * The lanes are 16 rows, transposed by the caller: a feature's numbers are then broadcast, as they
 * come, and nothing is filled up but the last rows. Sums run over the columns in their order.
 */
#include "../_native/_lanes.h"

/* n features from k on, a constant where this is called. */
INLINE void NAME(diagonal_features)(const QuadraticBlock *block, const float *tile, int64_t k,
                                    const int n, float (*sum)[LANES])
{
    const int64_t D = block->n_columns;
    const float *mean = block->mean + k * D, *factor = block->factor + k * D;
    LN squares[QUADRATIC_FEATURES];
    for (int f = 0; f < n; f++) squares[f] = NAME(set1)(0.0f);
    for (int64_t j = 0; j < D; j++) {
        const LN x = NAME(load)(tile + j * LANES);
        for (int f = 0; f < n; f++) {
            LN y = NAME(sub)(x, NAME(set1)(mean[f * D + j]));
            y = NAME(mul)(y, NAME(set1)(factor[f * D + j]));
            squares[f] = NAME(fma)(y, y, squares[f]);
        }
    }
    for (int f = 0; f < n; f++) NAME(store)(sum[f], squares[f]);
}

/* The first n_rows of 16 rows; out: (n_rows, n_features), lines `stride` numbers apart. */
static void NAME(quadratic_diagonal)(const QuadraticBlock *block, const float *tile, int64_t n_rows,
                                     int64_t stride, float *out)
{
    const int64_t K = block->n_features;
    float sum[QUADRATIC_FEATURES][LANES];
    for (int64_t k = 0; k < K; k += QUADRATIC_FEATURES) {
        const int64_t n = K - k < QUADRATIC_FEATURES ? K - k : QUADRATIC_FEATURES;
        if (n == QUADRATIC_FEATURES)
            NAME(diagonal_features)(block, tile, k, QUADRATIC_FEATURES, sum);
        else
            for (int64_t f = 0; f < n; f++)
                NAME(diagonal_features)(block, tile, k + f, 1, sum + f);
        for (int64_t i = 0; i < n_rows; i++)
            for (int64_t f = 0; f < n; f++)
                out[i * stride + k + f] = block->constant[k + f] - sum[f][i];
    }
}

static void NAME(quadratic_full)(const QuadraticBlock *block, const float *tile, int64_t n_rows,
                                 int64_t stride, float *out)
{
    const int64_t K = block->n_features, D = block->n_columns;
    float *deviation = block->deviation;
    for (int64_t k = 0; k < K; k++) {
        const float *mean = block->mean + k * D, *factor = block->factor + k * block->factor_length;
        LN squares = NAME(set1)(0.0f);
        float sum[LANES];
        for (int64_t j = 0; j < D; j++)
            NAME(store)(deviation + j * LANES,
                        NAME(sub)(NAME(load)(tile + j * LANES), NAME(set1)(mean[j])));
        for (int64_t i = 0; i < D; i += QUADRATIC_ROWS) {
            LN y[QUADRATIC_ROWS];
            for (int r = 0; r < QUADRATIC_ROWS; r++) y[r] = NAME(set1)(0.0f);
            for (int64_t j = 0; j < i + QUADRATIC_ROWS; j++, factor += QUADRATIC_ROWS) {
                const LN x = NAME(load)(deviation + j * LANES);
                for (int r = 0; r < QUADRATIC_ROWS; r++)
                    y[r] = NAME(fma)(x, NAME(set1)(factor[r]), y[r]);
            }
            for (int r = 0; r < QUADRATIC_ROWS; r++) squares = NAME(fma)(y[r], y[r], squares);
        }
        NAME(store)(sum, squares);
        for (int64_t i = 0; i < n_rows; i++) out[i * stride + k] = block->constant[k] - sum[i];
    }
}
