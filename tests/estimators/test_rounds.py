"""`n_sweeps="auto"`: rounds of blocks until chains agree, and what a fit then claims."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.estimators import _annealed, _rounds
from skanneal.estimators._rounds import (
    BLOCK,
    MOST_SWEEPS,
    PATIENCE,
    SweepCost,
    most_sweeps,
    run_rounds,
)
from skanneal.schedules import LinearAnneal, PriorGibbs, SequentialGibbs, resolve_schedule
from skanneal.summary._convergence import FEW_RECORDS

MIXTURES = [AnnealedDPMixture, PermutationDPMixture, CrossCatPY]
PLAIN = SweepCost()
# What keeps rows where they are: no split-merge, and clusters that no row is drawn to.
STUCK = {"moves": ("gibbs",), "concentration": 1.0}


def rows(n_rows=60, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(n_rows) % 2, 4.0, -4.0)
    return side[:, None] + rng.normal(size=(n_rows, n_columns))


def many_clusters(n_rows=400):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 8)) * 30
    return centres[np.arange(n_rows) % 20] + rng.normal(size=(n_rows, 8))


def stuck(**parameters):
    fixed = {"normal": {"mu0": 0.0, "kappa0": 0.01, "nu0": 4.0, "sigma2_0": 1.0}}
    return AnnealedDPMixture(hyperparameters=fixed, random_state=0, **STUCK, **parameters)


def same_bits(one, two):
    for a, b in zip(one.draws_, two.draws_, strict=True):
        for draw, other in zip(a, b, strict=True):
            assert all(np.array_equal(draw.arrays[k], other.arrays[k]) for k in draw.arrays)
    assert one.converged_ == two.converged_ and one.n_sweeps_ == two.n_sweeps_


# ---- the rounds ---------------------------------------------------------------------------------


def draw(sweeps, n_components=(7,), view_of=None):
    """A draw after so many sweeps, of a mixture or of views with so many components each."""
    labels = [np.arange(1000) % n for n in n_components]
    if view_of is None:
        return {"sweeps": sweeps, "labels": labels[0]}
    of_views = {f"view{v}/labels": of for v, of in enumerate(labels)}
    return {"sweeps": sweeps, "view_of": np.array(view_of), **of_views}


def said(converged, agreeing=(True, True), **figures):
    """What `judged` says."""
    found = {"figures": figures, "agreeing": np.array(agreeing)}
    return {"converged_": converged, "convergence_": found}


def sweeps_of(result):
    return [draw["sweeps"] for draw in result["draws"]]


class Chains:
    """Stands for chains: each has made so many sweeps; verdicts and interrupts are given."""

    def __init__(
        self,
        monkeypatch,
        agree_in=None,
        interrupt_in=None,
        n_rows=10_000,
        agreeing=(True, True),
    ):
        self.agree_in, self.interrupt_in, self.calls = agree_in, interrupt_in, []
        self.agreeing = agreeing
        self.judged_blocks, self.earlier = [], 0
        self.table = Size(n_rows, 20)
        monkeypatch.setattr(_rounds, "judged", self.judged)

    def judged(self, traces, draws, n_rows, block):
        self.judged_blocks.append(block)
        return said(self.agree_in == len(self.judged_blocks), self.agreeing)

    def __call__(self, states, n_draws, thin):
        """Without states the schedule's end, ten sweeps, is the first draw."""
        begins = states is None and not self.earlier
        before = [10 - thin, 10 - thin] if begins else [10, 10] if states is None else states
        interrupted = self.interrupt_in == len(self.calls)
        self.calls.append((states, n_draws, thin))
        made = [thin if interrupted else n_draws * thin, 0 if interrupted else n_draws * thin]
        ticks = thin * np.arange(1, n_draws + 1)
        return [
            {
                "trace": {"sweeps": [n + more]},
                "draws": [draw(at) for at in ([n + more] if interrupted else n + ticks)],
                "state": n + more,
            }
            for n, more in zip(before, made)
        ], interrupted

    def run(self, earlier=0, **parameters):
        self.earlier = earlier
        given = {"n_draws": (5, 5), "thin": 1, "cost": SweepCost(), "earlier": earlier}
        return run_rounds(self, self.table, **given | parameters)


class Size:
    def __init__(self, n_rows, n_columns):
        self.n_rows, self.n_columns = n_rows, n_columns


def test_blocks_double_until_the_chains_agree(monkeypatch):
    chains = Chains(monkeypatch, agree_in=3)
    results, interrupted, verdict, block = chains.run()
    assert chains.calls == [
        (None, 1, 1),
        ([10, 10], 5, 5),
        ([35, 35], 5, 10),
        ([85, 85], 5, 20),
    ]
    assert chains.judged_blocks == [25, 50, 100] and block == 100
    assert sweeps_of(results[0]) == [105, 125, 145, 165, 185]
    assert verdict["converged_"] and not interrupted


@pytest.mark.parametrize(("at_odds", "total"), [(False, 1575), (True, 775)])
def test_work_has_a_cap(monkeypatch, at_odds, total):
    """Where no two chains are at odds, one more block fits in."""
    chains = Chains(monkeypatch, n_rows=1000, agreeing=[True, not at_odds])
    results, _, verdict, block = chains.run()
    assert sum(chains.judged_blocks) == total <= MOST_SWEEPS * (1.0 if at_odds else PATIENCE)
    assert results[0]["state"] == 10 + total and not verdict["converged_"]
    assert block == chains.judged_blocks[-1]


def test_a_dear_sweep_leaves_room_for_one_block(monkeypatch):
    """Twenty times the cost: no more than the reference's time."""
    chains = Chains(monkeypatch, agreeing=[True, False])
    chains.run(cost=SweepCost(20.0), n_draws=(4, 25))
    assert chains.judged_blocks == [FEW_RECORDS]  # as many as the figures ask for


def test_one_chain_has_no_patience(monkeypatch):
    chains = Chains(monkeypatch, n_rows=1000, agreeing=[True])
    assert not chains.run()[2]["converged_"] and sum(chains.judged_blocks) <= MOST_SWEEPS


@pytest.mark.parametrize(("most", "draws"), [(25, 25), (24, 12), (16, 12), (12, 8), (4, 4)])
def test_draws_are_spread_evenly_over_the_first_block(monkeypatch, most, draws):
    """By default at most 25 sweeps; of four draws more, since fewer say nothing."""
    chains = Chains(monkeypatch, agree_in=1)
    results, *_ = chains.run(n_draws=(4, most))
    assert len(results[0]["draws"]) == draws
    assert chains.judged_blocks == [28 if most == 4 else 24 if most < 25 else 25]


def test_draws_and_thin_make_the_first_block_longer(monkeypatch):
    chains = Chains(monkeypatch, agree_in=1)
    chains.run(thin=8)
    assert chains.judged_blocks == [40] and chains.calls[0] == (None, 1, 8)
    chains = Chains(monkeypatch, agree_in=1)
    chains.run(earlier=60)  # a second fit goes on with twice the last block
    assert chains.judged_blocks == [120] and chains.calls == [(None, 5, 24)]


@pytest.mark.parametrize("settled_in", [1, 3])
def test_one_chain_goes_on_until_it_has_settled(monkeypatch, settled_in):
    chains, judged = Chains(monkeypatch), []

    def verdict_of(traces, draws, n_rows, block):
        judged.append(block)
        agrees = None if len(judged) == 1 == settled_in else len(judged) >= settled_in
        halves = {"value": 2.5, "limit": 2.0, "agrees": agrees}
        return said(False, [True], **{"halves of log_joint": halves})

    def one(states, n_draws, thin):
        results, interrupted = chains(None if states is None else 2 * states, n_draws, thin)
        return results[:1], interrupted

    monkeypatch.setattr(_rounds, "judged", verdict_of)
    results, interrupted, verdict, block = run_rounds(
        one, chains.table, n_draws=(5, 5), thin=1, cost=SweepCost()
    )
    assert judged == [25, 25, 50][:settled_in] and block == judged[-1] and not interrupted


@pytest.mark.parametrize(
    ("distances", "agreeing", "blocks"),
    [
        ([9.0, 9.0, 9.0, 9.0], 1, [25, 50]),
        ([9.0, 1.4, 9.0, 9.0], 1, [25, 50, 100, 200]),
        ([1.4, 1.4, 1.4, 1.4], 1, [25, 50, 100, 200]),
        ([9.0, 9.0, 9.0, 9.0], 2, [25, 50]),
        ([9.0, 9.0, 9.0, 9.0], 3, [25, 50, 100, 200]),  # one chain alone is in other views
        ([np.nan] * 4, 1, [25, 50, 100, 200]),
    ],
)
def test_chains_in_other_views_are_not_waited_for(monkeypatch, distances, agreeing, blocks):
    chains, left = Chains(monkeypatch), iter(distances)

    def verdict_of(traces, draws, n_rows, block):
        chains.judged_blocks.append(block)
        columns = {"value": next(left), "limit": 1.15, "agrees": False}
        return said(False, np.arange(4) < agreeing, **{"distance of columns": columns})

    monkeypatch.setattr(_rounds, "judged", verdict_of)
    assert not chains.run()[2]["converged_"] and chains.judged_blocks == blocks


def test_an_interrupt_keeps_the_last_draws(monkeypatch):
    chains = Chains(monkeypatch, interrupt_in=0)
    results, interrupted, verdict, _ = chains.run()
    assert interrupted and verdict is None and len(chains.calls) == 1
    chains = Chains(monkeypatch, interrupt_in=2)
    results, interrupted, verdict, _ = chains.run()
    assert interrupted and verdict is None
    assert sweeps_of(results[0]) == [20, 25, 30, 35, 45] and results[0]["state"] == 45
    assert sweeps_of(results[1]) == [15, 20, 25, 30, 35]  # it had not begun


@pytest.mark.slow
def test_chains_of_few_rows_come_to_agree():
    """Of one Gaussian: nine of ten fits say so. Where the cap fell with the square of the rows
    as well, one did."""
    n_agreeing = 0
    for seed in range(10):
        X = np.random.default_rng([60, seed]).standard_normal((60, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            n_agreeing += AnnealedDPMixture(random_state=seed).fit(X).converged_
    assert n_agreeing >= 7


@pytest.mark.parametrize("components", [1, 160])
def test_the_cap_falls_with_the_size(components):
    def most(n_rows, n_columns, *cost):
        draws = [[draw(0), draw(1, [components])]]
        return most_sweeps(Size(n_rows, n_columns), draws, SweepCost(*cost))

    assert most(50, 2) < most(200, 2) <= MOST_SWEEPS
    assert most(10**6, 20) < most(10**5, 20) < most(10**4, 20) <= MOST_SWEEPS
    assert most(10**4, 200) < most(10**4, 20)
    assert most(10**4, 20, 2.4, 40.0) < most(10**4, 20)
    assert most(10**5, 20, 1.0, 4.0, 3.0) < most(10**5, 20)  # dearer cells


def test_the_cap_knows_the_views_and_the_components_that_each_cell_is_scored_by():
    def most(*draws):
        return most_sweeps(Size(10**6, 4), [[one] for one in draws], PLAIN)

    def in_views(n_components, view_of):
        return draw(0, n_components, view_of)

    one, two = in_views([16], [0, 0, 0, 0]), in_views([16, 16], [0, 0, 0, 1])
    assert most(draw(0, [16])) == most(one) > most(two)
    assert most(two) > most(in_views([16, 17], [0, 0, 0, 1]))
    assert most(in_views([16, 17], [0, 0, 0, 1])) > most(in_views([17, 16], [0, 0, 0, 1]))
    assert most(two, two) < most(one, two) < most(one, one)  # the mean of the chains
    assert most(one, one) == pytest.approx(3 * most(one))  # a third of the time for one chain


# ---- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", MIXTURES)
@pytest.mark.few(1)
def test_the_bits_do_not_depend_on_jobs(estimator):
    X = rows()
    one = estimator(random_state=0).fit(X)
    same_bits(one, estimator(random_state=0, n_jobs=2).fit(X))


def test_the_bits_do_not_depend_on_the_backend():
    X, model = rows(), AnnealedDPMixture(n_chains=2, random_state=0)
    one = clone(model).fit(X)
    with joblib.parallel_config("loky", n_jobs=2):
        same_bits(one, clone(model).fit(X))


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture])
@pytest.mark.few(1)
def test_an_easy_table_is_claimed_in_silence(estimator):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 12)) * 8
    X = centres[np.arange(300) % 4] + rng.normal(size=(300, 12))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = estimator(random_state=0).fit(X)
    assert model.converged_ and model.convergence_["agreeing"].all()
    assert [len(chain) for chain in model.draws_] == [25] * 4
    figures = model.convergence_["figures"]
    assert all(figure["agrees"] for figure in figures.values())
    path = resolve_schedule("anneal").path(300)
    assert model.n_sweeps_ == path.assignments[-1] / 300 + BLOCK


def test_opposite_starts_that_stay_apart_are_no_claim(monkeypatch):
    """Sequential chains find other clusters than those that begin with a draw from the prior, which
    are not tried in pieces. These are so much less probable that they have no part in the answers,
    and the warning says so."""
    monkeypatch.setattr(AnnealedDPMixture, "_begins_in_pieces", False)
    with pytest.warns(ConvergenceWarning, match="less probable.*chain_weights_") as record:
        model = stuck(schedule=PriorGibbs(n_sweeps="auto")).fit(many_clusters())
    said = [one for one in record if "less probable" in str(one.message)]
    assert [one.filename for one in said] == [__file__]
    assert not model.converged_ and not model.convergence_["agreeing"].all()
    assert not model.convergence_["figures"]["distance of rows"]["agrees"]
    assert (model.chain_weights_ == 0.0).sum() == 2
    # All chains from one start are on a plateau: what they have not seen, they cannot tell.
    model = stuck(schedule=SequentialGibbs(n_sweeps=60), n_draws=25).fit(many_clusters())
    assert model.converged_


@pytest.mark.slow
def test_fits_of_a_tenth_of_the_work_do_not_claim():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))  # many overlapping clusters, which mix slowly
    for seed in range(2):
        model = AnnealedDPMixture(
            schedule=SequentialGibbs(n_sweeps=1), n_draws=25, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert not model.fit(X).converged_


def test_a_number_of_sweeps_stays_exact_and_short_ones_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AnnealedDPMixture(schedule=LinearAnneal(n_sweeps=7), random_state=0).fit(rows())
        assert model.n_sweeps_ == 7.0 and [len(chain) for chain in model.draws_] == [1] * 4
        assert not model.converged_
        single = AnnealedDPMixture(n_chains=1, random_state=0).fit(rows())
    assert not single.converged_ and len(single.draws_[0]) == 25


def test_one_chain_that_has_not_settled_says_so_in_its_figures():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    model = PermutationDPMixture(
        families="normal",
        schedule=PriorGibbs(n_sweeps=1),
        moves=("gibbs",),
        init=200,  # far too many clusters, which empty one after another
        concentration=0.1,
        n_chains=1,
        n_draws=25,
        random_state=1,
    ).fit(X)
    figures = model.convergence_["figures"]
    assert not model.converged_ and figures["halves of n_components"]["agrees"] is False


def test_a_limit_of_time_rules():
    model = AnnealedDPMixture(max_time=0.5, random_state=0, n_chains=2).fit(rows(200))
    assert model.schedule_.max_time is None and not model.schedule_.is_auto
    assert isinstance(model.converged_, bool) and 1 <= len(model.draws_[0]) <= 25


def test_a_warm_start_goes_on_with_twice_the_block():
    model = AnnealedDPMixture(n_chains=1, n_draws=5, warm_start=True, random_state=0).fit(rows())
    first = model.n_sweeps_
    assert model.fit(rows()).n_sweeps_ == first + 2 * BLOCK
    assert model.fit(rows()).n_sweeps_ == first + 6 * BLOCK


def test_many_rows_have_fewer_draws_by_default(monkeypatch):
    monkeypatch.setattr(_annealed, "DRAWS_BYTES", 4 * 60 * 4 * 7)
    model = AnnealedDPMixture(random_state=0).fit(rows())
    assert [len(chain) for chain in model.draws_] == [6] * 4  # every fourth of 24 sweeps
    monkeypatch.setattr(_annealed, "DRAWS_BYTES", 1)
    assert len(AnnealedDPMixture(n_chains=1, random_state=0).fit(rows()).draws_[0]) == 4


@pytest.mark.slow
def test_every_second_chain_begins_in_another_way(monkeypatch):
    begun = []
    real = _annealed.BaseAnnealed._run_chains

    def noted(self, limit, plans, schedules, *rest):
        begun.append((list(plans), list(schedules)))
        return real(self, limit, plans, schedules, *rest)

    monkeypatch.setattr(_annealed.BaseAnnealed, "_run_chains", noted)
    AnnealedDPMixture(n_chains=3, n_draws=1, random_state=0).fit(rows())
    assert [type(s).__name__ for s in begun[0][1]] == [
        "AcceleratingAnneal",
        "SequentialGibbs",
        "AcceleratingAnneal",
    ]
    CrossCatPY(n_chains=2, n_draws=1, random_state=0).fit(rows())
    assert [plan.columns for plan in begun[-1][0]] == ["drawn", "apart"]
    CrossCatPY(families="multivariate_normal", n_draws=1, random_state=0).fit(rows())
    assert [plan.columns for plan in begun[-1][0]] == ["drawn", "apart", "drawn", "together"]
    # Where the user says how chains begin, or how many sweeps they make, all do the same.
    PermutationDPMixture(init="one", n_chains=2, n_draws=1, random_state=0).fit(rows())
    assert begun[-1][1][0] is begun[-1][1][1]
    CrossCatPY(schedule=LinearAnneal(n_sweeps=5), n_chains=2, random_state=0).fit(rows())
    assert all(plan.columns == "drawn" for plan in begun[-1][0])


def test_of_many_rows_the_first_enter_one_after_another(monkeypatch):
    """So chains of opposite starts agree where a pass over all rows leaves one of them behind."""
    begun, real = [], _annealed.BaseAnnealed._run_chains

    def noted(self, limit, plans, schedules, *rest):
        begun.append([schedule.path(400) for schedule in schedules])
        return real(self, limit, plans, schedules, *rest)

    monkeypatch.setattr(_annealed.BaseAnnealed, "_run_chains", noted)
    monkeypatch.setattr(_annealed, "MANY_ROWS", 100)
    monkeypatch.setattr(_annealed, "OTHER_ROWS", 80)
    quick = resolve_schedule("anneal").set_params(small_size=20)
    X = many_clusters()
    first, second = (
        AnnealedDPMixture(schedule=quick, n_chains=2, random_state=0, n_jobs=n_jobs).fit(X)
        for n_jobs in (1, 2)
    )
    usual, other = begun[0]
    assert other.sizes[:3].tolist() == [0, 80, 80] and other.assignments[1] == 80
    assert usual.assignments[-1] == other.assignments[-1]
    assert first.converged_ and first.n_clusters_ == 20
    same_bits(first, second)
