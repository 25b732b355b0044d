/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A logarithm for loops, included once per instruction set: NAME is the set's own.
 */
#include "_artanh_series.h"

/* log x, x positive and normal: the series of 2 artanh((m - 1) / (m + 1)), m in [sqrt(1/2),
 * sqrt(2)). Loops over it become vectors. */
static inline __attribute__((always_inline, unused)) double NAME(log_wide)(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu; /* sqrt(1/2) */
    uint64_t exponent = (bits >> 52) | 0x4330000000000000u; /* 2^52 + an integer */
    bits = (bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
    double m, e;
    memcpy(&m, &bits, sizeof m);
    memcpy(&e, &exponent, sizeof e);
    double s = (m - 1.0) / (m + 1.0), z = s * s, p = 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    ARTANH_SERIES(p, z);
    return (e - (4503599627370496.0 + 1023.0)) * 0.69314718055994530942 + 2.0 * (s + s * z * p);
}
