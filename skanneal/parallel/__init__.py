"""Independent tasks over independent seeds, and the time that they may take."""

from ._tasks import (
    InterruptNote,
    StopFlag,
    keep_on_interrupt,
    n_workers,
    run_task,
    run_tasks,
    spawn_seeds,
)
from ._time_limit import LEAST, OutOfTime, TimeLimit

__all__ = [
    "LEAST",
    "InterruptNote",
    "OutOfTime",
    "StopFlag",
    "TimeLimit",
    "keep_on_interrupt",
    "n_workers",
    "run_task",
    "run_tasks",
    "spawn_seeds",
]
