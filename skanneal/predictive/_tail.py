"""How odd rows are: the probability, under a mixture, of rows as odd as these.

A density has units, spikes, and as many factors as a row has cells; a probability has neither.
Densities that are compared below, between rows, components, or with the probabilities of atoms, are
those of the numbers whose law the family is, of logarithms for log-normal amounts, per scale of the
column (`View.log_slope`): a density of the amounts grows without bound towards 0.

For a draw with components k of weight w_k (a new one among them) and a row x with its pattern of
gaps, all of what follows being of the observed cells alone, a row is as odd as x in three ways:

- T_k(x): a row of component k has a predictive density as low as x's. x is at the rim of k.
- S_k: a row's component has no more rows than k. So small groups of rows that resemble each other,
  however dense, are odd.
- D_k: a row's component is, weight times density at a typical row, no denser than k: rows of a
  diffuse component, which may well be in the middle of it, are odd.

The score of x is -log of sum_k w_k S_k D_k T_k(x), the probability averaged over draws; with
several views, whose parts of a row are independent, the product over views. With one component it
is -log T(x), exponential of rate 1 for rows of the model.

The law of the surprisal -log p_k: above its least value it is -h log B, B ~ Beta(a, b), for
Student's t of nu degrees of freedom and d cells (a = nu / 2, b = d / 2, h = a + b), so that T_k is
exact for one such row family. What is left of a `multivariate_t` where cells are missing is taken
to be Student's t, but with h larger by the factor by which complete rows are more surprising on
average. For sums over columns, and for complete rows of other row families, a gamma distribution
has the sum's least value, mean and variance, which are exact for Student's t and for levels, and
otherwise of a fixed sample: 64 from each component, fewer where there are more than 64 components
or rows are of many columns, and at least 8, whose mean surprisal has an error of a third of its
spread. A component's law comes from its own sample and those of 15 others, weighted for it: the
cost of all under all would grow with the square of the components, beyond that of a fit.

Training rows are scored without themselves: component sizes and weights, and the surprisal in the
row's own component, are those without the row; the law of the surprisal keeps it, which matters
little, as the component then counts little.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import digamma, logsumexp, polygamma

from ..parallel import LEAST
from ..states import state_from_arrays
from ._predictor import BLOCK_BYTES, Predictor, View
from ._tail_sums import tail_sums

SAMPLED = 64  # cells of each component, where the law of a surprisal is not known
LEAST_SAMPLED = 8  # cells of each component, where the limits below leave fewer
MOST_SAMPLED, MOST_CELLS = 4096, 2**24  # rows sampled from all components together, and their cells
TOGETHER = 16  # components that are sampled for each other
SEED = 0  # of these
DENSE_CELLS = 2**17  # drawn at a time of rows of counts, which are kept sparse
MOST_DRAWS, FEW_DRAWS = 8, 2  # of all chains, for training rows
TIMED_ROWS = 1000  # scored first, to forecast how long all rows will take
SORTED = 8  # components whose surprisals bring rows of equal cells together
MOST_SCORES, MOST_TERMS = 400_000, 1_000_000  # rows times draws, and these times components


class Law(NamedTuple):
    """The law of a surprisal in every component, an array of shape (K + 1,) each.

    least, mean, variance: of the surprisal, the latter two of what it is above the least. beta:
    (a, b, h) if its law is known, else None.
    """

    least: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    beta: tuple | None = None

    @classmethod
    def of_beta(cls, least, a, b, h):
        mean = h * (digamma(a + b) - digamma(a))
        return cls(least, mean, h**2 * (polygamma(1, a) - polygamma(1, a + b)), (a, b, h))

    @classmethod
    def of_points(cls, surprisals, weights):
        """From points, (n_points, K + 1) both; the weights of each component sum to 1."""
        least = np.where(weights > 0, surprisals, np.inf).min(axis=0)
        above = np.where(weights > 0, surprisals - least, 0.0)
        mean = (weights * above).sum(axis=0)
        return cls(least, mean, (weights * (above - mean) ** 2).sum(axis=0))

    def __add__(self, other):
        parts = (one + two for one, two in zip(self[:3], other[:3]))
        return Law(*parts)


def nothing(view):
    """The law where no cell is observed."""
    return Law(*np.zeros((3, len(view.slots))))


class ViewTails:
    """The laws of surprisals in a view of a draw, by pattern of gaps.

    Parameters
    ----------
    view : View
    table : callable
        Makes a Table of the schema from encoded columns.
    schema : Schema
    """

    def __init__(self, view, table, schema):
        self.view, self.table, self.schema = view, table, schema
        self.columns = sorted(view.features)
        self.known = {}

    def laws(self, observed):
        """The laws of rows of several patterns, (n_patterns, n_columns): what `law` gives of each,
        where all patterns' cells of a row family are scored together."""
        for block in self.view.mixture.blocks:
            if block.joint and block.tail_exponent(1) is not None:
                masks = distinct(observed[:, block.columns])[0]
                masks = masks[masks.any(axis=1)]
                for mask, least in zip(masks, self.leasts_of_rows(block, masks)):
                    columns = [int(j) for j in block.columns[mask]]
                    self._once((block.family, *columns), self._of_row, block, columns, least)
        return [self.law(which) for which in observed]

    def law(self, observed):
        """The law of the surprisal of a row of which these columns are observed: (n_columns,)."""
        laws = []
        for block in self.view.mixture.blocks:
            columns = [int(j) for j in block.columns if observed[j]]
            if block.joint and columns:
                laws.append(self._once((block.family, *columns), self._of_row, block, columns))
            elif not block.joint:
                laws += [self._once(j, self._of_column, j) for j in columns]
        return sum(laws[1:], laws[0]) if laws else nothing(self.view)

    def _once(self, key, make, *arguments):
        if key not in self.known:
            self.known[key] = make(*arguments)
        return self.known[key]

    def _of_column(self, j):
        view, (block, f) = self.view, self.view.features[j]
        beta = block.excess_law(f)
        if beta is not None:
            return Law.of_beta(self.least_of_column(j), *self._of_slots(beta))
        levels = view.level_probabilities(j)
        if levels is not None:
            return Law.of_points(_surprisals(levels.T), levels.T)
        n_cells = len(block.columns)

        def scored(part, at, bits):
            own = int(np.flatnonzero(part.columns == j)[0])
            table = self._table({j: part.sample_feature(own, at, bits)})
            scores = np.zeros((table.n_rows, part.n_slots))
            part.score_feature(own, table, scores, 0, table.n_rows)
            return scores - np.reshape(view.log_slope(part, own, table, 0, table.n_rows), (-1, 1))

        return self._of_samples(block, n_cells, scored)

    def _of_row(self, block, columns, least=None):
        law = self._once(("cells", block.family, len(columns)), self._of_cells, block, len(columns))
        if law is not None:
            if least is None:
                (least,) = self.leasts_of_rows(block, np.isin(block.columns, columns)[None])
            return law._replace(least=least)
        n_cells = len(block.columns) if block.cells == "count_row" else 1

        def scored(part, at, bits):
            if block.cells == "count_row":
                pieces = np.array_split(at, 1 + len(at) * n_cells // DENSE_CELLS)
                rows = [csr_array(part.sample_rows(own, bits).astype(np.uint32)) for own in pieces]
                return row_scores(part, self._table({columns[0]: csr_array(vstack(rows))}))
            rows = part.sample_rows(at, bits)
            cells = {int(j): rows[:, i] for i, j in enumerate(part.columns) if j in columns}
            return row_scores(part, self._table(cells))

        return self._of_samples(block, n_cells, scored)

    def _of_cells(self, block, n_cells):
        """The law of so many cells of a row family above its least value, which depends on which
        they are; None if it is not known."""
        beta = self._beta_of_row(block, n_cells)
        return None if beta is None else Law.of_beta(0.0, *self._of_slots(beta))

    def _beta_of_row(self, block, n_cells):
        """(a, b, h) of so many cells of a row family; None if the law is neither known nor, where
        cells are missing, taken to be Student's t but for its scale, which is that of the sample of
        complete rows."""
        beta, h = block.excess_law(n_cells), block.tail_exponent(n_cells)
        if beta is not None or h is None or n_cells == len(block.columns):
            return beta
        a, b, _ = self._of_slots((h - 0.5 * n_cells, 0.5 * n_cells, h))
        return a, b, h * self._once(("scale", block.family), self._scale_of_rows, block)

    def _scale_of_rows(self, block):
        """How much larger a complete row's mean surprisal above that of its centre is than that of
        Student's t: (K + 1,)."""
        n_cells, columns = len(block.columns), [int(j) for j in block.columns]
        h = block.tail_exponent(n_cells)
        law = self._once((block.family, *columns), self._of_row, block, columns)
        (least,) = self.leasts_of_rows(block, np.ones((1, n_cells), dtype=bool))
        of_t = Law.of_beta(least, h - 0.5 * n_cells, 0.5 * n_cells, h).mean
        scale = (law.least + law.mean - least) / of_t
        return np.where(scale > 0.0, scale, 1.0)

    def least_of_column(self, j):
        """The surprisal of a number at its predictive mean: (K + 1,)."""
        view, (block, f) = self.view, self.view.features[j]
        centres, n = self._table({j: view.means(j)}), len(view.slots)
        scores = np.diag(view.cell_scores(j, centres, 0, n))
        return view.log_slope(block, f, centres, 0, n) - scores

    def leasts_of_rows(self, block, masks):
        """The surprisal of some cells of a row family at their predictive means.

        Parameters
        ----------
        block : a row family's
        masks : bool array of shape (n_patterns, n_columns of the block)
            Which cells there are.

        Returns
        -------
        leasts : ndarray of shape (n_patterns, K + 1)
        """
        return -block.log_centres(masks, self.view.slots)

    def _of_samples(self, block, n_cells, scored):
        """The law of a block's surprisals, or of one of its columns', from a fixed sample.

        scored : ``scored(part, at, bits)`` draws cells of the slots `at` of a part of the block,
            and gives their scores in all of its slots.
        """
        slots, bits = self.view.slots, np.random.PCG64(SEED)
        most = min(MOST_SAMPLED, MOST_CELLS // n_cells)
        n_each = np.clip(most // len(slots), LEAST_SAMPLED, SAMPLED)
        laws = []
        for part, n_own in self._once(("parts", block.family), self._parts, block):
            scores = scored(part, np.repeat(np.arange(n_own), n_each), bits)[:, :n_own]
            laws.append(Law.of_points(-scores, _shares(scores)))
        return Law(*(np.concatenate([law[i] for law in laws]) for i in range(3)))

    def _parts(self, block):
        """Blocks of some of the slots each, and how many."""
        table, slots = self._table({}), self.view.slots
        parts = np.array_split(slots, -(-len(slots) // TOGETHER))
        return [(type(block).from_arrays(block.to_arrays(own), table), len(own)) for own in parts]

    def _of_slots(self, beta):
        slots = self.view.slots
        return tuple(
            value[slots] if np.ndim(value) else np.full(len(slots), value) for value in beta
        )

    def _table(self, cells):
        """Rows of which some columns have these cells."""
        n_rows = next((values.shape[0] for values in cells.values()), 0)
        columns = self.schema.missing_cells(n_rows)
        for j, values in cells.items():
            columns[j] = values.astype(columns[j].dtype)
        return self.table(columns)


def row_scores(block, table):
    scores = np.zeros((table.n_rows, block.n_slots))
    block.score_rows(table, scores, 0, table.n_rows)
    return scores


def _surprisals(probabilities):
    with np.errstate(divide="ignore"):
        return -np.log(probabilities)


def _shares(scores):
    """For each component, how much each point counts: all were drawn from all components alike."""
    shares = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    return shares / shares.sum(axis=0)


# ---- the three ways to be odd --------------------------------------------------------------------


def log_standing(log_weights, sizes, typical):
    """log w_k S_k D_k of components, along the last axis.

    Parameters
    ----------
    log_weights, sizes : ndarray of shape (..., K + 1)
    typical : ndarray of shape (..., K + 1)
        Mean log density in each component.
    """
    weights = np.exp(log_weights)
    shares = share_up_to(sizes, weights) * share_up_to(log_weights + typical, weights)
    with np.errstate(divide="ignore"):
        return log_weights + np.log(shares)


def share_up_to(keys, weights):
    """For each component, the weight of those whose key is no larger."""
    keys, weights = np.broadcast_arrays(keys, weights)
    order = np.argsort(keys, axis=-1, kind="stable")
    ranked = np.take_along_axis(keys, order, axis=-1)
    sums = np.cumsum(np.take_along_axis(weights, order, axis=-1), axis=-1)
    last = np.ones(keys.shape, dtype=bool)  # of equal keys
    last[..., :-1] = ranked[..., 1:] != ranked[..., :-1]
    sums = np.where(last, sums, np.inf)
    sums = np.minimum.accumulate(sums[..., ::-1], axis=-1)[..., ::-1]
    out = np.empty(keys.shape)
    np.put_along_axis(out, order, sums, axis=-1)
    return out


def log_sums(log_standing, surprisals, laws, pattern, case=None):
    """log sum_k of standing times tail probability: (n_rows,).

    Levels that are all equally probable have a law without spread. Its tail falls from 1 at its
    point as the probability of a row does: beyond lie training rows, which are scored without
    themselves, and levels that were not seen.

    Parameters
    ----------
    log_standing : ndarray of shape (n_cases, K + 1)
    surprisals : ndarray of shape (n_rows, K + 1)
    laws : list of Law
        One per pattern.
    pattern : int array of shape (n_rows,)
        Of each row.
    case : int array of shape (n_rows,) or None
        Which standing is a row's; None: each row has its own.
    """
    case = np.arange(len(surprisals)) if case is None else case
    out = np.empty(len(surprisals))
    for p, law in enumerate(laws):
        a, b, scale = law.beta or _gamma_shape(law)
        rows = np.flatnonzero(pattern == p)
        rows = rows[np.lexsort(surprisals[rows, :SORTED].T)]  # equal cells side by side
        tail_sums(log_standing, case, surprisals, law.least, scale, a, b, rows, out)
    return out


def _gamma_shape(law):
    """Shape, 0 and scale of gamma laws with these means and variances; shape 0, scale 1 of a law
    without spread."""
    spread = law.variance > 1e-12
    scale = np.where(spread, law.variance, 1.0) / np.where(spread, law.mean, 1.0)
    return np.where(spread, law.mean / scale, 0.0), np.zeros(len(scale)), scale


# ---- rows ----------------------------------------------------------------------------------------


def patterns(table):
    """Which of the columns each row observes: the distinct patterns, and each row's.

    Returns
    -------
    observed : bool array of shape (n_patterns, table.n_columns)
    pattern : int array of shape (n_rows,)
    """
    gappy = [j for j in range(table.n_columns) if table.has_missing(j)]
    if not gappy:
        return np.ones((1, table.n_columns), bool), np.zeros(table.n_rows, dtype=np.int64)
    masks, pattern = distinct(np.column_stack([~table.missing(j) for j in gappy]))
    observed = np.ones((len(masks), table.n_columns), dtype=bool)
    observed[:, gappy] = masks
    return observed, pattern


def distinct(masks):
    """The distinct rows of a bool array, and which of them each row is."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    keys = packed.view(f"V{packed.shape[1]}")[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return masks[first], which


def outlier_scores(predictor, table):
    """Scores of new rows: (n_rows,)."""
    if not table.n_rows:
        return np.empty(0)
    log_tails = np.zeros((len(predictor.draws), table.n_rows))
    log_tails += np.log(predictor.draw_weights)[:, None]
    of_rows = patterns(table)
    for views, log_tail in zip(predictor.draws, log_tails):
        for view in views:
            log_tail += ViewScores(view, table, of_rows, predictor).log_tails(0, table.n_rows)
    return np.log(predictor.draw_weights.sum()) - logsumexp(log_tails, axis=0)


def training_scores(draws, draw_weights, table, schema, limit=None):
    """Scores of training rows, each without itself, from at most 8 of the draws: (n_rows,).

    With a TimeLimit no draw is begun that would take longer than what is left, going by some rows
    or by the draw before. If there is no time even for one draw of many rows, all scores are nan.
    """
    n_terms = table.n_rows * int(np.sum(draws[0].n_components))
    most = max(MOST_SCORES // table.n_rows, 1), max(MOST_TERMS // n_terms, FEW_DRAWS)
    n_draws = min(MOST_DRAWS, *most)
    at = np.unique(np.linspace(0, len(draws) - 1, n_draws).round().astype(int))
    draws, weights = [draws[i] for i in at], np.asarray(draw_weights)[at]
    maker = Predictor(draws[:0], schema)
    log_tails = np.zeros((len(draws), table.n_rows)) + np.log(weights)[:, None]
    of_rows = patterns(table)
    n_done, seconds = 0, LEAST
    many = table.n_rows > TIMED_ROWS
    while n_done < len(draws) and not (limit and limit.left <= seconds and (n_done or many)):
        began = limit.taken if limit else 0.0
        state = state_from_arrays(draws[n_done].arrays, table)
        views = [ViewScores(View(mixture), table, of_rows, maker) for mixture in state.views]
        if limit and many and not n_done and _forecast(views, table, limit) > limit.left:
            break
        for view in views:
            log_tails[n_done] += view.log_tails(0, table.n_rows, training=True)
        seconds, n_done = limit.taken - began if limit else 0.0, n_done + 1
    if not n_done:
        return np.full(table.n_rows, np.nan)
    return np.log(weights[:n_done].sum()) - logsumexp(log_tails[:n_done], axis=0)


def _forecast(views, table, limit):
    """Seconds that all training rows of a draw take, going by some in the middle."""
    began, first = limit.taken, (table.n_rows - TIMED_ROWS) // 2
    for view in views:
        view.log_tails(first, first + TIMED_ROWS, training=True)
    return (limit.taken - began) * table.n_rows / TIMED_ROWS


class ViewScores:
    """The scores of a table's rows in a view of a draw; `of_rows` is what `patterns` gives of the
    table, and `maker` makes tables of the schema."""

    def __init__(self, view, table, of_rows, maker):
        self.view, self.table = view, table
        tails = ViewTails(view, maker.table, maker.schema)
        observed = np.zeros_like(of_rows[0])
        observed[:, tails.columns] = of_rows[0][:, tails.columns]
        observed, own = distinct(observed)
        self.pattern = own[of_rows[1]]
        self.laws = tails.laws(observed)
        self.typical = -np.array([law.least + law.mean for law in self.laws])
        self.sizes = np.r_[view.mixture.sizes()[view.slots[:-1]], 0]
        self.standing = log_standing(view.log_weights, self.sizes, self.typical)

    def log_tails(self, start, stop, training=False):
        """log of the view's part of the probability of the rows from start to stop: (n,)."""
        step = max(1, BLOCK_BYTES // (32 * self.view.mixture.n_slots))
        blocks = [
            self._of_rows(np.arange(first, min(first + step, stop)), training)
            for first in range(start, stop, step)
        ]
        return np.concatenate(blocks)

    def _of_rows(self, rows, training):
        view, pattern = self.view, self.pattern[rows]
        surprisals = surprisals_of(view, self.table, rows[0], rows[-1] + 1)
        cases, case = self.standing, pattern
        if training:
            own, loss = own_components(view, rows)
            surprisals[np.arange(len(rows)), own] += loss
            cases, case = standing_without(view, self.sizes, self.typical, own, pattern)
        return log_sums(cases, surprisals, self.laws, pattern, case)


def surprisals_of(view, table, start, stop):
    """Minus the log density of each row, without units: (stop - start, n_slots)."""
    scores = view.mixture.score_rows(table, start, stop)[0]
    return view.log_slopes(table, start, stop)[:, None] - scores


def own_components(view, rows):
    """Each row's component, and by how much the row is more surprising there without itself."""
    mixture = view.mixture
    slots = np.asarray(mixture.get_labels())[rows].astype(np.int64)
    loss = np.zeros(len(rows))
    for block in mixture.blocks:
        block.losses_without(rows, slots, loss)
    loss[mixture.sizes()[slots] == 1] = 0.0  # without the row there is no such component
    return np.searchsorted(view.slots[:-1], slots), loss


def standing_without(view, sizes, typical, own, pattern):
    """What `log_standing` is without the row itself: (n_cases, K + 1), and the case of each row."""
    cases, case = np.unique(own * len(typical) + pattern, return_inverse=True)
    of_case, of_pattern = np.divmod(cases, len(typical))
    others = np.repeat(sizes[None], len(cases), axis=0)
    others[np.arange(len(cases)), of_case] -= 1
    log_weights = np.full(others.shape, -np.inf)
    for row, left in zip(log_weights, others):
        there = np.r_[np.flatnonzero(left[:-1]), len(left) - 1]
        row[there] = view.mixture.prior.log_weights(left[there[:-1]])
    return log_standing(log_weights, others, typical[of_pattern]), case
