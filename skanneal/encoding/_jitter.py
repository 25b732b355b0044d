"""Which columns of a fit are rounded, and the noise that replaces the lost digits.

The noise of the k-th rounded column is a stream of its own, with one number for each row: it is the
same in every fit, whatever its seed, and neither gaps nor columns that are not rounded move it. So
fits of a table that differ in their seed have the same cells. Queries are not jittered: a rounded
value is scored as it stands, in the middle of its interval.
"""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping
from numbers import Real

import numpy as np

from ._rounding import TOLERANCE, find_lattice, lattice_of, nearest_of

SEED = tuple(b"rounded")  # such as nobody's own numbers are drawn from


class Jitter:
    """The lattices of a table's rounded columns.

    Parameters
    ----------
    rounding : "auto", None or mapping of columns to steps
        "auto" finds the steps; None takes no column for rounded. With a mapping, None for a step
        says that the column is not rounded, and columns left out are as with "auto".
    names : ColumnNames

    Attributes
    ----------
    lattices : dict of int to Lattice
    recurring : dict of int to float64 array
        Of each rounded column the numbers that several rows of the fit have, ascending.
    """

    def __init__(self, rounding, names):
        self.names = names
        self.lattices, self.recurring = {}, {}
        self.auto = rounding is not None
        self.given = {}
        if isinstance(rounding, Mapping):
            for column, step in rounding.items():
                (j,) = names.positions([column], "rounding")
                if step is not None and not (isinstance(step, Real) and 0 < step < np.inf):
                    raise ValueError(
                        f"rounding[{column!r}] must be a positive number or None, got {step!r}."
                    )
                self.given[j] = step

    def apply(self, j, numbers, lowest):
        """The numbers of a column (float64, NaN where missing), jittered if they are rounded.

        A column that is jittered once more, in another family, has the same noise."""
        present = numbers[~np.isnan(numbers)]
        if j in self.given:
            step = self.given[j]
            lattice = None if step is None else lattice_of(present, step)
        else:
            lattice = find_lattice(present) if self.auto else None
        if lattice is None:
            return numbers
        self.lattices[j] = lattice  # one that is there already keeps its place
        distinct, counts = np.unique(present, return_counts=True)
        self.recurring[j] = distinct[counts > 1]
        return self.again(j, numbers, lowest)

    def again(self, j, numbers, lowest):
        """The numbers of a column of the fit, with the noise that they got there."""
        if j not in self.lattices:
            return numbers
        seed = np.random.SeedSequence([*SEED, list(self.lattices).index(j)])
        uniforms = np.random.Generator(np.random.PCG64(seed)).random(len(numbers))
        return self.lattices[j].jittered(numbers, uniforms, lowest)

    def check(self, families):
        """Raise an error for a step that is given for a column whose family does not use it.

        Parameters
        ----------
        families : list of str
            Of each column.
        """
        for j, step in self.given.items():
            if step is not None and j not in self.lattices:
                raise ValueError(
                    f"rounding gives a step for {self.names.label(j)}, but its family"
                    f" {families[j]!r} takes cells as they are."
                )

    def nearest(self, j, values, codecs):
        """Numbers of column j as the fit's were rounded, and such as its codec takes: one that
        recurs there to the last digit, whether it is on the lattice or not."""
        if j not in self.lattices:
            return values
        lattice, known = self.lattices[j], self.recurring[j]
        near = lattice.nearest(values, getattr(codecs[j], "lowest", -np.inf))
        if not len(known):
            return near
        given = nearest_of(known, near)
        near = np.where(np.abs(given - near) < TOLERANCE * lattice.step, given, near)
        return np.where(np.isin(values, known), values, near)

    @property
    def steps(self):
        """The step of each rounded column, by its name, or by its position if there are none."""
        names = self.names.names or range(self.names.n_columns)
        return {names[j]: lattice.step for j, lattice in sorted(self.lattices.items())}
