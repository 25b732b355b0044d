"""Columns of numbers that other columns determine; families with covariances leave them out.

If a column is a linear function of others, such as a sum or a copy, rows lie in a plane. A
family with covariances could then raise their density without bound by thinner clusters, whatever
the clusters are. Such a column is set apart like a constant one (_set_apart.py): its density is a
point mass at the value that the others give. It is the one of most gaps, or else the last one.

A pivoted QR decomposition of the standardised cells, in rows without gaps, finds such columns. A
cell may deviate by as much as rounding explains: float32 keeps seven digits, but tables give three
or four, of which a sum of several columns loses some.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.linalg import qr

from ._codecs import NumberCodec, amounts

TOLERANCE = 1e-3  # of a cell, in standard deviations of its column; more for cells farther out
TOLERANCE_OF_QUERIES = 1e-2  # weights are estimated, and new rows may lie far from those of the fit
NO_WEIGHT = 1e-4
MOST_ROWS = 10_000  # that are decomposed; columns found there are checked on all rows
ROWS_PER_COLUMN = 2  # fewer distinct rows lie in a plane by chance


class CollinearCodec(NumberCodec):
    """A number that is a linear function of other columns, or their logarithms are.

    Parameters
    ----------
    codec : NumberCodec
        The column's.
    sources : list of int
        The other columns.
    weights : float64 array of shape (n_sources,)
    intercept : float
        Its cell is the intercept and the weighted sum of theirs.

    Attributes
    ----------
    given_family : str
        The family of which the column would be.
    """

    def __init__(self, codec, sources, weights, intercept):
        super().__init__("collinear", codec.offset, codec.scale)
        self.codec, self.lowest, self.given_family = codec, codec.lowest, codec.family
        self.sources, self.weights, self.intercept = sources, weights, intercept

    def encode(self, column):
        return self.codec.encode(column)

    def of(self, cells):
        """The cells that those of all columns give: NaN where one of them is missing."""
        sources = np.column_stack([cells[j] for j in self.sources]).astype(np.float64)
        return self.intercept + sources @ self.weights

    def deviates(self, own, cells, tolerance=TOLERANCE_OF_QUERIES):
        """1 where a cell is not what the others give, else 0; NaN where it is missing."""
        with np.errstate(invalid="ignore"):
            off = np.abs(own - self.of(cells)) > tolerance * (1.0 + np.abs(own))
        return np.where(np.isnan(own), np.nan, off)

    def value(self, columns, codecs):
        """The numbers that those of all columns give, in the user's units."""
        cells = {j: _cells_of(codecs[j], columns[j]) for j in self.sources}
        return self.codec.units.in_units(self.of(cells) * self.scale + self.offset)


def _cells_of(codec, numbers):
    """Cells in float64 of numbers in the user's units, whatever they are."""
    numbers = np.asarray(numbers, dtype=np.float64)
    if codec.of_logarithms:
        numbers = np.log(np.maximum(amounts(numbers, codec.least), np.finfo(float).tiny))
    return (numbers - codec.offset) / codec.scale


def find_collinear(codecs, cells, columns):
    """Find the columns that are linear functions of others, which have no more gaps.

    Parameters
    ----------
    codecs : list of NumberCodec
        Of all columns.
    cells : list of ndarray of shape (n_rows,)
        Encoded.
    columns : sequence of int
        Among which to look. Columns whose gaps leave too few rows that are complete come last, each
        by itself: in the rows that have it, as a function of the columns most correlated with it.

    Returns
    -------
    found : dict of int to CollinearCodec
        Its sources are none of these columns.
    """
    gaps = {int(j): np.isnan(cells[j]) for j in columns}
    in_order = sorted(gaps, key=lambda j: np.count_nonzero(gaps[j]))
    known, rows = _complete(gaps, in_order)
    found = _functions(codecs, cells, rows, known)
    if len(known) == len(in_order):
        return found
    related = _correlations([cells[j] for j in in_order])
    for place in range(len(known), len(in_order)):
        j, earlier = in_order[place], np.argsort(-related[place, :place], kind="stable")
        others = [in_order[i] for i in earlier if in_order[i] not in found]
        others, rows = _complete(gaps, others, [j])
        found |= _functions(codecs, cells, rows, [*others, j], len(others))
    return found


def _complete(gaps, columns, needed=()):
    """The columns, without the last ones as long as there are less than ROWS_PER_COLUMN complete
    rows to a column, and these rows, which are complete in the columns `needed`, too."""
    columns = list(columns)
    lacking = sum(gaps[j].astype(np.int64) for j in (*columns, *needed))
    while columns:
        rows = np.flatnonzero(lacking == 0)
        if len(rows) >= ROWS_PER_COLUMN * (len(columns) + len(needed)):
            return columns, rows
        lacking = lacking - gaps[columns.pop()]
    return columns, np.zeros(0, dtype=np.int64)


def _correlations(cells):
    """The absolute correlations of columns in the rows that have both: (n, n)."""
    rows = slice(None, None, -(-len(cells[0]) // MOST_ROWS))
    matrix = np.column_stack([of[rows] for of in cells]).astype(np.float64)
    present = ~np.isnan(matrix)
    matrix = np.where(present, matrix, 0.0)
    matrix -= matrix.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    matrix *= present
    squares = np.square(matrix).T @ present  # of each column, in the rows that have each other one
    return np.abs(matrix.T @ matrix) / np.sqrt(
        np.maximum(squares * squares.T, np.finfo(float).tiny)
    )


def _functions(codecs, cells, rows, columns, n_known=0):
    """Those of the columns, after the first `n_known`, that are functions of earlier ones in these
    rows, as `find_collinear` returns them."""
    if len(columns) < 2 or len(rows) < ROWS_PER_COLUMN * len(columns):
        return {}
    few = rows[:: -(-len(rows) // MOST_ROWS)]
    matrix = np.column_stack([np.ones(len(few)), *(cells[j][few] for j in columns)])
    matrix = matrix.astype(np.float64)
    pivots = np.abs(np.diagonal(qr(matrix, mode="r", pivoting=True)[0]))
    if pivots.min() > TOLERANCE * np.sqrt(len(few)):
        return {}
    if len(np.unique(matrix, axis=0)) < ROWS_PER_COLUMN * len(columns):
        return {}
    found, kept = {}, list(range(n_known + 1))
    for place, j in enumerate(columns[n_known:], start=n_known + 1):
        weights = np.linalg.lstsq(matrix[:, kept], matrix[:, place], rcond=None)[0]
        used = np.abs(weights[1:]) > NO_WEIGHT
        sources = [columns[i - 1] for i in np.array(kept[1:])[used]]
        codec = CollinearCodec(codecs[j], sources, weights[1:][used], float(weights[0]))
        of_rows = {i: cells[i][rows] for i in [*sources, j]}
        if sources and not codec.deviates(of_rows[j], of_rows, TOLERANCE).any():
            found[j] = codec
        else:
            kept.append(place)
    return found
