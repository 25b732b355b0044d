"""How the subsample, or the energy, changes while a chain runs.

To add a schedule: one file with its class, a `BaseSchedule`, and its import here. `SCHEDULES` and
`__all__` follow from the imports, whose form, ``X as X``, tells type checkers that X is public.
"""

import typing as _typing

from ._accelerated import AcceleratedSchedule as AcceleratedSchedule
from ._accelerating_anneal import AcceleratingAnneal as AcceleratingAnneal
from ._base import BaseSchedule as BaseSchedule
from ._custom_anneal import CustomAnneal as CustomAnneal
from ._energy_anneal import EnergyAnneal as EnergyAnneal
from ._ladders import BaseLadder as BaseLadder
from ._ladders import CustomLadder as CustomLadder
from ._ladders import GeometricLadder as GeometricLadder
from ._linear_anneal import LinearAnneal as LinearAnneal
from ._pacer import Pacer as Pacer
from ._path import Path as Path
from ._path import Segment as Segment
from ._path import size_at as size_at
from ._prior_gibbs import PriorGibbs as PriorGibbs
from ._sequential_gibbs import SequentialGibbs as SequentialGibbs
from ._sequential_monte_carlo import SequentialMonteCarlo as SequentialMonteCarlo

# One instance per name that an estimator's `schedule` may be.
SCHEDULES = {
    name: member(**parameters)
    for member in list(globals().values())
    if isinstance(member, type) and issubclass(member, BaseSchedule)
    for name, parameters in member._names.items()
}


def resolve_schedule(schedule):
    """Return a validated copy of a schedule given by name or as an object.

    Parameters
    ----------
    schedule : str or BaseSchedule
        A name in `SCHEDULES`, or a schedule.

    Returns
    -------
    schedule : BaseSchedule
        The caller's own, free to be changed.

    Examples
    --------
    >>> from skanneal.schedules import resolve_schedule
    >>> resolve_schedule("prior_gibbs")
    PriorGibbs()
    """
    if isinstance(schedule, str) and schedule in SCHEDULES:
        schedule = SCHEDULES[schedule]
    if not isinstance(schedule, BaseSchedule):
        names = ", ".join(repr(name) for name in SCHEDULES)
        raise ValueError(f"schedule must be a schedule object or one of {names}, not {schedule!r}.")
    return schedule.validated()


if not _typing.TYPE_CHECKING:  # type checkers go by the form of the imports
    __all__ = sorted(name for name in globals() if not name.startswith("_"))
