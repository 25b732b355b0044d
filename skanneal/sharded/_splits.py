"""Splits of a point estimate's components on shards, where more clusters are asked for.

As in `predictive/_splits.py`, but a side has an atom: it is drawn for the first seed or the second,
each row goes to the side where it is more probable, the atoms are drawn for the sides, and so on.
In a large component some of the rows settle the atoms, and the others then choose in one pass.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..predictive._clusters import TREE_ROWS
from ..predictive._splits import split_largest
from ._segments import scored_blocks

UPDATES = 10  # draws of the atoms of the seeds, and then of the sides


def split_atoms(data, likelihood, labels, theta, least, generator):
    """Labels of `least` components and their atoms, or None if there are so many to begin with.

    Parameters
    ----------
    data : Data
    likelihood : Likelihood
        With the parameters of the draw that has the labels.
    labels : int64 array of shape (n_rows,)
        0 .. K - 1.
    theta : array of shape (K, ...) or None
        None if atoms are integrated out.
    least : int
    generator : numpy.random.Generator
        For atoms.

    Returns
    -------
    labels : int64 array of shape (n_rows,)
        As `split_largest` gives them.
    theta : array of shape (n_components, ...) or None
    """
    atoms = None if theta is None else list(theta)

    def split(rows, k, _):
        side, pair = divide(data, likelihood, rows, None if atoms is None else atoms[k], generator)
        if atoms is not None:
            atoms[k] = pair[0]
            atoms.append(pair[1])
        return side

    labels = split_largest(labels, least, data.keys, split)
    if labels is None:
        return None
    used, labels = np.unique(labels, return_inverse=True)
    return labels, None if atoms is None else np.array(atoms)[used]


def divide(data, likelihood, rows, atom, generator):
    """The side of each of some rows, the first two of which are the seeds; two atoms.

    atom : what the rows have in common, or None if atoms are integrated out.
    """
    some = data.of_rows(rows[:TREE_ROWS])
    side = np.full(len(some), -1, dtype=np.int32)
    side[:2] = 0, 1
    theta = None if atom is None else np.array([atom, atom])
    for step in range(2 * UPDATES):
        theta = likelihood.draw(likelihood.statistics(some, side, 2), theta, generator)
        if step >= UPDATES:
            side = _sides(likelihood, some, theta, side)
    if len(rows) > TREE_ROWS:
        side = np.concatenate([side, _others(data, likelihood, rows[TREE_ROWS:], theta, side)])
    return side, theta


def _sides(likelihood, rows, theta, side):
    """The more probable side of each row; the seeds stay."""
    out = _more_probable(likelihood, rows, theta, side)
    out[:2] = 0, 1
    return out


def _more_probable(likelihood, rows, theta, side):
    """0 or 1 for each row, given two atoms and the sides that rows have been on."""
    sizes = np.bincount(side[side >= 0], minlength=2)
    log_odds, out = np.log(sizes[1] / sizes[0]), np.empty(len(rows), dtype=np.int32)
    for start, scores in scored_blocks(likelihood, rows, theta):
        out[start : start + len(scores)] = scores[:, 1] + log_odds > scores[:, 0]
    return out


def _others(data, likelihood, rows, theta, side):
    """The sides of further rows, a block at a time."""
    blocks = [rows[at : at + TREE_ROWS] for at in range(0, len(rows), TREE_ROWS)]
    parts = [_more_probable(likelihood, data.of_rows(part), theta, side) for part in blocks]
    return np.concatenate(parts)
