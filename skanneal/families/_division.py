"""Families of whole rows whose columns may be divided among the views of a CrossCat.

Of such a family (its `division` says so) the prior of some columns is the marginal of the prior of
all of them. So each column has hyperparameters by itself, those of the family for this column
alone, and a block has those of its columns together: a location and a variance are the column's own
and go with it from view to view; what is one number for a row is shared by all of the family's
columns, in whatever view, or grows by a fixed step with each column (`division.growth`).
Covariances are 0 where they are no variances.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._forms import diagonal, flatten, starts, unflatten

OWN = ("location", "covariance")  # forms of what is a column's own, a variance the latter


def joined(member, vectors):
    """The flat vector of columns together, from that of each column alone, in their order."""
    d = len(vectors)
    alone = zip(*(unflatten(member.forms, vector, 1) for vector in vectors))
    values = []
    for name, form, of_columns in zip(member.coordinate_names, member.forms, alone):
        if form == "covariance":
            values.append(np.diag(np.ravel(of_columns)))
        elif form == "location":
            values.append(np.ravel(of_columns))
        else:
            values.append(of_columns[0] + (d - 1) * member.division.growth.get(name, 0.0))
    return flatten(member.forms, values, d)


def alone(member, flat, n_columns):
    """The inverse of `joined`: float64 array of shape (n_columns, n_coordinates)."""
    out = []
    values = unflatten(member.forms, flat, n_columns)
    for name, form, value in zip(member.coordinate_names, member.forms, values):
        if form == "covariance":
            value = np.diag(value)
        elif form != "location":
            value = value - (n_columns - 1) * member.division.growth.get(name, 0.0)
        out.append(np.broadcast_to(value, n_columns))
    return np.column_stack(out)


def joined_grids(member, grids, shared_grids=None):
    """Grids of the flat vector of columns together, from those of each column alone, and of what
    the columns share. Without the latter it has none, since it is drawn for all views at once."""
    d = len(grids)
    ends = starts(member.forms, d)
    out = [None] * ends[-1]
    for h, (name, form) in enumerate(zip(member.coordinate_names, member.forms)):
        if form in OWN:
            places = np.arange(d) if form == "location" else diagonal(d)
            for place, of_column in zip(places, grids):
                out[ends[h] + place] = of_column[h]
        elif shared_grids is not None and shared_grids[h] is not None:
            out[ends[h]] = shared_grids[h] + (d - 1) * member.division.growth.get(name, 0.0)
    return out


def grids_alone(member, grids, n_columns):
    """The inverse of `joined_grids`: for each column a list of grids, and those that are shared."""
    ends = starts(member.forms, n_columns)
    of_columns = [[None] * len(member.forms) for _ in range(n_columns)]
    shared_grids = [None] * len(member.forms)
    for h, (name, form) in enumerate(zip(member.coordinate_names, member.forms)):
        if form in OWN:
            places = np.arange(n_columns) if form == "location" else diagonal(n_columns)
            for place, of_column in zip(places, of_columns):
                of_column[h] = grids[ends[h] + place]
        elif grids[ends[h]] is not None:
            growth = member.division.growth.get(name, 0.0)
            shared_grids[h] = grids[ends[h]] - (n_columns - 1) * growth
    return of_columns, shared_grids


def shared(member):
    """Coordinates of a column alone that all columns share: list of int."""
    return [h for h, form in enumerate(member.forms) if form not in OWN]


def divided(member, columns, values):
    """Whether what stands by column stands under each of these, and not for a whole row under the
    first."""
    return member.division is not None and all(int(j) in values for j in columns)


def vectors_of(member, columns, hyper):
    """What a block of these columns, ascending, takes as `hyper`, from what stands by column."""
    if divided(member, columns, hyper):
        return [joined(member, [hyper[int(j)] for j in columns])]
    return [hyper[int(j)] for j in member.key_columns(columns)]


def by_column(block):
    """A block's hyperparameters: dict of int to float array."""
    if block.division is None:
        return {j: block.get_hyper(f) for f, j in enumerate(block.columns.tolist())}
    vectors = alone(type(block), block.get_hyper(0), len(block.columns))
    return dict(zip(block.columns.tolist(), vectors))
