"""Statistics of columns under several partitions, in one pass over the rows and without caches.

Rows are read ROWS at a time, each once for all partitions whose statistics are held together. The
slots of these partitions stand one after another.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint32_t

import numpy as np

from ._table cimport Table

from ._table import MISSING_COUNT

BATCH_BYTES = 1 << 25   # of statistics that are held at a time
cdef uint32_t MISSING = MISSING_COUNT


def partition_batches(n_slots, slot_bytes):
    """(start, stop) ranges of partitions whose statistics are held together."""
    start, held = 0, 0
    for v, n in enumerate(n_slots):
        if held and held + n * slot_bytes > BATCH_BYTES:
            yield start, v
            start, held = v, 0
        held += n * slot_bytes
    yield start, len(n_slots)


cdef class PartitionSums:
    """Some columns' statistics in the slots of partitions. See ColumnFamily.column_scores."""

    def __init__(self, Table table, columns, hyper):
        self.table, self.n_columns = table, len(columns)
        self.position = np.ascontiguousarray(table.positions[columns], np.int32)

    def scores(self, rows, labels, n_slots):
        """Each column's log marginal likelihood under each partition: (n_columns, n_partitions)."""
        cdef const int64_t[::1] row = rows
        cdef const int32_t[:, ::1] label = labels
        cdef int64_t[::1] base
        cdef Py_ssize_t start, stop, begin, n, i, v
        out = np.zeros((self.n_columns, len(n_slots)))
        for start, stop in partition_batches(n_slots, self.slot_bytes()):
            base = np.r_[0, np.cumsum(n_slots[start:stop])]
            self.begin(base[stop - start])
            self.first = start == 0
            with nogil:
                begin = 0
                while begin < row.shape[0]:
                    n = min(ROWS, row.shape[0] - begin)
                    for i in range(n):
                        self.read(self.table.row(row[begin + i]), i)
                    for v in range(start, stop):
                        self.add(&label[v, begin], n, base[v - start])
                    begin += ROWS
            self.finish(base, out[:, start:stop])
        return out

    # ---- what a family writes -------------------------------------------------------------------

    def slot_bytes(self):
        """Bytes of a slot's statistics."""
        raise NotImplementedError

    def begin(self, n_slots):
        """Make empty statistics of so many slots."""
        raise NotImplementedError

    cdef void read(self, const char *row, Py_ssize_t i) noexcept nogil:
        """Keep a row's cells as those of the i-th row read."""

    cdef void add(self, const int32_t *label, Py_ssize_t n, Py_ssize_t base) noexcept nogil:
        """Add the first n rows read to the slots base + label[i]."""

    def finish(self, const int64_t[::1] base, double[:, :] out):
        """Write each column's log marginal likelihood under each partition, whose slots begin at
        base[v], to out[f, v]."""
        raise NotImplementedError


cdef class CellSums(PartitionSums):
    """The number of cells and their sum, of families for which these are enough: float32 cells."""

    def __init__(self, table, columns, hyper):
        PartitionSums.__init__(self, table, columns, hyper)
        self.prior = np.array(hyper, dtype=np.float64)
        self.cell = np.empty((ROWS, self.n_columns))

    def slot_bytes(self):
        return 16 * self.n_columns

    def begin(self, n_slots):
        self.n, self.total = np.zeros((2, n_slots, self.n_columns))

    cdef void read(self, const char *row, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(self.n_columns):
            self.cell[i, f] = (<const float *> (row + self.position[f]))[0]

    cdef void add(self, const int32_t *label, Py_ssize_t n, Py_ssize_t base) noexcept nogil:
        cdef Py_ssize_t i, f, n_columns = self.n_columns
        cdef const double *cell
        cdef double *count
        cdef double *total
        for i in range(n):
            cell = &self.cell[i, 0]
            count, total = &self.n[base + label[i], 0], &self.total[base + label[i], 0]
            for f in range(n_columns):
                if cell[f] == cell[f]:
                    count[f] += 1.0
                    total[f] += cell[f]

    def finish(self, const int64_t[::1] base, double[:, :] out):
        cdef Py_ssize_t f, v, k
        with nogil:
            for f in range(self.n_columns):
                for v in range(base.shape[0] - 1):
                    out[f, v] = self.whole(f)
                    for k in range(base[v], base[v + 1]):
                        if self.n[k, f] > 0.0:
                            out[f, v] += self.marginal(f, self.n[k, f], self.total[k, f])

    cdef double whole(self, Py_ssize_t f) noexcept nogil:
        """What the log marginal likelihood of a column is, but for its slots' shares."""
        return 0.0

    cdef double marginal(self, Py_ssize_t f, double n, double total) noexcept nogil:
        """The share of a slot of n cells and this sum."""
        return 0.0


cdef class CountSums(CellSums):
    """The same of counts."""

    def __init__(self, table, columns, hyper):
        CellSums.__init__(self, table, columns, hyper)
        self.count = np.zeros(self.n_columns, np.uint32)
        self.all = np.zeros((self.n_columns, 4))

    cdef void read(self, const char *row, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t f
        cdef uint32_t x
        for f in range(self.n_columns):
            x = self.count[f] = (<const uint32_t *> (row + self.position[f]))[0]
            self.cell[i, f] = <double> x if x != MISSING else <double> NAN
        if self.first:
            self.note(&self.count[0])

    cdef void note(self, const uint32_t *count) noexcept nogil:
        """Take in a row's counts for `whole`, which is asked after all of them."""
