"""Zhang, Williamson and Perez-Cruz (2022): Table 1, and the figures of sections 4.1 and 4.2.

Pixels are counts // 32, and of the digits also all 256 shades. Cut: Yale's faces have 32 x 32
pixels, not 168 x 192, CIFAR's pictures 16 x 16 in grey, not 32 x 32 in colour; of 10,000 images for
testing 2,000 are taken, evenly spaced; the 10 shards take turns in one thread. A chain has the
cell's processor seconds, and predicts with its last draw.

References are not handicapped. "EM, tuned" chooses the number of components and gamma by the full
predictive density of a tenth of the training images, then starts anew on all of them; every fit has
the seconds of a chain, or 30 passes; "variational, tuned" is mean field likewise. "EM 1,200" is as
large as the authors'. "prior alone" and "single images" know no clusters: one multinomial from the
prior, and every training image as a cluster, gamma chosen alike. "accelerated, tuned" chooses gamma
alike, and predicts with the mean over 20 draws, in the seconds of a chain and with the package's
number of shards.
"""

import functools
import os
import time
import warnings
from contextlib import nullcontext
from itertools import product
from typing import NamedTuple
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from papers import accelerated_course as course
from papers import accelerated_images as images
from papers import accelerated_published as published
from papers import accelerated_references as references
from papers import accelerated_synthetic as synthetic
from papers.accelerated_references import (
    Indicators,
    expectation_maximisation,
    full,
    variational_bayes,
)
from papers.cells import Cell, judged, of_figure, shown
from papers.processor_time import processor_clock
from papers.verdicts import Estimate, is_positive, mean, paired
from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

NAME = "accelerated"
SEEDS = 3
STARTS = {"one": "one", "100 at random": 100, "k-means": "kmeans"}
ALGORITHMS = images.ALGORITHMS
EM, EM_LARGE, EM_TUNED = "EM 100, gamma 1", "EM 1,200, gamma 1", "EM, tuned"
FIELD_TUNED, TUNED = "variational, tuned", "accelerated, tuned"
WITHOUT = ("prior alone", "single images")  # clusters
REFERENCES = (*WITHOUT, EM, EM_LARGE, EM_TUNED, FIELD_TUNED, TUNED)
GAMMAS, COMPONENTS, TRUNCATIONS = (0.03, 0.1, 0.3, 1.0), (100, 300, 1000), (100, 300)
MOST_COMPONENTS = 1200  # the authors'
VALIDATION = 10  # one of so many training images
PASSES, N_DRAWS, THIN = 30, 20, 5
SHARDS = 10  # the paper's processors
MOST_TUNING = 2000  # validation images
# By name: part of `accelerated_images.PARTS`, processor seconds, seeds.
DATA = {
    "Yale, 1,799 x 1,024": ("yale", 8.0, SEEDS),
    "MNIST, 60,000 x 784, // 32": ("mnist", 30.0, SEEDS),
    "CIFAR, 40,000 x 256": ("cifar", 20.0, SEEDS),
    "MNIST, 60,000 x 784, 0 to 255": ("raw", 30.0, 1),
}
DIGITS = [name for name in DATA if name.startswith("MNIST")]
LEVELS = {"prior": (1.0, 0.1), "single images": (1.0, 0.1)}  # with these gammas
# On two shards, as is the default, and on ten.
LONG, LONG_HYBRID = "accelerated from one", "hybrid from one"
LEVEL_ROWS, TEST_ROWS, LONG_SECONDS = 1000, 2000, 300.0  # test images, evenly spaced
ONE_PASS = 600.0  # seconds of all shades, at least: the longest try was stopped after eight minutes
MARKERS = {"one": "o", "100 at random": "s", "k-means": "^"}
LINES = {EM: ":", EM_TUNED: "--", FIELD_TUNED: "-.", TUNED: "-"}


def cells():
    """Data outermost, then seeds; what takes all digits last."""
    yield from synthetic.cells()
    yield from published.cells()
    for data, method in product(DATA, course.METHODS):
        if data != DIGITS[1]:  # whose densities say little
            yield Cell("course", data, method, 0, DATA[data][1])
    for data, (_, seconds, n_seeds) in DATA.items():
        for seed in range(n_seeds):
            for method in REFERENCES:
                yield Cell("table1", data, method, seed, seconds)
            for algorithm, start in product(ALGORITHMS, STARTS):
                yield Cell("table1", data, f"{algorithm} from {start}", seed, seconds)
    for data, (name, gammas) in product(DIGITS, LEVELS.items()):
        yield from (Cell("levels", data, f"{name}, gamma {gamma:g}") for gamma in gammas)
    for seed, method in product(range(SEEDS), (LONG, LONG_HYBRID)):
        yield Cell("long", DIGITS[0], method, seed, LONG_SECONDS)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured; tuning takes further fits."""
    if not cell.budget or cell.figure == "bias":
        return typical
    if cell.figure == "table1" and cell.data == DIGITS[1]:
        if cell.method.startswith(("importance", "collapsed")):
            return ONE_PASS  # which goes to its end, whatever the budget is
    fits = {
        EM_TUNED: 1 + len(GAMMAS) * len(COMPONENTS),
        FIELD_TUNED: 1 + len(GAMMAS) * len(TRUNCATIONS),
        TUNED: 1 + len(GAMMAS),
    }
    return (cell.budget + 1) * fits.get(cell.method, 1)


# -- measuring -------------------------------------------------------------------------------------


class Images(NamedTuple):
    """Training and test images."""

    train: np.ndarray
    test: np.ndarray

    def for_tuning(self, seed):
        """Training images less a part, which is the test."""
        order = np.random.default_rng([seed, 4]).permutation(len(self.train))
        held_out, rest = np.split(self.train[order], [len(order) // VALIDATION])
        return Images(rest, held_out[:MOST_TUNING])


@functools.lru_cache(maxsize=1)
def images_of(data):
    """The images of a data set."""
    train, test = images.load(os.environ["SKANNEAL_DATA"], DATA[data][0])
    return Images(train, test[images.evenly(len(test), TEST_ROWS)])


def measure(cell):
    """By the figure and the method."""
    if cell.figure in synthetic.FIGURES:
        likelihood = synthetic.FIGURES[cell.figure][0]
        run = cell.method, cell.budget, cell.seed
        return synthetic.measure_synthetic(*run, likelihood=likelihood)
    if cell.figure in published.FIGURES:
        return published.measure(cell, measure_published)
    data = images_of(cell.data)
    if cell.figure == "levels":
        return measure_level(data, *cell.method.split(", gamma "))
    if cell.figure == "course":
        return measure_course(data, cell)
    if cell.figure == "long":
        options = {} if cell.method == LONG else {"n_shards": SHARDS}
        return predicted(data, cell.method.split(" from ")[0], "one", cell, **options)
    if cell.method in (EM, EM_LARGE):
        n = COMPONENTS[0] if cell.method == EM else MOST_COMPONENTS
        return measure_em(data, n, 1.0, cell)
    if cell.method == EM_TUNED:
        return tuned(measure_em, data, product(COMPONENTS, GAMMAS), cell)
    if cell.method == FIELD_TUNED:
        return tuned(measure_mean_field, data, product(TRUNCATIONS, GAMMAS), cell)
    if cell.method in WITHOUT:
        return tuned(measure_without_clusters, data, product([cell.method], GAMMAS), cell)
    if cell.method == TUNED:
        return tuned(measure_tuned, data, product(GAMMAS), cell)
    algorithm, start = cell.method.split(" from ")
    return predicted(data, algorithm, STARTS[start], cell, n_shards=SHARDS)


def measure_published(cell, n_shards):
    """The chain that the stages of now make, from one cluster."""
    return predicted(images_of(published.YALE), "accelerated", "one", cell, n_shards=n_shards)


def predicted(data, algorithm, init, cell, **options):
    """A chain's last draw, and what it predicts."""
    model = fit(data.train, algorithm, init, cell, **options)
    arrays = model.draws_[0][-1].arrays
    plug_in, whole = images.predict(arrays, data.test, Indicators.of(data.test))
    return described(model) | {"plug_in": plug_in, "full": whole}


def tuned(measure_one, data, grid, cell):
    """With the arguments that do best on a part of the training images, which is left out."""
    apart, grid = data.for_tuning(cell.seed), list(grid)
    found = [measure_one(apart, *arguments, cell)["full"] for arguments in grid]
    return measure_one(data, *grid[int(np.argmax(found))], cell)


def fit(
    train, algorithm, init, cell, gamma=None, records=None, likelihood="multinomial", **options
):
    """A fitted model of one chain, whose clock counts processor seconds; `records` is told of its
    records."""
    fixed = {"multinomial": {"pseudo_counts": gamma}}
    model = AcceleratedDPMixture(
        likelihood=likelihood,
        hyperparameters="infer" if gamma is None else fixed,
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_exact=images.MANY, max_time=cell.budget),
        init=init,
        point_estimate="vi",  # of one draw that draw; "map" can climb from it for minutes
        n_jobs=1,
        random_state=cell.seed,
        **options,
    )
    if records is not None:
        model._on_record = records
    of_collapsed = images.records_of_collapsed_chains(records) if records else nullcontext()
    with processor_clock(), of_collapsed, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is shown is how it gets there
        return model.fit(train)


def described(model):
    """What a fitted model has come to."""
    arrays = model.draws_[0][-1].arrays
    return {
        "clusters": len(images.sizes_of(arrays)),
        "gamma": float(np.ravel(arrays["multinomial/pseudo_counts"])[0]),
        "sweeps": float(model.n_sweeps_),
        "chain_seconds": float(np.nanmax(model.trace_["seconds"])),
    }


def measure_tuned(data, gamma, cell):
    """The default with this gamma, and the mean over its draws."""
    model = fit(data.train, "accelerated", "one", cell, gamma, n_draws=N_DRAWS, thin=THIN)
    return described(model) | {"full": float(model.score(data.test))}


def measure_em(data, n_components, gamma, cell):
    """EM in one thread, for the cell's seconds at most."""
    return measure_passes(expectation_maximisation, data, n_components, gamma, cell)


def measure_mean_field(data, truncation, gamma, cell):
    """Mean field likewise."""
    return measure_passes(variational_bayes, data, truncation, gamma, cell)


def measure_passes(fitting, data, n_components, gamma, cell):
    """The last of the passes that there is time for."""
    n_components = min(n_components, len(data.train))
    for seconds, n, fitted in timed_passes(fitting, data.train, n_components, gamma, cell):  # noqa: B007
        pass
    return described_reference(fitted, gamma, data.test) | {
        "sweeps": n,
        "chain_seconds": round(seconds, 2),
    }


def timed_passes(fitting, train, n_components, gamma, cell):
    """Processor seconds, number and outcome of each pass, while there is time for another."""
    with mock.patch.object(references, "N_THREADS", 1):
        passes = fitting(train, n_components, n_passes=PASSES, gamma=gamma, seed=cell.seed)
        seconds, began = 0.0, time.process_time()
        for n, fitted in enumerate(passes, start=1):
            seconds += time.process_time() - began
            yield seconds, n, fitted
            if seconds > cell.budget * n / (n + 1):
                return
            began = time.process_time()


def described_reference(fitted, gamma, test):
    """What a reference's components have come to."""
    indicators = Indicators.of(test)
    whole = full(indicators, fitted.counts, fitted.log_weights, gamma).mean()
    occupied = fitted.sizes > images.OCCUPIED
    theta = references.posterior_means(fitted.counts[occupied], gamma)
    plug_in = references.plug_in(test, theta, fitted.sizes[occupied]).mean()
    return {
        "clusters": int(occupied.sum()),
        "gamma": gamma,
        "plug_in": float(plug_in),
        "full": float(whole),
    }


def measure_without_clusters(data, name, gamma, cell):
    """The prior alone, or every training image as a cluster."""
    clusters = 0 if name == "prior alone" else len(data.train)
    return measure_level(data, name.split()[0], gamma) | {"clusters": clusters, "gamma": gamma}


def measure_course(data, cell):
    """The way of a fit, the sizes of its clusters and the features of the largest."""
    some = data.test[images.evenly(len(data.test), course.TEST_ROWS)]
    if cell.method == EM:
        passes = timed_passes(expectation_maximisation, data.train, COMPONENTS[0], 1.0, cell)
        ways = [(seconds, fitted) for seconds, _, fitted in passes]
        curve = [(at, described_reference(fitted, 1.0, some)) for at, fitted in ways]
        sizes, counts = ways[-1][1].sizes, ways[-1][1].counts
        return course.described(curve, sizes, references.posterior_means(counts, 1.0))
    records, indicators = images.Records(), Indicators.of(some)
    algorithm, is_logistic = cell.method.split(",")[0], cell.method == course.LOGISTIC
    likelihood = "logistic_normal" if is_logistic else "multinomial"
    fit(data.train, algorithm, STARTS["one"], cell, records=records, likelihood=likelihood)
    curve = []
    for at, arrays in records.all():
        plug_in, whole = images.predict(arrays, some, indicators)
        clusters = len(images.sizes_of(arrays))
        curve.append((at, {"plug_in": plug_in, "full": whole, "clusters": clusters}))
    if is_logistic:
        return course.described(curve, images.sizes_of(arrays), arrays["theta"])
    gamma = float(np.ravel(arrays["multinomial/pseudo_counts"])[0])
    features = references.posterior_means(arrays["multinomial/count"].T, gamma)
    return course.described(curve, images.sizes_of(arrays), features)


def measure_level(data, name, gamma):
    """Of a predictor without clustering; how many counts an image has, on average."""
    test, gamma = data.test[images.evenly(len(data.test), LEVEL_ROWS)], float(gamma)
    total = {"total": float(test.sum(axis=1).mean())}
    if name == "prior":
        return {"full": float(references.prior_predictive(test, gamma).mean())} | total
    with mock.patch.object(references, "N_THREADS", 1):
        plug_in, whole = references.singletons(data.train, test, gamma, 1.0)
    return {"plug_in": float(plug_in.mean()), "full": float(whole.mean())} | total


# -- tables ----------------------------------------------------------------------------------------


def runs_of(records):
    """Data to method to seed to record."""
    found = {data: {} for data in DATA}
    for cell, record in of_figure(records, "table1").items():
        found[cell.data].setdefault(cell.method, {})[cell.seed] = record
    return {data: methods for data, methods in found.items() if methods}


def numbers(seeds, name):
    """Seed to a number of its record."""
    return {seed: record[name] for seed, record in seeds.items()}


def table1(records):
    """Full (plug-in) predictive by algorithm and start; occupied clusters."""
    rows = []
    for data, methods in runs_of(records).items():
        for algorithm in ALGORITHMS:
            row = [cell_of(methods.get(f"{algorithm} from {start}", {})) for start in STARTS]
            rows.append((data, algorithm, *row))
        for method in REFERENCES:
            rows.append((data, method, cell_of(methods.get(method, {})), "", ""))
    headings = "data", "algorithm", "from one cluster", *(f"from {s}" for s in list(STARTS)[1:])
    return shown(headings, rows, records, "table1")


def cell_of(seeds):
    """Mean full density, the plug-in one in brackets, clusters and gamma."""
    if not seeds:
        return ""
    text = mean(numbers(seeds, "full").values()).text(1)
    if all("plug_in" in record for record in seeds.values()):
        text += f" ({np.mean(list(numbers(seeds, 'plug_in').values())):.1f})"
    clusters = np.mean(list(numbers(seeds, "clusters").values()))
    gammas = sorted({f"{gamma:.2g}" for gamma in numbers(seeds, "gamma").values()})
    return f"{text}; {clusters:,.0f} clusters, gamma {', '.join(gammas)}"


def levels_table(records):
    """Full and plug-in densities without clustering."""
    found, rows = of_figure(records, "levels"), []
    for data in DIGITS:
        of_data = {cell.method: record for cell, record in found.items() if cell.data == data}
        for name in ("full", "plug_in"):
            row = [
                of_data.get(f"{level}, gamma {g:g}", {}) for level in LEVELS for g in LEVELS[level]
            ]
            if of_data:
                texts = [f"{record[name]:,.0f}" if name in record else "" for record in row]
                total = f"{np.mean([record['total'] for record in of_data.values()]):,.0f}"
                rows.append((data, total, name.replace("_", "-"), *texts))
    headings = (
        "",
        "counts of an image",
        "density",
        *(f"{level}, gamma {g:g}" for level in LEVELS for g in LEVELS[level]),
    )
    return shown(headings, rows, records, "levels")


def long_table(records):
    """All digits for as long as it takes."""
    rows = [
        (cell.method, str(cell.seed), f"{cell.budget:g}", cell_of({cell.seed: record}))
        for cell, record in of_figure(records, "long").items()
    ]
    return shown(("chain", "seed", "seconds", "full (plug-in)"), rows, records, "long")


def table_picture(records):
    """Full predictive densities by algorithm and start; the references as lines across."""
    runs = runs_of(records)
    figure, axes = plt.subplots(
        -(-len(runs) // 2), 2, figsize=(12, 2.1 * len(runs) + 0.6), layout="constrained"
    )
    for ax, (data, methods) in zip(np.ravel(axes), runs.items(), strict=False):
        for i, (start, marker) in enumerate(MARKERS.items()):
            at, values = [], []
            for place, algorithm in enumerate(ALGORITHMS):
                for record in methods.get(f"{algorithm} from {start}", {}).values():
                    at.append(place + 0.2 * (i - 1))
                    values.append(record["full"])
            shade = str(0.35 * i)
            ax.plot(at, values, marker, color=shade, markerfacecolor="none", label=f"from {start}")
        for method, line in LINES.items():
            if method in methods:
                level = np.mean(list(numbers(methods[method], "full").values()))
                ax.axhline(level, color="black", linestyle=line, linewidth=1, label=method)
        ax.set_xlim(-0.5, len(ALGORITHMS) - 0.5)
        ax.set_xticks(range(len(ALGORITHMS)), ALGORITHMS, fontsize=8)
        ax.set_title(data, fontsize=10, loc="left")
        ax.set_ylabel("full predictive, nats per test image")
        ax.grid(alpha=0.3, axis="y")
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    return figure


# -- verdicts --------------------------------------------------------------------------------------


def claims(records):
    """Claims of the paper's section 4.1 and Table 1, and what is asked of ours."""
    yield from synthetic.claims(records)
    yield from published.claims(records)
    for data, methods in runs_of(records).items():
        ours = numbers(methods.get("accelerated from one", {}), "full")
        for other in ("collapsed", "auxiliary", "slice", "hybrid"):
            theirs = numbers(methods.get(f"{other} from one", {}), "full")
            if ours and theirs:
                text = f"{data}: accelerated predicts better than {other}, from one cluster"
                yield verdict(text, paired(ours, theirs))
        pairs = ((EM_TUNED, "accelerated from one"), (TUNED, EM_TUNED), (TUNED, FIELD_TUNED))
        for one, other in pairs:
            if {one, other} <= methods.keys():
                gain = paired(numbers(methods[one], "full"), numbers(methods[other], "full"))
                yield verdict(f"{data}: {one} is ahead of {other}", gain)


def verdict(text, gain: Estimate):
    """A line of the table."""
    return text, f"{gain.text(1)} nats per image", is_positive(gain)


def tables(records):
    """All tables of the page, by name."""
    return {
        "verdicts": judged(
            claims(records), records, *synthetic.FIGURES, *published.FIGURES, "table1"
        ),
        "table1": table1(records),
        "levels": levels_table(records),
        "long": long_table(records),
        "synthetic": synthetic.synthetic_table(records),
        "logistic": synthetic.synthetic_table(records, "logistic"),
        "bias": published.bias_table(records),
        "published": published.published_table(records),
        "published_images": published.images_table(records),
        "course": course.course_table(records),
    }


def pictures(records):
    """All pictures of the page, by name."""
    found = {}
    if of_figure(records, "table1"):
        found["table1"] = table_picture(records)
    if of_figure(records, "synthetic"):
        found["synthetic"] = synthetic.synthetic_picture(records)
    if of_figure(records, "bias") and of_figure(records, "published"):
        found["published"] = published.published_picture(records)
    if of_figure(records, "course"):
        found["course"] = course.course_picture(records)
        found["features"] = course.features_picture(records)
    return found
