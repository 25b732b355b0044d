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
DISPATCH(draw_slot);
#endif
