"""Independent tasks over independent seeds, and the time that they may take."""

from ._interrupts import InterruptNote
from ._progress import Progress, say
from ._seeds import (
    OfChain,
    OfFamilies,
    OfFit,
    OfLogarithms,
    OfMembers,
    OfStart,
    OfTurn,
    OfTurns,
    seed_below,
    seeds_below,
    spawn_seeds,
)
from ._stop_flag import StopFlag
from ._tasks import keep_on_interrupt, n_workers, run_task, run_tasks
from ._time_limit import LEAST, OutOfTime, TimeLimit

__all__ = [
    "LEAST",
    "InterruptNote",
    "OfChain",
    "OfFamilies",
    "OfFit",
    "OfLogarithms",
    "OfMembers",
    "OfStart",
    "OfTurn",
    "OfTurns",
    "OutOfTime",
    "Progress",
    "StopFlag",
    "TimeLimit",
    "keep_on_interrupt",
    "n_workers",
    "run_task",
    "run_tasks",
    "say",
    "seed_below",
    "seeds_below",
    "spawn_seeds",
]
