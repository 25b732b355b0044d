"""The periodic parts of dates: hour of the day, day of the week, month of the year.

A part is a function of the date. As a column beside the elapsed time it describes what a normal
density cannot: that a cluster's rows fall on weekends or in winters. It is a column of levels,
whose predictive has a closed form and can have any shape around the period, unlike one mean angle.

A part is added if its period fits at least TIMES times into the span of the column's dates, and if
these have at least two of its levels. Within a single week, the date already tells the day of the
week; dates without a time have no hour.

Parts serve clustering, and what is said of other cells given a date. The density of the date itself
leaves them out: otherwise it would count twice, and would no longer integrate to one.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..families import default_family
from ._columns import Column
from ._dates import PER_DAY

TIMES = 4
MICROSECOND = 1 / PER_DAY["us"]


class Part(NamedTuple):
    """A part of dates.

    Attributes
    ----------
    period : float
        In days.
    levels : tuple of str
    code : callable
        From days since 1970-01-01 to the levels' positions.
    """

    period: float
    levels: tuple
    code: object


def _month(days):
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12


def _whole_days(days):
    return np.floor(days + MICROSECOND / 2).astype(np.int64)


PARTS = {
    "hour": Part(
        1.0,
        tuple(f"{hour:02d}" for hour in range(24)),
        lambda days: np.floor(24 * (days - _whole_days(days)) + 12 * MICROSECOND).astype(int) % 24,
    ),
    "weekday": Part(
        7.0,
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        lambda days: (_whole_days(days) + 3) % 7,  # 1970 began on a Thursday
    ),
    "month": Part(
        365.25,
        ("January", "February", "March", "April", "May", "June", "July", "August", "September")
        + ("October", "November", "December"),
        lambda days: _month(_whole_days(days)),
    ),
}


class DatePartCodec:
    """A part of a column of dates, as a column of levels.

    Parameters
    ----------
    source : int
        The column of dates.
    name : str
        A key of PARTS.
    """

    offset, scale, dtype = 0.0, 1.0, "u1"

    def __init__(self, source, name):
        self.source, self.name = source, name
        self.family = default_family("levels")
        self.levels = list(PARTS[name].levels)
        self.n_levels = len(self.levels)

    def encode(self, column: Column):
        """The codes of a column of dates."""
        codes = np.full(len(column.values), self.n_levels, dtype=self.dtype)
        present = slice(None) if column.missing is None else ~column.missing
        if column.temporal:  # else no cell is present
            codes[present] = PARTS[self.name].code(column.values[present])
        return codes

    def column(self, dates):
        """The part of a column of dates, as a column of levels."""
        codes = self.encode(dates).astype(np.int64)
        return Column(dates.label, codes, dates.missing, self.levels)


class DateParts:
    """The parts of a table's dates, after its other columns.

    Parameters
    ----------
    codecs : list of DatePartCodec
    names : ColumnNames

    Attributes
    ----------
    names : list of str
        Such as "admitted: weekday".
    """

    def __init__(self, codecs, names):
        labels = names.names or range(names.n_columns)
        self.codecs = codecs
        self.names = [f"{labels[codec.source]}: {codec.name}" for codec in codecs]

    @classmethod
    def of(cls, table, columns, names):
        """Find the parts of these columns of a table."""
        return cls([codec for j in columns for codec in find_parts(j, table.column(j))], names)

    def encode(self, table):
        """The cells of each part."""
        return [codec.encode(table.column(codec.source)) for codec in self.codecs]

    def columns(self, table):
        """Each part's name and Column."""
        parts = (codec.column(table.column(codec.source)) for codec in self.codecs)
        return list(zip(self.names, parts))

    def left_out(self, columns, given=()):
        """Encoded columns of a table in which the parts are missing, but for those of the dates in
        the columns `given`."""
        own = columns[: len(columns) - len(self.codecs)]
        pairs = zip(columns[len(own) :], self.codecs)
        parts = (
            cells if codec.source in given else np.full_like(cells, codec.n_levels)
            for cells, codec in pairs
        )
        return [*own, *parts]


def find_parts(j, column):
    """Return the codecs of the parts of column j that are taken, none where it holds no dates."""
    if column.temporal is None or column.temporal[0] != "M":
        return []
    days = column.values if column.missing is None else column.values[~column.missing]
    span = np.ptp(days) if len(days) else 0.0
    return [
        DatePartCodec(j, name)
        for name, part in PARTS.items()
        if span >= TIMES * part.period and np.ptp(part.code(days)) > 0
    ]
