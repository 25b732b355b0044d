/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the multinomial family: what Multinomial (_multinomial.pyx) shares with its
 * kernels. A row is a list of entries, pairs (column, count) of the counts above 0.
 */
#ifndef SKANNEAL_MULTINOMIAL_H
#define SKANNEAL_MULTINOMIAL_H
#include <stdint.h>

typedef struct {
    int64_t n_slots;
    const float *weight;      /* (n_columns, n_slots) pseudo-count + count */
    const double *total;      /* (n_slots,) their sum over the columns, T */
    const double *log_total;  /* (n_slots,) log T */
    const double *rest_total; /* (n_slots,) log Gamma(T) less Stirling's formula */
} MultinomialBlock;

static inline int lowest_bit(uint64_t x) { return __builtin_ctzll(x); } /* x not 0 */

#undef KERNELS
#define KERNELS "../families/_multinomial_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(multinomial_add_scores);
#endif
