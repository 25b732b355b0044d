"""The concentration's grid in the estimators: as long as the rows ask for, and its end is told."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.schedules import AcceleratedSchedule, PriorGibbs

N_ROWS = 1200  # beyond 1000, from where the grid grows
ONE = {"n_chains": 1, "n_draws": 1}
SWEEPS = PriorGibbs(n_sweeps=30)
SEGMENTS = AcceleratedSchedule(n_accelerated=0, n_exact=30, sync_every=1)
TIGHT = {"mu0": 0.0, "kappa0": 1e-8, "nu0": 1e7, "sigma2_0": 1e-6}  # what a cluster is like
ESTIMATORS = {
    "annealed": AnnealedDPMixture(schedule=SWEEPS, **ONE),
    "permutation": PermutationDPMixture(schedule=SWEEPS, **ONE, moves=("gibbs",)),
    "crosscat": CrossCatPY(schedule=SWEEPS, **ONE, moves=("gibbs",), discount=0.0),
    "hybrid": AcceleratedDPMixture(algorithm="hybrid", schedule=SEGMENTS, n_draws=1),
    "collapsed": AcceleratedDPMixture(algorithm="collapsed", schedule=SEGMENTS, n_draws=1),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def said(name, n_clusters, **parameters):
    """What a fit of rows in so many clusters says of the concentration, and its grid."""
    X = (np.arange(N_ROWS) % n_clusters + 1.0)[:, None]
    X = X + 1e-4 * np.random.default_rng(1).normal(size=X.shape)
    model = ESTIMATORS[name].set_params(concentration="infer", random_state=0, **parameters)
    model.set_params(hyperparameters={"normal": TIGHT}, point_estimate="map")
    if name in ("hybrid", "collapsed"):
        model.set_params(init=n_clusters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X)
    grid = model.hyperparameter_grids_["concentration"]
    return [str(w.message) for w in caught if "of its grid" in str(w.message)], grid


@every_estimator
@pytest.mark.few(1)
def test_the_grid_grows_and_its_end_is_told(name):
    messages, grid = said(name, N_ROWS)  # a cluster for each row: no concentration is enough
    assert grid[-1] == pytest.approx(10**2.1)
    assert (
        len(messages) == 1
        and "concentration stays at the last point of its grid, 125.893" in (messages[0])
    )


@every_estimator
def test_nothing_is_said_of_few_clusters(name):
    messages, grid = said(name, 3)
    assert grid[-1] == pytest.approx(10**2.1) and not messages


def test_grids_of_features_are_those_of_their_number():
    grids = (
        CrossCatPY(schedule=PriorGibbs(n_sweeps=2), **ONE, random_state=0)
        .fit(np.random.default_rng(0).normal(size=(N_ROWS, 2)))
        .hyperparameter_grids_
    )
    assert grids["concentration"][-1] == pytest.approx(10**2.1)
    assert grids["view_concentration"][-1] == 100.0
