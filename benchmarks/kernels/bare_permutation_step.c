/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arithmetic of a beam over segments as bare C loops: the yardstick of permutation_step.py.
 *
 * Rows are visited in a given order. Which segments are kept after each row is given too (their
 * first rows, and for each a slot that stays its own): nothing is pruned, nothing is drawn. A step
 * computes the log predictive of the row in every kept segment, adds it to the segment's log
 * marginal, adds the row to the segment's statistics and takes log g(r) from the weights.
 *
 * known         Normal rows with covariance I and means N(0, V I). A segment's sums are contiguous
 *               and padded to 8 columns, so that few segments cost little; the sums in double
 *               (_double) or in float (_float), which a segment of a few hundred rows would bear.
 * multivariate  Normal-inverse-Wishart: the inverse Cholesky factor W of the posterior scale matrix,
 *               16 segments side by side, updated by rank one with the products that the
 *               predictive needs as well.
 *
 * What depends on a segment's length alone stands in tables. Built with -ffast-math.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 4 /* rows between a prefetch and its use */
#define LANES 16
#define MAX_KEPT 4096 /* segments after a row */

typedef struct {
    int64_t n_rows, n_features, n_slots;
    const float *cells;        /* (n_rows, n_features) */
    const int64_t *order;      /* (n_rows,) */
    const int64_t *start;      /* (n_rows + 1,) kept after row r: start[r] .. start[r + 1] */
    const int32_t *first, *slot;
    const double *log_size;    /* (n_rows + 1,) */
    double kappa0, nu0, scale; /* scale0 I, or the variance V of the means */
    double *log_g;             /* (n_rows + 1,), written */
} Problem;

static void *zeros(size_t n_bytes)
{
    void *out = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!out) abort();
    return memset(out, 0, n_bytes);
}

static inline void prefetch(const Problem *p, int64_t r)
{
    if (r + AHEAD >= p->n_rows) return;
    const char *cells = (const char *)(p->cells + p->order[r + AHEAD] * p->n_features);
    for (int64_t i = 0; i < 4 * p->n_features; i += 64) __builtin_prefetch(cells + i);
    __builtin_prefetch(cells + 4 * p->n_features - 1);
}

/* log g(r + 1) of the segments kept there. */
static inline void sum_up(const Problem *p, int64_t r, const double *log_lik)
{
    double best = -1e300, total = 0.0, weight[MAX_KEPT];
    const int64_t from = p->start[r], n = p->start[r + 1] - from;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = p->first[from + i];
        weight[i] = p->log_size[r + 1 - first] + log_lik[p->slot[from + i]] + p->log_g[first];
        best = best > weight[i] ? best : weight[i];
    }
    for (int64_t i = 0; i < n; i++) total += exp(weight[i] - best);
    p->log_g[r + 1] = best + log(total);
}

/* (share, half precision, constant) by length. */
static double (*known_table(const Problem *p))[3]
{
    double(*out)[3] = zeros((p->n_rows + 1) * sizeof *out);
    for (int64_t n = 0; n <= p->n_rows; n++) {
        const double v = p->scale, precision = (1 + n * v) / (1 + (n + 1) * v);
        out[n][0] = v / (1 + n * v);
        out[n][1] = 0.5 * precision;
        out[n][2] = 0.5 * p->n_features * log(precision / (2 * M_PI));
    }
    return out;
}

#define KNOWN(name, real)                                                                     \
    void name(const Problem *p)                                                               \
    {                                                                                         \
        const int64_t d = p->n_features, width = (d + 7) / 8 * 8;                             \
        double(*table)[3] = known_table(p);                                                   \
        double *log_lik = zeros(p->n_slots * sizeof *log_lik);                                \
        real *sums = zeros(p->n_slots * width * sizeof(real)), *x = zeros(width * sizeof(real)); \
        p->log_g[0] = 0.0;                                                                    \
        for (int64_t r = 0; r < p->n_rows; r++) {                                             \
            const float *cells = p->cells + p->order[r] * d;                                  \
            prefetch(p, r);                                                                   \
            for (int64_t f = 0; f < d; f++) x[f] = cells[f];                                  \
            for (int64_t i = p->start[r]; i < p->start[r + 1]; i++) {                         \
                const int64_t n = r - p->first[i], k = p->slot[i];                            \
                real *restrict sum = __builtin_assume_aligned(sums + k * width, 32);          \
                const real *restrict row = __builtin_assume_aligned(x, 32);                   \
                const real share = table[n][0];                                               \
                real q = 0;                                                                   \
                if (n == 0) {                                                                 \
                    for (int64_t f = 0; f < width; f++) {                                     \
                        q += row[f] * row[f];                                                 \
                        sum[f] = row[f];                                                      \
                    }                                                                         \
                    log_lik[k] = 0.0;                                                         \
                } else {                                                                      \
                    for (int64_t f = 0; f < width; f++) {                                     \
                        const real e = row[f] - share * sum[f];                               \
                        q += e * e;                                                           \
                        sum[f] += row[f];                                                     \
                    }                                                                         \
                }                                                                             \
                log_lik[k] += table[n][2] - table[n][1] * q;                                  \
            }                                                                                 \
            sum_up(p, r, log_lik);                                                            \
        }                                                                                     \
        free(table), free(log_lik), free(sums), free(x);                                      \
    }

KNOWN(known_double, double)
KNOWN(known_float, float)

/* The same with sums in tiles of 16 segments, for beams that keep many. */
void multivariate(const Problem *p)
{
    const int64_t d = p->n_features, n_tiles = (p->n_slots + LANES - 1) / LANES;
    const size_t lane = LANES * sizeof(double);
    double *mean = zeros(n_tiles * d * lane), *factor = zeros(n_tiles * d * d * lane);
    double *log_det = zeros(n_tiles * lane), *log_lik = zeros(n_tiles * lane);
    int64_t *size = zeros(n_tiles * LANES * sizeof *size);
    char *used = zeros(n_tiles);
    double *constant = zeros((p->n_rows + 1) * sizeof *constant);
    for (int64_t n = 0; n <= p->n_rows; n++) {
        const double nu = p->nu0 + n, kappa = p->kappa0 + n;
        constant[n] = lgamma(0.5 * (nu + 1)) - lgamma(0.5 * (nu + 1 - d)) +
                      0.5 * d * log(kappa / (kappa + 1) / M_PI);
    }
    p->log_g[0] = 0.0;
    for (int64_t r = 0; r < p->n_rows; r++) {
        const float *cells = p->cells + p->order[r] * d;
        prefetch(p, r);
        memset(used, 0, n_tiles);
        for (int64_t i = p->start[r]; i < p->start[r + 1]; i++) {
            const int64_t k = p->slot[i], t = k / LANES, l = k % LANES;
            used[t] = 1;
            size[k] = r - p->first[i];
            if (size[k] > 0) continue;
            log_lik[k] = 0.0;
            log_det[k] = -0.5 * d * log(p->scale);
            for (int64_t j = 0; j < d; j++) {
                mean[(t * d + j) * LANES + l] = 0.0;
                for (int64_t c = 0; c <= j; c++)
                    factor[((t * d + j) * d + c) * LANES + l] = c == j ? 1 / sqrt(p->scale) : 0.0;
            }
        }
        for (int64_t t = 0; t < n_tiles; t++) {
            if (!used[t]) continue;
            double e[64][LANES], sum[64][LANES], before[LANES], ratio[LANES], step[LANES];
            double kappa[LANES];
            for (int l = 0; l < LANES; l++) {
                kappa[l] = p->kappa0 + (double)size[t * LANES + l];
                ratio[l] = kappa[l] / (kappa[l] + 1.0);
                step[l] = 1.0 / (kappa[l] + 1.0);
                before[l] = 1.0;
            }
            for (int64_t j = 0; j < d; j++) {
                double *restrict m = mean + (t * d + j) * LANES;
                for (int l = 0; l < LANES; l++) {
                    e[j][l] = cells[j] - m[l];
                    m[l] += step[l] * e[j][l];
                    sum[j][l] = 0.0;
                }
            }
            for (int64_t j = 0; j < d; j++) {
                double *restrict w = factor + (t * d + j) * d * LANES;
                double y[LANES] = {0}, own[LANES], other[LANES];
                for (int64_t c = 0; c <= j; c++)
                    for (int l = 0; l < LANES; l++) y[l] += w[c * LANES + l] * e[c][l];
                for (int l = 0; l < LANES; l++) {
                    const double after = before[l] + ratio[l] * y[l] * y[l];
                    const double inverse = 1.0 / sqrt(before[l] * after);
                    own[l] = before[l] * inverse;
                    other[l] = ratio[l] * y[l] * inverse;
                    before[l] = after;
                }
                for (int64_t c = 0; c <= j; c++)
                    for (int l = 0; l < LANES; l++) {
                        const double old = w[c * LANES + l];
                        w[c * LANES + l] = own[l] * old - other[l] * sum[c][l];
                        sum[c][l] += y[l] * old;
                    }
            }
            for (int l = 0; l < LANES; l++) {
                const int64_t k = t * LANES + l, n = size[k];
                const double change = log(before[l]);
                log_lik[k] += constant[n] + log_det[k] - 0.5 * (p->nu0 + n + 1) * change;
                log_det[k] -= 0.5 * change;
            }
        }
        sum_up(p, r, log_lik);
    }
    free(mean), free(factor), free(log_det), free(log_lik), free(size), free(used), free(constant);
}
