"""CrossCat: columns partitioned into views, each view a mixture over the same rows.

    columns   view_of ~ a partition prior
    rows      in view v ~ a partition prior of the view's own
    cells     independent given their view's clusters; but the columns of a family of whole rows
              that are in one view have a law together

All views share one subsample S: a row enters or leaves all of them together. The missing cells of a
family of whole rows are part of the state, as fills in one table of all views. Each column of such
a family has hyperparameters by itself (families/_division.py); those that its columns share are the
same in all views.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from .._native._packing import pack, unpack
from .._native._state_arrays import StateError, part, state_array
from ..families import FAMILIES
from ..families._cells import numbers_of
from ..families._division import by_column, shared, vectors_of
from ..partition_priors import PartitionPrior, prior_from_arrays
from ._links import NO_LINKS, check_links
from ._mixture import Mixture


class FreshView(NamedTuple):
    """A view that holds no column yet.

    Attributes
    ----------
    prior : PartitionPrior
        Of its rows.
    labels : int32 array of shape (n,)
        Slots of the rows of S, in the subsample's order.
    hyper : dict of int to float array
        New hyperparameters, for columns that are to change them.
    """

    prior: PartitionPrior
    labels: np.ndarray
    hyper: dict = {}

    @classmethod
    def of(cls, view, rows):
        """What a mixture of these rows has: its prior, labels and hyperparameters."""
        return cls(view.prior, view.labels_of(rows), _hyper_of(view))


class CrossCat:
    """Views over one table and one subsample.

    Parameters
    ----------
    table : Table
        Encoded rows, with fills in the columns of families of whole rows (`filled`).
    views : sequence of Mixture
        Each with at least one column; together they own every column. They share the fills.
    view_of : array-like of int, shape (n_columns,)
        Index into `views` of each column.
    prior : PartitionPrior
        Over partitions of the columns.
    subsample : Subsample
        S, shared by the views.

    Attributes
    ----------
    single_columns, joint_columns : int array
        The columns of families of single columns, and those of a family of whole rows.
    """

    @staticmethod
    def filled(table, families):
        """A table of these rows with fills, given the columns of each family by name."""
        joint = [at for family, at in families.items() if FAMILIES[family].joint]
        return table.with_fills(np.concatenate([np.empty(0, np.int64), *joint]), shared=True)

    def __init__(self, table, views, view_of, prior, subsample):
        self.table, self.subsample, self.prior = table, subsample, prior
        self.views = list(views)
        self.view_of = np.array(view_of, dtype=np.int64)
        self.family_of = {
            int(j): block.family for view in views for block in view.blocks for j in block.columns
        }
        columns = np.arange(len(self.view_of))
        joint = np.array([FAMILIES[self.family_of[int(j)]].joint for j in columns], dtype=bool)
        self.single_columns, self.joint_columns = columns[~joint], columns[joint]

    @classmethod
    def start(cls, table, families, hyper, view_of, view_prior, prior, subsample):
        """Views without rows.

        Parameters
        ----------
        table : Table
            Encoded rows.
        families : dict of str to int array
            Columns of each family.
        hyper : dict of int to float array
            Each column's hyperparameters.
        view_of : int array of shape (n_columns,)
            View of each column: 0 .. n_views - 1, each with a column.
        view_prior : PartitionPrior
            Of the columns.
        prior : PartitionPrior
            Of the rows of every view.
        subsample : Subsample
            S, empty.
        """
        table, views = cls.filled(table, families), []
        for v in range(int(view_of.max()) + 1):
            blocks = [
                _block(table, family, own, hyper)
                for family, columns in families.items()
                if len(own := columns[view_of[columns] == v])
            ]
            views.append(Mixture(table, blocks, prior, subsample))
        return cls(table, views, view_of, view_prior, subsample)

    @property
    def n_views(self):
        """Number of views."""
        return len(self.views)

    @property
    def n_clusters(self):
        """Clusters of all views together."""
        return sum(view.n_clusters for view in self.views)

    def sizes(self):
        """Columns in each view: int64 (n_views,)."""
        return np.bincount(self.view_of, minlength=self.n_views)

    def set_prior(self, prior):
        """Exchange the prior over partitions of the columns."""
        self.prior = prior

    def hyper(self, columns=None):
        """Hyperparameters of columns, or of all, in cell units: dict of int to float array."""
        columns = np.arange(len(self.view_of)) if columns is None else columns
        wanted = set(np.asarray(columns).tolist())
        return {
            j: vector
            for v in sorted(set(self.view_of[columns].tolist()))
            for j, vector in _hyper_of(self.views[v]).items()
            if j in wanted
        }

    def row_labels(self, rows):
        """Slots of these rows in every view: int32 (n_views, n)."""
        return np.stack([view.labels_of(rows) for view in self.views])

    def log_joint(self, beta=1.0):
        """log p(views) + sum of the views' log p(rows) + beta log p(x_S | all partitions); the
        probability of each prior's point on its grid is counted with it."""
        log_prior = self.prior.log_weight + self.prior.log_probability(self.sizes())
        return log_prior + sum(view.log_joint(beta) for view in self.views)

    # ---- columns move ---------------------------------------------------------------------------

    def column_scores(self, columns, rows, labels, hyper=None):
        """Log marginal likelihood of columns under several partitions of rows.

        Parameters
        ----------
        columns : int array of shape (n_columns,)
            Of any family; of one of whole rows each column by itself.
        rows : int64 array of shape (n,)
            The rows that are partitioned.
        labels : int32 array of shape (n_partitions, n)
            Slots of the rows in each partition.
        hyper : dict of int to float array or None
            The columns' hyperparameters; None: the present ones.

        Returns
        -------
        scores : float64 array of shape (n_columns, n_partitions)
        """
        hyper = self.hyper(columns) if hyper is None else hyper
        n_slots = labels.max(axis=1, initial=-1).astype(np.int64) + 1
        scores = np.empty((len(columns), len(n_slots)))
        places = {}
        for i, j in enumerate(columns.tolist()):
            places.setdefault(self.family_of[j], []).append(i)
        for family, at in places.items():
            of, member = [hyper[j] for j in columns[at].tolist()], FAMILIES[family]
            scores[at] = (member.division or member).column_scores(
                self.table, columns[at], of, rows, labels, n_slots
            )
        return scores

    def joint_cells(self, rows):
        """The cells of `joint_columns` in these rows with their fills, float64 (n, n_joint), which
        of them are fills, and the columns' hyperparameters, (n_joint, n_coordinates)."""
        hyper, of = self.hyper(self.joint_columns), (self.table, self.joint_columns, rows)
        gaps, cells = np.isnan(numbers_of(*of)), numbers_of(*of, filled=True)
        return cells, gaps, np.array([hyper[j] for j in self.joint_columns.tolist()])

    def reassign(self, view_of, fresh=()):
        """Give every column a view; views left without one are dropped.

        Parameters
        ----------
        view_of : int array of shape (n_columns,)
            Index into the present views followed by `fresh`.
        fresh : sequence of FreshView
            Views that may be opened.
        """
        hyper = self.hyper()
        rows = self.subsample.rows()
        kept = np.unique(view_of)
        views = []
        for v in kept:
            columns = np.flatnonzero(view_of == v)
            if v < self.n_views:
                views.append(self.views[v])
                own = np.flatnonzero(self.view_of == v)
                self._exchange(views[-1], own, columns, hyper, rows)
            else:
                views.append(self.open_view(fresh[v - self.n_views], columns, hyper))
        self.views, self.view_of = views, np.searchsorted(kept, view_of)

    def _exchange(self, view, before, after, hyper, rows):
        """Make `after` the columns of a view that has `before`.

        Blocks that change are built from the rows anew, which costs less than the scores that
        chose the views.
        """
        changed = set(before.tolist()) ^ set(after.tolist())
        if not changed:
            return
        labels = view.labels_of(rows)
        blocks = {block.family: block for block in view.blocks}
        for family in {self.family_of[j] for j in changed}:
            blocks.pop(family, None)
        for family, columns in self._by_family(after):
            if family not in blocks:
                blocks[family] = _block(self.table, family, columns, hyper, view.n_slots)
                blocks[family].build(rows, labels, view.n_slots)
        view.set_blocks([blocks[family] for family in FAMILIES if family in blocks])

    def open_view(self, fresh, columns, hyper=None):
        """A view with these columns and the rows of S, not yet one of the views.

        `hyper` as for `new_view`; those of `fresh` take their place."""
        hyper = self.hyper(columns) if hyper is None else hyper
        view = self._new_view(self.table, columns, fresh.prior, hyper | fresh.hyper)
        view.replace(self.subsample.rows(), fresh.labels)
        return view

    def new_view(self, columns, prior, hyper=None):
        """A view of these columns, without rows and never one of the views: to moves that make
        views, fills are cells as any other.

        `hyper` are their hyperparameters by column, if at hand."""
        hyper, table = self.hyper(columns) if hyper is None else hyper, self.table
        if table.shares_fills:
            table = table.take(np.arange(table.n_rows), filled=True)
        return self._new_view(table, columns, prior, hyper)

    def _new_view(self, table, columns, prior, hyper):
        hyper = self._with_shared(hyper)
        blocks = [_block(table, family, own, hyper) for family, own in self._by_family(columns)]
        return Mixture(table, blocks, prior, self.subsample)

    def _with_shared(self, hyper):
        """Hyperparameters by column, where those that columns share are the present ones."""
        own = self.hyper(self.joint_columns) if len(self.joint_columns) else {}
        hyper = dict(hyper)
        for j in own.keys() & hyper.keys():
            at = shared(FAMILIES[self.family_of[j]])
            hyper[j] = hyper[j].copy()
            hyper[j][at] = own[j][at]
        return hyper

    def _by_family(self, columns):
        """(family, its columns) for the families among these columns."""
        groups = {}
        for j in np.asarray(columns).tolist():
            groups.setdefault(self.family_of[j], []).append(j)
        return [(family, groups[family]) for family in FAMILIES if family in groups]

    # ---- rows -----------------------------------------------------------------------------------

    def compact(self):
        """Free slots in every view."""
        for view in self.views:
            view.compact()

    # ---- state as arrays ------------------------------------------------------------------------

    def scalars(self):
        """What a trace records; clusters are summed over views, priors of rows averaged."""
        priors = [view.prior.scalars() for view in self.views]
        return {
            "n_components": self.n_clusters,
            "log_joint": self.log_joint(),
            **{name: np.mean([prior[name] for prior in priors]) for name in priors[0]},
            "n_views": self.n_views,
            **{f"view_{name}": value for name, value in self.prior.scalars().items()},
        }

    def to_arrays(self, numbered=False):
        """Flat dict "view_of", "view_concentration", "view_discount", "view<v>/<name>", and "fills"
        where there are any; `numbered` as for Mixture."""
        arrays = {
            "view_of": self.view_of.copy(),
            **self.prior.to_arrays("view_"),
        }
        fills = self.table.fills()
        if fills is not None:
            arrays["fills"] = fills
        views = {f"view{v}": view.to_arrays(numbered) for v, view in enumerate(self.views)}
        return arrays | pack(views)

    @classmethod
    def from_arrays(cls, arrays, table, subsample=None, trusted=False):
        """The state whose to_arrays() gave `arrays`; a table without rows answers queries only.

        StateError for arrays that are none such; of `trusted` ones views are not looked at.
        """
        parts, views = unpack(arrays), []
        view_of = state_array(arrays, "view_of", "iu", (table.n_columns,), 0, len(parts) - 1)
        table = cls.filled(table, _joint_columns(parts, table))
        fills = table.fills()
        if fills is not None:
            table.set_fills(state_array(arrays, "fills", "f", fills.shape))
        for v in range(len(parts)):
            with part(f"view{v}"):
                own = parts.get(f"view{v}", {})
                views.append(Mixture.from_arrays(own, table, subsample, trusted))
        prior = prior_from_arrays(arrays, "view_")
        new = cls(table, views, view_of, prior, subsample)
        for v, view in enumerate(views):
            columns = np.sort(np.concatenate([block.columns for block in view.blocks]))
            if not np.array_equal(columns, np.flatnonzero(new.view_of == v)):
                raise StateError("view_of", f"contradicts the columns of view{v}")
        if NO_LINKS.keys() & arrays.keys() and not trusted:
            check_links(arrays, [view.sizes()[view.sizes() > 0] for view in views])
        return new

    def validate(self):
        """Check the invariants; AssertionError names the first that fails."""
        for v, view in enumerate(self.views):
            columns = np.sort(np.concatenate([block.columns for block in view.blocks]))
            assert len(columns), f"view {v} has no column"
            assert np.array_equal(columns, np.flatnonzero(self.view_of == v)), f"view {v}: columns"
            assert view.subsample is self.subsample, f"view {v}: subsample"
            view.validate()


def _block(table, family, columns, hyper, n_slots=16):
    """A block of these columns, whose hyperparameters stand by column."""
    member = FAMILIES[family]
    return member(table, columns, vectors_of(member, columns, hyper), n_slots)


def _hyper_of(view):
    """The hyperparameters of a mixture's columns: dict of int to float array."""
    return {j: vector for block in view.blocks for j, vector in by_column(block).items()}


def _joint_columns(parts, table):
    """The columns of each family of whole rows in the arrays of views, if they are such."""
    out = {}
    for own in parts.values():
        for family, arrays in unpack(own).items():
            if family in FAMILIES and FAMILIES[family].joint:
                columns = state_array(arrays, "columns", "iu", (None,), 0, table.n_columns - 1)
                out[family] = np.r_[out.get(family, np.empty(0, np.int64)), columns]
    return out
