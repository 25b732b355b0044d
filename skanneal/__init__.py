"""Nonparametric Bayesian clustering and density estimation by annealed Monte Carlo."""

from . import estimators
from .estimators import *  # noqa: F403

__version__ = "0.1.0"

__all__ = estimators.__all__  # the public names, listed where they are imported
