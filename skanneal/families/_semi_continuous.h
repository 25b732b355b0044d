/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the semi-continuous family: what it adds to the scores of the normal family.
 */
#ifndef SKANNEAL_SEMI_CONTINUOUS_H
#define SKANNEAL_SEMI_CONTINUOUS_H
#include <stdint.h>

#undef KERNELS
#define KERNELS "../families/_semi_continuous_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(semi_continuous_add_outcomes);
DISPATCH(semi_continuous_logs);
#endif
