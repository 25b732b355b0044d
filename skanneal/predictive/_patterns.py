"""Which cells rows have."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def patterns(table):
    """Which of the columns each row observes: the distinct patterns, and each row's.

    Returns
    -------
    observed : bool array of shape (n_patterns, table.n_columns)
    pattern : int array of shape (n_rows,)
    """
    gappy = [j for j in range(table.n_columns) if table.has_missing(j)]
    if not gappy:
        return np.ones((1, table.n_columns), bool), np.zeros(table.n_rows, dtype=np.int64)
    masks, pattern = distinct(np.column_stack([~table.missing(j) for j in gappy]))
    observed = np.ones((len(masks), table.n_columns), dtype=bool)
    observed[:, gappy] = masks
    return observed, pattern


def distinct(masks):
    """The distinct rows of a bool array, and which of them each row is."""
    packed = np.ascontiguousarray(np.packbits(masks, axis=1))
    keys = packed.view(f"V{packed.shape[1]}")[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return masks[first], which
