"""Grids of the hyperparameters that the two normal families share, and why they are so.

A variance has nu0 - d + 1 *degrees of freedom*, d the number of columns of the family's rows; with
d = 1 the multivariate normal is the normal family with scale0 = nu0 sigma2_0, and this page holds
for both.

There are two degrees of freedom, DEGREES, and they are not inferred. The standard deviations of the
clusters are then half-t around their scale and correlations are uniform on (-1, 1) (Huang and Wand
2013): each cluster has a size and a shape of its own. With many degrees clusters have one common
shape. A subsample of a few hundred rows prefers the most that it is offered, since a hundred small
clusters of one shape describe a dozen large ones well; and one by one such clusters hardly ever
merge again.

The scales' prior is flat in the logarithm. Given K clusters with precision matrices P_k, scale0_jj
is Gamma(nu0 K / 2, sum of P_k,jj / 2): for one cluster of independent columns, variance_j times
chi2(nu0), about nu0 times the column's variance. The grid must reach that, with ROOM for the tail
of the chi-squared: if it ended at the variance, a single Gaussian of many columns would fall apart
into narrower clusters.

The prior mean of whole rows is not inferred: it is the columns' mean, that of the rows themselves.
If it weighed much, a table of one cluster would take it for a fact, and use its rows twice: means
would be surer than the rows make them, and imputations too much alike. So it weighs one row at
most (OF_OBSERVED_MEAN).
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._scaling import ordinary

DEGREES = 2.0
WEIGHTS = np.geomspace(1e-4, 10.0, 11)  # of the prior mean, in rows
OF_OBSERVED_MEAN = np.geomspace(1e-4, 1.0, 9)  # where the rows' own mean is the prior mean
WEIGHTS.setflags(write=False)
OF_OBSERVED_MEAN.setflags(write=False)
LEAST = 1e-8  # typical variance of a cluster, relative to the column's
ROOM = 4.0
STEP = 2.0  # between points; an error of half a step costs 0.03 nu0 nats per cluster
START = 0.3  # the same before hyperparameters are first drawn

# What to do where a scale stays at the last point of its grid.
TOO_WIDE = "the hyperparameters that were given ask for a larger one. Give it too, or a smaller nu0"


def typical_variances(cells):
    """Return the grid of the typical variances of a cluster.

    Parameters
    ----------
    cells : float array of shape (n,)
        A column in cell units, without NaN.

    Returns
    -------
    grid : ndarray of shape (n_points,)
    """
    cells = ordinary(cells)
    variance = float(np.var(cells, dtype=np.float64)) if len(cells) else 0.0
    n_steps = int(np.ceil(np.log(ROOM / LEAST) / np.log(STEP)))
    return (variance or 1.0) * np.geomspace(LEAST, ROOM, 1 + n_steps)
