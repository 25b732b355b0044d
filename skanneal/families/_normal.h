/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the normal family: what Normal (_normal.pyx) shares with its kernels.
 * Slots come in tiles of 16; the score cache is laid out tile by tile, so that scoring a row
 * streams through memory and new slots are new tiles.
 */
#ifndef SKANNEAL_NORMAL_H
#define SKANNEAL_NORMAL_H
#include <stdint.h>

#define NORMAL_MEMO 1024 /* entries of the table of sums of log-gamma by cluster size */

typedef struct {
    int32_t n_features, n_dense, n_runs;
    const int32_t *offset;     /* (n_features,) byte offset of the cell in an encoded row */
    const int32_t *order;      /* (n_dense,) dense features sorted by nu0 */
    const int32_t *run;        /* (n_runs + 1,) runs of equal nu0 in `order` */
    const double *mu0, *kappa0, *nu0, *sigma2_0; /* (n_features,) */
    int64_t *size;             /* (n_slots,) rows in the slot */
    int64_t *present;          /* (n_slots, n_features) cells that are not missing, gappy features */
    double *mean, *m2;         /* (n_slots, n_features) mean and centred sum of squares */
    float *location;           /* (n_tiles, n_dense, 2, 16) posterior mean, 1 / (nu scale^2) */
    float *exponent;           /* (n_tiles, n_runs, 16) (nu + 1) / 2 */
    float *constant;           /* (n_tiles, 16) sum of the normalisers of the dense features */
    float *gappy;              /* (n_tiles, n_features - n_dense, 4, 16) the same four, one by one */
    int32_t *present_at;       /* (n_features - n_dense,) scratch: which gappy cells a row has, */
    float *present_cell;       /* and these cells */
    int64_t *memo_size;        /* (NORMAL_MEMO,) */
    double *memo_value;        /* (NORMAL_MEMO,) */
} NormalBlock;

#undef KERNELS
#define KERNELS "../families/_normal_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(normal_sum_cells);
DISPATCH(normal_score_cells);
DISPATCH(normal_score_without);
DISPATCH(normal_add_scores);
DISPATCH(normal_update);
DISPATCH(normal_refresh);
#endif
