/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Features come in tiles of 16 and groups of four tiles. In many dimensions all but a few features
 * have no weight worth the name: a group whose largest score lies far below the row's largest is
 * never exponentiated, so a draw costs little more than reading the scores.
 */
#include "../_native/_lanes.h"

#define GROUP 4        /* tiles */
#define NEGLIGIBLE -87.0f /* log weights below the largest by more are zero in float32 */

#undef WEIGHTED
#undef ABOVE
#define WEIGHTED 0
#define ABOVE 1

/* scratch: one float per feature, then the groups' largest scores and sums.
 * rule WEIGHTED: log weights  score + log_weight; ABOVE: score where log_weight > bound. */
INLINE int64_t NAME(draw_by)(const int rule, const float *score, const float *log_weight,
                             float bound, int64_t n_tiles, double u, float *scratch,
                             double *log_total)
{
    const int64_t n_groups = (n_tiles + GROUP - 1) / GROUP;
    float *largest = scratch + n_tiles * LANES, *sum = largest + n_groups;
    float top = -INFINITY;
    for (int64_t g = 0; g < n_groups; g++) {
        const int64_t stop = (g + 1) * GROUP < n_tiles ? (g + 1) * GROUP : n_tiles;
        LN best = NAME(set1)(-INFINITY);
        for (int64_t tile = g * GROUP; tile < stop; tile++) {
            LN s = NAME(load)(score + tile * LANES), w = NAME(load)(log_weight + tile * LANES);
            if (rule == WEIGHTED)
                s = NAME(add)(s, w);
            else
                s = NAME(select)(NAME(greater)(w, NAME(set1)(bound)), s, NAME(set1)(-INFINITY));
            NAME(store)(scratch + tile * LANES, s);
            best = NAME(max)(best, s);
        }
        largest[g] = NAME(reduce_max)(best);
        if (largest[g] > top) top = largest[g];
    }
    if (!(top > -INFINITY)) return -1;
    double total = 0.0;
    for (int64_t g = 0; g < n_groups; g++) {
        sum[g] = 0.0f;
        if (largest[g] - top < NEGLIGIBLE) continue;
        const int64_t stop = (g + 1) * GROUP < n_tiles ? (g + 1) * GROUP : n_tiles;
        LN all = NAME(set1)(0.0f);
        for (int64_t tile = g * GROUP; tile < stop; tile++) {
            LN w = NAME(exp)(NAME(sub)(NAME(load)(scratch + tile * LANES), NAME(set1)(top)));
            NAME(store)(scratch + tile * LANES, w);
            all = NAME(add)(all, w);
        }
        sum[g] = NAME(reduce_add)(all);
        total += sum[g];
    }
    if (!(total > 0.0 && total < INFINITY)) return -1; /* a score is no number */
    *log_total = top + log(total);
    double left = u * total;
    int64_t last = -1;
    for (int64_t g = 0; g < n_groups; g++) {
        if (sum[g] == 0.0f) continue;
        if (left >= sum[g]) {
            left -= sum[g];
            last = g;
            continue;
        }
        const int64_t stop = (g + 1) * GROUP < n_tiles ? (g + 1) * GROUP : n_tiles;
        for (int64_t k = g * GROUP * LANES; k < stop * LANES; k++) {
            left -= scratch[k];
            if (left < 0.0) return k;
        }
        last = g;
        left = 0.0;
    }
    /* rounding alone comes here: the last feature with a weight */
    int64_t k = ((last + 1) * GROUP < n_tiles ? (last + 1) * GROUP : n_tiles) * LANES - 1;
    while (k > 0 && !(scratch[k] > 0.0f)) k--;
    return k;
}

/* Feature k with probability proportional to exp(score[k] + log_weight[k]); -1 if all are 0, or if
 * some are NaN or infinite: then log_total is left as it was. */
static int64_t NAME(draw_feature)(const float *score, const float *log_weight, float unused,
                                  int64_t n_tiles, double u, float *scratch, double *log_total)
{
    return NAME(draw_by)(WEIGHTED, score, log_weight, unused, n_tiles, u, scratch, log_total);
}

/* Feature k with probability proportional to exp(score[k]) where log_weight[k] > bound. */
static int64_t NAME(draw_above)(const float *score, const float *log_weight, float bound,
                                int64_t n_tiles, double u, float *scratch, double *log_total)
{
    return NAME(draw_by)(ABOVE, score, log_weight, bound, n_tiles, u, scratch, log_total);
}

/* The SHORT features of largest score + log_weight and their scores; -1 and -inf if fewer. */
static void NAME(shortlist)(const float *score, const float *log_weight, int64_t n_tiles,
                            float *scratch, int32_t *feature, float *value)
{
    float key[SHORT];
    for (int i = 0; i < SHORT; i++) {
        key[i] = value[i] = -INFINITY;
        feature[i] = -1;
    }
    for (int64_t first = 0; first < n_tiles; first += GROUP) {
        const int64_t stop = first + GROUP < n_tiles ? first + GROUP : n_tiles;
        LN best = NAME(set1)(-INFINITY);
        for (int64_t tile = first; tile < stop; tile++) {
            LN s = NAME(add)(NAME(load)(score + tile * LANES),
                             NAME(load)(log_weight + tile * LANES));
            NAME(store)(scratch + tile * LANES, s);
            best = NAME(max)(best, s);
        }
        if (!(NAME(reduce_max)(best) > key[SHORT - 1])) continue;
        for (int64_t k = first * LANES; k < stop * LANES; k++) {
            if (!(scratch[k] > key[SHORT - 1])) continue;
            int i = SHORT - 1;
            for (; i > 0 && scratch[k] > key[i - 1]; i--) {
                key[i] = key[i - 1];
                value[i] = value[i - 1];
                feature[i] = feature[i - 1];
            }
            key[i] = scratch[k];
            value[i] = score[k];
            feature[i] = (int32_t)k;
        }
    }
}
