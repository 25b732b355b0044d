"""The limits within which the kernels take hyperparameters; what a user fixes is checked here.

The kernels score in float32, which ends at 3e38. In cell units (see families/_scaling.py) a cell
is at most LARGEST_CELL, 1e14, so a location beyond it is out of reach of all data, and a variance
beyond its square, 1e28, too. Neither a standard deviation of 1e-12 nor what has no unit, between
1e-12 and 1e12, takes a product of theirs beyond float32 or a log-gamma function's digits.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families._scaling import LARGEST_CELL

# By form: the least and the greatest size, and of what.
VARIANCE = 1e-24, LARGEST_CELL**2, " columns' variances"
LIMITS = {
    "location": (0.0, LARGEST_CELL, " columns' spreads"),
    "scale": (1e-12, LARGEST_CELL, " columns' means"),
    "variance": VARIANCE,
    "covariance": VARIANCE,
}
POSITIVE = 1e-12, 1e12, ""


def as_floats(values, where):
    """A float64 array of what may be ints of any size, fractions or decimals, all finite."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{where} must be finite in float64: it is too large") from None
    except (TypeError, ValueError):
        raise ValueError(f"{where} must be numbers, got {values!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{where} must be finite, got {values!r}")
    return array


def check_cells(cells, form, where):
    """Raise if a hyperparameter in cell units lies beyond the limits of its form.

    Parameters
    ----------
    cells : float or array
        For a covariance, its diagonal.
    form : str
        As in families/_forms.py.
    where : str
        What the error names.
    """
    least, most, of = LIMITS.get(form, POSITIVE)
    sizes = np.abs(cells)
    if not ((sizes >= least) & (sizes <= most)).all():
        raise ValueError(
            f"{where} is out of all proportion: it must lie within {least:g} and {most:g}{of}"
        )
