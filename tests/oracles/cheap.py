"""What makes a fit cheap in the tests for which the estimators' defaults are beside the point."""

from skanneal import AnnealedDPMixture, PermutationDPMixture
from skanneal.schedules import (
    AcceleratingAnneal,
    PriorGibbs,
    SequentialGibbs,
    SequentialMonteCarlo,
)

ONE_DRAW = {"n_draws": 1}
# Some 60 sweeps, and hardly more for a large table; any number of draws follows at the end.
CHEAP = {**ONE_DRAW, "schedule": AcceleratingAnneal(passes=60, small_size=200, big_size=1e7)}


def cheap_schedule(name):
    """The name of a schedule, or where that takes long, a shorter one of its class."""
    short = {
        "accelerating_anneal": AcceleratingAnneal(passes=5),
        "smc": SequentialMonteCarlo(n_particles=2, n_first=4, n_sweeps=4),
    }
    return short.get(name, name)


def short(estimator=AnnealedDPMixture, **parameters):
    """An estimator of one chain, six sweeps and one draw, not yet fitted."""
    schedule = PriorGibbs if estimator is PermutationDPMixture else SequentialGibbs
    defaults = {"schedule": schedule(n_sweeps=6), "n_chains": 1, "n_draws": 1, "random_state": 0}
    return estimator(**{**defaults, **parameters})
