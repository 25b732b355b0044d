"""Draws whose atoms are instantiated, and the weights of their components for rows."""

# SPDX-License-Identifier: BSD-3-Clause

import copy

import numpy as np

from .._native._packing import part_of
from ..partition_priors import prior_from_arrays
from ._new_cluster import log_new_cluster
from ._segments import scored_blocks


class FeatureDraw:
    """One kept draw of a chain whose likelihood is not conjugate.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), int32
        Component of each training row, 0 .. n_components - 1.
    concentration, discount : float
    log_joint : float
        log p(partition) + log p(atoms) + log p(x | partition, atoms).
    n_components : int
    sizes : ndarray of shape (n_components,)
    theta : ndarray of shape (n_components, ...)
        In the form that the likelihood draws.
    features : ndarray of shape (n_components, ...)
        In the form that the likelihood shows to users.
    arrays : dict of str to ndarray
        All of it.
    """

    def __init__(self, arrays, likelihood):
        self.arrays = arrays
        self.likelihood = copy.deepcopy(likelihood)
        self.likelihood.set_state(part_of(arrays, "likelihood"))

    labels = property(lambda self: self.arrays["labels"])
    concentration = property(lambda self: float(self.arrays["concentration"]))
    discount = property(lambda self: float(self.arrays["discount"]))
    log_joint = property(lambda self: float(self.arrays["log_joint"]))
    prior = property(lambda self: prior_from_arrays(self.arrays))
    sizes = property(lambda self: self.arrays["features/size"])
    n_components = property(lambda self: len(self.sizes))
    theta = property(lambda self: self.arrays["theta"])
    features = property(lambda self: self.likelihood.features(self.theta))
    main_view = 0

    def __repr__(self):
        return f"FeatureDraw(n_components={self.n_components}, log_joint={self.log_joint:.6g})"


def weights_in_components(draw, rows):
    """log (n_c - d) f(row | theta_c) of each row: (n_rows, K)."""
    out = np.empty((len(rows), draw.n_components))
    for start, scores in scored_blocks(draw.likelihood, rows, draw.theta, dtype=float):
        out[start : start + len(scores)] = scores[:, : draw.n_components]
    return out + np.log(draw.sizes - draw.prior.reduction)


def weight_in_new(draw, rows):
    """The like of a new component, whose atom is integrated out: (n_rows,). This takes long."""
    arrays = draw.arrays
    log_m = log_new_cluster(draw.likelihood, rows, arrays["prior_theta"], arrays["proposal_seed"])
    return np.log(draw.prior.open_weight(draw.n_components)) + log_m


def joint_weights(draw, rows):
    """log w_c f(row | theta_c) in the user's units, a new cluster last: (n_rows, K + 1)."""
    joint = np.column_stack([weights_in_components(draw, rows), weight_in_new(draw, rows)])
    total = draw.prior.total_weight(draw.sizes.sum())
    return joint - np.log(total) + draw.likelihood.log_jacobian(1)
