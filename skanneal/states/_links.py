r"""Links: which views of a draw go together, and how their components do.

The prior of a CrossCat takes its views for independent. Views of real tables seldom are: groups of
columns are apart since each has clusters of its own, and yet these have to do with each other. So a
draw keeps a forest of links between its views. Given that a row is in component k of the one view,
it is in component l of the other with the probability

    p(l | k) = (n_kl + c w_l) / (n_k + c),

where n_kl are the rows in both, n_k those in k, w_l is the share of l among the components of its
view, and each component k tells as much as if c rows of independent views had been seen before.
This is the predictive of a Dirichlet process whose base is w, so a link has a marginal likelihood,

    prod_k Gamma(c) / Gamma(n_k + c) prod_l Gamma(n_kl + c w_l) / Gamma(c w_l),

which is held against that of independent views, prod_l w_l^n_l. Which of the two views is given,
and c, one of STRENGTHS, are alike probable a priori. The forest has the largest sum of log Bayes
factors, less log V each, since one of V views has V - 1 others to be linked with, or none. Each of
its links takes the view that is given and the c that are most probable.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln, logsumexp

from .._native._state_arrays import StateError, state_array
from ..summary._spanning import spanning_forest

STRENGTHS = 8.0 ** np.arange(5)  # c
MOST_JUDGED, LEAST_JUDGED = 20_000, 1000  # rows by which links are chosen
MOST_PAIRS = 2 * 10**7  # of views, times these rows
PARTNERS = 8  # of a view, whose links are weighed
NO_LINKS = {
    "link_views": np.empty((0, 2), dtype=np.int64),
    "link_strengths": np.empty(0),
    "link_counts": np.empty(0, dtype=np.int32),
}
MOST_ROUNDS, CLOSE = 1000, 1e-10  # of fitting margins, and how near they come by default


def draw_arrays(state, linked=False):
    """What is kept of a draw: a state's arrays, its log joint density and, if its views are to be
    `linked`, their links. Components are numbered 0 .. K - 1 in the order of their slots."""
    arrays = state.to_arrays(numbered=True) | {"log_joint": np.array(state.log_joint())}
    return arrays | links_of(state) if linked else arrays


def links_of(state):
    """The links of a state whose subsample holds all rows.

    Parameters
    ----------
    state : CrossCat

    Returns
    -------
    arrays : dict of str to ndarray
        "link_views", int64 of shape (n_links, 2): the view that is given, and the other one.
        "link_strengths", float64 of shape (n_links,). "link_counts", int32: the n_kl of all links,
        one after another; components are numbered in the order of their slots.
    """
    labels, weights = used_labels(state)
    views, strengths = chosen_links(labels, weights)
    counts = [pair_counts(labels[u], labels[v], len(weights[u]), len(weights[v])) for u, v in views]
    return {
        "link_views": views,
        "link_strengths": strengths,
        "link_counts": np.concatenate([NO_LINKS["link_counts"], *map(np.ravel, counts)]),
    }


def used_labels(state):
    """By view the components of all rows, 0 .. K - 1 in the order of their slots, and the weights
    of these, which sum to 1."""
    labels = [np.unique(view.get_labels(), return_inverse=True)[1] for view in state.views]
    weights = [weights_of(view)[:-1] for view in state.views]
    return labels, [of / of.sum() for of in weights]


def weights_of(view):
    """The weights of a mixture's components and of a new one."""
    return np.exp(view.log_weights())


def pair_counts(given, other, n_given, n_other):
    """Rows by the components of two views: int32 (n_given, n_other)."""
    cells = np.bincount(given * n_other + other, minlength=n_given * n_other)
    return cells.reshape(n_given, n_other).astype(np.int32)


def chosen_links(labels, weights):
    """The links of a forest: (n_links, 2) views, and (n_links,) strengths, of `used_labels`.

    labels : list of int array (n_rows,); weights : list of (K,), which sum to 1
    """
    n_views, n_rows = len(labels), len(labels[0])
    if sum(len(of) > 1 for of in weights) < 2:
        return NO_LINKS["link_views"], NO_LINKS["link_strengths"]
    most = min(MOST_JUDGED, max(MOST_PAIRS // n_views**2, LEAST_JUDGED))
    step = -(-n_rows // most)
    logs = log_bayes_factors([of[::step] for of in labels], weights)
    worth = logsumexp(logs, axis=2)  # over strengths
    worth = np.logaddexp(worth, worth.T) - np.log(2 * len(STRENGTHS) * n_views)
    np.fill_diagonal(worth, 0.0)
    pairs = np.sort(np.column_stack(spanning_forest(worth).nonzero()), axis=1)
    pairs = pairs[np.lexsort(pairs.T[::-1])].astype(np.int64).reshape(-1, 2)
    back = logs[*pairs[:, ::-1].T].max(axis=1) > logs[*pairs.T].max(axis=1)
    pairs[back] = pairs[back, ::-1]
    return pairs, STRENGTHS[logs[*pairs.T].argmax(axis=1)]


def log_bayes_factors(labels, weights):
    """Of a link against none, by the view that is given, the other, and STRENGTHS: (V, V, n).

    They are -inf for pairs that are not among the PARTNERS nearest to either view, by the excess of
    the chi-square statistic over its degrees of freedom, and for those without any.
    """
    n_views, sizes = len(labels), np.array([len(of) for of in weights])
    starts, of_view = np.cumsum([0, *sizes]), np.repeat(np.arange(n_views), sizes)
    n_rows, together = len(labels[0]), np.column_stack(labels) + starts[:-1]
    member = csr_array(
        (np.ones(together.size), together.ravel(), np.arange(0, together.size + 1, n_views)),
        shape=(n_rows, starts[-1]),
    )
    counts = (member.T @ member).tocoo()
    k, l, n = *counts.coords, counts.data  # noqa: E741
    pair, base = of_view[k] * n_views + of_view[l], np.concatenate(weights)
    rows = np.bincount(together.ravel(), minlength=starts[-1])
    squares = np.bincount(pair, n**2 / (rows[k] * rows[l]), n_views**2).reshape(n_views, n_views)
    excess = n_rows * (squares - 1.0) - np.multiply.outer(sizes - 1, sizes - 1)
    np.fill_diagonal(excess, 0.0)
    near = excess >= np.sort(excess, axis=1)[:, -PARTNERS:][:, :1]
    asked = (near | near.T) & (excess > 0.0)
    used = asked.ravel()[pair]
    l, n, pair = l[used], n[used], pair[used]  # noqa: E741
    alone = np.bincount(of_view, rows * np.log(base), n_views)
    out = np.full((n_views, n_views, len(STRENGTHS)), -np.inf)
    for s, c in enumerate(STRENGTHS):
        cells = gammaln(n + c * base[l]) - gammaln(c * base[l])
        given = np.bincount(of_view, gammaln(c) - gammaln(rows + c), n_views)
        of_pair = np.bincount(pair, cells, n_views**2).reshape(n_views, n_views)
        out[asked, s] = (of_pair + given[:, None] - alone)[asked]
    return out


def ratio_of(counts, c, given, other, generator=None, close=CLOSE):
    """How much more probable pairs of components are than if views were independent: 1 for a new
    component, (K_u + 1, K_v + 1).

    Parameters
    ----------
    counts : int or float64 array of shape (K_u, K_v)
    c : float
    given, other : float64 array of shape (K_u + 1,) and (K_v + 1,)
        Weights.
    generator : numpy.random.Generator, optional
        Draw the p(l | k). By default they are means.
    close : float
        How near margins come to the weights.
    """
    given, other = (np.maximum(of, np.finfo(float).tiny) for of in (given, other))
    rows, columns = (of[:-1] / of[:-1].sum() for of in (given, other))
    laws = counts + c * columns
    if generator is not None:
        laws = generator.standard_gamma(laws)
    laws /= laws.sum(axis=1, keepdims=True)
    out = np.ones((len(given), len(other)))
    joint = with_margins(rows[:, None] * laws, rows, columns, close)
    out[:-1, :-1] = joint / np.multiply.outer(rows, columns)
    return out


def with_margins(joint, rows, columns, close):
    """The nearest law of pairs that has these margins: rows and columns are multiplied in turn
    (Deming and Stephan 1940)."""
    joint = np.maximum(joint, np.finfo(float).tiny)
    of_row = np.ones(len(rows))
    for _ in range(MOST_ROUNDS):
        of_column = columns / (of_row @ joint)
        found = joint @ of_column
        apart = np.abs(of_row * found - rows).max()
        of_row = rows / found
        if apart < close:
            break
    return of_row[:, None] * joint * of_column


def check_links(arrays, sizes):
    """Raise StateError unless arrays have a forest of links whose counts are those of components.

    arrays : dict of str to ndarray; sizes : list of int array (K,), by view
    """
    views = state_array(arrays, "link_views", "iu", (None, 2), 0, len(sizes) - 1)
    strengths = state_array(arrays, "link_strengths", "f", (len(views),))
    if not (strengths > 0.0).all():
        raise StateError("link_strengths", "must be positive")
    graph = csr_array((np.ones(len(views)), tuple(views.T)), shape=(len(sizes),) * 2)
    if len(sizes) - connected_components(graph, directed=False)[0] != len(views):
        raise StateError("link_views", "closes a circle")
    lengths = [len(sizes[u]) * len(sizes[v]) for u, v in views]
    counts = state_array(arrays, "link_counts", "iu", (sum(lengths),), 0)
    for (u, v), of in zip(views, counts_of(views, counts, sizes)):
        if not (np.array_equal(of.sum(1), sizes[u]) and np.array_equal(of.sum(0), sizes[v])):
            raise StateError("link_counts", "contradicts the sizes of components")


def counts_of(views, counts, sizes):
    """The n_kl of each link, (K, K): what `link_counts` holds."""
    shapes = [(len(sizes[u]), len(sizes[v])) for u, v in views]
    parts = np.split(counts, np.cumsum([m * n for m, n in shapes])[:-1]) if shapes else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes)]
