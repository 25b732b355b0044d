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

DISPATCH(gaussian_squares);
DISPATCH(gaussian_total);
#endif
