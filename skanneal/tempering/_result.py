"""What tempered sampling returns: draws, and what says how far to trust them."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from ..summary import ess, r_hat, tail_ess

STACKED = (
    "draws",
    "log_prior",
    "log_likelihood",
    "elapsed",
    "betas",
    "sizes",
    "acceptance",
    "swap_acceptance",
    "pass_acceptance",
    "exchange_acceptance",
    "round_trips",
    "step_sizes",
    "scale",
    "nan_rejections",
    "seconds",
    "seconds_warmup",
    "n_warmup",
)


class TemperingResult:
    """Draws of several chains and their diagnostics; `sample` returns it.

    Parameters
    ----------
    records : list of dict
        One per chain.
    method : str
        As asked for.
    parameter_names : list of str
        Names of the target's parameters, for labels.
    interrupted : bool
        Whether an interrupt cut the run short.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_parameters)
        Draws from the target. A time limit leaves fewer draws, the same number for every chain.
        After an interrupt, those chains and that number of draws per chain are kept that give the
        most draws in all.
    log_prior, log_likelihood : ndarray of shape (n_chains, n_draws)
        Log prior, and log likelihood of all rows, at the draws.
    elapsed : ndarray of shape (n_chains, n_draws)
        Seconds from the beginning of the chain, including warm-up, to each draw.
    betas, sizes : ndarray of shape (n_chains, n_levels)
        The ladder during the draws: inverse temperatures, and numbers of rows (all rows for
        tempering by powers).
    acceptance : ndarray of shape (n_chains, n_updates, n_levels)
        Mean acceptance probability of the inner updates.
    swap_acceptance : ndarray of shape (n_chains, n_levels - 1)
        Mean probability of crossing between neighbouring levels; for tempered transitions, the mean
        of the pair's factor of the acceptance of the pass.
    pass_acceptance : ndarray of shape (n_chains,)
        Mean acceptance of tempered transitions; NaN for other methods.
    exchange_acceptance : ndarray of shape (n_chains,)
        Mean acceptance of the exchanges of rows that resample subsets; NaN if there were none.
    round_trips : ndarray of int of shape (n_chains,)
        Number of trips from the target to the hottest level and back; for tempered transitions, of
        accepted passes.
    step_sizes : ndarray of shape (n_chains, n_updates, n_levels)
        In units of `scale`, ndarray of shape (n_chains, n_parameters).
    nan_rejections : ndarray of int of shape (n_chains, n_levels)
        Number of likelihoods that were not a number; each counted as a rejection.
    seconds, seconds_warmup : ndarray of shape (n_chains,)
        Wall time of draws and of warm-up.
    n_warmup : ndarray of int of shape (n_chains,)
        Warm-up iterations made.
    r_hat, ess_bulk, ess_tail, ess_paper : ndarray of shape (n_parameters,)
        Rank-normalised split R-hat, bulk and tail effective sample size of all chains together;
        and the estimator of van de Meent, Paige and Wood (2014), eq. (8), which scatters widely
        with few chains and is there for comparison with the paper.
    log_ratios : ndarray of shape (n_chains, n_levels - 1) or None
        Parallel tempering's log Z_{m-1} / Z_m, by Bennett's acceptance ratio. None with other
        methods, and where rows were exchanged between levels: each exchange changes Z_m.
    log_evidence, log_evidence_error : float
        log p(data) and its standard error from the spread of the chains (NaN for one chain); NaN
        unless there are `log_ratios` down to the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import GaussianMeanTarget, sample
    >>> sample(GaussianMeanTarget(np.eye(3)), n_draws=20, n_warmup=20, random_state=0)
    TemperingResult(method='stt', n_chains=4, n_draws=20, n_parameters=3)
    """

    def __init__(self, records: Any, method: str, parameter_names: Any, interrupted: Any) -> None:
        self.method, self.interrupted = method, interrupted
        self.parameter_names = list(parameter_names)
        lengths = [len(record["draws"]) for record in records]
        n_draws = most_draws(lengths) if interrupted else min(lengths)
        records = [record for record in records if len(record["draws"]) >= n_draws]
        for name in ("draws", "log_prior", "log_likelihood", "elapsed"):
            records = [record | {name: record[name][:n_draws]} for record in records]
        for name in STACKED:
            setattr(self, name, np.stack([np.asarray(record[name]) for record in records]))
        columns = np.moveaxis(self.draws, -1, 0)
        self.r_hat = np.array([r_hat(column) for column in columns])
        self.ess_bulk = np.array([ess(column) for column in columns])
        self.ess_tail = np.array([tail_ess(column) for column in columns])
        self.ess_paper = np.array([paper_ess(column) for column in columns])
        self._set_evidence([record["work"] for record in records])

    def _set_evidence(self, works):
        self.log_ratios, self.log_evidence, self.log_evidence_error = None, np.nan, np.nan
        rows_exchanged = not np.isnan(self.exchange_acceptance).all()
        if self.method not in ("spt", "pt") or self.betas.shape[1] < 2 or rows_exchanged:
            return
        self.log_ratios = np.array(
            [[bennett(*work[:, m].T) for m in range(work.shape[1])] for work in works]
        )
        if (self.betas[:, -1] == 0).all():
            totals = self.log_ratios.sum(axis=1)
            self.log_evidence = float(totals.mean())
            if len(totals) > 1:
                self.log_evidence_error = float(totals.std(ddof=1) / np.sqrt(len(totals)))

    def __repr__(self):
        n_chains, n_draws, n_parameters = self.draws.shape
        return (
            f"TemperingResult(method={self.method!r}, n_chains={n_chains}, n_draws={n_draws}, "
            f"n_parameters={n_parameters})"
        )

    @property
    def flat(self) -> Any:
        """Draws of all chains, one after another: ndarray of shape (n, n_parameters)."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    def to_arviz(self) -> Any:
        """Return the draws in the form of ArviZ; this needs the package arviz-base.

        Returns
        -------
        tree : xarray.DataTree
            Groups ``posterior`` (one variable, "theta") and ``sample_stats`` ("lp", the log joint
            density).
        """
        import arviz_base

        return arviz_base.from_dict(
            {
                "posterior": {"theta": self.draws},
                "sample_stats": {"lp": self.log_prior + self.log_likelihood},
            },
            coords={"parameter": self.parameter_names},
            dims={"theta": ["parameter"]},
        )


def most_draws(lengths):
    """Draws of each chain such that the chains that have as many have the most in all.

    >>> most_draws([250, 250, 3]), most_draws([250, 200, 180])
    (250, 180)
    """
    longest = sorted(lengths, reverse=True)
    return -max((n * (k + 1), -n) for k, n in enumerate(longest))[1]


def paper_ess(draws):
    """Effective sample size of van de Meent, Paige and Wood (2014), eqs. (4) to (8), corrected.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)

    Returns
    -------
    ess : float
        NaN with fewer than 2 chains or draws.

    Examples
    --------
    >>> import numpy as np
    >>> round(paper_ess([[0.0, 2.0], [1.0, 3.0]]), 2)  # W = 2, B = 1, variance 1.5
    4.0
    """
    draws = np.asarray(draws, dtype=np.float64)
    n_chains, n_draws = draws.shape
    if n_chains < 2 or n_draws < 2:
        return np.nan
    between = n_draws * draws.mean(axis=1).var(ddof=1)
    within = draws.var(axis=1, ddof=1).mean()
    variance = (n_draws - 1) / n_draws * within + between / n_draws
    return n_chains * n_draws * (min(1.0, variance / between) if between > 0 else 1.0)


def bennett(forward, reverse):
    """log Z_a / Z_b by Bennett's acceptance ratio, from draws at both densities.

    Parameters
    ----------
    forward : ndarray
        log h_a / h_b at draws from b; NaN where there was none.
    reverse : ndarray
        log h_b / h_a at draws from a.

    Returns
    -------
    log_ratio : float
        NaN where none of a density's draws is possible under the other.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(bennett(np.full(3, 0.7), np.full(3, -0.7)), 0.7))
    True
    """
    forward, reverse = forward[~np.isnan(forward)], reverse[~np.isnan(reverse)]
    if not np.isfinite(forward).any() or not np.isfinite(reverse).any():
        return np.nan
    # The two one-sided averages bracket no root for certain, but a constant beyond both does.
    ends = [-logsumexp(reverse) + np.log(len(reverse)), logsumexp(forward) - np.log(len(forward))]
    ends = [end for end in ends if np.isfinite(end)]
    low, high, gap = min(ends) - 1.0, max(ends) + 1.0, np.log(len(reverse) / len(forward))

    def excess(constant):
        return expit(forward - constant + gap).sum() - expit(reverse + constant - gap).sum()

    width = 1.0
    while excess(low) < 0:
        low, width = low - width, 2 * width
    while excess(high) > 0:
        high, width = high + width, 2 * width
    return float(brentq(excess, low, high, xtol=1e-12))
