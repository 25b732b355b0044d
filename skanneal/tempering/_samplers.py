"""Inner samplers as hyperparameters: what updates theta within a level."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from .._native._doc_link import DocLink


class BaseInnerSampler(DocLink, BaseEstimator):
    """Base of the inner samplers, and of your own: a subclass defines `move`.

    `move` must leave the density of its level as it is, and be reversible with respect to it if the
    method is tempered transitions ("stt" or "tt"). Nothing can check this: compare the draws of
    `method="none"` with those of a sampler of the package. A subclass is a scikit-learn estimator:
    its `__init__` only stores its parameters. If chains run in other processes, it must pickle.

    Attributes
    ----------
    step_size : float
        What `level.steps` begin with at the target's level; at level m it is divided by the square
        root of beta_m.
    target_accept, adapt : float, bool
        In warm-up `level.steps` adapt, level by level, so that this share of the moves leads to
        another theta. A sampler that always moves sets ``adapt = False``.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import BaseInnerSampler, GaussianMeanTarget, sample
    >>> class Hops(BaseInnerSampler):  # Metropolis, uniform steps
    ...     def move(self, theta, level, generator):
    ...         to = theta + level.steps * generator.uniform(-1, 1, len(theta))
    ...         log_ratio = level.log_density(to) - level.log_density(theta)
    ...         return to if np.log1p(-generator.random()) < log_ratio else theta
    >>> target = GaussianMeanTarget(np.random.default_rng(0).normal(2, 1, (100, 3)))
    >>> result = sample(target, method="stt", inner=Hops(), random_state=0)
    >>> bool(np.all(abs(result.flat.mean(axis=0) - target.posterior()[0]) < 0.05))
    True
    """

    _parameter_constraints: dict = {
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "target_accept": [Interval(Real, 0, 1, closed="neither")],
        "adapt": ["boolean"],
    }
    step_size: Any = 0.1
    target_accept: Any = 0.5
    adapt: bool = True

    def move(self, theta: Any, level: Any, generator: Any) -> Any:
        """The next theta of a chain that is at `theta`, at one level of its ladder.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            A copy.
        level : Level
            ``level.log_density(theta)`` is the log density up to a constant, and
            ``level.gradient(theta)`` its gradient; asking again about `theta`, or about the point
            asked about last, costs nothing. ``level.steps`` are lengths of steps for each
            parameter, ``level.beta`` is the inverse temperature, ``level.number`` 0 at the target.
        generator : numpy.random.Generator
            The chain's: the only source of chance, so that a seed gives the same draws.

        Returns
        -------
        theta : ndarray of shape (n_parameters,)
            The same numbers if the chain stays.
        """
        raise NotImplementedError(f"{type(self).__name__} must define move.")

    def _update(self, n_parameters):
        """What the compiled code needs to know."""
        own = {"sampler": self, "target": self.target_accept, "adapt": self.adapt}
        return own | {"hamiltonian": False, "n_steps": 1, "least_steps": 1}


class RandomWalk(BaseInnerSampler):
    """Random-walk Metropolis with normal proposals.

    Parameters
    ----------
    step_size : float, default=0.1
        Standard deviation of a proposal at the target's level; at level m it is divided by the
        square root of beta_m.
    n_steps : int, default=1
        Number of steps in one update.
    target_accept : float or "auto", default="auto"
        Acceptance that the step size is adapted to; "auto" is 0.44 for one parameter, else 0.234.
    adapt : bool, default=True
        Whether step sizes adapt during warm-up, level by level.

    Examples
    --------
    >>> from skanneal.tempering import RandomWalk
    >>> RandomWalk(n_steps=5)
    RandomWalk(n_steps=5)
    """

    _parameter_constraints: dict = {
        **BaseInnerSampler._parameter_constraints,
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "target_accept": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        step_size: Any = 0.1,
        n_steps: Any = 1,
        target_accept: Any = "auto",
        adapt: bool = True,
    ) -> None:
        self.step_size = step_size
        self.n_steps = n_steps
        self.target_accept = target_accept
        self.adapt = adapt

    def _update(self, n_parameters):
        target = self.target_accept
        if target == "auto":
            target = 0.44 if n_parameters == 1 else 0.234
        return {
            "hamiltonian": False,
            "n_steps": self.n_steps,
            "least_steps": self.n_steps,
            "target": target,
            "adapt": self.adapt,
        }


class HMC(BaseInnerSampler):
    """Hamiltonian Monte Carlo; the momentum is drawn anew for each trajectory.

    Parameters
    ----------
    step_size : float, default=0.1
        Step of the leapfrog at the target's level; at level m it is divided by the square root of
        beta_m.
    n_leapfrog : int, default=10
        Number of steps of the longest trajectory.
    random_length : bool, default=True
        Whether the number of steps is drawn uniformly from 1 to `n_leapfrog`, so that trajectories
        do not always return to where they began. Otherwise it is always `n_leapfrog`.
    target_accept : float, default=0.8
        Acceptance that the step size is adapted to.
    adapt : bool, default=True
        Whether step sizes adapt during warm-up, level by level.

    Examples
    --------
    >>> from skanneal.tempering import HMC
    >>> HMC(n_leapfrog=5)
    HMC(n_leapfrog=5)
    """

    _parameter_constraints: dict = {
        **BaseInnerSampler._parameter_constraints,
        "n_leapfrog": [Interval(Integral, 1, None, closed="left")],
        "random_length": ["boolean"],
    }

    def __init__(
        self,
        *,
        step_size: Any = 0.1,
        n_leapfrog: Any = 10,
        random_length: Any = True,
        target_accept: Any = 0.8,
        adapt: bool = True,
    ) -> None:
        self.step_size = step_size
        self.n_leapfrog = n_leapfrog
        self.random_length = random_length
        self.target_accept = target_accept
        self.adapt = adapt

    def _update(self, n_parameters):
        return {
            "hamiltonian": True,
            "n_steps": self.n_leapfrog,
            "least_steps": 1 if self.random_length else self.n_leapfrog,
            "target": self.target_accept,
            "adapt": self.adapt,
        }


INNER = {"mh": RandomWalk, "hmc": HMC}


def resolve_inner(inner, target):
    """Return validated copies of the inner samplers named or given.

    Parameters
    ----------
    inner : str, BaseInnerSampler or sequence of them
        Several are applied there and back: first to last to first.
    target : Target
        Hamiltonian Monte Carlo needs its gradient.

    Returns
    -------
    samplers : list of BaseInnerSampler
    """
    given = list(inner) if isinstance(inner, (list, tuple)) else [inner]
    samplers = []
    for one in given:
        if isinstance(one, str) and one in INNER:
            one = INNER[one]()
        if not isinstance(one, BaseInnerSampler):
            names = ", ".join(repr(name) for name in INNER)
            raise ValueError(f"inner must be an inner sampler or one of {names}, not {one!r}.")
        one = clone(one)
        one._validate_params()
        if isinstance(one, HMC) and not target.has_gradient:
            raise ValueError(
                f"inner='hmc' needs gradients, which {type(target).__name__} does not give "
                f"(has_gradient is false): use inner='mh'."
            )
        samplers.append(one)
    if not samplers:
        raise ValueError("inner must name at least one sampler.")
    return samplers
