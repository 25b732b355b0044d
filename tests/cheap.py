"""What makes a fit cheap in the tests for which the estimators' defaults are beside the point."""

from skanneal.schedules import AcceleratingAnneal, SequentialMonteCarlo

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
