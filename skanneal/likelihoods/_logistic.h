/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the logistic-normal likelihood: see _logistic_kernels.h.
 */
#ifndef SKANNEAL_LOGISTIC_H
#define SKANNEAL_LOGISTIC_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#undef KERNELS
#define KERNELS "../likelihoods/_logistic_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(log_sum_exp);
DISPATCH(row_loss);
#endif
