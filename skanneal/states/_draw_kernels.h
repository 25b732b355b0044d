/* SPDX-License-Identifier: BSD-3-Clause */
#include "../_native/_lanes.h"

/* Slot k with probability proportional to exp(log_prior[k] + beta log_lik[k]): inverse CDF of the
 * uniform u. weight: scratch of a number per slot and one per tile. */
static int64_t NAME(draw_slot)(const float *log_prior, const float *log_lik, float beta,
                               int64_t n_tiles, double u, float *weight)
{
    const LN power = NAME(set1)(beta);
    LN largest = NAME(fma)(power, NAME(load)(log_lik), NAME(load)(log_prior));
    NAME(store)(weight, largest);
    for (int64_t tile = 1; tile < n_tiles; tile++) {
        LN s = NAME(fma)(power, NAME(load)(log_lik + tile * LANES),
                         NAME(load)(log_prior + tile * LANES));
        NAME(store)(weight + tile * LANES, s);
        largest = NAME(max)(largest, s);
    }
    const LN top = NAME(set1)(NAME(reduce_max)(largest));
    float *rise = weight + n_tiles * LANES; /* sum of the weights as far as each tile's end */
    float total = 0.0f;
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        LN w = NAME(exp)(NAME(sub)(NAME(load)(weight + tile * LANES), top));
        NAME(store)(weight + tile * LANES, w);
        rise[tile] = total += NAME(reduce_add)(w);
    }
    /* Tile, quarter of the tile and slot, each found by counting: a branch would be foretold
     * wrongly at most draws. Rounding may lead just past a weight, to one of zero. */
    float left = (float)u * total;
    int64_t k = 0;
    for (int64_t tile = 0; tile < n_tiles - 1; tile++) k += left >= rise[tile];
    left -= k > 0 ? rise[k - 1] : 0.0f;
    k *= LANES;
    const float *w = weight + k;
    const float a = (w[0] + w[1]) + (w[2] + w[3]), b = a + ((w[4] + w[5]) + (w[6] + w[7]));
    const float c = b + ((w[8] + w[9]) + (w[10] + w[11]));
    const int quarter = (left >= a) + (left >= b) + (left >= c);
    const float before[4] = {0.0f, a, b, c};
    left -= before[quarter];
    k += 4 * quarter;
    w += 4 * quarter;
    const float two = w[0] + w[1], three = two + w[2];
    k += (left >= w[0]) + (left >= two) + (left >= three);
    while (k >= 0 && !(weight[k] > 0.0f)) k--;
    if (k >= 0) return k;
    k = n_tiles * LANES - 1; /* scores that are no numbers: the open slot has a prior */
    while (k > 0 && !(log_prior[k] > -INFINITY)) k--;
    return k;
}
