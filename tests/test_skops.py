"""Fits that skops has stored and loaded answer every query as before."""

import numpy as np
import pytest
from skops import io

from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    PermutationDPMixture,
    TemperedGaussianMean,
    TemperedGPRegressor,
)
from skanneal.likelihoods import LIKELIHOODS
from skanneal.schedules import AcceleratedSchedule, SequentialGibbs

GENERATOR = np.random.default_rng(0)
COUNTS = GENERATOR.multinomial(30, [0.2, 0.3, 0.5], 40)
NUMBERS = GENERATOR.normal(size=(40, 3))
QUERIES = ("predict", "predict_proba", "score_samples", "new_cluster_proba", "surprisal", "impute")
SHORT = {"schedule": SequentialGibbs(n_sweeps=3), "n_chains": 1, "random_state": 0}
BRIEF = AcceleratedSchedule(n_accelerated=3, n_exact=3)
TEMPERED = {"n_chains": 1, "n_draws": 10, "n_warmup": 10, "random_state": 0}
MODELS = [
    *[
        (AcceleratedDPMixture(likelihood=name, schedule=BRIEF, random_state=0), COUNTS)
        for name in LIKELIHOODS
    ],
    (AnnealedDPMixture(families="multinomial", **SHORT), COUNTS),
    (AnnealedDPMixture(**SHORT), NUMBERS),
    (PermutationDPMixture(families="multivariate_normal", **SHORT), NUMBERS),
    (CrossCatPY(**SHORT), NUMBERS),
    (CrossCatImputer(CrossCatPY(**SHORT)), NUMBERS),
    (TemperedGaussianMean(**TEMPERED), NUMBERS),
    (TemperedGPRegressor(**TEMPERED), NUMBERS),
]


def title(value):
    return f"{type(value).__name__} {getattr(value, 'likelihood', '')}".strip()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model, X", MODELS, ids=lambda value: title(value))
def test_round_trip(model, X):
    model.fit(X, X[:, 0])
    stored = io.dumps(model)
    own = io.get_untrusted_types(data=stored)
    assert all(name.startswith("skanneal.") for name in own)
    loaded = io.loads(stored, trusted=own)
    asked = [name for name in (*QUERIES, "transform") if hasattr(model, name)]
    for name in asked:
        before, after = getattr(model, name)(X[:5]), getattr(loaded, name)(X[:5])
        np.testing.assert_array_equal(after, before, err_msg=name)
    if not asked:  # an estimator of parameters alone
        np.testing.assert_array_equal(loaded.draws_, model.draws_)
