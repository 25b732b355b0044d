"""scikit-learn estimators."""

from ._accelerated_dp import AcceleratedDPMixture
from ._annealed_dp import AnnealedDPMixture
from ._crosscat import CrossCatPY
from ._imputer import CrossCatImputer
from ._permutation_dp import PermutationDPMixture
from ._tempered_gaussian_mean import TemperedGaussianMean
from ._tempered_gp import TemperedGPRegressor

__all__ = [
    "AcceleratedDPMixture",
    "AnnealedDPMixture",
    "CrossCatImputer",
    "CrossCatPY",
    "PermutationDPMixture",
    "TemperedGPRegressor",
    "TemperedGaussianMean",
]
