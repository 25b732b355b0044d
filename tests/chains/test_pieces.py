"""A second start in small pieces, for tables of few rows."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from oracles.bits import same_arrays
from oracles.mixtures import make_table
from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.chains import Chain, ChainPlan, _pieces, _starts, run_chain
from skanneal.parallel import StopFlag
from skanneal.partition_priors import PriorGrid
from skanneal.schedules import CustomAnneal, LinearAnneal

PAIRS = PriorGrid([(0.5, 0.0), (2.0, 0.0)])
SCHEDULE = LinearAnneal(n_sweeps=4)
pytestmark = pytest.mark.filterwarnings("ignore:The chains")


def arms(seed, n_rows=312):
    """Three arms of a spiral, along which rows are evenly spaced."""
    along = 0.12 + 0.88 * (np.arange(n_rows) // 3) / (n_rows // 3)
    angle = 2 * np.pi * (along + np.arange(n_rows) % 3 / 3)
    noise = np.random.default_rng(seed).normal(size=(n_rows, 2))
    return along[:, None] * np.c_[np.cos(angle), np.sin(angle)] + 0.02 * noise


def plan_of(pieces, n_rows=120):
    """A column of numbers and one of levels, both with gaps."""
    rng = np.random.default_rng(3)
    numbers, levels = rng.normal(size=n_rows).tolist(), rng.integers(3, size=n_rows).tolist()
    numbers[4], levels[7] = None, None
    hyper = {"mu0": 0.0, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7}
    of_levels = {"pseudo_counts": [0.5] * 3}
    columns = [("normal", numbers, hyper), ("categorical", levels, of_levels)]
    return ChainPlan(
        make_table(columns),
        {"normal": np.array([0]), "categorical": np.array([1])},
        {0: np.array([0.0, 0.5, 3.0, 0.7]), 1: np.full(3, 0.5)},
        {0: [None] * 3 + [np.array([0.1, 0.7])], 1: [None] * 3},
        PAIRS,
        ("gibbs", "split_merge"),
        pieces=pieces,
    )


def seed():
    return np.random.SeedSequence(5)


def components_of(random_state):
    """How many components each chain of a fit has in the end."""
    model = AnnealedDPMixture(n_chains=2, random_state=random_state).fit(arms(random_state))
    return [chain[-1].n_components for chain in model.draws_]


def test_arms_of_a_spiral_have_narrow_components(monkeypatch):
    """Without pieces the chains agree about a few wide ones."""
    assert min(components_of(1)) > 15
    monkeypatch.setattr(_pieces, "MOST_ROWS", 0)
    assert max(components_of(1)) < 5


def test_all_rows_are_in_pieces():
    chain = Chain.begin(plan_of(True), SCHEDULE, seed())
    chain.run()
    _pieces.divide_all(chain)
    sizes = chain.state.sizes()
    assert sizes.sum() == 120 and sizes.max() <= _pieces.PIECE and np.count_nonzero(sizes) > 12
    chain.state.validate()
    chain.recount()


def test_families_ask_for_more_rows(monkeypatch):
    monkeypatch.setattr(ChainPlan, "asked_rows", 25)
    chain = Chain.begin(plan_of(True), SCHEDULE, seed())
    chain.run()
    _pieces.divide_all(chain)
    assert _pieces.PIECE < chain.state.sizes().max() <= 25


@pytest.mark.parametrize(
    ("log_joint", "lead", "better"), [(1, 0.1, True), (-1, 0.1, False), (1, -0.1, False)]
)
def test_it_must_be_better_in_both_ways(monkeypatch, log_joint, lead, better):
    """The standard error of a mean lead is 0.015."""
    rng = np.random.default_rng(0)
    found = {0: np.zeros(400), log_joint: lead + rng.normal(0.0, 0.3, 400)}
    monkeypatch.setattr(_pieces, "logs_without", lambda state, rows: found[state.log_joint()])
    usual, rival = (
        SimpleNamespace(log_joint=lambda own=own: own, table=SimpleNamespace(n_rows=400))
        for own in (0, log_joint)
    )
    assert _pieces.is_better(rival, usual) == better


def test_a_chain_whose_copy_is_not_better_is_what_it_would_be(monkeypatch):
    usual = run_chain(plan_of(False), SCHEDULE, seed())
    for better in False, True:
        monkeypatch.setattr(_pieces, "is_better", lambda rival, usual, better=better: better)
        results = [run_chain(plan_of(True), SCHEDULE, seed()) for _ in range(2)]
        assert same_arrays(*(result["draws"][-1] for result in results))
        assert same_arrays(usual["draws"][-1], results[0]["draws"][-1]) != better
        on = run_chain(plan_of(True), SCHEDULE, None, 2, 3, state=results[0]["state"])
        assert len(on["draws"]) == 2


def test_a_chain_that_is_stopped_stays(monkeypatch):
    chain, stop = Chain.begin(plan_of(True), SCHEDULE, seed()), StopFlag()
    divided, rivals = _pieces.divide_all, []

    def stopped(rival):
        rivals.append((rival, rival.bit_generator.state))
        divided(rival)
        stop.set()

    monkeypatch.setattr(_pieces, "divide_all", stopped)
    monkeypatch.setattr(_pieces, "is_better", lambda *states: True)
    _pieces.try_pieces(chain, seed(), stop)
    rival, random_numbers = rivals[0]
    assert random_numbers != np.random.PCG64(seed()).state  # but random numbers of its own
    assert chain.clock.seconds >= rival.clock.seconds
    usual = Chain.begin(plan_of(False), SCHEDULE, seed())
    usual.run()
    assert same_arrays(chain.draw(), usual.draw())


def tries(monkeypatch, make, X, **parameters):
    """How many chains of a fit are tried in pieces."""
    tried = []
    monkeypatch.setattr(_starts, "try_pieces", lambda chain, *given: tried.append(chain))
    make(n_chains=2, random_state=0, **parameters).fit(X)
    return len(tried)


def test_which_fits_try_them(monkeypatch):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    assert tries(monkeypatch, AnnealedDPMixture, X) == 2
    assert tries(monkeypatch, AnnealedDPMixture, X, max_time=2) == 0
    custom = CustomAnneal.from_path(SCHEDULE.path(80))
    assert tries(monkeypatch, AnnealedDPMixture, X, schedule=custom) == 0
    for other in CrossCatPY, PermutationDPMixture, AcceleratedDPMixture:
        assert tries(monkeypatch, other, X) == 0


@pytest.mark.parametrize(("limit", "value"), [("MOST_ROWS", 119), ("FEWEST", 13), ("FEWEST", 12)])
def test_tables_of_too_many_or_too_few_rows_have_none(monkeypatch, limit, value):
    def refuse(chain):
        raise AssertionError

    monkeypatch.setattr(_pieces, "divide_all", refuse)
    monkeypatch.setattr(_pieces, limit, value)
    chain = Chain.begin(plan_of(True), SCHEDULE, seed())
    if value == 12:  # there are enough
        with pytest.raises(AssertionError):
            _pieces.try_pieces(chain, seed(), StopFlag())
    else:
        _pieces.try_pieces(chain, seed(), StopFlag())
    assert chain.is_full
