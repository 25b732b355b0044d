/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log predictive of a count x, less what depends on x alone, in the terms of
 * _negative_binomial.pyx with E = A + B + r and c the probability of 0:
 *     log c + x log(B/E) + sum of log (1 + i/B) / (1 + i/E) over i < x.
 * The sum is the logarithm of a product, four factors at a time, or for x above NEGATIVE_FACTORS
 * by Stirling's formula
 *     (B + x - 1/2) log(1 + x/B) - (E + x - 1/2) log(1 + x/E)
 *         + rest(B + x) - rest(B) - rest(E + x) + rest(E).
 */
#include "../_native/_lanes.h"

#define NEGATIVE_FACTORS 12

INLINE LN NAME(quotient)(LN a, LN b) MAP(LN, a.r[i] / b.r[i])

/* The rest of Stirling's formula at y = 1/z, z > 12. */
INLINE LN NAME(negative_rest)(LN y)
{
    const LN cubic = NAME(set1)(-1.0f / 360.0f), linear = NAME(set1)(1.0f / 12.0f);
    return NAME(mul)(y, NAME(fma)(NAME(mul)(y, y), cubic, linear));
}

/* (z + x - 1/2) log(1 + x/z) + rest(z + x) for y = 1/z. */
INLINE LN NAME(negative_rise)(LN y, LN x)
{
    const LN one = NAME(set1)(1.0f), z = NAME(quotient)(one, y), end = NAME(add)(z, x);
    const LN rest = NAME(negative_rest)(NAME(quotient)(one, end));
    return NAME(fma)(NAME(sub)(end, NAME(set1)(0.5f)), NAME(log1p)(NAME(mul)(x, y)), rest);
}

/* Add the scores of a count to those of all slots; log C(x) with them, as their sum is small. */
static void NAME(negative_add_scores)(const float *cache, uint32_t x, double log_ways,
                                      int64_t n_tiles, float *out)
{
    const LN one = NAME(set1)(1.0f), count = NAME(set1)((float)x);
    for (int64_t tile = 0; tile < n_tiles; tile++, cache += NEGATIVE_PARTS * LANES) {
        LN score = NAME(add)(NAME(set1)((float)log_ways), NAME(load)(cache));
        if (x > 0)
            score = NAME(fma)(count, NAME(load)(cache + 3 * LANES), score);
        if (x > 1) {
            const LN b = NAME(load)(cache + LANES), e = NAME(load)(cache + 2 * LANES);
            if (x > NEGATIVE_FACTORS) {
                score = NAME(add)(score, NAME(load)(cache + 4 * LANES));
                score = NAME(add)(score, NAME(sub)(NAME(negative_rise)(b, count),
                                                   NAME(negative_rise)(e, count)));
            } else {
                for (uint32_t i = 1; i < x;) {
                    LN above = one, below = one;
                    for (uint32_t stop = i + 4 < x ? i + 4 : x; i < stop; i++) {
                        const LN factor = NAME(set1)((float)i);
                        above = NAME(mul)(above, NAME(fma)(factor, b, one));
                        below = NAME(mul)(below, NAME(fma)(factor, e, one));
                    }
                    score = NAME(add)(score, NAME(log)(NAME(quotient)(above, below)));
                }
            }
        }
        NAME(store)(out + tile * LANES, NAME(add)(NAME(load)(out + tile * LANES), score));
    }
}
