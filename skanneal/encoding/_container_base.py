"""What all containers share: labels of columns, and the dtype that holds new values."""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import numbers

import numpy as np

from ._column_names import column_label


class Container:
    """A table as the user holds it; `_containers.py` lists the methods."""

    names = None

    def label(self, j):
        """What error messages call column j."""
        return column_label(self.names, j)

    def beside(self, values):
        """Numbers, one per cell of the table, in a container of its sort."""
        return values

    @staticmethod
    def square(layout, columns, values):
        """Numbers, one per pair of these columns, in a container of that layout."""
        return values


@contextlib.contextmanager
def new_cells(names, j, dtype):
    """Errors of a library that cannot hold the new cells of column j in a dtype name the column."""
    try:
        yield
    except Exception as error:  # pandas, polars and pyarrow raise many classes
        raise ValueError(
            f"{column_label(names, j)} has the dtype {dtype}, which does not hold the cells that"
            f" are to go into it: pass it in the dtype that it had in fit. ({error})"
        ) from error


def dimension_error(n_dimensions):
    if n_dimensions > 2:
        return ValueError(f"Found array with dim {n_dimensions}, while dim <= 2 is required.")
    got = "scalar" if n_dimensions == 0 else "1D"
    return ValueError(
        f"Expected 2D array, got {got} array instead.\nReshape your data either using"
        " array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it"
        " contains a single sample."
    )


def holding_dtype(dtype, values):
    """The NumPy dtype itself if it can hold the values, else float64 or object.

    Numbers are never rounded to whole ones: a fraction turns an integer dtype into float64.
    """
    if values.dtype.kind == "O":
        types = set(map(type, values.tolist())) - {type(None)}
        if all(issubclass(type_, (numbers.Number, np.bool_)) for type_ in types):
            values = np.array(values.tolist())  # whole numbers in integers if there is no gap
            values = values.astype(np.float64) if values.dtype == object else values  # None: NaN
        else:
            text = {"U": str, "S": bytes}.get(dtype.kind)
            return dtype if types == {text} else np.dtype(object)
    if dtype.kind in "fO" or dtype.kind == values.dtype.kind in "mM":
        return dtype
    if dtype.kind == "b":
        fits = np.isin(values, (0, 1)).all()
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # compared with floats, the largest int64 would be 2**63, which is no int64
        most = np.nextafter(2.0**limits.bits if limits.min == 0 else -float(limits.min), 0.0)
        most = min(limits.max, int(most)) if values.dtype.kind == "f" else limits.max
        fits = np.all((values >= limits.min) & (values <= most) & (values == np.rint(values)))
    else:
        return np.dtype(object)
    return dtype if fits else np.dtype(np.float64)


def present(values):
    """The values that are neither None nor NaN: containers with nulls have room for those."""
    if values.dtype.kind == "O":
        return values[[value is not None for value in values.tolist()]]
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values
