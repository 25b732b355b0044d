"""Whether a fit of the shards' sampler has come to an end, said where it seems not."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._native._warning import warn
from ._diagnostics import drift

CLIMBING = 1.0  # standard deviations from quarter to quarter: a steady climb has 3.5
NATS = 5.0  # that the log joint density of a small table moves by itself, slowly
ENOUGH_RECORDS = 20  # of the exact stage, below which a trace says nothing


def warn_unless_settled(trace: Any, schedule: Any, max_time: float | None) -> None:
    """Warn of a fit that its time has cut short, or whose log joint density still rises.

    Parameters
    ----------
    trace : dict of ndarray of shape (n_chains, n_records)
        Padded with nan.
    schedule : AcceleratedSchedule
        As it was asked for.
    max_time : float or None
        Seconds of the whole fit.
    """
    longer = "the schedule's n_exact" if max_time is None else "max_time"
    exact = np.where(trace["burn_in"] == 0, trace["log_joint"], np.nan)
    n_records = np.isfinite(exact).sum(axis=1).min()
    done, asked = np.nanmax(trace["sweeps"]), schedule.n_accelerated + schedule.n_exact
    if n_records < ENOUGH_RECORDS:
        if max_time is not None and done < asked:
            warn(
                f"max_time={max_time:g} ended the fit after {done:.0f} sub-iterations, "
                f"with {n_records} records of the exact stage: too few to tell whether it has "
                f"settled. Raise max_time, or look at `trace_`.",
                ConvergenceWarning,
            )
        return
    if max(drift(chain, NATS) for chain in exact) > CLIMBING:
        warn(
            f"The fit is still climbing: from quarter to quarter of the exact stage the log joint "
            f"density rises by more than what it varies within one. Raise {longer}, "
            f"or look at `trace_`.",
            ConvergenceWarning,
        )
