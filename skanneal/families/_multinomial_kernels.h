/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dirichlet-multinomial: with v = pseudo-count + count of a column in the slot, T = sum v, X the
 * row's total and (v)_x = v (v + 1) ... (v + x - 1),
 *     log p = sum over the row's entries of log (v)_x - log (T)_X + log multinomial coefficient.
 *
 * The logarithm of a sum over entries is that of one product: an entry costs one load and one
 * multiplication per register, four factors share the work of taking the exponent out, and a whole
 * row takes one logarithm. So only v itself is kept per (column, slot). Pseudo-
 * counts and column sums lie within 1e-9 .. 2^31, so four factors and a mantissa stay in range.
 *
 * Counts above MANY take eight factors, then Stirling's formula from v + 8 on, and so does the
 * total: in double, since these are the numbers that can be large.
 */
#include "../_native/_lanes.h"
#include "../_native/_log_wide.h"

#define MANY 16
#define FIRST 8 /* factors of such a count that are multiplied out */
#define MOST_TILES 4
#define AHEAD 8 /* entries between a prefetch and its use */

/* log Gamma(z) - log(2 pi) / 2, z >= 8, to 3e-10. */
INLINE double NAME(stirling)(double z)
{
    double r = 1.0 / z, r2 = r * r;
    return (z - 0.5) * NAME(log_wide)(z) - z +
           r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0)));
}

/* sum += log (v)_x beyond the first eight factors. */
INLINE void NAME(add_many)(double *sum, const float *v, double x)
{
    for (int i = 0; i < LANES; i++)
        sum[i] += NAME(stirling)(v[i] + x) - NAME(stirling)((double)v[i] + FIRST);
}

/* log(1 + t) - t, t in [0, 1/4]. */
INLINE double NAME(log1p_less)(double t)
{
    double out;
    LOG1P_LESS_SERIES(out, t, 0);
    return out;
}

/* log (T)_X for the slots of a tile: a total of 10^13 has log Gamma(T) to 0.03 only, so it is
 * X log T and, with t = X/T, what log(1 + t) leaves. */
INLINE void NAME(log_rise_total)(const MultinomialBlock *block, int64_t slot, int64_t total,
                                 double *out)
{
    const double *T = block->total + slot;
    if (total > FIRST) {
        const double X = (double)total;
        for (int i = 0; i < LANES; i++) {
            const double t = X / T[i], z = T[i] + X, r = 1.0 / z, r2 = r * r;
            const double near = (X - 0.5) * t + (z - 0.5) * NAME(log1p_less)(t);
            const double far = (z - 0.5) * NAME(log_wide)(1.0 + t) - X;
            out[i] = X * block->log_total[slot + i] + (t < 0.25 ? near : far) +
                     r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0))) -
                     block->rest_total[slot + i];
        }
        return;
    }
    for (int i = 0; i < LANES; i++) out[i] = 1.0;
    for (int64_t r = 0; r < total; r++)
        for (int i = 0; i < LANES; i++) out[i] *= T[i] + (double)r;
    for (int i = 0; i < LANES; i++) out[i] = NAME(log_wide)(out[i]);
}

/* Takes the product's exponent out: it is in [1, 2) again. */
#define FOLD                                                                                \
    for (int j = 0; j < n; j++) {                                                           \
        ILN bits = NAME(bits)(product[j]);                                                  \
        exponent[j] = NAME(iadd)(exponent[j], NAME(iadd1)(NAME(shift_right)(bits, 23), -127)); \
        product[j] = NAME(floats)(NAME(iadd1)(NAME(iand1)(bits, 0x7fffff), 0x3f800000));    \
    }

/* The slots of n tiles from `slot` on; n is a constant where this is called. */
INLINE void NAME(multinomial_tiles)(const MultinomialBlock *block, const uint32_t *entry,
                                    int64_t n_entries, int64_t total, double log_coefficient,
                                    int64_t slot, const int n, float *out)
{
    const int64_t n_slots = block->n_slots;
    const float *weight = block->weight + slot;
    LN product[MOST_TILES];
    ILN exponent[MOST_TILES];
    double many[MOST_TILES][LANES] = {{0.0}};
    int held = 0;
    for (int j = 0; j < n; j++) {
        product[j] = NAME(set1)(1.0f);
        exponent[j] = NAME(bits)(NAME(set1)(0.0f));
    }
    for (int64_t i = 0; i < n_entries; i++) {
        const float *v = weight + entry[2 * i] * n_slots;
        const uint32_t x = entry[2 * i + 1];
        if (i + AHEAD < n_entries)
            for (int j = 0; j < n; j++)
                __builtin_prefetch(weight + entry[2 * (i + AHEAD)] * n_slots + j * LANES);
        for (int j = 0; j < n; j++)
            product[j] = NAME(mul)(product[j], NAME(load)(v + j * LANES));
        if (++held == 4) {
            held = 0;
            FOLD
        }
        const uint32_t stop = x > MANY ? FIRST : x;
        for (uint32_t r = 1; r < stop; r++) {
            for (int j = 0; j < n; j++)
                product[j] = NAME(mul)(
                    product[j], NAME(add)(NAME(load)(v + j * LANES), NAME(set1)((float)r)));
            if (++held == 4) {
                held = 0;
                FOLD
            }
        }
        if (x > MANY)
            for (int j = 0; j < n; j++)
                NAME(add_many)(many[j], v + j * LANES, x);
    }
    FOLD
    for (int j = 0; j < n; j++, slot += LANES, out += LANES) {
        float log_product[LANES];
        double log_rise[LANES];
        int32_t exponents[LANES];
        NAME(store)(log_product, NAME(log)(product[j]));
        memcpy(exponents, &exponent[j], sizeof exponents);
        NAME(log_rise_total)(block, slot, total, log_rise);
        for (int i = 0; i < LANES; i++)
            out[i] += (float)(log_coefficient + exponents[i] * 0.69314718055994530942 +
                              log_product[i] + many[j][i] - log_rise[i]);
    }
}
#undef FOLD

static void NAME(multinomial_add_scores)(const MultinomialBlock *block, const uint32_t *entry,
                                         int64_t n_entries, int64_t total, double log_coefficient,
                                         int64_t n_tiles, float *out)
{
#define TILES(n)                                                                               \
    NAME(multinomial_tiles)(block, entry, n_entries, total, log_coefficient, slot, n,          \
                            out + slot)
    int64_t slot = 0;
    for (; n_tiles > MOST_TILES; n_tiles -= MOST_TILES, slot += MOST_TILES * LANES)
        TILES(MOST_TILES);
    switch (n_tiles) {
    case 1: TILES(1); break;
    case 2: TILES(2); break;
    case 3: TILES(3); break;
    case 4: TILES(4); break;
    }
#undef TILES
}
#undef MANY
#undef FIRST
#undef MOST_TILES
#undef AHEAD
