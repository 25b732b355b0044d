"""One codec per sort of cell, which a family names: how a column is stored in the Table.

    number        float32 of (value - offset) / scale       missing NaN
    non_negative  float32 of value / scale                  missing NaN
    logarithm     float32 of (log value - offset) / scale   missing NaN
    number_or_atom, logarithm_or_atom  as these; the cells that are atoms are in the Table's `atoms`
    level         codes 0 .. n_levels - 1 in uint8/16/32    missing n_levels, unseen n_levels + 1
    boolean       0 or 1 in uint8                           missing 2
    count         the count in uint32                       missing 2**32 - 1
    count_row     rows of counts as a csr_array, in the first of the columns; the others have None

and of a column that is set apart (_set_apart.py)

    constant      0 for the value, 1 for another one        missing NaN

The offset and the scale of a number are the mean and standard deviation of the column's ordinary
values (families/_scaling.py), without atoms. They matter because 2952788047.4 plus noise of unit
size, stored directly in float32, would be multiples of 256. The scale of a number that is never
negative is their mean.
"""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import numbers

import numpy as np
from scipy.sparse import csc_array

from ..families import FAMILIES, MISSING_COUNT, default_family, family_of_logarithms
from ..families._counts import COUNTS, ROW_COUNTS, refuse_empty_rows
from ..families._scaling import offset_and_scale, scale_from_zero, standardised
from ..families._sparse import row_of
from ._atoms import atoms_of
from ._columns import infinity_error
from ._levels import factorise

_CODE_DTYPES = (("u1", 1), ("u2", 2), ("u4", 4))


class NumberCodec:
    """Real numbers: standardised in float64, kept in float32.

    Attributes
    ----------
    constant : float or None
        The value of all cells of the fit that are present, if these are two or more.
    """

    dtype = "f4"
    n_levels = 0
    lowest = -np.inf  # above which cells are
    of_logarithms = False

    def __init__(self, family, offset, scale, constant=None):
        self.family = family
        self.offset = offset
        self.scale = scale
        self.constant = constant

    @classmethod
    def fit(cls, column, family):
        values = as_numbers(column, family)
        values = values[~np.isnan(values)]
        is_constant = len(values) > 1 and values.min() == values.max()
        constant = float(values[0]) if is_constant else None
        return cls(family, *offset_and_scale(cls.transformed(values, column.label)), constant)

    def encode(self, column):
        values = self.transformed(self.admitted(column), column.label)
        return standardised(values, self.offset, self.scale)

    @property
    def units(self):
        """What has `in_units` for the numbers that are standardised."""
        return FAMILIES[self.family]

    def admitted(self, column):
        """The column's numbers, with a substitute for what has no cell and yet may come."""
        return as_numbers(column, self.family)

    @staticmethod
    def transformed(values, label):
        """The numbers that are standardised; errors name the column by its label."""
        return values

    def missing(self, cells):
        return np.isnan(cells)

    def decode(self, values):
        """Numbers arrive in the user's units: nothing to do."""
        return np.asarray(values, dtype=np.float64)


def gap_error(label, family):
    """The error for a missing cell in a column of a family that takes none."""
    takers = ", ".join(repr(name) for name, member in FAMILIES.items() if member.takes_gaps)
    return ValueError(
        f"{label} has a missing cell, but the family {family!r} describes whole rows"
        f" without gaps: fill it, or give the column to a family that takes gaps ({takers})."
    )


class NonNegativeCodec(NumberCodec):
    """Real numbers from 0 on, over their mean: 0 stays 0."""

    @classmethod
    def fit(cls, column, family):
        values = as_numbers(column, family)
        return cls(family, 0.0, scale_from_zero(values[~np.isnan(values)]))

    def encode(self, column):
        values = as_numbers(column, self.family)
        if (values < 0).any():
            least = np.nanmin(values)
            raise ValueError(f"{column.label} must hold numbers of at least 0, got {least:g}.")
        return standardised(values, self.offset, self.scale)


class LogarithmCodec(NumberCodec):
    """Real numbers above 0: their logarithms, standardised.

    Attributes
    ----------
    least : float or None
        The least number above 0 of the fit, if the family was not asked for: then `amounts` gives
        cells to numbers that come later and have no logarithm. Else None.
    """

    lowest, of_logarithms = 0.0, True
    least, units = None, FAMILIES[family_of_logarithms(default_family("float"))]

    def admitted(self, column):
        return amounts(super().admitted(column), self.least)

    @staticmethod
    def transformed(values, label):
        if np.any(values <= 0):
            raise ValueError(f"{label} must hold numbers above 0, got {np.nanmin(values):g}.")
        return np.log(values)


def amounts(values, least):
    """Numbers in which those that are not above 0 are replaced by amounts, the lower ones by less.

    A 0 counts as half of the least amount, as what is too little to be measured commonly does.
    Nothing is replaced if `least` is None.
    """
    if least is None:
        return values
    less = least / (least - np.minimum(values, 0.0))
    return np.where(values <= 0.0, 0.5 * least * less, values)


class AtomCodec(NumberCodec):
    """Real numbers, some of which are atoms: see families/_semi_continuous.pyx.

    A number is an atom if its cell is within TOUCH, the error of float32, of the atom's: so a query
    in float32 has the atoms of a fit in float64.

    Parameters
    ----------
    atoms : float64 array
        In the user's units, ascending.

    Attributes
    ----------
    atom_cells : float32 array
    """

    TOUCH = 4e-7
    atoms_among = staticmethod(atoms_of)

    def __init__(self, family, offset, scale, constant, atoms):
        super().__init__(family, offset, scale, constant)
        cells = self._cells(atoms)
        apart = np.diff(cells, prepend=-np.inf) > 3 * self.TOUCH * (1 + np.abs(cells))
        self.atoms, self.atom_cells = atoms[apart], cells[apart]

    @classmethod
    def fit(cls, column, family):
        values = as_numbers(column, family)
        values = values[~np.isnan(values)]
        atoms = cls.atoms_among(values)
        elsewhere = cls.transformed(values[~np.isin(values, atoms)], column.label)
        is_constant = len(values) > 1 and values.min() == values.max()
        constant = float(values[0]) if is_constant else None
        return cls(family, *offset_and_scale(elsewhere), constant, atoms)

    def encode(self, column):
        values = self.admitted(column)
        cells = self._cells(values)
        at = self._atom_at(cells)
        self.transformed(values[at < 0], column.label)  # refuses what has no cell
        return np.where(at < 0, cells, np.r_[self.atom_cells, np.float32(0)][at])

    def decode(self, values):
        """Numbers in the user's units; an atom is exactly its value."""
        at = self._atom_at(self._cells(values))
        return np.where(at < 0, values, np.r_[self.atoms, 0.0][at])

    def _cells(self, values):
        return standardised(values, self.offset, self.scale)

    def _atom_at(self, cells):
        """Which atom each cell is, -1 if it is none."""
        first = np.searchsorted(self.atom_cells, cells - self.TOUCH * (1 + np.abs(cells)))
        nearest = np.r_[self.atom_cells, np.float32(np.nan)][first]
        return np.where(np.abs(cells - nearest) <= self.TOUCH * (1 + np.abs(cells)), first, -1)


class LogarithmOrAtomCodec(AtomCodec):
    """Real numbers from 0 on, some of which, and 0 at any rate, are atoms: their logarithms."""

    lowest, of_logarithms = LogarithmCodec.lowest, True
    transformed = staticmethod(LogarithmCodec.transformed)
    least = None
    atoms_among = staticmethod(lambda values: np.union1d(atoms_of(values), values[values == 0][:1]))

    def admitted(self, column):
        values = super().admitted(column)
        return np.where(values == 0.0, values, amounts(values, self.least))

    def _cells(self, values):
        """Standardised logarithms; that of 0 is the least cell, a negative number has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return standardised(np.log(values), self.offset, self.scale)


class ConstantCodec:
    """A column of one value: none of the families, see _set_apart.py.

    Parameters
    ----------
    codec : NumberCodec or LevelCodec
        The column's own.
    value : float or object
        Its one number, or its one level.
    log_other : float
        The log probability of another value.

    Attributes
    ----------
    given_family : str
        The family of which the column would be.
    """

    family = "constant"
    n_levels = 0

    def __init__(self, codec, value, log_other):
        self.codec, self.value, self.log_other = codec, value, log_other
        self.given_family = codec.family

    def encode(self, column):
        if self.codec.n_levels:
            codes = self.codec.encode(column)
            return np.where(self.codec.missing(codes), np.nan, codes != 0)
        values = as_numbers(column, self.codec.family)
        return np.where(np.isnan(values), np.nan, values != self.value)

    def missing(self, cells):
        return np.isnan(cells)

    def decode(self, values):
        """Turn codes into the level; numbers arrive in the user's units."""
        values = np.asarray(values, dtype=np.float64)
        if not self.codec.n_levels:
            return values
        return self.codec.decode(np.where(np.isnan(values), self.codec.n_levels, 0))


class LevelCodec:
    """One of a list of levels: the declared ones, else those seen in fit, sorted if they sort.

    If no cell was seen, none is known, not even a declared one.
    """

    offset = 0.0
    scale = 1.0

    def __init__(self, family, levels):
        self.family = family
        # a column without levels gets a nameless one, since the Table needs at least one
        self.levels = levels or [None]
        self.n_levels = len(self.levels)
        self.dtype = next(
            name for name, n_bytes in _CODE_DTYPES if self.n_levels + 2 <= 256**n_bytes
        )

    @classmethod
    def fit(cls, column, family):
        levels, codes = factorise(column)
        if not np.any(codes >= 0):
            levels = []
        if not column.declared:
            with contextlib.suppress(TypeError):  # text and numbers stay in order of appearance
                levels = sorted(levels)
        return cls(family, levels)

    def encode(self, column):
        found, codes = factorise(column)
        known = {level: code for code, level in enumerate(self.levels)}
        table = [known.get(value, self.n_levels + 1) for value in found]
        table.append(self.n_levels)  # where the code -1 of a missing cell leads
        return np.array(table, dtype=self.dtype)[codes]

    def missing(self, cells):
        return cells == self.n_levels

    def decode(self, codes):
        """The levels as objects; None for a missing or unseen one."""
        table = np.fromiter([*self.levels, None, None], dtype=object, count=self.n_levels + 2)
        return table[codes]


class _UnscaledCodec:
    """Base of codecs that learn nothing from a column: fit only rejects cells they cannot hold."""

    offset = 0.0
    scale = 1.0

    def __init__(self, family):
        self.family = family

    @classmethod
    def fit(cls, column, family):
        codec = cls(family)
        codec.encode(column)
        return codec


class BooleanCodec(_UnscaledCodec):
    """False and True, or 0 and 1."""

    dtype = "u1"
    n_levels = 2

    def encode(self, column):
        values = as_numbers(column, self.family)
        missing = np.isnan(values)
        bad = ~(missing | (values == 0) | (values == 1))
        if bad.any():
            raise ValueError(
                f"{column.label} must hold False, True, 0 or 1, got {values[bad][0]:g}."
            )
        values[missing] = 2
        return values.astype(np.uint8)

    def missing(self, cells):
        return cells == 2

    def decode(self, codes):
        """Booleans; objects if there are missing ones, which are None."""
        codes = np.asarray(codes)
        if np.any(codes == 2):
            return np.array([False, True, None], dtype=object)[codes]
        return codes.astype(bool)


class CountCodec(_UnscaledCodec):
    """Non-negative integers below 2**32 - 1."""

    dtype = "u4"
    n_levels = 0

    def encode(self, column):
        values = as_numbers(column, self.family)
        missing = np.isnan(values)
        bad = COUNTS.outside(values) & ~missing
        if bad.any():
            raise COUNTS.error(column.label, values[bad][0])
        values[missing] = MISSING_COUNT
        return values.astype(np.uint32)

    def missing(self, cells):
        return cells == MISSING_COUNT

    def decode(self, values):
        """Counts, or their means, arrive as numbers: nothing to do."""
        return np.asarray(values, dtype=np.float64)


class CountRowCodec:
    """Rows of counts over all columns of the family.

    Parameters
    ----------
    family : str
    first : bool
        Whether this is the column that carries the rows.
    """

    n_levels = 0
    offset = 0.0
    scale = 1.0

    def __init__(self, family, first):
        self.family = family
        self.dtype = "entries" if first else "none"

    @classmethod
    def read(cls, table, columns, name, family):
        """The family's columns of a table, as csr_array of uint32.

        Parameters
        ----------
        table : Array, PandasFrame, PolarsFrame, Rows or Sparse
            All columns of a sparse table are the family's.
        columns : sequence of int
        name, family : str
            What error messages call the table and its family.

        Returns
        -------
        counts : csr_array of shape (n_rows, len(columns))
        dtypes : list of str
            What the cells of each column were.
        """
        if hasattr(table, "entries"):
            counts = table.entries()
            dtypes = ["float" if counts.dtype.kind == "f" else "integer"] * len(columns)
        else:
            counts, dtypes = cls._gather(table, columns, family)
        values = counts.data
        bad = ROW_COUNTS.outside(values)
        if bad.any():
            at = int(bad.argmax())
            label, value = table.label(columns[counts.indices[at]]), float(values[at])
            if np.isnan(value):
                raise gap_error(label, family)
            if np.isinf(value):
                raise infinity_error(label)
            raise ROW_COUNTS.error(f"Row {row_of(counts, at)} of {name}: {label}", value)
        refuse_empty_rows(counts, name, f"the family {family!r}")
        return counts.astype(np.uint32), dtypes

    @classmethod
    def _gather(cls, table, columns, family):
        """The entries other than 0 of columns of a dense table, read one by one."""
        rows, values, dtypes = [], [], []
        for j in columns:
            column = table.column(j)
            numbers = as_numbers(column, family)
            rows.append(np.flatnonzero(numbers))  # of NaN, too
            values.append(numbers[rows[-1]])
            dtypes.append(column.dtype)
        starts = np.cumsum([0, *map(len, rows)])
        shape = table.shape[0], len(columns)
        counts = csc_array((np.concatenate(values), np.concatenate(rows), starts), shape)
        return counts.tocsr(), dtypes

    def missing(self, cells):
        return np.diff(cells.indptr) == 0

    def decode(self, values):
        """Counts are handed over as numbers: nothing to do."""
        return np.asarray(values, dtype=np.float64)


CODECS = {
    "number": NumberCodec,
    "non_negative": NonNegativeCodec,
    "logarithm": LogarithmCodec,
    "number_or_atom": AtomCodec,
    "logarithm_or_atom": LogarithmOrAtomCodec,
    "level": LevelCodec,
    "boolean": BooleanCodec,
    "count": CountCodec,
    "count_row": CountRowCodec,
}


def codec_of(family):
    """The class of a family's codecs."""
    return CODECS[FAMILIES[family].cells]


def as_numbers(column, family):
    """The cells as a new float64 array, NaN where missing."""
    if column.levels is None:
        values = column.values.astype(np.float64)
        if column.missing is not None:
            values[column.missing] = np.nan
        return values
    for level in column.levels:
        if not isinstance(level, (numbers.Real, np.bool_)):
            raise ValueError(
                f"{column.label} holds {level!r}, but the family {family!r} needs numbers."
            )
    table = np.array([*map(float, column.levels), np.nan])
    if np.isinf(table).any():
        raise infinity_error(column.label)
    return table[column.values]
