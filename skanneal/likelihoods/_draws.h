/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Normal variates by the ziggurat of Marsaglia and Tsang (2000), 256 layers of equal area V under
 * exp(-x^2 / 2), the lowest with the tail beyond R. One 64-bit number makes most draws: 8 bits the
 * layer, one the sign and 53 others the place.
 */
#ifndef SKANNEAL_DRAWS_H
#define SKANNEAL_DRAWS_H
#include <math.h>
#include <stdint.h>

#define ZIGGURAT_R 3.6541528853610088
#define ZIGGURAT_V 0.00492867323399

static double ziggurat_x[257], ziggurat_f[257];

static void fill_ziggurat(void)
{
    double x = ZIGGURAT_R, f = exp(-0.5 * x * x);
    ziggurat_x[0] = ZIGGURAT_V / f;
    for (int i = 1; i < 256; i++) {
        ziggurat_x[i] = x;
        ziggurat_f[i] = f;
        f += ZIGGURAT_V / x;
        x = f < 1.0 ? sqrt(-2.0 * log(f)) : 0.0;
    }
    ziggurat_x[256] = 0.0;
    ziggurat_f[256] = 1.0;
}

static inline double ziggurat_normal(bitgen_t *rng)
{
    for (;;) {
        const uint64_t bits = rng->next_uint64(rng->state);
        const int layer = bits & 255;
        const double sign = bits & 256 ? -1.0 : 1.0;
        const double x = (double)(bits >> 11) * 0x1p-53 * ziggurat_x[layer];
        if (x < ziggurat_x[layer + 1]) return sign * x;
        if (layer == 0) {
            double beyond, y;
            do {
                beyond = -log(1.0 - rng->next_double(rng->state)) / ZIGGURAT_R;
                y = -log(1.0 - rng->next_double(rng->state));
            } while (2.0 * y < beyond * beyond);
            return sign * (ZIGGURAT_R + beyond);
        }
        const double low = ziggurat_f[layer], high = ziggurat_f[layer + 1];
        if (low + rng->next_double(rng->state) * (high - low) < exp(-0.5 * x * x)) return sign * x;
    }
}

/* What all Gamma variates of a shape share. */
typedef struct {
    double d, c, inverse; /* inverse: 1 / shape of a shape below 1, else 0 */
} GammaShape;

static inline GammaShape gamma_shape(double shape)
{
    GammaShape s;
    s.inverse = shape < 1.0 ? 1.0 / shape : 0.0;
    s.d = (shape < 1.0 ? shape + 1.0 : shape) - 1.0 / 3.0;
    s.c = 1.0 / sqrt(9.0 * s.d);
    return s;
}

/* log of a Gamma(shape, 1) variate (Marsaglia and Tsang, 2000). Variates of small shapes a vanish in
 * double precision, their logarithms do not: log Gamma(a + 1) + log(U) / a. */
static inline double log_gamma_variate(bitgen_t *rng, const GammaShape *s)
{
    for (;;) {
        const double x = ziggurat_normal(rng), root = 1.0 + s->c * x;
        if (root <= 0.0) continue;
        const double v = root * root * root, u = 1.0 - rng->next_double(rng->state);
        const double x2 = x * x;
        if (u >= 1.0 - 0.0331 * x2 * x2 &&
            log(u) >= 0.5 * x2 + s->d * (1.0 - v + log(v)))
            continue;
        const double out = log(s->d * v);
        if (s->inverse == 0.0) return out;
        return out + log(1.0 - rng->next_double(rng->state)) * s->inverse;
    }
}
#endif
