/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled part of the multivariate t family: the integral over a row's weight.
 */
#ifndef SKANNEAL_MULTIVARIATE_T_H
#define SKANNEAL_MULTIVARIATE_T_H
#include <math.h>
#include <stdint.h>

#define MVT_NODES 1024 /* of a lattice, at most; a multiple of 8 */
/* Between points that are 1 / MVT_FINE apart integrals are interpolated; the last one is beyond the
 * squared distances that an integral takes for different. */
#define MVT_FINE 128.0
#define MVT_POINTS 16384

typedef struct {
    double half;        /* h: half the degrees of freedom of the rows' weights */
    double constant;    /* h log h - log Gamma(h) */
    double tail;        /* minus the log of the relative error, in nats */
    double *step;       /* (d + 1,) of the lattice, by the number of observed cells */
    double *stirling;   /* (d + 1,) log Gamma(alpha) - (alpha - 1/2) log alpha + alpha */
    double *weight;     /* (MVT_NODES,) the nodes */
    double *mass;       /* (MVT_NODES,) in proportion to the density there of log weight */
} MvtLattice;

#undef KERNELS
#define KERNELS "../families/_multivariate_t_kernels.h"
#include "../_native/_dispatch.h"

DISPATCH(mvt_integrate);
DISPATCH(mvt_interpolate);
DISPATCH(mvt_laplace);
DISPATCH(mvt_add_proposals);
DISPATCH(mvt_add_given);
DISPATCH(mvt_square);
#endif
