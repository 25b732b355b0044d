/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the Gaussian process (_gaussian_process_bound.pyx) shares with its kernels.
 */
#ifndef SKANNEAL_GAUSSIAN_PROCESS_H
#define SKANNEAL_GAUSSIAN_PROCESS_H
#include <stdint.h>

#define GP_RBF 0
#define GP_MATERN32 1
#define GP_MATERN52 2

/* Rows over their length scales: one coordinate's cells side by side, `stride` of them, aligned to
 * 64 bytes; finite beyond the n-th. */
typedef struct {
    int64_t n, d, stride;
    const double *scaled;
} GpRows;

#undef KERNELS
#define KERNELS "../tempering/_gaussian_process_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(gp_covariance);
DISPATCH(gp_contract);
#endif
