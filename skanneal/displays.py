"""Pictures of fitted estimators, in scikit-learn's manner: compute once, draw as often as wanted.

The displays read public attributes only: ``trace_``, ``draws_``, ``labels_``, ``view_labels_``.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from ._containers import open_table
from .summary import coclustering, profile_clusters, rank_clusters, relabel

_TITLES = {
    "seconds": "Seconds",
    "sweeps": "Sweeps",
    "log_joint": "Log joint density",
    "n_clusters": "Number of clusters",
    "n_assigned": "Rows assigned",
    "n_views": "Number of views",
}
_LIMIT = 2.0  # standard deviations at which the colours of means end


class TraceDisplay:
    """A scalar of each chain against time or work.

    Parameters
    ----------
    x : ndarray of shape (n_chains, n_records)
        Seconds or sweeps; NaN where a chain has no record.
    y : ndarray of shape (n_chains, n_records)
        The scalar.
    full_data : ndarray of bool of shape (n_chains, n_records) or None, default=None
        The records that see all rows; the axes are fitted to them. What comes before is drawn
        faintly: a log joint density on a subsample does not compare with that on all rows.
    name : str, default="log_joint"
        What y is, for the axis label.
    x_name : {"seconds", "sweeps"}, default="seconds"
        What x is, for the axis label.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : list of matplotlib Line2D
        One per chain.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import TraceDisplay
    >>> sweeps = np.tile(np.arange(50.0), (4, 1))
    >>> log_joint = -100 / (1 + sweeps) + np.random.default_rng(0).normal(size=sweeps.shape)
    >>> display = TraceDisplay(sweeps, log_joint, x_name="sweeps").plot()
    >>> display.ax_.get_xlabel()
    'Sweeps'
    """

    def __init__(self, x, y, *, full_data=None, name="log_joint", x_name="seconds"):
        self.x = x
        self.y = y
        self.full_data = full_data
        self.name = name
        self.x_name = x_name

    @classmethod
    def from_estimator(cls, estimator, *, name="log_joint", x="seconds", ax=None, **kwargs):
        """Draw an entry of a fitted estimator's ``trace_``.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        name : str, default="log_joint"
            Key of the entry.
        x : {"seconds", "sweeps"}, default="seconds"
            What to draw it against.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            For the lines.

        Returns
        -------
        display : TraceDisplay
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator, "trace_")
        trace = estimator.trace_
        if name not in trace:
            raise ValueError(f"name must be one of {sorted(trace)}, got {name!r}.")
        if x not in ("seconds", "sweeps"):
            raise ValueError(f"x must be 'seconds' or 'sweeps', got {x!r}.")
        n_assigned = np.asarray(trace["n_assigned"])
        full_data = n_assigned == np.nan_to_num(n_assigned).max(initial=0)
        options = {"full_data": full_data, "name": name, "x_name": x}
        return cls(trace[x], trace[name], **options).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            For the lines.

        Returns
        -------
        display : TraceDisplay
        """
        self.figure_, self.ax_ = _axes("TraceDisplay.plot", ax)
        kwargs = {"linewidth": 1.6, **kwargs}
        x, y = np.atleast_2d(self.x), np.atleast_2d(self.y)
        self.lines_ = [
            self._plot_chain(chain, x[chain], y[chain], kwargs) for chain in range(len(y))
        ]
        self._set_apart_subsamples(x, y)
        x_title, y_title = (_TITLES.get(name, name) for name in (self.x_name, self.name))
        self.ax_.set(xlabel=x_title, ylabel=y_title)
        self.ax_.margins(x=0.02)
        self.ax_.grid(alpha=0.25)
        self.ax_.spines[["top", "right"]].set_visible(False)
        if len(y) > 1:
            place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": min(len(y), 6)}
            self.ax_.legend(frameon=False, fontsize="small", handlelength=1.2, **place)
        return self

    def _plot_chain(self, chain, x, y, kwargs):
        full = np.isfinite(y) if self.full_data is None else np.atleast_2d(self.full_data)[chain]
        kwargs = {"label": f"Chain {chain}", **kwargs}
        (line,) = self.ax_.plot(x, np.where(full, y, np.nan), **kwargs)
        if not full.all():
            # Up to and including the first record on all rows, so that the line has no gap.
            first = np.argmax(full) if full.any() else len(y)
            faint = {**kwargs, "color": line.get_color(), "alpha": 0.35, "label": "_early"}
            self.ax_.plot(x[: first + 1], y[: first + 1], **faint)
        return line

    def _set_apart_subsamples(self, x, y):
        """Shade what comes before all rows, which can lie far off; fit the axes to the rest."""
        present = np.isfinite(x) & np.isfinite(y)
        full = present if self.full_data is None else present & self.full_data
        if not full.any() or (full == present).all():
            return
        start, stop = x[present].min(), x[full].min()
        self.ax_.axvspan(start, stop, color="0.95", linewidth=0, zorder=0)
        place = {"x": (start + stop) / 2, "y": 0.03, "transform": self.ax_.get_xaxis_transform()}
        self.ax_.text(**place, s="subsamples", ha="center", color="0.4", fontsize="small")
        low, high = y[full].min(), y[full].max()
        height = (high - low) or 1.0
        low = max(y[present].min(), low - height / 2)
        high = min(y[present].max(), high + height)
        margin = 0.05 * ((high - low) or 1.0)
        self.ax_.set_ylim(low - margin, high + margin)


class CoassignmentDisplay:
    """How often each pair of rows shares a cluster, rows sorted by cluster.

    Parameters
    ----------
    coassignment : ndarray of shape (n_shown, n_shown)
        Shares of the draws, from 0 to 1.
    labels : ndarray of int of shape (n_shown,)
        Clusters of these rows, equal labels side by side.
    rows : ndarray of int of shape (n_shown,) or None, default=None
        Which rows of the data they are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    image_ : matplotlib AxesImage
        The square.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import CoassignmentDisplay
    >>> from skanneal.summary import coclustering
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]
    >>> display = CoassignmentDisplay(coclustering(draws), np.array([0, 0, 0, 1, 1])).plot()
    >>> display.image_.get_array().shape
    (5, 5)
    """

    def __init__(self, coassignment, labels, *, rows=None):
        self.coassignment = coassignment
        self.labels = labels
        self.rows = rows

    @classmethod
    def from_estimator(cls, estimator, *, max_rows=1000, ax=None, **kwargs):
        """Draw the co-assignment of a fitted estimator's training rows.

        Parameters
        ----------
        estimator : estimator
            Fitted; its ``draws_`` of all chains count alike.
        max_rows : int, default=1000
            Of more rows, so many are shown: evenly spaced ones of the rows sorted by cluster.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            For ``imshow``.

        Returns
        -------
        display : CoassignmentDisplay
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator, ["draws_", "labels_"])
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}.")
        draws = [np.asarray(draw.labels) for chain in estimator.draws_ for draw in chain]
        by_size, _ = rank_clusters(estimator.labels_)
        # Within a cluster, rows that share their clusters in the draws come side by side.
        rows = np.lexsort([*(relabel(draw) for draw in draws), by_size])
        if len(rows) > max_rows:
            rows = rows[np.linspace(0, len(rows) - 1, max_rows).round().astype(int)]
        labels = np.asarray(estimator.labels_)[rows]
        return cls(coclustering(draws, rows), labels, rows=rows).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            For ``imshow``.

        Returns
        -------
        display : CoassignmentDisplay
        """
        self.figure_, self.ax_ = _axes("CoassignmentDisplay.plot", ax, figsize=(6.2, 5.2))
        n = len(self.coassignment)
        kwargs = {"cmap": "Blues", "vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
        self.image_ = self.ax_.imshow(self.coassignment, extent=(0, n, n, 0), **kwargs)
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, fraction=0.046, pad=0.03)
        bar.set_label("Share of draws in one cluster")
        bar.outline.set_visible(False)
        edges = np.flatnonzero(np.diff(self.labels)) + 1
        self.ax_.hlines(edges, 0, n, color="0.35", linewidth=0.5)
        self.ax_.vlines(edges, 0, n, color="0.35", linewidth=0.5)
        starts, ends = np.append(0, edges), np.append(edges, n)
        named = ends - starts >= 0.03 * n  # tall enough for a name
        self.ax_.set_yticks((starts + ends)[named] / 2, np.asarray(self.labels)[starts[named]])
        self.ax_.tick_params(length=0)
        self.ax_.set(xticks=[], xlabel=f"{n:,} rows, sorted by cluster", ylabel="Cluster")
        return self


class ClusterDisplay:
    """Clusters against features: standardised means of numbers, frequencies of levels.

    Parameters
    ----------
    values : ndarray of shape (n_clusters, n_features)
        A number's mean in the cluster, less its mean in all rows, in standard deviations of all
        rows; a level's share of the cluster. NaN where a cluster has no observed cell.
    is_level : ndarray of bool of shape (n_features,)
        Which features are levels; numbers come first.
    feature_names : sequence of str
        Names of the columns, "column = level" for levels.
    cluster_names : sequence of str
        Names of the clusters.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    meshes_ : list of matplotlib QuadMesh
        That of the levels and that of the numbers, as far as there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import ClusterDisplay
    >>> values = np.array([[1.2, 0.9], [-1.2, 0.1]])
    >>> names = ["height", "colour = red"]
    >>> display = ClusterDisplay(values, np.array([False, True]), names, ["0", "1"]).plot()
    >>> len(display.meshes_)
    2
    """

    def __init__(self, values, is_level, feature_names, cluster_names):
        self.values = values
        self.is_level = is_level
        self.feature_names = feature_names
        self.cluster_names = cluster_names

    @classmethod
    def from_estimator(cls, estimator, X, *, max_features=30, max_clusters=20, ax=None):
        """Draw a fitted estimator's clusters.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like or frame of shape (n_rows, n_columns)
            The training data. Columns that are not numeric, booleans, and integers with up to 20
            distinct values are shown level by level.
        max_features : int, default=30
            Of more features, those are shown in which the clusters differ most.
        max_clusters : int, default=20
            Of more clusters, the largest are shown.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ClusterDisplay
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator, "labels_")
        table, labels = open_table(X, "X"), np.asarray(estimator.labels_)
        if table.shape[0] != len(labels):
            raise ValueError(
                f"X must be the training data: it has {table.shape[0]} rows, labels_ {len(labels)}."
            )
        ranks, sizes = rank_clusters(labels)
        profile = profile_clusters(table, ranks, len(sizes))
        shown = np.sort(np.argsort(-profile.spread, kind="stable")[:max_features])
        shown = shown[np.argsort(profile.is_level[shown], kind="stable")]  # numbers first
        names = labels[np.unique(ranks, return_index=True)[1]]
        display = cls(
            profile.values[:max_clusters, shown],
            profile.is_level[shown],
            [profile.names[j] for j in shown],
            [f"{name}  (n = {size:,})" for name, size in zip(names, sizes)][:max_clusters],
        )
        return display.plot(ax)

    def plot(self, ax=None, **kwargs):
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure, its size by the numbers of cells.
        **kwargs : dict
            For both ``pcolormesh``.

        Returns
        -------
        display : ClusterDisplay
        """
        values, is_level = np.asarray(self.values), np.asarray(self.is_level, dtype=bool)
        n_clusters, n_features = values.shape
        n_numbers = int((~is_level).sum())
        figsize = (3.4 + 0.3 * n_features, 2.2 + 0.27 * n_clusters)
        self.figure_, self.ax_ = _axes("ClusterDisplay.plot", ax, figsize=figsize)
        self.meshes_ = []
        # The levels first: their colour bar then stands on the right, as they do.
        if n_numbers < n_features:
            options = {"cmap": "Purples", "vmin": 0, "vmax": 1, **kwargs}
            self._plot_part(values, n_numbers, n_features, "Frequency", "neither", options)
        if n_numbers > 0:
            options = {"cmap": "RdBu_r", "vmin": -_LIMIT, "vmax": _LIMIT, **kwargs}
            self._plot_part(values, 0, n_numbers, "Standardised mean", "both", options)
        self.ax_.set_facecolor("0.85")  # shows through where there is nothing observed
        self.ax_.set(xlim=(0, n_features), ylim=(n_clusters, 0), ylabel="Cluster")
        if 0 < n_numbers < n_features:
            self.ax_.axvline(n_numbers, color="black", linewidth=1.2)
        self.ax_.set_yticks(np.arange(n_clusters) + 0.5, self.cluster_names)
        self.ax_.set_xticks(np.arange(n_features) + 0.5, self.feature_names, rotation=90)
        self.ax_.tick_params(length=0, labelsize="small")
        self.ax_.spines[:].set_visible(False)
        return self

    def _plot_part(self, values, start, stop, title, extend, options):
        edges = np.arange(start, stop + 1), np.arange(len(values) + 1)
        part = np.ma.masked_invalid(values[:, start:stop])
        options = {"edgecolor": "white", "linewidth": 0.6, **options}
        mesh = self.ax_.pcolormesh(*edges, part, **options)
        bar = self.figure_.colorbar(mesh, ax=self.ax_, label=title, extend=extend, pad=0.03)
        bar.outline.set_visible(False)
        self.meshes_.append(mesh)


class DependenceDisplay:
    """How probable it is that columns depend on each other: columns against columns.

    Parameters
    ----------
    dependence : ndarray of shape (n_columns, n_columns)
        Probabilities.
    names : sequence of str
        Names of the columns.
    views : ndarray of int of shape (n_columns,)
        View of each column, equal ones side by side.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    image_ : matplotlib AxesImage
        The square.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import DependenceDisplay
    >>> dependence = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.0], [0.1, 0.0, 1.0]])
    >>> display = DependenceDisplay(dependence, ["length", "width", "colour"], [0, 0, 1]).plot()
    >>> display.image_.get_array().shape
    (3, 3)
    """

    def __init__(self, dependence, names, views):
        self.dependence = dependence
        self.names = names
        self.views = views

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Draw the dependence probabilities of a fitted estimator, columns sorted by view.

        Parameters
        ----------
        estimator : CrossCatPY
            Fitted.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            For ``imshow``.

        Returns
        -------
        display : DependenceDisplay
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator, "view_labels_")
        order, dependence = _columns_by_view(estimator)
        names, ranks = _column_names(estimator), rank_clusters(estimator.view_labels_)[0]
        shown = dependence[np.ix_(order, order)], [names[j] for j in order], ranks[order]
        return cls(*shown).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure, its size by the number of columns.
        **kwargs : dict
            For ``imshow``.

        Returns
        -------
        display : DependenceDisplay
        """
        n = len(self.names)
        side = 3.0 + 0.2 * min(n, 60)
        self.figure_, self.ax_ = _axes("DependenceDisplay.plot", ax, figsize=(side + 1.6, side))
        kwargs = {"cmap": "Blues", "vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
        self.image_ = self.ax_.imshow(self.dependence, extent=(0, n, n, 0), **kwargs)
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, fraction=0.046, pad=0.03)
        bar.set_label("Probability of dependence")
        bar.outline.set_visible(False)
        edges = np.flatnonzero(np.diff(self.views)) + 1
        self.ax_.hlines(edges, 0, n, color="0.35", linewidth=0.6)
        self.ax_.vlines(edges, 0, n, color="0.35", linewidth=0.6)
        self.ax_.set_yticks(np.arange(n) + 0.5, self.names)
        self.ax_.set_xticks(np.arange(n) + 0.5, self.names, rotation=90)
        self.ax_.tick_params(length=0, labelsize="small" if n <= 30 else "xx-small")
        return self


class ViewsDisplay:
    """The table as a CrossCat sees it: a panel for each view, its rows sorted by their cluster.

    Parameters
    ----------
    cells : list of ndarray of shape (n_shown, n_columns_of_view)
        For each view, its cells between 0 and 1, rows sorted by cluster; NaN where missing.
    labels : list of ndarray of int of shape (n_shown,)
        The rows' clusters in each view, equal ones side by side.
    names : list of sequence of str
        Names of each view's columns.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One per view.
    figure_ : matplotlib Figure
        The figure.
    images_ : list of matplotlib AxesImage
        One per view.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import ViewsDisplay
    >>> cells = [np.array([[0.1, 0.2], [0.9, 0.8]]), np.array([[0.5], [0.6]])]
    >>> labels = [np.array([0, 1]), np.array([0, 0])]
    >>> display = ViewsDisplay(cells, labels, [["length", "width"], ["colour"]]).plot()
    >>> len(display.axes_)
    2
    """

    def __init__(self, cells, labels, names):
        self.cells = cells
        self.labels = labels
        self.names = names

    @classmethod
    def from_estimator(cls, estimator, X, *, max_rows=1000, figure=None, **kwargs):
        """Draw the training rows of a fitted estimator, view by view.

        Parameters
        ----------
        estimator : CrossCatPY
            Fitted.
        X : array-like or frame of shape (n_rows, n_columns)
            The training data. Numbers are shown by their rank in the column, levels in their order.
        max_rows : int, default=1000
            Of more rows, so many are shown in each view: evenly spaced ones of the sorted rows.
        figure : matplotlib Figure or None, default=None
            Where to draw; None makes a new one.
        **kwargs : dict
            For ``imshow``.

        Returns
        -------
        display : ViewsDisplay
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator, "view_labels_")
        table, n_rows = open_table(X, "X"), len(estimator.labels_)
        if table.shape != (n_rows, len(estimator.view_labels_)):
            raise ValueError(
                f"X must be the training data: it has shape {table.shape}, the fit's had "
                f"({n_rows}, {len(estimator.view_labels_)})."
            )
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}.")
        shades = np.column_stack([_shades(table.column(j)) for j in range(table.shape[1])])
        names = _column_names(estimator)
        order, views = _columns_by_view(estimator)[0], estimator.view_labels_
        cells, labels, shown = [], [], []
        for v in dict.fromkeys(views[order].tolist()):
            columns = order[views[order] == v]
            ranks, _ = rank_clusters(estimator.row_labels_[v])
            rows = np.argsort(ranks, kind="stable")
            if len(rows) > max_rows:
                rows = rows[np.linspace(0, len(rows) - 1, max_rows).round().astype(int)]
            cells.append(shades[np.ix_(rows, columns)])
            labels.append(ranks[rows])
            shown.append([names[j] for j in columns])
        return cls(cells, labels, shown).plot(figure, **kwargs)

    def plot(self, figure=None, **kwargs):
        """Draw; return the display itself.

        Parameters
        ----------
        figure : matplotlib Figure or None, default=None
            Where to draw; None makes a new one, its size by the number of columns.
        **kwargs : dict
            For ``imshow``.

        Returns
        -------
        display : ViewsDisplay
        """
        check_matplotlib_support("ViewsDisplay.plot")
        widths = [len(names) for names in self.names]
        if figure is None:
            import matplotlib.pyplot as plt

            width = min(16, 1.5 + 0.24 * sum(widths) + 0.3 * len(widths))
            figure = plt.figure(figsize=(width, 6.0), layout="constrained")
        self.figure_ = figure
        axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)
        self.axes_, self.images_ = list(axes[0]), []
        kwargs = {"cmap": "viridis", "vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
        for ax, cells, labels, names in zip(self.axes_, self.cells, self.labels, self.names):
            n, m = cells.shape
            ax.set_facecolor("0.85")  # shows through where a cell is missing
            image = ax.imshow(
                np.ma.masked_invalid(cells), aspect="auto", extent=(0, m, n, 0), **kwargs
            )
            self.images_.append(image)
            ax.hlines(np.flatnonzero(np.diff(labels)) + 1, 0, m, color="white", linewidth=1.0)
            ax.set_xticks(np.arange(m) + 0.5, names, rotation=90)
            ax.set_yticks([])
            ax.tick_params(length=0, labelsize="small" if sum(widths) <= 40 else "xx-small")
            ax.spines[:].set_visible(False)
        self.axes_[0].set_ylabel(f"{len(self.labels[0]):,} rows, sorted by cluster in each view")
        bar = figure.colorbar(self.images_[0], ax=self.axes_, fraction=0.03, pad=0.02)
        bar.set_ticks([0, 1], labels=["low", "high"])
        bar.outline.set_visible(False)
        return self


def _columns_by_view(estimator):
    """Columns by the size of their view, in it those first that hold it together; dependence."""
    ranks, _ = rank_clusters(estimator.view_labels_)
    dependence = estimator.dependence_probability()
    within = (dependence * (ranks == ranks[:, None])).sum(axis=1)
    return np.lexsort([-within, ranks]), dependence


def _column_names(estimator):
    """The columns' names, or their positions."""
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]


def _shades(column):
    """Cells from 0 to 1, NaN where missing: numbers by their rank, levels in their order."""
    values = np.asarray(column.values, dtype=np.float64)
    present = np.ones(len(values), bool) if column.missing is None else ~column.missing
    shades = np.full(len(values), np.nan)
    if column.levels is None:
        known, ranks = np.unique(values[present], return_inverse=True)
        middle = np.cumsum(np.bincount(ranks, minlength=len(known)))
        below = np.concatenate([[0], middle[:-1]])
        shades[present] = ((below + middle) / 2 / max(1, present.sum()))[ranks]
    else:
        shades[present] = values[present] / max(1, len(column.levels) - 1)
    return shades


def _axes(caller, ax, figsize=None):
    """The axes to draw on, and their figure."""
    check_matplotlib_support(caller)
    if ax is not None:
        return ax.figure, ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")
