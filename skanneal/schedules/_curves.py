"""Turn a user's curve, a callable or an array, into the knots of a path."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

# A callable or an array of fractions is followed at this many equal steps of the assignments.
_N_STEPS = 256


def as_curve(name, values, *, allow_sizes=False):
    """Check a curve given as an array and return it; a callable is returned as it is.

    Parameters
    ----------
    name : str
        The parameter, for error messages.
    values : callable or array-like of shape (n_points,)
        Fractions in [0, 1] that end at 1.
    allow_sizes : bool, default=False
        Whether integers may be given instead; they are only checked not to be negative.

    Returns
    -------
    curve : callable or ndarray of shape (n_points,)
        float64, or int64 if integers were given and allowed.
    """
    if callable(values):
        return values
    values = np.asarray(values)
    if values.ndim != 1 or len(values) < 2 or values.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must be a callable or a one-dimensional array of 2 or more numbers."
        )
    if allow_sizes and values.dtype.kind in "iu":
        if values.min() < 0:
            raise ValueError(f"{name} must not hold negative integers.")
        return values.astype(np.int64)
    values = values.astype(np.float64)
    if not np.all((values >= 0.0) & (values <= 1.0)) or values[-1] != 1.0:
        raise ValueError(f"{name} must hold numbers in [0, 1] and end at 1.")
    return values


def as_positions(at):
    """Check the positions of a curve's points; None, or increasing from 0."""
    if at is None:
        return None
    at = np.asarray(at)
    if at.ndim != 1 or len(at) < 2 or at.dtype.kind not in "iuf" or at[0] != 0:
        raise ValueError("at must be a one-dimensional array of 2 or more numbers from 0.")
    if not np.all(np.diff(at.astype(np.float64)) > 0):
        raise ValueError("at must be strictly increasing.")
    if at.dtype.kind in "iu":
        return at.astype(np.int64)
    if at[-1] != 1.0:
        raise ValueError("at must end at 1, or be integers: numbers of assignments.")
    return at.astype(np.float64)


def evaluate(name, curve, at, points):
    """Return a curve's values at fractions of the assignments.

    Parameters
    ----------
    name : str
        The parameter, for error messages.
    curve : callable or ndarray of shape (n_points,)
        From `as_curve`. A callable must rise, from no less than 0 to 1.
    at : ndarray of shape (n_points,) or None
        Fractions at which an array's values hold; None: equally spaced.
    points : ndarray of shape (n,)
        Fractions in [0, 1].

    Returns
    -------
    values : ndarray of shape (n,), float64
    """
    if not callable(curve):
        at = np.linspace(0.0, 1.0, len(curve)) if at is None else at
        return np.interp(points, at, curve)
    values = np.array([float(curve(float(t))) for t in points])
    if not np.all((values >= 0.0) & (values <= 1.0)) or abs(values[-1] - 1.0) > 1e-9:
        raise ValueError(f"{name} must return numbers in [0, 1], and 1 at 1.")
    if np.any(np.diff(values) < 0.0):
        raise ValueError(f"{name} must not fall anywhere on [0, 1].")
    values[-1] = 1.0
    return values


def curve_knots(size_curve, exponent_curve, at, annealed, n_rows, start):
    """Return the knots of a path that follows curves over fractions of the assignments.

    Where the size would grow by more than one row per assignment it is moved to the nearest size
    that can be reached, and from which all rows can be reached in time.

    Parameters
    ----------
    size_curve : callable or ndarray
        Fractions of the rows, or (int64) sizes.
    exponent_curve : callable, ndarray or None
        Energy exponents.
    at : ndarray of shape (n_points,), float64, or None
        Fractions of the assignments for arrays.
    annealed : int
        Assignments the curves span, at least `n_rows`.
    n_rows : int
        Rows of the data.
    start : {"empty", "prior"}
        Size 0 or `n_rows` at 0 assignments.

    Returns
    -------
    knots : list of (int, int, float)
        (assignment, size, beta).
    """
    points = np.linspace(0.0, 1.0, _N_STEPS + 1)
    for curve in (size_curve, exponent_curve):
        if curve is not None and not callable(curve):
            points = np.union1d(points, np.linspace(0.0, 1.0, len(curve)) if at is None else at)
    assignments, first = np.unique(np.rint(points * annealed).astype(np.int64), return_index=True)
    points = points[first]
    points[-1] = 1.0
    sizes = evaluate("size", size_curve, at, points)
    if callable(size_curve) or size_curve.dtype.kind == "f":
        sizes = sizes * n_rows
    elif size_curve[-1] != n_rows:
        raise ValueError(
            f"size holds integers, which are sizes: they must end at the {n_rows} rows of the "
            f"data, not at {size_curve[-1]}. Fractions are given as floats."
        )
    # The slack keeps a product such as 0.3 * 10 = 3.0000000000000004 from counting as 4 rows.
    sizes = np.clip(np.ceil(sizes - 1e-9 * n_rows), 1, n_rows).astype(np.int64)
    sizes = _reachable(assignments, sizes, n_rows, start)
    betas = np.ones(len(points))
    if exponent_curve is not None:
        betas = evaluate("exponent", exponent_curve, at, points)
    return list(zip(assignments.tolist(), sizes.tolist(), betas.tolist()))


def exact_knots(assignments, sizes, betas, n_rows, start):
    """Return the knots given by arrays of assignments and sizes, unchanged.

    Parameters
    ----------
    assignments, sizes : ndarray of shape (n_knots,), int64
        The knots.
    betas : ndarray of shape (n_knots,) or None
        Energy exponents.
    n_rows : int
        Rows of the data; what `sizes` must end at.
    start : {"empty", "prior"}
        Size 0 or `n_rows` at 0 assignments.

    Returns
    -------
    knots : list of (int, int, float)
        (assignment, size, beta).
    """
    if sizes[-1] != n_rows or sizes.max() > n_rows:
        raise ValueError(
            f"size holds sizes up to {sizes.max()} and ends at {sizes[-1]}, but the data have "
            f"{n_rows} rows."
        )
    if sizes[0] != (n_rows if start == "prior" else 0) or sizes[1:].min() < 1:
        raise ValueError(
            "size must hold sizes of 1 or more, after a first of 0 (start='empty') or of all "
            "rows (start='prior')."
        )
    if np.any(np.diff(sizes) > np.diff(assignments)):
        raise ValueError("size must not grow by more than one row per assignment of at.")
    betas = np.ones(len(sizes)) if betas is None else betas
    return list(zip(assignments.tolist(), sizes.tolist(), betas.tolist()))


def _reachable(assignments, sizes, n_rows, start):
    """Bring sizes to where growth by one row per assignment leads from start to all rows."""
    if start == "prior":
        sizes[0] = n_rows
    else:
        sizes = np.minimum(sizes, assignments)
    sizes[-1] = n_rows
    # Not more than could have come in; then not fewer than will be needed.
    sizes = assignments + np.minimum.accumulate(sizes - assignments)
    sizes[-1] = n_rows
    return assignments + np.maximum.accumulate((sizes - assignments)[::-1])[::-1]
