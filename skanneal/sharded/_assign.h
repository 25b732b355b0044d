/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Draws over many features at once; the scores of a block of rows are there already.
 */
#ifndef SKANNEAL_ASSIGN_H
#define SKANNEAL_ASSIGN_H
#include <stdint.h>
#undef KERNELS
#define KERNELS "../sharded/_assign_kernels.h"
#include "../_native/_dispatch.h"
typedef int64_t (*draw_feature_t)(const float *, const float *, float, int64_t, double, float *,
                                  double *);
typedef void (*shortlist_t)(const float *, const float *, int64_t, float *, int32_t *, float *);
static const draw_feature_t draw_feature_v[] = VARIANTS(draw_feature);
static const draw_feature_t draw_above_v[] = VARIANTS(draw_above);
static const shortlist_t shortlist_v[] = VARIANTS(shortlist);
#endif
