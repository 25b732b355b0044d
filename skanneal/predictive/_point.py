"""The point estimate: one state that represents all draws."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves import iterated_conditional_modes
from ..states import CrossCat, Mixture, Subsample, draw_arrays
from ..summary import LOSSES, point_estimate, relabel
from ..summary._losses import expected_losses
from ._draws import largest_view, partitions, shown_views, state_of
from ._splits import split_components

COMPARED_ROWS = 500  # of draws whose log joint densities do not compare


def mixture_arrays(draws, method, table, least=1, keys=None):
    """The best draw, with the partition that represents all draws.

    Parameters
    ----------
    draws : list of Draw
    method : {"map", "vi", "binder"}
        "map" keeps the best draw's own partition, from which each row moves to its best cluster
        until no row moves. If missing cells are part of the state, no row moves at all, and the
        cells are drawn anew given the partition.
    table : Table
        The training rows.
    least : int, default=1
        How many components there must be. Draws of fewer do not count; if the partition that
        represents the others has fewer, it is the best draw's own, and if there are no others,
        components of the best draw are split.
    keys : callable, optional
        ``keys(rows)`` tells rows apart, as `RowKeys` does, where components may have to be split.

    Returns
    -------
    arrays : dict of str to ndarray
    """
    draws = [draw for draw in draws if draw.n_components >= least] or draws
    merits = _merits(draws)
    labels = point_estimate([draw.labels for draw in draws], merits, method)
    if labels.max() + 1 < least:
        method = "map"
        labels = point_estimate([draw.labels for draw in draws], merits, method)
    best = draws[int(np.argmax(merits))]
    mixture = Mixture.from_arrays(best.arrays, table, _all_rows(table))
    rows = np.arange(table.n_rows)
    mixture.set_prior(mixture.prior.holding(int(labels.max()) + 1))
    mixture.replace(rows, labels)
    if "fills" not in best.arrays and method == "map":
        if iterated_conditional_modes(mixture, fewest_clusters=least):
            mixture.replace(rows, relabel(mixture.get_labels()))
    split_components(mixture, least, keys)
    if "fills" in best.arrays:
        mixture.draw_fills(rows, np.random.PCG64(0))
    return mixture.to_arrays() | {"log_joint": np.array(mixture.log_joint())}


def _merits(draws):
    """The figure by which draws are ranked: the log joint density.

    Log joint densities that include values of missing cells are not comparable. Then the best draw
    is the one whose partition has the least mean variation of information from those of all draws:
    that of the rows or, with views, that of the cells.
    """
    if "fills" not in draws[0].arrays:
        return [draw.log_joint for draw in draws]
    n_rows = len(draws[0].labels)
    rows = np.linspace(0, n_rows - 1, min(n_rows, COMPARED_ROWS)).astype(np.int64)
    return -expected_losses([_of_cells(draw, rows) for draw in draws], LOSSES["vi"])


def _of_cells(draw, rows):
    """The components of the cells of some rows, in the views of their columns; of one view, those
    of the rows."""
    view_of, labels = partitions(draw.arrays, rows)
    n_labels = np.array([own.max() + 1 for own in labels])
    starts = np.cumsum(n_labels) - n_labels
    return np.concatenate([labels[v] + starts[v] for v in view_of])


def point_partitions(draws, method, least=1, apart=None):
    """A partition of the columns, and one of the rows for each of its views.

    "map" takes both from the draw of highest log joint density. Otherwise the partition of the
    columns has the least expected loss over the draws; then, for each of its views, every draw
    stands with the partition of that of its views which shares most columns with it, and the
    partition of the rows has the least expected loss over these.

    Parameters
    ----------
    draws : list of CrossCatDraw
    method : {"map", "vi", "binder"}
    least : int, default=1
        How many components the view with the most columns must have. If it has fewer, its rows are
        those of the best of the draws that have so many there, if there is any.
    apart : Apart, optional
        Of the encoder, if `least` is more than 1.

    Returns
    -------
    view_of : int64 array of shape (n_table_columns,)
        In order of first appearance.
    row_labels : list of int64 arrays of shape (n_rows,)
        Likewise.
    sources : list of int
        For each view, the most similar view of the draw of highest log joint density.
    best : CrossCatDraw
        That draw.
    """
    merits = np.asarray(_merits(draws))
    first = int(np.argmax(merits))
    best, used = draws[first], [first] if method == "map" else list(range(len(draws)))
    view_of = point_estimate([draw.table_view_labels for draw in draws], merits, method)
    row_labels, sources = [], []
    for v in range(int(view_of.max()) + 1):
        sources.append(_most_similar(best, view_of == v))
        of_rows = [_rows_of_similar(draws[d], view_of == v) for d in used]
        row_labels.append(relabel(point_estimate(of_rows, merits[used], method)))
    if least > 1:
        v = largest_view(shown_views(view_of, apart))
        if row_labels[v].max() + 1 < least:
            of_rows = [_rows_of_similar(draw, view_of == v) for draw in draws]
            enough = [d for d, labels in enumerate(of_rows) if labels.max() + 1 >= least]
            if enough:
                row_labels[v] = relabel(of_rows[max(enough, key=lambda d: merits[d])])
    return view_of, row_labels, sources, best


def matching_view(draw, point):
    """The number, in its state, and the row labels of the view of a draw that is most similar to
    the point estimate's largest."""
    if not hasattr(point, "row_labels"):
        return draw.main_view, draw.labels
    v = _most_similar(draw, point.table_view_labels == largest_view(point.view_labels))
    return draw.stored(v), draw.rows_of(v)


def _rows_of_similar(draw, columns):
    """The row labels of that view of a draw."""
    return draw.rows_of(_most_similar(draw, columns))


def _most_similar(draw, columns):
    """The view of a draw whose columns overlap most with a mask, by the Jaccard index."""
    of = draw.table_view_labels
    own = of == np.arange(of.max() + 1)[:, None]
    return int(np.argmax((own & columns).sum(axis=1) / (own | columns).sum(axis=1)))


def crosscat_arrays(view_of, row_labels, sources, best, families, table, split=None):
    """The draw with these partitions and, of the best draw, hyperparameters and priors.

    Parameters
    ----------
    view_of, row_labels, sources, best
        From `point_partitions`.
    families : dict of str to int array
        Columns of each family, indicators included.
    table : Table
        The training rows.
    split : (int, int, callable), optional
        A view, how many components it must have, and what tells rows apart (see
        `split_components`).

    Returns
    -------
    arrays : dict of str to ndarray
    """
    before = state_of(best, table.empty_like())
    view_prior = before.prior.holding(int(view_of.max()) + 1)
    start = (before.hyper(), view_of, view_prior, before.views[0].prior)
    state = CrossCat.start(table, families, *start, _all_rows(table))
    rows = np.arange(table.n_rows)
    if "fills" in best.arrays:
        state.table.set_fills(best.arrays["fills"])
    for view, labels, source in zip(state.views, row_labels, sources):
        prior = before.views[best.stored(source)].prior
        view.set_prior(prior.holding(int(labels.max()) + 1))
        view.replace(rows, labels)
    if split is not None:
        v, least, keys = split
        split_components(state.views[v], least, keys)
    if "fills" in best.arrays:
        for view in state.views:
            view.draw_fills(rows, np.random.PCG64(0))
    return draw_arrays(state, "link_views" in best.arrays)


def _all_rows(table):
    """A subsample of every row."""
    subsample = Subsample(table.n_rows)
    subsample.fill()
    return subsample
