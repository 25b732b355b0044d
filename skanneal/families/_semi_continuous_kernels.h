/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Log probabilities of a row's outcomes, in all slots; logarithms of one slot's counts.
 */
#include "../_native/_lanes.h"
#include "../_native/_log_wide.h"

/* Add log(own + count) - log(all + n) of each cell that is not missing to out, (n_tiles, 16).
 * outcome: (n_features,) rows of log_own, -1 missing; log_own (n_outcomes, n_slots), log_all
 * (n_features, n_slots). */
static void NAME(semi_continuous_add_outcomes)(const int32_t *outcome, int64_t n_features,
                                               const float *log_own, const float *log_all,
                                               int64_t n_slots, int64_t n_tiles, float *out)
{
    for (int64_t at = 0; at < n_tiles * LANES; at += LANES) {
        LN score = NAME(load)(out + at);
        for (int64_t f = 0; f < n_features; f++) {
            if (outcome[f] < 0) continue;
            score = NAME(add)(score, NAME(sub)(NAME(load)(log_own + outcome[f] * n_slots + at),
                                               NAME(load)(log_all + f * n_slots + at)));
        }
        NAME(store)(out + at, score);
    }
}

/* Replace positive numbers by their logarithms. */
static void NAME(semi_continuous_logs)(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = NAME(log_wide)(x[i]);
}
