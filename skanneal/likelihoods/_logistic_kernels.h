/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logarithms of sums of exponentials on an ellipse, in double precision: elliptical slices ask for
 * them at many angles. Loops over exp_wide and log_wide become vectors; eight sums in a fixed order
 * and no contraction give the same bits on all instruction sets.
 */
#include "../_native/_log_wide.h"

#define WIDE 8
#define INLINE_WIDE static inline __attribute__((always_inline, unused))

/* e^x to 2 units in the last place, -700 <= x <= 700. */
INLINE_WIDE double NAME(exp_wide)(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    const double n = (x * 1.44269504088896340736 + magic) - magic;
    const double biased = n + magic;
    const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r * r + r + 1.0;
    int64_t e;
    memcpy(&e, &biased, sizeof e);
    e = (int64_t)((uint64_t)(e - 0x4338000000000000) << 52);
    int64_t bits;
    memcpy(&bits, &p, sizeof bits);
    bits += e;
    memcpy(&p, &bits, sizeof p);
    return p;
}

INLINE_WIDE double NAME(clip)(double x)
{
    x = x > -700.0 ? x : -700.0;
    return x < 700.0 ? x : 700.0;
}

/* log of the sum over j of exp(a u_j + b v_j). */
static double NAME(log_sum_exp)(const double *u, const double *v, double a, double b, int64_t n)
{
    double largest[WIDE], sum[WIDE] = {0.0}, top;
    int64_t j = 0;
    for (int i = 0; i < WIDE; i++) largest[i] = -1e300;
    for (; j + WIDE <= n; j += WIDE)
        for (int i = 0; i < WIDE; i++) {
            const double x = a * u[j + i] + b * v[j + i];
            largest[i] = x > largest[i] ? x : largest[i];
        }
    for (int i = 0; j + i < n; i++) {
        const double x = a * u[j + i] + b * v[j + i];
        largest[i] = x > largest[i] ? x : largest[i];
    }
    top = largest[0];
    for (int i = 1; i < WIDE; i++) top = largest[i] > top ? largest[i] : top;
    for (j = 0; j + WIDE <= n; j += WIDE)
        for (int i = 0; i < WIDE; i++)
            sum[i] += NAME(exp_wide)(NAME(clip)(a * u[j + i] + b * v[j + i] - top));
    for (int i = 0; j + i < n; i++)
        sum[i] += NAME(exp_wide)(NAME(clip)(a * u[j + i] + b * v[j + i] - top));
    for (int i = 4; i > 0; i /= 2)
        for (int l = 0; l < i; l++) sum[l] += sum[l + i];
    return top + NAME(log_wide)(sum[0]);
}

/* The sum over features k of total_k log(rest_k + exp(a u_k + b v_k - shift_k)). */
static double NAME(row_loss)(const double *u, const double *v, double a, double b,
                             const double *total, const double *rest, const double *shift,
                             int64_t n)
{
    double sum[WIDE] = {0.0};
    int64_t k = 0;
    for (; k + WIDE <= n; k += WIDE)
        for (int i = 0; i < WIDE; i++)
            sum[i] += total[k + i] *
                      NAME(log_wide)(rest[k + i] + NAME(exp_wide)(NAME(clip)(
                                                       a * u[k + i] + b * v[k + i] - shift[k + i])));
    for (int i = 0; k + i < n; i++)
        sum[i] += total[k + i] *
                  NAME(log_wide)(rest[k + i] + NAME(exp_wide)(NAME(clip)(
                                                   a * u[k + i] + b * v[k + i] - shift[k + i])));
    for (int i = 4; i > 0; i /= 2)
        for (int l = 0; l < i; l++) sum[l] += sum[l + i];
    return sum[0];
}
#undef WIDE
#undef INLINE_WIDE
