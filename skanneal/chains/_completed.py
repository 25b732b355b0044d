"""Complete a state in which an interrupt left rows out."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..states import Subsample, state_from_arrays

BLOCK_ROWS = 8192  # scored at a time


def completed(state):
    """Return the state or, if rows are out, a copy of it with all rows in.

    Each row goes to its most probable cluster, with the centres of its missing cells' laws where
    these are part of the state, so that chains that were stopped at different sizes of their
    subsamples compare. A state without rows is returned as it is.
    """
    table = state.table
    if state.subsample.size in (0, table.n_rows):
        return state
    full = state_from_arrays(state.to_arrays(), table, Subsample(table.n_rows), trusted=True)
    for view in full.views:
        labels = view.get_labels().astype(np.int64)
        entered = np.flatnonzero(labels < 0)
        used = np.flatnonzero(view.sizes())
        for start in range(0, table.n_rows, BLOCK_ROWS):
            block = labels[start : start + BLOCK_ROWS]
            out = np.flatnonzero(block < 0)
            if len(out):
                scores, log_weights = view.score_rows(table, start, start + len(block))
                block[out] = used[(scores + log_weights)[out, :-1].argmax(axis=1)]
        view.replace(np.arange(table.n_rows), labels)
        view.draw_fills(entered)
    return full
