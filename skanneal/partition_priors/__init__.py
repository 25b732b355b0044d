"""Priors over partitions.

To add a prior: one file with its class (the contract is in `_base.pxd`) and its import here.
`PARTITION_PRIORS` and `__all__` follow from the imports.
"""

import typing as _typing

from .._native._state_arrays import StateError, state_array
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
    """The prior whose ``to_arrays(of)`` is among the arrays; StateError if none is."""
    name = str(arrays.get(of + "prior", UNNAMED))
    if name not in PARTITION_PRIORS:
        raise StateError(of + "prior", f"names no partition prior: {name!r}")
    kind = PARTITION_PRIORS[name]
    point = [float(state_array(arrays, of + name, "iuf", ())) for name in kind.coordinates]
    try:
        prior = kind(*point)
    except ValueError as error:
        raise StateError(of + kind.coordinates[0], f"is no point of the prior: {error}") from error
    if of + "log_weight" in arrays:
        prior.log_weight = float(state_array(arrays, of + "log_weight", "iuf", ()))
    return prior


if not _typing.TYPE_CHECKING:  # type checkers go by the form of the imports
    __all__ = sorted(name for name in globals() if not name.startswith("_"))
