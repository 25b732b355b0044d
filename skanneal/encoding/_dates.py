"""Dates and durations as numbers, and back.

A date is the time elapsed since 1970-01-01 (UTC), in days; a duration is its length in days. They
are exact to the microsecond. Converted back, they have their original unit: dates in days are
rounded to days. Where 64 bits of that unit end, or of microseconds if it is coarser, since
containers go through these, what is beyond becomes the last day but one, as libraries overflow in
the last.
"""

# SPDX-License-Identifier: BSD-3-Clause

import datetime

import numpy as np

PER_DAY = {
    "D": 1,
    "h": 24,
    "m": 1440,
    "s": 86_400,
    "ms": 86_400 * 10**3,
    "us": 86_400 * 10**6,
    "ns": 86_400 * 10**9,
}
DATES = (datetime.date, np.datetime64)  # a datetime is a date
DURATIONS = (datetime.timedelta, np.timedelta64)
TEMPORAL = (*DATES, *DURATIONS, datetime.time)


def temporal_error(label):
    """The error for unsupported types of time."""
    return TypeError(
        f"{label} holds times of day, periods, or times together with other values, which no"
        " family describes: convert them to dates, durations or numbers."
    )


def is_temporal(dtype):
    """Whether this is the dtype of a column of dates or durations; see `Column.dtype`."""
    return dtype[1:3] == "8["


def to_days(values):
    """Dates or durations as numbers.

    Parameters
    ----------
    values : ndarray of datetime64 or timedelta64

    Returns
    -------
    days : float64 array
        NaN for NaT.
    unit : str
        As in the dtype that they have and that `from_days` gives them: "M8[D]" and the like.
    """
    kind, (unit, step) = values.dtype.kind, np.datetime_data(values.dtype)
    if unit not in PER_DAY or step != 1:
        unit = "D" if unit in ("Y", "M", "W", "generic") else "us"
        values = values.astype(f"{kind}8[{unit}]")
    days = values.astype(np.int64) / PER_DAY[unit]
    days[np.isnat(values)] = np.nan
    return days, f"{kind}8[{unit}]"


def from_days(days, unit, lowest=-np.inf):
    """The dates or durations of numbers, to the nearest of their unit that is above `lowest` where
    the numbers are; NaT for NaN."""
    dtype = np.dtype(unit)
    own = np.datetime_data(dtype)[0]
    most = np.iinfo(np.int64).max // PER_DAY["ns" if own == "ns" else "us"] - 1
    fine = "us" if own == "ns" else own  # beyond microseconds float64 has no digits
    days = np.clip(np.asarray(days, dtype=np.float64), -most, most)
    least = np.where(days > lowest, np.floor(lowest * PER_DAY[fine]) + 1.0, -np.inf)
    counts = np.maximum(np.rint(days * PER_DAY[fine]), least)
    missing = np.isnan(counts)
    values = np.where(missing, 0, counts).astype(np.int64).astype(f"{dtype.kind}8[{fine}]")
    values[missing] = "NaT"
    return values.astype(dtype)


def objects_to_array(label, cells, types):
    """Python or NumPy objects as datetime64 or timedelta64, None as NaT.

    Parameters
    ----------
    label : str
        What error messages call the column.
    cells : list
        Dates or durations, and None.
    types : sequence of type
        Theirs, without NoneType.
    """
    if all(issubclass(type_, DURATIONS) for type_ in types):
        return np.array(cells, dtype="m8[us]")
    if not all(issubclass(type_, DATES) for type_ in types):
        raise temporal_error(label)
    timed = any(issubclass(type_, (datetime.datetime, np.datetime64)) for type_ in types)
    return np.array([*map(_naive, cells)], dtype="M8[us]" if timed else "M8[D]")


def _naive(cell):
    """A date without its time zone, in UTC."""
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return cell.astimezone(datetime.UTC).replace(tzinfo=None)
    return cell
