/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What MultivariateNormal (_multivariate_normal.pyx) shares with its kernels. Matrices of a slot
 * are lower triangles in rows of `stride` doubles, a multiple of 8, with zeros elsewhere; so are
 * vectors of `stride`.
 */
#ifndef SKANNEAL_MULTIVARIATE_NORMAL_BLOCK_H
#define SKANNEAL_MULTIVARIATE_NORMAL_BLOCK_H
#include <stdint.h>

#define MVN_MEMO 1024   /* entries of the table of log-gammas by cluster size */
#define MVN_UPDATES 512 /* of a factor before it is rebuilt from the scatter */
#define MVN_FAR 1e5      /* a shift of more cell units is far: see _scaling.py */
#define MVN_LEAST 1e-4  /* an update may not reduce a determinant below this share */

typedef struct {
    int64_t d, stride;      /* columns, and that padded to a multiple of 8 */
    const int32_t *offset;  /* (d,) byte offset of the cell in an encoded row */
    const double *mu0;      /* (d,) */
    const double *kappa0, *nu0;
    const double *scale0;   /* packed lower triangle */
    double *prior_factor;   /* (d, stride) inverse Cholesky factor of scale0 */
    int64_t *size;          /* (n_slots,) rows in the slot */
    double *total;          /* (n_slots,) sum of their weights, which are 1 in this family */
    int64_t *updates;       /* (n_slots,) of the factor since it was made from the scatter */
    double *mean;           /* (n_slots, stride) weighted */
    double *scatter;        /* (n_slots, d, stride) weighted centred sum of products */
    double *factor;         /* (n_slots, d, stride) W, W Psi W' = 1 */
    double *log_det;        /* (n_slots,) sum of log W_ii */
    float *location;        /* (n_tiles, d, 16) posterior means */
    float *weights;         /* (n_tiles, d (d + 1) / 2, 16) W */
    float *student;         /* (n_tiles, 4, 16) constant, power, rate, constant with one gap */
    double *cell, *shift, *vector, *partial, *along;  /* (stride,) scratch */
    double *pair;           /* (2, stride) W e of a row in slots 0 and 1 */
    double *lower, *spare;  /* (d, stride) scratch */
    float *deviation;       /* (d, 16) scratch */
    const int64_t *gap;     /* (d,) missing columns of a row, in descending order */
    float *spanned;         /* (d + 1, d, 16) scratch, NULL in a block without gaps */
    int64_t *memo_size;     /* (MVN_MEMO,) */
    double *memo_value;     /* (MVN_MEMO,) */
} MvnBlock;
#endif
