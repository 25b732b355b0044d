"""Encoded rows: every column in its smallest type, a row in one or two cache lines.

A row step reads one row of all columns, so rows are contiguous: float32 numbers first, then 4-, 2-
and 1-byte codes. Rows live in chunks of 65,536, so appending never moves what is there.

    number   float32((value - offset) / scale), missing NaN
    code     0 .. n_levels - 1; n_levels missing; n_levels + 1 a value that fit did not see
    count    uint32, missing 2^32 - 1

A row of counts over many columns, most of them 0, is kept as its *entries*, pairs (column, count)
of the counts above 0. All rows' entries stand one after another in one array; in the row there is
one cell of the type "entries" that says where, in the first of the columns. The others have the
type "none" and no bytes, so that the table keeps one column for each of the user's. `append` takes,
and `column` returns, rows of counts as a csr_array of shape (n_rows, number of these columns), in
canonical format and without zeros. A row without entries is missing.

Missing numbers may be part of a chain's state: `with_fills` makes the chain's own table, in which
the rows that lack such cells have copies with *fills*. Only these rows are copied. Where rows have
*weights*, which are part of the state too, all rows are copied, and a weight stands behind each.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import copyreg

import numpy as np
from scipy.sparse import csr_array

from .._native._math cimport fill_log_factorials, log_factorial, log_gamma
from .._native._random cimport bitgen, standard_normal

from ._scaling import FAR

ITEMSIZE = {"f4": 4, "u4": 4, "u2": 2, "u1": 1, "entries": sizeof(Counts), "none": 0}
MISSING_COUNT = 2**32 - 1
cdef uint32_t ABSENT = MISSING_COUNT
cdef double FAR_AWAY = FAR


cdef bint is_far(double number, double place) noexcept nogil:
    """Whether a number that is not missing is far from a place, both in cell units."""
    return fabs(number - place) > FAR_AWAY


cdef inline double number(const char *cell) noexcept nogil:
    """A number as it is stored, 0 if missing."""
    cdef float x = (<const float *> cell)[0]
    return x if x == x else 0.0


cdef inline uint32_t code(const char *cell, Py_ssize_t width) noexcept nogil:
    """A code or count of 1, 2 or 4 bytes."""
    if width == 1:
        return (<const uint8_t *> cell)[0]
    return (<const uint16_t *> cell)[0] if width == 2 else (<const uint32_t *> cell)[0]


fill_log_factorials()


cdef class Table:
    """Encoded rows in chunks.

    Parameters
    ----------
    dtypes : sequence of {"f4", "u1", "u2", "u4", "entries", "none"}
        Storage type of each column; "entries" at most once.
    n_levels : array-like of int, shape (n_columns,)
        Number of levels of the columns of codes; 0 for numbers and counts.
    offsets, scales : array-like of float, shape (n_columns,), optional
        A number is offset + scale * cell. Zeros and ones by default.
    atoms : sequence of float32 arrays, optional
        For each column of numbers the cells that are atoms, ascending. By default none.
    logarithms : array-like of bool, shape (n_columns,), optional
        The columns of which offset + scale * cell is the number's logarithm. By default none.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.families import Table
    >>> table = Table(["f4", "u1"], [0, 3])
    >>> table.append([np.array([0.5, np.nan]), np.array([2, 3])])
    >>> table.n_rows, table.has_missing(0), table.has_missing(1)
    (2, True, True)
    """

    def __cinit__(self, *args, **kwargs):
        self._pointers = NULL
        self._n_pointers = 0
        self._place = NULL
        self.weighted = self.shares_fills = False

    def __init__(self, dtypes, n_levels, offsets=None, scales=None, atoms=None,
                 logarithms=None):
        self.dtypes = tuple(dtypes)
        self.with_gaps = np.empty(0, np.int64)
        self.n_columns = len(self.dtypes)
        self.n_levels = np.asarray(n_levels, dtype=np.int64)
        self.offsets = np.zeros(self.n_columns) if offsets is None else np.array(offsets, float)
        self.scales = np.ones(self.n_columns) if scales is None else np.array(scales, float)
        none = [np.empty(0, np.float32)] * self.n_columns
        self.atoms = none if atoms is None else list(atoms)
        self.logarithms = np.zeros(self.n_columns, dtype=bool)
        if logarithms is not None:
            self.logarithms[:] = logarithms
        sizes = np.array([ITEMSIZE[dtype] for dtype in self.dtypes], dtype=np.int64)
        # stable, so that columns of one type keep their order
        order = np.argsort([dtype != "f4" for dtype in self.dtypes] - sizes * 2, kind="stable")
        positions = np.zeros(self.n_columns, dtype=np.int32)
        positions[order] = np.cumsum(sizes[order]) - sizes[order]
        self.positions, self.widths = positions, sizes
        # rows follow each other without gaps, and those of counts begin with numbers of 8 bytes
        unit = 8 if "entries" in self.dtypes else 4
        self.row_bytes = max(4, -unit * (-int(sizes.sum()) // unit))
        self.gaps = np.zeros(self.n_columns, dtype=bool)
        self._stored = [j for j, dtype in enumerate(self.dtypes) if dtype != "none"]
        self._counts = self.dtypes.index("entries") if "entries" in self.dtypes else -1
        self._chunks, self._outgrown = [], []
        self._set_entries(np.empty((0, 2), np.uint32), 0)
        self.shared = {}
        self.n_rows = self.far = 0
        self._n_numbers = self.dtypes.count("f4")
        self._numbers = positions[self.dtypes.index("f4")] if self._n_numbers else 0

    def __dealloc__(self):
        free(self._pointers)

    def append(self, columns):
        """Add rows, given column by column.

        Parameters
        ----------
        columns : sequence of n_columns arrays, each of shape (n_new,)
            Already encoded (see the module); columns of type "none" are ignored.
        """
        cdef unsigned char[:, ::1] view
        if len(columns) != self.n_columns:
            raise ValueError(f"expected {self.n_columns} columns, got {len(columns)}")
        if self._place != NULL:
            raise ValueError("a table with fills takes no further rows")
        columns = {
            j: self._append_entries(columns[j]) if j == self._counts else np.asarray(columns[j])
            for j in self._stored
        }
        n_new = len(columns[self._stored[0]]) if columns else 0
        if any(column.shape != (n_new,) for column in columns.values()):
            raise ValueError("columns must be one-dimensional and of one length")
        chunk_rows = 1 << CHUNK_BITS
        done = 0
        while done < n_new:
            start = self.n_rows & (chunk_rows - 1)
            if start == 0:
                chunk = np.empty((min(chunk_rows, n_new - done), self.row_bytes), dtype=np.uint8)
                chunk[:] = 0
                self._add_chunk(chunk)
            elif len(self._chunks[self._n_pointers - 1]) < chunk_rows:
                # the last chunk is only as large as it had to be: give it its full size
                chunk = np.zeros((chunk_rows, self.row_bytes), dtype=np.uint8)
                chunk[:start] = self._chunks[self._n_pointers - 1][:start]
                # kept alive: blocks know the row they saw last by its address
                self._outgrown.append(self._chunks[self._n_pointers - 1])
                self._chunks[self._n_pointers - 1] = chunk
                view = chunk
                self._pointers[self._n_pointers - 1] = <char *> &view[0, 0]
            chunk = self._chunks[self._n_pointers - 1]
            take = min(len(chunk) - start, n_new - done)
            for j, column in columns.items():
                size, position = ITEMSIZE[self.dtypes[j]], self.positions[j]
                cells = column[done:done + take]
                if j != self._counts:
                    cells = cells.astype("<" + self.dtypes[j], copy=False)
                chunk[start:start + take, position:position + size] = (
                    np.ascontiguousarray(cells).view(np.uint8).reshape(take, size)
                )
            self.n_rows += take
            done += take
        for j, column in columns.items():
            self.gaps[j] |= bool(self._is_missing(j, column).any())
            if self.dtypes[j] == "f4":
                self.far |= bool((np.abs(column) > FAR).any())

    cdef bint has_far(self, const char *row) noexcept nogil:
        """Whether a number of the row is far from its column's offset."""
        cdef const float *numbers = <const float *> (row + self._numbers)
        cdef Py_ssize_t j
        for j in range(self._n_numbers):
            if is_far(numbers[j], 0.0):
                return True
        return False

    def _append_entries(self, counts):
        """Store the entries of rows of counts; what their cells are: structures, see Counts."""
        cdef const int64_t[::1] indptr
        cdef const uint32_t[:, ::1] entry
        cdef Counts[::1] cell
        cdef Py_ssize_t i, e, start = self._n_entries
        cdef uint32_t x
        cdef double log_factorials
        stop = start + counts.nnz
        if stop > len(self._entries):   # twice as many from the second time on
            room = np.empty((max(stop, 2 * start), 2), np.uint32)
            room[:start] = self._entries[:start]
        else:
            room = self._entries
        room[start:stop, 0], room[start:stop, 1] = counts.indices, counts.data
        self._set_entries(room, stop)
        cells = np.zeros(counts.shape[0], CELL)
        indptr, entry, cell = counts.indptr.astype(np.int64), room, cells
        for i in range(len(cells)):
            cell[i].start, cell[i].n = start + indptr[i], indptr[i + 1] - indptr[i]
            log_factorials = 0.0
            for e in range(cell[i].start, cell[i].start + cell[i].n):
                x = entry[e, 1]
                cell[i].total += x
                log_factorials += log_factorial(x)
            cell[i].log_coefficient = log_gamma(cell[i].total + 1.0) - log_factorials
        return cells

    def _set_entries(self, entries, n_entries):
        """Take over the store of entries."""
        cdef const uint32_t[:, ::1] view = entries
        self._entries, self._n_entries = entries, n_entries
        self.entries = &view[0, 0] if len(entries) else NULL

    def _add_chunk(self, chunk):
        cdef const unsigned char[:, ::1] view = chunk
        cdef char **grown = <char **> realloc(
            self._pointers, (self._n_pointers + 1) * sizeof(char *)
        )
        if grown == NULL:
            raise MemoryError
        self._pointers = grown
        self._pointers[self._n_pointers] = <char *> &view[0, 0]
        self._n_pointers += 1
        self._chunks.append(chunk)

    def _is_missing(self, j, cells):
        if j == self._counts:
            return cells["n"] == 0
        if self.dtypes[j] == "f4":
            return np.isnan(cells)
        return cells == (self.n_levels[j] if self.n_levels[j] > 0 else MISSING_COUNT)

    def has_missing(self, Py_ssize_t j):
        """Whether column j has a missing cell."""
        return bool(self.gaps[j])

    def column(self, Py_ssize_t j, start=0, stop=None):
        """A copy of column j's cells as stored, for all rows or a range, shape (n_rows,). The first
        column of rows of counts gives all of these as a csr_array; columns without cells None."""
        if self.dtypes[j] == "none":
            return None
        cells = self._cells(j, start, stop)
        if j != self._counts:
            return cells
        entries = np.array(self._entries[:self._n_entries].T)
        shape = self.n_rows, 1 + self.dtypes.count("none")
        return csr_array((entries[1], entries[0], np.r_[0, np.cumsum(cells["n"])]), shape)

    def totals(self):
        """Sum of each row of counts, int64 of shape (n_rows,)."""
        return self._cells(self._counts)["total"].copy()

    def elsewhere(self, Py_ssize_t j):
        """Column j's cells without its atoms."""
        cells = self.column(j)
        return cells[~np.isin(cells, self.atoms[j])] if len(self.atoms[j]) else cells

    def _cells(self, Py_ssize_t j, start=0, stop=None):
        stop = self.n_rows if stop is None else stop
        first = start >> CHUNK_BITS
        dtype = CELL if j == self._counts else np.dtype("<" + self.dtypes[j])
        size, position = dtype.itemsize, int(self.positions[j])
        parts = [
            np.ascontiguousarray(chunk[:, position:position + size]).view(dtype).ravel()
            for chunk in self._chunks[first:((stop - 1) >> CHUNK_BITS) + 1]
        ]
        cells = np.concatenate(parts) if parts else np.empty(0, dtype)
        return cells[start - (first << CHUNK_BITS):stop - (first << CHUNK_BITS)]

    def missing(self, Py_ssize_t j):
        """Mask of column j's missing cells, shape (n_rows,)."""
        j = self._counts if self.dtypes[j] == "none" else j
        return self._is_missing(j, self._cells(j))

    def take(self, rows, bint filled=False):
        """A table of some rows, given by index, as the user gave them or with their fills as cells;
        time and memory depend on these rows alone."""
        cdef Table new = self.empty_like()
        cdef const int64_t[::1] row
        cdef unsigned char[:, ::1] view
        cdef uint32_t[:, ::1] entry
        cdef Counts *cell
        cdef Py_ssize_t n_new, start, n, i, n_entries = 0
        cdef Py_ssize_t position = self.positions[self._counts] if self._counts >= 0 else 0
        rows = np.asarray(rows)
        if rows.dtype.kind == "b":
            rows = np.flatnonzero(rows)
        rows = np.where(rows < 0, rows + self.n_rows, rows).astype(np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < self.n_rows:
            raise IndexError(f"rows {rows.min()} to {rows.max()} of a table of {self.n_rows}")
        row, n_new = rows, len(rows)
        for start in range(0, n_new, 1 << CHUNK_BITS):
            n = min(1 << CHUNK_BITS, n_new - start)
            chunk = np.empty((n, self.row_bytes), np.uint8)
            view = chunk
            with nogil:
                for i in range(n):
                    memcpy(&view[i, 0], self.row(row[start + i]) if filled
                           else self.observed(row[start + i]), self.row_bytes)
            new._add_chunk(chunk)
        new.n_rows, new.far = n_new, self.far
        if self._counts >= 0:
            for i in range(n_new):
                n_entries += (<const Counts *> (new.row(i) + position)).n
            entries = np.empty((n_entries, 2), np.uint32)
            entry, n_entries = entries, 0
            with nogil:
                for i in range(n_new):
                    cell = <Counts *> (<char *> new.row(i) + position)
                    if cell.n > 0:
                        memcpy(&entry[n_entries, 0], self.entries + 2 * cell.start,
                               2 * sizeof(uint32_t) * cell.n)
                    cell.start = n_entries
                    n_entries += cell.n
            new._set_entries(entries, n_entries)
        for j in np.flatnonzero(self.gaps):
            new.gaps[j] = self._is_missing(j, new._cells(j)).any()
        return new

    def with_fills(self, columns, weighted=False, shared=False):
        """This table for one chain, in which missing numbers of some columns have values.

        Parameters
        ----------
        columns : sequence of int
            Columns of numbers.
        weighted : bool, default=False
            Whether each row has a weight, which begins at 1.
        shared : bool, default=False
            Whether mixtures made with this table shall have these fills, not each its own.

        Returns
        -------
        table : Table
            It shares all rows except those with such gaps, which it copies: `row` gives the copy,
            `observed` the row without fills. Fills begin at 0, the offset. The result is this table
            itself if none of these cells is missing and rows have no weights.
        """
        cdef Table new
        cdef const int32_t[::1] place
        cdef unsigned char[:, ::1] view
        cdef Py_ssize_t i, n_bytes
        columns = sorted(int(j) for j in columns if self.gaps[j])
        if not (columns or weighted) or not self.n_rows:
            return self
        unit = 8 if self._counts >= 0 else 4
        n_bytes = self.row_bytes + (unit if weighted else 0)
        key = "fills", self.n_rows, weighted, *columns
        if key not in self.shared:
            missing = np.zeros((self.n_rows, len(columns)), dtype=bool)
            for i, j in enumerate(columns):
                missing[:, i] = self.missing(j)
            rows = np.arange(self.n_rows) if weighted else np.flatnonzero(missing.any(axis=1))
            place = places = np.full(self.n_rows, -1, np.int32)
            places[rows] = np.arange(len(rows))
            at, of = np.nonzero(missing[rows])
            cells = at * (n_bytes // 4) + self.positions[columns][of] // 4
            weights = np.arange(len(rows) if weighted else 0) * (n_bytes // 4) + self.row_bytes // 4
            self.shared[key] = places, cells, weights, rows[np.unique(at)]
        new = self.empty_like()
        for chunk in self._chunks:
            new._add_chunk(chunk)
        new._set_entries(self._entries, self._n_entries)
        new.gaps, new.far, new.n_rows, new.shared = self.gaps, self.far, self.n_rows, self.shared
        place, cells, weights, new.with_gaps = self.shared[key]
        own = np.empty((int(np.max(place, initial=-1)) + 1, n_bytes), np.uint8)
        view = own
        with nogil:
            for i in range(self.n_rows):
                if place[i] >= 0:
                    memcpy(&view[place[i], 0], self.observed(i), self.row_bytes)
        new._place, new._filled = &place[0], <char *> &view[0, 0]
        new._filled_bytes, new._filled_end = n_bytes, new._filled + view.shape[0] * n_bytes
        new.weighted, new.shares_fills = weighted, shared
        new._fills = np.asarray(place), own, np.concatenate([cells, weights])
        new.set_fills(np.repeat([0.0, 1.0], [len(cells), len(weights)]))
        return new

    def fills(self):
        """A float32 copy of the fills, row by row, followed by the rows' weights if they have any;
        None if the table has neither."""
        if self._place == NULL:
            return None
        _, own, cells = self._fills
        return own.view("<f4").ravel()[cells]

    def set_fills(self, values):
        """Replace all fills by such an array; no statistics may have been computed with the old."""
        _, own, cells = self._fills
        own.view("<f4").reshape(-1)[cells] = values
        self.far |= bool((np.abs(values) > FAR).any())

    def bytes(self):
        """The encoded rows and their entries as they are in memory, a list of arrays."""
        filled = [
            chunk[:self.n_rows - (i << CHUNK_BITS)] for i, chunk in enumerate(self._chunks)
        ]
        return [*filled, self._entries[:self._n_entries]]

    def project(self, rows, columns, bit_generator):
        """Project rows on a random direction: numbers standardised, as they are stored; levels as
        indicators; counts as square roots; rows of counts as square roots of the counts' shares;
        missing cells as 0.

        Parameters
        ----------
        rows : int64 array of shape (n,)
        columns : sequence of int
        bit_generator : numpy.random.BitGenerator
            For the direction, which is standard normal in every coordinate.

        Returns
        -------
        ndarray of shape (n,)
        """
        cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
        cdef double[::1] out = np.zeros(len(row)), direction
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef Py_ssize_t i, e, position, width, n_levels
        cdef const char *cell
        cdef const Counts *counts
        cdef bint is_number
        for j in columns:
            if self.dtypes[j] == "none":
                continue
            if j == self._counts:
                direction = np.zeros(1 + self.dtypes.count("none"))
                for i in range(direction.shape[0]):
                    direction[i] = standard_normal(rng)
                position = self.positions[j]
                with nogil:
                    for i in range(row.shape[0]):
                        counts = <const Counts *> (self.row(row[i]) + position)
                        for e in range(counts.start, counts.start + counts.n):
                            out[i] += direction[self.entries[2 * e]] * sqrt(
                                <double> self.entries[2 * e + 1] / counts.total
                            )
                continue
            position, width, n_levels = self.positions[j], self.widths[j], self.n_levels[j]
            is_number = self.dtypes[j] == "f4"
            direction = np.zeros(n_levels + 2)     # missing and unseen levels stay 0
            for i in range(max(1, n_levels)):
                direction[i] = standard_normal(rng)
            with nogil:
                for i in range(row.shape[0]):
                    cell = self.row(row[i]) + position
                    if is_number:
                        out[i] += direction[0] * number(cell)
                    elif n_levels > 0:
                        out[i] += direction[code(cell, width)]
                    elif code(cell, 4) != ABSENT:
                        out[i] += direction[0] * sqrt(<double> code(cell, 4))
        return np.asarray(out)

    def empty_like(self):
        """A table with the same columns and no rows."""
        return Table(self.dtypes, self.n_levels, self.offsets, self.scales, self.atoms,
                     self.logarithms)

    def __reduce__(self):
        # without a function of our own, since skops restores classes but calls no functions
        return copyreg.__newobj__, (Table,), self.__getstate__()

    def __getstate__(self):
        # chunks are kept as arrays: joblib maps the large ones into its workers, read-only
        return (self.dtypes, self.n_levels, self.offsets, self.scales, self.atoms,
                self.logarithms, self.gaps, self.far, self.n_rows, self._chunks,
                self._entries[:self._n_entries])

    def __setstate__(self, state):
        *schema, gaps, far, n_rows, chunks, entries = state
        self.__init__(*schema)
        for chunk in chunks:
            self._add_chunk(chunk)
        self._set_entries(entries, len(entries))
        self.gaps, self.far, self.n_rows = gaps, far, n_rows

    @property
    def nbytes(self):
        """Bytes of the encoded rows."""
        return sum(chunk.nbytes for chunk in self._chunks) + self._entries.nbytes


CELL = np.dtype([("start", "i8"), ("n", "i8"), ("total", "i8"), ("log_coefficient", "f8")])
