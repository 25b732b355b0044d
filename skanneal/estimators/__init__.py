"""scikit-learn estimators."""

from ._annealed_dp import AnnealedDPMixture

__all__ = ["AnnealedDPMixture"]
