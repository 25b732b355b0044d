r"""The views of a draw together: what a row's cells in one view say of its components in others.

By states/_links.py a link says how probable component l of a view is, given component k of another.
With the weights of components as margins this is a law of pairs P(k, l) = w_k w_l r_kl, the nearest
one to w_k p(l | k) that has these margins (Deming and Stephan 1940); a new component goes with any
other, r = 1. So the law of the columns of one view is the same with links and without; links say
how views go together. Along a forest of links

    p(k_1, ..., k_V) = prod_v w_v(k_v) prod_links r_uv(k_u, k_v),

a latent tree. All sums over the components of all views are made by passing messages along it:
first from the leaves to the roots, then back (Pearl 1988).
"""

# SPDX-License-Identifier: BSD-3-Clause

from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from ..states._links import counts_of, ratio_of
from ..summary._spanning import from_roots

LEAST = np.finfo(float).tiny
MADE = WeakKeyDictionary()  # the links of draws, and the arrays that they are of


class Links:
    """How the views of a draw go together.

    Parameters
    ----------
    n_views : int
    ratios : dict of (int, int) to float64 array of shape (K_u + 1, K_v + 1)
        By two views that are linked, the r_kl.

    Attributes
    ----------
    order : list of int
        The views, in each tree parents before children.
    parents : int array of shape (n_views,)
        -1 of a root.
    any : bool
        Whether any views are linked.
    trees : list of list of int
        The views of each tree, in this order.
    """

    def __init__(self, n_views, ratios):
        pairs = np.array(list(ratios), dtype=np.int64).reshape(-1, 2)
        linked, self.parents = [], np.full(n_views, -1)
        if len(pairs):
            forest = csr_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(n_views, n_views))
            linked, self.parents = from_roots(forest)
        self.order = [*linked, *sorted(set(range(n_views)) - set(linked))]
        self.ratios = ratios | {(v, u): of.T for (u, v), of in ratios.items()}
        self.any, trees = bool(ratios), {}
        for v in self.order:
            trees.setdefault(self._to_root(v)[-1], []).append(v)
        self.trees = list(trees.values())

    @classmethod
    def of_draw(cls, draw, views):
        """The Links that a draw keeps, made once."""
        known, links = MADE.get(draw, (None, None))
        if known is not draw.arrays:
            links = cls.of(draw.arrays, views)
            MADE[draw] = draw.arrays, links
        return links

    @classmethod
    def of(cls, arrays, views, without=None, generator=None):
        """The Links that a draw keeps; without any its views are independent.

        Parameters
        ----------
        arrays : dict of str to ndarray
            Of the draw.
        views : list of View
        without : sequence of int, optional
            The components, by view, of a row that is to be left out; the views have lost it.
        generator : numpy.random.Generator, optional
            Draw the laws of pairs. By default they are means.
        """
        if not len(arrays.get("link_views", ())):
            return cls(len(views), {})
        pairs, ratios = arrays["link_views"], {}
        sizes = stored_sizes(arrays, len(views))
        weights = [np.exp(view.log_weights) for view in views]
        parts = counts_of(pairs, arrays["link_counts"], sizes)
        for (u, v), counts, c in zip(pairs.tolist(), parts, arrays["link_strengths"]):
            n = counts.astype(np.float64)
            if without is not None:
                n[without[u], without[v]] -= 1.0
            n = n[np.ix_(views[u].slots[:-1], views[v].slots[:-1])]
            ratios[u, v] = ratio_of(n, c, weights[u], weights[v], generator)
        return cls(len(views), ratios)

    def tree(self, v):
        """The views that are linked with a view, directly or not, itself among them."""
        return next(tree for tree in self.trees if v in tree)

    def upwards(self, own, left_out=None):
        """What the leaves tell the roots.

        Parameters
        ----------
        own : list of ndarray of shape (n_rows, K + 1)
            By view, log w_k p(the row's cells in the view | k). None leaves a tree out.
        left_out : LeftOut, optional
            If these are training rows, each of which is left out.

        Returns
        -------
        below : list of ndarray of shape (n_rows, K + 1)
            The same of the cells in the view and in all views below it.
        messages : list of ndarray or None
            By view, what its `below` tells its parent; None of a root.
        whole : ndarray of shape (n_rows,)
            log p(row).
        """
        below, messages, whole = list(own), [None] * len(own), 0.0
        for v in reversed(self.order):
            u = self.parents[v]
            if own[v] is None:
                continue
            if u < 0:
                whole = whole + logsumexp(below[v], axis=1)
            elif left_out is None:
                messages[v] = _log_product(below[v], self.ratios[v, u])
            else:
                messages[v] = left_out.message(v, u, below[v], self.ratios[v, u])
            if u >= 0:
                below[u] = below[u] + messages[v]
        return below, messages, whole

    def joints(self, own):
        """log p(row, k_v = k) of each view, (n_rows, K + 1), and log p(row), (n_rows,)."""
        below, messages, whole = self.upwards(own)
        out = list(below)
        for v in self.order:
            u = self.parents[v]
            if own[v] is None:
                continue
            if u < 0:
                own_tree = logsumexp(below[v], axis=1)
                out[v] = below[v] + np.where(np.isneginf(whole), whole, whole - own_tree)[:, None]
            else:
                cavity = out[u] - _finite(messages[v])
                out[v] = below[v] + _log_product(cavity, self.ratios[u, v])
        return out, whole

    def of_view(self, v, own, log_weights):
        """log p(k_v = k, the row's cells in the view | its cells in other views): (n_rows, K + 1).

        own : list of ndarray or None
            As of `upwards`, of the view's tree.
        log_weights : ndarray of shape (K + 1,)
            Of the view.
        """
        told = sum((self._towards(v, u, own) for u in self._beside(v)), np.zeros(own[v].shape))
        others = logsumexp(log_weights + told, axis=1, keepdims=True)
        return own[v] + (told - _finite(others))

    def _beside(self, v):
        """The views that a view is linked with."""
        return [u for u in self.tree(v) if (u, v) in self.ratios]

    def _towards(self, v, u, own):
        """What view u tells view v, all views behind it counted: (n_rows, K_v + 1)."""
        behind = (self._towards(u, t, own) for t in self._beside(u) if t != v)
        return _log_product(sum(behind, own[u]), self.ratios[u, v])

    def given_parent(self, v, below, at):
        """log p(k_v = k, cells in the view and below | row's component in the parent view).

        Parameters
        ----------
        v : int
        below : list of ndarray of shape (n_rows, K + 1), or (1, K + 1) for all alike
            From `upwards`.
        at : list of int array of shape (n_rows,)
            Components, by view; those of the parent are there, if v has one.
        """
        u = self.parents[v]
        if u < 0:
            return below[v]
        with np.errstate(divide="ignore"):
            return below[v] + np.log(self.ratios[u, v][at[u]])

    def components(self, n, views, generator):
        """Components of n rows in the views that are linked: dict of int to int array (n,)."""
        below = [view.log_weights[None] for view in views]
        at = [np.empty(0, np.int64)] * len(views)
        linked = {v for pair in self.ratios for v in pair}
        for v in self.order:
            if v in linked:
                weights = np.exp(self.given_parent(v, below, at))
                at[v] = choose(np.cumsum(weights, axis=1), generator.random(n))
        return {v: at[v] for v in linked}

    def pair(self, u, v, weights):
        """r_kl of two views, whether they are linked or in one tree; None if they are not.

        weights : list of ndarray of shape (K + 1,)
        """
        path_u, path_v = self._to_root(u), self._to_root(v)
        if path_u[-1] != path_v[-1]:
            return None
        meet = next(a for a in path_u if a in path_v)
        down = path_v[: path_v.index(meet)][::-1]
        path = [*path_u[: path_u.index(meet) + 1], *down]
        out = self.ratios[path[0], path[1]]
        for a, b in zip(path[1:], path[2:]):
            out = (out * weights[a]) @ self.ratios[a, b]
        return out

    def _to_root(self, v):
        out = [v]
        while self.parents[out[-1]] >= 0:
            out.append(int(self.parents[out[-1]]))
        return out


class LeftOut:
    """Training rows, each of which is left out of the links.

    Without a row of components k and l the law p(l' | k) has counts of one row less, and the
    weights w_l' are those without the row. The other laws stay, as do the factors that give pairs
    their margins; a new component goes with any other.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Of the draw.
    at : list of int array of shape (n_rows,)
        By view the components of the rows.
    weights, without : list of float64 array of shape (K + 1,) and (n_rows, K + 1)
        By view the weights of components, and those without each row.
    """

    def __init__(self, arrays, at, weights, without):
        pairs, self.sizes = arrays["link_views"].tolist(), stored_sizes(arrays, len(at))
        counts = counts_of(pairs, arrays["link_counts"], self.sizes)
        self.known = {(u, v): of for (u, v), *of in zip(pairs, counts, arrays["link_strengths"])}
        self.at, self.shares, self.falls = at, [], []
        for before, after in zip(weights, without):
            share = before[:-1] / before[:-1].sum()
            left = after[:, :-1] / after[:, :-1].sum(axis=1, keepdims=True)
            fall = np.ones(after.shape)
            np.divide(share, left, out=fall[:, :-1], where=left > 0.0)
            self.shares.append(share)
            self.falls.append(fall)

    def message(self, v, u, below, ratios):
        """What view v tells view u: (n_rows, K_u + 1)."""
        top = _finite(below.max(axis=1, keepdims=True))
        of, rows = np.exp(below - top), np.arange(len(below))
        given, other = (u, v) if (u, v) in self.known else (v, u)
        counts, c = self.known[given, other]
        k, l = self.at[given], self.at[other]  # noqa: E741
        n_k = self.sizes[given][k]
        lines = ratios.T[k] if given == u else ratios[k]
        own = lines.copy()
        own[:, :-1] *= ((n_k + c) / (n_k - 1.0 + c))[:, None]
        own[rows, l] *= 1.0 - 1.0 / (counts[k, l] + c * self.shares[other][l])
        if given == u:
            new = of.sum(axis=1)
            of *= self.falls[other]
            out = of @ ratios
            out[rows, k], out[:, -1] = np.sum(of * own, axis=1), new
        else:
            out = of[:, :-1] @ ratios[:-1] + of[rows, k][:, None] * (own - lines)
            out = out * self.falls[other] + of[:, -1:]
        return np.log(np.maximum(out, LEAST)) + top


class PairLaw:
    """The probability of each pair of components of two views that are linked, or in one tree.

    Parameters
    ----------
    law : float64 array of shape (K_first + 1, K_second + 1)
    """

    def __init__(self, law):
        self.law = law

    def log_ratios(self, one, two):
        """log p(x, y) / (p(x) p(y)) of cells of columns of the first view and of the second.

        Parameters
        ----------
        one, two : float64 array of shape (n_columns, n_rows, K + 1)
            Likelihoods, up to a factor for each cell.

        Returns
        -------
        log_ratios : float64 array of shape (n_columns_first, n_columns_second, n_rows)
        """
        alone = [
            np.log(np.maximum(of @ law, LEAST))
            for of, law in ((one, self.law.sum(axis=1)), (two, self.law.sum(axis=0)))
        ]
        both = np.stack([np.einsum("nk,jnk->jn", of @ self.law, two) for of in one])
        return np.log(np.maximum(both, LEAST)) - alone[0][:, None] - alone[1]


def linked_pairs(views, links, wanted):
    """Yield (u, v, their PairLaw) of the views of a draw that are in one tree, u before v, both
    among the wanted ones, which ascend."""
    weights = [np.exp(view.log_weights) for view in views]
    for u, v in combinations(wanted, 2):
        ratio = links.pair(u, v, weights)
        if ratio is not None:
            yield u, v, PairLaw(ratio * np.multiply.outer(weights[u], weights[v]))


def _log_product(logs, matrix):
    """log of exp(logs) @ matrix."""
    top = _finite(logs.max(axis=1, keepdims=True))
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top) @ matrix) + top


def _finite(logs):
    """The same, 0 for -inf: what is impossible stays so whatever is taken from it."""
    return np.where(np.isneginf(logs), 0.0, logs)


def stored_sizes(arrays, n_views):
    """The sizes of the components of each view of a draw."""
    by_view = {name.split("/")[0]: of for name, of in arrays.items() if name.endswith("/size")}
    return [by_view[f"view{v}"] for v in range(n_views)]


def choose(cumulative, uniforms):
    """Indices with probabilities proportional to the steps of cumulative weights.

    cumulative : (n, n_choices), or (1, n_choices) for all alike; uniforms : (n,)
    """
    points = uniforms * cumulative[:, -1]
    if len(cumulative) == 1:
        at = np.searchsorted(cumulative[0], points, side="right")
    else:
        at = np.count_nonzero(cumulative <= points[:, None], axis=1)
    return np.minimum(at, cumulative.shape[1] - 1)
