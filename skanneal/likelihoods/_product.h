/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The product of rows of counts with features' weights, compiled: see _product_kernels.h.
 */
#ifndef SKANNEAL_PRODUCT_H
#define SKANNEAL_PRODUCT_H
#include <stdint.h>
#include <string.h>

#define PRODUCT_GROUP 32 /* features whose weights of a column stand side by side */

typedef struct {
    int64_t n_columns, n_features;
    const float *weight;    /* groups of 32 features, in each (n_columns, 32); the last may be 16 */
    const double *wide;     /* the same in float64 */
    const double *constant; /* (n_features,) */
} ProductWeights;

typedef struct {
    const uint32_t *entry; /* pairs (column, count) */
    int64_t n;
    double constant;
    void *out; /* (n_features,) */
} ProductRow;

/* A row's entries on their way while the row before is added up. */
static inline void prefetch_entries(const uint32_t *entry, int64_t n)
{
    for (int64_t e = 0; e < 2 * n; e += 16) __builtin_prefetch(entry + e);
}

#undef KERNELS
#define KERNELS "../likelihoods/_product_kernels.h"
#include "../_native/_dispatch.h"
#undef KERNELS
#define KERNELS "../likelihoods/_product_wide_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(product_scores);
DISPATCH(product_wide);
#endif
