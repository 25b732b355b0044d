"""Table 1 and Figures 2 to 7 of the paper on the accelerated sampler, by AcceleratedDPMixture.

    python benchmarks/papers/accelerated_images.py DATA_FOLDER          # 40 minutes, two cores
    python benchmarks/papers/accelerated_images.py DATA_FOLDER --quick  # all, small, 2 minutes
    python benchmarks/papers/accelerated_images.py DATA_FOLDER --parts mnist long --seeds 3
    python benchmarks/papers/accelerated_images.py DATA_FOLDER --full   # all on all data, hours

Zhang, Williamson and Perez-Cruz (2022), "Accelerated Parallel Non-conjugate Sampling for Bayesian
Non-parametric Models". DATA_FOLDER holds ``mnist.npz``, ``yaleb_32x32.npz``,
``cifar10_grey16_50k.npz``. Parts:

- *mnist* (Figures 2, 3): 60,000 digits, 10,000 for testing, every algorithm from every start;
- *long*: the default for 300 s on the same;
- *raw*: the same digits in all 256 shades, as in the paper;
- *yale* (4, 5): faces of 32 x 32 pixels, 1,810 and 604 of a permutation by seed 0, less 13 that
  are black all over at this depth, which the likelihood refuses;
- *cifar* (6, 7): grey pictures of 16 x 16 pixels, 40,000 and the last 10,000;
- *logistic* (section 4.3): the logistic-normal multinomial on the digits.

Pixels are counts // 32, but for *raw*. Of 0-255 the multinomial is so sure that the comparison
says little: the prior alone predicts better than any mixture's features. So two predictives stand
side by side, both mean log densities per test image, multinomial coefficient included: "plug-in",
the mixture of the posterior mean features of occupied clusters by their sizes, and "full",
integrated over the features, with the new-cluster term, which is ``score``. Their bounds are in the
table too: the prior, and every training image as its own cluster. EM (plug-in; its "full" puts a
Dirichlet posterior given the expected counts on each feature) and mean-field variational inference
(gamma = 1, concentration 10) run beside, on the same two cores. The paper's pictures are larger
(Yale 168 x 192, CIFAR 32 x 32): absolute numbers do not transfer.

The samplers infer concentration and pseudo-counts; ``--gamma`` fixes the latter. Predictives are
computed after a fit from draws kept during it, so that no evaluation counts as fitting; those
before the end on `curve_rows` of the test rows, moved by what the end differs on all of them.
Seconds leave out reading the rows and k-means.
What does not fit ``--minutes`` is cut, and the cut printed: seconds per run first, below half of
them rows too, below an eighth seeds too. Tables and figures go to ``--figures``.
"""

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skanneal import AcceleratedDPMixture
from skanneal.chains import Chain
from skanneal.schedules import AcceleratedSchedule

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the rooms are
from papers.accelerated_figures import draw_figures, markdown
from papers.accelerated_references import (
    Indicators,
    expectation_maximisation,
    full,
    plug_in,
    posterior_means,
    predictive_log_weights,
    prior_predictive,
    singletons,
    variational_bayes,
)

ALGORITHMS = ("accelerated", "hybrid", "auxiliary", "importance", "slice", "collapsed")
INITS = ("one", 100, "kmeans")
COMPARED = ("auto", "hybrid", "collapsed")  # elsewhere than on the digits
EM_COMPONENTS = (100, 300, 1000)
TRUNCATIONS = (100, 300)
N_PASSES = 30
SINGLETON_ROWS = 1000  # test images, evenly spaced
FIRST_RECORD, GROWTH = 0.25, 1.3  # seconds of the first kept draw, ratio of the next ones'
PREDICTIVES = ("plug_in", "full")
OCCUPIED = 0.5  # expected rows that make a reference's component occupied
DEFAULT = "accelerated"  # what "auto" stands for
MANY = 10**7  # sub-iterations: the seconds end a fit
QUICK_ROWS, QUICK_TEST, QUICK_SECONDS = 2000, 500, 1.0
PER_RUN = 12.0  # seconds of a run beside the fit: reading rows, predictives of the kept draws
# seconds of a part beside its runs: its references
BESIDE = {"mnist": 220, "long": 10, "raw": 120, "yale": 30, "cifar": 80, "logistic": 10}
LEAST_SHARE = 1 / 8  # of the planned seconds; below that, seeds are cut
MARKS = {30: -523.0, 300: -505.0}  # what the default must be better than on the digits


class Part(NamedTuple):
    file: str
    divisor: int
    shape: tuple
    likelihood: str
    runs: tuple  # (algorithm, init)
    seconds: float  # planned, per run
    curve_rows: int  # test rows, evenly spaced, that curves are computed on
    references: bool


ALL = tuple((algorithm, init) for init in INITS for algorithm in ALGORITHMS)
NOT_CONJUGATE = (("auto", "one"), ("auxiliary", "one"))
FROM_ONE = tuple((algorithm, "one") for algorithm in COMPARED)
DIGITS, FACES, THINGS = "mnist.npz", "yaleb_32x32.npz", "cifar10_grey16_50k.npz"
PARTS = {
    "mnist": Part(DIGITS, 32, (28, 28), "multinomial", ALL, 60, 2000, True),
    "long": Part(DIGITS, 32, (28, 28), "multinomial", (("auto", "one"),), 300, 2000, False),
    "raw": Part(DIGITS, 1, (28, 28), "multinomial", FROM_ONE, 60, 500, True),
    "yale": Part(FACES, 32, (32, 32), "multinomial", FROM_ONE, 60, 2000, True),
    "cifar": Part(THINGS, 32, (16, 16), "multinomial", FROM_ONE, 60, 2000, True),
    "logistic": Part(
        DIGITS,
        32,
        (28, 28),
        "logistic_normal",
        (("auto", "one"), ("auxiliary", "one")),
        60,
        2000,
        False,
    ),
}


# -- data ------------------------------------------------------------------------------------------


def load(folder, part, n_train, n_test):
    """Training and test rows of counts; of fewer than all, the first."""
    with np.load(Path(folder) / part.file) as file:
        if part.file == DIGITS:
            train, test = file["X_train"], file["X_test"]
        elif part.file == FACES:
            rows = np.random.default_rng(0).permutation(len(file["X"]))
            train, test = file["X"][rows[:1810]], file["X"][rows[1810:]]
        else:
            train, test = file["X"][:40_000], file["X"][40_000:]
    train, test = train[:n_train] // part.divisor, test[:n_test] // part.divisor
    # a picture that is black all over says nothing, and a row of zeros is refused
    return train[train.any(axis=1)], test[test.any(axis=1)]


# -- one run ---------------------------------------------------------------------------------------


class Records:
    """Draws of a running fit at growing intervals, and its end."""

    def __init__(self):
        self.kept, self.newest, self.next = [], None, FIRST_RECORD  # the newest: a chain

    def __call__(self, _, chain):
        self.newest = chain
        if chain.seconds >= self.next:
            self.keep()
            self.next = GROWTH * chain.seconds

    def keep(self):
        self.kept.append((self.newest.seconds, drawn(self.newest)))

    def all(self):
        """What was kept, the end among it."""
        if not self.kept or self.kept[-1][0] < self.newest.seconds:
            self.keep()
        return self.kept


def drawn(chain):
    """A chain's draw, with features in place of atoms that nobody integrated out."""
    draw = chain.draw()
    for name in {"theta", "prior_theta"} & draw.keys():
        draw[name] = chain.state.likelihood.features(draw[name])
    return draw


def sizes_of(arrays):
    return next(value for name, value in arrays.items() if name.endswith("/size"))


def predict(arrays, X, indicators):
    """Mean plug-in and full log density per test row of a draw."""
    sizes = sizes_of(arrays)
    weights = predictive_log_weights(
        sizes, float(arrays["concentration"]), float(arrays["discount"])
    )
    if "theta" in arrays:  # no conjugate prior: the new cluster is the mean over draws from it
        theta, unseen = arrays["theta"], arrays["prior_theta"]
        parts = np.append(np.exp(weights[:-1]), np.full(len(unseen), 1 / len(unseen)))
        parts[len(theta) :] *= np.exp(weights[-1])
        whole = plug_in(X, np.concatenate([theta, unseen]), parts)
    else:
        gamma = float(np.ravel(arrays["multinomial/pseudo_counts"])[0])
        counts = arrays["multinomial/count"].T
        theta = posterior_means(counts, gamma)
        with_new = np.concatenate([counts, np.zeros((1, X.shape[1]))])
        whole = full(indicators, with_new, weights, gamma)
    return float(plug_in(X, theta, sizes).mean()), float(whole.mean())


def fit(part, train, algorithm, init, seconds, seed, gamma):
    """A fitted model and the draws kept on the way."""
    fixed = gamma is not None and part.likelihood == "multinomial"
    model = AcceleratedDPMixture(
        likelihood=part.likelihood,
        hyperparameters={"multinomial": {"pseudo_counts": gamma}} if fixed else "infer",
        algorithm=algorithm,
        schedule=AcceleratedSchedule(n_exact=MANY, max_time=seconds),
        init=min(init, len(train)) if isinstance(init, int) else init,
        point_estimate="vi",  # of one draw that draw; "map" can climb from it for minutes
        n_jobs=2,
        random_state=seed,
    )
    model._on_record = records = Records()
    with warnings.catch_warnings(), records_of_collapsed_chains(records):
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is shown is how it gets there
        return model.fit(train), records.all()


class Recorded(NamedTuple):
    """A chain as `Records` asks it."""

    seconds: float
    draw: Callable
    state: object


@contextmanager
def records_of_collapsed_chains(records):
    """Their records, too: those chains report to nobody."""
    record = Chain.record

    def record_and_keep(chain):
        record(chain)
        records(0, Recorded(chain.clock.seconds, chain.draw, chain.state))

    with patch.object(Chain, "record", record_and_keep):
        yield


class Data(NamedTuple):
    """Rows to fit and to predict; of the latter some, for curves."""

    train: np.ndarray
    test: np.ndarray
    indicators: Indicators
    some: np.ndarray
    some_indicators: Indicators

    @classmethod
    def of(cls, train, test, curve_rows):
        some = test[evenly(len(test), curve_rows)]
        return cls(train, test, Indicators.of(test), some, Indicators.of(some))


def evenly(n, most):
    """At most so many of range(n)."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def curve_of(records, predict, data):
    """Arrays by name; predictives on some test rows, moved to where the end is on all of them."""
    at, clusters, draws = zip(*records, strict=True)
    curve = np.array([predict(draw, data.some, data.some_indicators) for draw in draws])
    curve += np.array(predict(draws[-1], data.test, data.indicators)) - curve[-1]
    return {
        "seconds": np.array(at),
        "clusters": np.array(clusters),
        "plug_in": curve[:, 0],
        "full": curve[:, 1],
    }


def run(part, data, algorithm, init, seconds, seed, gamma):
    """One fit: its curve, and what the table and the figures say of it."""
    model, records = fit(part, data.train, algorithm, init, seconds, seed, gamma)
    last = records[-1][1]
    records = [(at, len(sizes_of(draw)), draw) for at, draw in records]
    pseudo_counts = np.ravel(last.get("multinomial/pseudo_counts", np.nan))
    return {
        "name": algorithm,
        "init": str(init),
        "seed": seed,
        **curve_of(records, predict, data),
        "sweeps": float(model.trace_["sweeps"][0][-1]),
        "gamma": float(pseudo_counts[0]),
        "sizes": np.bincount(model.labels_),
        "features": model.features_,
    }


# -- references ------------------------------------------------------------------------------------


def levels(train, test):
    """Predictors without clustering: rows of the table."""
    some = evenly(len(test), SINGLETON_ROWS)
    found = []
    for gamma in (1.0, 0.1):
        whole = float(prior_predictive(test, gamma).mean())
        found.append(level("prior", gamma, np.nan, whole, len(test)))
    for gamma in (1.0, 0.1):
        plug, whole = singletons(train, test[some], gamma, 1.0)
        found.append(level("singletons", gamma, float(plug.mean()), float(whole.mean()), len(some)))
    return found


def level(name, gamma, plug, whole, n_rows):
    return {"name": name, "gamma": gamma, "plug_in": plug, "full": whole, "n_test": n_rows}


def predict_components(fitted, X, indicators):
    """As `predict`, of EM's or mean field's components."""
    occupied = fitted.sizes > OCCUPIED
    theta = posterior_means(fitted.counts[occupied], 1.0)
    whole = full(indicators, fitted.counts, fitted.log_weights, 1.0)
    return float(plug_in(X, theta, fitted.sizes[occupied]).mean()), float(whole.mean())


def reference(name, passes, data):
    """EM or mean field, as `run`; seconds of the passes alone."""
    records, spent, start = [], 0.0, time.perf_counter()
    for i, fitted in enumerate(passes, start=1):
        spent += time.perf_counter() - start
        if i in (1, 2, 4, 7, 12, 20, N_PASSES):
            records.append((spent, int((fitted.sizes > OCCUPIED).sum()), fitted))
        start = time.perf_counter()
    occupied = fitted.sizes > OCCUPIED
    one = {
        "name": name,
        "init": "rows",
        "seed": 0,
        **curve_of(records, predict_components, data),
        "sweeps": float(N_PASSES),
        "gamma": 1.0,
        "sizes": fitted.sizes[occupied],
        "features": posterior_means(fitted.counts[occupied], 1.0),
    }
    print(f"  {name}: {told(one)}", flush=True)
    return one


def told(one):
    return (
        f"{one['seconds'][-1]:.1f} s, {one['sweeps']:.0f} sweeps, {one['clusters'][-1]} clusters, "
        f"plug-in {one['plug_in'][-1]:.1f}, full {one['full'][-1]:.1f}"
    )


def references(part, data, options):
    """EM and mean field; on the digits in all sizes, elsewhere one of each."""
    train = data.train
    of_all = part is PARTS["mnist"] and not options.quick
    found = []
    for n in EM_COMPONENTS if of_all else EM_COMPONENTS[:1]:
        n = min(n, len(train))
        passes = expectation_maximisation(train, n, n_passes=N_PASSES)
        found.append(reference(f"EM {n}", passes, data))
    for n in TRUNCATIONS if of_all else TRUNCATIONS[:1]:
        n = min(n, len(train))
        passes = variational_bayes(train, n, n_passes=N_PASSES)
        found.append(reference(f"mean field {n}", passes, data))
    return found


# -- one part --------------------------------------------------------------------------------------


def run_part(name, options, seconds, share_rows, n_seeds):
    """A part's runs and references, drawn; the runs, and the rows of the table."""
    part = PARTS[name]
    rows, test_rows = (QUICK_ROWS, QUICK_TEST) if options.quick else (None, None)
    train, test = load(options.data, part, rows, test_rows)
    if share_rows < 1:
        train = train[: int(share_rows * len(train))]
    print(
        f"\n{name}: {len(train)} x {train.shape[1]}, {len(test)} for testing, {seconds:.3g} s per "
        f"run, {n_seeds} seed(s)",
        flush=True,
    )
    data = Data.of(train, test, part.curve_rows)
    fixed = levels(train, test) if part.references else []
    for one in fixed:
        print(
            f"  {one['name']}, gamma {one['gamma']:g}: plug-in {one['plug_in']:.1f}, full "
            f"{one['full']:.1f} on {one['n_test']} rows",
            flush=True,
        )
    beside = references(part, data, options) if part.references else []
    runs = []
    for seed in range(n_seeds):
        for algorithm, init in planned(part, options):
            runs.append(run(part, data, algorithm, init, seconds, seed, options.gamma))
            print(f"  {algorithm}, init {init}, seed {seed}: {told(runs[-1])}", flush=True)
    draw_figures(name, part.shape, runs, beside, fixed, options.figures)
    return runs, [row_of(name, one) for one in [*runs, *beside, *fixed]]


def row_of(part, one):
    """What the table says: of a curve its end."""
    row = {"part": part}
    for key in ("name", "init", "seed", "gamma", "seconds", "sweeps", "clusters", *PREDICTIVES):
        value = one.get(key, "")
        row[key] = value[-1].item() if isinstance(value, np.ndarray) else value
    return row


def planned(part, options):
    """(algorithm, init) of a part; with --full every algorithm that there can be."""
    if not options.full or part is PARTS["long"]:
        return part.runs
    return [run for run in ALL if run[0] != "collapsed" or part.likelihood == "multinomial"]


def judge(curves):
    """Whether the default is as good as it must be on the digits, as soon as it must be."""
    for seconds, mark in MARKS.items():
        for part in ("mnist", "long"):
            for one in curves.get(part, []):
                default = one["name"] in ("auto", DEFAULT) and one["init"] == "one"
                within = one["full"][one["seconds"] <= seconds]
                if default and len(within):
                    told = "better" if within[-1] > mark else "not better"
                    print(
                        f"{part}, {one['name']}, seed {one['seed']}: full {within[-1]:.1f} within "
                        f"{seconds} s, {told} than {mark:g}"
                    )


# -- what fits the time ----------------------------------------------------------------------------


class Budget:
    """Shares of the seconds and rows, and seeds, that let the parts end in time.

    *long* is never cut. A part's own cost beside its runs is guessed (`BESIDE`), and what was
    really spent is known before the next part begins.
    """

    def __init__(self, options):
        self.options, self.began = options, time.perf_counter()

    def of(self, name, to_come):
        """(seconds per run, share of rows, seeds) of a part; `to_come`: it and those after it."""
        options, seeds = self.options, self.options.seeds
        planned_seconds = PARTS[name].seconds
        if options.seconds is not None or options.quick:
            return options.seconds or QUICK_SECONDS, 1.0, seeds
        if options.minutes is None or name == "long":
            return planned_seconds, 1.0, seeds
        needed = sum(
            len(planned(PARTS[part], options)) * PARTS[part].seconds * seeds
            for part in to_come
            if part != "long"
        )
        left = 60 * options.minutes - (time.perf_counter() - self.began)
        for part in to_come:
            n_runs = len(planned(PARTS[part], options)) * seeds
            left -= BESIDE[part] + PER_RUN * n_runs
            left -= PARTS["long"].seconds * seeds * (part == "long")
        share = min(1.0, max(left, 0.0) / needed)
        if share < LEAST_SHARE and seeds > 1:
            seeds = max(1, int(seeds * share / LEAST_SHARE))
        share = max(share, LEAST_SHARE)
        rows = min(1.0, 2 * share)
        if share < 1:
            print(
                f"\nCut to fit {options.minutes:g} minutes: in {name} {share:.0%} of the planned "
                f"{planned_seconds:g} s per run, {rows:.0%} of the rows, {seeds} of "
                f"{options.seeds} seed(s)"
            )
        return share * planned_seconds, rows, seeds


def write(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the three npz files")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--gamma", type=float, help="fixes the pseudo-counts (inferred)")
    parser.add_argument("--seconds", type=float, help="per run, in every part; nothing is cut")
    parser.add_argument("--minutes", type=float, help="for everything (38; with --full no limit)")
    parser.add_argument("--full", action="store_true", help="every algorithm and start on all data")
    parser.add_argument("--quick", action="store_true", help="few rows, few seconds")
    parser.add_argument("--figures", type=Path, default=Path("build/accelerated"))
    options = parser.parse_args()
    if options.minutes is None and not options.full:
        options.minutes = 38.0
    options.figures.mkdir(parents=True, exist_ok=True)
    names = [name for name in PARTS if name in options.parts]
    budget, rows, curves = Budget(options), [], {}
    for i, name in enumerate(names):
        curves[name], of_part = run_part(name, options, *budget.of(name, names[i:]))
        rows += of_part
        write(rows, options.figures / "accelerated_images.csv")
        Path(options.figures / "accelerated_images.md").write_text(markdown(rows))
    print(f"\n{markdown(rows)}")
    if not options.quick:
        judge(curves)
    minutes = (time.perf_counter() - budget.began) / 60
    print(f"{minutes:.1f} minutes. Tables, figures: {options.figures}")


if __name__ == "__main__":
    main()
