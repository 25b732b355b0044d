/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Normal densities of rows of numbers under many features, compiled: see _quadratic_kernels.h.
 */
#ifndef SKANNEAL_QUADRATIC_H
#define SKANNEAL_QUADRATIC_H
#include <stdint.h>

#define QUADRATIC_FEATURES 4 /* at a time, of the diagonal form */
#define QUADRATIC_ROWS 4     /* rows of a factor at a time */

typedef struct {
    int64_t n_columns, n_features;
    const float *constant; /* (n_features,) */
    const float *mean;     /* (n_features, n_columns) */
    /* diagonal: (n_features, n_columns), what a deviation is multiplied by before it is squared;
     * full: such matrices, lower triangles, four rows side by side, the last filled up with zeros:
     * of the rows i .. i + 3 the columns 0 .. i + 3, (i + 4, 4) */
    const float *factor;
    int64_t factor_length; /* of one feature */
    float *deviation;      /* (n_columns + 3, 16) scratch */
} QuadraticBlock;

#undef KERNELS
#define KERNELS "../likelihoods/_quadratic_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(quadratic_diagonal);
DISPATCH(quadratic_full);
#endif
