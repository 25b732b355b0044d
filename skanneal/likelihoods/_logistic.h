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

typedef double (*log_sum_exp_t)(const double *, const double *, double, double, int64_t);
typedef double (*row_loss_t)(const double *, const double *, double, double, const double *,
                             const double *, const double *, int64_t);
static const log_sum_exp_t log_sum_exp_v[] = VARIANTS(log_sum_exp);
static const row_loss_t row_loss_v[] = VARIANTS(row_loss);
#endif
