/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a row with missing cells asks of one slot. With e = x - centre and a law of |W e|^2, the
 * missing e_m are free: u = W_o e_o is all that the observed cells say, and of q = |u + W_m e_m|^2
 * the least value is what the span of the columns W_m leaves of u. With W_m = Q R and c = Q'u it is
 * reached at e_m = -R^-1 c, and W_m' W_m = R'R.
 */
#ifndef SKANNEAL_GAPS_H
#define SKANNEAL_GAPS_H
#include <math.h>
#include <stdint.h>

/* Modified Gram and Schmidt: takes the span of m columns, one after another in `column` and of d
 * numbers each, out of u, which is left with its rest; that rest's square. Writes R, rows of d, and
 * c. The columns become Q. */
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
