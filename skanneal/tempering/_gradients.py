"""Compare a target's gradients with finite differences of its values."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._native._types import Seed
from ._targets import prior_draw


def check_gradient(
    target: Any, theta: ArrayLike | None = None, *, rtol: float = 1e-4, random_state: Seed = 0
) -> Any:
    """Raise a ValueError if a target's gradient differs from finite differences of its value.

    It compares central differences, one parameter at a time, of the log prior and of the log
    likelihood of all rows and of half of them.

    Parameters
    ----------
    target : Target
        A target with ``has_gradient``.
    theta : array-like of shape (n_parameters,) or None, default=None
        Where to compare; None draws from the prior.
    rtol : float, default=1e-4
        Difference allowed, relative to the larger of 1, the gradient's largest entry and the
        rounding of the value itself.
    random_state : int, default=0
        Seed of the draw from the prior, and of the choice of half the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import GaussianMeanTarget, check_gradient
    >>> check_gradient(GaussianMeanTarget(np.eye(3)))
    """
    if not target.has_gradient:
        raise ValueError(
            f"{type(target).__name__} gives no gradient to check (has_gradient is false)."
        )
    generator = np.random.Generator(np.random.PCG64(random_state))
    theta = prior_draw(target, generator) if theta is None else np.array(theta, dtype=np.float64)
    order = np.argsort(generator.random(target.n_rows), kind="stable")
    half = max(1, target.n_rows // 2)
    bound = target.bind(order, [target.n_rows, half] if half < target.n_rows else [half])
    functions = {"log prior": bound.prior}
    for level in range(bound.n_levels):
        functions[f"log likelihood of {(target.n_rows, half)[level]} rows"] = (
            lambda at, gradient, level=level: _first(bound.evaluate(at, level, gradient))
        )
    for name, function in functions.items():
        _compare(type(target).__name__, name, function, theta, rtol)


def _first(answer):
    values, gradient = answer
    return values[0], gradient


def _compare(owner, name, function, theta, rtol):
    value, gradient = function(theta, True)
    if not np.isfinite(value):
        raise ValueError(f"the {name} of {owner} is {value} where its gradient is to be checked.")
    steps = 1e-5 * np.maximum(1.0, np.abs(theta))
    differences = np.empty(len(theta))
    for i, step in enumerate(steps):
        shift = np.zeros(len(theta))
        shift[i] = step
        above, below = function(theta + shift, False)[0], function(theta - shift, False)[0]
        differences[i] = (above - below) / (2 * step)
    rounding = 10 * np.finfo(float).eps * abs(value) / steps.min()
    allowed = rtol * max(1.0, np.abs(differences).max()) + rounding
    worst = int(np.argmax(np.abs(gradient - differences)))
    if not np.abs(gradient - differences).max() <= allowed:
        raise ValueError(
            f"the gradient of the {name} of {owner} does not belong to its value: parameter "
            f"{worst} has {gradient[worst]:.6g}, finite differences give {differences[worst]:.6g}."
        )
