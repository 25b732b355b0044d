"""What a type checker makes of a user's script: `make lint` runs mypy on it, nothing runs it.

Every public estimator is made, fitted and asked, and a call of a function without annotations, or
of a name that a type checker does not see, is an error.
"""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    MixtureOutlierDetector,
    PermutationDPMixture,
    TemperedGaussianMean,
    TemperedGPRegressor,
)
from skanneal.displays import ClusterDisplay, TraceDisplay
from skanneal.schedules import AcceleratedSchedule, CustomLadder, GeometricLadder, LinearAnneal
from skanneal.summary import cut_tree, r_hat
from skanneal.tempering import CallableTarget, TemperingResult, sample

X: NDArray[np.float64] = np.zeros((9, 2))
mixture = AnnealedDPMixture(schedule=LinearAnneal(n_sweeps=5), n_chains=2, random_state=0)
assert_type(mixture.fit(X), AnnealedDPMixture)
mixture.fit([["a", 1.0], [None, 2.0]]).predict_proba(X).sum()
mixture.score(X) + 1.0
mixture.impute(X, return_std=True)
mixture.explain_outliers(X, n=3)
assert_type(CrossCatPY(concentration=2.0).fit(X), CrossCatPY)
CrossCatPY().fit(X).dependence_probability(columns=["a"])
assert_type(PermutationDPMixture(init="one").fit(X), PermutationDPMixture)
PermutationDPMixture(init=None, n_draws="auto")
AnnealedDPMixture(n_draws="auto", n_clusters=None, noise=None)
CrossCatPY(n_draws="auto", view_concentration=None, expected_views=(1.0, 3.0))
CustomLadder(betas=np.array([1.0, 0.5, 0.0]))
schedule = AcceleratedSchedule(n_exact=3, sync_every=[1, 2])
assert_type(AcceleratedDPMixture(schedule=schedule).fit(X), AcceleratedDPMixture)
assert_type(CrossCatImputer(mixture, strategy="mode").fit(X), CrossCatImputer)
assert_type(MixtureOutlierDetector(contamination=0.1).fit(X), MixtureOutlierDetector)
assert_type(TemperedGaussianMean(schedule=GeometricLadder()).fit(X), TemperedGaussianMean)
assert_type(TemperedGPRegressor().fit(X, X[:, 0]), TemperedGPRegressor)
target = CallableTarget(lambda t: 0.0, lambda t, rows: 0.0, n_parameters=1, n_rows=9)
assert_type(sample(target, n_draws=9), TemperingResult)
sample(target, init=np.zeros(2), max_time=1.0, schedule=CustomLadder(betas=[1, 0]))
assert_type(r_hat(X), float)
cut_tree(X, probability=0.9)
assert_type(ClusterDisplay.from_estimator(mixture, X), ClusterDisplay)
assert_type(TraceDisplay.from_estimator(mixture).plot(), TraceDisplay)
