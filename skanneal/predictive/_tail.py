"""How odd rows are: the probability, under a mixture, of rows as odd as these.

A density has units, spikes, and as many factors as a row has cells; a probability has neither.
Densities that are compared below, between rows or components, are those of the numbers whose law
the family is, of logarithms for log-normal amounts, per scale of the column (`View.log_slope`): a
density of the amounts grows without bound towards 0.

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

The laws of the surprisal -log p_k, and so T_k, are those of _surprisal_laws.py; what becomes of
numbers with atoms is said in _atom_tails.py.

Training rows are scored without themselves: component sizes and weights, and the surprisal in the
row's own component, are those without the row; the law of the surprisal keeps it, which matters
little, as the component then counts little.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ..parallel import LEAST
from ._atom_tails import AtomTails, elsewhere
from ._draws import state_of
from ._patterns import distinct, patterns
from ._predictor import BLOCK_BYTES, Predictor
from ._tail_sums import tail_sums
from ._view import View

MOST_DRAWS, FEW_DRAWS = 8, 2  # of all chains, for training rows
TIMED_ROWS = 1000  # scored first, to forecast how long all rows will take
SORTED = 8  # components whose surprisals bring rows of equal cells together
MOST_SCORES, MOST_TERMS = 400_000, 1_000_000  # rows times draws, and these times components


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


def view_scores(view, table, maker, training=False):
    """Scores of a table's rows in one view; `training` says that they are those of the view, each
    of which is scored without itself: (n_rows,)."""
    tails = ViewScores(view, table, patterns(table), maker).log_tails(0, table.n_rows, training)
    return -tails


def training_scores(draws, draw_weights, table, schema, limit=None, asked=None):
    """Scores of training rows, each without itself, from at most 8 of the draws: (n_rows,).

    The rows are read as a query is: `asked` has rounded numbers without the noise that `table` has.
    With the noise they would look odder than the same rows do to `outlier_scores`.

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
    asked = table if asked is None else asked
    of_rows = patterns(asked)
    n_done, seconds = 0, LEAST
    many = table.n_rows > TIMED_ROWS
    while n_done < len(draws) and not (limit and limit.left <= seconds and (n_done or many)):
        began = limit.taken if limit else 0.0
        state = state_of(draws[n_done], table)
        views = [ViewScores(View(mixture), asked, of_rows, maker) for mixture in state.views]
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
        tails = AtomTails(view, maker.table, maker.schema)
        observed = np.zeros_like(of_rows[0])
        observed[:, tails.columns] = of_rows[0][:, tails.columns]
        observed, own = distinct(observed)
        self.pattern = own[of_rows[1]]
        self.laws, self.entropies = tails.laws(observed), tails.entropies()
        self.typical = tails.typical(self.laws, observed)
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
        for j, of_components in self.entropies.items():
            surprisals -= elsewhere(self.table, j, rows[0], rows[-1] + 1)[:, None] * of_components
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
    log_weights = np.array([weights_without(view.mixture, sizes[:-1], k) for k in of_case])
    return log_standing(log_weights, others, typical[of_pattern]), case


def weights_without(mixture, sizes, k):
    """Log weights of components, and of a new one, without a row of component k: (K + 1,)."""
    left = sizes.copy()
    left[k] -= 1
    there, out = np.flatnonzero(left), np.full(len(left) + 1, -np.inf)
    out[np.r_[there, len(left)]] = mixture.prior.log_weights(left[there])
    return out
