"""What row families of numbers share: rows of which any cell may be missing.

In every slot the predictive of a whole row is a function of q = |W (x - centre)|^2, and so is that
of any of its cells, and of missing cells given the observed ones, with q's least value over the
missing ones and the part R of the missing columns of W (_gaps.h): the observed cells' density has
|W| / |R| in the place of |W|, and the missing cells are about centre - R^-1 c with the squared
scale s R^-1 R^-T. A family says what W, the centre and the law are.
"""

from libc.math cimport INFINITY, log, sqrt
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._random cimport bitgen, standard_gamma, standard_normal
from ._base cimport FamilyBlock
from ._table cimport Table

cdef extern from "_gaps.h" nogil:
    int64_t read_cells(const char *, const int32_t *, int64_t, double *, int64_t *)
    double project_out(double *, int64_t, int64_t, double *, double *, double *)

cdef double NAN = float("nan")
cdef double FARTHEST = 1e15     # fill, in cell units: its square leaves room


cdef class NumberRows(FamilyBlock):
    """Rows of numbers, with gaps."""

    joint = True
    cells = "number"
    jittered = True

    def _set_up(self, table, hyper):
        self.d = len(self.columns)
        self.gap = np.zeros(self.d, np.int64)
        self.number, self.rest, self.along, self.z = np.zeros((4, self.d))
        self.spanned, self.r = np.zeros((2, self.d, self.d))

    def bind(self, Table table):
        FamilyBlock.bind(self, table)
        self.may_miss, self.known = bool(table.gaps[self.columns].any()), NULL

    cdef Py_ssize_t read(self, const char *row, const int32_t *position) noexcept nogil:
        """Take in a row of any table; how many of its cells are missing."""
        self.known = NULL
        self.n_gaps = read_cells(row, position, self.d, &self.number[0], &self.gap[0])
        return self.n_gaps

    cdef bint misses(self, const char *row) noexcept nogil:
        """Whether cells of a row of the block's own table are missing, which never changes: a row
        step asks up to three times."""
        if not self.may_miss:
            return False
        if row != self.known:
            self.read(row, &self.offset[0])
            self.known = row
        return self.n_gaps > 0

    cdef float proposal_without(self, const char *observed, const char *row,
                                Py_ssize_t k) noexcept nogil:
        if not self.misses(observed):
            return self.score_without(row, k)
        return self.observed_without(row, k) if self.n_gaps < self.d else 0.0

    cdef double condition(self, Py_ssize_t k) noexcept nogil:
        """The least q of the row that was read; R and c of slot k."""
        cdef Py_ssize_t j
        for j in range(self.d):
            self.z[j] = self.number[j] - self.location(k, j)
        for j in range(self.n_gaps):
            self.z[self.gap[j]] = 0.0
            self.whitening(k, self.gap[j], &self.spanned[j, 0])
        self.whiten(k, &self.z[0], &self.rest[0])
        return project_out(&self.spanned[0, 0], self.n_gaps, self.d, &self.rest[0],
                           &self.r[0, 0], &self.along[0])

    cdef double condition_fill(self, Py_ssize_t k) noexcept nogil:
        """The same for a fill; where its law does not depend on q, q may be left out."""
        return self.condition(k)

    cdef void draw(self, Py_ssize_t k, double q, bitgen_t *rng) noexcept nogil:
        """The missing cells less their centres into z, in the order of the gaps: drawn given q and
        the observed cells, or without a generator where they are most probable."""
        cdef Py_ssize_t l, later, n = self.d - self.n_gaps
        cdef double spread = 0.0, value, degrees = self.degrees(k, n)
        if rng != NULL:
            spread = sqrt(self.square(k, n, q))
            if degrees < INFINITY:
                spread *= sqrt(0.5 * degrees / standard_gamma(rng, 0.5 * degrees))
        for l in range(self.n_gaps - 1, -1, -1):
            value = -self.along[l]
            if rng != NULL:
                value += spread * standard_normal(rng)
            for later in range(l + 1, self.n_gaps):
                value -= self.r[l, later] * self.z[later]
            self.z[l] = value / self.r[l, l]

    cdef void fill(self, const char *row, Py_ssize_t k, char *filled,
                   bitgen_t *rng) noexcept nogil:
        cdef Py_ssize_t l, j
        cdef double cell
        if not self.misses(row):
            return
        self.draw(k, self.condition_fill(k), rng)
        for l in range(self.n_gaps):
            j = self.gap[l]
            cell = max(-FARTHEST, min(FARTHEST, self.location(k, j) + self.z[l]))
            (<float *> (filled + self.offset[j]))[0] = <float> cell

    # ---- queries --------------------------------------------------------------------------------

    cdef double log_observed(self, Py_ssize_t k) noexcept nogil:
        """Log density of the observed cells of the row that was read, in cell units."""
        cdef Py_ssize_t l, n = self.d - self.n_gaps
        cdef double q, out = self.log_constant(k, n)
        if n == 0:
            return 0.0
        q = self.condition(k)
        for l in range(self.n_gaps):
            out -= log(self.r[l, l])
        return out + self.log_kernel(k, n, q)

    cdef void add_observed(self, const double *log_scale, double sign,
                           double[::1] out) noexcept nogil:
        """Add `sign` times the log density of the observed cells, in the user's units, in each
        slot of `out`."""
        cdef Py_ssize_t j, k
        cdef double shift = 0.0
        for j in range(self.d):
            if self.number[j] == self.number[j]:
                shift += log_scale[j]
        for k in range(out.shape[0]):
            out[k] += sign * (self.log_observed(k) - shift)

    def log_centres(self, masks, slots):
        """Log density, in the user's units, of some cells at their centres: (n_masks, n).

        Parameters
        ----------
        masks : bool array of shape (n_masks, n_columns)
            Which cells there are.
        slots : int array of shape (n,)
        """
        cdef const unsigned char[:, ::1] there = np.ascontiguousarray(masks).view(np.uint8)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef double[::1] log_scale = np.log(self.table.scales[self.columns])
        cdef double[:, ::1] out = np.empty((len(masks), len(slots)))
        cdef Py_ssize_t m, i, j
        cdef double shift
        self.known = NULL
        with nogil:
            for m in range(there.shape[0]):
                shift, self.n_gaps = 0.0, 0
                for j in range(self.d - 1, -1, -1):
                    if there[m, j]:
                        shift += log_scale[j]
                    else:
                        self.gap[self.n_gaps] = j
                        self.n_gaps += 1
                for i in range(slot.shape[0]):
                    for j in range(self.d):
                        self.number[j] = self.location(slot[i], j) if there[m, j] else NAN
                    out[m, i] = self.log_observed(slot[i]) - shift
        return np.asarray(out)

    def _score_gaps(self, Table table, scores, Py_ssize_t first, i=None, bint whole=False):
        """Add what `score_rows`, or of the i-th cell `score_feature`, says of rows that have some
        of their cells (`whole`: or all), to scores: (rows, n), the first one's number `first`."""
        cdef double[:, ::1] out = scores
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        cdef double[::1] log_scale = np.log(table.scales[self.columns])
        cdef Py_ssize_t row, n_gaps, j = -1 if i is None else i
        for row in range(out.shape[0]):
            n_gaps = self.read(table.observed(first + row), &position[0])
            if (n_gaps == 0 and not whole) or n_gaps == self.d:
                continue
            if j >= 0:
                if self.number[j] != self.number[j]:
                    continue
            self.add_observed(&log_scale[0], 1.0, out[row])
            if j >= 0:   # given the others: less their density
                self.gap[n_gaps] = j
                self.n_gaps, self.number[j] = n_gaps + 1, np.nan
                self.add_observed(&log_scale[0], -1.0, out[row])

    def conditionals(self, Py_ssize_t i, Table table, rows, Py_ssize_t n_slots):
        """The law of the i-th column's missing cell given the row's observed ones, in each slot.

        Parameters
        ----------
        i : int
        table : Table
        rows : int array of shape (n_rows,)
            Rows of the table that lack the cell.
        n_slots : int

        Returns
        -------
        centres, squares, degrees : float64 arrays of shape (n_rows, n_slots)
            Student's t: centre and squared scale, in cell units, and degrees of freedom, which are
            infinite where it is normal.
        """
        cdef const int64_t[::1] at = np.ascontiguousarray(rows, dtype=np.int64)
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        cdef double[:, ::1] centre, square, degrees
        cdef Py_ssize_t row, k, l, n
        cdef double q
        out = np.empty((3, len(at), n_slots))
        centre, square, degrees = out
        with nogil:
            for row in range(at.shape[0]):
                n = self.d - self.read(table.observed(at[row]), &position[0])
                for l in range(self.n_gaps - 1):   # the last in the order has R's last entry alone
                    if self.gap[l] == i:
                        self.gap[l], self.gap[self.n_gaps - 1] = self.gap[self.n_gaps - 1], i
                l = self.n_gaps - 1
                for k in range(n_slots):
                    q = self.condition(k)
                    centre[row, k] = self.location(k, i) - self.along[l] / self.r[l, l]
                    square[row, k] = self.square(k, n, q) / (self.r[l, l] * self.r[l, l])
                    degrees[row, k] = self.degrees(k, n)
        return tuple(out)

    def sample_gaps(self, Table table, rows, slots, bit_generator):
        """Rows of a table with their missing cells drawn given the others: (n, n_columns) float64,
        in cell units.

        Parameters
        ----------
        table : Table
        rows : int array of shape (n,)
        slots : int array of shape (n,)
            The component of each.
        bit_generator : numpy.random.BitGenerator
        """
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] at = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        cdef double[:, ::1] out = np.empty((len(at), self.d))
        cdef Py_ssize_t i, j, l, k
        with nogil:
            for i in range(at.shape[0]):
                self.read(table.observed(at[i]), &position[0])
                k = slot[i]
                self.draw(k, self.condition(k), rng)
                for j in range(self.d):
                    out[i, j] = self.number[j]
                for l in range(self.n_gaps):
                    out[i, self.gap[l]] = self.location(k, self.gap[l]) + self.z[l]
        return np.asarray(out)

    # ---- what a family writes -------------------------------------------------------------------

    cdef float observed_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        """Log predictive of the observed cells of a row with gaps, which was read and which slot k
        holds, in slot k without it."""
        return 0.0

    cdef double location(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        """Centre of the j-th cell in slot k."""
        return 0.0

    cdef void whiten(self, Py_ssize_t k, double *deviation, double *out) noexcept nogil:
        """out = W deviation."""

    cdef void whitening(self, Py_ssize_t k, Py_ssize_t j, double *column) noexcept nogil:
        """The j-th column of W."""

    cdef double log_constant(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        """Log density of n cells, if W were theirs, less what depends on q."""
        return 0.0

    cdef double log_kernel(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        """What depends on q in the log density of n cells."""
        return 0.0

    cdef double degrees(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        """Degrees of freedom of the missing cells given n observed ones."""
        return INFINITY

    cdef double square(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        """s, by which R^-1 R^-T is their squared scale."""
        return 1.0
