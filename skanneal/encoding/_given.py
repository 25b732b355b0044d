"""The cells of a row that a user gives in a conditional query."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES
from ._codecs import ConstantCodec, CountRowCodec
from ._collinear import CollinearCodec
from ._columns import as_number, read_objects
from ._containers import open_table
from ._identifiers import IdentifierCodec


def encode_given(encoder, cells, name="given"):
    """Encode some cells of one row.

    Parameters
    ----------
    encoder : Encoder
    cells : mapping of columns to values
        Columns by name or position.
    name : str, default="given"
        What error messages call the mapping.

    Returns
    -------
    columns : list of ndarray of shape (1,)
        Missing where nothing is given. An indicator says present where its column is given, even
        where it is given as missing.

    Raises
    ------
    ValueError, TypeError
        For columns that are unknown or given twice, values that contradict a column's type, levels
        of which fit knows nothing, and missing values in columns without an indicator.
    """
    columns, counts, named = encoder.missing_columns(1), {}, []
    for label, value in cells.items():
        (j,) = encoder.names.positions([label], name)
        if j in named:
            raise ValueError(f"{name} has {encoder.names.label(j)} twice, by name and by position")
        named.append(j)
        at = encoder.indicators_of([j])
        value = as_date(encoder, j, value, name)
        codec, column = encoder.codecs[j], read_objects(encoder.names.label(j), [value])
        if isinstance(codec, CountRowCodec):
            counts[j] = value
            continue
        columns[j] = encoder.encode_column(j, column)
        if codec.missing(columns[j])[0] and not len(at):
            raise ValueError(
                f"{name} has a missing value for {column.label}: leave it out. That a cell is "
                "missing can be given only of columns with a missing_indicator"
            )
        if 0 < codec.n_levels < columns[j][0]:
            raise ValueError(f"{name}: {column.label} has no level {value!r}")
        if codec.family == ConstantCodec.family and columns[j][0] == 1.0:
            density = "has density 0" if codec.log_other == -np.inf else "fit did not see"
            raise ValueError(
                f"{name}: {column.label} is {codec.value!r} in all rows of the fit, got"
                f" {value!r}, which {density}"
            )
        if codec.family == IdentifierCodec.family:
            raise ValueError(
                f"{name}: {column.label} was taken for an identifier of the rows, which the model"
                " leaves out: name its family in families to keep it"
            )
        for i in at:
            columns[i] = np.uint8(~codec.missing(columns[j]))
        for i, part in encoder.parts_of([j]).items():
            columns[i] = part.encode(column)
    check_whole_rows(encoder, named, name)
    check_determined(encoder, named, name)
    if counts:
        table = open_table([[counts[j] for j in encoder.counts]], name)
        names = encoder.names.names
        table.names = names and [names[j] for j in encoder.counts]
        columns[encoder.counts[0]] = encoder.read_counts(table, range(len(counts)), name)
    return columns


def as_date(encoder, j, value, name="given"):
    """A value given for column j: of a date as text in ISO 8601, '2020-01-31', the date."""
    if not (isinstance(value, str) and encoder.dtypes[j][0] == "M"):
        return value
    try:
        return np.datetime64(value)
    except ValueError:
        raise ValueError(
            f"{name}: {encoder.names.label(j)} held dates in fit, and {value!r} is none: give a "
            f"date, or one as text in ISO 8601, such as '2020-01-31'"
        ) from None


def check_whole_rows(encoder, positions, what):
    """Raise an error if only some columns of a family whose rows have no gaps are given.

    Parameters
    ----------
    encoder : Encoder
    positions : sequence of int
    what : str
        What error messages call what names them.
    """
    for family, columns in encoder.families_.items():
        named = np.isin(columns, positions)
        whole = family in FAMILIES and not FAMILIES[family].takes_gaps
        if whole and named.any() and not named.all():
            raise ValueError(
                f"{what} has some columns of the family {family!r}, which describes whole rows,"
                f" but not {encoder.names.label(columns[~named][0])}: name all of them or none."
            )


def check_determined(encoder, positions, what):
    """Raise an error if a column is named that others determine, but not all of these; parameters
    as in `check_whole_rows`."""
    for j in positions:
        codec = encoder.codecs[j]
        if isinstance(codec, CollinearCodec) and not set(codec.sources) <= set(positions):
            label, others = encoder.names.label, ", ".join(map(encoder.names.label, codec.sources))
            raise ValueError(f"{what}: {label(j)} is determined by {others}: give these.")


def put_given(encoder, columns, known, given, n_rows):
    """Put given cells into simulated rows, and what these determine; remove those that are missing
    by their indicators.

    Parameters
    ----------
    encoder : Encoder
    columns : list of (ndarray of shape (n_rows,) or None)
        Numbers in the user's units and codes, indicators last, wherever nothing is known; None for
        a column that is set apart.
    known : list of ndarray of shape (1,)
        From `encode_given`.
    given : mapping of columns to values
        What `encode_given` was given.
    n_rows : int

    Returns
    -------
    columns : list of ndarray of shape (n_rows,)
        Without the indicators; for `Encoder.decode`.
    """
    n_columns = encoder.n_columns
    out = list(columns[:n_columns])
    for label, value in given.items():
        (j,) = encoder.names.positions([label], "given")
        if j in encoder.apart.constants:
            continue
        if known[j] is None or not encoder.codecs[j].missing(known[j])[0]:
            coded = encoder.codecs[j].n_levels > 0
            number = int(known[j][0]) if coded else as_number(as_date(encoder, j, value))
            out[j] = np.full(n_rows, number)
    for j, value in encoder.set_apart(out).items():
        out[j] = np.full(n_rows, value) if out[j] is None else out[j]
    for i, j in enumerate(encoder.indicators, start=n_columns):
        present = np.where(known[i] == 2, columns[i], known[i])
        out[j] = np.where(present == 1, out[j], encoder.codecs[j].n_levels or np.nan)
    return out
