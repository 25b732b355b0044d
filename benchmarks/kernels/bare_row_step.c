/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The row step of collapsed Gibbs sampling as a bare C loop: the yardstick of row_step.py.
 *
 * One step removes a row from its cluster, scores it against every cluster and against one
 * empty cluster (Chinese restaurant process), draws a label and inserts the row.
 *
 * categorical  log_score[feature][level][slot] = log(count + a), a the pseudo-count of every
 *              level; the denominators do not depend on the feature, so they are one number
 *              per slot.
 * normal       Normal-inverse-chi^2: the predictive of a cell is Student's t,
 *              constant - exponent log1p((x - mean)^2 / (nu scale^2)), its four numbers kept
 *              by [feature][slot], the statistics (mean, centred sum of squares) in double.
 * rows         Normal-inverse-Wishart: the predictive of a row is a multivariate t,
 *              constant - exponent log1p(rate |W (x - mean)|^2), W the inverse Cholesky factor of
 *              the posterior scale matrix, updated by rank one in double.
 * known        Normal rows with covariance I and means N(0, V I): constant - precision
 *              |x - mean|^2, the sums in double.
 * atoms        A cell of 0 is an atom; elsewhere as normal. Outcomes are Dirichlet-multinomial:
 *              elsewhere the logarithm of its share is in the constant, at the atom it is a number by
 *              [feature][slot].
 * negative     Negative binomial counts x with a known size r and a Beta prior of p. With A and B the
 * binomial     parameters of its posterior and E = A + B + r, the predictive is, up to a factor that
 *              depends on x alone, c B (B + 1) ... (B + x - 1) / (E (E + 1) ... (E + x - 1)): the
 *              logarithm of this product, or for a large x by Stirling's formula.
 * t            As rows, each row with a weight w ~ Gamma(h, h) of its precision, which the step
 *              integrates out by Laplace's approximation. A row that would leave its cluster stays
 *              with the probability that makes up for the error; if it leaves, and one time in eight
 *              if it stays, its weight is drawn given the cluster, by a sum over log w.
 *
 * multinomial  Dirichlet-multinomial of a row of counts, kept as pairs (column, count) of those
 *              above 0: weight[column][slot] = count + a, a row's score the logarithm of the product
 *              of its weights (a count of x gives x factors), less log Gamma at the total before and
 *              after; the exponent is taken out of the product every few factors.
 *
 * Rows are contiguous (uint8 codes of 4 levels, floats, or pairs) without missing cells, all features
 * have the same hyperparameters, clusters are padded to one, two or three blocks of 16 slots, free
 * slots score
 * MASKED. Built with -ffast-math, so infinities and NaN are never used. It has its own arithmetic,
 * generator and layout and shares nothing with the package.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#define BLOCK 16
#define MAX_SLOTS 48
#define LEVELS 4
#define MAX_NODES 512
#define MAX_FEATURES 128
#define MASKED (-1e30f)
#define AHEAD 4 /* rows between a prefetch and its use */
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES), may_alias));

enum { CATEGORICAL, NORMAL, ROWS, KNOWN, MULTINOMIAL, ATOMS, NEGATIVE, HEAVY };

typedef struct {
    int family;
    int n_features, n_slots, open;   /* n_slots: whole BLOCKs; open: the empty slot */
    int64_t n_rows;
    uint64_t rng[4];
    int32_t *labels;                 /* (n_rows,) the caller's */
    int32_t n[MAX_SLOTS];            /* rows of each slot */
    float *slot_table;               /* (n_rows + 1,) slot_score of a slot of n rows, 0 = open */
    float slot_score[MAX_SLOTS] __attribute__((aligned(64)));
    float scores[MAX_SLOTS] __attribute__((aligned(64)));
    /* categorical */
    const uint8_t *codes;            /* (n_rows, n_features) the caller's */
    uint32_t *counts;                /* (n_slots, n_features, LEVELS) */
    float *log_score;                /* (n_features, LEVELS, n_slots) */
    float *log_table;                /* (n_rows + 1,) log(count + pseudo-count) */
    /* normal */
    const float *cells;              /* (n_rows, n_features) the caller's */
    double mu0, kappa0, nu0, sigma2_0;
    double *mean, *m2;               /* (n_slots, MAX_FEATURES) */
    float *student;                  /* (n_features, 4, n_slots): mean, 1/(nu scale^2),
                                        exponent, constant */
    float *gamma_table;              /* (n_rows + 1,) the part of the constant that n alone gives */
    /* rows: kappa0, nu0, scale0 I (sigma2_0); known: V I (sigma2_0), sums in mean */
    double *factor;                  /* (n_slots, n_features, MAX_FEATURES) W, lower */
    float *weight;                   /* (n_features (n_features + 1) / 2, n_slots) W; multinomial:
                                        (n_features, n_slots), its counts (n_slots, n_features) */
    float *location;                 /* (n_features, n_slots) */
    float *shape;                    /* (3, n_slots): constant, exponent or precision, rate */
    /* multinomial */
    const uint32_t *pairs;           /* (n_entries, 2) column and count, the caller's */
    const int64_t *start;            /* (n_rows + 1,) first entry of each row, the caller's */
    int64_t *row_total;              /* (n_rows,) */
    double pseudo_count;
    double total[MAX_SLOTS];         /* sum of the weights */
    double log_gamma[MAX_SLOTS];     /* of the total, less log(2 pi) / 2 */
    /* atoms: the pseudo-count of both outcomes is pseudo_count */
    int32_t *elsewhere;              /* (n_slots, MAX_FEATURES) cells that are no atoms */
    float *log_atom;                 /* (n_features, n_slots) */
    /* negative binomial: sums of the counts in mean */
    const uint32_t *whole;           /* (n_rows, n_features) the caller's */
    double size, a, b;
    double *beta_table;              /* (n_rows + 1,) log Gamma(A + r) / Gamma(A) */
    float *beta;                     /* (n_features, 5, n_slots): B, E, log c, log B - log E, and the
                                        rests of Stirling's formula at E less at B */
    /* rows, t: sums of the rows' weights, 1 of rows, in total. t: 1/kappa in shape */
    float *row_weight;               /* (n_rows,) */
    double half;                     /* h */
    double step;                     /* of sums over log w */
    double stirling_rest;            /* log Gamma(alpha) - (alpha - 1/2) log alpha + alpha */
    double node[MAX_NODES], mass[MAX_NODES];
    float distance[MAX_SLOTS] __attribute__((aligned(64)));
    float laplace[MAX_SLOTS] __attribute__((aligned(64)));
} State;

/* ---- arithmetic ---------------------------------------------------------------------- */

INLINE uint64_t next_uint64(uint64_t s[4]) /* xoshiro256+ (Blackman and Vigna, 2018) */
{
    uint64_t result = s[0] + s[3], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* (log(1 + m) - m) / m^2 for m in [sqrt(1/2) - 1, sqrt(2) - 1], even and odd powers apart; a fit
 * that leaves a relative error of 1.8e-7 in the logarithm. */
#define LOG1P_SERIES(m, square)                                                                \
    ((-0.5000032f +                                                                            \
      (square) * (-0.24971229f + (square) * (-0.17243224f + (square) * -0.100823835f))) +      \
     (m) * (0.33334714f + (square) * (0.19906883f + (square) * 0.16180502f)))
#define LOG_2 0.69314718f

INLINE vec log1p_vec(vec t) /* t >= 0 */
{
    vec y = 1.0f + t;
    ivec exponent = ((ivec)y - 0x3f3504f3) & (int32_t)0xff800000; /* k 2^23, y / 2^k near 1 */
    vec scale = (vec)(0x3f800000 - exponent);
    vec shift = scale - 1.0f;
#ifdef __SSE2__
    __asm__("" : "+x"(shift)); /* else fast-math may undo this and lose the digits of a small t */
#endif
    vec m = t * scale + shift;
    vec square = m * m;
    vec whole = __builtin_convertvector(exponent, vec) * (LOG_2 / 0x1p23f);
    return whole + m + square * LOG1P_SERIES(m, square);
}

INLINE vec log_vec(vec y) /* y > 0 and normal */
{
    const ivec exponent = ((ivec)y - 0x3f3504f3) & (int32_t)0xff800000;
    const vec m = (vec)((ivec)y - exponent) - 1.0f, square = m * m;
    const vec whole = __builtin_convertvector(exponent, vec) * (LOG_2 / 0x1p23f);
    return whole + m + square * LOG1P_SERIES(m, square);
}

INLINE float log_scalar(float y) /* y > 0 and normal; loops over it become vectors */
{
    int32_t bits, exponent;
    float m;
    memcpy(&bits, &y, 4);
    exponent = (bits - 0x3f3504f3) & (int32_t)0xff800000;
    bits -= exponent;
    memcpy(&m, &bits, 4);
    m -= 1.0f;
    return (float)exponent * (LOG_2 / 0x1p23f) + m + m * m * LOG1P_SERIES(m, m * m);
}

INLINE float exp_scalar(float x) /* x <= 0; below -86 about e^-86; loops over it become vectors */
{
    x *= 1.44269504f;
    x = x > -125.0f ? x : -125.0f;
    const int32_t whole = (int32_t)x;
    const float f = x - (float)whole; /* in (-1, 0] */
    float p = 0.99999994f + f * (0.69314224f + f * (0.24017219f + f * (0.055279724f +
              f * (0.009188612f + f * 0.00093878835f))));
    int32_t bits;
    memcpy(&bits, &p, 4);
    bits += whole * (1 << 23);
    memcpy(&p, &bits, 4);
    return p;
}

/* ---- the parts that both families share ---------------------------------------------- */

INLINE vec larger(vec a, vec b)
{
    const ivec keep = a > b;
    return (vec)(((ivec)a & keep) | ((ivec)b & ~keep));
}

/* a moved up by n lanes (a power of two), zeros below. */
INLINE vec shift_up(vec a, const int n)
{
    ivec from = {0};
    for (int j = 0; j < LANES; j++)
        from[j] = j >= n ? j - n : LANES + j;
    return __builtin_shuffle(a, (vec){0}, from);
}

INLINE vec rotate(vec a, const int n)
{
    ivec from = {0};
    for (int j = 0; j < LANES; j++)
        from[j] = (j + n) % LANES;
    return __builtin_shuffle(a, from);
}

/* Draws a slot with probability proportional to exp(scores) by inverting the CDF. */
INLINE int draw_slot(State *s, const int n_slots)
{
    const float *scores = s->scores;
    vec largest = ((const vec *)scores)[0];
#pragma GCC unroll 8
    for (int v = 1; v < n_slots / LANES; v++)
        largest = larger(largest, ((const vec *)scores)[v]);
#pragma GCC unroll 4
    for (int n = LANES / 2; n; n /= 2)
        largest = larger(largest, rotate(largest, n));
    const float max = largest[0];
    float weight[MAX_SLOTS] __attribute__((aligned(64)));
    for (int j = 0; j < n_slots; j++)
        weight[j] = exp_scalar(scores[j] - max);
    vec cdf[MAX_SLOTS / LANES];
    float total = 0;
#pragma GCC unroll 8
    for (int v = 0; v < n_slots / LANES; v++) {
        vec c = ((vec *)weight)[v];
#pragma GCC unroll 4
        for (int n = 1; n < LANES; n *= 2)
            c += shift_up(c, n);
        cdf[v] = c + total;
        total = cdf[v][LANES - 1];
    }
    /* u strictly between 0 and the total also after rounding: a slot of weight 0 is never drawn */
    const float uniform = ((float)(next_uint64(s->rng) >> 41) + 0.5f) * (0x1p-23f * 0.9999997f);
    const float u = uniform * total;
    ivec below = {0};
#pragma GCC unroll 8
    for (int v = 0; v < n_slots / LANES; v++)
        below -= cdf[v] <= u;
    int k = 0;
    for (int j = 0; j < LANES; j++)
        k += below[j];
    return k < n_slots ? k : n_slots - 1;
}

INLINE void slot_left(State *s, int k)
{
    int32_t n = --s->n[k];
    s->slot_score[k] = n ? s->slot_table[n] : MASKED;
}

/* Returns 0, or -1 if no slot is left to be the open one. */
INLINE int slot_joined(State *s, int k)
{
    int32_t n = ++s->n[k];
    s->slot_score[k] = s->slot_table[n];
    if (__builtin_expect(k != s->open, 1))
        return 0;
    for (int j = 0; j < s->n_slots; j++)
        if (s->n[j] == 0) {
            s->open = j;
            s->slot_score[j] = s->slot_table[0];
            return 0;
        }
    return -1;
}

/* ---- categorical --------------------------------------------------------------------- */

INLINE void categorical_update(State *s, const uint8_t *x, int k, int change, const int n_slots)
{
    const int n_features = s->n_features;
    const float *log_table = s->log_table;
    uint32_t *count = s->counts + (size_t)k * n_features * LEVELS;
    float *score = s->log_score + k;
    int f = 0;
#define CHANGE(i)                                                                              \
    do {                                                                                       \
        const size_t level = x[f + i];                                                         \
        const uint32_t c = count[i * LEVELS + level] += change;                                \
        score[(i * LEVELS + level) * n_slots] = log_table[c];                                  \
    } while (0)
    for (; f + 4 <= n_features; f += 4, count += 4 * LEVELS, score += 4 * LEVELS * n_slots) {
        CHANGE(0);
        CHANGE(1);
        CHANGE(2);
        CHANGE(3);
    }
    for (; f < n_features; f++, count += LEVELS, score += LEVELS * n_slots)
        CHANGE(0);
}

INLINE void categorical_score(State *s, const uint8_t *x, const int n_slots)
{
    enum { STREAMS = 4 }; /* sums over features f, f + 1, ... apart: one sum waits for itself */
    const int n_vecs = n_slots / LANES, n_features = s->n_features, stride = LEVELS * n_slots;
    vec sum[STREAMS][MAX_SLOTS / LANES];
    for (int i = 0; i < STREAMS; i++)
        for (int v = 0; v < n_vecs; v++)
            sum[i][v] = i ? (vec){0} : ((vec *)s->slot_score)[v];
    const float *score = s->log_score;
    int f = 0;
    for (; f + STREAMS <= n_features; f += STREAMS, score += STREAMS * stride)
        for (int i = 0; i < STREAMS; i++) {
            const vec *cell = (const vec *)(score + i * stride + (size_t)x[f + i] * n_slots);
            for (int v = 0; v < n_vecs; v++)
                sum[i][v] += cell[v];
        }
    for (; f < n_features; f++, score += stride)
        for (int v = 0; v < n_vecs; v++)
            sum[0][v] += ((const vec *)(score + (size_t)x[f] * n_slots))[v];
    for (int v = 0; v < n_vecs; v++)
        ((vec *)s->scores)[v] = (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
}

/* ---- normal -------------------------------------------------------------------------- */

/* Welford's update of slot k by a row (change +1 or -1; n rows afterwards), then its cache. */
INLINE void normal_update(State *s, const float *restrict x, int k, int n, double change,
                          const int n_slots)
{
    const int n_features = s->n_features;
    double *restrict mean = s->mean + (size_t)k * MAX_FEATURES;
    double *restrict m2 = s->m2 + (size_t)k * MAX_FEATURES;
    const double per_n = n ? change / n : 0, per_square = n ? change * (1 - per_n) : 0;
    const double per_kappa = 1 / (s->kappa0 + n), inverse = 1 + per_kappa;
    const double weight = n * per_kappa, shrink = s->kappa0 * weight;
    const double mu0 = s->mu0, prior = s->nu0 * s->sigma2_0;
    const float exponent = 0.5 * (s->nu0 + n + 1), constant = s->gamma_table[n];
    float centre[MAX_FEATURES], precision[MAX_FEATURES], height[MAX_FEATURES];
    if (!n) {
        memset(mean, 0, n_features * sizeof(double));
        memset(m2, 0, n_features * sizeof(double));
    }
    for (int f = 0; f < n_features; f++) {
        const double delta = x[f] - mean[f];
        mean[f] += delta * per_n;
        m2[f] += delta * delta * per_square;
        const double offset = mean[f] - mu0;
        const float p = 1.0f / (float)((prior + m2[f] + shrink * offset * offset) * inverse);
        centre[f] = mu0 + weight * offset;
        precision[f] = p;
        height[f] = constant + 0.5f * log_scalar(p);
    }
    float *cache = s->student + k;
#pragma GCC unroll 4
    for (int f = 0; f < n_features; f++, cache += 4 * n_slots) {
        cache[0] = centre[f];
        cache[n_slots] = precision[f];
        cache[2 * n_slots] = exponent;
        cache[3 * n_slots] = height[f];
    }
}

/* Scores the slots of a whole number of vectors, the sums in registers. */
INLINE void normal_score_part(State *s, const float *x, const int slot, const int n_vecs,
                              const int n_slots)
{
    vec sum[MAX_SLOTS / LANES];
#pragma GCC unroll 4
    for (int v = 0; v < n_vecs; v++)
        sum[v] = ((vec *)(s->slot_score + slot))[v];
    const float *cache = s->student + slot;
    for (int f = 0; f < s->n_features; f++, cache += 4 * n_slots) {
        const vec *mean = (const vec *)cache;
        const vec *precision = (const vec *)(cache + n_slots);
        const vec *exponent = (const vec *)(cache + 2 * n_slots);
        const vec *constant = (const vec *)(cache + 3 * n_slots);
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++) {
            vec d = x[f] - mean[v];
            sum[v] += constant[v] - exponent[v] * log1p_vec(d * d * precision[v]);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < n_vecs; v++)
        ((vec *)(s->scores + slot))[v] = sum[v];
}

INLINE void normal_score(State *s, const float *x, const int n_slots)
{
    for (int slot = 0; slot < n_slots; slot += BLOCK)
        normal_score_part(s, x, slot, BLOCK / LANES, n_slots);
}

/* ---- rows ---------------------------------------------------------------------------- */

/* W of slot k by rank one for a row of weight |change| that enters or leaves (n rows afterwards),
 * then its cache. */
INLINE void rows_update(State *s, const float *restrict x, int k, int n, double change,
                        const int n_slots)
{
    const int d = s->n_features;
    double *restrict mean = s->mean + (size_t)k * MAX_FEATURES;
    double *restrict factor = s->factor + (size_t)k * d * MAX_FEATURES;
    const double had = s->total[k], total = n ? had + change : 0;
    const double kappa = s->kappa0 + total, before = s->kappa0 + had;
    double v[MAX_FEATURES] __attribute__((aligned(64)));
    double sum[MAX_FEATURES] __attribute__((aligned(64)));
    float log_det = 0;
    s->total[k] = total;
    if (n && change) {
        const double sign = change > 0 ? 1 : -1, shrink = had / before;
        const double scale = sqrt(sign * change * before / kappa);
        double s0 = 1;
        for (int j = 0; j < d; j++) {
            v[j] = scale * (x[j] - shrink * mean[j]);
            mean[j] += (x[j] - mean[j]) * (change / total);
            sum[j] = 0;
        }
        for (int i = 0; i < d; i++) {
            double *restrict w = factor + (size_t)i * MAX_FEATURES, p = 0;
            for (int j = 0; j <= i; j++)
                p += w[j] * v[j];
            const double s1 = s0 + sign * p * p;
            const double own = sqrt(s0 / s1), other = sign * p / sqrt(s0 * s1);
            for (int j = 0; j <= i; j++) {
                const double old = w[j];
                w[j] = own * old - other * sum[j];
                sum[j] += p * old;
            }
            s0 = s1;
        }
    } else {
        memset(mean, 0, d * sizeof(double));
        memset(factor, 0, (size_t)d * MAX_FEATURES * sizeof(double));
        for (int i = 0; i < d; i++)
            factor[(size_t)i * (MAX_FEATURES + 1)] = 1 / sqrt(s->sigma2_0);
    }
    float *weight = s->weight + k, *location = s->location + k, *shape = s->shape + k;
    const double share = total / kappa;
    float diagonal[MAX_FEATURES];
    for (int i = 0; i < d; i++) {
        const double *w = factor + (size_t)i * MAX_FEATURES;
        for (int j = 0; j <= i; j++, weight += n_slots)
            *weight = w[j];
        diagonal[i] = w[i];
        location[i * n_slots] = share * mean[i];
    }
    for (int i = 0; i < d; i++)
        log_det += log_scalar(diagonal[i]);
    shape[0] = s->gamma_table[n] + log_det;
    shape[n_slots] = 0.5 * (s->nu0 + n + 1);
    shape[2 * n_slots] = s->family == HEAVY ? 1 / kappa : kappa / (kappa + 1);
}

INLINE void rows_score(State *s, const float *x, const int n_slots)
{
    const int d = s->n_features;
    for (int slot = 0; slot < n_slots; slot += BLOCK) {
        enum { VECS = BLOCK / LANES };
        vec e[MAX_FEATURES][VECS], q[VECS];
        for (int v = 0; v < VECS; v++)
            q[v] = (vec){0};
        for (int j = 0; j < d; j++)
            for (int v = 0; v < VECS; v++)
                e[j][v] = x[j] - ((vec *)(s->location + j * n_slots + slot))[v];
        const float *weight = s->weight + slot;
        for (int i = 0; i < d; i++) {
            vec y[VECS];
            for (int v = 0; v < VECS; v++)
                y[v] = (vec){0};
            for (int j = 0; j <= i; j++, weight += n_slots)
                for (int v = 0; v < VECS; v++)
                    y[v] += ((const vec *)weight)[v] * e[j][v];
            for (int v = 0; v < VECS; v++)
                q[v] += y[v] * y[v];
        }
        const float *shape = s->shape + slot;
        for (int v = 0; v < VECS; v++) {
            vec t = q[v] * ((const vec *)(shape + 2 * n_slots))[v];
            ((vec *)(s->scores + slot))[v] =
                ((vec *)(s->slot_score + slot))[v] + ((const vec *)shape)[v] -
                ((const vec *)(shape + n_slots))[v] * log1p_vec(t);
        }
    }
}

/* ---- known --------------------------------------------------------------------------- */

INLINE void known_update(State *s, const float *restrict x, int k, int n, double change,
                         const int n_slots)
{
    const int d = s->n_features;
    double *restrict sum = s->mean + (size_t)k * MAX_FEATURES;
    float *restrict location = s->location + k, *shape = s->shape + k;
    const double share = s->sigma2_0 / (1 + n * s->sigma2_0);
    if (!n)
        memset(sum, 0, d * sizeof(double));
    else
        for (int f = 0; f < d; f++)
            sum[f] += change * x[f];
#pragma GCC unroll 4
    for (int f = 0; f < d; f++)
        location[f * n_slots] = share * sum[f];
    shape[0] = s->gamma_table[n];
    shape[n_slots] = 0.5 / (1 + share);
}

INLINE void known_score(State *s, const float *x, const int n_slots)
{
    const int n_vecs = n_slots / LANES;
    vec q[MAX_SLOTS / LANES];
    for (int v = 0; v < n_vecs; v++)
        q[v] = (vec){0};
    const float *location = s->location;
    for (int f = 0; f < s->n_features; f++, location += n_slots)
        for (int v = 0; v < n_vecs; v++) {
            vec e = x[f] - ((const vec *)location)[v];
            q[v] += e * e;
        }
    for (int v = 0; v < n_vecs; v++)
        ((vec *)s->scores)[v] = ((vec *)s->slot_score)[v] + ((const vec *)s->shape)[v] -
                                ((const vec *)(s->shape + n_slots))[v] * q[v];
}

/* ---- multinomial --------------------------------------------------------------------- */

INLINE double stirling(double z) /* log Gamma(z) - log(2 pi) / 2, z not small */
{
    return (z - 0.5) * log(z) - z + 1 / (12 * z);
}

INLINE void multinomial_update(State *s, int64_t row, int k, int change, const int n_slots)
{
    const uint32_t *pair = s->pairs + 2 * s->start[row], *end = s->pairs + 2 * s->start[row + 1];
    uint32_t *count = s->counts + (size_t)k * s->n_features;
    const float a = s->pseudo_count;
    for (; pair < end; pair += 2) {
        const uint32_t n = count[pair[0]] += change * (int32_t)pair[1];
        s->weight[(size_t)pair[0] * n_slots + k] = n + a;
    }
    s->total[k] += change * s->row_total[row];
    s->log_gamma[k] = stirling(s->total[k]);
}

INLINE void multinomial_score(State *s, int64_t row, const int n_slots)
{
    const int n_vecs = n_slots / LANES;
    const uint32_t *pair = s->pairs + 2 * s->start[row], *end = s->pairs + 2 * s->start[row + 1];
    vec product[MAX_SLOTS / LANES];
    ivec exponent[MAX_SLOTS / LANES];
    for (int v = 0; v < n_vecs; v++) {
        product[v] = (vec){0} + 1.0f;
        exponent[v] = (ivec){0};
    }
    int held = 0;
    for (; pair < end; pair += 2) {
        const vec *weight = (const vec *)(s->weight + (size_t)pair[0] * n_slots);
        for (uint32_t i = 0; i < pair[1]; i++) {
            for (int v = 0; v < n_vecs; v++)
                product[v] *= weight[v] + (float)i;
            if (++held < 4) /* factors below 2^31 */
                continue;
            held = 0;
            for (int v = 0; v < n_vecs; v++) {
                const ivec bits = (ivec)product[v];
                exponent[v] += (bits >> 23) - 127;
                product[v] = (vec)((bits & 0x7fffff) | 0x3f800000);
            }
        }
    }
    const double x = s->row_total[row];
    float logs[MAX_SLOTS] __attribute__((aligned(64)));
    for (int v = 0; v < n_vecs; v++) {
        const ivec bits = (ivec)product[v];
        exponent[v] += (bits >> 23) - 127;
        ((vec *)logs)[v] = (vec)((bits & 0x7fffff) | 0x3f800000);
    }
    const int32_t *whole = (const int32_t *)exponent;
    for (int j = 0; j < n_slots; j++)
        logs[j] = log_scalar(logs[j]);
    for (int j = 0; j < n_slots; j++)
        s->scores[j] = s->slot_score[j] + (whole[j] * 0.6931471805599453 + logs[j] -
                                           (stirling(s->total[j] + x) - s->log_gamma[j]));
}

/* ---- atoms --------------------------------------------------------------------------- */

INLINE void atoms_update(State *s, const float *restrict x, int k, int change, const int n_slots)
{
    const int n_features = s->n_features;
    double *restrict mean = s->mean + (size_t)k * MAX_FEATURES;
    double *restrict m2 = s->m2 + (size_t)k * MAX_FEATURES;
    int32_t *restrict number = s->elsewhere + (size_t)k * MAX_FEATURES;
    const double mu0 = s->mu0, prior = s->nu0 * s->sigma2_0;
    const int n_all = s->n[k];
    int at[MAX_FEATURES], n_at = 0;
    float centre[MAX_FEATURES], precision[MAX_FEATURES], exponent[MAX_FEATURES];
    float height[MAX_FEATURES];
    for (int f = 0; f < n_features; f++) {
        at[n_at] = f;
        n_at += x[f] != 0;
        if (x[f] == 0)
            s->log_atom[f * n_slots + k] = s->log_table[n_all - number[f]];
    }
    for (int i = 0; i < n_at; i++) {
        const int f = at[i], n = number[f] + change;
        const double per_n = n ? (double)change / n : 0;
        const double per_square = n ? change * (1 - per_n) : 0;
        const double per_kappa = 1 / (s->kappa0 + n), weight = n * per_kappa;
        const double delta = x[f] - mean[f];
        const double m = n ? mean[f] + delta * per_n : 0;
        const double square = n ? m2[f] + delta * delta * per_square : 0;
        const double offset = m - mu0;
        const float p = 1.0f / (float)((prior + square + s->kappa0 * weight * offset * offset) *
                                       (1 + per_kappa));
        number[f] = n;
        mean[f] = m;
        m2[f] = square;
        centre[i] = mu0 + weight * offset;
        precision[i] = p;
        exponent[i] = 0.5 * (s->nu0 + n + 1);
        height[i] = s->gamma_table[n] + s->log_table[n] + 0.5f * log_scalar(p);
    }
    for (int i = 0; i < n_at; i++) {
        float *cache = s->student + (size_t)at[i] * 4 * n_slots + k;
        cache[0] = centre[i];
        cache[n_slots] = precision[i];
        cache[2 * n_slots] = exponent[i];
        cache[3 * n_slots] = height[i];
    }
}

INLINE void atoms_score(State *s, const float *x, const int n_slots)
{
    const int n_vecs = n_slots / LANES;
    vec sum[MAX_SLOTS / LANES];
    for (int v = 0; v < n_vecs; v++)
        sum[v] = ((vec *)s->slot_score)[v];
    for (int f = 0; f < s->n_features; f++) {
        const vec *atom = (const vec *)(s->log_atom + f * n_slots);
        const vec *mean = (const vec *)(s->student + (size_t)f * 4 * n_slots);
        const vec *precision = mean + n_vecs, *exponent = precision + n_vecs;
        const vec *constant = exponent + n_vecs;
        if (x[f] == 0) {
            for (int v = 0; v < n_vecs; v++)
                sum[v] += atom[v];
            continue;
        }
        for (int v = 0; v < n_vecs; v++) {
            vec d = x[f] - mean[v];
            sum[v] += constant[v] - exponent[v] * log1p_vec(d * d * precision[v]);
        }
    }
    for (int v = 0; v < n_vecs; v++)
        ((vec *)s->scores)[v] = sum[v];
}

/* ---- negative binomial --------------------------------------------------------------- */

INLINE double rest(double z) /* log Gamma(z) less Stirling's formula, z >= 1 */
{
    const double i = 1 / z, square = i * i;
    if (z < 8)
        return lgamma(z) - (z - 0.5) * log(z) + z - 0.9189385332046727;
    return i * (1.0 / 12 - square * (1.0 / 360 - square / 1260));
}

INLINE void negative_update(State *s, const uint32_t *restrict x, int k, int n, int change,
                            const int n_slots)
{
    double *restrict sum = s->mean + (size_t)k * MAX_FEATURES;
    const double r = s->size, posterior_a = s->a + n * r, own = s->beta_table[n];
    for (int f = 0; f < s->n_features; f++) {
        sum[f] += change * (double)x[f];
        const double b = s->b + sum[f], d = posterior_a + b, e = d + r;
        const double rest_d = rest(d), rest_e = rest(e), log_e = log(e);
        float *beta = s->beta + (size_t)f * 5 * n_slots + k;
        beta[0] = b;
        beta[n_slots] = e;
        /* log Gamma(d) - log Gamma(e), as e = d + r */
        beta[2 * n_slots] = own + (d - 0.5) * log(d / e) - r * log_e + r + rest_d - rest_e;
        beta[3 * n_slots] = log(b / e);
        beta[4 * n_slots] = rest_e - rest(b);
    }
}

INLINE vec rest_vec(vec z) /* z > 12 */
{
    const vec i = 1.0f / z;
    return i * (1.0f / 12 - i * i * (1.0f / 360));
}

INLINE void negative_score(State *s, const uint32_t *x, const int n_slots)
{
    enum { SMALL = 12 };
    const int n_vecs = n_slots / LANES;
    vec sum[MAX_SLOTS / LANES];
    for (int v = 0; v < n_vecs; v++)
        sum[v] = ((vec *)s->slot_score)[v];
    for (int f = 0; f < s->n_features; f++) {
        const vec *b = (const vec *)(s->beta + (size_t)f * 5 * n_slots), *e = b + n_vecs;
        const vec *constant = e + n_vecs, *log_ratio = constant + n_vecs;
        const vec *rests = log_ratio + n_vecs;
        const float c = x[f];
        if (x[f] == 0) {
            for (int v = 0; v < n_vecs; v++)
                sum[v] += constant[v];
        } else if (x[f] <= SMALL) {
            for (int v = 0; v < n_vecs; v++) {
                vec above = b[v], below = e[v];
                for (uint32_t i = 1; i < x[f]; i++) {
                    above *= b[v] + (float)i;
                    below *= e[v] + (float)i;
                    if (i % 4 == 3) { /* factors below 2^31 */
                        above /= below;
                        below = (vec){0} + 1.0f;
                    }
                }
                sum[v] += constant[v] + log_vec(above / below);
            }
        } else
            for (int v = 0; v < n_vecs; v++)
                sum[v] += constant[v] + c * log_ratio[v] + rests[v] +
                          (b[v] + (c - 0.5f)) * log1p_vec(c / b[v]) -
                          (e[v] + (c - 0.5f)) * log1p_vec(c / e[v]) + rest_vec(b[v] + c) -
                          rest_vec(e[v] + c);
    }
    for (int v = 0; v < n_vecs; v++)
        ((vec *)s->scores)[v] = sum[v];
}

/* ---- t ------------------------------------------------------------------------------- */

INLINE vec sqrt_vec(vec x)
{
    float y[LANES] __attribute__((aligned(64)));
    *(vec *)y = x;
    for (int j = 0; j < LANES; j++)
        y[j] = sqrtf(y[j]);
    return *(vec *)y;
}

INLINE vec choose(ivec where, vec a, vec b)
{
    return (vec)(((ivec)a & where) | ((ivec)b & ~where));
}

/* Laplace's approximation, in s = log w, to the log integral of exp g,
 * g = alpha s - h w + (a - d/2) log(1 + w/kappa) - a log(1 + w/kappa + w q). The mode is that for
 * an infinite kappa and two of Newton's steps. */
INLINE vec laplace_vec(const State *s, const vec a, const vec inverse, const vec q)
{
    const float h = s->half, half_d = 0.5f * s->n_features, alpha = h + half_d;
    const vec b = h + (a - alpha) * q, root = sqrt_vec(b * b + 4 * h * alpha * q);
    vec w = choose(b > 0, 2 * alpha / (b + root),
                   (root - b) / (2 * h * larger(q, (vec){0} + 1e-30f)));
    vec bend;
    for (int step = 0;; step++) {
        const vec u = w * inverse, p = u / (1.0f + u), c = (inverse + q) * w, v = c / (1.0f + c);
        bend = h * w + (half_d - a) * p * (1.0f - p) + a * v * (1.0f - v);
        bend = larger(bend, (vec){0} + 0.05f);
        if (step == 2)
            break;
        vec change = (alpha - h * w - half_d * p - a * (v - p)) / bend;
        change = larger(change, (vec){0} - 1.5f);
        change = -larger(-change, (vec){0} - 1.5f);
        w *= (2.0f + change) / (2.0f - change);
    }
    const vec share = 1.0f + w * inverse;
    return (float)s->stirling_rest + alpha * log_vec(w) - h * w - half_d * log_vec(share) -
           a * log1p_vec(w * q / share) - 0.5f * log_vec(bend);
}

INLINE void heavy_score(State *s, const float *x, const int n_slots)
{
    const int d = s->n_features;
    for (int slot = 0; slot < n_slots; slot += BLOCK) {
        enum { VECS = BLOCK / LANES };
        vec e[MAX_FEATURES][VECS], q[VECS];
        for (int v = 0; v < VECS; v++)
            q[v] = (vec){0};
        for (int j = 0; j < d; j++)
            for (int v = 0; v < VECS; v++)
                e[j][v] = x[j] - ((vec *)(s->location + j * n_slots + slot))[v];
        const float *weight = s->weight + slot;
        for (int i = 0; i < d; i++) {
            vec y[VECS];
            for (int v = 0; v < VECS; v++)
                y[v] = (vec){0};
            for (int j = 0; j <= i; j++, weight += n_slots)
                for (int v = 0; v < VECS; v++)
                    y[v] += ((const vec *)weight)[v] * e[j][v];
            for (int v = 0; v < VECS; v++)
                q[v] += y[v] * y[v];
        }
        const vec *constant = (const vec *)(s->shape + slot);
        const vec *a = (const vec *)(s->shape + n_slots + slot);
        const vec *inverse = (const vec *)(s->shape + 2 * n_slots + slot);
        for (int v = 0; v < VECS; v++) {
            const vec integral = laplace_vec(s, a[v], inverse[v], q[v]);
            ((vec *)(s->distance + slot))[v] = q[v];
            ((vec *)(s->laplace + slot))[v] = integral;
            ((vec *)(s->scores + slot))[v] =
                ((vec *)(s->slot_score + slot))[v] + constant[v] + integral;
        }
    }
}

INLINE double uniform(State *s)
{
    return ((double)(next_uint64(s->rng) >> 12) + 0.5) * 0x1p-52;
}

/* The log integral in slot k as a sum, the first node `offset` steps from the lower end; the nodes
 * and their masses stay, their number is returned. */
static int heavy_integral(State *s, int k, double offset, const int n_slots, double *log_integral)
{
    const double h = s->half, half_d = 0.5 * s->n_features, alpha = h + half_d, tail = 15;
    const double a = s->shape[n_slots + k], inverse = s->shape[2 * n_slots + k];
    const double q = s->distance[k];
    const double low = log(alpha / (h + half_d * inverse + a * q)) - 1 - tail / alpha;
    const double high = log((alpha + tail + sqrt(2 * alpha * tail)) / h);
    double step = s->step, largest = -1e300, total = 0;
    if (high - low > step * (MAX_NODES - 2))
        step = (high - low) / (MAX_NODES - 2);
    const int n = (int)((high - low) / step) + 2;
    const double first = low + (offset - 1) * step, ratio = exp(step);
    float g[MAX_NODES];
    s->node[0] = exp(first);
    for (int j = 1; j < n; j++)
        s->node[j] = s->node[j - 1] * ratio;
    for (int j = 0; j < n; j++) {
        const double w = s->node[j], share = 1 + w * inverse;
        s->mass[j] = alpha * (first + j * step) - h * w + (a - half_d) * log(share) -
                     a * log(share + w * q);
    }
    for (int j = 0; j < n; j++)
        largest = s->mass[j] > largest ? s->mass[j] : largest;
    for (int j = 0; j < n; j++)
        g[j] = s->mass[j] - largest;
    for (int j = 0; j < n; j++)
        total += s->mass[j] = exp_scalar(g[j]);
    *log_integral = largest + log(step * total);
    return n;
}

INLINE float heavy_weight(State *s, int k, const int n_slots)
{
    double log_integral, left = 0;
    const int n = heavy_integral(s, k, uniform(s), n_slots, &log_integral);
    int j = 0;
    for (int i = 0; i < n; i++)
        left += s->mass[i];
    left *= uniform(s);
    while (j < n - 1 && left >= s->mass[j])
        left -= s->mass[j++];
    return s->node[j];
}

/* A row that left slot k, and would go to slot `to`: where it goes, its weight drawn anew. */
INLINE int heavy_move(State *s, int64_t row, int k, int to, const int n_slots)
{
    if (to != k && s->n[k]) {
        double there, here;
        heavy_integral(s, to, 0.5, n_slots, &there);
        heavy_integral(s, k, 0.5, n_slots, &here);
        if (log(uniform(s)) >= (there - s->laplace[to]) - (here - s->laplace[k]))
            to = k;
    }
    if (to != k || uniform(s) < 0.125)
        s->row_weight[row] = heavy_weight(s, to, n_slots);
    return to;
}

/* ---- the step ------------------------------------------------------------------------ */

INLINE void update(State *s, int64_t row, int k, int change, const int family, const int n_slots)
{
    const float *cells = s->cells + row * s->n_features;
    if (family == CATEGORICAL)
        categorical_update(s, s->codes + row * s->n_features, k, change, n_slots);
    else if (family == NORMAL)
        normal_update(s, cells, k, s->n[k], change, n_slots);
    else if (family == ROWS)
        rows_update(s, cells, k, s->n[k], change, n_slots);
    else if (family == MULTINOMIAL)
        multinomial_update(s, row, k, change, n_slots);
    else if (family == ATOMS)
        atoms_update(s, cells, k, change, n_slots);
    else if (family == HEAVY)
        rows_update(s, cells, k, s->n[k], change * (double)s->row_weight[row], n_slots);
    else if (family == NEGATIVE)
        negative_update(s, s->whole + row * s->n_features, k, s->n[k], change, n_slots);
    else
        known_update(s, cells, k, s->n[k], change, n_slots);
}

INLINE void score(State *s, int64_t row, const int family, const int n_slots)
{
    const float *cells = s->cells + row * s->n_features;
    if (family == CATEGORICAL)
        categorical_score(s, s->codes + row * s->n_features, n_slots);
    else if (family == NORMAL)
        normal_score(s, cells, n_slots);
    else if (family == ROWS)
        rows_score(s, cells, n_slots);
    else if (family == MULTINOMIAL)
        multinomial_score(s, row, n_slots);
    else if (family == ATOMS)
        atoms_score(s, cells, n_slots);
    else if (family == HEAVY)
        heavy_score(s, cells, n_slots);
    else if (family == NEGATIVE)
        negative_score(s, s->whole + row * s->n_features, n_slots);
    else
        known_score(s, cells, n_slots);
}

INLINE void prefetch(const State *s, int64_t row, const int family)
{
    const int coded = family == CATEGORICAL;
    size_t size = (size_t)s->n_features * (coded ? 1 : sizeof(float));
    const char *start = (coded               ? (const char *)s->codes
                         : family == NEGATIVE ? (const char *)s->whole
                                              : (const char *)s->cells) + row * size;
    if (family == MULTINOMIAL) {
        start = (const char *)(s->pairs + 2 * s->start[row]);
        size = 8 * (s->start[row + 1] - s->start[row]);
    }
    for (size_t i = 0; i < size; i += 64)
        __builtin_prefetch(start + i);
    __builtin_prefetch(start + size - 1);
    __builtin_prefetch(s->labels + row, 1);
}

INLINE int loop(State *s, const int32_t *order, int64_t n_steps, const int family,
                const int n_slots)
{
    for (int64_t i = 0; i < n_steps; i++) {
        const int64_t row = order[i];
        const int had = s->labels[row];
        int k = had;
        if (i + AHEAD < n_steps)
            prefetch(s, order[i + AHEAD], family);
        slot_left(s, k);
        update(s, row, k, -1, family, n_slots);
        score(s, row, family, n_slots);
        k = draw_slot(s, n_slots);
        if (family == HEAVY)
            k = heavy_move(s, row, had, k, n_slots);
        if (slot_joined(s, k))
            return -1;
        update(s, row, k, 1, family, n_slots);
        s->labels[row] = k;
    }
    return 0;
}

/* One compiled loop for each family and number of blocks. */
#define OF_SIZE(CALL, family)                                                                  \
    return s->n_slots == BLOCK       ? CALL(family, BLOCK)                                     \
           : s->n_slots == 2 * BLOCK ? CALL(family, 2 * BLOCK)                                 \
                                     : CALL(family, 3 * BLOCK);
#define DISPATCH(CALL)                                                                         \
    switch (s->family) {                                                                       \
    case CATEGORICAL: OF_SIZE(CALL, CATEGORICAL)                                               \
    case NORMAL: OF_SIZE(CALL, NORMAL)                                                         \
    case ROWS: OF_SIZE(CALL, ROWS)                                                             \
    case MULTINOMIAL: OF_SIZE(CALL, MULTINOMIAL)                                               \
    case ATOMS: OF_SIZE(CALL, ATOMS)                                                           \
    case HEAVY: OF_SIZE(CALL, HEAVY)                                                           \
    case NEGATIVE: OF_SIZE(CALL, NEGATIVE)                                                     \
    default: OF_SIZE(CALL, KNOWN)                                                              \
    }

/* Visits rows order[0], ..., order[n_steps - 1].  Returns -1 if the slots do not suffice. */
int bare_steps(State *s, const int32_t *order, int64_t n_steps)
{
#define LOOP(family, n_slots) loop(s, order, n_steps, family, n_slots)
    DISPATCH(LOOP)
}

INLINE int tally(State *s, int64_t row, int64_t n_draws, int64_t *out, const int family,
                 const int n_slots)
{
    const int k = s->labels[row];
    slot_left(s, k);
    update(s, row, k, -1, family, n_slots);
    for (int64_t i = 0; i < n_draws; i++) {
        score(s, row, family, n_slots);
        out[draw_slot(s, n_slots)]++;
    }
    const int joined = slot_joined(s, k);
    update(s, row, k, 1, family, n_slots);
    return joined;
}

/* For the check: how often each slot is drawn for a row, the row left where it was. */
int bare_tally(State *s, int64_t row, int64_t n_draws, int64_t *out)
{
#define TALLY(family, n_slots) tally(s, row, n_draws, out, family, n_slots)
    DISPATCH(TALLY)
}

/* ---- making and reading a state ------------------------------------------------------ */

static void *zeros(size_t n_bytes)
{
    void *out = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!out)
        abort();
    return memset(out, 0, n_bytes);
}

static State *new_state(int64_t n_rows, int n_features, int n_slots, int32_t *labels, uint64_t seed)
{
    if (n_slots % BLOCK || n_slots < BLOCK || n_slots > MAX_SLOTS)
        return NULL;
    State *s = zeros(sizeof(State));
    s->n_rows = n_rows;
    s->n_features = n_features;
    s->n_slots = n_slots;
    s->labels = labels;
    s->slot_table = zeros((n_rows + 1) * sizeof(float));
    for (int i = 0; i < 4; i++) { /* splitmix64 */
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        s->rng[i] = z ^ (z >> 31);
    }
    return s;
}

/* Inserts every row into its labelled slot and opens the first empty one. */
static State *fill(State *s)
{
    s->open = -1;
    for (int64_t row = 0; row < s->n_rows; row++) {
        const int k = s->labels[row];
        s->n[k]++;
        update(s, row, k, 1, s->family, s->n_slots);
    }
    for (int k = 0; k < s->n_slots; k++) {
        s->slot_score[k] = s->n[k] ? s->slot_table[s->n[k]] : MASKED;
        if (s->n[k] == 0 && s->open < 0) {
            s->open = k;
            s->slot_score[k] = s->slot_table[0];
        }
    }
    return s;
}

State *bare_categorical(int64_t n_rows, int n_features, int n_slots, const uint8_t *codes,
                        int32_t *labels, double pseudo_count, double concentration, uint64_t seed)
{
    State *s = new_state(n_rows, n_features, n_slots, labels, seed);
    if (!s || n_features > MAX_FEATURES)
        return NULL;
    s->codes = codes;
    s->counts = zeros((size_t)n_slots * n_features * LEVELS * sizeof(int32_t));
    s->log_score = zeros((size_t)n_slots * n_features * LEVELS * sizeof(float));
    s->log_table = zeros((n_rows + 1) * sizeof(float));
    for (int64_t n = 0; n <= n_rows; n++) {
        s->log_table[n] = log(n + pseudo_count);
        s->slot_table[n] = log(n ? n : concentration) - n_features * log(n + LEVELS * pseudo_count);
    }
    for (int i = 0; i < n_slots * n_features * LEVELS; i++)
        s->log_score[i] = s->log_table[0];
    return fill(s);
}

State *bare_normal(int64_t n_rows, int n_features, int n_slots, const float *cells, int32_t *labels,
                   const double hyper[4], double concentration, uint64_t seed)
{
    State *s = new_state(n_rows, n_features, n_slots, labels, seed);
    if (!s || n_features > MAX_FEATURES)
        return NULL;
    s->cells = cells;
    s->family = NORMAL;
    s->mu0 = hyper[0], s->kappa0 = hyper[1], s->nu0 = hyper[2], s->sigma2_0 = hyper[3];
    s->mean = zeros((size_t)n_slots * MAX_FEATURES * sizeof(double));
    s->m2 = zeros((size_t)n_slots * MAX_FEATURES * sizeof(double));
    s->student = zeros((size_t)n_features * 4 * n_slots * sizeof(float));
    s->gamma_table = zeros((n_rows + 1) * sizeof(float));
    for (int64_t n = 0; n <= n_rows; n++) {
        const double nu = s->nu0 + n;
        s->gamma_table[n] = lgamma(0.5 * (nu + 1)) - lgamma(0.5 * nu) - 0.5 * log(M_PI);
        s->slot_table[n] = log(n ? n : concentration);
    }
    for (int k = 0; k < n_slots; k++)
        normal_update(s, cells, k, 0, -1, n_slots); /* the prior's cache */
    return fill(s);
}

/* hyper: as of bare_normal, and the pseudo-count of the atom and of elsewhere. */
State *bare_atoms(int64_t n_rows, int n_features, int n_slots, const float *cells, int32_t *labels,
                  const double hyper[5], double concentration, uint64_t seed)
{
    State *s = new_state(n_rows, n_features, n_slots, labels, seed);
    if (!s || n_features > MAX_FEATURES)
        return NULL;
    const double a = hyper[4];
    s->cells = cells;
    s->family = ATOMS;
    s->mu0 = hyper[0], s->kappa0 = hyper[1], s->nu0 = hyper[2], s->sigma2_0 = hyper[3];
    s->mean = zeros((size_t)n_slots * MAX_FEATURES * sizeof(double));
    s->m2 = zeros((size_t)n_slots * MAX_FEATURES * sizeof(double));
    s->elsewhere = zeros((size_t)n_slots * MAX_FEATURES * sizeof(int32_t));
    s->student = zeros((size_t)n_features * 4 * n_slots * sizeof(float));
    s->log_atom = zeros((size_t)n_features * n_slots * sizeof(float));
    s->gamma_table = zeros((n_rows + 1) * sizeof(float));
    s->log_table = zeros((n_rows + 1) * sizeof(float));
    for (int64_t n = 0; n <= n_rows; n++) {
        const double nu = s->nu0 + n;
        s->gamma_table[n] = lgamma(0.5 * (nu + 1)) - lgamma(0.5 * nu) - 0.5 * log(M_PI);
        s->log_table[n] = log(n + a);
        s->slot_table[n] = log(n ? n : concentration) - n_features * log(n + 2 * a);
    }
    float atom[MAX_FEATURES] = {0}, one[MAX_FEATURES];
    for (int f = 0; f < n_features; f++)
        one[f] = 1;
    for (int k = 0; k < n_slots; k++) { /* the prior's cache: by a row that enters and leaves */
        atoms_update(s, one, k, 1, n_slots);
        atoms_update(s, one, k, -1, n_slots);
        atoms_update(s, atom, k, 0, n_slots);
    }
    return fill(s);
}

/* hyper: size, a, b. */
State *bare_negative(int64_t n_rows, int n_features, int n_slots, const uint32_t *whole,
                     int32_t *labels, const double hyper[3], double concentration, uint64_t seed)
{
    State *s = new_state(n_rows, n_features, n_slots, labels, seed);
    if (!s || n_features > MAX_FEATURES)
        return NULL;
    const uint32_t nothing[MAX_FEATURES] = {0};
    s->whole = whole;
    s->family = NEGATIVE;
    s->size = hyper[0], s->a = hyper[1], s->b = hyper[2];
    s->mean = zeros((size_t)n_slots * MAX_FEATURES * sizeof(double));
    s->beta = zeros((size_t)n_features * 5 * n_slots * sizeof(float));
    s->beta_table = zeros((n_rows + 1) * sizeof(double));
    for (int64_t n = 0; n <= n_rows; n++) {
        const double a = s->a + n * s->size;
        s->beta_table[n] = lgamma(a + s->size) - lgamma(a);
        s->slot_table[n] = log(n ? n : concentration);
    }
    for (int k = 0; k < n_slots; k++)
        negative_update(s, nothing, k, 0, 0, n_slots); /* the prior's cache */
    return fill(s);
}

/* hyper: kappa0, nu0, scale0 of the rows, and 0 or half the degrees of freedom of their weights; with
 * nu0 = 0 scale0 is the prior variance of known rows' means. */
State *bare_rows(int64_t n_rows, int n_features, int n_slots, const float *cells, int32_t *labels,
                 const double hyper[4], double concentration, uint64_t seed)
{
    State *s = new_state(n_rows, n_features, n_slots, labels, seed);
    if (!s || n_features > MAX_FEATURES)
        return NULL;
    const double d = n_features, alpha = hyper[3] + 0.5 * d;
    s->cells = cells;
    s->family = hyper[3] > 0 ? HEAVY : hyper[1] > 0 ? ROWS : KNOWN;
    s->half = hyper[3];
    s->kappa0 = hyper[0], s->nu0 = hyper[1], s->sigma2_0 = hyper[2];
    s->mean = zeros((size_t)n_slots * MAX_FEATURES * sizeof(double));
    s->factor = zeros((size_t)n_slots * n_features * MAX_FEATURES * sizeof(double));
    s->weight = zeros((size_t)n_features * (n_features + 1) / 2 * n_slots * sizeof(float));
    s->location = zeros((size_t)n_features * n_slots * sizeof(float));
    s->shape = zeros((size_t)3 * n_slots * sizeof(float));
    s->gamma_table = zeros((n_rows + 1) * sizeof(float));
    for (int64_t n = 0; n <= n_rows; n++) {
        const double nu = s->nu0 + n, kappa = s->kappa0 + n, v = s->sigma2_0;
        s->gamma_table[n] = s->family == ROWS
            ? lgamma(0.5 * (nu + 1)) - lgamma(0.5 * (nu + 1 - d)) +
                  0.5 * d * log(kappa / (kappa + 1) / M_PI)
            : s->family == HEAVY
            ? lgamma(0.5 * (nu + 1)) - lgamma(0.5 * (nu + 1 - d)) - 0.5 * d * log(M_PI) +
                  s->half * log(s->half) - lgamma(s->half)
            : 0.5 * d * log((1 + n * v) / (1 + (n + 1) * v) / (2 * M_PI));
        s->slot_table[n] = log(n ? n : concentration);
    }
    if (s->family == HEAVY) {
        s->row_weight = zeros(n_rows * sizeof(float));
        for (int64_t row = 0; row < n_rows; row++)
            s->row_weight[row] = 1;
        s->stirling_rest = lgamma(alpha) - (alpha - 0.5) * log(alpha) + alpha;
        double low = 1, high = 1e4; /* |Gamma(alpha + i t)| is e^-15 of Gamma(alpha) */
        for (int i = 0; i < 50; i++) {
            const double t = 0.5 * (low + high), square = alpha * alpha + t * t;
            const double size = 0.5 * (alpha - 0.5) * log(square) - t * atan2(t, alpha) - alpha +
                                0.92 - lgamma(alpha);
            if (size > -15)
                low = t;
            else
                high = t;
        }
        s->step = 2 * M_PI / high;
    }
    for (int k = 0; k < n_slots; k++)
        if (s->family == KNOWN)
            known_update(s, cells, k, 0, 0, n_slots);
        else
            rows_update(s, cells, k, 0, 0, n_slots); /* the prior's cache */
    return fill(s);
}

State *bare_multinomial(int64_t n_rows, int n_features, int n_slots, const uint32_t *pairs,
                        const int64_t *start, int32_t *labels, double pseudo_count,
                        double concentration, uint64_t seed)
{
    State *s = new_state(n_rows, n_features, n_slots, labels, seed);
    if (!s)
        return NULL;
    s->family = MULTINOMIAL;
    s->pairs = pairs, s->start = start, s->pseudo_count = pseudo_count;
    s->row_total = zeros(n_rows * sizeof(int64_t));
    for (int64_t row = 0; row < n_rows; row++)
        for (int64_t e = start[row]; e < start[row + 1]; e++)
            s->row_total[row] += pairs[2 * e + 1];
    s->counts = zeros((size_t)n_slots * n_features * sizeof(int32_t));
    s->weight = zeros((size_t)n_slots * n_features * sizeof(float));
    for (size_t i = 0; i < (size_t)n_slots * n_features; i++)
        s->weight[i] = pseudo_count;
    for (int64_t n = 0; n <= n_rows; n++)
        s->slot_table[n] = log(n ? n : concentration);
    for (int k = 0; k < n_slots; k++) {
        s->total[k] = n_features * pseudo_count;
        s->log_gamma[k] = stirling(s->total[k]);
    }
    return fill(s);
}

/* For the check; counts is NULL if normal, mean and m2 if categorical. */
int bare_open(const State *s) { return s->open; }
const uint32_t *bare_counts(const State *s) { return s->counts; }
const double *bare_mean(const State *s) { return s->mean; }
const double *bare_m2(const State *s) { return s->m2; }
const float *bare_cache(const State *s)
{
    return s->pairs ? s->weight : s->cells ? s->student : s->log_score;
}
/* Of every slot, the prior's weights included; of t with the sums in place of approximations. */
INLINE const float *exact_scores(State *s, int64_t row, const int family, const int n_slots)
{
    score(s, row, family, n_slots);
    for (int k = 0; family == HEAVY && k < n_slots; k++) {
        double log_integral;
        heavy_integral(s, k, 0.5, n_slots, &log_integral);
        s->scores[k] += log_integral - s->laplace[k];
    }
    return s->scores;
}

const float *bare_scores(State *s, int64_t row)
{
#define SCORE(family, n_slots) exact_scores(s, row, family, n_slots)
    DISPATCH(SCORE)
}

const float *bare_weights(const State *s) { return s->row_weight; } /* of the rows, of t */

void bare_free(State *s)
{
    free(s->slot_table);
    free(s->counts);
    free(s->log_score);
    free(s->log_table);
    free(s->mean);
    free(s->m2);
    free(s->student);
    free(s->gamma_table);
    free(s->factor);
    free(s->weight);
    free(s->row_total);
    free(s->location);
    free(s->shape);
    free(s->elsewhere);
    free(s->log_atom);
    free(s->beta_table);
    free(s->beta);
    free(s->row_weight);
    free(s);
}
