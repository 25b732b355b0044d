"""What makes a fit cheap in the tests for which the estimators' defaults are beside the point."""

from skanneal.schedules import AcceleratingAnneal

ONE_DRAW = {"n_draws": 1}
# Some 60 sweeps, and hardly more for a large table; any number of draws follows at the end.
CHEAP = {**ONE_DRAW, "schedule": AcceleratingAnneal(passes=60, small_size=200, big_size=1e7)}
