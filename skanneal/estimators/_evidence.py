"""The evidence of a fit by sequential Monte Carlo, and what cannot be fitted so."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp

from ..families import FAMILIES
from ..moves import COLUMN_MOVES, MOVES


def check_schedule(schedule, limit, moves):
    """Refuse parameters with which the evidence would be biased.

    Parameters
    ----------
    schedule : BaseSchedule
    limit : TimeLimit
    moves : tuple of str
        By name.
    """
    if schedule.runner != "island":
        return
    if limit:
        raise ValueError(
            f"max_time={limit.seconds:g} does not go with SequentialMonteCarlo, whose evidence may "
            f"not depend on a clock: leave it out, and give fewer n_particles or n_sweeps."
        )
    for name in moves:
        move = {**MOVES, **COLUMN_MOVES}[name]
        if not move.exact or hasattr(move, "burn_in"):
            raise ValueError(
                f"moves: {name!r} does not go with SequentialMonteCarlo, whose moves may not adapt "
                f"to what a particle has seen."
            )


def check_gaps(schedule, encoder, table):
    """Refuse families whose gaps are part of the state, where there are any.

    Parameters
    ----------
    schedule : BaseSchedule
    encoder : Encoder
    table : Table
    """
    if schedule.runner != "island":
        return
    for name, columns in encoder.table_families.items():
        if FAMILIES[name].joint and any(table.has_missing(int(column)) for column in columns):
            raise ValueError(
                f"The family {name!r} draws missing cells along with the clusters, and "
                f"SequentialMonteCarlo asks for the density of the observed ones alone: use a "
                f"family of single columns, fill the gaps, or take another schedule."
            )


def evidence_of(log_evidences):
    """Fitted attributes: the evidence.

    Parameters
    ----------
    log_evidences : list of float
        Of each chain's island; nan if there is none.
    """
    n, log_evidence = len(log_evidences), logsumexp(log_evidences) - np.log(len(log_evidences))
    shares = np.exp(np.array(log_evidences) - log_evidence)  # their mean is 1
    error = shares.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return {"log_evidence_": float(log_evidence), "log_evidence_se_": float(error)}
