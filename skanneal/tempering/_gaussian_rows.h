/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled loops of _gaussian_rows.pyx, for each instruction set.
 */
#ifndef SKANNEAL_GAUSSIAN_ROWS_H
#define SKANNEAL_GAUSSIAN_ROWS_H
#include <stdint.h>

#undef KERNELS
#define KERNELS "../tempering/_gaussian_rows_kernels.h"
#include "../_native/_dispatch.h"

typedef double (*gaussian_squares_t)(const double *, const double *, int64_t, int64_t);
typedef void (*gaussian_total_t)(const double *, double *, int64_t, int64_t);
static const gaussian_squares_t gaussian_squares_v[] = VARIANTS(gaussian_squares);
static const gaussian_total_t gaussian_total_v[] = VARIANTS(gaussian_total);
#endif
