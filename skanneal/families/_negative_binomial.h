/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the negative binomial family: scores of counts that are not large.
 */
#ifndef SKANNEAL_NEGATIVE_BINOMIAL_H
#define SKANNEAL_NEGATIVE_BINOMIAL_H
#include <stdint.h>

#define NEGATIVE_PARTS 5 /* log c, 1/B, 1/E, log(B/E), rest(E) - rest(B) of 16 slots each */

#undef KERNELS
#define KERNELS "../families/_negative_binomial_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(negative_add_scores);
#endif
