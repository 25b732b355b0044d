"""Nonparametric Bayesian clustering and density estimation by annealed Monte Carlo."""

from .estimators import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatImputer,
    CrossCatPY,
    PermutationDPMixture,
    TemperedGaussianMean,
    TemperedGPRegressor,
)

__version__ = "0.1.0"

__all__ = [
    "AcceleratedDPMixture",
    "AnnealedDPMixture",
    "CrossCatImputer",
    "CrossCatPY",
    "PermutationDPMixture",
    "TemperedGPRegressor",
    "TemperedGaussianMean",
]
