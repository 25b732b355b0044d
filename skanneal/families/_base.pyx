"""What all families inherit: slots and hyperparameters as a whole, saving and restoring, and calls
from Python. What a family writes itself is in `_family.pyx`."""

from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, draw_index, uniform
from ._family cimport Family
from ._slots cimport TILE, Slots, aligned_zeros
from ._table cimport Table
from ._forms import flatten
from ._slots import SLOTS, tiles


cdef class FamilyBlock(Family):
    """One family's features and the statistics of all slots. Subclasses: one per family.

    Parameters
    ----------
    table : Table
        Encoded rows; `bind` exchanges it. Also read for the columns' types.
    columns : sequence of int
        The features: positions in the table.
    hyper : sequence of array-like, optional
        For each feature, in the order of `columns`, the values of its hyperparameters (the order of
        `coordinate_names`). By default the family's weak defaults. Of a row family one flat vector
        (see _forms.py), in the table's order of columns.
    n_slots : int, default=16
        First capacity.
    gappy : array-like of bool, optional
        For each feature, whether a cell may be missing. By default as the table has it.
    """

    def __init__(self, Table table, columns, hyper=None, n_slots=16, gappy=None):
        columns = np.asarray(columns, dtype=np.int64)
        self.n_slots = self.version = 0
        if self.joint:
            order, gappy = np.argsort(columns), np.zeros(len(columns), dtype=bool)
            self.n_features = self.n_dense = 1
            hyper = [self.default_hyper(table, columns[order]) if hyper is None else hyper[0]]
        else:
            gappy = table.gaps[columns] if gappy is None else np.asarray(gappy, dtype=bool)
            order = np.lexsort((table.widths[columns], gappy))
            self.n_features, self.n_dense = len(columns), int(np.sum(~gappy))
            if hyper is None:
                hyper = [self.default_hyper(int(table.n_levels[j])) for j in columns]
            hyper = [hyper[i] for i in order]
        self.columns, self.gappy = columns[order], gappy[order]
        self._set_up(table, [np.array(flat, dtype=np.float64, ndmin=1) for flat in hyper])
        self.slots = Slots({"size": (np.int64, (SLOTS,)), **self._layout()})
        self.bind(table)
        self.reserve(tiles(n_slots))

    @classmethod
    def names(cls):
        """The hyperparameters' names in the order in which a user may give them without names."""
        return cls.argument_names or cls.coordinate_names

    @classmethod
    def hyper_of(cls, arrays):
        """Each feature's hyperparameters in the arrays of `to_arrays`: list of float64 vectors."""
        values = [arrays[name] for name in cls.coordinate_names]
        if cls.joint:
            return [flatten(cls.forms, values, len(arrays["columns"]))]
        return list(np.stack(values, axis=1))

    cdef int reserve(self, Py_ssize_t n_slots) except -1:
        """Make room for n_slots slots (a multiple of TILE); existing slots are kept."""
        self.size, *arrays = self.slots.grow(n_slots)
        self._hold(n_slots, *arrays)
        self.n_slots = n_slots
        self.refresh_slots()
        return 0

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        """Empty slot k."""
        self.slots.clear(k)
        self.refresh(k)

    cdef void copy(self, FamilyBlock source, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Slot k becomes what slot i of `source` is (same family, features, hyperparameters)."""
        self.slots.copy(source.slots, i, k)
        self.refresh(k)

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Slot i takes over slot k's rows; k is left empty. For statistics that are sums."""
        self.slots.add(i, k)
        self.clear(k)
        self.refresh(i)

    cdef void refresh_slots(self) noexcept nogil:
        """Every slot's score cache from its statistics."""
        cdef Py_ssize_t k
        for k in range(self.n_slots):
            self.refresh(k)

    def _at(self, name):
        """The places of an array of statistics that are saved, as an index of its axes but the
        slots."""
        return ... if self.joint else np.argsort(self.columns)

    def statistics(self):
        """Return by name all that `from_arrays` needs of the slots but `size`.

        The last axis of each array is the slot; a column family's first is the feature, in the
        table's order of columns."""
        return {name: self.slots.get(name)[self._at(name)] for name in self._saved()}

    def _saved(self):
        return [name for name in self.slots.layout if name not in ("size", *self.derived)]

    def _restore(self, arrays):
        """Fill the statistics from those that `to_arrays` gave."""
        n = len(arrays["size"])
        self.slots.put("size", ..., arrays["size"], n)
        for name in self._saved():
            self.slots.put(name, self._at(name), arrays[name], n)

    @classmethod
    def from_arrays(cls, arrays, table, n_slots=None):
        """The block whose to_arrays() gave `arrays`, reading rows of `table`."""
        cdef FamilyBlock block = cls(table, arrays["columns"], cls.hyper_of(arrays),
                                     max(len(arrays["size"]), n_slots or 0), arrays.get("gappy"))
        block._restore(arrays)
        block.refresh_all()
        return block

    def to_arrays(self, slots=None):
        """Statistics and hyperparameters as a flat dict of arrays.

        Parameters
        ----------
        slots : int or int array, optional
            The first `slots` slots, or those given by index. By default all.
        """
        slots = slice(slots) if np.ndim(slots) == 0 else slots
        arrays = {"columns": np.sort(self.columns)}
        for name, value in {"size": np.asarray(self.size), **self.statistics()}.items():
            arrays[name] = value[..., slots].copy()
        return arrays | self.parameters()

    @classmethod
    def key_columns(cls, columns):
        """The columns under which hyperparameters are kept: all, or a row family's first."""
        return columns[:1] if cls.joint else columns

    def bind(self, Table table):
        """Read rows from `table` from now on (same columns, no new gaps in dense features)."""
        self.table = table
        self.offset = np.ascontiguousarray(table.positions[self.columns], dtype=np.int32)

    def refresh_all(self):
        """Every slot's score cache from its statistics, after hyperparameters changed."""
        with nogil:
            self.refresh_slots()

    def grid_scores(self, Py_ssize_t f, Py_ssize_t h, grid):
        """Sum over slots of feature f's log marginal with coordinate h at each value of `grid`, up
        to a constant: (n,)."""
        cdef const double[::1] values = np.ascontiguousarray(grid, dtype=np.float64)
        cdef double[::1] out = np.empty(len(values))
        self.score_grid(f, h, &values[0], len(values), &out[0])
        return np.asarray(out)

    def set_hyper(self, Py_ssize_t f, Py_ssize_t h, double value):
        """Set one coordinate; call `refresh_all` after the last."""
        self.set_coordinate(f, h, value)
        self.version += 1

    def draw_hyper(self, Py_ssize_t f, const double[::1] grid, const int64_t[::1] start,
                   double beta, bit_generator):
        """Draw feature f's coordinates one after another from their conditionals on grids.

        Parameters
        ----------
        f : int
            The feature.
        grid : float64 array of shape (n,)
            The grids of all coordinates, one after another.
        start : int64 array of shape (n_coordinates + 1,)
            Where each begins; a grid of fewer than two values keeps its coordinate.
        beta : float
            Exponent of the likelihood.
        bit_generator : numpy.random.BitGenerator

        Returns
        -------
        int
            Coordinates drawn. Call `refresh_all` after the last feature.
        """
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef double[::1] weight = np.empty(max(1, len(grid)))
        cdef Py_ssize_t h, n, drawn = 0
        cdef const double *values
        with nogil:
            for h in range(start.shape[0] - 1):
                n = start[h + 1] - start[h]
                if n < 2:
                    continue
                values = &grid[start[h]]
                self.score_grid(f, h, values, n, &weight[0])
                self.set_coordinate(f, h, values[draw_index(&weight[0], n, beta, uniform(rng))])
                drawn += 1
        self.version += drawn > 0
        return drawn

    def spare(self, n_slots):
        """The same table, features and hyperparameters with empty slots: the two clusters of a
        split, the segments of a permutation."""
        cdef FamilyBlock new
        hyper = [self.get_hyper(f) for f in range(self.n_features)]
        new = type(self)(self.table, self.columns, hyper, n_slots, self.gappy)
        new.version = self.version
        return new

    def follow(self, FamilyBlock other):
        """Take over the hyperparameters of a block of the same features, where they changed."""
        if self.version == other.version:
            return
        self._take_hyper(other)
        self.version = other.version
        self.refresh_all()

    def build(self, rows, labels, n_slots):
        """Replace all statistics by those of `rows` (indices) with slots `labels`, in one pass."""
        cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const int64_t[::1] label = np.ascontiguousarray(labels, dtype=np.int64)
        cdef Py_ssize_t i, k
        if tiles(n_slots) > self.n_slots:
            self.reserve(tiles(n_slots))
        with nogil:
            for k in range(self.n_slots):
                self.clear(k)
            for i in range(row.shape[0]):
                self.insert(self.table.row(row[i]), label[i])

    def insert_row(self, Py_ssize_t i, Py_ssize_t k):
        """Add row i of the table to slot k."""
        self._check(i, k)
        self.insert(self.table.row(i), k)

    def remove_row(self, Py_ssize_t i, Py_ssize_t k):
        """Take row i of the table out of slot k."""
        self._check(i, k)
        self.remove(self.table.row(i), k)

    def extend_row(self, Py_ssize_t i, Py_ssize_t n_tiles, Py_ssize_t opened=-1):
        """Add row i of the table to every slot of the first n_tiles that has rows, and to one."""
        self._check(i, n_tiles * TILE - 1)
        self.extend(self.table.row(i), n_tiles, opened)

    def drop_slot(self, Py_ssize_t k):
        """Empty slot k for `extend_row` to open."""
        self._check(0, k)
        self.drop(k)

    def row_scores(self, Py_ssize_t i):
        """Log predictive of row i in every slot, float32 array of shape (n_slots,)."""
        cdef float[::1] out = aligned_zeros((self.n_slots,), np.float32)
        self._check(i, 0)
        self.add_scores(self.table.row(i), self.n_slots // TILE, &out[0])
        return np.asarray(out)

    def weighed(self, Py_ssize_t i):
        """Log predictive of row i in slots 0 and 1 as a split asks for it: float32 (2,)."""
        cdef float[::1] out = aligned_zeros((TILE,), np.float32)
        self.weigh(self.table.row(i), &out[0])
        return np.asarray(out)[:2]

    def join_row(self, Py_ssize_t i, Py_ssize_t k):
        """Add row i of the table, for which `weighed` was just asked, to slot 0 or 1."""
        self._check(i, k)
        self.join(self.table.row(i), k)

    def row_score_without(self, Py_ssize_t i, Py_ssize_t k):
        """Log predictive of row i, which slot k holds, in slot k without it."""
        self._check(i, k)
        return self.score_without(self.table.row(i), k)

    def row_proposals(self, Py_ssize_t i, Py_ssize_t held=-1):
        """Proposal weights of row i, which slot `held` (or none) holds, in every slot: a float32
        array of shape (n_slots,); and the corrections, (n_slots,)."""
        cdef float[::1] out = aligned_zeros((self.n_slots,), np.float32)
        cdef const char *observed = self.table.observed(i)
        cdef const char *row = self.table.row(i)
        cdef Py_ssize_t k
        self._check(i, max(held, 0))
        self.add_proposals(observed, self.n_slots // TILE, &out[0])
        if held >= 0:
            out[held] = self.proposal_without(observed, row, held)
        corrections = [self.correction(observed, row, k, k == held) for k in range(self.n_slots)]
        return np.asarray(out), np.array(corrections)

    def losses_without(self, const int64_t[::1] rows, const int64_t[::1] slots, double[::1] out):
        """Add to `out` how much more surprising rows are in their slots without themselves."""
        cdef float[::1] scores = aligned_zeros((self.n_slots,), np.float32)
        cdef Py_ssize_t i, n_tiles = self.n_slots // TILE
        cdef const char *row
        with nogil:
            for i in range(rows.shape[0]):
                row = self.table.row(rows[i])
                scores[:] = 0.0
                self.add_scores(row, n_tiles, &scores[0])
                out[i] += scores[slots[i]] - self.score_without(row, slots[i])

    def _check(self, Py_ssize_t i, Py_ssize_t k):
        if not 0 <= i < self.table.n_rows:
            raise IndexError(f"row {i} of a table of {self.table.n_rows}")
        if not 0 <= k < self.n_slots:
            raise IndexError(f"slot {k} of {self.n_slots}")

    def sizes(self):
        """Rows in each slot, shape (n_slots,)."""
        return np.asarray(self.size).copy()

    def log_marginals(self, f=None):
        """Log marginal likelihood of every slot, of feature f alone or of all: (n_slots,)."""
        cdef Py_ssize_t k
        if f is None:
            return np.array([self.log_marginal(k) for k in range(self.n_slots)])
        return np.array([self.log_marginal_feature(f, k) for k in range(self.n_slots)])

    def log_jacobian(self):
        """What converts the sum of the log marginals to the user's units, when added to it."""
        return 0.0

    def merge_slots(self, Py_ssize_t i, Py_ssize_t k):
        """Slot i takes over slot k's rows; k is left empty."""
        self.merge(i, k)

    def copy_slot(self, FamilyBlock source, Py_ssize_t i, Py_ssize_t k):
        """Slot k becomes what slot i of `source` is."""
        self.copy(source, i, k)

    def score_rows(self, Table table, out, start=0, stop=None):
        """Add each row's log predictive in every slot to `out`, in float64, any cell missing.

        A row family overrides this; its `score_feature(i, ...)` adds the conditional log density of
        the cell in `columns[i]` given the row's other cells of the block.

        Parameters
        ----------
        table : Table
            Encoded queries.
        out : ndarray of shape (stop - start, n) and type float64, written
            n at most n_slots.
        start, stop : int
            The rows.
        """
        stop = table.n_rows if stop is None else stop
        for f in range(self.n_features):
            self.score_feature(f, table, out, start, stop)

    def validate(self):
        """Check the invariants; AssertionError names the first that fails."""
        assert self.n_slots % TILE == 0
        before = self.row_scores(0) if self.table.n_rows else None
        self.refresh_all()
        if before is not None:
            assert np.array_equal(before, self.row_scores(0)), "a score cache is stale"
