/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The score of a row with missing cells in one slot. Let e = x - centre, with a density that is a
 * function of |W e|^2. The observed cells enter through u = W_o e_o alone. Over the missing e_m,
 * the least value of q = |u + W_m e_m|^2 is the square of u's residual from the span of the columns
 * W_m. With W_m = Q R and c = Q'u it is reached at e_m = -R^-1 c, and W_m' W_m = R'R.
 */
#ifndef SKANNEAL_GAPS_H
#define SKANNEAL_GAPS_H
#include <math.h>
#include <stdint.h>

/* The cells of a row as doubles, and which are missing, in descending order; how many. `gap` has
 * room for d. Without a branch that a cell decides. */
static inline int64_t read_cells(const char *row, const int32_t *restrict position, int64_t d,
                                 double *restrict number, int64_t *restrict gap)
{
    int64_t n = 0;
    for (int64_t j = d - 1; j >= 0; j--) {
        const float x = *(const float *)(row + position[j]);
        number[j] = x;
        gap[n] = j;
        n += x != x;
    }
    return n;
}

/* Modified Gram-Schmidt: replace u by its residual from the span of m columns, which stand one
 * after another in `column`, d numbers each, and return the residual's square. Writes R, in rows of
 * d, and c. The columns become Q. */
static inline double project_out(double *restrict column, int64_t m, int64_t d, double *restrict u,
                                 double *restrict r, double *restrict c)
{
    double rest = 0.0;
    for (int64_t l = 0; l < m; l++) {
        double *restrict own = column + l * d, square = 0.0, part = 0.0;
        for (int64_t i = 0; i < d; i++) square += own[i] * own[i];
        const double length = sqrt(square > 1e-300 ? square : 1e-300);
        r[l * d + l] = length;
        for (int64_t i = 0; i < d; i++) own[i] /= length;
        for (int64_t later = l + 1; later < m; later++) {
            double *restrict other = column + later * d, share = 0.0;
            for (int64_t i = 0; i < d; i++) share += own[i] * other[i];
            r[l * d + later] = share;
            for (int64_t i = 0; i < d; i++) other[i] -= share * own[i];
        }
        for (int64_t i = 0; i < d; i++) part += own[i] * u[i];
        c[l] = part;
        for (int64_t i = 0; i < d; i++) u[i] -= part * own[i];
    }
    for (int64_t i = 0; i < d; i++) rest += u[i] * u[i];
    return rest;
}
#endif
