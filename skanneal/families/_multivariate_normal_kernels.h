/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Normal rows with a normal-inverse-Wishart prior (doc/algorithms.md,
 * "Families"). With Psi = L L', W = L^-1, e = x - mu_n and q = |W e|^2, the predictive is
 *     log p = constant + sum_i log W_ii - (nu + 1)/2 log(1 + rate q),  rate = kappa/(kappa + 1),
 *     constant = lgamma((nu + 1)/2) - lgamma((nu + 1 - d)/2) + d/2 log(rate / pi).
 *
 * Rows have weights w (1 but in the multivariate t), and kappa - kappa0 is their sum. A row that
 * enters or leaves changes Psi by s c e e', s = +-1, c = w kappa/(kappa + s w). With p = W v, v =
 * sqrt(c) e, s_i = 1 + s sum_{j <= i} p_j^2 and r_i = sum_{j <= i} p_j W_j, the Cholesky factor of
 * 1 + s p p' gives the new rows
 *     W'_i = sqrt(s_{i-1}/s_i) W_i - s p_i / sqrt(s_{i-1} s_i) r_{i-1},
 * so an update costs d^2 like the matrix itself, and determinants change by s_d. A downdate loses
 * digits as s_d falls: then, and after MVN_UPDATES updates, W is rebuilt from the scatter.
 */
#include "_gaps_kernels.h"

#define MVN_WIDTH 8 /* doubles summed side by side: every instruction set adds in this order */

/* Sum of a[j] b[j] over the first n of two padded vectors that are zero (one of them) beyond. */
INLINE double NAME(mvn_dot)(const double *restrict a, const double *restrict b, int64_t n)
{
    double sum[MVN_WIDTH] = {0};
    for (int64_t j = 0; j < n; j += MVN_WIDTH)
        for (int l = 0; l < MVN_WIDTH; l++) sum[l] += a[j + l] * b[j + l];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* A length rounded up: what lies between is zero. */
INLINE int64_t NAME(mvn_padded)(int64_t n) { return (n + MVN_WIDTH - 1) / MVN_WIDTH * MVN_WIDTH; }

/* q of 16 slots from the deviations, y = W e where wanted (NULL or not where this is called). */
INLINE LN NAME(mvn_square)(const float *weights, const float *deviation, int64_t d, float *y)
{
    LN q = NAME(set1)(0.0f);
    int64_t i = 0;
    for (; i + 4 <= d; i += 4) { /* four rows share the loads of the deviations */
        const float *w0 = weights + i * (i + 1) / 2 * LANES, *w1 = w0 + (i + 1) * LANES;
        const float *w2 = w1 + (i + 2) * LANES, *w3 = w2 + (i + 3) * LANES;
        LN y0 = NAME(set1)(0.0f), y1 = y0, y2 = y0, y3 = y0;
#define TERM(y, w, j) y = NAME(fma)(NAME(load)(w + (j) * LANES), e, y)
        for (int64_t j = 0; j <= i; j++) {
            LN e = NAME(load)(deviation + j * LANES);
            TERM(y0, w0, j);
            TERM(y1, w1, j);
            TERM(y2, w2, j);
            TERM(y3, w3, j);
        }
        LN e = NAME(load)(deviation + (i + 1) * LANES);
        TERM(y1, w1, i + 1);
        TERM(y2, w2, i + 1);
        TERM(y3, w3, i + 1);
        e = NAME(load)(deviation + (i + 2) * LANES);
        TERM(y2, w2, i + 2);
        TERM(y3, w3, i + 2);
        e = NAME(load)(deviation + (i + 3) * LANES);
        TERM(y3, w3, i + 3);
        q = NAME(fma)(y0, y0, q);
        q = NAME(fma)(y1, y1, q);
        q = NAME(fma)(y2, y2, q);
        q = NAME(fma)(y3, y3, q);
        if (y != NULL) {
            NAME(store)(y + i * LANES, y0);
            NAME(store)(y + (i + 1) * LANES, y1);
            NAME(store)(y + (i + 2) * LANES, y2);
            NAME(store)(y + (i + 3) * LANES, y3);
        }
    }
    for (; i < d; i++) {
        const float *w = weights + i * (i + 1) / 2 * LANES;
        LN own = NAME(set1)(0.0f);
        for (int64_t j = 0; j <= i; j++) {
            LN e = NAME(load)(deviation + j * LANES);
            TERM(own, w, j);
        }
        q = NAME(fma)(own, own, q);
        if (y != NULL) NAME(store)(y + i * LANES, own);
    }
#undef TERM
    return q;
}

/* Add constant - power log(1 + rate q) to the scores of 16 slots. */
INLINE void NAME(mvn_add)(LN q, LN rate, LN constant, LN power, float *out)
{
    const LN limit = NAME(set1)(1e37f); /* extreme cells would give inf - inf */
    LN t = NAME(mul)(q, rate);
    t = NAME(select)(NAME(greater)(limit, t), t, limit);
    LN score = NAME(sub)(constant, NAME(mul)(power, NAME(log1p)(t)));
    NAME(store)(out, NAME(add)(NAME(load)(out), score));
}

/* q of 16 slots, and log |R| of the missing cells block->gap (_gaps.h). n_gaps may be a constant 0
 * where this is called. `last` is scratch. */
INLINE LN NAME(mvn_tile)(const MvnBlock *block, const char *row, int64_t tile, int64_t n_gaps,
                         int64_t *last, LN *lengths)
{
    const int64_t d = block->d, *gap = block->gap;
    const float *location = block->location + tile * d * LANES;
    const float *weights = block->weights + tile * (d * (d + 1) / 2) * LANES;
    float *deviation = block->deviation;
    for (int64_t j = 0; j < d; j++) {
        LN x = NAME(set1)(*(const float *)(row + block->offset[j]));
        NAME(store)(deviation + j * LANES, NAME(sub)(x, NAME(load)(location + j * LANES)));
    }
    *lengths = NAME(set1)(0.0f);
    if (n_gaps == 0) return NAME(mvn_square)(weights, deviation, d, NULL);
    float *y = block->spanned + d * d * LANES;
    for (int64_t l = 0; l < n_gaps; l++)
        NAME(store)(deviation + gap[l] * LANES, NAME(set1)(0.0f));
    if (n_gaps == 1) { /* the column as it stands */
        const LN least = NAME(set1)(1e-37f);
        const float *first = weights + (gap[0] * (gap[0] + 1) / 2 + gap[0]) * LANES, *column = first;
        const LN zero = NAME(set1)(0.0f);
        /* sums over even and odd rows, so that no addition waits for the one before */
        LN square = zero, square_1 = zero, share = zero, share_1 = zero, q = zero, q_1 = zero;
        int64_t i = gap[0];
        NAME(mvn_square)(weights, deviation, d, y);
#define NEXT (i + 1) * LANES /* from a row's number to the next row's in the same column */
#define LENGTHS(square, share)                                 \
    {                                                          \
        const LN w = NAME(load)(column);                       \
        square = NAME(fma)(w, w, square);                      \
        share = NAME(fma)(w, NAME(load)(y + i * LANES), share); \
        column += NEXT;                                        \
        i++;                                                   \
    }
        while (i + 1 < d) {
            LENGTHS(square, share);
            LENGTHS(square_1, share_1);
        }
        if (i < d) LENGTHS(square, share);
#undef LENGTHS
        square = NAME(max)(NAME(add)(square, square_1), least);
        share = NAME(div)(NAME(sub)(zero, NAME(add)(share, share_1)), square);
        *lengths = NAME(mul)(NAME(set1)(0.5f), NAME(log)(square));
#define TERM(q, u)              \
    {                           \
        const LN rest = u;      \
        q = NAME(fma)(rest, rest, q); \
    }
        for (i = 0; i + 1 < gap[0]; i += 2) {
            TERM(q, NAME(load)(y + i * LANES));
            TERM(q_1, NAME(load)(y + (i + 1) * LANES));
        }
        if (i < gap[0]) TERM(q, NAME(load)(y + i * LANES));
        column = first;
        i = gap[0];
        while (i + 1 < d) {
            TERM(q, NAME(fma)(share, NAME(load)(column), NAME(load)(y + i * LANES)));
            column += NEXT;
            i++;
            TERM(q_1, NAME(fma)(share, NAME(load)(column), NAME(load)(y + i * LANES)));
            column += NEXT;
            i++;
        }
        if (i < d) TERM(q, NAME(fma)(share, NAME(load)(column), NAME(load)(y + i * LANES)));
#undef TERM
#undef NEXT
        return NAME(add)(q, q_1);
    }
    for (int64_t l = 0; l < n_gaps; l++) {
        last[l] = d;
        for (int64_t i = gap[l]; i < d; i++)
            NAME(store)(block->spanned + (l * d + i) * LANES,
                        NAME(load)(weights + (i * (i + 1) / 2 + gap[l]) * LANES));
    }
    NAME(mvn_square)(weights, deviation, d, y);
    return NAME(gaps_square)(block->spanned, gap, last, n_gaps, d, NULL, y, lengths);
}

static void NAME(mvn_add_scores)(const MvnBlock *block, const char *row, int64_t n_tiles, float *out)
{
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *student = block->student + tile * 4 * LANES;
        LN lengths, q = NAME(mvn_tile)(block, row, tile, 0, NULL, &lengths);
        NAME(mvn_add)(q, NAME(load)(student + 2 * LANES), NAME(load)(student),
                      NAME(load)(student + LANES), out + tile * LANES);
    }
}

/* `constant` above of a cluster of n rows, through a direct-mapped table, for a row with so many
 * missing cells: d is then less by them, and so is nu + 1. */
static double NAME(mvn_memo)(MvnBlock *block, int64_t n, int64_t n_gaps)
{
    const int64_t at = (n + 97 * n_gaps) & (MVN_MEMO - 1), key = n | n_gaps << 40;
    if (block->memo_size[at] != key) {
        int sign;
        const double d = (double)(block->d - n_gaps), kappa = *block->kappa0 + (double)n;
        const double half = 0.5 * (*block->nu0 + (double)n + 1.0 - (double)n_gaps);
        block->memo_size[at] = key;
        block->memo_value[at] = lgamma_r(half, &sign) - lgamma_r(half - 0.5 * d, &sign) +
                                0.5 * d * (log(kappa / (kappa + 1.0)) - 1.1447298858494002);
    }
    return block->memo_value[at];
}

/* What q is not in of the scores of 16 slots, for a row that lacks n_gaps cells, but for log |R|.
 * */
INLINE LN NAME(mvn_constant)(MvnBlock *block, int64_t tile, int64_t n_gaps)
{
    float constant[LANES] __attribute__((aligned(64)));
    if (n_gaps < 2) return NAME(load)(block->student + (tile * 4 + (n_gaps ? 3 : 0)) * LANES);
    for (int64_t lane = 0; lane < LANES; lane++) {
        const int64_t k = tile * LANES + lane;
        constant[lane] = (float)(NAME(mvn_memo)(block, block->size[k], n_gaps) + block->log_det[k]);
    }
    return NAME(load)(constant);
}

/* The same scores from the observed cells of a row that lacks the cells block->gap (_gaps.h). */
static void NAME(mvn_add_observed)(MvnBlock *block, const char *row, int64_t n_gaps,
                                   int64_t n_tiles, float *out)
{
    int64_t last[block->d];
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *student = block->student + tile * 4 * LANES;
        LN lengths, q = NAME(mvn_tile)(block, row, tile, n_gaps, last, &lengths);
        LN constant = NAME(sub)(NAME(mvn_constant)(block, tile, n_gaps), lengths);
        LN power = NAME(sub)(NAME(load)(student + LANES), NAME(set1)(0.5f * (float)n_gaps));
        NAME(mvn_add)(q, NAME(load)(student + 2 * LANES), constant, power, out + tile * LANES);
    }
}

/* q and the constant of every slot, for a family that computes its own scores from them. */
static void NAME(mvn_distances)(MvnBlock *block, const char *row, int64_t n_gaps, int64_t n_tiles,
                                float *q, float *constant)
{
    int64_t last[block->d];
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        LN lengths;
        NAME(store)(q + tile * LANES, NAME(mvn_tile)(block, row, tile, n_gaps, last, &lengths));
        NAME(store)(constant + tile * LANES,
                    NAME(sub)(NAME(mvn_constant)(block, tile, n_gaps), lengths));
    }
}

/* sum_i log W_ii: a logarithm of products whose exponents are kept apart. */
static double NAME(mvn_log_det)(const MvnBlock *block, const double *factor)
{
    double product = 1.0;
    int64_t exponent = 0;
    for (int64_t i = 0; i < block->d; i++) {
        int e;
        product *= factor[i * block->stride + i];
        if (i % 4 == 3) {
            product = frexp(product, &e);
            exponent += e;
        }
    }
    return log(product) + 0.69314718055994530942 * (double)exponent;
}

/* The inverse Cholesky factor of scale0 + scatter + weight shift shift'; its log determinant.
 * `scatter` NULL: none. No pivot can be below the prior's, so where rounding has eaten what a
 * cancelled scatter left, the prior's stands (bounded; the prior's own factor is made without). */
static double NAME(mvn_factorise)(MvnBlock *block, double weight, const double *shift,
                                  const double *scatter, int bounded, double *factor)
{
    const int64_t d = block->d, stride = block->stride;
    double *lower = block->lower;
    const double *scale0 = block->scale0;
    memset(lower, 0, (size_t)(d * stride) * sizeof(double));
    for (int64_t i = 0; i < d; i++, scale0 += i) {
        double *row = lower + i * stride;
        const double scaled = weight * shift[i];
        for (int64_t j = 0; j <= i; j++) {
            double value = scale0[j] + scaled * shift[j];
            if (scatter != NULL) value += scatter[i * stride + j];
            value -= NAME(mvn_dot)(row, lower + j * stride, NAME(mvn_padded)(j));
            if (j < i) {
                row[j] = value / lower[j * stride + j];
            } else {
                double least = 1e-300;
                if (bounded) {
                    const double w = block->prior_factor[i * stride + i];
                    least = 1.0 / (w * w);
                }
                row[i] = sqrt(value > least ? value : least);
            }
        }
    }
    memset(factor, 0, (size_t)(d * stride) * sizeof(double));
    for (int64_t i = 0; i < d; i++) {
        double *restrict out = factor + i * stride;
        const double inverse = 1.0 / lower[i * stride + i];
        for (int64_t k = 0; k < i; k++) {
            const double share = lower[i * stride + k] * inverse;
            const double *restrict earlier = factor + k * stride;
            const int64_t width = NAME(mvn_padded)(k + 1);
            for (int64_t j = 0; j < width; j++) out[j] -= share * earlier[j];
        }
        out[i] = inverse;
    }
    return NAME(mvn_log_det)(block, factor);
}

/* e = x - mu_n and q = |W e|^2, y = W e where wanted. */
static double NAME(mvn_solve)(const MvnBlock *block, const double *factor, const double *shift,
                              double *y)
{
    double q = 0.0;
    for (int64_t i = 0; i < block->d; i++) {
        const double value =
            NAME(mvn_dot)(factor + i * block->stride, shift, NAME(mvn_padded)(i + 1));
        if (y != NULL) y[i] = value;
        q += value * value;
    }
    return q;
}

/* W of Psi + sign v v' in place, p = W v; 0 if it must be made from the scatter instead. */
static int NAME(mvn_rank_one_along)(MvnBlock *block, double *factor, const double *p, double sign)
{
    const int64_t d = block->d, stride = block->stride;
    double *restrict sum = block->partial;
    double before = 1.0;
    memset(sum, 0, (size_t)stride * sizeof(double));
    for (int64_t i = 0; i < d; i++) {
        double *restrict w = factor + i * stride;
        const int64_t width = NAME(mvn_padded)(i + 1);
        const double after = before + sign * p[i] * p[i];
        if (!(after > MVN_LEAST)) return 0;
        const double own = sqrt(before / after), other = sign * p[i] / sqrt(before * after);
        for (int64_t j = 0; j < width; j++) {
            const double old = w[j];
            w[j] = own * old - other * sum[j];
            sum[j] += p[i] * old;
        }
        before = after;
    }
    return 1;
}

/* The same, given v. */
static int NAME(mvn_rank_one)(MvnBlock *block, double *factor, const double *v, double sign)
{
    NAME(mvn_solve)(block, factor, v, block->along);
    return NAME(mvn_rank_one_along)(block, factor, block->along, sign);
}

/* Slot k's cache as a pure function of its statistics and of the hyperparameters. */
static void NAME(mvn_refresh)(MvnBlock *block, int64_t k)
{
    const int64_t d = block->d, stride = block->stride, tile = k / LANES, lane = k % LANES;
    const double total = block->total[k], kappa = *block->kappa0 + total;
    const double *mean = block->mean + k * stride, *factor = block->factor + k * d * stride;
    float *restrict location = block->location + tile * d * LANES + lane;
    float *restrict weights = block->weights + tile * (d * (d + 1) / 2) * LANES + lane;
    float *student = block->student + tile * 4 * LANES + lane;
    const double share = total / kappa;
    for (int64_t j = 0; j < d; j++)
        location[j * LANES] = (float)(block->mu0[j] + share * (mean[j] - block->mu0[j]));
    for (int64_t i = 0; i < d; i++, weights += i * LANES)
        for (int64_t j = 0; j <= i; j++) weights[j * LANES] = (float)factor[i * stride + j];
    block->log_det[k] = NAME(mvn_log_det)(block, factor);
    student[0] = (float)(NAME(mvn_memo)(block, block->size[k], 0) + block->log_det[k]);
    student[LANES] = (float)(0.5 * (*block->nu0 + (double)block->size[k] + 1.0));
    student[2 * LANES] = (float)(kappa / (kappa + 1.0));
    student[3 * LANES] = (float)(NAME(mvn_memo)(block, block->size[k], 1) + block->log_det[k]);
}

/* The factor of scale0 + scatter + weight shift shift', the shift in block->shift; its log
 * determinant. The square of a far shift would leave no digits of the other terms: it is added to
 * their factor. */
static double NAME(mvn_posterior)(MvnBlock *block, double weight, const double *scatter,
                                  double *factor)
{
    const int64_t d = block->d, stride = block->stride;
    double largest = 0.0;
    for (int64_t j = 0; j < d; j++) largest = fmax(largest, fabs(block->shift[j]));
    if (largest <= MVN_FAR)
        return NAME(mvn_factorise)(block, weight, block->shift, scatter, 1, factor);
    double scaled[stride];
    for (int64_t j = 0; j < stride; j++) scaled[j] = sqrt(weight) * block->shift[j];
    NAME(mvn_factorise)(block, 0.0, block->shift, scatter, 1, factor);
    NAME(mvn_rank_one)(block, factor, scaled, 1.0);
    return NAME(mvn_log_det)(block, factor);
}

/* Slot k's factor from its scatter. */
static void NAME(mvn_refactor)(MvnBlock *block, int64_t k)
{
    const int64_t d = block->d, stride = block->stride;
    const double total = block->total[k];
    double *factor = block->factor + k * d * stride;
    block->updates[k] = 0;
    if (block->size[k] == 0) {
        memcpy(factor, block->prior_factor, (size_t)(d * stride) * sizeof(double));
        return;
    }
    for (int64_t j = 0; j < d; j++) block->shift[j] = block->mean[k * stride + j] - block->mu0[j];
    NAME(mvn_posterior)(block, *block->kappa0 * total / (*block->kappa0 + total),
                        block->scatter + k * d * stride, factor);
}

/* The row's cells as doubles, and vector = scale (x - mu_n). */
INLINE void NAME(mvn_deviation)(MvnBlock *block, const char *row, int64_t k, double scale)
{
    const double total = block->total[k], share = total / (*block->kappa0 + total);
    const double *mean = block->mean + k * block->stride, *mu0 = block->mu0;
    for (int64_t j = 0; j < block->d; j++)
        block->cell[j] = (double)*(const float *)(row + block->offset[j]);
    for (int64_t j = 0; j < block->d; j++)
        block->vector[j] = scale * (block->cell[j] - (mu0[j] + share * (mean[j] - mu0[j])));
}

/* scatter_out = scatter + weight delta delta', delta = cell - mean; mean_out the moved mean. */
INLINE void NAME(mvn_move)(MvnBlock *block, double weight, double step, const double *mean,
                           const double *scatter, double *mean_out, double *scatter_out)
{
    const int64_t d = block->d, stride = block->stride;
    double *restrict delta = block->shift;
    for (int64_t j = 0; j < d; j++) delta[j] = block->cell[j] - mean[j];
    for (int64_t j = 0; j < d; j++) mean_out[j] = mean[j] + step * delta[j];
    for (int64_t i = 0; i < d; i++) {
        const double scaled = weight * delta[i];
        for (int64_t j = 0; j <= i; j++)
            scatter_out[i * stride + j] = scatter[i * stride + j] + scaled * delta[j];
    }
}

/* Add one row, all but the factor and the cache. */
static void NAME(mvn_enter)(MvnBlock *block, const char *row, int64_t k, double weight)
{
    const int64_t d = block->d, stride = block->stride;
    const double before = block->total[k], after = before + weight;
    double *mean = block->mean + k * stride, *scatter = block->scatter + k * d * stride;
    for (int64_t j = 0; j < d; j++)
        block->cell[j] = (double)*(const float *)(row + block->offset[j]);
    NAME(mvn_move)(block, weight * before / after, weight / after, mean, scatter, mean, scatter);
    block->size[k]++;
    block->total[k] = after;
}

/* Add (sign 1) or take out (sign -1) one row; an emptied slot is as new. */
static void NAME(mvn_update)(MvnBlock *block, const char *row, int64_t k, int sign, double weight)
{
    const int64_t d = block->d, stride = block->stride;
    const double change = sign * weight, before = block->total[k], after = before + change;
    const double kappa = *block->kappa0 + before;
    double *mean = block->mean + k * stride, *scatter = block->scatter + k * d * stride;
    block->size[k] += sign;
    if (block->size[k] == 0) {
        block->total[k] = 0.0;
        memset(mean, 0, (size_t)stride * sizeof(double));
        memset(scatter, 0, (size_t)(d * stride) * sizeof(double));
        NAME(mvn_refactor)(block, k);
        NAME(mvn_refresh)(block, k);
        return;
    }
    NAME(mvn_deviation)(block, row, k, sqrt(weight * kappa / (kappa + change)));
    NAME(mvn_move)(block, change * before / after, change / after, mean, scatter, mean, scatter);
    block->total[k] = after;
    if (block->size[k] == 1) memset(scatter, 0, (size_t)(d * stride) * sizeof(double));
    block->updates[k]++;
    if (block->updates[k] >= MVN_UPDATES ||
        !NAME(mvn_rank_one)(block, block->factor + k * d * stride, block->vector, sign))
        NAME(mvn_refactor)(block, k);
    NAME(mvn_refresh)(block, k);
}

/* q of a row of slot k in that slot without the row, of all cells but the missing block->gap, and
 * log |W| - log |R| (_gaps.h) of it. `row` has the fills that the slot holds. Without it,
 * determinants of Psi are `left` = 1 - c |W e|^2 of what they are, c = w kappa/(kappa - w), its
 * inverse is
 *     W'W + c/left W'W e (W'W e)',
 * and the row is kappa/(kappa - w) e from the centre. */
static double NAME(mvn_without)(MvnBlock *block, const char *row, int64_t k, double weight,
                                int64_t n_gaps, double *log_det)
{
    const int64_t d = block->d, stride = block->stride, n = block->size[k], *gap = block->gap;
    const double total = block->total[k], rest = total - weight;
    const double kappa = *block->kappa0 + total, away = kappa / (kappa - weight);
    const double *factor = block->factor + k * d * stride;
    double *y = block->shift, q = 0.0, left = 0.0, across = 0.0, scale = 1.0;
    NAME(mvn_deviation)(block, row, k, 1.0);
    if (n > 1) {
        q = NAME(mvn_solve)(block, factor, block->vector, n_gaps > 0 ? y : NULL);
        left = 1.0 - weight * away * q;
    }
    if (left > MVN_LEAST) {
        *log_det = block->log_det[k] - 0.5 * log(left);
        across = weight * away / left;
        scale = away / left;
        q *= away * scale;
    } else { /* ill conditioned: from the scatter without the row */
        double *mean = block->vector;
        const double share = n > 1 ? rest / (kappa - weight) : 0.0;
        factor = block->spare;
        if (n > 1) {
            NAME(mvn_move)(block, -weight * total / rest, -weight / rest, block->mean + k * stride,
                           block->scatter + k * d * stride, mean, block->spare);
            if (n == 2) memset(block->spare, 0, (size_t)(d * stride) * sizeof(double));
            for (int64_t j = 0; j < d; j++) block->shift[j] = mean[j] - block->mu0[j];
            *log_det = NAME(mvn_posterior)(block, *block->kappa0 * rest / (kappa - weight),
                                           block->spare, block->spare);
        } else {
            memcpy(block->spare, block->prior_factor, (size_t)(d * stride) * sizeof(double));
            memset(block->shift, 0, (size_t)stride * sizeof(double));
            *log_det = NAME(mvn_log_det)(block, block->spare);
        }
        for (int64_t j = 0; j < d; j++)
            mean[j] = block->cell[j] - (block->mu0[j] + share * block->shift[j]);
        q = NAME(mvn_solve)(block, factor, mean, y);
    }
    if (n_gaps == 0) return q;
    double *square = block->lower, *product = block->partial;
    if (n_gaps == 1) {
        double share[2] = {0.0, 0.0}, length[2] = {0.0, 0.0};
        for (int64_t i = gap[0]; i < d; i++) {
            const double w = factor[i * stride + gap[0]];
            share[i % 2] += w * y[i];
            length[i % 2] += w * w;
        }
        product[0] = share[0] + share[1];
        square[0] = length[0] + length[1] + across * product[0] * product[0];
        product[0] *= scale;
        return NAME(gaps_explain)(square, stride, product, 1, q, log_det);
    }
    for (int64_t l = 0; l < n_gaps; l++) {
        product[l] = 0.0;
        for (int64_t i = gap[l]; i < d; i++) product[l] += factor[i * stride + gap[l]] * y[i];
    }
    for (int64_t l = 0; l < n_gaps; l++)
        for (int64_t m = 0; m <= l; m++) { /* gaps fall: the m-th begins below the l-th */
            double sum = across * product[l] * product[m];
            for (int64_t i = gap[m]; i < d; i++)
                sum += factor[i * stride + gap[l]] * factor[i * stride + gap[m]];
            square[l * stride + m] = sum;
        }
    for (int64_t l = 0; l < n_gaps; l++) product[l] *= scale;
    return NAME(gaps_explain)(square, stride, product, n_gaps, q, log_det);
}

/* Log predictive of a row of slot k in that slot without the row, given its weight. The constant
 * has the rate of weights 1. */
static float NAME(mvn_score_without)(MvnBlock *block, const char *row, int64_t k, double weight,
                                     int64_t n_gaps)
{
    const int64_t n = block->size[k];
    const double kappa = *block->kappa0 + block->total[k];
    const double rate = weight * (kappa - weight) / kappa;
    double log_det;
    const double q = NAME(mvn_without)(block, row, k, weight, n_gaps, &log_det);
    return (float)(NAME(mvn_memo)(block, n - 1, n_gaps) + log_det -
                   0.5 * (*block->nu0 + (double)(n - n_gaps)) * log1p(rate * q));
}

/* Log predictive of a row in slot k < 2 from the factor itself, without the cache; y = W e stays in
 * block->pair for `mvn_join`. The constant has the rate of weights 1. */
static double NAME(mvn_weigh)(MvnBlock *block, const char *row, int64_t k, double weight)
{
    const int64_t n = block->size[k];
    const double kappa = *block->kappa0 + block->total[k];
    NAME(mvn_deviation)(block, row, k, 1.0);
    const double q = NAME(mvn_solve)(block, block->factor + k * block->d * block->stride,
                                     block->vector, block->pair + k * block->stride);
    const double t = weight * kappa / (weight + kappa) * q;
    return NAME(mvn_memo)(block, n, 0) + block->log_det[k] -
           0.5 * (*block->nu0 + (double)n + 1.0) * log1p(t < 1e300 ? t : 1e300);
}

/* Add a row that was just weighed to slot k < 2: all but the cache. */
static void NAME(mvn_join)(MvnBlock *block, const char *row, int64_t k, double weight)
{
    const int64_t d = block->d, stride = block->stride;
    const double kappa = *block->kappa0 + block->total[k];
    const double root = sqrt(weight * kappa / (kappa + weight));
    double *p = block->pair + k * stride, *factor = block->factor + k * d * stride;
    for (int64_t i = 0; i < d; i++) p[i] *= root;
    NAME(mvn_enter)(block, row, k, weight);
    block->updates[k]++;
    if (block->updates[k] >= MVN_UPDATES || !NAME(mvn_rank_one_along)(block, factor, p, 1.0))
        NAME(mvn_refactor)(block, k);
    block->log_det[k] = NAME(mvn_log_det)(block, factor);
}
