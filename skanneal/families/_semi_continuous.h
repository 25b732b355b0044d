/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the semi-continuous family: what SemiContinuous (_semi_continuous.pyx)
 * shares with its kernels, which count outcomes. An outcome of a feature is to stand elsewhere, the
 * first, or at one of its atoms; the outcomes of all features stand one after another.
 */
#ifndef SKANNEAL_SEMI_CONTINUOUS_H
#define SKANNEAL_SEMI_CONTINUOUS_H
#include <stdint.h>

typedef struct {
    int64_t n_features, n_outcomes, n_slots;
    const int32_t *offset;  /* (n_features,) byte offset of the cell in an encoded row */
    const int32_t *start;   /* (n_features + 1,) the outcomes of each */
    const float *atom;      /* (n_outcomes,) cells; NaN for elsewhere */
    const double *pseudo;   /* (2, n_features) pseudo-counts of an atom and of elsewhere */
    int64_t *n, *count;     /* (n_features, n_slots), (n_outcomes, n_slots) cells */
    float *log_all;         /* (n_tiles, n_features, 16) of the pseudo-counts and cells of all */
    float *log_own;         /* (n_tiles, n_outcomes, 16) the same of each outcome */
    float *elsewhere;       /* (n_features,) a row's numbers elsewhere, others missing */
    int64_t n_present;      /* cells that are not missing of the row that was read, */
    int32_t *feature;       /* (n_features,) their features, */
    int32_t *outcome;       /* and outcomes */
} SemiBlock;

#undef KERNELS
#define KERNELS "../families/_semi_continuous_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(semi_read);
DISPATCH(semi_add_scores);
DISPATCH(semi_score_without);
DISPATCH(semi_update);
DISPATCH(semi_refresh);
#endif
