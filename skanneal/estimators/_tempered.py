"""What the tempered estimators share: parameters, the run, and what it leaves behind."""

# SPDX-License-Identifier: BSD-3-Clause

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ..schedules import BaseLadder
from ..tempering import INNER, METHODS, BaseInnerSampler, sample
from ..tempering._given import refuse_masked
from ..tempering._sample import INTERRUPTED
from ._base_chains import BaseChains
from ._callbacks import Round

DISAGREE = 1.1  # R-hat above which chains are said to disagree
ENOUGH_DRAWS = 20  # per chain, below which nothing is said
DISAGREEMENT = (
    "the chains disagree (R-hat {:.2f}): draw more (n_draws, n_warmup), or try another method, "
    "ladder (schedule) or inner sampler."
)


class BaseTempered(BaseChains):
    """Base of the tempered estimators; see a subclass for parameters and attributes.

    A subclass makes its target in ``fit``, calls ``self._sample(target)`` and, when nothing can
    fail any more, gives `_keep` what `_results` makes of the result.
    """

    _parameter_constraints: dict = {
        **{
            name: allowed
            for name, allowed in BaseChains._parameter_constraints.items()
            if name not in ("thin", "warm_start")
        },
        "method": [StrOptions(set(METHODS))],
        "inner": [StrOptions(set(INNER)), BaseInnerSampler, tuple, list],
        "schedule": [BaseLadder, None],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
    }

    def to_arviz(self) -> Any:
        """Return the draws in the form of ArviZ; this needs the package arviz-base.

        Returns
        -------
        tree : xarray.DataTree
            The tree that `TemperingResult.to_arviz` returns: ``posterior`` and ``sample_stats``. It
            has no groups of rows, of which the draws hold no likelihood.
        """
        check_is_fitted(self)
        return self.result_.to_arviz()

    def _rows(self, X, *y, **options):
        """Validated rows in one order in memory, since sums over them round by it."""
        refuse_masked(X=X, **dict(zip("y", y)))
        if hasattr(X, "iloc") and hasattr(X, "sparse"):  # a frame of sparse columns alone
            X = X.sparse.to_dense()
        return validate_data(self, X, *y, dtype=np.float64, order="C", **options)

    def _sample(self, target, max_time):
        """Run the chains in so many seconds, or without a limit; returns a TemperingResult."""
        method = self.method
        if method == "auto":
            method = "none" if self.schedule is None else "stt"
        with warnings.catch_warnings(), Round(self, self.n_chains) as chains:
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
                progress=chains.all_chains,
            )

    def _results(self, result, blocks, interrupted):
        """What `_keep` takes: draws, diagnostics and ladder, and what is to be said of them.

        blocks : name -> where its parameters are.
        """
        fitted = {
            "result_": result,
            "draws_": result.draws,
            "trace_": {
                "seconds": result.elapsed,
                "sweeps": result.n_warmup[:, None] + np.arange(1.0, result.draws.shape[1] + 1),
                "log_joint": result.log_prior + result.log_likelihood,
                **{name: result.draws[:, :, i] for i, name in enumerate(result.parameter_names)},
            },
            "ess_": {name: result.ess_bulk[part] for name, part in blocks.items()},
            "r_hat_": {name: result.r_hat[part] for name, part in blocks.items()},
            "betas_": result.betas,
            "sizes_": result.sizes,
        }
        worst = np.max(np.nan_to_num(result.r_hat, nan=1.0))
        complaints = [INTERRUPTED] * interrupted
        if result.draws.shape[1] >= ENOUGH_DRAWS and worst > DISAGREE:
            complaints.insert(0, DISAGREEMENT.format(worst))
        return fitted, complaints
