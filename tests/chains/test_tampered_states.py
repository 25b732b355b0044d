"""A state that was changed since the fit: an error that names the array, never a crash."""

import copy
import pickle

import numpy as np
import pytest

from oracles.cheap import short
from skanneal import (
    AcceleratedDPMixture,
    AnnealedDPMixture,
    CrossCatPY,
    PermutationDPMixture,
)
from skanneal.moves import churn
from skanneal.schedules import AcceleratedSchedule

N = 40
RNG = np.random.default_rng(0)
TABLE = np.c_[RNG.integers(0, 3, (N, 2)), RNG.normal(size=N), RNG.poisson(3.0, N)].astype(float)
TABLE[::7, 2] = np.nan
COUNTS = RNG.poisson(1.0, (N, 4)) + 1
FAMILIES = {"categorical": [0, 1], "normal": [2], "poisson": [3]}
SHARDED = {
    "schedule": AcceleratedSchedule(n_accelerated=1, n_exact=2, sync_every=1),
    "n_chains": 1,
    "n_draws": 1,
    "n_shards": 2,
    "random_state": 0,
}
MODELS = {
    "annealed": (short(AnnealedDPMixture, families=FAMILIES), TABLE),
    "counts": (short(AnnealedDPMixture, families="multinomial"), COUNTS),
    "crosscat": (short(CrossCatPY), TABLE),
    "permutation": (short(PermutationDPMixture, families=FAMILIES), TABLE),
    "accelerated": (AcceleratedDPMixture(likelihood="multinomial", **SHARDED), COUNTS),
    "not conjugate": (AcceleratedDPMixture(likelihood="logistic_normal", **SHARDED), COUNTS),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: copy.deepcopy(model).fit(X) for name, (model, X) in MODELS.items()}


def of(fitted, name):
    model = copy.deepcopy(fitted[name]).set_params(warm_start=True)
    return model, MODELS[name][1]


def far(array):
    array.flat[0] = 10**9
    return array


CHANGES = {  # what is done to an array -> the sorts of array that it is wrong for
    "far": (far, "iu"),
    "negative": (lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, -7, a), "iu"),
    "not finite": (lambda a: a * np.nan, "f"),
    "one more dimension": (lambda a: a[None], "biufU"),
    "objects": (lambda a: a.astype(object), "biuf"),
    "missing": (None, "biufU"),
}
BY_ANOTHER = {  # arrays that are right by themselves: the error names one that they contradict
    "far": {"size": "size|missing", "count": "count|missing", "position": "header"},
    "missing": {"view_of": "columns"},
}
MAY_BE_MISSING = ("trace/", "fills", "log_weight", "budget", "/prior", "gappy", "factor")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.few(3)
def test_every_array_of_a_state_is_checked(fitted, name, change):
    model, X = of(fitted, name)
    alter, kinds = CHANGES[change]
    whole, n_tried = model._states[0], 0
    for key, array in whole.items():
        array = np.array(array)
        optional = alter is None and any(part in key for part in MAY_BE_MISSING)
        harmless = any(part in key for part in ("skipped", "burn", "updates", "row_totals"))
        if array.dtype.kind not in kinds or not array.size or optional or harmless:
            continue
        if change == "not finite" and ("trace/" in key or "budget" in key):
            continue
        changed = {other: value for other, value in whole.items() if other != key}
        model._states = [changed if alter is None else changed | {key: alter(array)}]
        n_tried += 1
        last = key.split("/")[-1]
        last = BY_ANOTHER.get(change, {}).get(last, last)
        with pytest.raises(ValueError, match=f"^the state's array '(.*/)?({last})' "):
            model.fit(X)
    assert n_tried > 2


CONTRADICTIONS = {
    "state/labels": (lambda a: np.where(np.arange(N) == 0, (a + 1) % (a.max() + 1), a), "recount"),
    "subsample/order": (lambda a: np.where(a == 0, 1, a), "every row once"),
    "subsample/window": (lambda a: a - [0, 1], "other rows than those of the subsample"),
    "pacer/path_sizes": (lambda a: np.append(a[:-1], 10**6), "not the table's"),
    "pacer/path_assignments": (lambda a: a[::-1].copy(), "begin at 0|ascend"),
    "state/categorical/n_levels": (lambda a: a + 1, "not \\[3, 3\\]"),
    "state/categorical/columns": (lambda a: a + 1, "not hold columns of the family"),
    "state/normal/columns": (lambda a: a - 1, "not hold columns of the family"),
    "state/categorical/count": (lambda a: a + 1, "."),
    "state/poisson/total": (lambda a: a + 1, "recount"),
    "state/normal/kappa0": (lambda a: -a, "must be positive"),
    "state/concentration": (lambda a: a * 0.0 - 9.0, "no point of the prior"),
    "state/prior": (lambda a: np.array("none"), "names no partition prior"),
    "header": (lambda a: np.array(str(a)[:-9]), "cannot be read"),
}


@pytest.mark.parametrize("key", CONTRADICTIONS)
def test_arrays_that_contradict_each_other(fitted, key):
    model, X = of(fitted, "annealed")
    alter, words = CONTRADICTIONS[key]
    array = np.array(model._states[0].get(key, np.array("")))
    model._states[0][key] = alter(array)
    with pytest.raises(ValueError, match=f"the state's array .*({words})"):
        model.fit(X)


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_a_state_of_other_families_is_refused(estimator):
    """It is right by itself, and compiled moves would write beyond its arrays."""
    rows = TABLE[np.arange(N) % 7 > 0, 2:3]
    model, other = (
        short(estimator, families=family, warm_start=True).fit(rows)
        for family in ("normal", "semi_continuous")
    )
    model._states = other._states
    with pytest.raises(ValueError, match="the state's array 'state' has other families"):
        model.fit(rows)


@pytest.mark.parametrize("name", ["annealed", "crosscat", "accelerated", "not conjugate"])
def test_draws_are_checked_before_a_query(fitted, name):
    n_tried = 0
    for key, array in fitted[name].draws_[0][0].arrays.items():
        array = np.array(array)
        if array.dtype.kind != "i" or not array.size or key == "labels" or "row_totals" in key:
            continue
        if key.endswith("/labels"):
            continue  # which queries do not read
        if name == "not conjugate" or not key.endswith(("total", "updates")):
            model, X = of(fitted, name)
            model.draws_[0][0].arrays[key] = far(array) if "count" not in key else array - 10**6
            n_tried += 1
            with pytest.raises(ValueError, match="the state's array"):
                model.score_samples(X)
    assert n_tried


def test_a_state_that_was_not_changed_goes_on(fitted):
    for name in MODELS:
        model, X = of(fitted, name)
        model.fit(X)


@pytest.mark.parametrize(
    "knots",
    [
        [[0, 0], [10, 0]],
        [[0, 5], [10, N + 1]],
        [[0, -1], [10, 5]],
        [[0, 5], [9, 5]],
        [[1, 5], [10, 5]],
        [[0, 5], [5, 5], [5, 5], [10, 5]],
        [[0, 5]],
        [[0, 1], [2**61, N]],
    ],
)
def test_paths_that_no_subsample_can_follow(knots):
    from skanneal.families import FAMILIES as CLASSES
    from skanneal.families import Table
    from skanneal.partition_priors import PitmanYor
    from skanneal.states import Mixture, Subsample

    table = Table(["f4"], [0])
    table.append([np.zeros(N, np.float32)])
    subsample = Subsample(N)
    mixture = Mixture(table, [CLASSES["normal"](table, [0])], PitmanYor(1.0), subsample)
    with pytest.raises(ValueError, match="the path must rise"):
        churn([mixture], subsample, np.random.PCG64(0), np.array(knots), 0, 10)


def test_a_trace_without_some_scalars_stays_one_of_equal_lengths(fitted):
    """What was taken out is NaN where it was, beside what else was recorded."""
    model, X = of(fitted, "annealed")
    del model._states[0]["trace/sweeps"], model._states[0]["trace/log_joint"]
    model.fit(X)
    n_before = fitted["annealed"].trace_["seconds"].shape[1]
    lengths = {values.shape[1] for values in model.trace_.values()}
    assert lengths == {model.trace_["seconds"].shape[1]} and min(lengths) > n_before
    for name in ("sweeps", "log_joint"):
        assert np.isnan(model.trace_[name][0, :n_before]).all()
        assert np.isfinite(model.trace_[name][0, n_before:]).all()


NUMBERS = AcceleratedDPMixture(likelihood="normal", **SHARDED), RNG.normal(size=(N, 3))


@pytest.mark.parametrize(
    "given, change",
    [
        (MODELS["annealed"], lambda kept: kept[:-1]),
        (MODELS["annealed"], lambda kept: np.roll(kept, 1)),
        (NUMBERS, lambda kept: kept[:-1]),
    ],
)
def test_a_file_whose_rows_have_other_columns_than_its_components(given, change):
    model, X = copy.deepcopy(given[0]).fit(given[1]), given[1]
    apart = model.draws_[0][0]._apart
    apart.kept = change(apart.kept)
    read = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="the state's array"):
        read.predict(X)
