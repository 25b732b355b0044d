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

#define CHUNK 64          /* features handled together by the update */
#define PRODUCT_LIMIT 1e7f

/* Take in which cells of gappy features the row has, in block->present_at and _cell; how many.
 * Without a branch, which one in two cells would mispredict. */
INLINE int32_t NAME(normal_present)(const NormalBlock *block, const char *row)
{
    const int32_t n_dense = block->n_dense, n_gappy = block->n_features - n_dense;
    int32_t n = 0;
    for (int32_t g = 0; g < n_gappy; g++) {
        const float x = *(const float *)(row + block->offset[n_dense + g]);
        block->present_at[n] = g;
        block->present_cell[n] = x;
        n += x == x;
    }
    return n;
}

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
    const int32_t n_present = NAME(normal_present)(block, row);

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
        for (int32_t i = 0; i < n_present; i++) {
            const float *p = block->gappy + (tile * n_gappy + block->present_at[i]) * 4 * LANES;
            LN log_u = NAME(normal_log)(NAME(normal_t)(p, block->present_cell[i]));
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

/* The sum of the above over the dense features, by cluster size: a direct-mapped table. */
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

/* The cells of at most CHUNK gappy features, `at`, of a slot: what normal_add_scores reads of each.
 * n, mean and m2 are theirs. The constant, with z = nu/2 and Z = z + 4, is
 *     log(b Z P^2 / pi)/2 + r(Z),  P = z (z + 1) (z + 2) (z + 3) / ((z + 1/2) ... (z + 7/2)),
 * where r is Stirling's series of log Gamma(Z + 1/2) - log Gamma(Z) - log(Z)/2: one logarithm. */
typedef struct {
    double n[CHUNK], mean[CHUNK], m2[CHUNK];
    float location[CHUNK], rate[CHUNK], exponent[CHUNK];
    float constant[CHUNK] __attribute__((aligned(64)));
} NAME(normal_cells);

INLINE void NAME(normal_posterior_cells)(const NormalBlock *block, const int32_t *at,
                                         int32_t count, NAME(normal_cells) *restrict cells)
{
    const double *mu0 = block->mu0 + block->n_dense, *kappa0 = block->kappa0 + block->n_dense;
    const double *nu0 = block->nu0 + block->n_dense, *sigma2_0 = block->sigma2_0 + block->n_dense;
    float power[CHUNK] __attribute__((aligned(64))), rest[CHUNK] __attribute__((aligned(64)));
    for (int32_t i = 0; i < count; i++) {
        const int32_t g = at[i];
        const double n = cells->n[i], kappa = kappa0[g] + n, nu = nu0[g] + n;
        const double delta = cells->mean[i] - mu0[g], share = n / kappa;
        const double squares = nu0[g] * sigma2_0[g] + cells->m2[i] +
                               kappa0[g] * share * delta * delta;
        const double b = kappa / ((kappa + 1.0) * squares), z = 0.5 * nu, inverse = 1.0 / (z + 4.0);
        const double above = (z * (z + 1.0)) * ((z + 2.0) * (z + 3.0));
        const double below = ((z + 0.5) * (z + 1.5)) * ((z + 2.5) * (z + 3.5));
        const double ratio = above / below, square = inverse * inverse;
        power[i] = (float)(b * (z + 4.0) * ratio * ratio);
        rest[i] = (float)(inverse * (-1.0 / 8 + square * (1.0 / 192 + square * (-1.0 / 640 +
                                     square * (17.0 / 14336)))) - 0.57236494292470008707);
        cells->location[i] = (float)(mu0[g] + share * delta);
        cells->rate[i] = (float)b;
        cells->exponent[i] = (float)(0.5 * (nu + 1.0));
    }
    for (int32_t i = count; i < CHUNK && i % LANES; i++) power[i] = rest[i] = 1.0f;
    for (int32_t i = 0; i < count; i += LANES)
        NAME(store)(cells->constant + i,
                    NAME(fma)(NAME(set1)(0.5f), NAME(log)(NAME(load)(power + i)),
                              NAME(load)(rest + i)));
}

/* Write them into slot k's cache. */
INLINE void NAME(normal_cache_cells)(NormalBlock *block, int64_t k, const int32_t *at,
                                     int32_t count, NAME(normal_cells) *restrict cells)
{
    const int64_t n_gappy = block->n_features - block->n_dense;
    float *own = block->gappy + k / LANES * n_gappy * 4 * LANES + k % LANES;
    NAME(normal_posterior_cells)(block, at, count, cells);
    for (int32_t i = 0; i < count; i++) {
        float *p = own + (int64_t)at[i] * 4 * LANES;
        p[0] = cells->location[i];
        p[LANES] = cells->rate[i];
        p[2 * LANES] = cells->exponent[i];
        p[3 * LANES] = cells->constant[i];
    }
}

/* Slot k's cache as a pure function of its statistics and of the hyperparameters. */
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
    const int32_t n_dense = block->n_dense, n_gappy = block->n_features - n_dense;
    const int64_t first = k * block->n_features + n_dense;
    NAME(normal_cells) cells;
    int32_t at[CHUNK];
    NAME(normal_refresh_dense)(block, k);
    for (int32_t start = 0; start < n_gappy; start += CHUNK) {
        const int32_t count = n_gappy - start < CHUNK ? n_gappy - start : CHUNK;
        for (int32_t i = 0; i < count; i++) {
            at[i] = start + i;
            cells.n[i] = (double)block->present[first + start + i];
            cells.mean[i] = block->mean[first + start + i];
            cells.m2[i] = block->m2[first + start + i];
        }
        NAME(normal_cache_cells)(block, k, at, count, &cells);
    }
}

/* The statistics of the cells that the row has, `start` to `start + count` in block->present_at,
 * when the row has entered (sign 1) or left (sign -1) slot k. */
INLINE void NAME(normal_move_cells)(const NormalBlock *block, int64_t k, int sign, int32_t start,
                                    int32_t count, NAME(normal_cells) *restrict cells)
{
    const int64_t first = k * block->n_features + block->n_dense;
    const int32_t *at = block->present_at + start;
    const float *cell = block->present_cell + start;
    const int64_t *present = block->present + first;
    const double *mean = block->mean + first, *m2 = block->m2 + first;
    for (int32_t i = 0; i < count; i++) cells->n[i] = (double)(present[at[i]] + sign);
    for (int32_t i = 0; i < count; i++) {
        const double n = cells->n[i], before = cell[i] - mean[at[i]];
        const double step = before * sign / (n > 0.0 ? n : 1.0);
        const double moved = mean[at[i]] + step;
        const double sum = m2[at[i]] + sign * (before * (cell[i] - moved));
        cells->mean[i] = n > 0.0 ? moved : 0.0;
        cells->m2[i] = n > 0.0 && sum > 0.0 ? sum : 0.0;
    }
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
    NAME(normal_refresh_dense)(block, k);

    const int32_t n_present = NAME(normal_present)(block, row);
    const int64_t first = k * n_features + n_dense;
    NAME(normal_cells) cells;
    for (int32_t start = 0; start < n_present; start += CHUNK) {
        const int32_t count = n_present - start < CHUNK ? n_present - start : CHUNK;
        const int32_t *at = block->present_at + start;
        NAME(normal_move_cells)(block, k, sign, start, count, &cells);
        for (int32_t i = 0; i < count; i++) {
            block->present[first + at[i]] += sign;
            block->mean[first + at[i]] = cells.mean[i];
            block->m2[first + at[i]] = cells.m2[i];
        }
        NAME(normal_cache_cells)(block, k, at, count, &cells);
    }
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
    const int32_t n_present = NAME(normal_present)(block, row);
    NAME(normal_cells) cells;
    LN score = NAME(set1)(0.0f);
    for (int32_t start = 0; start < n_present; start += CHUNK) {
        const int32_t count = n_present - start < CHUNK ? n_present - start : CHUNK;
        const float *cell = block->present_cell + start;
        NAME(normal_move_cells)(block, k, -1, start, count, &cells);
        NAME(normal_posterior_cells)(block, block->present_at + start, count, &cells);
        for (int32_t i = 0; i < count; i++) {
            const float d = cell[i] - cells.location[i];
            t[i] = d * d * cells.rate[i];
            exponent[i] = cells.exponent[i];
        }
        for (int32_t i = count; i < CHUNK && i % LANES; i++)
            t[i] = exponent[i] = cells.constant[i] = 0.0f;
        for (int32_t i = 0; i < count; i += LANES) {
            LN logs = NAME(mul)(NAME(load)(exponent + i), NAME(normal_log)(NAME(load)(t + i)));
            score = NAME(add)(score, NAME(sub)(NAME(load)(cells.constant + i), logs));
        }
    }
    out += (double)NAME(reduce_add)(score);
    return (float)out;
}

/* Subtract power log(1 + product) from the scores of the slots, and from `added` unless it is NULL.
 * product becomes 0. */
INLINE void NAME(normal_subtract)(int64_t n_slots, const double *power, double *restrict product,
                                  double *restrict scores, double *restrict added)
{
    for (int64_t k = 0; k < n_slots; k++) {
        const double rise = power[k] * log1p(product[k]);
        scores[k] -= rise;
        if (added) added[k] -= rise;
        product[k] = 0.0;
    }
}

/* Add what a row's cells say in every slot, cells that are missing left out: to the scores
 * constant - power log(1 + t), t = rate (x - centre)^2; and to `added`, unless it is NULL,
 * power (2 (sqrt(1 + t) - 1) - log(1 + t)), with no root above `furthest`. Features share the power,
 * and so the logarithm of a product, which is taken before the product can overflow. `most` has for
 * each feature the largest rate and |centre|. product: scratch. */
static void NAME(normal_score_cells)(const float *cells, int64_t n_features, int64_t n_slots,
                                     const double *centre, const double *rate,
                                     const double *constant, const double *most,
                                     const double *power, double furthest,
                                     double *restrict product, double *restrict scores,
                                     double *restrict added)
{
    double bound = 1.0;
    for (int64_t k = 0; k < n_slots; k++) product[k] = 0.0;
    for (int64_t f = 0; f < n_features; f++) {
        const double x = cells[f], reach = fabs(x) + most[2 * f + 1];
        const double *restrict m = centre + f * n_slots, *restrict r = rate + f * n_slots;
        const double *restrict c = constant + f * n_slots;
        if (x != x) continue;
        bound *= 1.0 + most[2 * f] * reach * reach;
        if (bound > 1e300) {
            NAME(normal_subtract)(n_slots, power, product, scores, added);
            bound = 1.0 + most[2 * f] * reach * reach;
        }
        for (int64_t k = 0; k < n_slots; k++) {
            const double d = x - m[k], t = r[k] * d * d;
            product[k] += t + product[k] * t;
            scores[k] += c[k];
        }
        for (int64_t k = 0; added && k < n_slots; k++) {
            const double d = x - m[k], root = sqrt(1.0 + r[k] * d * d);
            added[k] += 2.0 * power[k] * ((root < furthest ? root : furthest) - 1.0);
        }
    }
    NAME(normal_subtract)(n_slots, power, product, scores, added);
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
