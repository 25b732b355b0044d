"""Rows of which no cell that is modelled is observed."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from .._native._warning import warn


def warn_of_empty_rows(missing):
    """Say how many rows have no cell, and what becomes of them.

    Parameters
    ----------
    missing : list of ndarray of bool of shape (n_rows,)
        One for each column that is modelled.
    """
    empty = np.ones(len(missing[0]), dtype=bool)
    for mask in missing:
        empty &= mask
        if not empty.any():
            return
    n = np.count_nonzero(empty)
    first = int(np.argmax(empty))
    rows = f"Row {first} has" if n == 1 else f"{n} rows, row {first} first, have"
    warn(
        f"{rows} no observed cell. The label of such a row follows from the sizes of the clusters "
        f"alone, its fills from the columns, and its scores say nothing of it. Drop such rows "
        f"unless they are to be filled."
    )
