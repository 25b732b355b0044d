"""Groups of components while they are merged: their rows, their neighbours, their evidence."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import softmax

from ._dip import dip_evidence
from ._joining import join_groups
from ._line import near_border, spread_ties
from ._one_or_two import log_odds
from ._straight_line import straight_evidence

_IMPOSSIBLE = 1e7  # nats below a row's best component; all others are taken to be no lower
FAR = 1e3  # nats: evidence where components are no neighbours
FEW_ROWS = 3  # of a group of fewer no valley is sure


class Groups:
    """Groups of components while they are merged.

    Parameters
    ----------
    log_joints : array-like of shape (n_rows, n_components)

    Attributes
    ----------
    joints : ndarray of shape (n_rows, n_components)
        A group's column is that of its first component; what is impossible is finite.
    """

    def __init__(self, log_joints):
        joints = np.array(log_joints, dtype=np.float64)
        joints = np.maximum(joints, joints.max(axis=1, keepdims=True) - _IMPOSSIBLE)
        joints = np.asfortranarray(joints)
        n_components = joints.shape[1]
        self.joints, self.alive = joints, np.ones(n_components, dtype=bool)
        labels = joints.argmax(axis=1)
        self.rows = [np.flatnonzero(labels == k) for k in range(n_components)]
        self.sizes = np.bincount(labels, minlength=n_components)
        rest = joints.copy()
        rest[np.arange(len(joints)), labels] = -np.inf
        self.labels, self.second = labels, rest.argmax(axis=1)
        self.of_second = rest[np.arange(len(joints)), self.second]

    def overlaps(self):
        """Sums over the rows of sqrt(p_ia p_ib), with the probabilities of the components:
        (n_components, n_components)."""
        roots = np.sqrt(softmax(self.joints, axis=1))
        return np.maximum(roots.T @ roots, np.finfo(float).tiny)

    def neighbours(self):
        """Return the pairs of groups, the lower number first, of which one is second in a row of
        the other; a group that has no row is a neighbour of the one whose rows it explains best."""
        number = np.minimum(self.labels, self.second) * len(self.alive)
        number = np.unique(number + np.maximum(self.labels, self.second))
        pairs = set(zip(*(part.tolist() for part in np.divmod(number, len(self.alive)))))
        own = self.joints[np.arange(len(self.labels)), self.labels]
        for empty in np.flatnonzero(self.alive & (self.sizes == 0)):
            row = (self.joints[:, empty] - own).argmax()
            pairs.add(tuple(sorted((int(empty), int(self.labels[row])))))
        return pairs

    def smallest(self):
        """Return the smallest group of few rows, and the group that is second in most of them, the
        lower number first; None if there is no such group."""
        sizes = np.where(self.alive & (self.sizes > 0), self.sizes, len(self.labels))
        group = int(sizes.argmin())
        if sizes[group] >= min(FEW_ROWS, len(self.labels)):
            return None
        second = int(np.bincount(self.second[self.rows[group]]).argmax())
        return min(group, second), max(group, second)

    def merge(self, a, b):
        """Add group b to group a."""
        of_a, of_b = self.rows[a], self.rows[b]
        self.rows[a], self.rows[b] = np.sort(np.concatenate([of_a, of_b])), of_b[:0]
        self.sizes[a] += self.sizes[b]
        self.alive[b] = False
        alive = self.alive.view(np.uint8)
        join_groups(self.joints, self.labels, self.second, self.of_second, alive, a, b)

    def valley(self, a, b):
        """Return the evidence of a valley between two groups: 0 if one has no row."""
        if not min(len(self.rows[a]), len(self.rows[b])):
            return 0.0
        near = near_border(self.joints, self.rows[a], self.rows[b], a, b)
        return dip_evidence(spread_ties(near)) if len(near) else 0.0

    def two(self, a, b, numbers):
        """Return the log odds that the rows of two components are two: -1000 if one has hardly a
        row."""
        if min(len(self.rows[a]), len(self.rows[b])) < FEW_ROWS:
            return -FAR
        rows = np.concatenate([self.rows[a], self.rows[b]])
        own = None if numbers is None else numbers[rows]
        return log_odds(self.joints[rows, a], self.joints[rows, b], own)

    def straight_valley(self, a, b, numbers, least):
        """Return the evidence of a valley between two components along a straight line: 0 if it is
        below `least`."""
        rows = np.sort(np.concatenate([self.rows[a], self.rows[b]]))
        rows = rows[~np.isnan(numbers[rows]).any(axis=1)]
        return straight_evidence(numbers[rows], self.labels[rows] == a, least)
