"""Zhang, Williamson and Perez-Cruz (2022), Table 1: all algorithms from all starts, EM beside.

Pixels are counts // 32. Cut: Yale's faces have 32 x 32 pixels, not 168 x 192; MNIST has 10,000
training and 1,000 test images, not 60,000 and 10,000; there are 2 shards in one thread, not 10
processors. A chain has the cell's processor seconds, and predicts with its last draw.

References are not handicapped. "EM, tuned" chooses the number of components and gamma by the full
predictive density of a tenth of the training images, then starts anew on all of them; every fit has
the seconds of a chain, or 30 passes. "accelerated, tuned" chooses gamma alike, and predicts with
the mean over 20 draws, in the seconds of a chain.
"""

import functools
import os
import time
import warnings
from itertools import product
from typing import NamedTuple
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from harness.markdown import markdown
from papers import accelerated_images as images
from papers import accelerated_references as references
from papers.accelerated_references import Indicators, expectation_maximisation, full
from papers.cells import Cell, of_figure, shown
from papers.processor_time import processor_clock
from papers.verdicts import Estimate, is_positive, mean, paired
from skanneal import AcceleratedDPMixture
from skanneal.schedules import AcceleratedSchedule

NAME = "accelerated"
SEEDS = 3
STARTS = {"one": "one", "100 at random": 100, "k-means": "kmeans"}
ALGORITHMS = images.ALGORITHMS
EM, EM_TUNED, TUNED = "EM 100, gamma 1", "EM, tuned", "accelerated, tuned"
REFERENCES = (EM, EM_TUNED, TUNED)
GAMMAS, COMPONENTS = (0.03, 0.1, 0.3, 1.0), (100, 300, 1000)
VALIDATION = 10  # one of so many training images
PASSES, N_DRAWS, THIN = 30, 20, 5
# By name: part of `accelerated_images`, training and test images, processor seconds.
DATA = {
    "Yale, 1,799 x 1,024": ("yale", None, None, 8.0),
    "MNIST, 10,000 x 784": ("mnist", 10_000, 1000, 20.0),
}
DIGITS = {"MNIST, 60,000 x 784, // 32": "mnist", "MNIST, 60,000 x 784, 0 to 255": "raw"}
LEVELS = {"prior": (1.0, 0.1), "single images": (1.0, 0.1)}  # with these gammas
LEVEL_ROWS, LONG_ROWS, LONG_SECONDS = 1000, 2000, 300.0  # test images, evenly spaced
MARKERS = {"one": "o", "100 at random": "s", "k-means": "^"}
LINES = {EM: ":", EM_TUNED: "--", TUNED: "-"}


def cells():
    """Data outermost, then seeds; what takes all digits last."""
    for (data, (*_, seconds)), seed in product(DATA.items(), range(SEEDS)):
        for method in REFERENCES:
            yield Cell("table1", data, method, seed, seconds)
        for algorithm, start in product(ALGORITHMS, STARTS):
            yield Cell("table1", data, f"{algorithm} from {start}", seed, seconds)
    for data, (name, gammas) in product(DIGITS, LEVELS.items()):
        yield from (Cell("levels", data, f"{name}, gamma {gamma:g}") for gamma in gammas)
    for seed in range(SEEDS):
        yield Cell("long", next(iter(DIGITS)), "accelerated from one", seed, LONG_SECONDS)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured; tuning takes further fits."""
    if not cell.budget:
        return typical
    fits = {EM_TUNED: 1 + len(GAMMAS) * len(COMPONENTS), TUNED: 1 + len(GAMMAS)}
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
        return Images(rest, held_out)


@functools.lru_cache(maxsize=1)
def images_of(data):
    """The images of a data set."""
    part, n_train, n_test, _ = DATA.get(data, (DIGITS.get(data), None, None, None))
    folder = os.environ["SKANNEAL_DATA"]
    return Images(*images.load(folder, images.PARTS[part], n_train, n_test))


def measure(cell):
    """By the method."""
    data = images_of(cell.data)
    if cell.figure == "levels":
        return measure_level(data, *cell.method.split(", gamma "))
    if cell.figure == "long":
        data = data._replace(test=data.test[images.evenly(len(data.test), LONG_ROWS)])
    if cell.method == EM:
        return measure_em(data, COMPONENTS[0], 1.0, cell)
    if cell.method == EM_TUNED:
        apart, grid = data.for_tuning(cell.seed), list(product(COMPONENTS, GAMMAS))
        found = [measure_em(apart, n, gamma, cell)["full"] for n, gamma in grid]
        return measure_em(data, *grid[int(np.argmax(found))], cell)
    if cell.method == TUNED:
        apart = data.for_tuning(cell.seed)
        found = [measure_tuned(apart, gamma, cell)["full"] for gamma in GAMMAS]
        return measure_tuned(data, GAMMAS[int(np.argmax(found))], cell)
    algorithm, start = cell.method.split(" from ")
    model = fit(data.train, algorithm, STARTS[start], cell)
    arrays = model.draws_[0][-1].arrays
    plug_in, whole = images.predict(arrays, data.test, Indicators.of(data.test))
    return described(model) | {"plug_in": plug_in, "full": whole}


def fit(train, algorithm, init, cell, gamma=None, **options):
    """A fitted model of one chain, whose clock counts processor seconds."""
    fixed = {"multinomial": {"pseudo_counts": gamma}}
    model = AcceleratedDPMixture(
        likelihood="multinomial",
        hyperparameters="infer" if gamma is None else fixed,
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_exact=images.MANY, max_time=cell.budget),
        init=init,
        point_estimate="vi",  # of one draw that draw; "map" can climb from it for minutes
        n_jobs=1,
        random_state=cell.seed,
        **options,
    )
    with processor_clock(), warnings.catch_warnings():
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
    began = time.process_time()
    with mock.patch.object(references, "N_THREADS", 1):
        passes = expectation_maximisation(
            data.train, n_components, n_passes=PASSES, gamma=gamma, seed=cell.seed
        )
        for n, fitted in enumerate(passes, start=1):  # noqa: B007 -- the last one is used
            if time.process_time() - began > cell.budget * n / (n + 1):
                break
        seconds = time.process_time() - began
        indicators = Indicators.of(data.test)
        whole = full(indicators, fitted.counts, fitted.log_weights, gamma).mean()
        occupied = fitted.sizes > images.OCCUPIED
        theta = references.posterior_means(fitted.counts[occupied], gamma)
        plug_in = references.plug_in(data.test, theta, fitted.sizes[occupied]).mean()
    return {
        "clusters": int(occupied.sum()),
        "gamma": gamma,
        "sweeps": n,
        "chain_seconds": round(seconds, 2),
        "plug_in": float(plug_in),
        "full": float(whole),
    }


def measure_level(data, name, gamma):
    """Of a predictor without clustering."""
    test, gamma = data.test[images.evenly(len(data.test), LEVEL_ROWS)], float(gamma)
    if name == "prior":
        return {"full": float(references.prior_predictive(test, gamma).mean())}
    with mock.patch.object(references, "N_THREADS", 1):
        plug_in, whole = references.singletons(data.train, test, gamma, 1.0)
    return {"plug_in": float(plug_in.mean()), "full": float(whole.mean())}


# -- tables ----------------------------------------------------------------------------------------


def runs_of(records):
    """Data to method to seed to record."""
    found = {}
    for cell, record in of_figure(records, "table1").items():
        found.setdefault(cell.data, {}).setdefault(cell.method, {})[cell.seed] = record
    return found


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
                rows.append((data, name.replace("_", "-"), *texts))
    headings = "", "density", *(f"{level}, gamma {g:g}" for level in LEVELS for g in LEVELS[level])
    return shown(headings, rows, records, "levels")


def long_table(records):
    """The default on all digits."""
    rows = [
        (cell.data, str(cell.seed), f"{cell.budget:g}", cell_of({cell.seed: record}))
        for cell, record in of_figure(records, "long").items()
    ]
    return shown(("data", "seed", "seconds", "full (plug-in)"), rows, records, "long")


def table_picture(records):
    """Full predictive densities by algorithm and start; the references as lines across."""
    runs = runs_of(records)
    figure, axes = plt.subplots(
        1, len(runs), figsize=(6.5 * len(runs), 4.2), layout="constrained", squeeze=False
    )
    for ax, (data, methods) in zip(axes[0], runs.items(), strict=True):
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
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return figure


# -- verdicts --------------------------------------------------------------------------------------


def claims(records):
    """Claims of the paper's Table 1, and what is asked of ours."""
    for data, methods in runs_of(records).items():
        ours = numbers(methods.get("accelerated from one", {}), "full")
        for other in ("collapsed", "auxiliary", "slice", "hybrid"):
            theirs = numbers(methods.get(f"{other} from one", {}), "full")
            if ours and theirs:
                text = f"{data}: accelerated predicts better than {other}, from one cluster"
                yield verdict(text, paired(ours, theirs))
        for one, other in ((EM_TUNED, "accelerated from one"), (TUNED, EM_TUNED)):
            if {one, other} <= methods.keys():
                gain = paired(numbers(methods[one], "full"), numbers(methods[other], "full"))
                yield verdict(f"{data}: {one} is ahead of {other}", gain)


def verdict(text, gain: Estimate):
    """A line of the table."""
    return text, f"{gain.text(1)} nats per image", is_positive(gain)


def tables(records):
    """All tables of the page, by name."""
    return {
        "verdicts": markdown(("claim", "measured", "verdict"), claims(records)),
        "table1": table1(records),
        "levels": levels_table(records),
        "long": long_table(records),
    }


def pictures(records):
    """All pictures of the page, by name."""
    return {"table1": table_picture(records)} if of_figure(records, "table1") else {}
