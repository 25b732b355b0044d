"""The kernel of the paper on subsample annealing: how its chains begin, and when they move."""

import contextlib
from unittest import mock

import numpy as np

from papers.schedules_kernel import MOVES, papers_kernel
from skanneal import CrossCatPY
from skanneal.chains import Chain
from skanneal.moves import ColumnGibbs, ColumnSets
from skanneal.schedules import LinearAnneal, PriorGibbs, SequentialGibbs

N_ROWS = 24
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))


def model_of(schedule, seed=0):
    options = {"families": "normal", "moves": MOVES, "n_chains": 1, "rounding": None}
    return CrossCatPY(schedule=schedule, random_state=seed, **options)


def no_kernel(_):
    """The package's own."""
    return contextlib.nullcontext()


def rows_at_moves(schedule, kernel=papers_kernel):
    """How many rows are in at each churn, and at each sweep of the two moves of columns."""
    found = {}

    def noting(owner, name, state_of):
        method, rows = getattr(owner, name), found.setdefault(owner, [])

        def noted(self, *arguments, **options):
            rows.append(state_of(self, arguments).subsample.size)
            return method(self, *arguments, **options)

        return mock.patch.object(owner, name, noted)

    with contextlib.ExitStack() as stack:
        stack.enter_context(kernel(schedule))
        stack.enter_context(noting(Chain, "make_moves", lambda chain, _: chain.state))
        for move in (ColumnGibbs, ColumnSets):
            stack.enter_context(noting(move, "sweep", lambda _, arguments: arguments[0]))
        model_of(schedule).fit(X)
    return found


def test_every_move_is_made_once_after_every_churn():
    for schedule in (LinearAnneal(n_sweeps=6), PriorGibbs(n_sweeps=4)):
        found = rows_at_moves(schedule)
        assert found[ColumnGibbs] == found[ColumnSets] == found[Chain]
    assert rows_at_moves(LinearAnneal(n_sweeps=6))[Chain][0] == 1
    ours = rows_at_moves(LinearAnneal(n_sweeps=6), no_kernel)
    assert ours[ColumnGibbs] != ours[Chain]


def test_the_sequential_start_makes_no_moves_before_all_rows_are_in():
    found = rows_at_moves(SequentialGibbs(n_sweeps=4))
    assert found[Chain][0] == 1
    assert found[ColumnGibbs] == found[ColumnSets] == [N_ROWS] * 4


def first_hyperparameters(seed, kernel):
    """Of a chain that has not moved yet."""
    found, run = [], Chain.run

    def noting(chain, *arguments):
        found.append(chain.state.views[0].to_arrays())
        return run(chain, *arguments)

    schedule = PriorGibbs(n_sweeps=1)
    with kernel(schedule), mock.patch.object(Chain, "run", noting):
        model_of(schedule, seed).fit(X)
    hyper = ("concentration", "normal/mu0", "normal/kappa0", "normal/sigma2_0")
    return tuple(float(np.ravel(found[0][name])[0]) for name in hyper)


def test_chains_begin_with_hyperparameters_drawn_from_their_priors():
    papers = {first_hyperparameters(seed, papers_kernel) for seed in range(3)}
    ours = {first_hyperparameters(seed, no_kernel) for seed in range(3)}
    assert (len(papers), len(ours)) == (3, 1)
