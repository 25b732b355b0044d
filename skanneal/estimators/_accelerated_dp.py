"""AcceleratedDPMixture: a Dirichlet or Pitman-Yor process mixture on shards, conjugate or not."""

# SPDX-License-Identifier: BSD-3-Clause

import copy
import functools
import warnings
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import _fit_context
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from .._accelerated_chain import ACCELERATED_SHARE, STAGES, AcceleratedChain, Run
from .._encoding import Encoder
from ..chain import Model
from ..components import Table
from ..likelihoods import LIKELIHOODS, Likelihood, TableRows
from ..parallel import run_tasks, spawn_seeds
from ..schedules import AcceleratedSchedule, PriorGibbs
from ..shards import RowSource, ShardPool, Shards
from ._base import SEEN, BaseMixtureEstimator, _chain_task
from ._hyperparameters import grids_in_units, partition_grid, prepare

ALGORITHMS = ("accelerated", "auxiliary", "collapsed", "hybrid", "importance", "slice")
ONE_SHARD = ("auxiliary", "collapsed", "importance")  # one row after another
AUTO_ALGORITHM = "accelerated"
KMEANS_CLUSTERS = 100


class AcceleratedDPMixture(BaseMixtureEstimator):
    """PLACEHOLDER_DOC"""

    _parameter_constraints: dict = {
        "likelihood": [StrOptions({"auto", *LIKELIHOODS}), Likelihood],
        "hyperparameters": BaseMixtureEstimator._parameter_constraints["hyperparameters"],
        "concentration": [StrOptions({"infer"}), Real],
        "discount": [StrOptions({"infer"}), Interval(Real, 0, 1, closed="left")],
        "algorithm": [StrOptions({"auto", *ALGORITHMS})],
        "schedule": [AcceleratedSchedule, None],
        "n_shards": [Interval(Integral, 1, None, closed="left")],
        "n_auxiliary": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"one", "kmeans"}), Interval(Integral, 1, None, closed="left")],
        **{
            name: BaseMixtureEstimator._parameter_constraints[name]
            for name in (
                "point_estimate", "n_chains", "n_draws", "thin", "n_jobs", "random_state",
                "warm_start", "verbose",
            )
        },
    }

    def __init__(
        self,
        *,
        likelihood="auto",
        hyperparameters="infer",
        concentration="infer",
        discount=0.0,
        algorithm="auto",
        schedule=None,
        n_shards=2,
        n_auxiliary=3,
        init="one",
        point_estimate="map",
        n_chains=1,
        n_draws=1,
        thin=1,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        verbose=0,
    ):
        self.likelihood = likelihood
        self.hyperparameters = hyperparameters
        self.concentration = concentration
        self.discount = discount
        self.algorithm = algorithm
        self.schedule = schedule
        self.n_shards = n_shards
        self.n_auxiliary = n_auxiliary
        self.init = init
        self.point_estimate = point_estimate
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.thin = thin
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Run the chains."""
        schedule = copy.deepcopy(self.schedule) if self.schedule else AcceleratedSchedule()
        schedule._validate_params()
        grid = partition_grid(self.concentration, self.discount)
        algorithm = AUTO_ALGORITHM if self.algorithm == "auto" else self.algorithm
        before = {name: getattr(self, name) for name in SEEN if hasattr(self, name)}
        try:
            data = self._read(X, algorithm)
            if algorithm == "collapsed":
                fitted = self._fit_collapsed(data, schedule, grid)
            else:
                fitted = self._fit_uncollapsed(data, schedule, grid, algorithm)
        except BaseException:
            for name in SEEN:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise
        self.__dict__.update(fitted)
        return self
