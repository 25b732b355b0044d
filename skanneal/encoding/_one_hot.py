"""Columns of zeros and ones that were made of one column of levels.

Exactly one of them is 1 in every row, so the model would count one fact as often as there are
columns: they depend on each other, and clusters follow them more than other columns. Only columns
side by side are looked for, as encoders write them. If columns were independent, all n rows would
have one 1 with probability p^n, with p that of one row, from the columns' shares of ones; this is
taken for chance unless it is below exp(-NO_ACCIDENT), as with identifiers.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from .._native._warning import warn
from ._codecs import BooleanCodec
from ._identifiers import NO_ACCIDENT

N_NAMED = 5  # columns of a group that a warning names


def one_hot_groups(codecs, columns):
    """Find the groups.

    Parameters
    ----------
    codecs : list of codecs
    columns : list of (ndarray of shape (n_rows,) or None)
        Encoded cells.

    Returns
    -------
    groups : list of range
        Of positions, two or more in each.
    """
    groups, start = [], 0
    ones = [_ones(codec, cells) for codec, cells in zip(codecs, columns)]
    while start < len(ones):
        stop = _end_of_group(ones, start)
        if stop > start:
            groups.append(range(start, stop))
        start = max(stop, start + 1)
    return groups


def _end_of_group(ones, start):
    """Where the group that begins here ends; `start` if none does."""
    if ones[start] is None:
        return start
    taken = np.zeros(len(ones[start]), dtype=bool)
    for stop in range(start, len(ones)):
        if ones[stop] is None or (taken & ones[stop]).any():
            return start
        taken |= ones[stop]
        if taken.all():
            return stop + 1 if _no_accident(ones[start : stop + 1]) else start
    return start


def _ones(codec, cells):
    """Which rows have a 1; None if the column has gaps, one value or others than 0 and 1."""
    levels = [0, 1] if isinstance(codec, BooleanCodec) else getattr(codec, "levels", None)
    if levels is None or list(levels) != [0, 1] or codec.missing(cells).any():
        return None
    ones = cells == 1
    return ones if 0 < np.count_nonzero(ones) < len(ones) else None


def _no_accident(ones):
    """Whether exactly one 1 in each row is not to be expected of so many rows."""
    shares = np.array([np.mean(column) for column in ones])
    of_row = np.prod(1.0 - shares) * np.sum(shares / (1.0 - shares))
    return -len(ones[0]) * np.log(of_row) > NO_ACCIDENT


def warn_of_one_hot(names, codecs, columns, named):
    """Say which columns count one fact several times, and what to give instead.

    Parameters
    ----------
    names : ColumnNames
    codecs : list of codecs
    columns : list of (ndarray of shape (n_rows,) or None)
    named : list of bool
        Whether the user named the column's family: such a column is in no group.

    Returns
    -------
    hot : set of int
        These columns.
    """
    open_ = [None if given else codec for codec, given in zip(codecs, named)]
    groups = one_hot_groups(open_, columns)
    for group in groups:
        more = len(group) - N_NAMED
        labels = ", ".join(map(names.label, group[:N_NAMED]))
        labels += f" and {more} more" if more > 0 else ""
        warn(
            f"Exactly one is 1 in every row: {labels}. They seem to have been made of one column "
            f"of levels, and count it {len(group)} times, in clusters as in dependence: give that "
            f"column instead (pandas: from_dummies). Naming them in families as 'bernoulli' keeps "
            f"them without this warning."
        )
    return {j for group in groups for j in group}
