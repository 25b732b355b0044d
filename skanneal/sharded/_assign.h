/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Draws over many features at once; the scores of a block of rows are there already.
 */
#ifndef SKANNEAL_ASSIGN_H
#define SKANNEAL_ASSIGN_H
#include <stdint.h>

#define SHORT 8 /* atoms on a row's shortlist */

#undef KERNELS
#define KERNELS "../sharded/_assign_kernels.h"
#include "../_native/_dispatch.h"
DISPATCH(draw_feature);
DISPATCH(draw_above);
DISPATCH(shortlist);
#endif
