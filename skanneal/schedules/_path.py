"""The path of a schedule: how many rows the subsample holds after each assignment.

A segment of it is the stretch between two full churns of the subsample: it begins at assignment
``a0`` with ``n0`` rows and runs ``max(1, n0)`` assignments.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np


class Path(NamedTuple):
    """Subsample size and energy exponent as functions of the number of assignments.

    Between two knots the size is ``size_at(knots, a)`` and the exponent is linear.

    Attributes
    ----------
    assignments : ndarray of shape (n_knots,), int64
        Strictly increasing, from 0 to the total number of assignments.
    sizes : ndarray of shape (n_knots,), int64
        Rows in the subsample at each knot; the last is the number of rows of the data.
    betas : ndarray of shape (n_knots,), float64
        Energy exponent (likelihood ** beta) at each knot.
    start : {"empty", "prior"}
        "prior": every row is labelled from the partition prior before the first assignment.
    burn_in : int or None, default=None
        Assignments in which moves may still adapt; None: half of them.
    skipped : tuple of int, default=()
        Ends of segments after which nothing but the churn is run.
    """

    assignments: np.ndarray
    sizes: np.ndarray
    betas: np.ndarray
    start: str
    burn_in: int | None = None
    skipped: tuple = ()


class Segment(NamedTuple):
    """The assignments between two full churns.

    Attributes
    ----------
    start, stop : int
        Assignments ``start + 1, ..., stop`` are made.
    knots : ndarray of shape (n_knots, 2), int64
        (assignment, size) knots that cover ``start`` to ``stop``; they may reach beyond both.
        ``size_at(knots, a)`` is the size after assignment ``a``.
    beta : float
        Energy exponent of the segment.
    """

    start: int
    stop: int
    knots: np.ndarray
    beta: float


def size_at(knots, assignments):
    """Return the subsample size after a number of assignments.

    Between knots ``(a_i, n_i)`` and ``(a_j, n_j)`` it is
    ``n_i + ceil((a - a_i) * (n_j - n_i) / (a_j - a_i))`` in integer arithmetic.

    Parameters
    ----------
    knots : ndarray of shape (n_knots, 2), int64
        At least two (assignment, size) pairs, assignments strictly increasing.
    assignments : int or array-like of int
        Numbers of assignments within the knots.

    Returns
    -------
    sizes : ndarray of int64
        Of the shape of `assignments`.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.schedules import size_at
    >>> size_at(np.array([[0, 0], [6, 2], [9, 2]]), [0, 1, 3, 4, 6, 9]).tolist()
    [0, 1, 1, 2, 2, 2]
    """
    knots = np.asarray(knots, dtype=np.int64)
    assignments = np.asarray(assignments, dtype=np.int64)
    right = np.clip(np.searchsorted(knots[:, 0], assignments), 1, len(knots) - 1)
    left = knots[right - 1]
    step = knots[right] - left
    # Floor division of the negative is the ceiling.
    return left[..., 1] - (-(assignments - left[..., 0]) * step[..., 1]) // step[..., 0]


def size_after(knots, assignments):
    """What `size_at` returns for a single number, as an int."""
    right = min(max(int(np.searchsorted(knots[:, 0], assignments)), 1), len(knots) - 1)
    (start, size), (stop, last) = knots[right - 1 : right + 1].tolist()
    return size - ((start - assignments) * (last - size)) // (stop - start)


def begun_in_turn(path, size):
    """Return a path that begins otherwise, and goes on as another one does.

    The first rows enter one after another, without churn. They are churned until the other path,
    too, holds so many; then that is followed.

    Parameters
    ----------
    path : Path
    size : int
        How many rows enter so, fewer than all.

    Returns
    -------
    begun : Path or None
        None if the other path begins with rows, or does not churn the first ones either.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.schedules import Path
    >>> from skanneal.schedules._path import begun_in_turn
    >>> path = Path(np.array([0, 60, 90]), np.array([0, 20, 40]), np.ones(3), "empty")
    >>> begun_in_turn(path, 10)[:2]
    (array([ 0, 10, 30, 60, 90]), array([ 0, 10, 10, 20, 40]))
    """
    right = int(np.argmax(path.sizes >= size))
    if right == 0 or path.start != "empty":
        return None
    start, stop = path.assignments[right - 1 : right + 1].tolist()
    before, after = path.sizes[right - 1 : right + 1].tolist()
    reached = start - (before - size) * (stop - start) // (after - before)
    if reached <= size:
        return None
    right += reached == stop
    assignments = np.concatenate([[0, size, reached], path.assignments[right:]])
    return path._replace(
        assignments=assignments,
        sizes=np.concatenate([[0, size, size], path.sizes[right:]]),
        betas=np.interp(assignments, path.assignments, path.betas),
    )
