"""Nonparametric Bayesian clustering and density estimation by annealed Monte Carlo."""

from .estimators import (
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    PermutationDPMixture,
    TemperedGPRegressor,
    log_predictive_density_scorer,
)

__version__ = "0.1.0"

__all__ = [
    "AnnealedDPMixture",
    "CrossCatImputer",
    "CrossCatPY",
    "PermutationDPMixture",
    "TemperedGPRegressor",
    "log_predictive_density_scorer",
]
