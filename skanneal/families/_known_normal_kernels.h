/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Normal rows of known covariance (doc/algorithms.md, "Families"). In
 * z = A (x - m0) the coordinates of a row are independent with unit variance, and those of its
 * cluster's mean with prior variances v: with n rows of sum s,
 *     location = v s / (1 + n v),  precision = (1 + n v) / (1 + (n + 1) v),
 *     log p = log |A| + sum_f (log(precision / 2 pi) - precision (z - location)^2) / 2.
 * Where all v are equal the precision is one number per slot.
 */
#include "_gaps_kernels.h"

#define KNOWN_LIMIT 1e37f /* a bound that keeps some slot possible for any row */
#define KNOWN_PARTS 4 /* sums of squares run over every fourth coordinate: a row enters one slot
                         or many in the same order of additions */
#undef KNOWN_TILES /* tiles side by side, as many as the registers hold */
#if REGISTER == 64
#define KNOWN_TILES 3
#else
#define KNOWN_TILES 1
#endif

/* z = A cell. */
INLINE void NAME(known_transform)(KnownBlock *block)
{
    const int64_t d = block->d, stride = block->stride;
    const double *restrict cell = block->cell;
    double *restrict z = block->z;
    if (block->diagonal) {
        for (int64_t f = 0; f < d; f++) z[f] = block->rotation[f] * cell[f];
    } else {
        for (int64_t f = 0; f < d; f++) {
            const double *restrict a = block->rotation + f * stride;
            double sum[8] = {0};
            for (int64_t j = 0; j < stride; j += 8)
                for (int l = 0; l < 8; l++) sum[l] += a[j + l] * cell[j + l];
            z[f] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
                   ((sum[1] + sum[5]) + (sum[3] + sum[7]));
        }
    }
    for (int64_t f = 0; f < d; f++) block->z_f[f] = (float)z[f];
}

/* Compute z of the row unless it is there already: a row step needs it up to four times. */
INLINE void NAME(known_read)(KnownBlock *block, const char *row)
{
    const int64_t d = block->d;
    if (block->row == row) return;
    block->row = block->fickle ? NULL : row;
    double *restrict cell = block->cell, *restrict z = block->z;
    if (block->adjacent && block->diagonal) { /* all at once */
        const float *restrict cells = (const float *)(row + block->offset[0]);
        const double *restrict centre = block->centre, *restrict scale = block->rotation;
        float *restrict z_f = block->z_f;
        for (int64_t f = 0; f < d; f++) {
            const double value = scale[f] * ((double)cells[f] - centre[f]);
            z[f] = value;
            z_f[f] = (float)value;
        }
        return;
    }
    for (int64_t f = 0; f < d; f++) cell[f] = (double)*(const float *)(row + block->offset[f]);
    for (int64_t f = 0; f < d; f++) cell[f] -= block->centre[f];
    NAME(known_transform)(block);
}

/* Sums of squared distances of n tiles of 16 slots that stand `apart` numbers from each other, each
 * coordinate's times its half precision unless `equal`. Both n and `equal` are constants wherever
 * this is called, so that each loop is without a branch. */
INLINE void NAME(known_distances)(const float *z, const float *location, const float *precision,
                                  int64_t d, int64_t apart, int equal, const int n, LN *out)
{
    LN sum[KNOWN_TILES][KNOWN_PARTS]; /* several, so that no addition waits for the one before */
    for (int t = 0; t < n; t++)
        for (int part = 0; part < KNOWN_PARTS; part++) sum[t][part] = NAME(set1)(0.0f);
    int64_t f = 0;
#define TERM(part, f)                                                                       \
    {                                                                                       \
        const LN cell = NAME(set1)(z[f]);                                                   \
        for (int t = 0; t < n; t++) {                                                       \
            const int64_t at = t * apart + (f) * LANES;                                     \
            LN e = NAME(sub)(cell, NAME(load)(location + at));                              \
            LN scaled = equal ? e : NAME(mul)(e, NAME(load)(precision + at));               \
            sum[t][part] = NAME(fma)(e, scaled, sum[t][part]);                              \
        }                                                                                   \
    }
    for (; f + KNOWN_PARTS <= d; f += KNOWN_PARTS) {
        TERM(0, f);
        TERM(1, f + 1);
        TERM(2, f + 2);
        TERM(3, f + 3);
    }
    for (; f < d; f++) TERM(0, f);
#undef TERM
    for (int t = 0; t < n; t++)
        out[t] = NAME(add)(NAME(add)(sum[t][0], sum[t][2]), NAME(add)(sum[t][1], sum[t][3]));
}

/* That of one tile. */
INLINE LN NAME(known_distance)(const float *z, const float *location, const float *precision,
                               int64_t d, int equal)
{
    LN out[1];
    NAME(known_distances)(z, location, precision, d, 0, equal, 1, out);
    return out[0];
}

/* The scores of n tiles, a constant where this is called, from `tile` on. */
INLINE void NAME(known_add_tiles)(KnownBlock *block, int64_t tile, const int n, float *out)
{
    const int64_t d = block->d, apart = d * LANES;
    const LN limit = NAME(set1)(KNOWN_LIMIT);
    const float *scalar = block->scalar + tile * 2 * LANES;
    LN q[KNOWN_TILES];
    if (block->equal)
        NAME(known_distances)(block->z_f, block->location + tile * apart, NULL, d, apart, 1, n, q);
    else
        NAME(known_distances)(block->z_f, block->location + tile * apart,
                              block->precision + tile * apart, d, apart, 0, n, q);
    out += tile * LANES;
    for (int t = 0; t < n; t++, scalar += 2 * LANES, out += LANES) {
        if (block->equal) q[t] = NAME(mul)(q[t], NAME(load)(scalar + LANES));
        q[t] = NAME(select)(NAME(greater)(limit, q[t]), q[t], limit);
        LN score = NAME(sub)(NAME(load)(scalar), q[t]);
        NAME(store)(out, NAME(add)(NAME(load)(out), score));
    }
}

static void NAME(known_add_scores)(KnownBlock *block, const char *row, int64_t n_tiles, float *out)
{
    NAME(known_read)(block, row);
    int64_t tile = 0;
    for (; tile + KNOWN_TILES <= n_tiles; tile += KNOWN_TILES)
        NAME(known_add_tiles)(block, tile, KNOWN_TILES, out);
    for (; tile < n_tiles; tile++) NAME(known_add_tiles)(block, tile, 1, out);
}

/* The same scores from the observed cells of a row that lacks the cells block->gap, where every
 * coordinate is of one cell: those of the others, from gap to gap. A density loses of each missing
 * one log(A_ff^2 precision / 2 pi) / 2. */
static void NAME(known_add_observed_diagonal)(KnownBlock *block, int64_t n_gaps, int64_t n_tiles,
                                              float *out)
{
    const int64_t d = block->d, *gap = block->gap;
    const LN limit = NAME(set1)(KNOWN_LIMIT), half = NAME(set1)(0.5f);
    /* of halves of the precision */
    float logs = -0.5f * 1.14472989f * (float)n_gaps;
    for (int64_t l = 0; l < n_gaps; l++) logs += block->log_scale[gap[l]];
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *location = block->location + tile * d * LANES;
        const float *precision = block->precision + (block->equal ? 0 : tile * d * LANES);
        const float *scalar = block->scalar + tile * 2 * LANES;
        LN q = NAME(set1)(0.0f), halves = q;
        for (int64_t l = n_gaps, first = 0; l >= 0; l--) { /* gaps fall */
            const int64_t last = l > 0 ? gap[l - 1] : d, n = last - first;
            const float *z = block->z_f + first, *of = location + first * LANES;
            q = NAME(add)(q, block->equal ? NAME(known_distance)(z, of, NULL, n, 1)
                                          : NAME(known_distance)(z, of, precision + first * LANES,
                                                                 n, 0));
            if (l > 0 && !block->equal)
                halves = NAME(add)(halves, NAME(log)(NAME(load)(precision + last * LANES)));
            first = last + 1;
        }
        if (block->equal) {
            const LN common = NAME(load)(scalar + LANES);
            q = NAME(mul)(q, common);
            halves = NAME(mul)(NAME(set1)((float)n_gaps), NAME(log)(common));
        }
        q = NAME(select)(NAME(greater)(limit, q), q, limit);
        LN score = NAME(sub)(NAME(load)(scalar), NAME(fma)(half, halves, NAME(set1)(logs)));
        score = NAME(sub)(score, q);
        NAME(store)(out + tile * LANES, NAME(add)(NAME(load)(out + tile * LANES), score));
    }
}

/* The same scores from the observed cells of a row that lacks the cells block->gap (_gaps.h). The
 * columns are those of A; the half precisions are weights, or a common factor if they are equal. */
static void NAME(known_add_observed)(KnownBlock *block, const char *row, int64_t n_gaps,
                                     int64_t n_tiles, float *out)
{
    const int64_t d = block->d, *gap = block->gap;
    const LN limit = NAME(set1)(KNOWN_LIMIT), half = NAME(set1)(0.5f);
    /* of each gap's half logarithms: 2 of the half precision less 2 pi of the density */
    const LN log_pi = NAME(set1)(-1.14472989f), gaps = NAME(set1)((float)n_gaps);
    float *u = block->spanned + d * d * LANES;
    int64_t first[d], last[d];
    const int spoilt = n_gaps > 1; /* columns are, by those before them */
    if (block->diagonal) {
        NAME(known_read)(block, row);
        NAME(known_add_observed_diagonal)(block, n_gaps, n_tiles, out);
        return;
    }
    block->row = NULL;
    for (int64_t f = 0; f < d; f++) {
        const double cell = (double)*(const float *)(row + block->offset[f]);
        block->cell[f] = cell == cell ? cell - block->centre[f] : 0.0;
    }
    NAME(known_transform)(block);
    for (int64_t l = 0; l < n_gaps; l++) {
        first[l] = 0;
        last[l] = d;
    }
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        const float *location = block->location + tile * d * LANES;
        const float *scalar = block->scalar + tile * 2 * LANES;
        const float *precision = block->equal ? NULL : block->precision + tile * d * LANES;
        for (int64_t f = 0; f < d; f++)
            NAME(store)(u + f * LANES,
                        NAME(sub)(NAME(set1)(block->z_f[f]), NAME(load)(location + f * LANES)));
        for (int64_t l = 0; l < (spoilt || tile == 0 ? n_gaps : 0); l++)
            for (int64_t f = first[l]; f < last[l]; f++) {
                const double a = block->rotation[f * block->stride + gap[l]];
                NAME(store)(block->spanned + (l * d + f) * LANES, NAME(set1)((float)a));
            }
        LN lengths, q;
        if (block->equal) {
            const LN common = NAME(load)(scalar + LANES);
            q = NAME(gaps_square)(block->spanned, first, last, n_gaps, d, NULL, u, &lengths);
            q = NAME(mul)(q, common);
            lengths = NAME(fma)(NAME(mul)(half, gaps), NAME(log)(common), lengths);
        } else {
            q = NAME(gaps_square)(block->spanned, first, last, n_gaps, d, precision, u, &lengths);
        }
        lengths = NAME(fma)(NAME(mul)(half, gaps), log_pi, lengths);
        q = NAME(select)(NAME(greater)(limit, q), q, limit);
        LN score = NAME(sub)(NAME(sub)(NAME(load)(scalar), lengths), q);
        NAME(store)(out + tile * LANES, NAME(add)(NAME(load)(out + tile * LANES), score));
    }
}

/* Compute the normaliser for a cluster of n rows into its place in a direct-mapped table. */
static void NAME(known_memorise)(KnownBlock *block, int64_t n, int64_t at)
{
    double logs = 0.0, rows = (double)n;
    const int64_t last = block->equal ? 1 : block->d;
    for (int64_t f = 0; f < last; f++) {
        const double v = block->variance[f];
        logs += log((1.0 + rows * v) / (1.0 + (rows + 1.0) * v));
    }
    if (block->equal) logs *= (double)block->d;
    block->memo_size[at] = n;
    block->memo_value[at] = block->log_det + 0.5 * (logs - 1.8378770664093453 * (double)block->d);
}

INLINE double NAME(known_constant)(KnownBlock *block, int64_t n)
{
    const int64_t at = n & (KNOWN_MEMO - 1);
    if (block->memo_size[at] != n) NAME(known_memorise)(block, n, at);
    return block->memo_value[at];
}

/* The cached numbers of a slot of n rows that are one per slot. */
INLINE void NAME(known_scalars)(KnownBlock *block, int64_t k)
{
    float *scalar = block->scalar + k / LANES * 2 * LANES + k % LANES;
    const double n = (double)block->size[k], v = block->variance[0];
    scalar[0] = (float)NAME(known_constant)(block, block->size[k]);
    scalar[LANES] = (float)(0.5 * ((1.0 + n * v) / (1.0 + (n + 1.0) * v)));
}

/* Slot k's cache as a pure function of its statistics and of the hyperparameters. */
static void NAME(known_refresh)(KnownBlock *block, int64_t k)
{
    const int64_t d = block->d, first = k / LANES * d * LANES + k % LANES;
    const double n = (double)block->size[k], *variance = block->variance;
    const double *restrict sum = block->sum + first;
    float *restrict location = block->location + first, *restrict precision = block->precision + first;
    if (block->equal) {
        const double share = variance[0] / (1.0 + n * variance[0]);
        for (int64_t f = 0; f < d; f++) location[f * LANES] = (float)(share * sum[f * LANES]);
    } else {
        for (int64_t f = 0; f < d; f++) {
            const double v = variance[f];
            location[f * LANES] = (float)(v / (1.0 + n * v) * sum[f * LANES]);
            precision[f * LANES] = (float)(0.5 * ((1.0 + n * v) / (1.0 + (n + 1.0) * v)));
        }
    }
    NAME(known_scalars)(block, k);
}

/* Add (sign 1) or take out (sign -1) one row; an emptied slot is as new. */
static void NAME(known_update)(KnownBlock *block, const char *row, int64_t k, int sign)
{
    NAME(known_read)(block, row);
    const int64_t d = block->d, n = block->size[k] + sign;
    double *restrict sum = block->sum + k / LANES * d * LANES + k % LANES;
    const double *restrict z = block->z;
    const double before = (double)block->size[k], inverse = before > 0.0 ? 1.0 / before : 0.0;
    block->size[k] = n;
    if (n == 0) {
        for (int64_t f = 0; f < d; f++) sum[f * LANES] = 0.0;
        block->squares[k] = 0.0;
    } else {
        double part[KNOWN_PARTS] = {0};
        for (int64_t f = 0; f < d; f++) {
            const double delta = z[f] - sum[f * LANES] * inverse;
            part[f % KNOWN_PARTS] += delta * delta;
            sum[f * LANES] += sign * z[f];
        }
        const double total = (part[0] + part[2]) + (part[1] + part[3]);
        const double squares = block->squares[k] + sign * (before / (double)n * total);
        block->squares[k] = n > 1 && squares > 0.0 ? squares : 0.0;
    }
    NAME(known_refresh)(block, k);
}

/* Four slots side by side: a permutation program seldom uses more. */
#define FOUR NAME(four)
#define FOUR_MASK NAME(four_mask)
#define FOUR_FLOATS NAME(four_floats)
typedef double NAME(four) __attribute__((vector_size(32), aligned(32), may_alias));
typedef int64_t NAME(four_mask) __attribute__((vector_size(32), aligned(32), may_alias));
typedef float NAME(four_floats) __attribute__((vector_size(16), aligned(16), may_alias));

/* Add a row to those of the slots k .. k + 3 that have rows and to `opened`: what known_update
 * does, at once. The others are empty and become as new. `equal` is a constant where this is
 * called. */
INLINE void NAME(known_extend_four)(KnownBlock *block, int64_t k, int64_t opened, int equal)
{
    const int64_t d = block->d, first = k / LANES * d * LANES + k % LANES;
    const double *restrict z = block->z, *restrict variance = block->variance;
    double *restrict sums = block->sum + first;
    float *restrict locations = block->location + first, *restrict precisions = block->precision;
#define DOUBLES(n) ((FOUR)((n) | 0x4330000000000000) - 0x1p52) /* of whole numbers below 2^52 */
    float *restrict scalar = block->scalar + k / LANES * 2 * LANES + k % LANES;
    FOUR_MASK *size = (FOUR_MASK *)(block->size + k);
    const FOUR_MASK had = *size > 0, live = had | ((FOUR_MASK){k, k + 1, k + 2, k + 3} == opened);
    const FOUR before = DOUBLES(*size), after = DOUBLES(*size - live);
    FOUR part[KNOWN_PARTS];
    *size -= live;
    const FOUR inverse = (FOUR)((FOUR_MASK)(1.0 / before) & had);
    const FOUR share = variance[0] / (1.0 + after * variance[0]);
    for (int p = 0; p < KNOWN_PARTS; p++) part[p] = (FOUR){0};
    if (!equal) precisions += first;
#define HALF_PRECISION(v)                                                                       \
    __builtin_convertvector(                                                                    \
        0.5 * ((1.0 + after * (v)) / (1.0 + (after + 1.0) * (v))), FOUR_FLOATS)
#define ENTER(p, f)                                                                             \
    {                                                                                           \
        const FOUR cell = z[f] - (FOUR){0};                                                     \
        const FOUR sum = (FOUR)(*(FOUR_MASK *)(sums + (f) * LANES) & had);                      \
        const FOUR delta = cell - sum * inverse;                                                \
        const FOUR total = sum + (FOUR)((FOUR_MASK)cell & live);                                \
        FOUR location = share * total;                                                          \
        part[p] += delta * delta;                                                               \
        *(FOUR *)(sums + (f) * LANES) = total;                                                  \
        if (!equal) {                                                                           \
            location = variance[f] / (1.0 + after * variance[f]) * total;                       \
            *(FOUR_FLOATS *)(precisions + (f) * LANES) = HALF_PRECISION(variance[f]);           \
        }                                                                                       \
        *(FOUR_FLOATS *)(locations + (f) * LANES) =                                             \
            __builtin_convertvector(location, FOUR_FLOATS);                                     \
    }
    int64_t f = 0;
    for (; f + KNOWN_PARTS <= d; f += KNOWN_PARTS) {
        ENTER(0, f);
        ENTER(1, f + 1);
        ENTER(2, f + 2);
        ENTER(3, f + 3);
    }
    for (; f < d; f++) ENTER(f % KNOWN_PARTS, f);
#undef ENTER
    *(FOUR_FLOATS *)(scalar + LANES) = HALF_PRECISION(variance[0]);
#undef HALF_PRECISION
#undef DOUBLES
    for (int l = 0; l < 4; l++) scalar[l] = (float)NAME(known_constant)(block, block->size[k + l]);
    const FOUR total = (part[0] + part[2]) + (part[1] + part[3]);
    FOUR *squares = (FOUR *)(block->squares + k);
    *squares = (FOUR)((FOUR_MASK)(*squares + before / after * total) & had);
}

/* Add a row to every slot of the first n_tiles that has rows, and to the empty slot `opened`. */
static void NAME(known_extend)(KnownBlock *block, const char *row, int64_t n_tiles, int64_t opened)
{
    NAME(known_read)(block, row);
    for (int64_t k = 0; k < n_tiles * LANES; k += 4) {
        const int64_t *size = block->size + k;
        if ((size[0] | size[1] | size[2] | size[3]) == 0 && opened / 4 != k / 4) continue;
        if (block->equal)
            NAME(known_extend_four)(block, k, opened, 1);
        else
            NAME(known_extend_four)(block, k, opened, 0);
    }
}

/* z - location of four coordinates, from f on, of a row in its slot k without the row, which has
 * `rest` other rows; zeros beyond the last coordinate. They are gathered one by one, as a compiler
 * that vectorises the loop over coordinates reads all 16 slots of each. `equal` is a constant where
 * this is called. */
INLINE void NAME(known_errors_without)(const KnownBlock *block, int64_t k, int64_t f, double rest,
                                       int equal, FOUR *error, FOUR *precision)
{
    const double *sum = block->sum + k / LANES * block->d * LANES + k % LANES;
    const double first = block->variance[0];
    FOUR z = {0}, total = {0}, v = {first, first, first, first};
    for (int l = 0; l < 4 && f + l < block->d; l++) {
        z[l] = block->z[f + l];
        total[l] = sum[(f + l) * LANES];
        if (!equal) v[l] = block->variance[f + l];
    }
    const FOUR share = v / (1.0 + rest * v);
    *precision = 1.0 / (1.0 + share);
    *error = z - share * (total - z);
}

/* Sum over all coordinates of precision (z - location)^2. */
INLINE double NAME(known_square_without)(const KnownBlock *block, int64_t k, double rest, int equal)
{
    FOUR part = {0}, e, precision;
    for (int64_t f = 0; f < block->d; f += 4) {
        NAME(known_errors_without)(block, k, f, rest, equal, &e, &precision);
        part += precision * e * e;
    }
    return (part[0] + part[2]) + (part[1] + part[3]);
}

/* Log predictive of a row of slot k in that slot without the row. */
static float NAME(known_score_without)(KnownBlock *block, const char *row, int64_t k)
{
    NAME(known_read)(block, row);
    const double rest = (double)(block->size[k] - 1);
    const double q = block->equal ? NAME(known_square_without)(block, k, rest, 1)
                                  : NAME(known_square_without)(block, k, rest, 0);
    return (float)(NAME(known_constant)(block, block->size[k] - 1) -
                   (0.5 * q < KNOWN_LIMIT ? 0.5 * q : KNOWN_LIMIT));
}
/* The same of the row's cells but block->gap; `row` has the fills that the slot holds. */
static float NAME(known_score_observed_without)(KnownBlock *block, const char *row, int64_t k,
                                                int64_t n_gaps)
{
    NAME(known_read)(block, row);
    const int64_t d = block->d, stride = block->stride, *gap = block->gap;
    const double rest = (double)(block->size[k] - 1);
    double score = NAME(known_constant)(block, block->size[k] - 1) +
                   0.5 * 1.8378770664093453 * (double)n_gaps;
    double precision[d + 3], e[d + 3]; /* whole fours */
    FOUR part = {0}, four, p;
    for (int64_t f = 0; f < d; f += 4) {
        if (block->equal)
            NAME(known_errors_without)(block, k, f, rest, 1, &four, &p);
        else
            NAME(known_errors_without)(block, k, f, rest, 0, &four, &p);
        memcpy(e + f, &four, sizeof four);
        memcpy(precision + f, &p, sizeof p);
    }
    if (block->diagonal)
        for (int64_t l = 0; l < n_gaps; l++) {
            const int64_t f = gap[l];
            e[f] = 0.0;
            score -= 0.5 * log(precision[f]) + block->log_scale[f];
        }
    for (int64_t f = 0; f < d; f += 4) {
        memcpy(&four, e + f, sizeof four);
        memcpy(&p, precision + f, sizeof p);
        part += p * four * four;
    }
    double q = (part[0] + part[2]) + (part[1] + part[3]);
    if (!block->diagonal) {
        double *square = (double *)block->spanned, product[n_gaps];
        for (int64_t l = 0; l < n_gaps; l++) {
            const double *own = block->rotation + gap[l];
            product[l] = 0.0;
            for (int64_t f = 0; f < d; f++) product[l] += own[f * stride] * precision[f] * e[f];
            for (int64_t m = 0; m <= l; m++) {
                const double *other = block->rotation + gap[m];
                double value = 0.0;
                for (int64_t f = 0; f < d; f++)
                    value += precision[f] * own[f * stride] * other[f * stride];
                square[l * d + m] = value;
            }
        }
        q = NAME(gaps_explain)(square, d, product, n_gaps, q, &score);
    }
    return (float)(score - (0.5 * q < KNOWN_LIMIT ? 0.5 * q : KNOWN_LIMIT));
}
#undef FOUR
#undef FOUR_MASK
#undef FOUR_FLOATS
