/* SPDX-License-Identifier: BSD-3-Clause */
#include "../_native/_lanes.h"

/* Slot k with probability proportional to exp(log_prior[k] + beta log_lik[k]): inverse CDF of the
 * uniform u. weight: scratch, written. */
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
    LN sum = NAME(set1)(0.0f);
    for (int64_t tile = 0; tile < n_tiles; tile++) {
        LN w = NAME(exp)(NAME(sub)(NAME(load)(weight + tile * LANES), top));
        NAME(store)(weight + tile * LANES, w);
        sum = NAME(add)(sum, w);
    }
    float left = (float)u * NAME(reduce_add)(sum);
    for (int64_t k = 0; k < n_tiles * LANES; k++) {
        left -= weight[k];
        if (left < 0.0f) return k; /* never at a slot of weight zero */
    }
    int64_t last = n_tiles * LANES - 1; /* rounding comes here, and scores that are no numbers */
    while (last >= 0 && !(weight[last] > 0.0f)) last--;
    if (last >= 0) return last;
    last = n_tiles * LANES - 1;
    while (last > 0 && !(log_prior[last] > -INFINITY)) last--; /* the open slot has a prior */
    return last;
}
