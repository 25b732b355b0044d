"""Which numbers the families of counts accept, in any container."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ._table import MISSING_COUNT


class CountRange(NamedTuple):
    """The whole numbers from 0 up to, but not including, an end.

    Attributes
    ----------
    end : int
    text : str
        The end as error messages write it.
    """

    end: int
    text: str

    def outside(self, values):
        """Mask of the numbers that are not such counts, including NaN."""
        return ~((values >= 0) & (values < self.end) & (values == np.rint(values)))

    def error(self, where, value):
        """The error for such a number."""
        return ValueError(
            f"{where} must hold non-negative integers below {self.text}, got {float(value):g}."
        )


COUNTS = CountRange(MISSING_COUNT, "2**32 - 1")  # each in a cell of its own
ROW_COUNTS = CountRange(2**31, "2**31")  # in rows of counts


def refuse_empty_rows(counts, name, reader, first=0):
    """Raise for the first row of a csr_array that has no count above 0.

    Parameters
    ----------
    counts : csr_array without explicit zeros
    name, reader : str
        What the error calls the table, and what cannot use such a row.
    first : int, default=0
        What it calls the first of these rows.
    """
    empty = np.diff(counts.indptr) == 0
    if empty.any():
        row = first + int(empty.argmax())
        raise ValueError(
            f"Row {row} of {name} has no counts above 0, which says nothing to {reader}: drop such"
            " rows."
        )
