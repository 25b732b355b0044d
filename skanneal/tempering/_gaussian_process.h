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

typedef void (*gp_covariance_t)(const GpRows *, const GpRows *, int, double, int64_t, double *,
                                double *);
typedef void (*gp_contract_t)(const GpRows *, int64_t, const double *, const double *,
                              const double *, double *, double *);
static const gp_covariance_t gp_covariance_v[] = VARIANTS(gp_covariance);
static const gp_contract_t gp_contract_v[] = VARIANTS(gp_contract);
#endif
