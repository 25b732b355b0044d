"""When does annealing help? A question that Obermeyer, Glidden and Jonas (2014) leave open.

"map": simulated tables of numbers, columns in views, each view a mixture of normal clusters, whose
centres lie `separation` standard deviations apart on average, over all columns of the view. The
default schedule and two cold starts get the same processor seconds, half a second and more in
proportion to the table's cells, and score 500 further rows. Tables are drawn anew for each seed.

"pilot": the same on an eighth of the rows, and on those of the tables of Figure 3. Would it have
told whether annealing helps on all the rows? After a fit with the default, it also counts how many
proposals of new sets of columns are accepted.
"""

import functools
from itertools import product
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from harness.crosscat_data import simulate
from harness.crosscat_runs import as_published, fitted
from harness.kdd_data import split
from papers import schedules_cells, schedules_figures, schedules_scores
from papers.cells import Cell, judged, lines_of, of_figure, shown
from papers.processor_time import processor_clock
from papers.schedules_figures import propose_column_sets
from papers.verdicts import Estimate, is_positive, mean, paired
from skanneal.schedules import resolve_schedule

NAME = "help"
SEEDS = 4
OURS, COLD = "anneal", ("prior_gibbs", "sequential_gibbs")
METHODS = (OURS, *COLD)
TABLES = list(schedules_cells.PANELS)[:3]  # of Figure 3
TEST_ROWS = 500
SECONDS, OWN_SECONDS = 20e-6, 0.5  # of processor time per cell of a table, and beside them
PART = 8  # a pilot has this part of the rows
PROPOSALS = 200
EXTREMES = 5  # settings with the largest gains, and as many with the largest losses
LINEAR = 0.01  # nats per row, where the picture's scale is linear
LAST = 1 - 1e-9  # correlation with a finite transform


class Setting(NamedTuple):
    """What a simulated table is drawn from."""

    rows: int
    columns: int
    views: int
    clusters: int
    separation: float

    def __str__(self):
        views = f"{self.views} view{'s' if self.views > 1 else ''}"
        size = f"{self.rows:,} x {self.columns}"
        return f"{size}, {views}, {self.clusters} clusters, {self.separation:g} apart"


LEVELS = Setting(
    rows=(500, 2000, 8000),
    columns=(16, 48),
    views=(1, 4),
    clusters=(4, 16),
    separation=(2, 4, 8),
)
MOST_CELLS = 130_000
SETTINGS = {
    str(setting): setting
    for setting in (Setting(*levels) for levels in product(*LEVELS))
    if setting.rows * setting.columns <= MOST_CELLS
}
STYLES = dict(zip(LEVELS.separation, (("0.6", "o", ":"), ("0.35", "s", "--"), ("black", "^", "-"))))


def cells():
    """Seeds outermost, so that a cut run has some of everything; the pilots of real tables last."""
    for seed, data in product(range(SEEDS), SETTINGS):
        for figure, method in product(("map", "pilot"), METHODS):
            yield Cell(figure, data, method, seed, budget_of(figure, data))
    for seed, data, method in product(range(schedules_cells.CHAINS), TABLES, METHODS):
        yield Cell("pilot", data, method, seed, budget_of("pilot", data))


def budget_of(figure, data):
    """Processor seconds."""
    if data in SETTINGS:
        n_cells = SETTINGS[data].rows * SETTINGS[data].columns
    else:
        n_cells = (schedules_cells.budget_of(data, 1) - OWN_SECONDS) / SECONDS
    part = n_cells / PART if figure == "pilot" else n_cells
    return round(OWN_SECONDS + part * SECONDS, 2)


def cost(cell, typical):
    """Processor seconds of a cell that was not measured, scoring included."""
    return cell.budget + 0.2


# -- measuring -------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def rows_of(data, seed):
    """Training and test rows, and the mean true log density of the latter, nan if not known."""
    if data not in SETTINGS:
        table = schedules_figures.table_of(data)
        train, test = split(len(table), seed)
        train = np.random.default_rng([seed, 3]).permutation(train)
        return table.iloc[train], table.iloc[test], np.nan
    setting = SETTINGS[data]
    view_of = np.arange(setting.columns) % setting.views
    spread = setting.separation / np.sqrt(2 * setting.columns / setting.views)
    table, truth = simulate(
        setting.rows + TEST_ROWS,
        view_of,
        setting.clusters,
        np.zeros(setting.columns, dtype=int),
        seed,
        spread=spread,
    )
    test = table.iloc[setting.rows :]
    return table.iloc[: setting.rows], test, float(truth.log_density(test).mean())


def measure(cell):
    """A fit, its score, and after a pilot with the default the proposals of sets of columns."""
    train, test, truth = rows_of(cell.data, cell.seed)
    if cell.figure == "pilot":
        train = train.iloc[: len(train) // PART]
    schedule = resolve_schedule(cell.method).set_params(max_time=cell.budget)
    model = as_published(
        "CrossCatPY", schedule=schedule, n_chains=1, n_jobs=1, random_state=cell.seed
    )
    with processor_clock():
        record = fitted(model, train)
    found = {"score": float(model.score(test)), "sweeps": float(record["sweeps"])}
    found["views"] = float(record["views"])
    if truth == truth:
        found["truth"] = truth
    if (cell.figure, cell.method) == ("pilot", OURS):
        found |= propose_column_sets(model, train, cell.seed, PROPOSALS)
    return found


# -- gains -----------------------------------------------------------------------------------------


class Gain(NamedTuple):
    """What the default gains over the cold start that does better on average, in nats per row."""

    over: str
    estimate: Estimate


def scores_of(records, figure):
    """Data to method to seed to the score."""
    found = {}
    for cell, record in of_figure(records, figure).items():
        found.setdefault(cell.data, {}).setdefault(cell.method, {})[cell.seed] = record["score"]
    return {data: methods for data, methods in found.items() if len(methods) == len(METHODS)}


def gains_of(records, figure):
    """Data to its Gain."""
    return {data: gain_of(methods) for data, methods in scores_of(records, figure).items()}


def gain_of(methods):
    """Of the default over the better cold start."""
    over = [paired(methods[OURS], methods[name]) for name in COLD]
    least = int(np.argmin([estimate.mean for estimate in over]))
    return Gain(COLD[least], over[least])


def gains_on_tables():
    """Scores of the longest runs on the tables of Figure 3, as `scores_of`."""
    runs = schedules_scores.runs_of(lines_of(schedules_figures).records)
    scores = {}
    for data in TABLES:
        methods = runs.get(data, {}).get(schedules_cells.budget_of(data, 1), {})
        if set(METHODS) <= set(methods):
            scores[data] = {name: schedules_scores.scores(methods[name]) for name in METHODS}
    return scores


def acceptances(records):
    """Data to the share of proposals of sets of columns that are accepted after the pilot."""
    shares = {}
    for cell, record in of_figure(records, "pilot").items():
        if "accepted" in record:
            share = record["accepted"] / record["proposed"]
            shares.setdefault(cell.data, []).append(share)
    return {data: float(np.mean(of)) for data, of in shares.items()}


def effects(records):
    """Factor to the paired difference of the gain between its highest and its lowest level."""
    gains = {SETTINGS[d]: g.estimate.mean for d, g in gains_of(records, "map").items()}
    for factor, levels in zip(Setting._fields, LEVELS, strict=True):
        low, high = (
            {
                s._replace(**{factor: 0}): gain
                for s, gain in gains.items()
                if getattr(s, factor) == n
            }
            for n in ends(levels)
        )
        if low.keys() & high.keys():
            yield factor, ends(levels), paired(high, low)


def ends(levels):
    """The lowest and the highest."""
    return levels[0], levels[-1]


# -- tables ----------------------------------------------------------------------------------------


def map_table(records):
    """By each level of each factor: gains over both cold starts, and in how many settings."""
    scores, rows = scores_of(records, "map"), []
    for factor, levels in zip(Setting._fields, LEVELS, strict=True):
        for level in levels:
            chosen = [d for d in scores if getattr(SETTINGS[d], factor) == level]
            if not chosen:
                continue
            over = [
                mean(paired(scores[d][OURS], scores[d][name]).mean for d in chosen).text(3)
                for name in COLD
            ]
            verdicts = [is_positive(gain_of(scores[d]).estimate) for d in chosen]
            better = [gain_of(scores[d]).estimate.mean > 0 for d in chosen]
            counts = f"{sum(better)} of {len(chosen)}", str(verdicts.count("reproduced"))
            rows.append((factor, f"{level:,}", *over, *counts, str(verdicts.count("refuted"))))
    headings = (
        *("", "level", *(f"gain over `{name}`" for name in COLD)),
        *("ahead of both", "surely ahead", "surely behind"),
    )
    return shown(headings, rows, records, "map")


def extremes_table(records):
    """The settings of the map with the largest gains, and with the largest losses."""
    gains = sorted(gains_of(records, "map").items(), key=lambda item: -item[1].estimate.mean)
    chosen = gains if len(gains) <= 2 * EXTREMES else gains[:EXTREMES] + gains[-EXTREMES:]
    rows = [
        (data, gain.estimate.text(3), f"`{gain.over}`", str(gain.estimate.n))
        for data, gain in chosen
    ]
    headings = "setting", "annealing gains, nats per row", "over", "tables"
    return shown(headings, rows, records, "map")


def pilot_table(records):
    """The tables of Figure 3: what the pilot said, and what came of it."""
    pilots, full, rows = scores_of(records, "pilot"), gains_on_tables(), []
    for data in TABLES:
        if data in pilots and data in full:
            told, came = gain_of(pilots[data]), gain_of(full[data])
            rows.append(
                (data, told.estimate.text(3), came.estimate.text(3), is_positive(came.estimate))
            )
    headings = "data", "gain in the pilot", "gain on all rows", "annealing helps"
    return shown(headings, rows, records, "pilot")


# -- picture ---------------------------------------------------------------------------------------


def map_picture(records):
    """Gain over the better cold start against rows, one panel for columns, views, clusters."""
    gains = {SETTINGS[d]: g.estimate for d, g in gains_of(records, "map").items()}
    across = list(product(LEVELS.views, LEVELS.clusters))
    figure, axes = plt.subplots(
        *(len(LEVELS.columns), len(across)), figsize=(13, 6.8), layout="constrained", sharey=True
    )
    for (columns, row), (at, (views, clusters)) in product(
        zip(LEVELS.columns, axes, strict=True), enumerate(across)
    ):
        ax = row[at]
        for i, (separation, (color, marker, line)) in enumerate(STYLES.items()):
            own = Setting(0, columns, views, clusters, separation)
            found = {n: gains.get(own._replace(rows=n)) for n in LEVELS.rows}
            found = {n: estimate for n, estimate in found.items() if estimate}
            ax.errorbar(
                np.array(list(found)) * 1.08 ** (i - 1),
                [estimate.mean for estimate in found.values()],
                [estimate.error for estimate in found.values()],
                **{"color": color, "marker": marker, "linestyle": line, "capsize": 2},
                label=f"clusters {separation} standard deviations apart",
            )
        ax.axhline(0, color="0.5", linewidth=0.8)
        ax.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
        ax.set_xscale("log")
        ax.set_xlim(LEVELS.rows[0] / 1.4, LEVELS.rows[-1] * 1.4)
        ax.set_xticks(LEVELS.rows, [f"{n:,}" for n in LEVELS.rows])
        ax.set_xticks([], minor=True)
        of_views = f"{views} view{'s' if views > 1 else ''}"
        ax.set_title(f"{columns} columns, {of_views}, {clusters} clusters", fontsize=9)
        ax.set_xlabel("rows")
        ax.grid(alpha=0.3)
        if not at:
            ax.set_ylabel("annealing gains, nats per row")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return figure


# -- verdicts --------------------------------------------------------------------------------------


def correlation(predicted, came):
    """Rank correlation over shared keys, by Fisher's transform (Bonett and Wright's error)."""
    shared = [key for key in predicted if key in came]
    rank = float(spearmanr([predicted[k] for k in shared], [came[k] for k in shared])[0])
    error = np.sqrt((1 + rank**2 / 2) / (len(shared) - 3))
    return rank, Estimate(float(np.arctanh(np.clip(rank, -LAST, LAST))), float(error), len(shared))


def claims(records):
    """What the map and the pilots say."""
    gains = {d: g.estimate.mean for d, g in gains_of(records, "map").items()}
    if not gains:
        return
    average = mean(gains.values())
    text = f"Annealing gains over the better cold start, {len(gains)} simulated settings"
    yield text, f"{average.text(3)} nats per row", is_positive(average)
    for factor, (low, high), effect in effects(records):
        text = f"It gains more with {high:,} than with {low:,}: {factor}"
        yield text, f"{effect.text(3)} nats per row", is_positive(effect)
    pilots = {d: g.estimate.mean for d, g in gains_of(records, "pilot").items() if d in gains}
    predictors = {
        "The pilot's gain": pilots,
        "How many sets of columns the pilot accepts": {
            data: share for data, share in acceptances(records).items() if data in gains
        },
    }
    for name, predicted in predictors.items():
        if len(predicted) > 5:
            rank, estimate = correlation(predicted, gains)
            text = f"{name} predicts the gain on all rows"
            yield text, f"rank correlation {rank:.2f}", is_positive(estimate)
    if pilots:
        left = mean(gains[d] if pilots[d] <= 0 else 0.0 for d in pilots)
        text = "Annealing always is better than annealing where the pilot gains"
        yield text, f"by {left.text(3)} nats per row", is_positive(left)


def tables(records):
    """All tables of the page, by name."""
    return {
        "verdicts": judged(claims(records), records, "map", "pilot"),
        "map": map_table(records),
        "extremes": extremes_table(records),
        "pilot": pilot_table(records),
    }


def pictures(records):
    """All pictures of the page, by name."""
    return {"map": map_picture(records)} if scores_of(records, "map") else {}
