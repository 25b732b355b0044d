"""When does tempering pay? What van de Meent, Paige and Wood (2014) leave open, as a map.

The first column of a table of normal rows has the mean theta_1^2, the others have theta_2 to
theta_d. So the posterior has two modes, at theta_1 = +root and -root, and between them a barrier of
so many nats: with N rows whose first column has the mean b, it is N b^2 / 2. Subsets of an eighth
of the rows have an eighth of the barrier, and so have powers of 1/8. Chains begin in different
modes. The steps are tuned; a cell stops as those of the tables do.
"""

import functools
from itertools import product

import matplotlib.pyplot as plt
import numpy as np

from harness.markdown import NONE, markdown
from papers import styles, tempering_chains
from papers.cells import Cell, behind, of_figure
from papers.tempering_chains import N_CHAINS, WAYS, agrees, rate
from papers.verdicts import mean
from skanneal.tempering import HMC, Target

SEEDS, BUDGET = 3, 2.0  # processor seconds of a chain
BARRIERS, ROWS, PARAMETERS = (2, 8, 32), (64, 512, 4096), (2, 20)
OTHERS = [way for way in WAYS if way != "none"]
LEAPFROG = 10


class TwoModes(Target):
    """Rows x_n ~ N((theta_1^2, theta_2, ..., theta_d), I), theta ~ N(0, I)."""

    has_gradient = True

    def __init__(self, X):
        self.X = X
        self.n_rows, self.n_parameters = X.shape

    @np.errstate(over="ignore", invalid="ignore")
    def log_prior(self, theta, gradient=False):
        return -0.5 * theta @ theta, -theta if gradient else None

    @np.errstate(over="ignore", invalid="ignore")  # trajectories of too long steps are rejected
    def log_likelihood(self, theta, rows, gradient=False):
        means = theta.copy()
        means[0] *= theta[0]
        total = self.X[rows].sum(axis=0)
        value = means @ (total - 0.5 * len(rows) * means)
        if not gradient:
            return value, None
        slope = total - len(rows) * means
        slope[0] *= 2 * theta[0]
        return value, slope

    def draw_prior(self, generator):
        return generator.standard_normal(self.n_parameters)


def root_of(barrier, n_rows):
    """Where the modes are, the prior left aside."""
    return float(np.sqrt(np.sqrt(2 * barrier / n_rows)))


@functools.lru_cache(maxsize=1)
def target(barrier, n_rows, n_parameters):
    """Rows whose means are what they should be: the barrier is as high as it is called."""
    noise = np.random.default_rng([barrier, n_rows, n_parameters])
    X = noise.normal(size=(n_rows, n_parameters))
    X -= X.mean(axis=0)
    X[:, 0] += root_of(barrier, n_rows) ** 2
    return TwoModes(X)


def cells():
    """Seeds outermost."""
    for seed, barrier, n_rows, d in product(range(SEEDS), BARRIERS, ROWS, PARAMETERS):
        for way in WAYS:
            yield Cell("pays", data_of(barrier, n_rows, d), way, seed, BUDGET)


def data_of(barrier, n_rows, n_parameters):
    """A setting's name in the lines."""
    return f"barrier {barrier}, {n_rows} rows, {n_parameters} parameters"


def setting_of(data):
    """Its inverse."""
    return tuple(int(word) for word in data.replace(",", "").split() if word.isdigit())


def measure_pays(data, way, seed, budget):
    """The record of three chains, two of which begin in one mode."""
    barrier, n_rows, d = setting_of(data)
    method, ladder, longer = WAYS[way]
    problem, sampler = target(barrier, n_rows, d), HMC(n_leapfrog=LEAPFROG * longer)
    plan = tempering_chains.plan_of(problem, method, ladder, sampler)
    starts = np.zeros((N_CHAINS, d))
    starts[:, 0] = root_of(barrier, n_rows) * np.array([1, -1, 1])
    seeds = np.random.SeedSequence(seed).spawn(N_CHAINS)
    running = [
        tempering_chains.begin(problem, plan, *own) for own in zip(seeds, starts, strict=True)
    ]
    return tempering_chains.follow(running, budget, is_tuned=True)


# -- the map ---------------------------------------------------------------------------------------


def runs_of(records):
    """Setting to method to seed to record."""
    found = {}
    for cell, record in of_figure(records, "pays").items():
        found.setdefault(setting_of(cell.data), {}).setdefault(cell.method, {})[cell.seed] = record
    return dict(sorted(found.items()))


def gains(ways, way):
    """Log ratios of rates to those of the inner sampler, by seed; none where neither agrees."""
    ones, others = ways.get(way, {}), ways.get("none", {})
    shared = [s for s in ones if s in others and (agrees(ones[s]) or agrees(others[s]))]
    return [float(np.log(rate(ones[s], "bulk") / rate(others[s], "bulk"))) for s in shared]


def pays_table(records):
    """How many times as many effective draws per second as the inner sampler gives."""
    rows = []
    for setting, ways in runs_of(records).items():
        alone = ways.get("none", {})
        n_agreed = f"{sum(map(agrees, alone.values()))} of {len(alone)}"
        texts = []
        for way in OTHERS:
            logs = gains(ways, way)
            star = "" if all(map(agrees, ways.get(way, {}).values())) else "\\*"
            texts.append(f"{np.exp(mean(logs).mean):.2g}{star}" if logs else NONE)
        rows.append((*map(str, setting), n_agreed, *texts))
    headings = ("barrier, nats", "rows", "parameters", "inner sampler agrees", *OTHERS)
    return f"{markdown(headings, rows)}\n\n{behind(records, 'pays')}"


def pays_picture(records):
    """The same over the barrier, a panel for each number of rows and of parameters."""
    found = runs_of(records)
    figure, axes = plt.subplots(
        len(PARAMETERS), len(ROWS), figsize=(11, 6.5), sharey=True, layout="constrained"
    )
    for (i, d), (j, n_rows) in product(enumerate(PARAMETERS), enumerate(ROWS)):
        ax = axes[i, j]
        for way in OTHERS:
            color, marker, line = styles.WAYS[way]
            points = [(b, found.get((b, n_rows, d), {})) for b in BARRIERS]
            points = [(b, gains(ways, way), ways.get(way, {})) for b, ways in points]
            points = [point for point in points if point[1]]
            factors = [np.exp(np.mean(logs)) for _, logs, _ in points]
            at = [b for b, _, _ in points]
            ax.loglog(at, factors, line, color=color)
            ax.plot([], [], line, marker=marker, color=color, label=way)
            for b, factor, (_, _, runs) in zip(at, factors, points, strict=True):
                full = "full" if all(map(agrees, runs.values())) else "none"
                ax.plot(b, factor, marker, color=color, fillstyle=full)
        ax.axhline(1.0, color="0.6", linewidth=1)
        ax.set_title(f"{n_rows:,} rows, {d} parameters", fontsize=9, loc="left")
        ax.set_xlim(BARRIERS[0] / 1.3, BARRIERS[-1] * 1.3)
        ax.set_xticks(BARRIERS, BARRIERS)
        ax.minorticks_off()
        ax.set_xlabel("barrier, nats")
        ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set_ylabel("effective draws per second,\ntimes the inner sampler's")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(OTHERS), fontsize=9)
    return figure
