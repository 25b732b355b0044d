/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Covariances of all pairs of rows, and the contraction of the gradient. Differences are taken
 * between rows, never as |a|^2 + |b|^2 - 2 a'b: short length scales lose no digits, and a pair's
 * covariance is the same whatever the number of rows.
 *
 * Row i of the matrices is a lane: a block is 8 rows of one column.
 */
#include "../_native/_double_lanes.h"

#define COLUMNS 4 /* of the matrix at a time: 8 sums of squares in registers (AVX2) */
#define TILE 64   /* columns of the contraction's tile, which stays in the first cache */

/* The covariance at a scaled squared distance, and its slope: the derivative by log l_d is the
 * slope times the square of the difference in coordinate d over l_d^2. Both at unit amplitude, and
 * both 0 where the polynomial of Matern's would overflow. */
INLINE void NAME(gp_kernel)(int kernel, DLN squares, DLN *covariance, DLN *slope)
{
    if (kernel == GP_RBF) {
        *covariance = *slope = NAME(dexp)(NAME(dmul)(squares, NAME(dset1)(-0.5)));
        return;
    }
    const double nu2 = kernel == GP_MATERN32 ? 3.0 : 5.0;
    const DILN near = NAME(dgreater)(NAME(dset1)(1e300), squares);
    squares = NAME(dkeep)(near, squares);
    DLN r = NAME(dsqrt)(NAME(dmul)(squares, NAME(dset1)(nu2)));
    DLN e = NAME(dkeep)(near, NAME(dexp)(NAME(dsub)(NAME(dset1)(0.0), r)));
    DLN linear = NAME(dadd)(r, NAME(dset1)(1.0));
    if (kernel == GP_MATERN32) {
        *covariance = NAME(dmul)(linear, e);
        *slope = NAME(dmul)(NAME(dset1)(3.0), e);
    } else {
        DLN quadratic = NAME(dfma)(squares, NAME(dset1)(5.0 / 3.0), linear);
        *covariance = NAME(dmul)(quadratic, e);
        *slope = NAME(dmul)(NAME(dmul)(NAME(dset1)(5.0 / 3.0), linear), e);
    }
}

/* Columns j .. j + n_columns - 1, rows from block `first` on, `kernel` known to the compiler. */
INLINE void NAME(gp_strip)(const GpRows *rows, const GpRows *columns, int kernel, double amplitude,
                           int64_t first, int64_t j, int n_columns, int64_t leading,
                           double *covariance, double *slope)
{
    const DLN scale = NAME(dset1)(amplitude);
    for (int64_t i = first; i < rows->n; i += DOUBLE_LANES) {
        DLN sum[COLUMNS];
        for (int c = 0; c < n_columns; c++) sum[c] = NAME(dset1)(0.0);
        const double *x = rows->scaled + i, *z = columns->scaled + j;
        for (int64_t d = 0; d < rows->d; d++, x += rows->stride, z += columns->stride) {
            const DLN cell = NAME(dload)(x);
            for (int c = 0; c < n_columns; c++) {
                const DLN e = NAME(dsub)(cell, NAME(dset1)(z[c]));
                sum[c] = NAME(dfma)(e, e, sum[c]);
            }
        }
        for (int c = 0; c < n_columns; c++) {
            DLN k, s;
            NAME(gp_kernel)(kernel, sum[c], &k, &s);
            NAME(dstore)(covariance + (j + c) * leading + i, NAME(dmul)(k, scale));
            if (slope) NAME(dstore)(slope + (j + c) * leading + i, NAME(dmul)(s, scale));
        }
    }
}

/* covariance[i + j leading] of row i of `rows` and row j of `columns`. If both are one, the lower
 * triangle alone: what the last and the diagonal's blocks hold besides is finite, and the slope is
 * zero there. */
INLINE void NAME(gp_fill)(const GpRows *rows, const GpRows *columns, int kernel, double amplitude,
                          int64_t leading, double *covariance, double *slope)
{
    const int lower = rows == columns;
    int64_t j = 0;
    for (; j + COLUMNS <= columns->n; j += COLUMNS)
        NAME(gp_strip)(rows, columns, kernel, amplitude, lower ? j & -DOUBLE_LANES : 0, j,
                       COLUMNS, leading, covariance, slope);
    for (; j < columns->n; j++)
        NAME(gp_strip)(rows, columns, kernel, amplitude, lower ? j & -DOUBLE_LANES : 0, j, 1,
                       leading, covariance, slope);
    if (slope)
        for (j = 0; j < columns->n; j++) {
            double *column = slope + j * leading;
            for (int64_t i = j & -DOUBLE_LANES; i <= j; i++) column[i] = 0.0;
            for (int64_t i = rows->n; i % DOUBLE_LANES; i++) column[i] = 0.0;
        }
}

static void NAME(gp_covariance)(const GpRows *rows, const GpRows *columns, int kernel,
                                double amplitude, int64_t leading, double *covariance,
                                double *slope)
{
    switch (kernel) { /* each with its own loop */
    case GP_RBF:
        NAME(gp_fill)(rows, columns, GP_RBF, amplitude, leading, covariance, slope);
        break;
    case GP_MATERN32:
        NAME(gp_fill)(rows, columns, GP_MATERN32, amplitude, leading, covariance, slope);
        break;
    default:
        NAME(gp_fill)(rows, columns, GP_MATERN52, amplitude, leading, covariance, slope);
    }
}

/* out[d] = sum over i > j of (a_i a_j - inverse_ij) slope_ij (x_id - x_jd)^2, x scaled. `sums`
 * holds 8 numbers per coordinate. Lower triangles, as gp_fill leaves them. */
static void NAME(gp_contract)(const GpRows *rows, int64_t leading, const double *inverse,
                              const double *slope, const double *a, double *sums, double *out)
{
    const int64_t n = rows->n, n_coordinates = rows->d, stride = rows->stride;
    double tile[TILE * DOUBLE_LANES] __attribute__((aligned(64)));
    for (int64_t d = 0; d < n_coordinates * DOUBLE_LANES; d++) sums[d] = 0.0;
    for (int64_t j0 = 0; j0 < n; j0 += TILE)
        for (int64_t i = j0; i < n; i += DOUBLE_LANES) { /* TILE is a multiple of the lanes */
            const int64_t past = i + DOUBLE_LANES < n ? i + DOUBLE_LANES : n;
            const int64_t width = past - j0 < TILE ? past - j0 : TILE;
            const DLN a_i = NAME(dload)(a + i);
            for (int64_t j = 0; j < width; j++) {
                const int64_t at = (j0 + j) * leading + i;
                DLN w = NAME(dmul)(a_i, NAME(dset1)(a[j0 + j]));
                w = NAME(dsub)(w, NAME(dload)(inverse + at));
                NAME(dstore)(tile + j * DOUBLE_LANES, NAME(dmul)(w, NAME(dload)(slope + at)));
            }
            for (int64_t d = 0; d < n_coordinates; d++) {
                const double *z = rows->scaled + d * stride + j0;
                const DLN cell = NAME(dload)(rows->scaled + d * stride + i);
                DLN even = NAME(dload)(sums + d * DOUBLE_LANES), odd = NAME(dset1)(0.0);
                int64_t j = 0;
                for (; j + 2 <= width; j += 2) { /* two sums: one would wait for itself */
                    const DLN e = NAME(dsub)(cell, NAME(dset1)(z[j]));
                    const DLN f = NAME(dsub)(cell, NAME(dset1)(z[j + 1]));
                    const double *g = tile + j * DOUBLE_LANES;
                    /* The slope first: far rows have none, and the square may overflow. */
                    even = NAME(dfma)(NAME(dmul)(NAME(dload)(g), e), e, even);
                    odd = NAME(dfma)(NAME(dmul)(NAME(dload)(g + DOUBLE_LANES), f), f, odd);
                }
                if (j < width) {
                    const DLN e = NAME(dsub)(cell, NAME(dset1)(z[j]));
                    even = NAME(dfma)(NAME(dmul)(NAME(dload)(tile + j * DOUBLE_LANES), e), e, even);
                }
                NAME(dstore)(sums + d * DOUBLE_LANES, NAME(dadd)(even, odd));
            }
        }
    for (int64_t d = 0; d < n_coordinates; d++) {
        const double *s = sums + d * DOUBLE_LANES;
        out[d] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}
