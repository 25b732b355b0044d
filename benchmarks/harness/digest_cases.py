"""The cases of `digests.py`: every member of every registry, fitted and asked.

    python benchmarks/harness/digest_cases.py TREE FILE [BEGINNING ...]

runs those of the package in TREE, or only those whose names begin so, and pickles the results to
FILE. Cases are derived from the registries of the package that is imported, so that a new member
has one, and use nothing but public names, so that modules may move. A case has a path for a name,
such as "family/normal/gaps", and gives named arrays, or the text of its error.
"""

import functools
import importlib
import importlib.util
import inspect
import itertools
import os
import pickle
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array

import skanneal
from skanneal import likelihoods, partition_priors, schedules, summary, tempering

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from harness.digest_backends import BACKENDS, absent_backends
from harness.digest_data import (
    COUNTED,
    GIVEN,
    MIXED,
    N_ROWS,
    cells,
    counts,
    mixed,
    regression,
    times,
    with_gaps,
)
from harness.digest_records import flatten, record

CHAINS = {"n_chains": 2, "n_draws": 2, "random_state": 0}
TEMPERED = {"n_chains": 2, "n_draws": 12, "n_warmup": 12, "random_state": 0}
CURVE, EXPONENTS = np.array([0.1, 0.5, 0.4, 1.0]), np.array([0.2, 0.5, 0.9, 1.0])
LADDERS = {
    "GeometricLadder": ("GeometricLadder", {"n_levels": 3}),
    "CustomLadder": ("CustomLadder", {"betas": [1.0, 0.5, 0.0]}),
    "adapt": ("GeometricLadder", {"n_levels": 4, "adapt": True}),
    "recentre": ("GeometricLadder", {"n_levels": 2, "recentre": True}),
}
# Parameters of an estimator that choose a partition prior, by the name of its class.
PRIORS = {
    "PitmanYor": {
        "dirichlet": {"concentration": "infer", "discount": 0.0},
        "fixed": {"concentration": 1.5, "discount": 0.3},
        "inferred": {"concentration": "infer", "discount": "infer"},
    },
    "Finite": {
        "static": {"partition_prior": "finite"},
        "dynamic": {"partition_prior": "finite", "concentration": 2.0},
    },
}


def registry(name, *rooms):
    """A registry, from the first of the rooms that there is: they are named new to old."""
    for room in rooms:
        if importlib.util.find_spec(f"skanneal.{room}") is not None:
            return getattr(importlib.import_module(f"skanneal.{room}"), name)
    raise ModuleNotFoundError(f"none of {rooms} is a room of {skanneal.__file__}")


FAMILIES = registry("FAMILIES", "families", "components")
MOVES = registry("MOVES", "moves")
COLUMN_MOVES = registry("COLUMN_MOVES", "moves")


def options(estimator, parameter):
    """The strings that a parameter of an estimator may be, but for "auto"."""
    constraints = estimator._parameter_constraints[parameter]
    return sorted(set().union(*(getattr(c, "options", ()) for c in constraints)) - {"auto"})


def schedule_classes():
    """The public schedules of chains on subsamples."""
    members = [getattr(schedules, name) for name in schedules.__all__]
    base = schedules.BaseSchedule
    return [c for c in members if inspect.isclass(c) and issubclass(c, base) and c is not base]


def priors():
    """The public partition priors, by the names of their classes."""
    members = {name: getattr(partition_priors, name) for name in partition_priors.__all__}
    found = {name: c for name, c in members.items() if hasattr(c, "log_probability")}
    bases = {base for c in found.values() for base in c.__mro__[1:]}  # the contract is no prior
    return [name for name, c in found.items() if c not in bases]


# ---- estimators with short runs -----------------------------------------------------------------


def mixture(**parameters):
    short = {"schedule": schedules.LinearAnneal(n_sweeps=6)}
    return functools.partial(skanneal.AnnealedDPMixture, **(CHAINS | short | parameters))


def permuted(**parameters):
    short = {"schedule": schedules.PriorGibbs(n_sweeps=6)}
    return functools.partial(skanneal.PermutationDPMixture, **(CHAINS | short | parameters))


def crosscat(**parameters):
    short = {"schedule": schedules.LinearAnneal(n_sweeps=6)}
    return functools.partial(skanneal.CrossCatPY, **(CHAINS | short | parameters))


def accelerated(**parameters):
    short = schedules.AcceleratedSchedule(n_accelerated=6, n_exact=8, sync_every=2)
    return functools.partial(
        skanneal.AcceleratedDPMixture, **(CHAINS | {"schedule": short} | parameters)
    )


class WaitingTimes(likelihoods.Likelihood):
    """Of one's own, not conjugate: x ~ Exponential(exp(theta)), theta ~ N(0, 4)."""

    def log_lik(self, rows, theta, out):
        out[:] = theta - rows * np.exp(theta)

    def statistics(self, rows, labels, n_features):
        kept = labels >= 0
        n = np.bincount(labels[kept], minlength=n_features)
        return np.stack([n, np.bincount(labels[kept], rows[kept, 0], n_features)], axis=1)

    def draw(self, statistics, theta, rng):
        n, total = statistics.T
        step = theta + rng.standard_normal(len(theta)) / np.sqrt(n + 0.25)
        gain = n * (step - theta) - total * (np.exp(step) - np.exp(theta))
        gain += self.log_prior(step) - self.log_prior(theta)
        return np.where(np.log(rng.random(len(theta))) < gain, step, theta)

    def prior_draw(self, n, rng):
        return 2.0 * rng.standard_normal(n)

    def log_prior(self, theta):
        return -0.125 * theta**2 - np.log(2.0 * np.sqrt(2 * np.pi))

    def proposal_draw(self, rows, rng):
        return rng.standard_normal(len(rows)) - np.log(rows[:, 0])

    def proposal_logpdf(self, theta, row):
        return -0.5 * (theta + np.log(row[0, 0])) ** 2 - 0.5 * np.log(2 * np.pi)


# ---- the cases ----------------------------------------------------------------------------------


def fit(model, X, *y, **how):
    """A case: `record`, to be called. `model` makes the estimator, which is when it may fail."""
    return functools.partial(record, model, X, *y, **how)


def given_cells(model, X):
    """Questions about some columns given others."""
    return {
        "score_samples given": model.score_samples(X, given=["number"]),
        "sample given": model.sample(5, given={"colour": "red"}),
    }


def moments(model, X):
    """How far the predictions of a regression scatter."""
    return [model.predict(X, return_std=True), model.predict(X, return_cov=True)]


def from_files():
    """Shards in files, which are read one by one."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{p}.npy") for p in range(2)]
        for path, rows in zip(paths, np.array_split(times(), 2)):
            np.save(path, rows)
        return record(accelerated(), paths, asked=times())


def estimator_cases():
    """One case at least of every public estimator, under its name."""
    X = times()
    everything = {"also": given_cells, "X": mixed()}
    fixed = {"normal": {"mu0": 2, "kappa0": 0.1, "nu0": 3, "sigma2_0": 1}}
    stratified = schedules.LinearAnneal(n_sweeps=6, selection="stratified")
    indicated = crosscat(missing_indicator=["number", "colour"])
    by_name = {
        "AnnealedDPMixture": lambda: {
            "mixed": fit(mixture(families=MIXED), **everything),
            "warm_start": fit(mixture(warm_start=True), X, n_fits=2),
            "strata": fit(mixture(schedule=stratified), X, strata=np.arange(N_ROWS) % 3),
            "fixed": fit(mixture(concentration=1.0, hyperparameters=fixed), X),
            "polars": fit(mixture(), pl.DataFrame(X)),
            "list": fit(mixture(), X.tolist()),
            "rounded": fit(mixture(), X.round(1)),
        },
        "PermutationDPMixture": lambda: {
            "mixed": fit(permuted(families=MIXED, init=3), **everything),
            "warm_start": fit(permuted(warm_start=True), X, n_fits=2),
            "marginal": fit(permuted(concentration="marginal"), X),
            "sequential": fit(permuted(schedule="anneal", init="sequential"), X),
        },
        "CrossCatPY": lambda: {
            "mixed": fit(crosscat(families=MIXED), **everything),
            "warm_start": fit(crosscat(warm_start=True), mixed(), n_fits=2),
            "missing_indicator": fit(indicated, **everything),
            "onehot": fit(crosscat(output="onehot"), mixed()),
            "proba": fit(crosscat(output="proba"), mixed()),
        },
        "CrossCatImputer": lambda: {
            strategy: fit(
                functools.partial(
                    skanneal.CrossCatImputer,
                    crosscat()(),
                    strategy=strategy,
                    add_indicator=True,
                    random_state=0,
                ),
                mixed(),
            )
            for strategy in options(skanneal.CrossCatImputer, "strategy")
        },
        "MixtureOutlierDetector": lambda: {
            "mixed": fit(
                functools.partial(skanneal.MixtureOutlierDetector, crosscat()(), random_state=0),
                mixed(),
            )
        },
        "AcceleratedDPMixture": lambda: {
            "warm_start": fit(accelerated(warm_start=True), X, n_fits=2),
            "kmeans": fit(accelerated(init="kmeans", discount="infer"), X),
            "fixed": fit(accelerated(concentration=1.0, hyperparameters=fixed), X),
            "files": from_files,
        },
        "TemperedGPRegressor": lambda: {
            kernel: fit(
                functools.partial(skanneal.TemperedGPRegressor, kernel=kernel, **TEMPERED),
                *regression(),
                also=moments,
            )
            for kernel in options(skanneal.TemperedGPRegressor, "kernel")
        },
        "TemperedGaussianMean": lambda: {
            "default": fit(functools.partial(skanneal.TemperedGaussianMean, **TEMPERED), X)
        },
    }
    for name in skanneal.__all__:
        for variant, case in by_name[name]().items():
            yield f"estimator/{name}/{variant}", case


def as_given(X, given):
    """A fit whose hyperparameters are those of another's draw: to the user's units and back."""
    first = mixture(**given)().fit(X)
    return record(mixture(**given | {"hyperparameters": first.draws_[0][0].hyperparameters}), X)


def family_cases():
    for name, family in FAMILIES.items():
        X, given = cells(name), {"families": name}
        if name in GIVEN:
            given["hyperparameters"] = {name: GIVEN[name]}
        of_family = {
            "plain": fit(mixture(**given), X),
            "many": fit(mixture(concentration=60.0, **given), X),
            "wide": fit(mixture(**given), cells(name, n_columns=20)),
            "given": functools.partial(as_given, X, given),
            "permutation": fit(permuted(init="one", **given), X),
        }
        if not family.joint:
            of_family["gaps"] = fit(mixture(**given), with_gaps(X))
            of_family["views"] = fit(crosscat(**given), with_gaps(X))
        if name in COUNTED:
            of_family["large"] = fit(mixture(**given), 30_000 * X)
        for variant, case in of_family.items():
            yield f"family/{name}/{variant}", case
    for n_columns in (12, 300):
        sparse = mixture(families="multinomial")
        yield f"family/multinomial/sparse_{n_columns}", fit(sparse, csr_array(counts(n_columns)))


def own_schedule(cls, **parameters):
    """A short schedule, with a curve and exponents where the class wants them."""
    known = inspect.signature(cls).parameters
    curves = {n: CURVE for n, p in known.items() if p.default is inspect.Parameter.empty}
    curves |= {n: EXPONENTS for n in ("exponent", "energy") if n in known}
    return cls(n_sweeps=6, **curves, **parameters)


def schedule_cases():
    X = times(2)
    for name, schedule in schedules.SCHEDULES.items():
        yield f"schedule/{name}", fit(mixture(schedule=schedule, n_chains=1), X)
        yield f"path/{name}", lambda schedule=schedule: list(map(schedule.path, (1, 7, 300_000)))
    for cls in schedule_classes():
        for parameter in ("selection", "start")[: 1 + ("start" in cls._parameter_constraints)]:
            for value in options(cls, parameter):
                schedule = own_schedule(cls, **{parameter: value})
                yield f"schedule/{cls.__name__}/{value}", fit(mixture(schedule=schedule), X)
    energy = schedules.EnergyAnneal(n_sweeps=6)
    for maker in (permuted, crosscat):
        model = maker(schedule=energy, families=MIXED)
        yield f"schedule/energy_anneal/{maker.__name__}", fit(model, mixed())


def move_cases():
    for name in MOVES:
        moves = tuple(dict.fromkeys(["gibbs", name]))
        yield f"move/{name}", fit(permuted(moves=moves), with_gaps(times()))
    for name in COLUMN_MOVES:
        yield f"move/{name}", fit(crosscat(moves=("gibbs", name)), with_gaps(times(5)))
    for permutation in options(skanneal.PermutationDPMixture, "permutation"):
        for program in options(skanneal.PermutationDPMixture, "program"):
            model = permuted(permutation=permutation, program=program, init="one")
            yield f"move/permutation/{permutation}/{program}", fit(model, times())


def shard_cases():
    for algorithm in options(skanneal.AcceleratedDPMixture, "algorithm"):
        of_all = {name: (name, cells(name)) for name in likelihoods.LIKELIHOODS}
        of_all["own"] = WaitingTimes(), times(1) ** 4
        for name, (likelihood, X) in of_all.items():
            conjugate = likelihoods.LIKELIHOODS.get(name, WaitingTimes).conjugate
            if conjugate or algorithm != "collapsed":
                model = accelerated(likelihood=likelihood, algorithm=algorithm)
                yield f"likelihood/{name}/{algorithm}", fit(model, X)
    for name in sorted(COUNTED & set(likelihoods.LIKELIHOODS)):
        yield f"likelihood/{name}/large", fit(accelerated(likelihood=name), 30_000 * cells(name))
        if name != "poisson":
            sparse = csr_array(counts(300))
            yield f"likelihood/{name}/sparse", fit(accelerated(likelihood=name), sparse)
    for n_shards in (1, 3):
        yield f"likelihood/normal/shards_{n_shards}", fit(accelerated(n_shards=n_shards), times())


def choice_cases():
    """Partition priors and point estimates, by each estimator that has them."""
    for maker in (mixture, crosscat, accelerated):
        for prior in priors():
            for name, chosen in PRIORS[prior].items():
                if set(chosen) <= set(maker()().get_params()):
                    yield f"prior/{prior}/{name}/{maker.__name__}", fit(maker(**chosen), times())
        for method in options(skanneal.AnnealedDPMixture, "point_estimate"):
            model = maker(point_estimate=method, n_draws=4)
            yield f"point_estimate/{method}/{maker.__name__}", fit(model, times())


def tempered(target, name="GeometricLadder", **parameters):
    """Draws from a target on one of the ladders, and its levels."""
    cls, how = LADDERS[name]
    ladder = getattr(schedules, cls)(**how)
    draws = tempering.sample(target, schedule=ladder, **(TEMPERED | parameters))
    return {"levels": ladder.levels(100), "draws": draws}


def tempering_cases():
    X, y = regression()
    mean = tempering.GaussianMeanTarget(X)
    own = tempering.CallableTarget(
        lambda theta: -0.5 * theta @ theta,
        lambda theta, rows: -0.5 * np.sum((X[rows] - theta) ** 2),
        n_parameters=2,
        n_rows=N_ROWS,
        draw_prior=lambda generator: generator.standard_normal(2),
    )
    targets = {"mean": mean, "process": tempering.GaussianProcessTarget(X, y), "own": own}
    for method, inner in itertools.product(tempering.METHODS, tempering.INNER):
        for name, target in targets.items():
            if target.has_gradient or inner != "hmc":
                drawn = functools.partial(tempered, target, method=method, inner=inner)
                yield f"tempering/{name}/{method}/{inner}", drawn
    for name in LADDERS:
        yield f"ladder/{name}", functools.partial(tempered, mean, name)
    resampled = functools.partial(tempered, mean, method="spt", resample=True)
    yield "tempering/mean/resample", resampled


def summary_cases():
    rng = np.random.default_rng(3)
    draws = [np.arange(30) // 10 * (rng.random(30) < 0.8) for _ in range(6)]
    for method in summary.POINT_ESTIMATES:
        point = functools.partial(summary.point_estimate, draws, np.sin(np.arange(6)), method)
        yield f"summary/point_estimate/{method}", point
    for ask in (summary.expected_vi, summary.expected_binder):
        yield f"summary/{ask.__name__}", functools.partial(ask, draws[0], draws)
    yield "summary/coclustering", functools.partial(summary.coclustering, draws)
    yield "summary/rank_clusters", functools.partial(summary.rank_clusters, draws[0])


def backend_case(name):
    """Both ways to spread work: chains, and segments of shards."""
    with BACKENDS[name]():
        chains = record(mixture(n_jobs=2), times())
        segments = record(accelerated(n_jobs=2), times())
        own = record(accelerated(n_jobs=2, likelihood=WaitingTimes()), times(1) ** 4)
    return {"chains": chains, "segments": segments, "own": own}


def cases():
    """Yield (name, function without arguments whose result `flatten` takes apart)."""
    yield from itertools.chain(
        *(estimator_cases(), family_cases(), schedule_cases(), move_cases()),
        *(shard_cases(), choice_cases(), tempering_cases(), summary_cases()),
    )
    for name in BACKENDS:
        if name not in absent_backends():
            yield f"backend/{name}", functools.partial(backend_case, name)


def main(tree, file, *only):
    """Run the cases, those only that begin so; a failing one is recorded as its error's text."""
    if not Path(skanneal.__file__).is_relative_to(tree):
        sys.exit(f"{skanneal.__file__} was imported, which is not in {tree}")
    warnings.simplefilter("ignore")
    began, made = time.perf_counter(), {}
    for name, case in cases():
        if only and not name.startswith(only):
            continue
        try:
            made[name] = dict(flatten(case()))
        except Exception as error:
            traceback.print_exc()
            made[name] = f"{type(error).__name__}: {error}"
    absent = [f"backend/{name}: not installed, no case" for name in absent_backends()]
    Path(file).write_bytes(pickle.dumps((made, time.perf_counter() - began, absent)))


if __name__ == "__main__":
    main(*sys.argv[1:])
