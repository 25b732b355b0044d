"""Priors over partitions.

To add a prior: one file with its class (the contract is in `_base.pxd`) and its import here.
`PARTITION_PRIORS` and `__all__` follow from the imports.
"""

from ._base import UNNAMED as UNNAMED
from ._base import PartitionPrior as PartitionPrior
from ._expected_clusters import check_expected_clusters as check_expected_clusters
from ._expected_clusters import gamma_of as gamma_of
from ._finite import Finite as Finite
from ._grid import PriorGrid as PriorGrid
from ._grid import concentrations as concentrations
from ._pitman_yor import PitmanYor as PitmanYor

PARTITION_PRIORS = {
    member.name: member
    for member in list(globals().values())
    if isinstance(member, type) and issubclass(member, PartitionPrior) and member.name
}


def prior_from_arrays(arrays, of=""):
    """The prior whose ``to_arrays(of)`` is among the arrays."""
    kind = PARTITION_PRIORS[str(arrays.get(of + "prior", UNNAMED))]
    prior = kind(*(float(arrays[of + name]) for name in kind.coordinates))
    prior.log_weight = float(arrays.get(of + "log_weight", 0.0))
    return prior


__all__ = sorted(name for name in globals() if not name.startswith("_"))
