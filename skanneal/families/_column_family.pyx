"""What column families share: a number for each coordinate of a feature's hyperparameters, and the
scores of columns under several partitions."""

import numpy as np

from ._base cimport FamilyBlock


cdef class ColumnFamily(FamilyBlock):
    """A family of single columns, of which each has as many coordinates."""

    partition_sums = None   # a PartitionSums, see _partition_sums.pyx

    def _set_up(self, table, hyper):
        shape = self.n_features, len(self.coordinate_names)
        self.hyper = np.ascontiguousarray(np.array(hyper, dtype=np.float64).reshape(shape).T)

    def get_hyper(self, Py_ssize_t f):
        """Feature f's coordinates, in cell units: shape (n_coordinates,)."""
        return np.asarray(self.hyper)[:, f].copy()

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        self.hyper[h, f] = value

    def _take_hyper(self, ColumnFamily other):
        self.hyper[:] = other.hyper

    def parameters(self):
        """Gaps and hyperparameters, features by column."""
        order = np.argsort(self.columns)
        hyper = zip(self.coordinate_names, np.asarray(self.hyper)[:, order])
        return {"gappy": self.gappy[order], **dict(hyper)}

    @classmethod
    def column_scores(cls, table, columns, hyper, rows, labels, n_slots):
        """Log marginal likelihood of columns under several partitions, in one pass over the rows.

        Parameters
        ----------
        table : Table
            Encoded rows.
        columns : sequence of int
            Columns of this family.
        hyper : sequence of array-like
            Each column's hyperparameters.
        rows : int64 array of shape (n,)
            The rows that are partitioned.
        labels : int32 array of shape (n_partitions, n)
            For each partition, the slot of each row.
        n_slots : sequence of int, shape (n_partitions,)
            Slots of each partition.

        Returns
        -------
        scores : float64 array of shape (n_columns, n_partitions)
            In cell units.
        """
        return cls.partition_sums(table, columns, hyper).scores(rows, labels, n_slots)
