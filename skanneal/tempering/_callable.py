"""A target made of functions, as SciPy's optimisers take them."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

from numpy.typing import ArrayLike

from ._targets import Target


class CallableTarget(Target):
    """A target given by functions for its log prior and log likelihood.

    Parameters
    ----------
    log_prior : callable
        ``log_prior(theta) -> float``.
    log_likelihood : callable
        ``log_likelihood(theta, rows) -> float``, `rows` an array of positions.
    n_parameters, n_rows : int
        Length of theta, and number of rows of data.
    prior_gradient, likelihood_gradient : callable or None, default=None
        ``prior_gradient(theta)``, ``likelihood_gradient(theta, rows)``, which return arrays of
        shape (n_parameters,). Give both or neither; Hamiltonian Monte Carlo needs them.
    draw_prior : callable or None, default=None
        ``draw_prior(generator)``, with a numpy.random.Generator. Without it `sample` needs `init`.
    independent : bool, default=True
        Whether the log likelihood is a sum over rows. An evaluation of a level then gives those of
        all hotter levels too.
    parameter_names : list of str or None, default=None
        Used in labels only.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import CallableTarget, sample
    >>> x = np.array([0.3, 1.2, 0.7, 1.9])
    >>> target = CallableTarget(
    ...     lambda theta: -0.5 * theta @ theta,
    ...     lambda theta, rows: -0.5 * np.sum((x[rows] - theta[0]) ** 2),
    ...     n_parameters=1,
    ...     n_rows=len(x),
    ... )
    >>> result = sample(target, inner="mh", init=[0.0], n_draws=1000, random_state=0)
    >>> bool(abs(result.flat.mean() - x.sum() / 5) < 0.1)
    True
    """

    def __init__(
        self,
        log_prior: Any,
        log_likelihood: Any,
        *,
        n_parameters: Any,
        n_rows: Any,
        prior_gradient: Any = None,
        likelihood_gradient: Any = None,
        draw_prior: Any = None,
        independent: Any = True,
        parameter_names: Any = None,
    ) -> None:
        if (prior_gradient is None) != (likelihood_gradient is None):
            raise ValueError("prior_gradient and likelihood_gradient must be given together.")
        functions = {
            "log_prior": log_prior,
            "log_likelihood": log_likelihood,
            "prior_gradient": prior_gradient,
            "likelihood_gradient": likelihood_gradient,
            "draw_prior": draw_prior,
        }
        for name, function in functions.items():
            needed = name in ("log_prior", "log_likelihood")
            if not callable(function) and (needed or function is not None):
                raise TypeError(f"{name} must be callable, got {function!r}.")
        self.functions = functions
        self.n_parameters, self.n_rows = n_parameters, n_rows
        self.independent = independent
        self.has_gradient = prior_gradient is not None
        self.parameter_names = parameter_names

    @property
    def draws_prior(self) -> Any:
        """Whether `draw_prior` was given."""
        return self.functions["draw_prior"] is not None

    def log_prior(self, theta: ArrayLike, gradient: Any = False) -> Any:
        value = self.functions["log_prior"](theta)
        return value, self.functions["prior_gradient"](theta) if gradient else None

    def log_likelihood(self, theta: ArrayLike, rows: Any, gradient: Any = False) -> Any:
        value = self.functions["log_likelihood"](theta, rows)
        return value, self.functions["likelihood_gradient"](theta, rows) if gradient else None

    def draw_prior(self, generator: Any) -> Any:
        return self.functions["draw_prior"](generator)
