/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Logarithms of gamma functions and likelihoods of counts, without differences of large numbers.
 *
 * A count of 10^9 has log x! = 2 10^10, the log density of it under a rate near it is -11: what is
 * added up and subtracted must not pass through the former. So the density of a count is taken
 * from Stirling's series and from  log(1 + t) - t  of a small t (Loader 2000, "Fast and accurate
 * computation of binomial probabilities"), and a sum of log x! over many counts is kept in two
 * numbers, whole multiples of 1024 and the rest, so that it is known to the last digit of the rest.
 */
#ifndef SKANNEAL_MATH_H
#define SKANNEAL_MATH_H
#include <math.h>
#include <stdint.h>

#include "_artanh_series.h"

#define HALF_LOG_2PI 0.91893853320467274178
#define TABULATED 1024 /* counts below have their log x! in a table */
#define UNIT 1024.0

/* lgamma_r, not lgamma: the latter writes the global signgam, a race of threads. */
static inline double log_gamma(double x)
{
#if defined(_MSC_VER) || defined(__APPLE__)
    return lgamma(x);
#else
    int sign;
    return lgamma_r(x, &sign);
#endif
}

/* log Gamma(z) less Stirling's formula, (z - 1/2) log z - z + log(2 pi) / 2. */
static inline double stirling_rest(double z)
{
    double r = 1.0 / z, r2 = r * r;
    if (z < 16.0) return log_gamma(z) - ((z - 0.5) * log(z) - z + HALF_LOG_2PI);
    return r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0 - r2 / 1680.0)));
}

/* log(1 + t) - t, t > -1. */
static inline double log1p_less(double t)
{
    double out;
    if (t < -0.25 || t > 0.3) return log1p(t) - t;
    LOG1P_LESS_SERIES(out, t, 1);
    return out;
}

/* log x! - (x log x - x), which is -log Poisson(x | x). */
static inline double poisson_peak(double x)
{
    return 0.5 * log(x) + HALF_LOG_2PI + stirling_rest(x);
}

/* ---- sums of log x! ------------------------------------------------------------------------- */

static double log_factorial_table[TABULATED];

static inline void fill_log_factorials(void)
{
    for (int x = 0; x < TABULATED; x++) log_factorial_table[x] = log_gamma(x + 1.0);
}

static inline double log_factorial(uint32_t x)
{
    return x < TABULATED ? log_factorial_table[x] : log_gamma(x + 1.0);
}

/* sum[0] + sum[1] += x, without an error but in sum[1]. */
static inline void add_exactly(double *sum, double x)
{
    double s = sum[0] + x, part = s - sum[0];
    sum[1] += (sum[0] - (s - part)) + (x - part);
    sum[0] = s;
}

static inline void add_product(double *sum, double x, double y)
{
    double p = x * y;
    add_exactly(sum, p);
    sum[1] += fma(x, y, -p);
}

/* sum += n log(a / b), a and b positive: a / b = 2^e (1 + s) / (1 - s), and the terms e log 2 and 2 s
 * are added in full, the rest of the series is small. */
static inline void add_log_ratio(double *sum, double n, double a, double b)
{
    int e;
    if (frexp(a / b, &e) < 0.70710678118654752440) e--;
    b = ldexp(b, e);
    double above = a - b, below = a + b, part = below - a; /* above: exact */
    double rest = (a - (below - part)) + (b - part);       /* of below */
    double s = above / below, z = s * s, p = 1.0 / 21.0;
    double lost = (fma(-s, below, above) - s * rest) / below;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    ARTANH_SERIES(p, z);
    add_product(sum, n, e * 0.693147180369123816490); /* 33 bits of log 2, then the rest */
    add_product(sum, 2.0 * n, s);
    sum[1] += n * (e * 1.90821492927058770002e-10 + 2.0 * (lost + s * z * p));
}

/* Add sign log x! to 1024 units[0] + rest[0]. */
static inline void add_log_factorial(double *units, double *rest, uint32_t x, double sign)
{
    if (x < TABULATED) {
        *rest += sign * log_factorial_table[x];
        return;
    }
    double sum[2] = {-(double)x, 0.0}, whole;
    add_log_ratio(sum, x, x, 1.0);
    whole = floor(sum[0] / UNIT);
    *units += sign * whole;
    *rest += sign * ((sum[0] - UNIT * whole) + sum[1] + poisson_peak(x));
}

/* ---- Poisson --------------------------------------------------------------------------------- */

/* log Poisson(x | rate), log_rate = log(rate). */
static inline double log_poisson(uint32_t x, double rate, double log_rate)
{
    if (x < TABULATED) return x * log_rate - rate - log_factorial_table[x];
    return x * log1p_less((rate - x) / x) - poisson_peak(x);
}

/* The greatest log likelihood that n counts of this total have under one rate, their mean. */
static inline double log_peak(double n, double total, double units, double rest)
{
    if (total == 0.0) return 0.0;
    double sum[2] = {-total, 0.0};
    add_log_ratio(sum, total, total, n);
    add_exactly(sum, -UNIT * units);
    return sum[0] + (sum[1] - rest);
}
#endif
