"""How probable it is that two columns depend on each other.

Of one view, both have to have to do with its components (_relevance.py). That is not enough:
components may tell one column by some of their distinctions, and another by others. So the draw's
law is asked for the information that two columns x and y have of each other, and for what they have
given the view's other columns r, without which an exclusive or would not be seen,

    I(x; y) = E log p(x, y) / (p(x) p(y))
    I(x; y | r) = E log p(x, y | r) / (p(x | r) p(y | r)).

n rows gain n I nats by it. Independent columns gain something, too, since the law is fitted. So the
gain is held against what the law's freedom costs. The canonical variates of x and its component
have squared correlations a_1, a_2, ..., those of y and its component b_1, b_2, ...; a variate of
the one may go with a variate of the other by some coefficient, of which n rows tell as much as
n a_i b_j rows whose components are seen. In a prior that weighs one row the log odds are

    n I - 1/2 sum_ij log(1 + n a_i b_j),        the sum at least log(1 + n),

which is Schwarz's criterion where components do not overlap, a_i = b_j = 1 (Kass and Wasserman
1995). The sum is at least that of one parameter, which any dependence has. Of the pairs ij only the
K - 1 largest count: a table of which K components fill K cells has no more free probabilities.
Given r there is such a sum for each of the g groups of components that the other columns tell
apart, g = 1 + c_1 + c_2 + ..., with n / g rows each. Both kinds of dependence have even odds.

Expectations are means over rows that are simulated from the draw's law. With the ratio q in the
logarithm, log q + 1/q - 1 has the expectation of log q and is nowhere negative: where columns are
independent it hardly varies. Where a law all but excludes some pairs of values, simulated rows lack
these, and the mean is too small by the share that independent columns would have of them: of two
even groups that exclude each other it is 0.19 nats for 0.69. So less may be said than could be.

Columns of two views can depend on each other if the views are linked (_links.py): through the law
of pairs of components, whose freedom is counted in the same way. What they have of each other given
other columns is not asked.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..families import Table
from ..families._categorical import Categorical
from ..families._semi_continuous import SemiContinuous
from ._cell_scores import SimulatedCells
from ._covariance_odds import covariance_odds
from ._links import linked_pairs
from ._relevance import relevances

N_SIMULATED = 250  # rows of a view
LEAST = np.finfo(float).tiny  # density, relative to that in the best component


def dependences_of_draw(views, links, schema, asked):
    """Yield columns, others, and how probable it is that two of them depend on each other, for the
    columns of each view of a draw and for those of each two that are linked. Only what is said of
    the columns that are asked for holds."""
    known = [relevant_columns(view) for view in views]
    for view, of_view in zip(views, known):
        columns, both = dependences(view, schema, of_view, asked)
        yield columns, columns, both
    relevant = [of_columns for of_columns, _ in known]
    yield from dependences_between(views, links, relevant, schema, asked)


def dependences(view, schema, known=None, asked=None):
    """Probability that two columns of a view depend on each other.

    Jointly normal columns may depend on each other within components (_covariance_odds.py). They
    are not simulated here: beside that, and with other columns, they depend on each other where
    both have to do with the components.

    Parameters
    ----------
    view : View
    schema : Schema
        Of the view's table.
    known : tuple, optional
        What `relevant_columns` gives of the view.
    asked : set of int, optional
        The columns of which it is asked, by default all: what is said of others does not hold.

    Returns
    -------
    columns : list of int
        The view's.
    probabilities : ndarray of shape (n_columns, n_columns)
        Symmetric.
    """
    columns = sorted(view.features)
    relevant, joint = relevant_columns(view) if known is None else known
    own = np.array([relevant[j] for j in columns])
    out = np.multiply.outer(own, own)
    single = [i for i, j in enumerate(columns) if not view.is_joint(j)]
    if out[np.ix_(single, single)].any():
        pairs = of_single_columns(view, schema, [columns[i] for i in single], asked)
        out[np.ix_(single, single)] *= pairs
    for block, within in joint:
        at = np.flatnonzero(np.isin(columns, block.columns))
        out[np.ix_(at, at)] = 1.0 - (1.0 - out[np.ix_(at, at)]) * (1.0 - within)
    return columns, out


def relevant_columns(view):
    """The probability that a column has to do with the components, by column; and for each block of
    jointly normal columns, the block and the probability that two of them depend on each other
    within components."""
    relevant, joint = relevances(view), []
    for block in view.mixture.blocks:
        if block.joint:
            within, of_block = covariance_odds(block, view.slots[:-1])
            relevant |= dict(zip(block.columns.tolist(), of_block))
            joint.append((block, within))
    return relevant, joint


def of_single_columns(view, schema, columns, asked=None):
    """The same of columns that both have to do with the components: (n_columns, n_columns), 0 for
    those of which it is not asked."""
    logs, weights = simulated(view, schema, columns)
    n_rows, share = view.mixture.sizes().sum(), _shares_observed(view)
    seen = np.array([share[j] for j in columns])
    whole, n_columns = logs.sum(axis=0) + np.log(weights), len(columns)
    at = [i for i, j in enumerate(columns) if asked is None or j in asked]
    out, (logs, seen) = np.zeros((n_columns, n_columns)), (logs[at], seen[at])
    told = Told.of(logs, weights)
    for i in range(1, len(at)):
        x, y, n = told.some(i), told.some(slice(i)), n_rows * seen[i] * seen[:i]
        odds = [n * information(x, y, weights) - cost(n, x, y)]
        if n_columns > 2:
            rest = components(whole - logs[i] - logs[:i])
            groups = np.mean(rest**2 @ (1.0 / weights), axis=-1)
            odds.append(n * information(x, y, rest) - groups * cost(n / groups, x, y))
        out[at[i], at[:i]] = expit(np.logaddexp.reduce(odds) - np.log(len(odds)))
    return out + out.T


def dependences_between(views, links, relevant, schema, asked):
    """Yield what `dependences` gives of the columns of two views that are linked, or in one tree
    of links, for each two of a draw.

    As within a view, both columns have to do with their components, and the information that rows
    gain by their dependence is held against what its freedom costs.

    Parameters
    ----------
    views : list of View
    links : Links
    relevant : list of dict of int to float
        By view, the probability that a column has to do with the components.
    schema : Schema
    asked : set of int
        The columns of which it is asked.

    Yields
    ------
    columns, others : list of int
        Those of which it is asked.
    probabilities : ndarray of shape (n_columns, n_others)
    """
    bit_generator = np.random.PCG64(0)
    at = links.components(N_SIMULATED, views, np.random.Generator(bit_generator))
    told = {v: _Linked.of(views[v], schema, at[v], relevant[v], asked, bit_generator) for v in at}
    for u, v, law in linked_pairs(views, links, [v for v in sorted(told) if told[v].columns]):
        one, two = told[u], told[v]
        ratios = law.log_ratios(one.told.likelihood, two.told.likelihood)
        gain = np.mean(ratios + np.expm1(-ratios), axis=-1)
        n = views[u].mixture.sizes().sum() * np.multiply.outer(one.seen, two.seen)
        costs = np.stack([cost(n[i], one.told.some(i), two.told) for i in range(len(n))])
        both = np.multiply.outer(one.relevant, two.relevant)
        yield one.columns, two.columns, expit(n * gain - costs) * both


class _Linked(NamedTuple):
    """What is known of the columns of a view that is linked with others.

    Attributes
    ----------
    columns : list of int
    relevant, seen : ndarray of shape (n_columns,)
        The probability that it has to do with the components, and the share of its cells that are
        there.
    told : Told
        Of all components and a new one.
    """

    columns: list
    relevant: np.ndarray
    seen: np.ndarray
    told: "Told"

    @classmethod
    def of(cls, view, schema, at, relevant, asked, bit_generator):
        every = sorted(view.features)
        columns, share = [j for j in every if j in asked], _shares_observed(view)
        own = (np.array([of[j] for j in columns]) for of in (relevant, share))
        # All columns are simulated, so that no answer depends on what else is asked.
        cells = SimulatedCells(view, schema, every, at, bit_generator)
        if not columns:
            return cls(columns, *own, None)
        weights = np.maximum(np.exp(view.log_weights), LEAST)
        return cls(columns, *own, Told.of(cells.scores(columns=columns), weights))


def simulated(view, schema, columns):
    """Log density of simulated cells in each component, (n_columns, n, K + 1), and the weights; a
    new component is left out if there cannot be one."""
    bit_generator = np.random.PCG64(0)  # the same for each view: a draw's answer is its own
    weights = np.exp(view.log_weights)
    weights /= weights.sum()
    generator = np.random.Generator(bit_generator)
    at = generator.choice(len(weights), size=N_SIMULATED, p=weights)
    cells, table = schema.missing_cells(N_SIMULATED), Table(*schema)
    for j in columns:
        cells[j] = view.sample_cells(j, at, bit_generator)
    table.append(cells)
    logs = np.stack([view.cell_scores(j, table, 0, N_SIMULATED) for j in columns])
    can_be = weights > 0.0  # a finite prior may have no further component
    return np.compress(can_be, logs, axis=-1), weights[can_be]


class Told(NamedTuple):
    """What simulated cells of a column, or of each of several, tell of the components.

    Attributes
    ----------
    likelihood : ndarray of shape (..., n, K + 1)
        Relative to the largest of a row.
    squares : ndarray of shape (..., K)
        Squared canonical correlations of the column and its component.
    """

    likelihood: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, logs, weights):
        """Of the log densities of cells, (..., n, K + 1)."""
        likelihood = np.exp(logs - logs.max(axis=-1, keepdims=True))
        told = components(np.log(weights) + logs) / np.sqrt(weights)
        squares = np.linalg.eigvalsh(np.swapaxes(told, -1, -2) @ told / logs.shape[-2])
        return cls(likelihood, np.maximum(squares[..., :-1], 0.0))  # the last is about 1

    def some(self, columns):
        """Of some of the columns."""
        return Told(self.likelihood[columns], self.squares[columns])


def components(logs):
    """Probability of each component given what has these logarithms: (..., n, K + 1)."""
    of = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return of / of.sum(axis=-1, keepdims=True)


def cost(n, x, y):
    """What the freedom of a dependence costs n rows, in nats."""
    most = min(x.squares.shape[-1], y.squares.shape[-1]) - 1
    products = x.squares[..., :, None] * y.squares[..., None, :]
    largest = np.sort(products.reshape(*products.shape[:-2], -1), axis=-1)[..., ::-1][..., :most]
    return 0.5 * np.maximum(np.log1p(np.expand_dims(n, -1) * largest).sum(axis=-1), np.log1p(n))


def information(x, y, shares):
    """Mean information of x and y where components have these shares, (..., K + 1)."""
    of_x = x.likelihood * shares
    densities = of_x.sum(axis=-1), np.sum(y.likelihood * shares, axis=-1)
    both = np.sum(of_x * y.likelihood, axis=-1)
    of_x, of_y, both = (np.log(np.maximum(of, LEAST)) for of in (*densities, both))
    logs = np.maximum(both - of_x - of_y, np.log(LEAST))
    return np.mean(logs + np.expm1(-logs), axis=-1)


def _shares_observed(view):
    """Which share of the rows has a column's cell, by column; 1 of jointly normal ones, whose gaps
    are part of the state."""
    n_rows, out = view.mixture.sizes().sum(), dict.fromkeys(view.features, 1.0)
    for block in view.mixture.blocks:
        out |= {j: n / n_rows for j, n in observed(block, view.slots[:-1])}
    return out


def observed(block, slots):
    """Pairs of a column of single cells and how many of them are there, in these slots."""
    if block.joint:
        return []
    arrays = block.to_arrays(slots)
    if isinstance(block, Categorical):
        numbers = arrays["size"].sum() - arrays["missing"].sum(axis=1)
    elif isinstance(block, SemiContinuous):
        numbers = arrays["count"].sum(axis=(1, 2))
    else:
        numbers = arrays["n"].sum(axis=1)
    return list(zip(block.columns.tolist(), numbers.tolist()))
