"""Hyperparameters and their grids between the user's units and cell units (families/_forms.py)."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping

import numpy as np

from ..families import FAMILIES
from ..families._division import alone, grids_alone, joined, joined_grids
from ..families._forms import starts, to_cells, to_user
from ._limits import as_floats, check_cells
from ._row_hyperparameters import prepare_rows, row_grids_in_units

# Share of the volume in which centres of components are spread that one component fills at most,
# where components are counted.
FILLED = 0.1


def with_bounds(hyperparameters):
    """The families whose hyperparameters, as given, bound the density of a column of one value."""
    given = {} if isinstance(hyperparameters, str) else hyperparameters
    return [
        name
        for name, family in FAMILIES.items()
        if family.bounds_density and family.bounds_density in _by_name(name, given.get(name, {}))
    ]


def prepare(hyperparameters, encoder, table):
    """Starting values and grids of every encoded column, in cell units.

    Parameters
    ----------
    hyperparameters : "infer" or mapping of str to values
        As the estimators take it.
    encoder : Encoder
        Knows the columns of each family; those of its indicators are always inferred.
    table : Table
        Encoded rows.

    Returns
    -------
    hyper : dict of int to float array
        Each column's values in the order of the family's coordinates. Those of a row family stand
        under its first column.
    grids : dict of int to list of (array or None)
        Aligned with `hyper`; None where the user fixed the coordinate.
    """
    given = {} if isinstance(hyperparameters, str) else dict(hyperparameters)
    families, kept = encoder.given_families, encoder.apart.kept
    unknown = sorted(set(given) - set(families), key=str)
    if unknown:
        raise ValueError(
            f"hyperparameters name families that no column has: {unknown}. The columns have "
            f"{sorted(families)}: name a family in `families` to have it."
        )
    hyper, grids = {}, {}
    for family, columns in encoder.table_families.items():
        shown = columns[columns < len(kept)]
        named = _by_name(family, given.get(family, {})) if len(shown) else {}
        # of one value per column given to the family, those of columns that were set apart wait
        at = np.searchsorted(families.get(family, shown), kept[shown])
        if FAMILIES[family].joint:
            j = int(columns[0])
            n_given = len(families[family])
            hyper[j], grids[j] = prepare_rows(family, named, columns, table, at, n_given)
            continue
        for i, j in zip([*at, *[None] * (len(columns) - len(shown))], columns):
            fixed = named if i is not None else {}
            n_levels = int(table.n_levels[j])
            start = FAMILIES[family].default_hyper(n_levels)
            grid = FAMILIES[family].grids(table.elsewhere(j), n_levels)
            for h, (name, form) in enumerate(coordinates(family, n_levels)):
                if name in fixed:
                    where = f"hyperparameters[{family!r}][{name!r}]"
                    n_columns = len(families[family])
                    value = _one(fixed[name], form, where, i, h, n_columns, n_levels)
                    start[h] = to_cells(form, value, table.offsets[j], table.scales[j])
                    check_cells(start[h], form, where)
                    grid[h] = None
            hyper[int(j)], grids[int(j)] = start, grid
    return hyper, grids


def spread_centres(hyper, grids, families):
    """What `prepare` returned, for a mixture whose components are counted.

    1 / sqrt(kappa0) is how far apart the centres of components are in a column, in units of a
    component's standard deviation. Inferred up to 10 it adapts to components on top of each other,
    so that a second component for one group of rows costs nothing. So with d columns of numbers
    kappa0 is at most FILLED ** (2 / d): a component fills FILLED of the centres' volume or less,
    whatever the number of columns.
    """
    places, n_columns = {}, 0  # where kappa0 is among a column's coordinates
    for family, columns in families.items():
        member = FAMILIES[family]
        if "kappa0" not in member.coordinate_names:
            continue
        n_columns += len(columns)
        place = member.coordinate_names.index("kappa0")
        if member.joint:
            places[int(columns[0])] = starts(member.forms, len(columns))[place]
        else:
            places |= dict.fromkeys(map(int, columns), place)
    hyper, grids = dict(hyper), dict(grids)
    for j, place in places.items():
        grid = grids[j][place]
        if grid is not None:
            grids[j] = [*grids[j]]
            grids[j][place] = grid[grid <= FILLED ** (2.0 / n_columns) * (1.0 + 1e-9)]
            hyper[j] = hyper[j].copy()
            hyper[j][place] = min(hyper[j][place], grids[j][place][-1])
    return hyper, grids


def by_column(hyper, grids, families, table):
    """What `prepare` returned, for a model whose views divide the columns of row families.

    Returns
    -------
    hyper, grids : dict
        Under each column of a row family what is its own (families/_division.py), with starting
        values for a column that is alone.
    shared_grids : dict of str to list of (array or None)
        By family the grids of what its columns share.
    """
    hyper, grids, shared_grids = dict(hyper), dict(grids), {}
    for family, columns in families.items():
        member = FAMILIES[family]
        if member.division is None:
            continue
        flat, of_row = hyper.pop(int(columns[0])), grids.pop(int(columns[0]))
        vectors = alone(member, flat, len(columns))
        if not np.allclose(joined(member, vectors), flat, atol=0.0):
            names = zip(member.coordinate_names, member.forms)
            name = next(name for name, form in names if form == "covariance")
            raise ValueError(
                f"hyperparameters[{family!r}][{name!r}] must be a number or one per column of the "
                f"family: views divide the columns, so that these have no covariances."
            )
        of_columns, shared_grids[family] = grids_alone(member, of_row, len(columns))
        for i, j in enumerate(map(int, columns)):
            start = member.default_hyper(table, columns[i : i + 1])
            inferred = [grid is not None for grid in of_columns[i]]
            hyper[j] = np.where(inferred, start, vectors[i])
            grids[j] = of_columns[i]
    return hyper, grids, shared_grids


def coordinates(family, n_levels):
    """(name, form) of each coordinate of a column: one per level for the pseudo-counts."""
    pairs = zip(FAMILIES[family].coordinate_names, FAMILIES[family].forms)
    return [pair for pair in pairs for _ in range(n_levels if pair[1] == "per_level" else 1)]


def _by_name(family, values):
    """What the user gave for a family, as a mapping."""
    names = FAMILIES[family].names()
    if isinstance(values, Mapping):
        unknown = sorted(set(values) - set(names), key=str)
        if unknown:
            raise ValueError(f"hyperparameters of {family!r} are {', '.join(names)}; got {unknown}")
        return dict(values)
    if len(names) == 1:
        return {names[0]: values}
    if isinstance(values, tuple | list) and len(values) == len(names):
        return dict(zip(names, values))
    raise ValueError(
        f"hyperparameters of {family!r} must be a mapping or a tuple ({', '.join(names)}), "
        f"got {values!r}"
    )


def _one(values, form, where, i, h, n_columns, n_levels):
    """The value of coordinate h of the family's i-th column."""
    per_level = form == "per_level"
    if per_level and isinstance(values, list | tuple) and any(map(np.ndim, values)):
        if len(values) != n_columns:
            raise ValueError(f"{where} has {len(values)} arrays for {n_columns} columns")
        values = values[i]
    array = as_floats(values, where)
    expected = n_levels if per_level else n_columns
    if array.ndim == 0:
        value = float(array)
    elif array.shape == (expected,):
        value = float(array[h if per_level else i])
    else:
        what = "level" if per_level else "column of the family"
        raise ValueError(
            f"{where} must be a number or one per {what} ({expected}), got shape {array.shape}"
        )
    if form != "location" and value <= 0:
        raise ValueError(f"{where} must be positive, got {value}")
    return value


def grids_in_units(model, families):
    """The grids as users read them.

    Parameters
    ----------
    model : ChainPlan
    families : dict of str to int array
        Columns of the Table, of each family, that are shown.

    Returns
    -------
    dict
        "concentration" and "discount" (arrays; all pairs are points of the joint grid), with views
        "view_concentration" and "view_discount" and, by family and name, a list with one grid per
        column of the family; pseudo-counts have one grid per level. Of a row family, one grid for
        what is a number, and one per column for a vector or for the diagonal of a matrix. A
        hyperparameter that is not drawn, being given or fixed by its family, has no grid here.
    """
    table, grids, out = model.table, model.grids, {}
    for of, grid in (("", model.prior_grid), ("view_", model.view_grid)):
        if grid is not None:
            out[f"{of}concentration"] = np.unique(grid.points[:, 0])
            out[f"{of}discount"] = np.unique(grid.points[:, 1])
    for family, columns in families.items():
        if FAMILIES[family].joint:
            of_row = grids[int(columns[0])]
            if family in model.shared_grids:
                of_columns = [grids[int(j)] for j in columns]
                of_row = joined_grids(FAMILIES[family], of_columns, model.shared_grids[family])
            out[family] = row_grids_in_units(family, of_row, columns, table)
            continue
        out[family] = {name: [] for name in FAMILIES[family].names()}
        for j in columns:
            of_column = {name: [] for name in out[family]}
            pairs = coordinates(family, int(table.n_levels[j]))
            for (name, form), grid in zip(pairs, grids[int(j)]):
                if grid is not None:
                    grid = to_user(form, grid, table.offsets[j], table.scales[j])
                of_column[name].append(grid)
            for name, form in dict(pairs).items():
                parts = of_column[name]
                out[family][name].append(parts if form == "per_level" else parts[0])
    return {name: _drawn(of) if name in families else of for name, of in out.items()}


def _drawn(grids):
    """By name the grids, without those of hyperparameters that have none."""
    return {name: grid for name, grid in grids.items() if not _has_none(grid)}


def _has_none(grid):
    """Whether there is no grid: for any column, and any level."""
    return all(map(_has_none, grid)) if isinstance(grid, list) else grid is None
