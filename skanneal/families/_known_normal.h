/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the known normal family: what KnownNormal (_known_normal.pyx) shares with
 * its kernels. Statistics of a tile's slots lie side by side, so that a row enters many at once.
 */
#ifndef SKANNEAL_KNOWN_NORMAL_H
#define SKANNEAL_KNOWN_NORMAL_H
#include <stdint.h>

#define KNOWN_MEMO 1024 /* entries of the table of constants by cluster size */

typedef struct {
    int64_t d, stride;      /* columns; their number padded to a multiple of 8 */
    int32_t diagonal, equal; /* A is diagonal; all coordinates have the same prior variance */
    int32_t adjacent;       /* the cells stand side by side in an encoded row */
    int32_t fickle;         /* rows with fills change in place, so z is never reused */
    const int32_t *offset;  /* (d,) byte offset of the cell in an encoded row */
    const double *centre;   /* (stride,) prior mean */
    const double *rotation; /* (d, stride) A, or its diagonal (stride,) */
    const double *log_scale; /* (d,) log A_ff if A is diagonal */
    const double *variance; /* (d,) prior variances of the coordinates z */
    double log_det;         /* log |A| */
    int64_t *size;          /* (n_slots,) rows in the slot */
    double *sum;            /* (n_tiles, d, 16) of z */
    double *squares;        /* (n_slots,) centred sum of squares of z */
    float *location;        /* (n_tiles, d, 16) posterior means of z */
    float *precision;       /* (n_tiles, d, 16) half precisions of z, unless equal */
    float *scalar;          /* (n_tiles, 2, 16) constant, and the half precision if equal */
    const char *row;        /* the row of which z is */
    double *cell, *z;       /* (stride,) */
    float *z_f;             /* (stride,) */
    const int64_t *gap;     /* (d,) missing columns of a row */
    float *spanned;         /* (d + 1, d, 16) scratch, NULL in a block without gaps */
    int64_t *memo_size;     /* (KNOWN_MEMO,) */
    double *memo_value;     /* (KNOWN_MEMO,) */
} KnownBlock;

#undef KERNELS
#define KERNELS "../families/_known_normal_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(known_add_scores);
DISPATCH(known_add_observed);
DISPATCH(known_update);
DISPATCH(known_extend);
DISPATCH(known_refresh);
DISPATCH(known_score_without);
DISPATCH(known_score_observed_without);
#endif
