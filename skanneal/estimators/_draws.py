"""Kept draws, and what they predict.

A draw is a flat dict of arrays that predicts without the training data. Densities are averaged over
draws, not their logarithms: p(y) = mean over draws of sum_c w_c p(y | x_c), the new cluster's term
included.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ..components import Table
from ..states import Mixture
from ._hyperparameters import NAMES, to_user

BLOCK_BYTES = 1 << 25  # of scores held at a time


class Draw:
    """One kept draw of a chain.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), int32
        Cluster of each training row, 0 .. n_clusters - 1.
    concentration, discount : float
    hyperparameters : dict of str to dict of str to ndarray
        By family and name, in the user's units, one value per column of the family; pseudo-counts
        are a list with one array per column.
    log_joint : float
        log p(partition) + log p(x | partition, hyperparameters), in the user's units.
    n_clusters : int
    sizes : ndarray of shape (n_clusters,)
    arrays : dict of str to ndarray
        All of it, the clusters' statistics included ("normal/mean" and so on, in cell units).
    """

    def __init__(self, arrays, offsets, scales):
        self.arrays = arrays
        self._units = (offsets, scales)

    labels = property(lambda self: self.arrays["labels"])
    concentration = property(lambda self: float(self.arrays["concentration"]))
    discount = property(lambda self: float(self.arrays["discount"]))
    log_joint = property(lambda self: float(self.arrays["log_joint"]))
    n_clusters = property(lambda self: len(self.sizes))

    @property
    def sizes(self):
        return next(value for name, value in self.arrays.items() if name.endswith("/size"))

    @property
    def hyperparameters(self):
        offsets, scales = self._units
        out = {}
        for family in NAMES:
            if f"{family}/columns" not in self.arrays:
                continue
            columns = self.arrays[f"{family}/columns"]
            if f"{family}/pseudo_counts" in self.arrays:
                levels = np.cumsum(self.arrays[f"{family}/n_levels"])[:-1]
                counts = np.split(self.arrays[f"{family}/pseudo_counts"], levels)
                if family == "bernoulli":
                    counts = np.array(counts)
                    out[family] = {"a": counts[:, 1], "b": counts[:, 0]}
                else:
                    out[family] = {"pseudo_counts": counts}
                continue
            units = offsets[columns], scales[columns]
            out[family] = {
                name: to_user(name, self.arrays[f"{family}/{name}"], *units)
                for name in NAMES[family]
            }
        return out

    def __repr__(self):
        return f"Draw(n_clusters={self.n_clusters}, log_joint={self.log_joint:.6g})"


class Predictor:
    """What a set of draws says about queries.

    Parameters
    ----------
    draws : list of Draw
    schema : tuple
        Arguments of Table.
    """

    def __init__(self, draws, schema):
        self.schema = schema
        empty = Table(*schema)
        self.mixtures = [Mixture.from_arrays(draw.arrays, empty) for draw in draws]

    def table(self, columns):
        """Encoded columns as rows."""
        table = Table(*self.schema)
        table.append(columns)
        return table

    def blocks(self, table, layers=1):
        """Row ranges small enough for `layers` score matrices."""
        widest = max(mixture.n_slots for mixture in self.mixtures)
        step = max(1, BLOCK_BYTES // (8 * widest * layers))
        for start in range(0, table.n_rows, step):
            yield start, min(start + step, table.n_rows)

    def log_density(self, table):
        """Log predictive density of each row: (n_rows,)."""
        out = np.empty(table.n_rows)
        for start, stop in self.blocks(table):
            out[start:stop] = _mean_of_logs(
                [logsumexp(joint, axis=1) for joint in self._joints(table, start, stop)]
            )
        return out

    def new_cluster_probability(self, table):
        """Probability that each row opens a cluster of its own: (n_rows,)."""
        out = np.empty(table.n_rows)
        for start, stop in self.blocks(table):
            joints = list(self._joints(table, start, stop))
            new = _mean_of_logs([joint[:, -1] for joint in joints])
            out[start:stop] = np.exp(new - _mean_of_logs([logsumexp(j, axis=1) for j in joints]))
        return out

    def cluster_probabilities(self, table):
        """Probability of each existing cluster of the first draw: (n_rows, n_clusters)."""
        mixture = self.mixtures[0]
        out = np.empty((table.n_rows, mixture.n_clusters))
        for start, stop in self.blocks(table):
            scores, log_weights = mixture.score_rows(table, start, stop)
            joint = (scores + log_weights)[:, :-1]
            out[start:stop] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return out / out.sum(axis=1, keepdims=True)

    def cell_surprisals(self, table):
        """-log p(cell | the row's other cells): (n_rows, n_columns), nan for missing cells."""
        n_columns = table.n_columns
        out = np.empty((table.n_rows, n_columns))
        for start, stop in self.blocks(table, layers=3):
            whole = []
            without = [[] for _ in range(n_columns)]
            for mixture in self.mixtures:
                slots = np.r_[np.flatnonzero(mixture.sizes()), mixture.open_slot]
                joint = np.concatenate(list(self._one(mixture, table, start, stop)))
                whole.append(logsumexp(joint, axis=1))
                for block, f, column in _features(mixture):
                    cell = np.zeros((stop - start, int(slots.max()) + 1))
                    block.score_feature(f, table, cell, start, stop)
                    without[column].append(logsumexp(joint - cell[:, slots], axis=1))
            whole = _mean_of_logs(whole)
            for j in range(n_columns):
                out[start:stop, j] = _mean_of_logs(without[j]) - whole
        for j in range(n_columns):
            out[table.missing(j), j] = np.nan
        return out

    def expectations(self, table):
        """For each column, the cells that are expected given the rest of the row.

        Returns
        -------
        list of ndarray
            Numbers: posterior means in the user's units; codes: the most probable.
        """
        numbers = np.zeros((table.n_rows, table.n_columns))
        modes = [None] * table.n_columns
        for start, stop in self.blocks(table):
            joints = list(self._joints(table, start, stop))
            total = logsumexp([logsumexp(joint, axis=1) for joint in joints], axis=0)
            shares = [np.exp(joint - total[:, None]) for joint in joints]
            for j in range(table.n_columns):
                values = 0.0
                for mixture, share in zip(self.mixtures, shares):
                    slots = np.r_[np.flatnonzero(mixture.sizes()), mixture.open_slot]
                    values = values + share @ _expected(mixture, j)[slots]
                if values.ndim == 2:
                    modes[j] = np.zeros(table.n_rows, np.int64) if modes[j] is None else modes[j]
                    modes[j][start:stop] = values.argmax(axis=1)
                else:
                    numbers[start:stop, j] = values
        numbers = numbers * self.schema[3] + self.schema[2]
        return [numbers[:, j] if modes[j] is None else modes[j] for j in range(table.n_columns)]

    def sample(self, n, seed):
        """n rows of the posterior predictive, column by column: numbers in units, codes."""
        bit_generator = np.random.PCG64(seed)
        generator = np.random.Generator(bit_generator)
        which = np.minimum(
            (generator.random(n) * len(self.mixtures)).astype(int), len(self.mixtures) - 1
        )
        columns = [np.zeros(n) for _ in range(len(self.schema[0]))]
        clusters = np.zeros(n, dtype=np.int64)
        for i, mixture in enumerate(self.mixtures):
            rows = np.flatnonzero(which == i)
            slots = np.r_[np.flatnonzero(mixture.sizes()), mixture.open_slot]
            cumulative = np.cumsum(np.exp(mixture.log_weights()))
            at = np.searchsorted(cumulative, generator.random(len(rows)) * cumulative[-1], "right")
            at = np.minimum(at, len(slots) - 1)
            clusters[rows] = np.where(at == len(slots) - 1, -1, at)
            for block, f, j in _features(mixture):
                cells = block.sample_feature(f, slots[at], bit_generator)
                columns[j][rows] = cells * self.schema[3][j] + self.schema[2][j]
        return columns, clusters

    def _joints(self, table, start, stop):
        """For each draw, log w_c p(row | x_c), the new cluster last."""
        for mixture in self.mixtures:
            yield from self._one(mixture, table, start, stop)

    @staticmethod
    def _one(mixture, table, start, stop):
        scores, log_weights = mixture.score_rows(table, start, stop)
        yield scores + log_weights


def _features(mixture):
    """(block, feature, column) of every feature."""
    for block in mixture.blocks:
        for f, column in enumerate(block.columns):
            yield block, f, int(column)


def _expected(mixture, column):
    """Per slot: the predictive mean in cell units (n_slots,), or the levels' probabilities."""
    for block, f, j in _features(mixture):
        if j == column:
            if hasattr(block, "predictive_probabilities"):
                return block.predictive_probabilities(f).T
            return block.predictive_mean(f)
    raise ValueError(f"column {column} is in no block")


def _mean_of_logs(logs):
    """log of the mean of exp."""
    return logsumexp(logs, axis=0) - np.log(len(logs))
