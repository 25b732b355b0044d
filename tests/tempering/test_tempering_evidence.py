"""Evidence of parallel tempering by every option, against the closed form.

Rows x_n ~ N(theta, 1) with theta ~ N(0, 25): without theta they are jointly normal. One of them is
an outlier: which rows a level has decides what its constant is.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from skanneal.schedules import CustomLadder, GeometricLadder
from skanneal.tempering import HMC, METHODS, GaussianMeanTarget, RandomWalk, sample

ROWS = np.r_[np.random.default_rng(0).normal(0, 1, 19), 12.0]
TARGET = GaussianMeanTarget(ROWS[:, None], prior_scale=5.0)
EXACT = stats.multivariate_normal(np.zeros(20), np.eye(20) + 25.0).logpdf(ROWS)
LADDERS = [(1, 0.5, 0.2, 0.1, 0), (1, 0.15, 0), (1, 0)]
INNER = [HMC(n_leapfrog=3), RandomWalk(n_steps=4), (HMC(n_leapfrog=2), "mh")]
OPTIONS = {
    "method": ("spt", "pt"),
    "swaps": ("sequential", "even_odd"),
    "adapt": (False, True),
    "inner": range(len(INNER)),
    "metric": ("diagonal", "unit"),
    "betas": LADDERS,
}
N_CHAINS = 16
# At a false-alarm rate of 1e-4 over all combinations.
LIMIT = stats.t(N_CHAINS - 1).isf(1e-4 / np.prod([len(v) for v in OPTIONS.values()]) / 2)


def run(betas, inner=0, adapt=False, n_draws=300, n_chains=N_CHAINS, **options):
    return sample(
        TARGET,
        schedule=CustomLadder(betas=betas, adapt=adapt),
        inner=INNER[inner],
        n_chains=n_chains,
        n_draws=n_draws,
        n_warmup=200,
        random_state=1,
        **options,
    )


def error(result, exact=EXACT):
    """In standard errors."""
    return abs(result.log_evidence - exact) / result.log_evidence_error


@pytest.mark.parametrize("method", OPTIONS["method"])
@pytest.mark.parametrize(
    "metrics, ladders",
    [
        (OPTIONS["metric"][:1], LADDERS[:1]),
        pytest.param(OPTIONS["metric"], LADDERS, marks=pytest.mark.slow),
    ],
    ids=["one ladder", "all"],
)
def test_evidence_by_every_option(method, metrics, ladders):
    free = OPTIONS | {"method": (method,), "metric": metrics, "betas": ladders}
    for values in product(*free.values()):
        options = dict(zip(free, values))
        result = run(**options)
        assert error(result) < LIMIT, options
        assert result.log_evidence_error < 1.0, options
        assert result.log_ratios.shape == (N_CHAINS, len(options["betas"]) - 1)


def test_a_wrong_evidence_is_seen():
    assert error(run(LADDERS[0], method="spt"), EXACT + 1.0) > LIMIT


@pytest.mark.parametrize("swaps", OPTIONS["swaps"])
@pytest.mark.parametrize("inner", OPTIONS["inner"])
@pytest.mark.parametrize("adapt", OPTIONS["adapt"])
@pytest.mark.parametrize("resample", (True, 3))
@pytest.mark.few(6)
def test_there_is_none_where_rows_were_exchanged(resample, adapt, inner, swaps):
    """The pairs' ratios would be of constants that change: added up they are off by far."""
    options = {"method": "spt", "inner": inner, "adapt": adapt, "swaps": swaps}
    for betas in LADDERS[:2]:
        result = run(betas, resample=resample, n_draws=5, n_chains=3, **options)
        assert not np.isnan(result.exchange_acceptance).any()
        assert np.isnan(result.log_evidence) and np.isnan(result.log_evidence_error)
        assert result.log_ratios is None


def test_a_level_of_all_rows_has_none_to_exchange():
    """The target and the prior alone: `resample` changes nothing."""
    assert error(run((1, 0), method="spt", resample=True)) < LIMIT


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.few(2)
def test_there_is_none_without_the_prior_or_without_replicas(method):
    ladders = [CustomLadder(betas=(1, 0.3))]
    if method in ("stt", "tt", "none"):
        ladders.append(CustomLadder(betas=(1, 0.3, 0)))
    if method in ("spt", "stt"):
        ladders.append(GeometricLadder(n_levels=2, beta_min=0.5, recentre=True))
    for ladder in ladders:
        result = sample(
            TARGET, method=method, schedule=ladder, n_draws=5, n_warmup=50, random_state=0
        )
        assert np.isnan(result.log_evidence) and np.isnan(result.log_evidence_error)
        assert (result.log_ratios is not None) == (method in ("spt", "pt"))
