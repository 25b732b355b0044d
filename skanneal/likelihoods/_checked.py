"""Checks of what a user's likelihood returns, before it is used."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ._conjugate import ConjugateLikelihood
from ._likelihood import Likelihood

REQUIRED = ("log_lik", "statistics", "draw", "prior_draw", "log_prior")
PROPOSES = ("proposal_draw", "proposal_logpdf")
INTEGRATED = ("prepare", "log_lik", "statistics", "draw", "prior_draw", "log_prior")
PACKAGE = __name__.split(".")[0]


def checked(likelihood, proposes=False):
    """A likelihood whose every answer is checked; the package's own come back as they are.

    Parameters
    ----------
    likelihood : Likelihood
    proposes : bool, default=False
        Will atoms be proposed from the data?

    Returns
    -------
    Likelihood

    Raises
    ------
    TypeError
        If it is no Likelihood, or does not write what it must, or inherits an update that
        integrates out atoms of another law than its own.
    """
    if not isinstance(likelihood, Likelihood):
        raise TypeError(
            "likelihood must be a name or an object of a subclass of"
            f" skanneal.likelihoods.Likelihood, got {type(likelihood).__name__}"
        )
    cls = type(likelihood)
    if _is_ours(cls):
        return likelihood
    for name in REQUIRED + PROPOSES * proposes:
        if getattr(cls, name) is getattr(Likelihood, name):
            raise TypeError(f"the likelihood {cls.__name__} must define the method {name}")
    if isinstance(likelihood, ConjugateLikelihood) and likelihood.infers and _is_ours(cls.update):
        changed = [name for name in INTEGRATED if not _is_ours(getattr(cls, name))]
        if changed:
            raise TypeError(
                f"the likelihood {cls.__name__} must define the method update, or have no grids: "
                f"the one it inherits integrates atoms out by the law of {cls.family!r}, of "
                f"which it has changed {', '.join(changed)}"
            )
    return Checked(likelihood)


def _is_ours(part):
    """Is a class or a method the package's own?"""
    return part.__module__.split(".")[0] == PACKAGE


class Checked(Likelihood):
    """Wraps a user's likelihood: raises ValueError or TypeError for wrong return values.

    Parameters
    ----------
    likelihood : Likelihood
    """

    def __init__(self, likelihood):
        self.likelihood = likelihood
        self.shape = None  # of one atom, once it is known

    @property
    def conjugate(self):
        return self.likelihood.conjugate

    @property
    def proposes(self):
        return self.likelihood.proposes

    def encode(self, X):
        rows = self.likelihood.encode(X)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        try:
            length = len(rows)
        except TypeError:
            raise self._error("encode", "rows that have a len()", type(rows).__name__) from None
        if length != n_rows:
            raise self._error("encode", f"{n_rows} rows", f"{length}", ValueError)
        return rows

    def prepare(self, theta):
        return self.likelihood.prepare(theta)

    def log_lik(self, rows, theta, out):
        out.fill(np.nan)
        returned = self.likelihood.log_lik(rows, theta, out)
        if returned is not None and returned is not out:
            raise self._error("log_lik", "nothing, with its answer written into out", returned)
        if not (out < np.inf).all():  # of NaN, too
            i, k = np.argwhere(~(out < np.inf))[0]
            value = f"{out[i, k]} for row {i} of the block and atom {k}"
            raise self._error(
                "log_lik", "every entry of out, below inf and not NaN,", value, ValueError, "write"
            )

    def statistics(self, rows, labels, n_atoms):
        answer = self.likelihood.statistics(rows, labels, n_atoms)
        self._array("statistics", answer, (n_atoms, ...), ("float64", "int64"))
        return answer

    def draw(self, statistics, theta, rng):
        answer = self.likelihood.draw(statistics, theta, rng)
        return self._array("draw", answer, theta.shape)

    def prior_draw(self, n, rng):
        return self._atoms("prior_draw", self.likelihood.prior_draw(n, rng), n)

    def log_prior(self, theta):
        return self._densities("log_prior", self.likelihood.log_prior(theta), len(theta))

    def proposal_draw(self, rows, rng):
        answer = self.likelihood.proposal_draw(rows, rng)
        return self._atoms("proposal_draw", answer, len(rows))

    def proposal_logpdf(self, theta, row):
        answer = self.likelihood.proposal_logpdf(theta, row)
        return self._densities("proposal_logpdf", answer, len(theta))

    def update(self, theta, statistics, sizes, rng):
        self.likelihood.update(theta, statistics, sizes, rng)

    def state(self):
        answer = self.likelihood.state()
        if not isinstance(answer, dict):
            raise self._error("state", "a dict of arrays", type(answer).__name__)
        return _copies(answer)  # `update` works in place

    def set_state(self, state):
        self.likelihood.set_state(_copies(state))

    def log_jacobian(self, n_rows):
        return self.likelihood.log_jacobian(n_rows)

    def features(self, theta):
        return self.likelihood.features(theta)

    def _atoms(self, method, answer, n):
        shape = (n, ...) if self.shape is None else (n, *self.shape)
        answer = self._array(method, answer, shape)
        self.shape = answer.shape[1:]
        return answer

    def _densities(self, method, answer, n):
        self._array(method, answer, (n,), finite=False)
        if not (answer < np.inf).all():
            at = int(np.argmin(answer < np.inf))
            found = f"{answer[at]} for atom {at}"
            raise self._error(method, "log densities below inf, not NaN", found, ValueError)
        return answer

    def _array(self, method, answer, shape, dtypes=("float64",), finite=True):
        what = f"a {' or '.join(dtypes)} array of shape {_shape_text(shape)}"
        if not isinstance(answer, np.ndarray):
            raise self._error(method, what, type(answer).__name__)
        if answer.dtype.name not in dtypes:
            raise self._error(method, what, f"one of {answer.dtype}")
        lengths = [n for n in shape if n is not ...]
        if answer.ndim < len(lengths) or (... not in shape and answer.ndim > len(lengths)):
            raise self._error(method, what, f"shape {answer.shape}", ValueError)
        if list(answer.shape[: len(lengths)]) != lengths:
            raise self._error(method, what, f"shape {answer.shape}", ValueError)
        if finite and not np.isfinite(answer).all():
            at = tuple(map(int, np.argwhere(~np.isfinite(answer))[0]))
            raise self._error(method, "finite numbers", f"{answer[at]} at {at}", ValueError)
        return answer

    def _error(self, method, expected, found, error=TypeError, verb="return"):
        name = f"{type(self.likelihood).__name__}.{method}"
        return error(f"{name} must {verb} {expected}; got {found}")


def _copies(state):
    return {name: np.array(value) for name, value in state.items()}


def _shape_text(shape):
    lengths = ["..." if n is ... else str(n) for n in shape]
    return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"
