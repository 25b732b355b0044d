"""What the columns of a Table hold."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..families import MISSING_COUNT


class Schema(NamedTuple):
    """The arguments of a Table, one entry per column in each.

    Attributes
    ----------
    dtypes : list of str
        What a cell is stored as.
    n_levels : int64 array
        Number of levels; 0 for a column of numbers or counts.
    offsets, scales : float64 array
        A number in the user's units is its cell times the scale, plus the offset.
    atoms : list of float32 array
        The cells of each column that are atoms; most often none.
    logarithms : bool array
        The columns of which that number is the logarithm of the user's.
    """

    dtypes: list
    n_levels: np.ndarray
    offsets: np.ndarray
    scales: np.ndarray
    atoms: list
    logarithms: np.ndarray

    @classmethod
    def of(cls, codecs):
        """The schema of the columns that these codecs encode."""
        return cls(
            [codec.dtype for codec in codecs],
            np.array([codec.n_levels for codec in codecs], dtype=np.int64),
            np.array([codec.offset for codec in codecs], dtype=np.float64),
            np.array([codec.scale for codec in codecs], dtype=np.float64),
            [getattr(codec, "atom_cells", np.empty(0, np.float32)) for codec in codecs],
            np.array([getattr(codec, "of_logarithms", False) for codec in codecs], dtype=bool),
        )

    @classmethod
    def of_table(cls, table):
        """The schema of a Table."""
        return cls(*(getattr(table, name) for name in cls._fields))

    def missing_cells(self, n_rows):
        """Columns of missing cells, as a Table takes them: a list of ndarray of shape (n_rows,)."""
        return [self._missing_column(j, n_rows) for j in range(len(self.dtypes))]

    def _missing_column(self, j, n_rows):
        dtype = self.dtypes[j]
        if dtype == "none":
            return None
        if dtype == "entries":
            return csr_array((n_rows, 1 + self.dtypes.count("none")), dtype=np.uint32)
        missing = np.nan if dtype == "f4" else self.n_levels[j] or MISSING_COUNT
        return np.full(n_rows, missing, dtype=dtype)
