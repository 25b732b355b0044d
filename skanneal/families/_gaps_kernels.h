/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The same for 16 slots side by side, as scores need it: the residual of u, and log |R|; see
 * _gaps.h. Lengths are in the norm |x|^2 = sum w_i x_i^2, with weights per slot (NULL: 1), and
 * nothing is normalised, which saves the roots.
 */
#include "../_native/_lanes.h"

INLINE LN NAME(div)(LN a, LN b) MAP(LN, a.r[i] / b.r[i])

/* The missing column l of a row is zero outside first[l] to last[l], and is overwritten. The
 * columns before it must be zero before first[l]. */
INLINE LN NAME(gaps_square)(float *columns, const int64_t *first, const int64_t *last, int64_t m,
                            int64_t d, const float *weights, float *u, LN *log_lengths)
{
    const LN half = NAME(set1)(0.5f), least = NAME(set1)(1e-37f);
    LN logs = NAME(set1)(0.0f), rest = logs;
#define AT(vector, i) NAME(load)((vector) + (i) * LANES)
#define WEIGHED(vector, i) \
    (weights == NULL ? AT(vector, i) : NAME(mul)(AT(vector, i), AT(weights, i)))
    for (int64_t l = 0; l < m; l++) {
        const float *own = columns + l * d * LANES;
        LN square = NAME(set1)(0.0f);
        for (int64_t i = first[l]; i < last[l]; i++)
            square = NAME(fma)(WEIGHED(own, i), AT(own, i), square);
        square = NAME(max)(square, least);
        logs = NAME(fma)(half, NAME(log)(square), logs);
        for (int64_t later = l + 1; later <= m; later++) {
            float *other = later < m ? columns + later * d * LANES : u;
            LN share = NAME(set1)(0.0f);
            for (int64_t i = first[l]; i < last[l]; i++)
                share = NAME(fma)(WEIGHED(own, i), AT(other, i), share);
            share = NAME(sub)(NAME(set1)(0.0f), NAME(div)(share, square));
            for (int64_t i = first[l]; i < last[l]; i++)
                NAME(store)(other + i * LANES, NAME(fma)(share, AT(own, i), AT(other, i)));
        }
    }
    for (int64_t i = 0; i < d; i++) rest = NAME(fma)(WEIGHED(u, i), AT(u, i), rest);
#undef WEIGHED
#undef AT
    *log_lengths = logs;
    return rest;
}

/* q minus the part that the missing cells explain, in one slot. `square` is the lower triangle of
 * W_m'W_m, in rows of `stride`, and `product` is W_m'u; both are overwritten. Subtracts log |R|
 * from *log_det. */
INLINE double NAME(gaps_explain)(double *square, int64_t stride, double *product, int64_t m,
                                 double q, double *log_det)
{
    double lengths = 1.0;
    for (int64_t l = 0; l < m; l++) {
        double *own = square + l * stride;
        for (int64_t j = 0; j <= l; j++) {
            const double *other = square + j * stride;
            double value = own[j];
            for (int64_t i = 0; i < j; i++) value -= own[i] * other[i];
            own[j] = j < l ? value / other[j] : sqrt(value > 1e-300 ? value : 1e-300);
        }
        for (int64_t i = 0; i < l; i++) product[l] -= own[i] * product[i];
        product[l] /= own[l];
        q -= product[l] * product[l];
        lengths *= own[l];
        if (l % 4 == 3 || l == m - 1) {
            *log_det -= log(lengths);
            lengths = 1.0;
        }
    }
    return q > 0.0 ? q : 0.0;
}
