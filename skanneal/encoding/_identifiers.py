"""Columns that name the rows: the model leaves them out.

Text is an identifier where more than MAX_AUTO_LEVELS cells are present and all of them differ.
Whole numbers are an identifier if all differ although ties were to be expected: n numbers drawn at
random from a range of r whole numbers all differ with a probability of about exp(-n (n - 1) / 2r)
(the birthday problem), or less if some are likelier than others. Below exp(-NO_ACCIDENT) this is
not taken for chance. So a run of consecutive numbers is an identifier from 42 rows on, in any
order, and so are 1000 different numbers between 1 and 20,000; a measured quantity would have had
ties.

Text that nearly names the rows stays in, with a warning: where there is less than two rows to a
level, levels tell little but may outweigh the other columns. Often they are dates.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from .._native._warning import warn
from ..families import default_family
from ._family_choice import MAX_AUTO_LEVELS
from ._levels import all_whole, present_values

NO_ACCIDENT = 20.0
NUMBERS_STAY = (
    f"; a number may be {default_family('float')!r}. (AcceleratedDPMixture keeps all numbers where "
    f"its likelihood is named)"
)


class IdentifierCodec:
    """A column that is not modelled: its cells are only present or missing.

    Parameters
    ----------
    text : bool
        Whether the column is one of text, or of other values than numbers.
    prose : bool, default=False
        Whether it is left out as free text (_free_text.py), not as an identifier.
    """

    family = "identifier"
    n_levels = 0

    def __init__(self, text, prose=False):
        self.text, self.prose = text, prose

    @classmethod
    def fit(cls, column):
        return cls(column.levels is not None, not is_identifier(column))

    def encode(self, column):
        cells = np.zeros(len(column.values))
        if column.missing is not None:
            cells[column.missing] = np.nan
        return cells

    def missing(self, cells):
        return np.isnan(cells)

    def decode(self, values):
        """Missing cells: nothing is known of an identifier."""
        return np.full(len(values), None if self.text else np.nan)


def is_identifier(column):
    """Whether a column names the rows: see the module.

    Parameters
    ----------
    column : Column
    """
    if column.temporal or column.dtype == "boolean":
        return False
    values = present_values(column)
    n = len(values)
    if column.levels is not None:
        return n > MAX_AUTO_LEVELS and _all_differ(values)
    if n == 0 or not all_whole(values[:1024]):
        return False
    span = float(values.max()) - float(values.min()) + 1.0
    return n * (n - 1) > 2.0 * NO_ACCIDENT * span and all_whole(values) and _all_differ(values)


def _all_differ(values):
    """Whether no two values are equal; the first ones mostly decide."""
    return all(len(np.unique(part)) == len(part) for part in (values[:1024], values))


def warn_of_left_out(names, codecs, left_out):
    """Say which columns are left out, why, and how to keep them.

    Parameters
    ----------
    names : ColumnNames
    codecs : list of codecs
    left_out : list of int
    """
    reasons = {
        False: "no two cells are equal, as in an identifier of the rows",
        True: "free text, whose cells hardly ever repeat",
    }
    for prose, reason in reasons.items():
        columns = [j for j in left_out if codecs[j].prose == prose]
        if columns:
            column = names.names[columns[0]] if names.names is not None else columns[0]
            labels = ", ".join(map(names.label, columns))
            number = "" if prose else NUMBERS_STAY
            warn(
                f"Left out, as {reason}: {labels}. To keep a column, name it in families, as in "
                f"families={{'categorical': [{column!r}]}}{number}."
            )


def warn_of_many_levels(names, codecs, named, n_rows):
    """Say which columns of text have nearly as many levels as rows, if not all columns have, and
    what to do about it.

    Parameters
    ----------
    names : ColumnNames
    codecs : list of codecs
        Of all columns.
    named : list of bool
        Whether the user named the column's family.
    n_rows : int
    """
    many = [codec.n_levels > max(MAX_AUTO_LEVELS, n_rows // 2) for codec in codecs]
    crowded = [j for j in np.flatnonzero(many) if not named[j]]
    if crowded and len(crowded) < len(codecs):
        labels = ", ".join(map(names.label, crowded))
        warn(
            f"More than half as many levels as rows: {labels}. If these are dates, read them as "
            f"dates (pandas: parse_dates in read_csv, or to_datetime); if they name the rows, drop "
            f"them. Naming them in families as 'categorical' keeps them without this warning.",
        )
