"""Tempered mixtures of the benchmarks: swaps of rungs leave the enumerated law invariant.

The formula of the acceptance ratio is checked by brute force, without the package. The code is
checked by exact draws of every rung's law, which must stay exact draws after swaps and sweeps: one
try each with a fixed seed, in which a right sampler alarms once in 10,000. Wrong ratios must be
rejected.
"""

import json
import sys
from collections import Counter
from functools import cache

import numpy as np
import pytest

from fits import rungs, tempered_mixtures, tempered_page
from fits.rungs import Ladder, Rung, swap_rows
from oracles.enumeration import canonical, count_p_value, total_variation
from oracles.evidence_cases import column, grid_of, law_of, plan_of
from oracles.mixtures import hyper_vector
from oracles.move_states import hyper_options
from oracles.rungs_enumeration import Rows, joint, right, swapped, unnormalised
from skanneal.moves._allocate import enter_rows, leave_rows
from skanneal.partition_priors import PARTITION_PRIORS

SLOW = pytest.mark.slow
REJECT = 1e-6  # what a control's p-value must be below
INFERRED = {"normal": ("mu0", "sigma2_0"), "poisson": ("rate",)}


@cache
def case(data, prior, n_rows):
    """(the oracle's rows, the plan) of a column whose hyperparameters are inferred, and of another
    one; or of rows of several numbers with hyperparameters that are given."""
    if data == "multivariate_normal":
        columns, grids, mappings = [column(data, n_rows)], {}, {}
    else:
        columns = [column(data, n_rows, 1), column("bernoulli", n_rows, 0, {2})]
        grids, options = hyper_options(data)
        names, kept = list(options[0]), INFERRED[data]
        values = [g if name in kept else g[:1] for name, g in zip(names, grids)]
        firsts = {name: v[0] for name, v in zip(names, values)}
        chosen = [m for m in options if all(m[n] == firsts[n] for n in names if n not in kept)]
        grids, mappings = {0: [v if len(v) > 1 else None for v in values]}, {0: chosen}
    oracle = [(*c[:2], mappings.get(j, c[2])) for j, c in enumerate(columns)]
    columns = [(*c[:2], mappings.get(j, [c[2]])[0]) for j, c in enumerate(columns)]
    return rows_of(oracle, prior), plan_of(columns, grids, prior)


# ---- the formula ---------------------------------------------------------------------------------


def off(prior, sizes, ratio):
    """How far one swap moves the law of two rungs of one column with given hyperparameters."""
    rows = rows_of([column("normal", sizes[1], 1)], prior)
    law = joint(*map(rows.law, sizes))
    return total_variation(law, swapped(rows, *sizes, law, ratio))


def rows_of(columns, prior):
    """The oracle's rows under a prior by its name."""
    return Rows(columns, law_of(prior), [float(point[0]) for point in grid_of(prior).points])


SIZES = [(2, 4), pytest.param((3, 5), marks=SLOW)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("prior", ["DP", "PY", "static", "dynamic"])
def test_the_ratio_leaves_the_law_of_two_rungs_invariant(prior, sizes):
    assert off(prior, sizes, right) < 1e-12


@pytest.mark.parametrize("prior", ["DP", "PY", "static"])
def test_a_ratio_without_normalisers_does_not(prior):
    assert off(prior, (2, 4), unnormalised) > 0.01


# ---- the code ------------------------------------------------------------------------------------


class Enumerated:
    """Rungs of so many rows each, whose states are set and read as the oracle's."""

    def __init__(self, rows, plan, sizes, seed, n_steps):
        self.rows, self.prior = rows, PARTITION_PRIORS[plan.partition_prior]
        streams = [np.random.PCG64([seed, i]) for i in range(len(sizes) + 1)]
        self.rungs = [Rung(plan, n, 1.0, stream) for n, stream in zip(sizes, streams)]
        for rung in self.rungs:
            rung.burn_in = False
        self.ladder = Ladder(self.rungs, streams[-1], n_steps)

    def set(self, states):
        """Put every rung into its state."""
        for rung, (labels, point, hypers) in zip(self.rungs, states):
            grid = rung.plan.prior_grid
            vectors = {
                j: hyper_vector(self.rows.columns[j][0], self.rows.mappings[j][h])
                for j, h in enumerate(hypers)
            }
            of_blocks = [
                [vectors[0 if b.joint else int(j)] for j in b.columns[: b.n_features]]
                for b in rung.blocks
            ]
            rung.put(np.array(labels), grid.prior(point, self.prior), of_blocks)

    def get(self):
        """The states of the rungs, the target's last."""
        return tuple(map(self._state, self.rungs))

    def _state(self, rung):
        found = [0] * len(self.rows.columns)
        for block in rung.blocks:
            for f in range(block.n_features):
                j = 0 if block.joint else int(block.columns[f])
                known = [hyper_vector(self.rows.columns[j][0], m) for m in self.rows.mappings[j]]
                found[j] = [tuple(v) for v in known].index(tuple(block.get_hyper(f)))
        labels = canonical(rung.state.get_labels().tolist())
        return labels, rung.plan.prior_grid.place(rung.state.prior), tuple(found)


def n_clusters(state):
    """Clusters of a state."""
    return max(state[0]) + 1


# What of a rung's state is counted, by how many rungs there are above it and below it.
STATISTICS = (
    lambda state, above, below: None if above else state[0],
    lambda state, above, below: n_clusters(state) if above else state[1:],
    lambda state, above, below: state[1],
    lambda state, above, below: n_clusters(state),
    lambda state, above, below: None if above and below else state[2],
)


def reduced(statistic, states):
    """A statistic of the states of all rungs."""
    last = len(states) - 1
    return tuple(statistic(state, last - k, k) for k, state in enumerate(states))


def law_of_statistic(statistic, laws):
    """The law of a statistic of independent states."""
    last, marginals = len(laws) - 1, []
    for k, law in enumerate(laws):
        marginals.append(Counter())
        for state, p in law.items():
            marginals[-1][statistic(state, last - k, k)] += p
    return joint(*marginals)


def counts_after(of, sizes, n_starts, seed, n_steps=0, sweeps=True):
    """States of the rungs after three swaps of every pair, from exact draws."""
    rows, plan = of
    laws, rng = [rows.law(n) for n in sizes], np.random.default_rng([seed, 9])
    drawn = [
        [list(law)[i] for i in rng.choice(len(law), n_starts, p=list(law.values()))] for law in laws
    ]
    chain, counts = Enumerated(rows, plan, sizes, seed, n_steps), Counter()
    for states in zip(*drawn):
        chain.set(states)
        for turn in range(6):
            if sweeps and turn % 3 == 1:
                for rung in chain.rungs:
                    rung.sweep()
            chain.ladder.swap()
        counts[chain.get()] += 1
    return counts, laws


def p_values(of, sizes, *arguments, **options):
    """The p-value of each statistic."""
    counts, laws = counts_after(of, sizes, *arguments, **options)
    for statistic in STATISTICS:
        seen = Counter()
        for states, count in counts.items():
            seen[reduced(statistic, states)] += count
        yield count_p_value(seen, law_of_statistic(statistic, laws))


CASES = [
    (data, prior, sizes)
    for data in ("normal", "poisson", "multivariate_normal")
    for prior, sizes in zip(
        ("DP", "PY", "static", "dynamic"), ((3, 5), (2, 4, 6), (3, 5), (2, 4, 6))
    )
]


@pytest.mark.parametrize(("data", "prior", "sizes"), CASES[:2])
def test_swaps_by_few_chains(data, prior, sizes):
    assert min(p_values(case(data, prior, sizes[-1]), sizes, 150, 1)) > 1e-4


@SLOW
@pytest.mark.parametrize(("data", "prior", "sizes"), CASES)
def test_swaps(data, prior, sizes):
    assert min(p_values(case(data, prior, sizes[-1]), sizes, 1000, 2)) > 1e-4


@SLOW
@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize(("data", "prior", "sizes"), CASES[:2])
def test_swaps_with_steps_on_the_way(data, prior, sizes, n_steps):
    assert min(p_values(case(data, prior, sizes[-1]), sizes, 1000, 3, n_steps)) > 1e-4


def unnormalised_entry(view, order, start, stop, *rest):
    """Sums of weights that are not divided by t + alpha."""
    totals = [np.log(view.prior.total_weight(t)) for t in range(start, stop)]
    return enter_rows(view, order, start, stop, *rest) + sum(totals)


def unnormalised_exit(view, order, start, stop, *rest):
    """The same of rows that leave."""
    totals = [np.log(view.prior.total_weight(t)) for t in range(start, stop)]
    return leave_rows(view, order, start, stop, *rest) + sum(totals)


def kept_prior(small, large, n_steps, bit_generator):
    """A swap after which concentrations are as before."""
    priors = small.state.prior, large.state.prior
    done = swap_rows(small, large, n_steps, bit_generator)
    for rung, prior in zip((small, large), priors):
        rung.state.set_prior(prior)
    return done


FAULTS = {
    "unnormalised": {"enter_rows": unnormalised_entry, "leave_rows": unnormalised_exit},
    "kept_prior": {"swap_rows": kept_prior},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(fault, monkeypatch):
    for name, wrong in FAULTS[fault].items():
        monkeypatch.setattr(rungs, name, wrong)
    assert min(p_values(case("normal", "DP", 5), (3, 5), 600, 3, sweeps=False)) < REJECT


# ---- powers, and what is counted -----------------------------------------------------------------


def test_powers_are_swapped_by_the_difference_of_likelihoods():
    """All rows at two powers: with probability min(1, L) the states change places."""
    _, plan = case("normal", "DP", 5)
    low, high = (Rung(plan, 5, beta, np.random.PCG64(int(4 * beta))) for beta in (0.25, 1.0))
    for seed in range(40):
        low.sweep()
        high.sweep()
        states = low.state, high.state
        log_ratio, accepted = rungs.swap_powers(low, high, np.random.PCG64(seed))
        expected = 0.75 * (states[0].log_likelihood() - states[1].log_likelihood())
        assert log_ratio == pytest.approx(expected)
        assert (low.state, high.state) == (states[::-1] if accepted else states)
        assert accepted or log_ratio < 0
        for rung in (low, high):
            rung.state.validate()


def test_ways_are_counted_from_one_end_to_the_other():
    _, plan = case("normal", "DP", 5)
    ladder = Ladder([Rung(plan, n, 1.0, np.random.PCG64(n)) for n in (3, 4, 5)], None)
    for order in ([0, 1, 2], [0, 2, 1], [2, 0, 1], [2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 1, 2]):
        ladder.replica = np.array(order)
        ladder._note_ends()
    # State 0 has come up and gone down, state 2 down and up, and state 1 down.
    assert ladder.ways == [2, 3]


MEASURED = "plain", "rows", "half", "powers", "rows 1.2"


@pytest.fixture
def lines(monkeypatch, tmp_path):
    """Lines of a small table, measured in no time."""
    monkeypatch.setattr(tempered_mixtures, "BUDGET", 0.04)
    monkeypatch.setattr(tempered_mixtures, "SHORT", 0.04)
    options = ["--results", str(tmp_path), "--seeds", "1", "--methods", *MEASURED]
    monkeypatch.setattr(sys, "argv", ["", *options])
    monkeypatch.setattr(
        tempered_mixtures,
        "TABLES",
        {"tiny": tempered_mixtures.Table(24, 2, 2, 0.1, 1.5, 8)},
    )
    tempered_mixtures.SUITE.run("Rungs.")
    return tmp_path


def test_a_line_says_what_a_ladder_did_and_stands_in_the_tables(lines):
    path = lines / "tempered_mixtures.jsonl"
    of = {line["method"]: line for line in map(json.loads, path.read_text().splitlines())}
    assert set(of) == set(MEASURED)
    assert of["rows"]["rungs"] == 3 and of["rows"]["cost"] == pytest.approx(
        (24 + 16 + 11) / 24, 0.1
    )
    assert "accepted" not in of["plain"] and 0 <= of["rows 1.2"]["accepted"][1] <= 1
    assert min(of["powers"]["iterations"]) > 0
    text = tempered_page.table(lines)
    assert text.count("| tiny |") == 4 and "| fewer rows | 3 | 2.1 |" in text
    assert tempered_page.ratios(lines).count("| tiny |") == 1
