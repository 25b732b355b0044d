"""The columns of a table, as users name them and as error messages do."""

# SPDX-License-Identifier: BSD-3-Clause

import numbers
from typing import NamedTuple

import numpy as np


class ColumnNames(NamedTuple):
    """The columns of a table by position and, where they have names, by name.

    Attributes
    ----------
    names : list or None
    n_columns : int
    """

    names: list | None
    n_columns: int

    def label(self, j):
        """What error messages call column j."""
        return column_label(self.names, j)

    def positions(self, columns, what):
        """Positions of columns given as names, positions or a boolean mask.

        Parameters
        ----------
        columns : str, int, sequence of these, or sequence of bool
        what : str
            What error messages call the argument.

        Returns
        -------
        positions : list of int
        """
        if isinstance(columns, (str, numbers.Integral)):
            columns = [columns]
        columns = np.asarray(columns, dtype=object).ravel().tolist()
        if columns and all(isinstance(column, (bool, np.bool_)) for column in columns):
            if len(columns) != self.n_columns:
                raise ValueError(
                    f"{what} is a mask of {len(columns)} columns, but there are {self.n_columns}."
                )
            return np.flatnonzero(columns).tolist()
        return [self._position(column, what) for column in columns]

    def _position(self, column, what):
        if self.names is not None and isinstance(column, str) and column in self.names:
            return self.names.index(column)
        if isinstance(column, numbers.Integral) and -self.n_columns <= column < self.n_columns:
            return int(column) % self.n_columns
        raise ValueError(
            f"{what} names the column {column!r}, which is absent (there are {self.n_columns}"
            " columns)."
        )


def column_label(names, j):
    """What error messages call column j of a table with these column names, or None."""
    return f"column {j}" if names is None else f"column {names[j]!r}"
