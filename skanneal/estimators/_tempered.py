"""What the tempered estimators share: parameters, the run, and what it leaves behind."""

# SPDX-License-Identifier: BSD-3-Clause

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from ..schedules import BaseLadder
from ..tempering import INNER, METHODS, BaseInnerSampler, sample
from ..tempering._sample import INTERRUPTED
from ._named_schedule import NamedScheduleMixin

DISAGREE = 1.1  # R-hat above which chains are said to disagree
ENOUGH_DRAWS = 20  # per chain, below which nothing is said


class BaseTempered(NamedScheduleMixin, BaseEstimator):
    """Base of the tempered estimators; see a subclass for parameters and attributes.

    A subclass makes its target in ``fit``, calls ``self._sample(target)`` and, when nothing can
    fail any more, ``self._keep(result, blocks, interrupted)``.
    """

    _parameter_constraints: dict = {
        "method": [StrOptions(set(METHODS))],
        "inner": [StrOptions(set(INNER)), BaseInnerSampler, tuple, list],
        "schedule": [BaseLadder, None],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "verbose": ["verbose"],
    }

    def _rows(self, X, *y, **options):
        """Validated rows in one order in memory, since sums over them round by it."""
        if hasattr(X, "iloc") and hasattr(X, "sparse"):  # a frame of sparse columns alone
            X = X.sparse.to_dense()
        return validate_data(self, X, *y, dtype=np.float64, order="C", **options)

    def _sample(self, target, max_time):
        """Run the chains in so many seconds, or without a limit; returns a TemperingResult."""
        method = self.method
        if method == "auto":
            method = "none" if self.schedule is None else "stt"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", INTERRUPTED, ConvergenceWarning)  # `_keep` says it
            return sample(
                target,
                method=method,
                schedule=self.schedule,
                inner=self.inner,
                n_chains=self.n_chains,
                n_draws=self.n_draws,
                n_warmup=self.n_warmup,
                max_time=max_time,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
                verbose=self.verbose,
            )

    def _keep(self, result, blocks, interrupted):
        """Set draws, diagnostics and ladder; `blocks` maps a name to its parameters' slice."""
        self.result_ = result
        self.draws_ = result.draws
        self.trace_ = {
            "seconds": result.elapsed,
            "sweeps": result.n_warmup[:, None] + np.arange(1.0, result.draws.shape[1] + 1),
            "log_joint": result.log_prior + result.log_likelihood,
            **{name: result.draws[:, :, i] for i, name in enumerate(result.parameter_names)},
        }
        self.ess_ = {name: result.ess_bulk[part] for name, part in blocks.items()}
        self.r_hat_ = {name: result.r_hat[part] for name, part in blocks.items()}
        self.betas_, self.sizes_ = result.betas, result.sizes
        worst = np.max(np.nan_to_num(result.r_hat, nan=1.0))
        if result.draws.shape[1] >= ENOUGH_DRAWS and worst > DISAGREE:
            warnings.warn(
                f"the chains disagree (R-hat {worst:.2f}): draw more (n_draws, n_warmup), or try "
                f"another method, ladder (schedule) or inner sampler.",
                ConvergenceWarning,
                stacklevel=4,  # the caller of fit
            )
        if interrupted:
            warnings.warn(INTERRUPTED, ConvergenceWarning, stacklevel=4)
