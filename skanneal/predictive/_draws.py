"""Kept draws: flat dicts of arrays, and what users read in them."""

# SPDX-License-Identifier: BSD-3-Clause

from weakref import WeakKeyDictionary

import numpy as np

from .._native._packing import part_of
from ..encoding import row_values_in_units
from ..families import FAMILIES
from ..families._division import alone, joined
from ..families._forms import to_user, unflatten
from ..states import state_from_arrays
from ..summary import relabel

# The draws of which nobody need ask whether their arrays are those of a state of so many rows (0
# for queries): what a chain has made, and what was asked before. One that was unpickled is neither.
CHECKED = WeakKeyDictionary()


class KeptDraw:
    """The arrays of a draw, and what of their encoder it takes to show them in the user's units."""

    def __init__(self, arrays, encoder):
        self.arrays = arrays
        CHECKED[self] = {0, n_labelled(arrays)}
        self._apart = encoder.apart
        schema = encoder.table_schema
        self._units = schema.offsets, schema.scales

    log_joint = property(lambda self: float(self.arrays["log_joint"]))


class Draw(KeptDraw):
    """One kept draw of a chain.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), int32
        Component of each training row, 0 .. n_components - 1.
    concentration, discount : float
    hyperparameters : dict of str to dict of str to ndarray
        By family and name, in the user's units, one value per column in `families_`; pseudo-counts
        are a list with one array per column. Of a row family a number, a vector or a matrix.
    log_joint : float
        log p(partition) + log p(x | partition, hyperparameters), in the user's units.
    n_components : int
    sizes : ndarray of shape (n_components,)
    arrays : dict of str to ndarray
        All of it, the components' statistics included ("normal/mean" and so on, in cell units).
    """

    labels = property(lambda self: self.arrays["labels"])
    concentration = property(lambda self: float(self.arrays["concentration"]))
    discount = property(lambda self: float(self.arrays["discount"]))
    n_components = property(lambda self: len(self.sizes))
    sizes = property(lambda self: _sizes(self.arrays))
    main_view = 0

    @property
    def hyperparameters(self):
        return _in_units([self.arrays], len(self._apart.kept), *self._units)

    def __repr__(self):
        return f"Draw(n_components={self.n_components}, log_joint={self.log_joint:.6g})"


class CrossCatDraw(KeptDraw):
    """One kept draw of a CrossCat chain.

    Views are numbered in the order of their first columns. A view of presence indicators alone
    counts in predictions, but is not shown.

    Attributes
    ----------
    view_labels : ndarray of shape (n_columns,), int64
        View of each column, 0 .. n_views - 1; -1 of a constant one, which is in none.
    row_labels : list of ndarray of shape (n_rows,), int32
        One per view: component of each training row.
    labels : ndarray of shape (n_rows,), int32
        Those of the view with the most columns.
    concentration, discount : ndarray of shape (n_views,)
        Of each view's partition of the rows.
    view_concentration, view_discount : float
        Of the partition of the columns.
    hyperparameters : dict of str to dict of str to ndarray
        By family and name, in the user's units, one value per column in `families_`; pseudo-counts
        are a list with one array per column.
    log_joint : float
        log p(views) + log p(clusters of every view) + log p(x | all of it), in the user's units.
    n_views : int
    view_links : ndarray of shape (n_links, 2), int64
        The views that are linked, the one that is given first.
    n_components : ndarray of shape (n_views,), int64
    sizes : list of ndarray
        One per view: rows in each component.
    arrays : dict of str to ndarray
        All of it, the components' statistics included ("view0/normal/mean" and so on, in
        cell units).
    """

    view_concentration = property(lambda self: float(self.arrays["view_concentration"]))
    view_discount = property(lambda self: float(self.arrays["view_discount"]))
    view_labels = property(lambda self: shown_views(self.table_view_labels, self._apart))
    n_views = property(lambda self: n_shown(self.view_labels))
    n_components = property(lambda self: np.array([len(sizes) for sizes in self.sizes]))
    row_labels = property(lambda self: [self.rows_of(v) for v in range(self.n_views)])
    labels = property(lambda self: self.rows_of(largest_view(self.view_labels)))
    main_view = property(lambda self: self.stored(largest_view(self.view_labels)))

    @property
    def view_links(self):
        shown = {self.stored(v): v for v in range(self.n_views)}
        links = self.arrays.get("link_views", np.empty((0, 2), np.int64)).tolist()
        pairs = [[shown[v] for v in link] for link in links if shown.keys() >= set(link)]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    @property
    def table_view_labels(self):
        """View of each encoded column, the indicators' among them."""
        return relabel(self.arrays["view_of"])

    @property
    def concentration(self):
        return np.array([float(self._of(v, "concentration")) for v in range(self.n_views)])

    @property
    def discount(self):
        return np.array([float(self._of(v, "discount")) for v in range(self.n_views)])

    @property
    def sizes(self):
        return [_sizes(self._parts(v)) for v in range(self.n_views)]

    @property
    def hyperparameters(self):
        stored = dict.fromkeys(self.arrays["view_of"].tolist())  # in the order of first columns
        parts = [part_of(self.arrays, f"view{v}") for v in stored]
        return _in_units(parts, len(self._apart.kept), *self._units)

    def stored(self, v):
        """The number that view v has in the arrays."""
        return int(self.arrays["view_of"][np.argmax(self.table_view_labels == v)])

    def rows_of(self, v):
        """Cluster of each training row in view v, which may be one that is not shown."""
        return self._of(v, "labels")

    def _of(self, v, name):
        return self.arrays[f"view{self.stored(v)}/{name}"]

    def _parts(self, v):
        return part_of(self.arrays, f"view{self.stored(v)}")

    def __repr__(self):
        components = "+".join(map(str, self.n_components))
        return (
            f"CrossCatDraw(n_views={self.n_views}, n_components={components}, "
            f"log_joint={self.log_joint:.6g})"
        )


def state_of(draw, table):
    """The Mixture or CrossCat of a draw, with its own training rows or with a table without rows;
    its arrays are looked at unless it is known what made them."""
    known = CHECKED.setdefault(draw, set())
    state = state_from_arrays(draw.arrays, table, trusted=table.n_rows in known)
    known.add(table.n_rows)
    return state


def evenly(n, n_chosen):
    """Return n_chosen of n, or all of fewer, evenly spread."""
    return np.unique(np.linspace(0, n - 1, n_chosen).round().astype(np.int64))


def n_labelled(arrays):
    """How many rows have a label in a draw; 0 if it keeps no labels."""
    return next((len(arrays[name]) for name in arrays if name.endswith("labels")), 0)


def partitions(arrays, rows):
    """The view of each encoded column in a draw, and each view's clusters of some rows."""
    if "view_of" not in arrays:
        return np.zeros(1, dtype=np.int64), [arrays["labels"][rows]]
    stored, view_of = np.unique(arrays["view_of"], return_inverse=True)
    return view_of, [arrays[f"view{v}/labels"][rows] for v in stored]


def shown_views(table_view_labels, apart):
    """The view of each column of the user, of that of each column of the Table; -1 where it is in
    none."""
    view_labels = np.full(apart.n_columns, -1)
    view_labels[apart.kept] = table_view_labels[: len(apart.kept)]
    return view_labels


def n_shown(view_labels):
    """Number of views that are shown: one of no column if no column is in any."""
    return max(int(view_labels.max()) + 1, 1)


def largest_view(view_labels):
    """The view with the most columns; of equal ones the first."""
    return int(np.bincount(view_labels[view_labels >= 0], minlength=1).argmax())


def _sizes(arrays):
    return next(value for name, value in arrays.items() if name.endswith("/size"))


def _in_units(parts, n_columns, offsets, scales):
    """Hyperparameters of the first n_columns columns, from the arrays of each view."""
    out = {}
    for name, family in FAMILIES.items():
        of = [part_of(arrays, name) for arrays in parts if f"{name}/columns" in arrays]
        columns = np.concatenate([np.empty(0, int), *[arrays["columns"] for arrays in of]])
        order = np.argsort(columns)[: np.count_nonzero(columns < n_columns)]
        if not len(order):
            continue
        if family.joint:
            arrays = of[0] if len(of) == 1 else _of_all_views(family, of)
            out[name] = row_values_in_units(family, arrays, np.sort(columns), offsets, scales)
            continue
        vectors = [vector for arrays in of for vector in family.hyper_of(arrays)]
        vectors = [vectors[i] for i in order]
        units = offsets[columns[order]], scales[columns[order]]
        if family.forms == ("per_level",):
            out[name] = {family.coordinate_names[0]: vectors}
            continue
        pairs = zip(family.coordinate_names, family.forms)
        values = {
            coordinate: to_user(form, np.array([vector[h] for vector in vectors]), *units)
            for h, (coordinate, form) in enumerate(pairs)
        }
        out[name] = {coordinate: values[coordinate] for coordinate in family.names()}
    return out


def _of_all_views(family, of):
    """Hyperparameters of a row family that views divide, as if all its columns were in one."""
    vectors = [alone(family, *family.hyper_of(arrays), len(arrays["columns"])) for arrays in of]
    order = np.argsort(np.concatenate([arrays["columns"] for arrays in of]))
    values = unflatten(family.forms, joined(family, np.vstack(vectors)[order]), len(order))
    return dict(zip(family.coordinate_names, values))
