"""scikit-learn estimators.

To add an estimator: one file with its class, and its import here. `__all__`, and with it that of
`skanneal`, follows from the imports, whose form, ``X as X``, tells type checkers that X is public.
"""

import typing as _typing

from ._accelerated_dp import AcceleratedDPMixture as AcceleratedDPMixture
from ._annealed_dp import AnnealedDPMixture as AnnealedDPMixture
from ._crosscat import CrossCatPY as CrossCatPY
from ._imputer import CrossCatImputer as CrossCatImputer
from ._outlier_detector import MixtureOutlierDetector as MixtureOutlierDetector
from ._permutation_dp import PermutationDPMixture as PermutationDPMixture
from ._tempered_gaussian_mean import TemperedGaussianMean as TemperedGaussianMean
from ._tempered_gp import TemperedGPRegressor as TemperedGPRegressor

if not _typing.TYPE_CHECKING:  # type checkers go by the form of the imports
    __all__ = sorted(name for name in globals() if not name.startswith("_"))
