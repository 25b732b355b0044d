"""The point estimate of a fit on shards: one partition, with the atoms that go with it.

"map" begins at the draw of highest log joint density and takes iterated conditional modes: row by
row, a block of a shard at a time, each row goes to the cluster where it fits best given all others,
until none would leave. With a conjugate prior the atoms are integrated out, as everywhere.
Otherwise they are those of the draw. A row that is alone in its cluster is an exception: an atom
that was drawn for one row fits this row too well, so it is integrated out there.
"""

# SPDX-License-Identifier: BSD-3-Clause

import copy

import numpy as np

from ..moves import iterated_conditional_modes
from ..partition_priors import prior_from_arrays
from ..states import Mixture, Subsample
from ..summary import point_estimate
from ._draws import weight_in_new, weights_in_components
from ._segments import labelled_log_lik, report
from ._splits import split_atoms
from ._uncollapsed import Uncollapsed

PASSES = 10
# A climb to more clusters than GROWTH times the draw's, plus ROOM, is given up.
GROWTH, ROOM = 2, 16
UPDATES = 10  # a partition that no draw had gets atoms by so many Gibbs updates


def point_of(data, draws, method, bit_generator, ended, least=1):
    """The point estimate as a draw.

    Parameters
    ----------
    data : Data
    draws : list of Draw or FeatureDraw
        Of all chains.
    method : {"map", "vi", "binder"}
    bit_generator : numpy.random.BitGenerator
        For atoms of a partition that no draw had.
    ended : callable
        Whether the rows are to move no further: asked before each block of rows.
    least : int, default=1
        How many components there must be, at most as many as rows that differ. Draws of fewer do
        not count; if the partition that represents the others has fewer, it is that of "map", and
        if there are no others, components of the best draw are split.

    Returns
    -------
    point : Draw or FeatureDraw
    state : Uncollapsed or None
        The sampler's state of that draw, if it is at hand: another pass over the rows makes it.
    """
    draws = [draw for draw in draws if draw.n_components >= least] or draws
    log_joints = [draw.log_joint for draw in draws]
    best, conjugate = draws[int(np.argmax(log_joints))], data.likelihood.conjugate
    labels = None
    if method != "map":
        labels = point_estimate([draw.labels for draw in draws], log_joints, method)
    if labels is None or labels.max() + 1 < least:
        labels, moved = conditional_modes(data.shards, best, conjugate, ended, least)
        used, labels = np.unique(labels, return_inverse=True)
        theta = None if conjugate else best.theta[used]
        split = _split(data, best, labels, theta, least, bit_generator)
        if split is None and not moved:
            return best, None
        return _with_labels(data, best, *(split or (labels, theta)))
    if conjugate:
        return _with_labels(data, best, labels)
    # Each cluster begins with the atom of that component of the best draw that shares most rows.
    overlap = np.zeros((int(labels.max()) + 1, best.n_components), np.int64)
    np.add.at(overlap, (labels, best.labels), 1)
    theta, generator = best.theta[overlap.argmax(axis=1)], np.random.Generator(bit_generator)
    statistics = _state(data, best, labels).statistics
    for _ in range(UPDATES):
        theta = best.likelihood.draw(statistics, theta, generator)
    return _with_labels(data, best, labels, theta)


def _split(data, best, labels, theta, least, bit_generator):
    """What `split_atoms` gives, with the parameters of the best draw."""
    if least <= 1:
        return None
    likelihood = _state(data, best, best.labels).likelihood
    return split_atoms(data, likelihood, labels, theta, least, np.random.Generator(bit_generator))


def features_of(data, point, state=None):
    """The atoms of a point estimate, as the likelihood shows them."""
    if not data.likelihood.conjugate:
        return point.features
    state = _state(data, point, point.labels) if state is None else state
    return state.likelihood.features(state.likelihood.mean(state.statistics))


def conditional_modes(shards, draw, conjugate, ended, least=1):
    """Return the labels of all rows and the number of moves that led there from a draw's labels.

    There are no moves if they would lead to many more clusters than the draw has. No move leads to
    fewer than `least`.
    """
    labels, total = draw.labels.astype(np.int64), 0
    clusters = (Integrated if conjugate else Instantiated)(draw, least)
    for _ in range(PASSES):
        moved = 0
        for p in range(shards.n_shards):
            if ended():
                return labels, total + moved
            rows, at = shards.encoded(p), shards.rows_of(p)
            for start in range(0, len(at), clusters.block_rows):
                if ended():
                    return labels, total + moved
                block = np.arange(start, min(start + clusters.block_rows, len(at)))
                own = at[block]
                labels[own], n = clusters.assign_greedily(rows[block], labels[own])
                moved += n
                if clusters.grown:
                    return draw.labels, 0
        total += moved
        if moved == 0:
            break
    return labels, total


class Integrated:
    """Clusters of all rows; one block of the rows at a time is here to be moved."""

    block_rows = 4096

    def __init__(self, draw, least=1):
        self.arrays, self.most = draw.arrays, GROWTH * draw.n_components + ROOM
        self.least = least
        self.grown = False  # to more clusters than that

    def assign_greedily(self, rows, labels):
        """Return labels and number of moves after one pass over some rows."""
        subsample = Subsample(len(labels))
        subsample.fill()
        mixture = Mixture.from_arrays(self.arrays | {"labels": labels}, rows.table, subsample)
        moved = iterated_conditional_modes(mixture, 1, self.most, self.least)
        self.arrays, self.grown = mixture.to_arrays(), mixture.n_clusters > self.most
        return mixture.get_labels(), moved


class Instantiated:
    """The same with the atoms of a draw, whose number never grows."""

    grown = False
    block_rows = 128  # few: to integrate out the atom of a row that is alone takes long

    def __init__(self, draw, least=1):
        self.draw, self.sizes, self.least = draw, draw.sizes.copy(), least

    def assign_greedily(self, rows, labels):
        """Return labels and number of moves after one pass over some rows."""
        draw, sizes, labels, moved = self.draw, self.sizes, labels.copy(), 0
        reduction = draw.prior.reduction
        fit = weights_in_components(draw, rows) - np.log(draw.sizes - reduction)
        for i, k in enumerate(labels):
            if sizes[k] == 1 and np.count_nonzero(sizes) <= self.least:
                continue
            sizes[k] -= 1
            with np.errstate(divide="ignore"):
                weights = fit[i] + np.log(np.where(sizes > 0, sizes - reduction, 0.0))
            if sizes[k] == 0:
                weights[k] = weight_in_new(draw, rows[i : i + 1])[0]
            best = int(weights.argmax())
            if weights[best] > weights[k]:
                labels[i], moved = best, moved + 1
            sizes[labels[i]] += 1
        return labels, moved


def _with_labels(data, draw, labels, theta=None):
    """Return the draw with another partition, and the state of the sampler that goes with it.

    theta : the atoms of the new clusters, None if atoms are integrated out.
    """
    state, shards = _state(data, draw, labels), data.shards
    if theta is not None:
        state.theta, state.log_lik = theta, 0.0
        for p, own in enumerate(state.labels):
            state.log_lik += labelled_log_lik(shards.encoded(p), own, theta, state.likelihood)
    arrays = draw.arrays | {"labels": labels.astype(np.int32)}
    arrays["log_joint"] = np.array(state.log_joint())
    if theta is None:
        arrays |= state.likelihood.arrays(state.statistics, state.sizes)
    else:
        arrays |= {"theta": theta, "features/size": state.sizes}
    return data.draw(arrays), state


def _state(data, draw, labels):
    """Return the sampler's state with a draw's parameters and other labels, 0 .. K - 1."""
    if data.likelihood.conjugate:
        likelihood, shards = copy.deepcopy(data.likelihood), data.shards
        block = Mixture.from_arrays(draw.arrays, likelihood.schema).blocks[0]
        hyper = [block.get_hyper(f) for f in range(block.n_features)]
        likelihood.set_state({"hyper": hyper})
    else:
        likelihood, shards = draw.likelihood, data.shards
    labels, n = np.asarray(labels, dtype=np.int32), int(np.max(labels)) + 1
    dealt = [labels[shards.rows_of(p)] for p in range(shards.n_shards)]
    state = Uncollapsed(likelihood, prior_from_arrays(draw.arrays), dealt)
    state.gather([report(likelihood, shards.encoded(p), own, n) for p, own in enumerate(dealt)])
    return state
