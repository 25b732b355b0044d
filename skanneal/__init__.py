"""Nonparametric Bayesian clustering and density estimation by annealed Monte Carlo."""

from .estimators import (
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    PermutationDPMixture,
    TemperedGaussianMean,
    TemperedGPRegressor,
)

__version__ = "0.1.0"

__all__ = [
    "AnnealedDPMixture",
    "CrossCatImputer",
    "CrossCatPY",
    "PermutationDPMixture",
    "TemperedGPRegressor",
    "TemperedGaussianMean",
]
