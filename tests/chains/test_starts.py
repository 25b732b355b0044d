"""The starts of a chain: the race of the usual one against rivals, judged on unseen rows."""

import numpy as np
import pytest

from oracles.bits import same_arrays
from oracles.crosscat_chains import big_state
from oracles.enumeration import log_eppf
from oracles.mixtures import make_table
from oracles.reference import log_marginal
from skanneal import CrossCatPY
from skanneal.chains import STARTS, Chain, ChainPlan, _mend, _run, _starts, _unseen, run_chain
from skanneal.chains._starts import begin_chain, sizes
from skanneal.chains._unseen import log_densities, unseen_differences
from skanneal.estimators import _rounds
from skanneal.moves import COLUMN_MOVES
from skanneal.parallel import Progress, StopFlag
from skanneal.partition_priors import PriorGrid
from skanneal.schedules import AcceleratingAnneal, CustomAnneal, PriorGibbs
from skanneal.states import Subsample

SCHEDULE = AcceleratingAnneal(n_sweeps=8, passes=20, small_size=50, big_size=1e6)
PAIRS = PriorGrid([(0.0, 0.0), (0.5, 0.0), (2.0, 0.0)])


def plan_of(n_rows=1000, n_columns=4, seed=0):
    """Columns of true and false that agree in part."""
    rng = np.random.default_rng(seed)
    side = rng.random(n_rows) < 0.5
    X = rng.random((n_rows, n_columns)) < np.where(side, 0.8, 0.3)[:, None]
    at = range(n_columns)
    return ChainPlan(
        make_table([("bernoulli", column.tolist(), {}) for column in X.T]),
        {"bernoulli": np.arange(n_columns)},
        {j: np.ones(2) for j in at},
        {j: [None, None] for j in at},
        PAIRS,
        ("gibbs", "split_merge", *COLUMN_MOVES),
        view_grid=PAIRS,
        starts=tuple(STARTS),
    )


def begun(plan, schedule, seed):
    """The chain that goes on."""
    return begin_chain(plan, schedule, seed, 0, None, StopFlag(), Progress())


def raced(monkeypatch, means, spread=0.1, plan=None):
    """The chain that a race returns if the mean gaps are these, and how many were asked for."""
    given = iter(means)

    def gaps(table, usual, rival):
        assert usual.subsample.size == rival.subsample.size
        assert rival.n_views == 1 and usual.n_views > 1
        asked.append(usual.subsample.size)
        return next(given) + spread * np.resize([-1.0, 1.0], 100)

    asked = []
    monkeypatch.setattr(_starts, "unseen_differences", gaps)
    monkeypatch.setattr(_starts, "mend_views", lambda *arguments: 0)
    plan = plan_of() if plan is None else plan
    plan = plan._replace(columns="apart", moves=("gibbs",))  # the usual chain stays in its views
    seed = np.random.SeedSequence(3)
    return begun(plan, SCHEDULE, seed), asked


@pytest.mark.parametrize(
    ("means", "wins", "n_asked"),
    [
        ([-1.0, -1.0], False, 2),  # behind and not catching up
        ([1.0, 1.0], True, 2),
        ([-1.0, -0.4, 0.2], True, 3),  # behind, and then ahead
        ([-1.0, -0.4, -0.16], False, 3),  # ever nearer, without being ahead
        ([1.0, 0.4], False, 2),  # ahead, but not in the end: 0.4 - 2 * 0.6
        # The error is 0.01. At half of the rows the forecast is 0.08 (3.6 errors), or 0.05 (2.2).
        ([0.02, 0.02, 0.05], True, 3),
        ([0.02, 0.02, 0.035], False, 3),
        ([-1.0, -0.667, -0.333], False, 3),  # nothing is sure at a quarter of the rows, nor at half
    ],
)
def test_the_forecast_decides(monkeypatch, means, wins, n_asked):
    """Sizes are 250, 500 and 1000 of 2000 rows, nearly."""
    chain, asked = raced(monkeypatch, means, plan=plan_of(2000))
    assert len(asked) == n_asked
    assert asked[0] >= 250 and asked[-1] >= 250 * 2 ** (n_asked - 1)
    assert (chain.state.n_views == 1) == wins
    assert asked[-1] <= chain.state.subsample.size == chain.pacer.size >= 1000


def test_sizes_at_which_chains_are_compared():
    assert sizes(499) == [] and sizes(999) == [499]
    assert sizes(1000) == [250, 500] and sizes(4001) == [250, 500, 1000, 2000]


@pytest.mark.parametrize("n_unseen", [0, 49])
def test_too_few_unseen_rows_leave_the_usual_start(monkeypatch, n_unseen):
    monkeypatch.setattr(_starts, "mend_views", lambda *arguments: 0)
    monkeypatch.setattr(_starts, "unseen_differences", lambda *states: np.ones(n_unseen))
    plan = plan_of(2000)._replace(columns="apart", moves=("gibbs",))
    seed = np.random.SeedSequence(3)
    chain = begun(plan, SCHEDULE, seed)
    assert chain.state.n_views > 1 and chain.state.subsample.size >= 1000


def test_one_size_is_too_few_for_a_race(monkeypatch):
    monkeypatch.setattr(_starts, "unseen_differences", lambda *states: pytest.fail("a race"))
    seed = np.random.SeedSequence(2)
    assert begun(plan_of(600), SCHEDULE, seed).pacer.size >= 300


def test_the_usual_start_is_what_it_would_be_alone(monkeypatch):
    """Whether or not there was a rival, until which size ever, where no views are mended."""
    monkeypatch.setattr(_starts, "mend_views", lambda *_: None)
    plan, seed = plan_of(), np.random.SeedSequence(4)
    alone = run_chain(plan._replace(starts=()), SCHEDULE, seed)["state"]
    for gap in (-1.0, 0.0):
        gaps = gap + np.tile([-0.1, 0.1], 50)
        monkeypatch.setattr(_starts, "unseen_differences", lambda *states, gaps=gaps: gaps)
        beside = run_chain(plan, SCHEDULE, seed)["state"]
        own = [{k: v for k, v in a.items() if "seconds" not in k} for a in (alone, beside)]
        assert same_arrays(*own)


def test_the_rival_wins_and_moves_its_columns_afterwards(monkeypatch):
    """Its random numbers are its own, and from then on it has all of the plan's moves."""
    monkeypatch.setattr(
        _starts, "unseen_differences", lambda *states: 1.0 + np.tile([-0.1, 0.1], 50)
    )
    plan, made = plan_of(), []
    for name, move in COLUMN_MOVES.items():
        monkeypatch.setattr(
            move, "sweep", lambda *a, n=name, s=move.sweep, **k: made.append(n) or s(*a, **k)
        )
    seed = np.random.SeedSequence(5)
    chain = begun(plan, SCHEDULE, seed)
    assert chain.state.n_views == 1 and chain.plan is plan
    assert set(chain.moves.budget.costs) >= set(made)  # what they cost the usual chain
    usual = len(made)
    assert chain.run() and len(made) > usual
    assert set(made[usual:]) <= set(COLUMN_MOVES)
    again = begun(plan, SCHEDULE, seed)
    resumed = Chain.from_arrays(again.to_arrays(), plan)
    assert resumed.run()
    own = [chain.state.to_arrays() for chain in (chain, resumed)]
    assert same_arrays(*own)


def test_a_rival_begins_where_the_usual_chain_is():
    """At the same place with the same rows, all columns in one view that has clusters; it is free
    of the usual chain's randomness, and leaves the columns where they are."""
    plan, seed = plan_of(2000), np.random.SeedSequence(7)
    chain = Chain.begin(plan._replace(columns="apart"), SCHEDULE, seed)
    chain.run(until=250)
    before, at = chain.state.to_arrays(), chain.position
    rival = _starts.begin_rivals(chain, np.random.SeedSequence(8))[0].chain
    assert rival.position == at and rival.pacer.size == chain.pacer.size
    np.testing.assert_array_equal(rival.state.subsample.rows(), chain.state.subsample.rows())
    rival.state.validate()
    assert rival.state.n_views == 1 and rival.state.n_clusters > 1
    assert rival.run(until=500) and rival.state.n_views == 1
    assert rival.state.subsample.size >= 500 and chain.state.subsample.size < 500
    assert same_arrays(before, chain.state.to_arrays()) and chain.position == at


def test_a_race_that_is_stopped_leaves_the_usual_start(monkeypatch):
    class Stops(Progress):
        def __call__(self, share):
            return share > 0.1

    plan, seed = plan_of(), np.random.SeedSequence(6)
    monkeypatch.setattr(_starts, "unseen_differences", lambda *states: pytest.fail("it went on"))
    result = run_chain(plan._replace(columns="apart"), SCHEDULE, seed, progress=Stops())
    assert not result["complete"]
    chain = Chain.from_arrays(result["state"], plan)
    assert 0 < chain.state.subsample.size < 250
    assert chain.run() and chain.is_full


def test_gaps_are_of_rows_that_neither_has_seen(monkeypatch):
    """At most so many, over the whole table."""

    class State:
        views = ()

        def __init__(self, n_seen, seed):
            bit_generator = np.random.PCG64(seed)
            self.subsample = Subsample(3000, "random", bit_generator)
            for _ in range(n_seen):
                self.subsample.enter_row(bit_generator)

    class Rows:
        n_rows = 3000

        def take(self, rows):
            taken.append(rows)

    def density(views, rows):
        return np.array([1.0 if views is states[1].views else 0.0])

    states, taken = (State(400, 0), State(500, 1)), []
    states[1].views = (1,)
    monkeypatch.setattr(_unseen, "log_densities", density)
    assert unseen_differences(Rows(), *states) == [1]
    seen = np.union1d(*[state.subsample.rows() for state in states])
    assert 500 < len(seen) < 900
    assert not np.isin(taken[0], seen).any()
    assert len(taken[0]) == len(set(taken[0])) == _unseen.MOST_UNSEEN and taken[0][-1] > 2900


def test_densities_against_the_formula():
    """Of rows that are out, with gaps: sums over each view's clusters and a new one."""
    columns, state, _ = big_state(21)
    out = np.setdiff1d(np.arange(40), state.subsample.rows())
    expected = np.zeros(len(out))
    for v, view in enumerate(state.views):
        own = [columns[f] for f in np.flatnonzero(state.view_of == v)]
        pair, labels = (view.prior.concentration, view.prior.discount), view.get_labels()
        members = [np.flatnonzero(labels == k) for k in np.unique(labels[labels >= 0])]
        sizes = [len(rows) for rows in members]
        for i, row in enumerate(out):
            terms = []
            for k, rows in enumerate([*members, np.empty(0, int)]):
                after = [n + (j == k) for j, n in enumerate([*sizes, 0]) if n + (j == k)]
                weight = log_eppf(after, *pair) - log_eppf(sizes, *pair)
                for family, values, hyper in own:
                    inside = [values[r] for r in rows]
                    with_row = log_marginal(family, [*inside, values[row]], hyper)
                    weight += with_row - log_marginal(family, inside, hyper)
                terms.append(weight)
            expected[i] += np.logaddexp.reduce(terms)
    densities = log_densities(state.views, state.table.take(out))
    np.testing.assert_allclose(densities, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:The chains do not agree")
def test_a_fit_races_without_a_time_limit_and_is_the_same_for_any_number_of_jobs(monkeypatch):
    rng, raced = np.random.default_rng(8), []
    X = rng.random((1000, 3)) < np.where(rng.random(1000) < 0.5, 0.9, 0.2)[:, None]

    def noted(plan, *arguments):
        raced.extend([plan.columns] * bool(plan.starts))
        return begin_chain(plan, *arguments)

    monkeypatch.setitem(_run.RUNNERS, "chain", noted)
    monkeypatch.setattr(_rounds, "MOST_SWEEPS", 1)
    auto = AcceleratingAnneal(n_sweeps="auto", passes=2, small_size=50, big_size=1e6)
    given = {"n_chains": 2, "n_draws": 1, "random_state": 0, "families": "bernoulli"}
    one, two = (CrossCatPY(schedule=auto, n_jobs=n_jobs, **given).fit(X) for n_jobs in (1, 2))
    assert sorted(raced) == ["apart", "apart", "drawn", "drawn"]
    for a, b in zip(one.draws_, two.draws_, strict=True):
        assert same_arrays(a[0].arrays, b[0].arrays)
    CrossCatPY(schedule=SCHEDULE, **given).fit(X)
    assert raced[4:] == ["drawn", "drawn"]
    CrossCatPY(max_time=0.1, **given).fit(X)
    CrossCatPY(schedule=CustomAnneal(lambda share: share**2, n_sweeps=3), **given).fit(X)
    assert len(raced) == 6


def test_no_race_where_a_chain_begins_with_all_rows(monkeypatch):
    monkeypatch.setattr(_starts, "begin_rivals", lambda *arguments: pytest.fail("a race"))
    chain = begun(plan_of(), PriorGibbs(n_sweeps=1), np.random.SeedSequence(9))
    assert chain.is_full and chain.position == 0


@pytest.mark.parametrize(("ahead", "n_views"), [("together", 1), ("pairs", 2), (None, 4)])
def test_a_start_is_added_by_one_line(monkeypatch, ahead, n_views):
    """Another rival takes part, and the one that unseen rows prefer goes on."""

    def pairs(plan, state, bit_generator):
        views = [_mend.grown(plan, state, pair, bit_generator) for pair in ([0, 1], [2, 3])]
        state.reassign(state.n_views + np.array([0, 0, 1, 1]), views)

    def gaps(table, usual, rival):
        name = {1: "together", 2: "pairs"}[rival.n_views]
        return (1.0 if name == ahead else -1.0) + np.tile([-0.1, 0.1], 50)

    monkeypatch.setitem(STARTS, "pairs", pairs)
    monkeypatch.setattr(_starts, "mend_views", lambda *arguments: 0)
    monkeypatch.setattr(_starts, "unseen_differences", gaps)
    plan = plan_of(2000)._replace(columns="apart", moves=("gibbs",), starts=tuple(STARTS))
    assert begun(plan, SCHEDULE, np.random.SeedSequence(3)).state.n_views == n_views
