"""Nonparametric Bayesian clustering and density estimation by annealed Monte Carlo."""

from .estimators import AnnealedDPMixture

__version__ = "0.1.0"

__all__ = ["AnnealedDPMixture"]
