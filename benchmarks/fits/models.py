"""Estimators of a problem: their default fit, chains from a given start, what their draws say."""

import copy
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import skanneal
from skanneal.chains import read_snapshot
from skanneal.schedules import SequentialGibbs
from skanneal.states import CrossCat, Subsample, state_from_arrays
from skanneal.states.crosscat import FreshView


def estimator(problem, random_state, **parameters):
    """The problem's estimator, with its defaults but for the parameters given; views are
    independent, as those of the references are."""
    cls, published = getattr(skanneal, problem.estimator), {}
    if problem.estimator == "CrossCatPY":
        published["linked_views"] = False
    own = {"families": problem.families, "random_state": random_state, "n_jobs": 1}
    return cls(**(own | published | parameters))


def fitted(model, X):
    """Fit without a warning: that chains disagree is what is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


# ---- starts --------------------------------------------------------------------------------------


def labelled_starts(problem, rng):
    """Partitions of the columns and of the rows in each view, by the name of the start."""
    n_rows, n_columns = problem.train.shape
    n_many = min(100, n_rows // 4)
    in_views = problem.estimator == "CrossCatPY"
    alone = np.arange(n_columns) if in_views else np.zeros(n_columns, dtype=int)
    return {
        "truth": (problem.view_of, problem.starts),
        "one": (np.zeros(n_columns, dtype=int), [np.zeros(n_rows, dtype=int)]),
        "many": (alone, [rng.integers(n_many, size=n_rows) for _ in range(alone.max() + 1)]),
    }


def chains(problem, seed, default):
    """One chain from each kind of start, at full data, ready to go on by `warm_start`.

    Parameters
    ----------
    problem : Problem
    seed : int
    default : estimator
        A default fit; its first chain is one of the starts.

    Returns
    -------
    chains : dict of str to estimator
    """
    first = SequentialGibbs(n_sweeps=1)
    models = {
        name: fitted(
            estimator(problem, seed + i, schedule=first, n_chains=1, n_draws=1), problem.train
        )
        for i, name in enumerate(("truth", "one", "many", "sequential", "anneal"))
    }
    for name, (view_of, partitions) in labelled_starts(
        problem, np.random.default_rng(seed)
    ).items():
        restart(models[name], problem.train, view_of, partitions)
    models["anneal"]._states = default._states[:1]
    return models


def state_of(model, X):
    """The state in which the only chain of a fit ended."""
    parts = read_snapshot(model._states[0])[1]
    cells = model._read(X)[1].noisy
    subsample = Subsample.from_arrays(parts["subsample"])
    return state_from_arrays(parts["state"], model._encoder.table(cells), subsample)


def restart(model, X, view_of, partitions):
    """Put the only chain of a fit into a state with these views and row partitions."""
    arrays = model._states[0]
    state = state_of(model, X)
    rows = state.subsample.rows()
    labels = [np.ascontiguousarray(partition[rows], dtype=np.int32) for partition in partitions]
    if isinstance(state, CrossCat):
        # The columns' prior, and no view's, which may allow one component only: the concentrations
        # of views are drawn anew after the first sweep.
        fresh = [FreshView(state.prior, of_view) for of_view in labels]
        state.reassign(state.n_views + np.asarray(view_of), fresh)
    else:
        state.replace(rows, labels[0])
    kept = {name: array for name, array in arrays.items() if not name.startswith("state/")}
    changed = {f"state/{name}": array for name, array in state.to_arrays().items()}
    model._states = [kept | changed]


def run_on(model, X, n_draws, thin):
    """Let a fit's chain go on: `n_draws` draws, one every `thin` sweeps of all rows."""
    return fitted(model.set_params(warm_start=True, n_draws=n_draws, thin=thin), X)


# ---- what the draws say --------------------------------------------------------------------------


def all_draws(model):
    """The draws of all chains."""
    return [draw for chain in model.draws_ for draw in chain]


def draw_log_densities(model, fresh):
    """Log density of held-out rows under each draw alone: (n_draws, n_rows)."""
    single, densities = copy.copy(model), []
    for draw in all_draws(model):
        single.draws_ = [[draw]]
        densities.append(single.score_samples(fresh))
    return np.array(densities)


def n_components(model):
    """Components of each draw, of all its views together: (n_draws,)."""
    return np.array([np.sum(draw.n_components) for draw in all_draws(model)])


def labels_compared(model):
    """What stands beside the Bayes rule: the rows' labels, or of tables in views the columns'."""
    return model.view_labels_ if hasattr(model, "view_labels_") else model.labels_
