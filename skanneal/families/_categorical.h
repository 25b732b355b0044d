/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the categorical family: what Categorical (_categorical.pyx) shares with
 * its kernels. One *entry* per (feature, level) and one more per feature for a missing cell.
 */
#ifndef SKANNEAL_CATEGORICAL_H
#define SKANNEAL_CATEGORICAL_H
#include <stdint.h>

#define CATEGORICAL_MEMO 4096  /* entries of the table of sums of logarithms by cluster size */

typedef struct {
    int32_t n_features, n_dense, n_entries;
    int32_t width_stop[3];      /* features with 1-, 2- and 4-byte codes end here, dense ones */
    int32_t width_stop_gappy[3];
    const int32_t *offset;      /* (n_features,) byte offset of the code in an encoded row */
    const int32_t *first;       /* (n_features + 1,) first entry of the feature */
    const double *pseudo_count; /* (n_entries,) one per level; unused for the missing entry */
    const float *pseudo_count_f;
    const double *total;        /* (n_features,) sum of the feature's pseudo-counts */
    int64_t *size;              /* (n_slots,) rows in the slot */
    int32_t *count;             /* (n_slots, n_entries): an update touches few cache lines */
    float *score;               /* (n_tiles, n_entries, 16) log(count + pseudo-count) */
    float *constant;            /* (n_tiles, 16) - sum_f log(n_f + total_f) */
    const float **logs;         /* (n_entries,) tables of log(count + pseudo-count), or NULL */
    int32_t log_size;           /* counts below have their logarithms in the tables; 2^m */
    const char *row;            /* the row of which cell_entry is */
    int64_t *cell_entry;        /* (n_features,) */
    int64_t *memo_size;         /* (CATEGORICAL_MEMO,) */
    double *memo_value;         /* (CATEGORICAL_MEMO,) */
} CategoricalBlock;

#undef KERNELS
#define KERNELS "../families/_categorical_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(categorical_add_scores);
DISPATCH(categorical_update);
DISPATCH(categorical_refresh);
DISPATCH(categorical_score_without);
DISPATCH(fill_log_table);
DISPATCH(add_log_rises);
#endif
