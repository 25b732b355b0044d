"""What a draw says of the rows in which valleys are looked for, in terms of the point estimate."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..summary._cluster_tree import SMALL
from ._distances import scores_by_distance
from ._tail import own_components
from ._view import View


def joints_without(mixture, table, rows):
    """What valleys are judged by: log w_k p(row | rows of k), the row not among them, of
    some rows, with tails that show the distance: (n_rows, n_components).

    Relative to a component of no rows. A row draws its own component towards itself: counted with
    it, rows would lie farther from every border than new ones do, as if there were a valley, and
    the more so, the more columns there are."""
    view = View(mixture)
    some = table.take(rows)
    scores = scores_by_distance(view, some)
    joints = scores[:, :-1] + view.log_weights[:-1] - scores[:, -1:]
    own, loss = own_components(view, rows)
    joints[np.arange(len(rows)), own] -= loss
    return joints


def gathered(joints, shares, sizes):
    """Add up a draw's components by the component of the point estimate that has most of their
    rows.

    The point estimate has climbed, a draw has not: it holds small components that come and go.
    They are wide, so that far from their group its density would be theirs alone: they are left
    out."""
    out = np.full((len(joints), shares.shape[1]), -np.inf)
    group = shares.argmax(axis=1)
    largest = np.zeros(shares.shape[1])
    np.maximum.at(largest, group, sizes)
    for k in np.flatnonzero(sizes >= SMALL * largest[group]):
        out[:, group[k]] = np.logaddexp(out[:, group[k]], joints[:, k])
    return out


def shares_in(labels, reference):
    """Return in which components of a point estimate the rows of a draw's components are."""
    counts = np.zeros((int(labels.max()) + 1, int(reference.max()) + 1))
    np.add.at(counts, (labels, reference), 1.0)
    return counts / counts.sum(axis=1, keepdims=True)
