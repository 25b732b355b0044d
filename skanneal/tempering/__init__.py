"""Tempering by subsampling: parallel tempering and tempered transitions on levels of fewer rows.

Van de Meent, Paige and Wood (2014), "Tempering by subsampling", with its formulas corrected.
"""

# SPDX-License-Identifier: BSD-3-Clause

from ._callable import CallableTarget
from ._chain import METHODS
from ._gaussian_mean import GaussianMeanTarget
from ._gaussian_process import GaussianProcessTarget
from ._gradients import check_gradient
from ._result import TemperingResult
from ._sample import sample
from ._samplers import HMC, INNER, BaseInnerSampler, RandomWalk
from ._scorer import ess_per_second_scorer, log_predictive_density_scorer
from ._targets import Target

__all__ = [
    "HMC",
    "INNER",
    "METHODS",
    "CallableTarget",
    "GaussianMeanTarget",
    "GaussianProcessTarget",
    "BaseInnerSampler",
    "RandomWalk",
    "Target",
    "TemperingResult",
    "check_gradient",
    "ess_per_second_scorer",
    "log_predictive_density_scorer",
    "sample",
]
