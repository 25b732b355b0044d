/* SPDX-License-Identifier: BSD-3-Clause */
#include "../_lanes.h"

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
    double left = u * (double)NAME(reduce_add)(sum);
    int64_t last = 0;
    for (int64_t k = 0; k < n_tiles * LANES; k++) {
        if (weight[k] > 0.0f) {
            last = k;
            left -= (double)weight[k];
            if (left < 0.0) return k;
        }
    }
    return last; /* rounding alone comes here */
}
