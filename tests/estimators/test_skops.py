"""Fits that skops has stored and loaded answer every query as before."""

import numpy as np
import pytest
from skops import io

from oracles.public_estimators import names, quick
from skanneal.likelihoods import LIKELIHOODS

GENERATOR = np.random.default_rng(0)
COUNTS = GENERATOR.multinomial(30, [0.2, 0.3, 0.5], 40)
NUMBERS = GENERATOR.normal(size=(40, 3))
QUERIES = (
    *("predict", "predict_proba", "score_samples", "new_cluster_proba", "surprisal", "impute"),
    *("score_outliers", "decision_function"),
)
MODELS = [
    *[(quick(name), NUMBERS) for name in names()],
    *[(quick("AcceleratedDPMixture", likelihood=name), COUNTS) for name in LIKELIHOODS],
    (quick("AnnealedDPMixture", families="multinomial"), COUNTS),
    (quick("PermutationDPMixture", families="multivariate_normal"), NUMBERS),
]


def title(value):
    return f"{type(value).__name__} {getattr(value, 'likelihood', '')}".strip()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model, X", MODELS, ids=lambda value: title(value))
@pytest.mark.few(6)
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
