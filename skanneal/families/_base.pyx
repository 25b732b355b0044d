"""The contract of a family: a block of features of one family, with the statistics of all slots.

A mixture dispatches once per (row, block), never per cell. Each family keeps statistics in float64
or integers, and beside them a float32 score cache of every slot that is a pure function of the
slot's statistics and of the hyperparameters. Slots come in tiles of 16.

Features are held in an internal order, dense before gappy and then by the width of their codes;
`columns` says which column of the table each one is. Outside (to_arrays, hyperparameters), features
stand in the table's order of columns.

A row family (`joint`) describes whole rows of its columns: the row is its one feature, with all
columns in the table's order.
"""

from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, draw_index, uniform
from ._slots cimport TILE, Slots, aligned_zeros
from ._table cimport Table
from ._forms import flatten
from ._slots import SLOTS, tiles


cdef class FamilyBlock:
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

    family = None           # the name
    joint = False           # a row family?
    takes_gaps = True       # may a row lack some of the family's cells?
    division = None         # of a row family whose columns views may divide: see _division.py
    weighted = False        # has each row a weight that is part of the state?
    proposes = False        # are add_proposals only close to add_scores?
    cells = None            # what a cell is: a key of CODECS (encoding/_codecs.py)
    default_for = None      # the columns that families="auto" gives it: see `candidates`
    logarithms_of = None    # the family of numbers that this one is, of their logarithms
    log_slope = None        # a method where oddness is judged in other units: see View.log_slope
    coordinate_names = ()   # of the hyperparameters
    forms = ()              # theirs, in this order: how long, in which unit; see _forms.py
    # The first of the coordinates that are pseudo-counts of outcomes, which stand last; None: there
    # are none. They are also drawn together (moves/_pseudo_counts.pyx).
    first_pseudo_count = None
    derived = ()            # arrays of `_layout` that are not saved; `_restore` has to make them
    argument_names = ()     # their names as a user gives them in a tuple, where the order differs
    required = ()           # those that a user must give
    # By hyperparameter: what a user can do where its posterior stays at the last point of its grid.
    # List only grids whose last point can bias the posterior. A pseudo-count, a shape or a prior
    # weight at an end says that clusters are all alike, or each a law of its own, and further out
    # it would say the same; a variance at the first point says that the column's values repeat.
    restricting_ends = {}
    # The hyperparameter without which a cluster of one value has no bounds to its density: columns
    # of one value are set apart unless it is given. None: such columns are modelled as any other.
    bounds_density = None
    # Whether rounded numbers are jittered in fit (encoding/_jitter.py): a density that is highest
    # where a cluster's values are equal would collapse onto them.
    jittered = False
    cell_cost = 1.0         # of a row step, a normal cell's being 1; measured

    @staticmethod
    def settled_rows(n_columns):
        """Rows that a chain waits for before it draws hyperparameters, if it needs more than a few:
        as many as it takes to tell a component of all rows from small ones."""
        return 0

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

    # ---- what a family writes -------------------------------------------------------------------

    @staticmethod
    def default_hyper(n_levels):
        """Hyperparameters of a feature before any data, shape (n_coordinates,).

        A row family's takes (table, columns)."""
        raise NotImplementedError

    @staticmethod
    def grids(cells, n_levels):
        """Data-scaled grids of a column's hyperparameters, one array per coordinate.

        A row family's takes (table, columns); None for a coordinate that is not inferred."""
        raise NotImplementedError

    @staticmethod
    def check_hyper(flat, n_columns):
        """Return (name, requirement) of a row family's first invalid coordinate, or None.

        The forms have been checked already."""
        return None

    def _set_up(self, table, hyper):
        """Keep the hyperparameters (internal order) and build what does not depend on n_slots."""
        raise NotImplementedError

    def _layout(self):
        """Return the arrays of the statistics, but for `size`: dict of str to (dtype, shape).

        They are numbers that are 0 in an empty slot; see _slots.py for what stands in a shape. A
        column family's first axis besides the slots is the feature."""
        raise NotImplementedError

    def _hold(self, n_slots, *arrays):
        """Take over the arrays of the statistics, which have grown, and make caches to match."""
        raise NotImplementedError

    def _take_hyper(self, other):
        """Take over all hyperparameters of a block of the same features."""
        raise NotImplementedError

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        """out[k] += log predictive of the row's cells in slot k, for the slots of n_tiles."""

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        """Log predictive of a row of slot k in that slot without the row, which a Gibbs step needs.
        Most rows stay in their cluster, so this saves a removal and an insertion."""
        return 0.0

    cdef void add_proposals(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        """Add the weights from which a row step draws a slot: add_scores or, if that is expensive,
        an approximation whose error `correction` gives."""
        self.add_scores(row, n_tiles, out)

    cdef float proposal_without(self, const char *observed, const char *row,
                                Py_ssize_t k) noexcept nogil:
        """The same for a row that slot k holds, in slot k without it. A family with fills uses the
        observed cells alone: fills and the row's weight are integrated out."""
        return self.score_without(row, k)

    cdef double correction(self, const char *observed, const char *row, Py_ssize_t k,
                           bint held) noexcept nogil:
        """Log predictive of the observed cells in slot k minus the result of add_proposals or, for
        a row that the slot holds, of proposal_without."""
        return 0.0

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        """Add a row to slot k, or take it out (sign -1). An emptied slot is exactly as new."""

    cdef void fill(self, const char *row, Py_ssize_t k, char *filled,
                   bitgen_t *rng) noexcept nogil:
        """Draw the row's missing cells, and its weight if it has one, into `filled`, given its
        other cells and slot k, which does not hold the row; rng NULL: the centres. For row
        families."""

    cdef bint cancels(self, const char *row, Py_ssize_t k) noexcept nogil:
        """Whether removing the row, which has a far number, would cancel most digits of slot k's
        sum of squares: the slot is then built anew from the rows that stay."""
        return False

    cdef void weigh(self, const char *row, float *out) noexcept nogil:
        """add_scores for slots 0 and 1, a split's sides; the rest of the tile is undefined."""
        self.add_scores(row, 1, out)

    cdef void join(self, const char *row, Py_ssize_t k) noexcept nogil:
        """Insert a row that was just weighed into slot 0 or 1, perhaps without the score cache:
        only `weigh`, `join`, `log_marginal`, `copy` and `clear` may follow, until `refresh`."""
        self.insert(row, k)

    cdef void extend(self, const char *row, Py_ssize_t n_tiles, Py_ssize_t opened) noexcept nogil:
        """Add a row to every slot of the first n_tiles that has rows already, and to the empty slot
        `opened` (-1: none): a step of a permutation program, where every kept segment grows by the
        same row and one begins with it."""
        cdef Py_ssize_t k
        for k in range(n_tiles * TILE):
            if self.size[k] > 0 or k == opened:
                self.insert(row, k)

    cdef void drop(self, Py_ssize_t k) noexcept nogil:
        """Empty slot k, except for what `extend` resets when it opens the slot. Until then its
        scores are undefined, and nothing else may use it."""
        self.clear(k)

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        """Slot k's score cache from its statistics."""

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        """Log marginal likelihood of feature f's cells in slot k (in cell units)."""
        return 0.0

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n,
                         double *out) noexcept nogil:
        """out[g] = the sum over slots of feature f's log marginal with coordinate h at grid[g], up
        to a constant."""

    cdef void score_pseudo_counts(self, Py_ssize_t f, const double[:, ::1] value,
                                  double[::1] out) noexcept nogil:
        """The same of all pseudo-counts together, as value[g]; for families that have some."""

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        """Set coordinate h of feature f's hyperparameters; `refresh_all` follows the last."""

    cdef double log_marginal(self, Py_ssize_t k) noexcept nogil:
        """The sum over the features."""
        cdef double total = 0.0
        cdef Py_ssize_t f
        if self.size[k] == 0:
            return 0.0
        for f in range(self.n_features):
            total += self.log_marginal_feature(f, k)
        return total

    def parameters(self):
        """Return by name what else `from_arrays` needs, the hyperparameters among it; a column
        family's features stand in the table's order of columns."""
        raise NotImplementedError

    def get_hyper(self, Py_ssize_t f):
        """Feature f's coordinates, or a row family's flat vector, in cell units."""
        raise NotImplementedError

    def predictive_mean(self, Py_ssize_t f):
        """Centre of a number's predictive in every slot, in cell units: (n_slots,).

        A row family's takes the place of the column. Families of levels have
        `predictive_probabilities` instead, (n_levels, n_slots)."""
        raise NotImplementedError

    def predictive_variance(self, Py_ssize_t f):
        """Variance of a number's predictive in every slot: (n_slots,). Of column families."""
        raise NotImplementedError

    @staticmethod
    def in_units(numbers):
        """The user's number for offset + scale * cell: by default the same number."""
        return numbers

    @staticmethod
    def spread_in_units(numbers, deviations):
        """Standard deviations in the user's units, from those of offset + scale * cell."""
        return deviations

    def excess_law(self, Py_ssize_t f):
        """The law of a cell's surprisal above its value at the predictive mean, where it is least.

        (a, b, h) if it is -h log B, B ~ Beta(a, b), in every slot: numbers or arrays (n_slots,).
        A row family is given the number of observed cells. None: unknown; callers sample it."""
        return None

    def tail_exponent(self, Py_ssize_t f):
        """h, if a cell's surprisal at the distance delta from its centre is h log(1 + c delta^2)
        above the least, in every slot: a number or an array (n_slots,); None if it is not.

        A row family is given the number of observed cells."""
        law = self.excess_law(f)
        return None if law is None else law[2]

    def add_surprisals(self, Table table, out):
        """Add to `out` by how much more surprising a column family's cells are where tails show the
        distance (predictive/_distances.py): nothing, unless a family overrides this.

        Parameters
        ----------
        table : Table
        out : ndarray of shape (table.n_rows, n) and type float64, written
            n at most n_slots.
        """

    # ---- shared ---------------------------------------------------------------------------------

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
