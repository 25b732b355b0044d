"""Which cells the tables and pictures of Liang, Jordan and Taskar (2007) have, and their runs."""

from itertools import product

import numpy as np

from papers import permutation_beam as beam
from papers import permutation_models as models
from papers.cells import Cell
from skanneal.schedules import SCHEDULES, PriorGibbs

SEEDS = 5
ALL = ("gibbs", "permutation", "split_merge")
# By name: the moves, and whether pairs are uniform.
HYBRIDS = {
    "gibbs": (("gibbs",), False),
    "gibbs, uniform pairs": (("gibbs", "split_merge"), True),
    "gibbs, split-merge": (("gibbs", "split_merge"), False),
    "gibbs, permutation": (("gibbs", "permutation"), False),
    "gibbs, uniform pairs, permutation": (ALL, True),
    "gibbs, split-merge, permutation": (ALL, False),
    "annealed": (ALL, False),
}
MEAN = "gibbs, permutation, mean of burn-in"  # the paper's reference number, panels k and l
# Panel: title, data, start, processor seconds.
PANELS = {
    "a": ("start: 1 cluster", ("synthetic", 40, 40), 1, 3.0),
    "b": ("start: 40 clusters", ("synthetic", 40, 40), 40, 3.0),
    "c": ("start: 300 clusters", ("synthetic", 40, 40), 300, 3.0),
    "d": ("20 clusters, 40 dimensions", ("synthetic", 20, 40), "sequential", 3.0),
    "e": ("80 clusters, 40 dimensions", ("synthetic", 80, 40), "sequential", 4.0),
    "f": ("160 clusters, 40 dimensions", ("synthetic", 160, 40), "sequential", 5.0),
    "g": ("40 clusters, 10 dimensions", ("synthetic", 40, 10), "sequential", 2.0),
    "h": ("40 clusters, 80 dimensions", ("synthetic", 40, 80), "sequential", 4.0),
    "i": ("MNIST, 10,000 digits", ("mnist", 10_000, 50), "sequential", 6.0),
    "j": ("AP, 2,246 documents", ("ap",), "sequential", 8.0),
}
RECORDS = 60  # of a curve, that are kept
MIXING = "MNIST, 1,000 digits in 2 dimensions"
N_LAGS, BURN_IN, KEPT = 90, 500, 20_000  # sweeps, panels k and l


def cells():
    """Figure 2; then all panels, seed by seed."""
    for n_dims in beam.DIMS:
        for order in beam.ORDERS:
            yield from (Cell("beam", f"{n_dims} dimensions", order, seed) for seed in range(SEEDS))
    for seeds, panels in product((range(3), range(3, SEEDS)), ("abcdefgh", "ij")):
        for seed, panel, name in product(seeds, panels, HYBRIDS):
            _, _, start, budget = PANELS[panel]
            if start == "sequential" or name != "annealed":
                yield Cell("panels", panel, name, seed, budget)
    for seed, name in product(range(SEEDS), HYBRIDS):
        if name != "annealed":
            yield Cell("mixing", MIXING, name, seed)
    yield from (Cell("mixing", MIXING, MEAN, seed) for seed in range(SEEDS))


def cost(cell, typical):
    """Processor seconds of a cell that was not measured."""
    return cell.budget + 1 if cell.budget else typical


# -- measuring -------------------------------------------------------------------------------------


def measure(cell):
    """By the figure."""
    if cell.figure == "beam":
        return beam.measure_beam(int(cell.data.split()[0]), cell.method, cell.seed)
    is_mean = cell.method == MEAN
    moves, uniform_pairs = HYBRIDS["gibbs, permutation" if is_mean else cell.method]
    options = {"moves": moves, "uniform_pairs": uniform_pairs, "mean_of_burn_in": is_mean}
    return (measure_panel if cell.figure == "panels" else measure_mixing)(cell, options)


def measure_panel(cell, options):
    """A curve of full data only, and where it ends."""
    _, source, start, seconds = PANELS[cell.data]
    X, model, subtract = models.problem(*source)
    schedule = SCHEDULES["anneal"] if cell.method == "annealed" else PriorGibbs()
    schedule = type(schedule)(**schedule.get_params() | {"max_time": seconds})
    start = None if cell.method == "annealed" else start
    fitted = models.fit(X, cell.seed, schedule=schedule, init=start, **options, **model)
    trace = {name: values[0] for name, values in fitted.trace_.items()}
    full = trace["n_assigned"] == X.shape[0]
    log_joint, at = trace["log_joint"][full] - subtract, trace["seconds"][full]
    climbing = trace["burn_in"][full] == 1 if "burn_in" in trace else at <= at[-1] / 2
    shown = np.unique(np.geomspace(1, len(at), RECORDS).astype(int)) - 1
    return {
        "seconds_at": at[shown].round(4).tolist(),
        "log_joint": log_joint[shown].round(2).tolist(),
        "end": float(log_joint[at >= 0.9 * at[-1]].mean()),
        "burned_in": float(log_joint[max(0, int(climbing.sum()) - 1)]),
        "clusters": int(trace["n_components"][full][-1]),
        "sweeps": float(trace["sweeps"][full][-1]),
    }


def measure_mixing(cell, options):
    """Autocorrelation of two statistics after burn-in."""
    X, model, _ = models.problem("mnist", 1000, 2)
    schedule = PriorGibbs(n_sweeps=BURN_IN)
    drawing = {"permutation": "uniform", "n_draws": KEPT, "schedule": schedule}
    fitted = models.fit(X, cell.seed, init="sequential", **drawing, **options, **model)
    sizes = [np.bincount(draw.labels) for draw in fitted.draws_[0]]
    found = {"clusters": [len(s) for s in sizes], "largest": [s.max() for s in sizes]}
    return {name: autocorrelation(values).round(4).tolist() for name, values in found.items()}


def autocorrelation(values):
    """At lags 0 .. N_LAGS."""
    x = np.asarray(values, dtype=float)
    x, n = x - x.mean(), len(x)
    return np.array([x[: n - lag] @ x[lag:] / (n - lag) for lag in range(N_LAGS + 1)]) / x.var()
