"""The contract of a family: what it says of itself, and what it writes.

A mixture dispatches once per (row, block), never per cell. Each family keeps statistics in float64
or integers, and beside them a float32 score cache of every slot that is a pure function of the
slot's statistics and of the hyperparameters. Slots come in tiles of 16. What happens to slots and
hyperparameters as a whole is written once for all families, in `_base.pyx`.

Features are held in an internal order, dense before gappy and then by the width of their codes;
`columns` says which column of the table each one is. Outside (to_arrays, hyperparameters), features
stand in the table's order of columns.

A row family (`joint`) describes whole rows of its columns: the row is its one feature, with all
columns in the table's order.
"""

from numpy.random cimport bitgen_t

from ._slots cimport TILE
from ._table cimport Table


cdef class Family:
    """What a family writes; `FamilyBlock` adds what all families inherit."""

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

    cdef void clear(self, Py_ssize_t k) noexcept nogil:
        """Empty slot k: inherited, as `copy` and `merge` are. A family writes it that has more than
        the arrays of `_layout`."""

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

    def units_of(self, f):
        """What has `in_units` and `spread_in_units` for feature f, or a row family's f-th
        column."""
        return self

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
