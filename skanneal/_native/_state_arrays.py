"""What is asked of the arrays of a state before they are believed.

A state comes back from outside: from `warm_start`, or from a model that was loaded. Compiled code
reads and writes wherever its integers point.
"""

# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import math

import numpy as np


class StateError(ValueError):
    """An array of a state is missing, or is none that this package would have written.

    Parameters
    ----------
    key : str
        The array's, in the dict that was given.
    fault : str
    """

    def __init__(self, key, fault):
        super().__init__(key, fault)
        self.key, self.fault = key, fault

    def __str__(self):
        return (
            f"the state's array {self.key!r} {self.fault}: the state was changed, or belongs to"
            " other data or another version"
        )


@contextlib.contextmanager
def part(name):
    """Errors of a part of a state name its keys as the whole has them."""
    try:
        yield
    except StateError as error:
        raise StateError(f"{name}/{error.key}", error.fault) from None


def state_array(arrays, key, kinds, shape=None, low=-math.inf, high=math.inf):
    """An array of a state, of the right sort.

    Parameters
    ----------
    arrays : dict of str to ndarray
    key : str
    kinds : str
        The kinds of dtype that it may have; floats must be finite.
    shape : tuple of (int or None), optional
        None is any length.
    low, high : number
        The least and the greatest value.

    Returns
    -------
    array : ndarray

    Raises
    ------
    StateError
    """
    if key not in arrays:
        raise StateError(key, "is missing")
    array = np.asarray(arrays[key])
    if array.dtype.kind not in kinds:
        raise StateError(key, f"has the dtype {array.dtype}")
    fits = shape is None or (
        len(shape) == array.ndim and all(n in (None, m) for n, m in zip(shape, array.shape))
    )
    if not fits:
        expected = tuple("any" if n is None else n for n in shape)
        raise StateError(key, f"has the shape {array.shape}, not {expected}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise StateError(key, "holds a number that is not finite")
    if array.dtype.kind in "iuf" and array.size and not low <= array.min() <= array.max() <= high:
        raise StateError(
            key, f"holds {array.min()} to {array.max()}, but must lie between {low} and {high}"
        )
    return array


def check_ascending(array, key):
    """Raise unless each number of a vector is above the one before."""
    if not (array[1:] > array[:-1]).all():
        raise StateError(key, "must ascend")
