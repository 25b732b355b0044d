"""Mutual information of columns under the draws of a model.

Given a draw, two columns of one view depend on each other through the clusters alone,

    p(x, y) = sum_c w_c p(x | c) p(y | c),

and columns of two views through the clusters of both, if these are linked (_links.py),

    p(x, y) = sum_cd P(c, d) p(x | c) p(y | d);

else they are independent. Two columns of a family of whole rows have Student's t together in each
cluster, p(x, y | c). Between columns of few values the sum over values is exact; where a column is
continuous the mean of log p(x, y) / (p(x) p(y)) over simulated rows estimates it.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import xlogy

from ._cell_scores import SimulatedCells
from ._links import linked_pairs

MOST_COUNTS = 1024  # a column of counts that needs more values than these is simulated
TAIL = 1e-6  # probability of the largest counts, which are taken together
BLOCK_NUMBERS = 1 << 22  # held at a time


def mutual_information(predictor, columns, n_samples, seed):
    """Mutual information of each pair of columns, in nats, averaged over draws.

    Parameters
    ----------
    predictor : Predictor
    columns : list of int
    n_samples : int
        Rows simulated per draw and view, or pair of linked views, where simulation is needed.
    seed : SeedSequence

    Returns
    -------
    information : ndarray of shape (n, n)
        On the diagonal the entropies, infinite for numbers.
    error : ndarray of shape (n, n)
        Standard error of the simulation; 0 where the value is exact.
    """
    bit_generator = np.random.PCG64(seed)
    information, variance = np.zeros((2, len(columns), len(columns)))
    for views, links, weight in zip(predictor.draws, predictor.links, predictor.draw_weights):
        places = [[i for i, j in enumerate(columns) if j in view.features] for view in views]
        for view, at in zip(views, places):
            if at:
                own = [columns[i] for i in at]
                mean, error = _of_view(predictor, view, own, n_samples, bit_generator)
                information[np.ix_(at, at)] += weight * mean
                variance[np.ix_(at, at)] += (weight * error) ** 2
        own = [[columns[i] for i in at] for at in places]
        for u, v, mean, error in _between(predictor, views, links, own, n_samples, bit_generator):
            for at, of_mean, of_error in (
                (np.ix_(places[u], places[v]), mean, error),
                (np.ix_(places[v], places[u]), mean.T, error.T),
            ):
                information[at] += weight * of_mean
                variance[at] += (weight * of_error) ** 2
    total = predictor.draw_weights.sum()
    return np.maximum(information / total, 0.0), np.sqrt(variance) / total


def _between(predictor, views, links, columns, n_samples, bit_generator):
    """Yield two views that are linked, or in one tree, and information and standard error of the
    columns of the one with those of the other; `columns` are those compared, by view."""
    wanted = [v for v, of_view in enumerate(columns) if of_view]
    pairs = {(u, v): law for u, v, law in linked_pairs(views, links, wanted)}
    tables = {v: [_values(predictor, views[v], j) for j in columns[v]] for v in set().union(*pairs)}
    rest = {
        (u, v): np.array([[one is None or two is None for two in tables[v]] for one in tables[u]])
        for u, v in pairs
    }
    sums = {pair: np.zeros((2, *of.shape)) for pair, of in rest.items() if of.any()}
    linked = set().union(*sums)
    if linked:
        at = links.components(n_samples, views, np.random.Generator(bit_generator))
        simulated = {
            v: SimulatedCells(views[v], predictor.schema, columns[v], at[v], bit_generator)
            for v in sorted(linked)
        }
        widest = max(len(columns[u]) * (len(columns[v]) + len(views[v].slots)) for u, v in sums)
        of_likelihoods = sum(len(columns[v]) * len(views[v].slots) for v in linked)
        step = max(1, BLOCK_NUMBERS // (widest + of_likelihoods))
        for start in range(0, n_samples, step):
            logs = {
                v: of.scores(start, min(start + step, n_samples)) for v, of in simulated.items()
            }
            of_cells = {v: np.exp(of - of.max(axis=2, keepdims=True)) for v, of in logs.items()}
            for (u, v), both in sums.items():
                ratios = pairs[u, v].log_ratios(of_cells[u], of_cells[v])
                both += ratios.sum(axis=2), (ratios**2).sum(axis=2)
    for (u, v), law in pairs.items():
        information, error = _exact(law, tables[u], tables[v]), np.zeros(rest[u, v].shape)
        if (u, v) in sums:
            mean, square = sums[u, v] / n_samples
            variance = np.maximum(square - mean**2, 0.0) / n_samples
            information = np.where(rest[u, v], mean, information)
            error = np.where(rest[u, v], np.sqrt(variance), 0.0)
        yield u, v, information, error


def _exact(pair, one, two):
    """Information of columns of few values, whose tables these are; 0 of others."""
    out = np.zeros((len(one), len(two)))
    for i, table in enumerate(one):
        for j, other in enumerate(two):
            if table is not None and other is not None:
                joint = table.T @ pair.law @ other
                alone = joint.sum(axis=1), joint.sum(axis=0)
                out[i, j] = _negated_entropies(joint).sum() - sum(
                    _negated_entropies(of).sum() for of in alone
                )
    return out


def _of_view(predictor, view, columns, n_samples, bit_generator):
    """Information and standard error of the columns of one view of one draw."""
    weights = np.exp(view.log_weights)
    values = [_values(predictor, view, column) for column in columns]
    exact = [i for i, table in enumerate(values) if table is not None]
    information, error = np.zeros((2, len(columns), len(columns)))
    rest = [i for i, table in enumerate(values) if table is None]
    if rest and len(columns) > 1:
        mean, error_of_mean = _simulated(predictor, view, columns, rest, n_samples, bit_generator)
        for target, source in ((information, mean), (error, error_of_mean)):
            target[rest] = source
            target[:, rest] = source.T
    information[rest, rest], error[rest, rest] = np.inf, 0.0
    if exact:
        information[np.ix_(exact, exact)] = _enumerated(weights, [values[i] for i in exact])
    return information, error


def _values(predictor, view, column):
    """Probability of each value in each cluster, (K + 1, n_values), or None if there are many."""
    probabilities = view.level_probabilities(column)
    if probabilities is not None:
        return probabilities
    cells = predictor.schema.missing_cells(MOST_COUNTS)
    if cells[column].dtype.kind != "u":
        return None
    cells[column] = np.arange(MOST_COUNTS)
    scores = view.cell_scores(column, predictor.table(cells), 0, MOST_COUNTS)
    probabilities = np.exp(scores).T
    larger = np.maximum(1 - np.cumsum(probabilities, axis=1), 0.0)
    n_values = 1 + np.searchsorted(-(np.exp(view.log_weights) @ larger), -TAIL)
    if n_values > MOST_COUNTS:
        return None
    return np.hstack([probabilities[:, :n_values], larger[:, n_values - 1 : n_values]])


def _enumerated(weights, tables):
    """Information of each pair, from all pairs of values: (n, n), entropies on the diagonal.

    weights : (K + 1,); tables : list of (K + 1, n_values)
    """
    n = len(tables)
    sizes = [table.shape[1] for table in tables]
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    together = np.hstack(tables)
    entropy = -np.add.reduceat(_negated_entropies(weights @ together), starts)
    out = np.zeros((n, n))
    for i, table in enumerate(tables[:-1]):
        later = together[:, starts[i + 1] :]
        joint = np.zeros(later.shape[1])
        step = max(1, BLOCK_NUMBERS // later.shape[1])
        for start in range(0, sizes[i], step):
            own = weights[:, None] * table[:, start : start + step]
            joint += _negated_entropies(own.T @ later).sum(axis=0)
        pairs = np.add.reduceat(joint, starts[i + 1 :] - starts[i + 1])
        out[i, i + 1 :] = entropy[i] + entropy[i + 1 :] + pairs
    return out + out.T + np.diag(entropy)


def _negated_entropies(probabilities):
    return xlogy(probabilities, probabilities)


def _simulated(predictor, view, columns, rest, n_samples, bit_generator):
    """Estimates for the pairs of columns[rest] with all: means and standard errors, (n_rest, n)."""
    weights = np.exp(view.log_weights)
    cumulative = np.cumsum(weights)
    uniforms = np.random.Generator(bit_generator).random(n_samples) * cumulative[-1]
    at = np.minimum(np.searchsorted(cumulative, uniforms, side="right"), len(weights) - 1)
    simulated = SimulatedCells(view, predictor.schema, columns, at, bit_generator)
    table, joint = simulated.table, simulated.joint
    sums, squares = np.zeros((2, len(rest), len(columns)))
    step = max(1, BLOCK_NUMBERS // (len(columns) * (len(weights) + len(rest))))
    for start in range(0, n_samples, step):
        stop = min(start + step, n_samples)
        scores = simulated.scores(start, stop).transpose(1, 0, 2)
        largest = scores.max(axis=2, keepdims=True)
        likelihood = np.exp(scores - largest)
        alone = np.log(likelihood @ weights)
        both = (likelihood[:, rest] * weights) @ likelihood.transpose(0, 2, 1)
        for pairs in joint:
            own = np.column_stack([table.column(j, start, stop) for j in pairs.columns])
            _put_together(both, pairs, own.astype(np.float64), columns, rest, largest, weights)
        ratios = np.log(np.maximum(both, np.finfo(float).tiny))
        ratios -= alone[:, rest, None] + alone[:, None, :]
        sums += ratios.sum(axis=0)
        squares += (ratios**2).sum(axis=0)
    mean = sums / n_samples
    return mean, np.sqrt(np.maximum(squares / n_samples - mean**2, 0.0) / n_samples)


def _put_together(both, pairs, cells, columns, rest, largest, weights):
    """Replace products of densities by the densities of pairs that are dependent in a component.

    both : (n, n_rest, n_columns), relative to `largest`, (n, n_columns, 1); written
    """
    at = np.array([columns.index(j) for j in pairs.columns])
    for i, place in enumerate(at):
        others = np.delete(at, i)
        logs = pairs.together(i, cells) - largest[:, [place]] - largest[:, others]
        both[:, rest.index(place), others] = np.exp(logs) @ weights
