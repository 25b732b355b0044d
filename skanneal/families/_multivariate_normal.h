/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the multivariate normal family. What it works on stands in
 * _multivariate_normal_block.h, alone, for a family that extends it.
 */
#ifndef SKANNEAL_MULTIVARIATE_NORMAL_H
#define SKANNEAL_MULTIVARIATE_NORMAL_H
#include "_multivariate_normal_block.h"

#undef KERNELS
#define KERNELS "../families/_multivariate_normal_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(mvn_add_scores);
DISPATCH(mvn_add_observed);
DISPATCH(mvn_distances);
DISPATCH(mvn_enter);
DISPATCH(mvn_update);
DISPATCH(mvn_refresh);
DISPATCH(mvn_refactor);
DISPATCH(mvn_without);
DISPATCH(mvn_score_without);
DISPATCH(mvn_factorise);
DISPATCH(mvn_rank_one);
DISPATCH(mvn_log_det);
DISPATCH(mvn_solve);
DISPATCH(mvn_weigh);
DISPATCH(mvn_join);
#endif
