"""Algorithms 2 and 3 of Zhang, Williamson and Perez-Cruz (2022) as published, for rows of counts.

`published` puts their two stages in the place of the package's, which are corrected:

* In the accelerated stage a row joins an atom that all shards have with weight P n f, where P is
  the number of shards and n the atom's rows on this one; an atom born here with weight n f; and
  one of m empty atoms with weight (alpha / m) f. Before every sub-iteration empty atoms are put
  on rows of the shard, chosen with probability in proportion to 1 / f under the row's own atom,
  and accepted whatever they are (rho = 1). The row that an atom is made from may take it.
* In the exact stage all atoms have weights, Dirichlet(n_1 .. n_K; alpha), also those that live on
  one shard. Rows may leave any of them, whether others stay or not. On one shard, drawn at random,
  rows may also open clusters, whose atoms are integrated out until the next synchronisation.

There are no splits and merges. What the paper leaves open is as in its authors' program: m = 5, and
the atom put on a row is the posterior mean given the row. As in the package's accelerated stage, a
row chooses among the eight best of the atoms that all shards have. How the concentration is drawn
is not among these parts: it is fixed in `bias`, and drawn as the package draws it in `published`.

`bias` has both stages, published and the package's, each for itself on six rows whose posterior is
enumerated; the budget of its cells is in synchronisations. `published` has section 4.1, and
`published_images` Yale's faces from one cluster, at equal processor seconds, on 2 shards and on the
10 of the paper's experiments with images, in one thread.
"""

import math
from collections import Counter
from contextlib import nullcontext
from itertools import product
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np

from papers import accelerated_synthetic as synthetic
from papers.cells import Cell, of_figure, shown
from papers.verdicts import is_about, is_positive, mean, paired
from skanneal.likelihoods import LIKELIHOODS
from skanneal.moves._random import below
from skanneal.parallel import InterruptNote
from skanneal.partition_priors import PitmanYor
from skanneal.sharded._accelerated_stage import AcceleratedStage, _Born, centres
from skanneal.sharded._assign import SHORTLIST, accelerated_rows, shortlist_rows, tiled
from skanneal.sharded._chain import STAGES, AcceleratedChain, ShardedRun
from skanneal.sharded._exact_stage import ExactStage, exact_segment
from skanneal.sharded._segments import (
    Stage,
    all_scores,
    bit_generator,
    draw_weights,
    report,
    words,
)
from skanneal.sharded._shards import ShardPool, Shards

N_PLACES = 5  # m

# -- the published stages --------------------------------------------------------------------------


class PublishedAcceleration(Stage):
    """The accelerated stage."""

    name = "accelerated"
    burn_in = True

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        theta = state.likelihood.draw(state.statistics, None, generator)
        sent = theta, state.likelihood, state.prior, len(state.labels), n_steps
        return published_segment, [(labels, *sent, words(generator)) for labels in state.labels]


def published_segment(rows, labels, theta, likelihood, prior, n_shards, n_steps, seed, stop):
    """A shard's part between two synchronisations; see `accelerated_segment`."""
    rng = bit_generator(seed)
    generator = np.random.Generator(rng)
    n_shared, labels = len(theta), labels.copy()
    members = np.bincount(labels, minlength=n_shared)
    with np.errstate(divide="ignore"):  # an atom that has no row here has no weight here
        log_weight = np.log(members)
    scores = all_scores(likelihood, rows, theta)
    atom = np.empty((len(rows), SHORTLIST), np.int32)
    value = np.empty((len(rows), SHORTLIST), np.float32)
    shortlist_rows(scores, tiled(log_weight), atom, value)
    value += math.log(n_shards)
    places = _Places(likelihood, rows, theta)
    log_place = math.log(prior.open_weight(n_shared) / N_PLACES)
    for _ in range(n_steps):
        if stop.is_set():
            break
        log_f = np.where(
            labels < n_shared,
            np.take_along_axis(scores, np.minimum(labels, n_shared - 1)[:, None], 1)[:, 0],
            np.take_along_axis(places.scores, np.maximum(labels - n_shared, 0)[:, None], 1)[:, 0],
        )
        places.fill(ill_explained(log_f + places.log_coefficients, N_PLACES, generator), log_place)
        done = accelerated_rows(
            labels,
            atom,
            value,
            places.scores,
            members,
            log_weight,
            places.members,
            places.log_weight,
            0.0,
            log_place,
            rng,
            stop.array,
        )
        places.redraw(np.maximum(labels - n_shared, -1), generator)
        if not done:
            break
    used = np.flatnonzero(places.members)
    number = np.full(n_shared + len(places.members), -1, np.int32)
    number[:n_shared] = np.arange(n_shared)
    number[n_shared + used] = n_shared + np.arange(len(used))
    return report(likelihood, rows, number[labels], n_shared + len(used))


def ill_explained(log_f, n, generator):
    """n rows, chosen with probabilities in proportion to 1 / f, with replacement."""
    weights = np.exp(log_f.min() - log_f.astype(float))
    return generator.choice(len(log_f), size=n, p=weights / weights.sum())


class _Places(_Born):
    """Columns of scores for the atoms born on a shard, and for empty ones."""

    def __init__(self, likelihood, rows, theta):
        super().__init__(len(rows), theta)
        self.likelihood, self.rows, self.n_places = likelihood, rows, N_PLACES
        each = np.arange(len(rows), dtype=np.int32)
        self.log_coefficients = likelihood.statistics(rows, each, len(rows))[:, -1]

    def fill(self, founders, log_place):
        """Put the empty atoms on these rows."""
        empty = np.flatnonzero(self.members == 0)
        if len(empty) < len(founders):
            self._grow()
            empty = np.flatnonzero(self.members == 0)
        self.log_weight[empty] = -np.inf
        empty = empty[: len(founders)]
        self._place(empty, centres(self.likelihood, self.rows[founders], None))
        self.log_weight[empty] = log_place

    def redraw(self, labels, generator):
        """Draw the atoms born here given their rows; `labels` are columns, -1 of other rows."""
        used = np.flatnonzero(self.members)
        if len(used):
            statistics = self.likelihood.statistics(self.rows, labels, len(self.members))
            self._place(used, self.likelihood.draw(statistics[used], None, generator))

    def _place(self, columns, theta):
        self.theta[columns] = theta
        self.scores[:, columns] = all_scores(self.likelihood, self.rows, theta)[:, : len(theta)]


class PublishedExact(ExactStage):
    """The exact stage."""

    n_pairs = 0

    def plan(self, state, n_steps, generator):
        """(function, arguments of each shard) of the next segment."""
        star = below(len(state.labels), generator)
        alpha, _ = state.prior.stick_breaking()
        log_w = draw_weights(np.r_[state.sizes, alpha], generator)
        theta = state.likelihood.draw(state.statistics, None, generator)
        atoms = np.arange(state.n_clusters)
        none_held = np.zeros(state.n_clusters, bool)
        arguments = []
        for p, labels in enumerate(state.labels):
            tail = None
            if p == star:
                tail = state.prior, float(log_w[-1]), alpha, self.n_auxiliary, None
            sent = labels, len(atoms), atoms, theta, log_w[:-1], none_held, state.likelihood, tail
            arguments.append((*sent, n_steps, words(generator)))
        return exact_segment, arguments


class ExactRows(ExactStage):
    """The package's exact stage without its splits and merges, which are exact by themselves."""

    n_pairs = 0


def published(accelerated=PublishedAcceleration, exact=PublishedExact):
    """In this context "accelerated" and "hybrid" run these stages."""
    stages = {
        "accelerated": (("accelerated", accelerated), ("exact", exact)),
        "hybrid": (("all", exact),),
    }
    return mock.patch.dict(STAGES, stages)


# -- cells -----------------------------------------------------------------------------------------

ROWS = np.array([[0, 2, 1], [0, 1, 2], [2, 0, 1], [3, 1, 0], [1, 0, 1], [1, 1, 0]])
GAMMA, ALPHA = 1.5, 1.0
SHARDS, MANY_SHARDS = (1, 2, 4), (2, 10)  # of the few rows; of section 4.1
YALE, YALE_SEEDS, YALE_SECONDS = "Yale, 1,799 x 1,024", 3, 8.0
IMAGES = {f"{YALE}, P = {n_shards}": n_shards for n_shards in MANY_SHARDS}
FEW = {f"{len(ROWS)} rows, P = {n_shards}": n_shards for n_shards in SHARDS}
MANY = {f"{synthetic.DATA}, P = {n_shards}": n_shards for n_shards in MANY_SHARDS}
OURS, THEIRS = "the package's", "published"
FIGURES = ("bias", "published", "published_images")
EXACT, ACCELERATED = "exact stage", "accelerated stage"
BIAS_STAGES = {
    f"{ACCELERATED}, {THEIRS}": PublishedAcceleration,
    f"{ACCELERATED}, {OURS}": AcceleratedStage,
    f"{EXACT}, {THEIRS}": PublishedExact,
    f"{EXACT}, {OURS}": ExactRows,
}
N_SEGMENTS = {ACCELERATED: 300, EXACT: 2000}  # an exact stage has to be seen more closely
BIAS_SEEDS = {ACCELERATED: 4, EXACT: 8}
N_STEPS, SEEDS, SECONDS = 2, 4, 3.0
ALONE = "the package's without splits and merges"
RUNS = (
    *(f"accelerated, {which}" for which in (THEIRS, OURS)),
    *(f"hybrid, {which}" for which in (THEIRS, OURS, ALONE)),
)
STYLES = {THEIRS: ("tab:red", "--"), OURS: ("black", "-"), ALONE: ("tab:blue", ":")}
TOLERANCE = 0.1  # features: what an exact stage may be off
MEASURES = ("features", "total_variation")


def cells():
    """The stages on few rows, then the algorithms of section 4.1, side by side by seed."""
    for seed, data, name in product(range(max(BIAS_SEEDS.values())), FEW, BIAS_STAGES):
        stage = name.split(",")[0]
        if seed < BIAS_SEEDS[stage]:
            yield Cell("bias", data, name, seed, N_SEGMENTS[stage])
    for seed, data, name in product(range(SEEDS), MANY, RUNS):
        yield Cell("published", data, name, seed, SECONDS)
    for seed, data, which in product(range(YALE_SEEDS), IMAGES, (THEIRS, OURS)):
        yield Cell("published_images", data, f"accelerated, {which}", seed, YALE_SECONDS)


def measure(cell, of_images=None):
    """By the figure; `of_images(cell, n_shards)` measures what has images."""
    if cell.figure == "bias":
        stage = BIAS_STAGES[cell.method]
        return measure_bias(stage, FEW[cell.data], int(cell.budget), cell.seed)
    algorithm, which = cell.method.split(", ")
    stages = {
        THEIRS: published(),
        OURS: nullcontext(),
        ALONE: published(AcceleratedStage, ExactRows),
    }
    with stages[which]:
        if cell.figure == "published_images":
            return of_images(cell, IMAGES[cell.data])
        return synthetic.measure_synthetic(algorithm, cell.budget, cell.seed, MANY[cell.data])


def likelihood_of_rows():
    """Of `ROWS`, with fixed pseudo-counts."""
    return LIKELIHOODS["multinomial"].of(ROWS, [[GAMMA]], [])


def enumerated():
    """The posterior: partition, as labels in the order of first rows, to probability."""
    likelihood, prior = likelihood_of_rows(), PitmanYor(ALPHA, 0.0)
    rows, found = likelihood.encode(ROWS), {}
    for labels in partitions(len(ROWS)):
        n = max(labels) + 1
        statistics = likelihood.statistics(rows, np.array(labels, np.int32), n)
        log_prior = prior.log_probability(np.bincount(labels))
        found[labels] = math.exp(log_prior + likelihood.log_marginal(statistics).sum())
    total = math.fsum(found.values())
    return {labels: weight / total for labels, weight in found.items()}


def partitions(n):
    """All partitions of n rows, as labels in the order of first rows."""
    if n == 0:
        yield ()
        return
    for shorter in partitions(n - 1):
        for label in range(max(shorter, default=-1) + 2):
            yield (*shorter, label)


def measure_bias(stage, n_shards, n_segments, seed):
    """A chain of one stage, for ever, beside the posterior; the first tenth is not counted."""
    likelihood, counts = likelihood_of_rows(), Counter()
    shards = Shards(ROWS, n_shards, likelihood.encode)
    labels = np.zeros(len(ROWS), np.int32)
    seeds = np.random.SeedSequence([seed, n_shards])
    chain = AcceleratedChain(shards, likelihood, [[ALPHA, 0.0]], labels, seeds)

    def count(_, chain):
        numbers = {}
        counts[tuple(numbers.setdefault(k, len(numbers)) for k in chain.labels().tolist())] += 1

    with InterruptNote() as note, ShardPool(shards, 1) as pool:
        run = ShardedRun(pool, [chain], note, on_record=count)
        run.first()
        run.stage(stage(N_PLACES), [N_STEPS] * (n_segments // 10))
        counts.clear()
        run.stage(stage(N_PLACES), [N_STEPS] * n_segments)
    law, total = law_of_sizes(enumerated()), counts.total()
    found = law_of_sizes({labels: n / total for labels, n in counts.items()})
    return {
        "features": mean_features(found),
        "expected": mean_features(law),
        "total_variation": sum(abs(found.get(sizes, 0.0) - p) for sizes, p in law.items()) / 2,
    }


def law_of_sizes(law):
    """Probabilities of the clusters' sizes in falling order."""
    found = {}
    for labels, p in law.items():
        sizes = tuple(sorted(Counter(labels).values(), reverse=True))
        found[sizes] = found.get(sizes, 0.0) + p
    return found


def mean_features(law):
    """Of a law of sizes."""
    return math.fsum(p * len(sizes) for sizes, p in law.items())


# -- tables, claims, picture -----------------------------------------------------------------------


def runs_of(records, figure):
    """(data, method) to seed to record."""
    found = {}
    for cell, record in of_figure(records, figure).items():
        found.setdefault((cell.data, cell.method), {})[cell.seed] = record
    return found


def numbers(seeds, name):
    """Seed to a number of its record."""
    return {seed: record[name] for seed, record in seeds.items()}


def bias_table(records):
    """Mean number of features, and total variation of the sizes' law, for each number of shards."""
    runs, rows = runs_of(records, "bias"), []
    for name in BIAS_STAGES:
        row = [bias_text(runs[data, name]) for data in FEW if (data, name) in runs]
        if row:
            rows.append((name, *row))
    if rows:
        expected = {record["expected"] for seeds in runs.values() for record in seeds.values()}
        rows.append(("enumerated", *[f"{np.mean(list(expected)):.3f}"] * len(FEW)))
    headings = ("", *(data.split(", ")[1] for data in FEW))
    return shown(headings, rows, records, "bias")


def bias_text(seeds):
    """Features; total variation."""
    features, apart = (mean(numbers(seeds, name).values()) for name in MEASURES)
    return f"{features.text(2)} features; {apart.text(2)}"


def published_table(records):
    """Where the runs of section 4.1 end, and when they arrive there."""
    runs, rows = runs_of(records, "published"), []
    for (data, name), seeds in runs.items():
        times = arrivals(runs, data, name).values()
        rows.append(
            (
                data.split(", ")[-1],
                name,
                mean(numbers(seeds, "late").values()).text(3),
                mean(numbers(seeds, "clusters").values()).text(1),
                f"{np.isfinite(list(times)).sum()} of {len(times)}",
                ", ".join(f"{seconds:.2f}" for seconds in sorted(times) if np.isfinite(seconds)),
            )
        )
    headings = (
        *("shards", "algorithm", "predictive, nats per row", "features"),
        *(f"within {synthetic.MARGIN:g} nats at the end", "seconds until then"),
    )
    return shown(headings, rows, records, "published")


def images_table(records):
    """Yale's faces from one cluster."""
    rows = [
        (
            data.split(", ")[-1],
            name,
            mean(numbers(seeds, "full").values()).text(1),
            mean(numbers(seeds, "plug_in").values()).text(1),
            f"{mean(numbers(seeds, 'clusters').values()).mean:,.0f}",
            f"{mean(numbers(seeds, 'sweeps').values()).mean:,.0f}",
        )
        for (data, name), seeds in runs_of(records, "published_images").items()
    ]
    headings = "shards", "", "full, nats per image", "plug-in", "clusters", "sub-iterations"
    return shown(headings, rows, records, "published_images")


def arrivals(runs, data, name):
    """Seed to the seconds after which a run stays near the median end of all runs of the data."""
    ends = [mean(numbers(of, "late").values()).mean for (on, _), of in runs.items() if on == data]
    middle = float(np.median(ends))
    return {seed: synthetic.arrived(record, middle) for seed, record in runs[data, name].items()}


def claims(records):
    """Of the exact stages on few rows, and of section 4.1."""
    for (data, name), seeds in runs_of(records, "bias").items():
        if name.startswith(EXACT):
            (expected,) = set(numbers(seeds, "expected").values())
            found = mean(numbers(seeds, "features").values())
            text = f"{name}, {data}: has as many features as the posterior ({expected:.2f})"
            yield text, found.text(2), is_about(found, expected, TOLERANCE)
    runs = runs_of(records, "published")
    for data, algorithm in product(MANY, ("accelerated", "hybrid")):
        pair = [(data, f"{algorithm}, {which}") for which in (THEIRS, OURS)]
        if not all(key in runs for key in pair):
            continue
        about = f"Section 4.1, {data.split(', ')[-1]}: {algorithm} as published"
        more = paired(*(numbers(runs[key], "clusters") for key in pair))
        yield f"{about} has more features than the package's", more.text(1), is_positive(more)
        # a run that has not arrived has taken all its seconds, and would take more
        theirs, ours = (
            {seed: min(at, SECONDS) for seed, at in arrivals(runs, *key).items()} for key in pair
        )
        sooner = paired(ours, theirs)
        text = f"{about} arrives sooner than the package's"
        yield text, f"{sooner.text(2)} s sooner", is_positive(sooner)
    runs = runs_of(records, "published_images")
    for data in IMAGES:
        pair = [(data, f"accelerated, {which}") for which in (OURS, THEIRS)]
        if all(key in runs for key in pair):
            gain = paired(*(numbers(runs[key], "full") for key in pair))
            text = f"{data}: accelerated predicts better than as published, from one cluster"
            yield text, f"{gain.text(1)} nats per image", is_positive(gain)


def published_picture(records):
    """Features of the stages on few rows; the way of the runs of section 4.1."""
    bias, runs = runs_of(records, "bias"), runs_of(records, "published")
    figure, axes = plt.subplots(1, 2 + len(MANY), figsize=(16, 4.2), layout="constrained")
    for ax, stage in zip(axes, (ACCELERATED, EXACT), strict=False):
        for which in (THEIRS, OURS):
            of = {
                n: mean(numbers(bias[data, f"{stage}, {which}"], "features").values())
                for data, n in FEW.items()
                if (data, f"{stage}, {which}") in bias
            }
            color, line = STYLES[which]
            means, errors = [e.mean for e in of.values()], [e.error for e in of.values()]
            options = {"color": color, "linestyle": line, "marker": "o", "capsize": 3}
            ax.errorbar(range(len(of)), means, errors, label=which, **options)
        expected = {r["expected"] for seeds in bias.values() for r in seeds.values()}
        ax.axhline(np.mean(list(expected)), color="0.6", label="enumerated")
        ax.set_xticks(range(len(FEW)), FEW.values())
        ax.set(xlabel="shards", ylabel="mean number of features", title=f"six rows: {stage}")
        ax.legend(fontsize=8)
    for ax, data in zip(axes[2:], MANY, strict=True):
        for name in RUNS:
            color, line = STYLES[name.split(", ")[1]]
            shade = {"linewidth": 2.0 if name.startswith("accelerated") else 0.8}
            for i, record in enumerate(runs.get((data, name), {}).values()):
                at, values = record["seconds_at"], record["full_at"]
                label = None if i else name
                ax.plot(at, values, color=color, linestyle=line, label=label, **shade)
        ax.set(xscale="log", xlabel="processor seconds", ylim=(-24.5, -22.3))
        ax.set(
            ylabel="full predictive, nats per row", title=f"section 4.1, {data[-6:].strip(', ')}"
        )
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=3, fontsize=8)
    for ax in axes:
        ax.grid(alpha=0.3)
    return figure
