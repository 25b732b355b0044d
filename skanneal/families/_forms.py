"""Forms of hyperparameters: their units and lengths.

A number of the user's is offset + scale * cell, so a hyperparameter in cell units is

    form                    in the user's units
    location                offset + scale * value
    scale                   scale * value
    variance, covariance    the product of its two columns' scales * value
    any other               value: it has no unit

A column family has one coordinate of each form, or one for each level of the form "per_level". The
hyperparameters of a row family are one flat vector, and arrays of their natural forms:

    form         natural shape            in the flat vector
    positive     ()                       1
    positives    (n_columns,)             n_columns
    location     (n_columns,)             n_columns
    covariance   (n_columns, n_columns)   the lower triangle, row by row
    common       () or (n_columns,)       1 for all columns, or n_columns; the last form

A covariance that is set coordinate by coordinate is symmetric by construction.
"""

# SPDX-License-Identifier: BSD-3-Clause

from functools import cache

import numpy as np


def to_cells(form, values, offset, scale):
    """Values of a form in cell units; of a covariance matrix with the arrays of its columns."""
    with np.errstate(over="ignore", under="ignore"):
        if form == "location":
            return (values - offset) / scale
        if form == "scale":
            return values / scale
        if form == "covariance":
            return values / scale / scale[:, None]
        return values / scale / scale if form == "variance" else values


def to_user(form, values, offset, scale):
    """The inverse of to_cells."""
    with np.errstate(over="ignore"):  # a variance of numbers near 1e300 is no float64
        if form == "location":
            return values * scale + offset
        if form == "scale":
            return values * scale
        if form == "covariance":
            return values * scale * scale[:, None]
        return values * scale * scale if form == "variance" else values


def length(form, n_columns):
    """Number of coordinates of a form; a common one counts as one number."""
    if form == "covariance":
        return n_columns * (n_columns + 1) // 2
    return 1 if form in ("positive", "common") else n_columns


def starts(forms, n_columns):
    """Where each form begins in the flat vector, and where the last ends: list of int."""
    return np.cumsum([0, *(length(form, n_columns) for form in forms)]).tolist()


def diagonal(n_columns):
    """Places of a matrix's diagonal in its packed lower triangle."""
    j = np.arange(n_columns)
    return j * (j + 3) // 2


@cache
def lower_triangle(n):
    """Rows and columns of the cells of a lower triangle; the same arrays whenever it is asked."""
    places = np.tril_indices(n)
    for of_axis in places:
        of_axis.setflags(write=False)
    return places


def pack(lower):
    """The lower triangle of a matrix, or of an array of matrices in its first two axes."""
    return np.ascontiguousarray(lower[lower_triangle(len(lower))])


def unpack(packed, n_columns):
    """The symmetric matrix of a packed lower triangle."""
    out = np.zeros((n_columns, n_columns))
    rows, columns = lower_triangle(n_columns)
    out[rows, columns] = out[columns, rows] = packed
    return out


def flatten(forms, values, n_columns):
    """The flat vector of values in their natural forms."""
    return np.concatenate(
        [
            pack(np.asarray(value)) if form == "covariance" else np.ravel(value)
            for form, value in zip(forms, values, strict=True)
        ]
    ).astype(np.float64)


def unflatten(forms, flat, n_columns):
    """The inverse of flatten: list of float64 arrays."""
    ends = starts(forms, n_columns)
    out = []
    for form, start, stop in zip(forms, ends[:-1], ends[1:], strict=True):
        part = np.array(flat[start:] if form == "common" else flat[start:stop], dtype=np.float64)
        if form == "covariance":
            part = unpack(part, n_columns)
        one = form == "positive" or (form == "common" and len(part) == 1)
        out.append(part[0] if one else part)
    return out
