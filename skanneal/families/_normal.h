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
    int64_t *memo_size;        /* (NORMAL_MEMO,) */
    double *memo_value;        /* (NORMAL_MEMO,) */
} NormalBlock;

#undef KERNELS
#define KERNELS "../families/_normal_kernels.h"
#include "../_native/_dispatch.h"

typedef void (*normal_add_scores_t)(const NormalBlock *, const char *, int64_t, float *);
typedef void (*normal_update_t)(NormalBlock *, const char *, int64_t, int);
typedef void (*normal_refresh_t)(NormalBlock *, int64_t);
typedef float (*normal_score_without_t)(NormalBlock *, const char *, int64_t);
typedef void (*normal_sum_cells_t)(double *, const float *, int64_t, int);
static const normal_sum_cells_t normal_sum_cells_v[] = VARIANTS(normal_sum_cells);
static const normal_score_without_t normal_score_without_v[] = VARIANTS(normal_score_without);
static const normal_add_scores_t normal_add_scores_v[] = VARIANTS(normal_add_scores);
static const normal_update_t normal_update_v[] = VARIANTS(normal_update);
static const normal_refresh_t normal_refresh_v[] = VARIANTS(normal_refresh);
#endif
