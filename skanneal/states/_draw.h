/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One draw from unnormalised log weights  log_prior + beta log_lik.
 */
#ifndef SKANNEAL_DRAW_H
#define SKANNEAL_DRAW_H
#include <stdint.h>
#undef KERNELS
#define KERNELS "../states/_draw_kernels.h"
#include "../_native/_dispatch.h"
typedef int64_t (*draw_slot_t)(const float *, const float *, float, int64_t, double, float *);
static const draw_slot_t draw_slot_v[] = VARIANTS(draw_slot);
#endif
