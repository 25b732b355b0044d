"""Components of a point estimate, split until there are as many as clusters are asked for.

The largest component is split, and again, until there are enough. Two of its rows that differ are
the seeds; the others join one of the two in random order, as in a proposal of a split, and then
each row goes to the side where it fits better, until none would or all splits together have made
as many steps as ten passes over the table. A last row of a side stays, so that no side is lost.

Rows that are equal end in one component: components of nothing but equal rows could not be told
apart.
"""

# SPDX-License-Identifier: BSD-3-Clause

import heapq

import numpy as np

from ..encoding import all_keys
from ..moves import divide
from ..summary import relabel

PASSES = 10  # over all rows, of all splits together, in which rows change sides


def split_largest(labels, least, keys, split):
    """Labels of `least` components, made by splitting the largest again and again; None if there
    are so many to begin with that rows can tell apart.

    A component whose rows are all equal stays whole.

    Parameters
    ----------
    labels : int array of shape (n_rows,)
        Components, 0 .. K - 1.
    least : int
    keys : callable
        ``keys(rows)`` tells rows apart, as `RowKeys` does.
    split : callable
        ``split(rows, k, generator)``, of rows in random order the first two of which differ and
        their component, gives the side of each, 0 or 1, both of which have rows.

    Returns
    -------
    labels : int64 array of shape (n_rows,) or None
        A component keeps its number, if it has rows, and what is split off has a new one.
    """
    if least <= 1:
        return None
    _, first, codes = np.unique(all_keys(keys, len(labels)), return_index=True, return_inverse=True)
    if len(np.unique(labels[first])) >= least:
        return None
    generator = np.random.Generator(np.random.PCG64(0))
    labels = np.asarray(labels, dtype=np.int64)[first][codes]
    sizes = np.bincount(labels)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    queue = [(-len(rows), k) for k, rows in enumerate(members) if len(rows)]
    heapq.heapify(queue)
    n_components = len(queue)
    while n_components < least and queue:
        _, k = heapq.heappop(queue)
        rows = _seeds_first(members[k], codes, generator)
        if rows is None:
            continue
        side = _together(np.asarray(split(rows, k, generator)), codes[rows])
        labels[rows[side == 1]] = len(members)
        members[k] = np.sort(rows[side == 0])
        members.append(np.sort(rows[side == 1]))
        for number in (k, len(members) - 1):
            heapq.heappush(queue, (-len(members[number]), number))
        n_components += 1
    return labels


def _seeds_first(rows, codes, generator):
    """The rows in random order, the first two of which differ; None if no two do."""
    rows = rows[np.argsort(generator.random(len(rows)), kind="stable")]
    other = codes[rows] != codes[rows[0]]
    if not other.any():
        return None
    rows[[1, other.argmax()]] = rows[[other.argmax(), 1]]
    return rows


def _together(side, codes):
    """The sides, where all rows of one code are on that of the first; both sides keep rows."""
    _, first, of = np.unique(codes, return_index=True, return_inverse=True)
    out = side[first][of]
    if out.min() == out.max():
        lost = 1 - out[0]
        out[codes == codes[np.argmax(side == lost)]] = lost
    return out


def split_components(mixture, least, keys):
    """Split components of a mixture of all rows until there are `least`, if so many rows differ.

    Parameters
    ----------
    mixture : Mixture
        Changed, if it has fewer: it has components 0 .. K - 1 then.
    least : int
    keys : callable
        As in `split_largest`.
    """
    labels = mixture.get_labels()
    steps = PASSES * len(labels)

    def split(rows, _, generator):
        nonlocal steps
        side, n_steps = divide(mixture, rows, generator.bit_generator, steps)
        steps -= n_steps
        return side

    labels = split_largest(relabel(labels), least, keys, split)
    if labels is None:
        return
    labels = relabel(labels)
    mixture.set_prior(mixture.prior.holding(int(labels.max()) + 1))
    mixture.replace(np.arange(len(labels)), labels)
