/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Normal with a normal-inverse-chi-squared prior: predictive Student t of nu = nu0 + n degrees
 * of freedom (doc/algorithms.md, "Families"). With d = x - mu and
 * b = 1 / (nu scale^2),
 *     log p = constant - (nu + 1)/2 log(1 + b d^2),
 *     constant = lgamma((nu + 1)/2) - lgamma(nu/2) - log(pi)/2 + log(b)/2.
 *
 * Dense features that share nu0 share nu, hence (nu + 1)/2, and so one logarithm of a product:
 *     sum_f log(1 + t_f) = log(1 + s),  1 + s = prod_f (1 + t_f).
 * s, not 1 + s, is accumulated: t is about 1/n, and 1 + t would lose it in float32. All terms are
 * positive, so nothing cancels. Four features at a time; where a product could overflow (t above
 * 1e7: a cell thousands of deviations away) the logarithms are taken one by one.
 */
#include "../_native/_lanes.h"
#include "../_native/_log_wide.h"

#define CHUNK 64          /* features handled together by the update */
#define PRODUCT_LIMIT 1e7f

INLINE LN NAME(normal_t)(const float *p, float x)
{
    LN d = NAME(sub)(NAME(set1)(x), NAME(load)(p));
    return NAME(mul)(NAME(mul)(d, d), NAME(load)(p + LANES));
}

/* log(1 + t); t may have overflowed under extreme hyperparameters */
INLINE LN NAME(normal_log)(LN t)
{
    const LN most = NAME(set1)(1e37f);
    return NAME(log1p)(NAME(select)(NAME(greater)(most, t), t, most));
}

/* (1 + a)(1 + b) - 1 */
INLINE LN NAME(join)(LN a, LN b) { return NAME(fma)(a, b, NAME(add)(a, b)); }

static void NAME(normal_add_scores)(const NormalBlock *block, const char *row, int64_t n_tiles,
                                    float *out)
{
    const int32_t n_dense = block->n_dense, n_gappy = block->n_features - n_dense;
    const int32_t *order = block->order, *offset = block->offset;
    const LN limit = NAME(set1)(PRODUCT_LIMIT), zero = NAME(set1)(0.0f);

    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *location = block->location + tile * n_dense * 2 * LANES;
        LN score = NAME(add)(NAME(load)(out + tile * LANES),
                             NAME(load)(block->constant + tile * LANES));
#define CELL(j) NAME(normal_t)(location + (int64_t)order[j] * 2 * LANES, \
                               *(const float *)(row + offset[order[j]]))
        for (int32_t r = 0; r < block->n_runs; r++) {
            LN exponent = NAME(load)(block->exponent + (tile * block->n_runs + r) * LANES);
            LN s = zero;
            int32_t j = block->run[r], stop = block->run[r + 1];
            for (; j + 4 <= stop; j += 4) {
                LN a = CELL(j), b = CELL(j + 1), c = CELL(j + 2), d = CELL(j + 3);
                LN largest = NAME(max)(NAME(max)(NAME(max)(a, b), NAME(max)(c, d)), s);
                if (__builtin_expect(NAME(any)(NAME(greater)(largest, limit)), 0)) {
                    LN sum = NAME(add)(NAME(add)(NAME(normal_log)(a), NAME(normal_log)(b)),
                                       NAME(add)(NAME(normal_log)(c), NAME(normal_log)(d)));
                    sum = NAME(add)(sum, NAME(log1p)(s));
                    score = NAME(sub)(score, NAME(mul)(exponent, sum));
                    s = zero;
                } else {
                    s = NAME(join)(s, NAME(join)(NAME(join)(a, b), NAME(join)(c, d)));
                }
            }
            for (; j < stop; j++) {
                LN t = CELL(j);
                if (__builtin_expect(NAME(any)(NAME(greater)(NAME(max)(s, t), limit)), 0)) {
                    score = NAME(sub)(score, NAME(mul)(exponent, NAME(log1p)(s)));
                    score = NAME(sub)(score, NAME(mul)(exponent, NAME(normal_log)(t)));
                    s = zero;
                } else {
                    s = NAME(join)(s, t);
                }
            }
            score = NAME(sub)(score, NAME(mul)(exponent, NAME(log1p)(s)));
        }
#undef CELL
        for (int32_t g = 0; g < n_gappy; g++) {
            float x = *(const float *)(row + offset[n_dense + g]);
            if (x != x) continue;
            const float *p = block->gappy + (tile * n_gappy + g) * 4 * LANES;
            LN log_u = NAME(normal_log)(NAME(normal_t)(p, x));
            LN cell = NAME(sub)(NAME(load)(p + 3 * LANES),
                                NAME(mul)(NAME(load)(p + 2 * LANES), log_u));
            score = NAME(add)(score, cell);
        }
        NAME(store)(out + tile * LANES, score);
    }
}

/* lgamma((nu + 1)/2) - lgamma(nu/2) - log(pi)/2 */
static double NAME(normal_log_ratio)(double nu)
{
    int sign;
    return lgamma_r(0.5 * (nu + 1.0), &sign) - lgamma_r(0.5 * nu, &sign) - 0.57236494292470008707;
}

/* The same by a direct-mapped table: features with gaps have few different numbers of cells. */
static double NAME(normal_ratio_memo)(NormalBlock *block, double nu)
{
    int64_t at = (int64_t)nu & (NORMAL_MEMO - 1);
    if (block->ratio_nu[at] != nu) {
        block->ratio_nu[at] = nu;
        block->ratio_value[at] = NAME(normal_log_ratio)(nu);
    }
    return block->ratio_value[at];
}

/* The sum of the above over the dense features, by cluster size: such a table, too. */
static double NAME(normal_memo)(NormalBlock *block, int64_t n)
{
    int64_t at = n & (NORMAL_MEMO - 1);
    if (block->memo_size[at] != n) {
        double sum = 0.0;
        for (int32_t r = 0; r < block->n_runs; r++)
            sum += (block->run[r + 1] - block->run[r]) *
                   NAME(normal_log_ratio)(block->nu0[block->order[block->run[r]]] + (double)n);
        block->memo_size[at] = n;
        block->memo_value[at] = sum;
    }
    return block->memo_value[at];
}

/* Posterior centre and 1 / (nu scale^2) of `count` features with n cells each, from their means and
 * centred sums of squares: differences in float64, quotients of float32 numbers. */
INLINE void NAME(normal_posterior)(const NormalBlock *block, int32_t start, int32_t count, double n,
                                   const double *restrict mean, const double *restrict m2,
                                   float *restrict mu, float *restrict rate)
{
    const double *mu0 = block->mu0 + start, *kappa0 = block->kappa0 + start;
    const double *nu0 = block->nu0 + start, *sigma2_0 = block->sigma2_0 + start;
    for (int32_t i = 0; i < count; i++) {
        double delta = mean[i] - mu0[i];
        float kappa = (float)(kappa0[i] + n);
        float share = (float)n / kappa;
        double squares = nu0[i] * sigma2_0[i] + m2[i] + kappa0[i] * (double)share * delta * delta;
        mu[i] = (float)(mu0[i] + (double)share * delta);
        rate[i] = kappa / ((kappa + 1.0f) * (float)squares);
    }
}

/* Slot k's cache as a pure function of its statistics and of the hyperparameters: of some features
 * with gaps (at most CHUNK, by index), of the dense features, of all. */
static void NAME(normal_refresh_gappy)(NormalBlock *block, int64_t k, const int32_t *feature,
                                       int32_t count)
{
    const int32_t n_dense = block->n_dense, n_features = block->n_features;
    const double *mean = block->mean + k * n_features, *m2 = block->m2 + k * n_features;
    float *tile = block->gappy + k / LANES * (n_features - n_dense) * 4 * LANES + k % LANES;
    double b[CHUNK];
    for (int32_t i = 0; i < count; i++) {
        const int32_t f = feature[i];
        float *p = tile + (f - n_dense) * 4 * LANES;
        double n_f = (double)block->present[k * n_features + f];
        double kappa = block->kappa0[f] + n_f, nu = block->nu0[f] + n_f;
        double delta = mean[f] - block->mu0[f];
        double squares = block->nu0[f] * block->sigma2_0[f] + m2[f] +
                         block->kappa0[f] * n_f / kappa * delta * delta;
        b[i] = kappa / ((kappa + 1.0) * squares);
        p[0] = (float)(block->mu0[f] + n_f / kappa * delta);
        p[LANES] = (float)b[i];
        p[2 * LANES] = (float)(0.5 * (nu + 1.0));
    }
    for (int32_t i = 0; i < count; i++) b[i] = 0.5 * NAME(log_wide)(b[i]);
    for (int32_t i = 0; i < count; i++) {
        const int32_t f = feature[i];
        double nu = block->nu0[f] + (double)block->present[k * n_features + f];
        tile[((f - n_dense) * 4 + 3) * LANES] = (float)(NAME(normal_ratio_memo)(block, nu) + b[i]);
    }
}

static void NAME(normal_refresh_dense)(NormalBlock *block, int64_t k)
{
    const int32_t n_dense = block->n_dense, n_features = block->n_features;
    const int64_t tile = k / LANES, lane = k % LANES;
    const double n = (double)block->size[k];
    const double *mean = block->mean + k * n_features, *m2 = block->m2 + k * n_features;
    float *location = block->location + tile * n_dense * 2 * LANES + lane;
    float mu[CHUNK], rate[CHUNK] __attribute__((aligned(64)));
    LN log_sum = NAME(set1)(0.0f);

    for (int32_t start = 0; start < n_dense; start += CHUNK) {
        const int32_t count = n_dense - start < CHUNK ? n_dense - start : CHUNK;
        NAME(normal_posterior)(block, start, count, n, mean + start, m2 + start, mu, rate);
        for (int32_t i = count; i < CHUNK && i % LANES; i++) rate[i] = 1.0f;
        for (int32_t i = 0; i < count; i++) {
            location[(start + i) * 2 * LANES] = mu[i];
            location[(start + i) * 2 * LANES + LANES] = rate[i];
        }
        for (int32_t i = 0; i < count; i += LANES)
            log_sum = NAME(add)(log_sum, NAME(log)(NAME(load)(rate + i)));
    }
    for (int32_t r = 0; r < block->n_runs; r++)
        block->exponent[(tile * block->n_runs + r) * LANES + lane] =
            (float)(0.5 * (block->nu0[block->order[block->run[r]]] + n + 1.0));
    block->constant[k] =
        (float)(NAME(normal_memo)(block, block->size[k]) + 0.5 * (double)NAME(reduce_add)(log_sum));
}

static void NAME(normal_refresh)(NormalBlock *block, int64_t k)
{
    int32_t feature[CHUNK], count = 0;
    for (int32_t f = block->n_dense; f < block->n_features; f++) {
        feature[count++] = f;
        if (count == CHUNK || f == block->n_features - 1) {
            NAME(normal_refresh_gappy)(block, k, feature, count);
            count = 0;
        }
    }
    NAME(normal_refresh_dense)(block, k);
}

/* Add (sign 1) or take out (sign -1) one row: Welford's recurrences, then the cache. */
static void NAME(normal_update)(NormalBlock *block, const char *row, int64_t k, int sign)
{
    const int32_t n_dense = block->n_dense, n_features = block->n_features;
    double *mean = block->mean + k * n_features, *m2 = block->m2 + k * n_features;
    const int64_t n = block->size[k] += sign;
    double x[CHUNK];

    for (int32_t start = 0; start < n_dense; start += CHUNK) {
        const int32_t count = n_dense - start < CHUNK ? n_dense - start : CHUNK;
        double *mean_c = mean + start, *m2_c = m2 + start;
        for (int32_t i = 0; i < count; i++) x[i] = *(const float *)(row + block->offset[start + i]);
        if (n == 0) {
            for (int32_t i = 0; i < count; i++) mean_c[i] = m2_c[i] = 0.0;
        } else {
            const double step = (double)sign / (double)n;
            for (int32_t i = 0; i < count; i++) {
                double before = x[i] - mean_c[i];
                double moved = mean_c[i] + before * step;
                double sum = m2_c[i] + sign * (before * (x[i] - moved));
                mean_c[i] = moved;
                m2_c[i] = sum > 0.0 ? sum : 0.0;
            }
        }
    }
    int32_t changed[CHUNK], count = 0; /* a cell that is missing leaves its feature's cache alone */
    for (int32_t f = n_dense; f < n_features; f++) {
        double value = *(const float *)(row + block->offset[f]);
        if (value == value) {
            int64_t *present = block->present + k * n_features + f;
            *present += sign;
            if (*present == 0) {
                mean[f] = m2[f] = 0.0;
            } else {
                double before = value - mean[f];
                mean[f] += before * sign / (double)*present;
                double sum = m2[f] + sign * (before * (value - mean[f]));
                m2[f] = sum > 0.0 ? sum : 0.0;
            }
            changed[count++] = f;
        }
        if (count == CHUNK || f == n_features - 1) {
            NAME(normal_refresh_gappy)(block, k, changed, count);
            count = 0;
        }
    }
    NAME(normal_refresh_dense)(block, k);
}

/* Log predictive of a row of slot k in that slot without the row. */
static float NAME(normal_score_without)(NormalBlock *block, const char *row, int64_t k)
{
    const int32_t n_dense = block->n_dense, n_features = block->n_features;
    const double *mean = block->mean + k * n_features, *m2 = block->m2 + k * n_features;
    const int64_t rest = block->size[k] - 1;
    double x[CHUNK], mean_rest[CHUNK], m2_rest[CHUNK];
    float mu[CHUNK], rate[CHUNK] __attribute__((aligned(64)));
    float t[CHUNK] __attribute__((aligned(64))), exponent[CHUNK] __attribute__((aligned(64)));
    LN log_sum = NAME(set1)(0.0f), total = NAME(set1)(0.0f);

    for (int32_t start = 0; start < n_dense; start += CHUNK) {
        const int32_t count = n_dense - start < CHUNK ? n_dense - start : CHUNK;
        const double step = 1.0 / (double)rest;
        for (int32_t i = 0; i < count; i++) x[i] = *(const float *)(row + block->offset[start + i]);
        for (int32_t i = 0; i < count; i++) {
            double before = x[i] - mean[start + i];
            double moved = mean[start + i] - before * step;
            double sum = m2[start + i] - before * (x[i] - moved);
            mean_rest[i] = moved;
            m2_rest[i] = sum > 0.0 ? sum : 0.0;
        }
        NAME(normal_posterior)(block, start, count, (double)rest, mean_rest, m2_rest, mu, rate);
        for (int32_t i = 0; i < count; i++) {
            float d = (float)x[i] - mu[i];
            t[i] = d * d * rate[i];
            exponent[i] = (float)(0.5 * (block->nu0[start + i] + (double)rest + 1.0));
        }
        for (int32_t i = count; i < CHUNK && i % LANES; i++) {
            rate[i] = 1.0f;
            t[i] = exponent[i] = 0.0f;
        }
        for (int32_t i = 0; i < count; i += LANES) {
            log_sum = NAME(add)(log_sum, NAME(log)(NAME(load)(rate + i)));
            total = NAME(fma)(NAME(load)(exponent + i), NAME(normal_log)(NAME(load)(t + i)), total);
        }
    }
    double out = 0.5 * (double)NAME(reduce_add)(log_sum) - (double)NAME(reduce_add)(total);
    if (n_dense) out += NAME(normal_memo)(block, rest);
    double b[CHUNK], above[CHUNK], half[CHUNK];
    for (int32_t f = n_dense; f < n_features;) {
        int32_t count = 0;
        for (; f < n_features && count < CHUNK; f++) {
            double value = *(const float *)(row + block->offset[f]);
            if (value != value) continue;
            double n = (double)(block->present[k * n_features + f] - 1);
            double centre = 0.0, squares = 0.0;
            if (n > 0.0) {
                double before = value - mean[f];
                centre = mean[f] - before / n;
                squares = m2[f] - before * (value - centre);
                squares = squares > 0.0 ? squares : 0.0;
            }
            double kappa = block->kappa0[f] + n, nu = block->nu0[f] + n;
            double delta = centre - block->mu0[f];
            squares += block->nu0[f] * block->sigma2_0[f];
            squares += block->kappa0[f] * n / kappa * delta * delta;
            double d = value - (block->mu0[f] + n / kappa * delta);
            b[count] = kappa / ((kappa + 1.0) * squares);
            above[count] = 1.0 + b[count] * d * d;
            half[count++] = 0.5 * (nu + 1.0);
            out += NAME(normal_ratio_memo)(block, nu);
        }
        for (int32_t i = 0; i < count; i++)
            b[i] = 0.5 * NAME(log_wide)(b[i]) - half[i] * NAME(log_wide)(above[i]);
        for (int32_t i = 0; i < count; i++) out += b[i];
    }
    return (float)out;
}

/* Add a row's cells to the sums of its slot, measured from the slot's first cell: with a centre in
 * the cluster squares lose nothing, and no cell waits for a division as in Welford's recurrence.
 * sums: (4, n) cells, first, sum, sum of squares; a row without gaps leaves the first alone. */
static void NAME(normal_sum_cells)(double *restrict sums, const float *restrict cell, int64_t n,
                                   int gappy)
{
    double *restrict cells = sums, *restrict first = sums + n;
    double *restrict sum = sums + 2 * n, *restrict squares = sums + 3 * n;
    if (!gappy) {
        for (int64_t f = 0; f < n; f++) {
            double d = (double)cell[f] - first[f];
            sum[f] += d;
            squares[f] += d * d;
        }
        return;
    }
    for (int64_t f = 0; f < n; f++) {
        double x = cell[f], present = x == x ? 1.0 : 0.0;
        x = x == x ? x : 0.0;
        first[f] = cells[f] == 0.0 ? x : first[f];
        double d = present * (x - first[f]);
        cells[f] += present;
        sum[f] += d;
        squares[f] += d * d;
    }
}
