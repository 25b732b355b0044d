"""How far beyond the amounts and counts of the fit draws of them may lie.

Of a component's variance its few rows say little, and of a new one's only the prior says anything.
So the logarithms of amounts have Student's t with few degrees of freedom, and one draw in some
thousand lies tens of standard deviations away from all rows. Such amounts are astronomical, and no
mean of a column of draws is of any use: under this law amounts have no finite mean, whatever the
degrees of freedom (Fabrizi and Trivisano 2012). Nor have the Lomax laws of waiting times, and the
beta negative binomial ones of counts, of components of few rows.

So a drawn cell is one of its component's law within the *reach* of the column: from the least to
the greatest of its n cells, and at each end EXCESSES times the mean excess of the sqrt(n) outermost
ones over the next, which is the scale of an exponential tail (Hill 1975), of amounts in logarithms.
Where the tail is one, a share exp(-EXCESSES) / (n + 1) of it is out of reach. Where a component
hardly ever has cells within reach, they are at its ends; but in a row some of whose known cells are
out of reach the others may be, too. Cells of numbers may be anywhere.

Densities are those of the model. They differ from the law of draws by what is out of reach: in a
column of 20 amounts 2 to 5 % of the model's law, of 60 about 1 %, of 200 half of that; more where
amounts end abruptly, beyond which the model is wrong.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES, Table
from ._margin_law import mean_excess

EXCESSES = 2.0
MOST_TRIES = 100  # after which cells are put at the ends of the reach
AMOUNTS = "non_negative", "count"  # cells that have a reach, as those of logarithms have


def reach_of(table, families):
    """The reach of each column.

    Parameters
    ----------
    table : Table or Schema
        The rows of a fit; a Schema where they are not in memory: then none has a reach.
    families : mapping of str to sequence of int
        The columns of each family.

    Returns
    -------
    reach : dict of int to (float, float)
        By column the least and the greatest cell of a draw, for amounts and counts that vary.
    """
    reach = {}
    if not isinstance(table, Table):
        return reach
    for name, columns in families.items():
        is_amount = table.logarithms | (FAMILIES[name].cells in AMOUNTS)
        for j in (j for j in columns if is_amount[j]):
            cells = table.column(j)
            stays = table.missing(j) | np.isin(cells, table.atoms[j])
            cells = np.sort(cells[~stays].astype(np.float64))
            if len(cells) and cells[0] < cells[-1]:
                reach[int(j)] = -_greatest(-cells[::-1]), _greatest(cells)
    return reach


def _greatest(cells):
    """The greatest cell of a draw, of the ascending cells of a column."""
    return float(cells[-1] + EXCESSES * mean_excess(cells))


def sample_within(reach, view, missing, at, bit_generator, table):
    """As `View.sample`, but cells that are out of reach are drawn again.

    Parameters
    ----------
    reach : mapping of int to (float, float)
    view, missing, at, bit_generator, table
        As for `View.sample`.
    """
    found, rows, masks, atoms = {}, np.arange(len(at)), missing, view.mixture.table.atoms
    for _ in range(1 + MOST_TRIES):
        some = table if len(rows) == len(at) or table.n_rows == 1 else table.take(rows)
        for j, empty, cells in view.sample(masks, at[rows], bit_generator, some):
            found.setdefault(j, np.zeros(len(at), cells.dtype))[rows[empty]] = cells
        again = [np.zeros(len(rows), dtype=bool) for _ in masks]
        for j in reach.keys() & found.keys():
            (low, high), own = reach[j], found[j][rows]
            beyond = masks[j] & ((own < low) | (own > high)) & ~np.isin(own, atoms[j])
            for i in view.drawn_with(j):
                again[i] |= beyond & masks[i]
        left = np.any(again, axis=0)
        if not left.any():
            break
        rows, masks = rows[left], [mask[left] for mask in again]
    near = ~far_rows(reach, _known(reach, table), len(at), atoms)
    for j, cells in found.items():
        empty = np.flatnonzero(missing[j])
        own = cells[empty]
        if j in reach:
            moves = near[empty] & ~np.isin(own, atoms[j])
            own = np.where(moves, np.clip(own, *reach[j]), own)
        yield j, empty, own


def _known(reach, table):
    """The cells of a table in columns that have a reach, nan where missing; none without one."""
    if table is None:
        return {}
    columns = {j: table.column(j).astype(np.float64) for j in reach}
    return {j: np.where(table.missing(j), np.nan, cells) for j, cells in columns.items()}


def far_rows(reach, columns, n, atoms):
    """Which rows have known cells out of reach: bool array of shape (n,).

    Parameters
    ----------
    reach : mapping of int to (float, float)
    columns : mapping of int to float64 array of shape (n,) or (1,)
        By column the cells, nan where missing; of one row, if it stands for all.
    n : int
    atoms : sequence of arrays
        Of each column.
    """
    far = np.zeros(n, dtype=bool)
    for j in reach.keys() & columns.keys():
        (low, high), cells = reach[j], columns[j]
        far |= ((cells < low) | (cells > high)) & ~np.isin(cells, atoms[j])
    return far
