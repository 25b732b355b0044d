"""Options together: each kind of data with each prior, each schedule with each set of moves, and so
on for every two options, against the enumerated posterior.

A move may be right by itself and wrong beside another, and an option right with one family and
wrong with the next. So a list of cases is made in which every two levels of different options meet
somewhere (a covering array). Each case runs independent chains; the last state of each is a draw.
One try, fixed seeds: a right sampler fails once in 10,000. Beside the right chains stand wrong
ones, which the same test must reject.
"""

import functools
import itertools
import random
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from oracles.enumeration import canonical
from oracles.evidence_cases import PRIORS, ROW_DATA, column, grid_of, groups_of, law_of, plan_of
from oracles.evidence_enumeration import ONE, Evidence
from oracles.mixtures import COLUMN_FAMILIES
from oracles.move_states import hyper_options
from skanneal import CrossCatPY
from skanneal.chains import run_chain
from skanneal.families import FAMILIES
from skanneal.moves import COLUMN_MOVES, PERMUTATIONS, PROGRAMS
from skanneal.moves import MOVES as KNOWN_MOVES
from skanneal.schedules import SCHEDULES as KNOWN_SCHEDULES
from skanneal.schedules import (
    AcceleratingAnneal,
    CustomAnneal,
    EnergyAnneal,
    LinearAnneal,
    PriorGibbs,
    SequentialGibbs,
    SequentialMonteCarlo,
)

LEVEL, REJECT = 1e-4, 1e-6
N_GROUPS = 4  # of states, of about equal probability
FEW, MANY, ENOUGH = 20, 300, 300  # chains of a case
FEW_IN_VIEWS, MANY_IN_VIEWS = 10, 60  # which cost ten times as much
SWEEPS = 60  # at full data

MOVES = {
    "gibbs": ("gibbs",),
    "split_merge": ("gibbs", "split_merge"),
    **dict.fromkeys(PERMUTATIONS, ("gibbs", "permutation", "split_merge")),
    "columns": CrossCatPY._auto_moves,
    "all": ("gibbs", "split_merge", *COLUMN_MOVES),
}
# Each ends with as many sweeps of all rows.
SCHEDULES = {
    "linear": LinearAnneal(n_sweeps=SWEEPS + 4, final_sweeps=SWEEPS),
    "accelerating": AcceleratingAnneal(n_sweeps=SWEEPS + 4, final_sweeps=SWEEPS),
    "energy": EnergyAnneal(n_sweeps=SWEEPS + 4, final_sweeps=SWEEPS),
    "custom": CustomAnneal([0.2, 0.8, 0.4, 1.0], n_sweeps=SWEEPS + 8, final_sweeps=SWEEPS),
    "prior": PriorGibbs(n_sweeps=SWEEPS),
    "sequential": SequentialGibbs(n_sweeps=SWEEPS),
}
TOLERANCE = 0.1  # of a beam: large enough to leave out runs of five rows
OPTIONS = {
    "data": [*COLUMN_FAMILIES, "mixed", *ROW_DATA],
    "prior": list(PRIORS),
    "view_prior": [None, *PRIORS],
    "moves": list(MOVES),
    "program": ["exact", "quadratic", "beam"],
    "schedule": list(SCHEDULES),
    "selection": ["random", "window", "stratified"],
    "start": ["drawn", "one", "many", "apart", "together"],
    "goes_on": [False, True],
}


class Case(NamedTuple):
    """A level of each option."""

    data: str
    prior: str
    view_prior: str | None
    moves: str
    program: str
    schedule: str
    selection: str
    start: str
    goes_on: bool

    @property
    def possible(self):
        """Whether an estimator has these levels together.

        Both priors are of one kind, and a finite one needs splits and merges; moves of columns go
        with views, which hold no family of rows; programs are those of permutations; a number of
        clusters to begin with needs a schedule that begins with all rows.
        """
        in_views = self.view_prior is not None
        kinds = {PRIORS[prior][0] for prior in (self.prior, self.view_prior) if prior}
        return (
            len(kinds) == 1
            and in_views == (self.moves in ("columns", "all"))
            and (not in_views or self.data not in ROW_DATA)
            and ("finite" not in kinds or self.moves != "gibbs")
            and (self.program == "exact" or self.moves in PERMUTATIONS)
            and (self.start not in ("one", "many") or self.schedule in ("prior", "sequential"))
            and (self.start not in ("apart", "together") or in_views)
        )


def pairs_of(case):
    """Every two levels of a case, each with the option's name."""
    return set(itertools.combinations(zip(OPTIONS, case, strict=True), 2))


def covering():
    """Cases in which every two levels meet that can."""
    data, *others = OPTIONS.values()
    rest, possible, wanted = itertools.product(*others), {}, set()
    for names in [name for name in data if name not in ROW_DATA], list(ROW_DATA):
        # What goes with families of rows also goes with those of columns, which come first.
        rest = [levels for levels in rest if Case(names[0], *levels).possible]
        possible |= dict.fromkeys(names, rest)
        pairs = set().union(*(pairs_of(Case(names[0], *levels)) for levels in rest))
        wanted |= {
            ((option, name if option == "data" else level), other)
            for (option, level), other in pairs
            for name in names
        }
    rng, cases = random.Random(0), []
    while wanted:
        some = [Case(name, *rng.choice(possible[name])) for name in rng.choices(data, k=60)]
        cases.append(max(some, key=lambda case: len(pairs_of(case) & wanted)))
        wanted -= pairs_of(cases[-1])
    return cases


CASES = covering()


def first_with_every_level():
    """A few of the cases, in which every level is."""
    missing = {pair for case in CASES for pair in zip(OPTIONS, case, strict=True)}
    cases = []
    while missing:
        cases.append(max(CASES, key=lambda case: len(missing & set(zip(OPTIONS, case)))))
        missing -= set(zip(OPTIONS, cases[-1], strict=True))
    return cases


# ---- a case's chains and its posterior ----------------------------------------------------------


def name_of(case):
    """For pytest: the levels, one after the other."""
    return "-".join(map(str, case))


def columns_of(data):
    """Columns of the data, with gaps, the first with a grid of its hyperparameters: (columns as the
    package's plan has them, grids, as the oracle has them)."""
    n = 4 if data == "multivariate_t" else 5
    if data == "mixed":
        columns = [
            column("normal", n, 1, {0}),
            column("bernoulli", n, 0, {2}),
            column("poisson", n, 2),
        ]
    elif data in ROW_DATA:
        family, rows, hyper = column(data, n)
        if data != "multinomial":
            rows[-1] = (rows[-1][0], None)
        columns = [column("bernoulli", n, 1, {0}), (family, rows, hyper)]
    else:
        columns = [column(data, n, 0, {3}), column(data, n, 2)]
    grid, mappings = hyper_options(columns[0][0])
    family, values, _ = columns[0]
    oracle = [(family, values, mappings), *columns[1:]]
    return [(family, values, mappings[0]), *columns[1:]], {0: grid}, oracle


@functools.cache
def posterior_of(data, prior, view_prior):
    oracle = columns_of(data)[2]
    return Evidence(oracle, law_of(prior), law_of(view_prior) if view_prior else ONE).posterior


def plan_of_case(case):
    columns, grids, _ = columns_of(case.data)
    plan = plan_of(columns, grids, case.prior, case.view_prior)
    n_rows = plan.table.n_rows
    law = case.moves if case.moves in PERMUTATIONS else "projection"
    return plan._replace(
        moves=MOVES[case.moves],
        options={
            "permutation": {"permutation": law, "program": case.program, "tolerance": TOLERANCE}
        },
        init={"one": 1, "many": 3}.get(case.start),
        columns=case.start if case.start in ("apart", "together") else "drawn",
        strata=np.arange(n_rows) % 2 if case.selection == "stratified" else None,
    )


def end_of(plan, case, seed):
    """(view of each column or row family, labels of the rows in the first view) in the end."""
    schedule = SCHEDULES[case.schedule].validated().set_params(selection=case.selection)
    seed = np.random.SeedSequence(seed)
    result = run_chain(plan, schedule, seed, n_draws=2)
    if case.goes_on:
        result = run_chain(plan, schedule, seed, n_draws=2, thin=2, state=result["state"])
    draw = result["draws"][-1]
    if case.view_prior is None:
        n_units = sum(FAMILIES[f].key_columns(at).size for f, at in plan.families.items())
        return (0,) * n_units, canonical(draw["labels"].tolist())
    view_of = draw["view_of"]  # families of rows are in no views
    return canonical(view_of), canonical(draw[f"view{view_of[0]}/labels"].tolist())


def p_value(case, n_chains, plan=None):
    """Of a goodness-of-fit test of the ends of so many chains."""
    plan = plan or plan_of_case(case)
    posterior = posterior_of(case.data, case.prior, case.view_prior)
    groups, masses = groups_of(posterior, N_GROUPS if n_chains > FEW else 2)
    counts, seed = np.zeros(len(masses)), random.Random(name_of(case)).getrandbits(32)
    for i in range(n_chains):
        counts[groups[end_of(plan, case, [seed, i])]] += 1
    return stats.chisquare(counts, n_chains * masses).pvalue


# Every case is a test of its own, so that they can be run in parts: by `-k normal`, for instance.
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", first_with_every_level(), ids=name_of)
@pytest.mark.few(4)
def test_options_by_few_chains(case):
    assert p_value(case, FEW_IN_VIEWS if case.view_prior else FEW) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_options(case):
    assert p_value(case, MANY_IN_VIEWS if case.view_prior else MANY) > LEVEL


def test_every_option_meets_every_other():
    """The list is complete: by counting, not by what made it."""
    met = set().union(*map(pairs_of, CASES))
    levels = [[(option, level) for level in of] for option, of in OPTIONS.items()]
    rng = random.Random(1)
    for _ in range(20_000):
        case = Case(*(rng.choice(of)[1] for of in levels))
        assert not case.possible or pairs_of(case) <= met
    kinds = {type(schedule) for schedule in KNOWN_SCHEDULES.values()}
    assert {type(schedule) for schedule in SCHEDULES.values()} >= kinds - {SequentialMonteCarlo}
    assert set().union(*MOVES.values()) == {*KNOWN_MOVES, *COLUMN_MOVES}
    assert set(OPTIONS["program"]) == set(PROGRAMS)


# ---- wrong chains -------------------------------------------------------------------------------


NULL = Case("normal", "null", None, "split_merge", "exact", "linear", "random", "drawn", False)
FINITE = NULL._replace(data="negative_binomial", prior="dynamic", moves="markov")


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (NULL, {"prior_grid": grid_of("DP")}),
        (FINITE, {"grids": {}}),
    ],
    ids=["another prior", "hyperparameters not drawn"],
)
@pytest.mark.slow
def test_wrong_plans_are_rejected(case, fault):
    plan = plan_of_case(case)
    assert p_value(case, ENOUGH, plan) > LEVEL
    assert p_value(case, ENOUGH, plan._replace(**fault)) < REJECT


def test_chains_that_are_too_short_are_rejected(monkeypatch):
    monkeypatch.setitem(SCHEDULES, "linear", LinearAnneal(n_sweeps=1, final_sweeps=0))
    assert p_value(NULL, ENOUGH) < REJECT
