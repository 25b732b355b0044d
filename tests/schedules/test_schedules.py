"""Schedules: exact sizes, equal work, time budgets on a simulated clock, refits, resuming."""

import inspect
import io
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.model_selection import GridSearchCV

from oracles.places import ROOT
from skanneal import AnnealedDPMixture, CrossCatPY, schedules
from skanneal.schedules import (
    SCHEDULES,
    AcceleratingAnneal,
    BaseSchedule,
    CustomAnneal,
    EnergyAnneal,
    LinearAnneal,
    Pacer,
    PriorGibbs,
    SequentialGibbs,
    resolve_schedule,
    size_at,
)
from skanneal.schedules._path import begun_in_turn, size_after

# Every name of the registry, and further settings of its classes.
EXAMPLES = [
    *(clone(schedule).set_params(n_sweeps=6) for schedule in SCHEDULES.values()),
    LinearAnneal(n_sweeps=4.3, final_sweeps=0.8),
    AcceleratingAnneal(n_sweeps=6, final_sweeps=1, small_size=5, big_size=300),
    AcceleratingAnneal(passes=3, small_size=10, big_size=1e4),
    EnergyAnneal(n_sweeps=6, beta_min=0.2, final_sweeps=1),
    EnergyAnneal(n_sweeps=6, start="sequential"),
    CustomAnneal(np.sqrt, n_sweeps=6, final_sweeps=1),
    CustomAnneal([0.1, 0.9, 0.3, 1.0], n_sweeps=6, exponent=[0.5, 0.5, 0.9, 1.0]),
    CustomAnneal([0.3, 0.5, 1.0], at=[0, 0.7, 1], n_sweeps=6, start="prior", selection="window"),
]
names = [f"{type(schedule).__name__}-{i}" for i, schedule in enumerate(EXAMPLES)]
every_schedule = pytest.mark.parametrize("schedule", EXAMPLES, ids=names)


def without_addresses(value):
    """A parameter's name that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def log_cost(sizes):
    """Seconds of assignments at some sizes: rising with the logarithm of the size."""
    return 1e-6 * (1.0 + np.log1p(sizes))


def realised(schedule, pacer):
    """The schedule that gives again what a schedule's pacer has given."""
    return CustomAnneal.from_path(pacer.realised(), selection=schedule.selection)


def segment_sizes(segment):
    """Sizes after each assignment of a segment."""
    return size_at(segment.knots, np.arange(segment.start + 1, segment.stop + 1))


def run(pacer, cost=None, overhead=0.0, seconds=0.0):
    """Run a pacer to its end on a simulated clock; return segments, sizes and the time."""
    segments, sizes = [], [np.empty(0, dtype=np.int64)]
    while (segment := pacer.next(None if cost is None else seconds)) is not None:
        segments.append(segment)
        sizes.append(segment_sizes(segment))
        assert pacer.assignments == segment.stop
        assert pacer.size == sizes[-1][-1]
        if cost is not None:
            seconds += overhead + float(cost(sizes[-1]).sum())
    assert pacer.done
    return segments, np.concatenate(sizes), seconds


def assert_law(segments, sizes, n_rows, first_size):
    """Check what every sequence of segments has to keep."""
    before = np.concatenate([[first_size], sizes[:-1]])
    assert np.all(sizes - before <= 1)
    assert sizes.min() >= 1 and sizes.max() <= n_rows and sizes[-1] == n_rows
    starts = [segment.start for segment in segments]
    stops = [segment.stop for segment in segments]
    assert starts == [0, *stops[:-1]]
    for segment in segments:
        length = max(1, int(np.concatenate([[first_size], sizes])[segment.start]))
        assert 0 < segment.stop - segment.start <= length
        assert segment.knots.dtype == np.int64 and segment.knots.shape[1] == 2
        assert segment.knots[0, 0] <= segment.start and segment.knots[-1, 0] >= segment.stop


def assert_same(first, second):
    """Check that two lists of segments ask for the same work."""
    assert len(first) == len(second)
    for a, b in zip(first, second):
        assert (a.start, a.stop, a.beta) == (b.start, b.stop, b.beta)
        np.testing.assert_array_equal(segment_sizes(a), segment_sizes(b))


@pytest.mark.parametrize(
    ("n_pairs", "expected"),
    [
        (0, [1, 2, 3, 4, 5]),
        (1, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        (2, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]),
    ],
)
def test_linear_anneal_makes_so_many_pairs_per_added_row(n_pairs, expected):
    schedule = LinearAnneal(n_sweeps=n_pairs + 1, final_sweeps=0)
    assert run(schedule.pacer(5))[1].tolist() == expected
    longer = LinearAnneal(n_sweeps=n_pairs + 3, final_sweeps=2)
    assert run(longer.pacer(5))[1].tolist() == expected + [5] * 10


def test_linear_anneal_segments_are_full_churns():
    segments, _, _ = run(LinearAnneal(n_sweeps=4, final_sweeps=1).pacer(5))
    # ceil(a / 3): 1 at 1..3, 2 at 4..6, 3 at 7..9, ...; a segment is as long as its first size.
    assert [s.start for s in segments] == [0, 1, 2, 3, 4, 6, 8, 11, 15]
    assert segments[-1].stop == 20


def test_prior_and_sequential_gibbs_sizes():
    assert run(PriorGibbs(n_sweeps=3).pacer(4))[1].tolist() == [4] * 12
    assert PriorGibbs().path(4).start == "prior"
    assert run(SequentialGibbs(n_sweeps=1).pacer(4))[1].tolist() == [1, 2, 3, 4]
    assert run(SequentialGibbs(n_sweeps=3).pacer(4))[1].tolist() == [1, 2, 3, 4] + [4] * 8
    assert SequentialGibbs().path(4).start == "empty"


@pytest.mark.parametrize(
    "schedule", [AcceleratingAnneal(), LinearAnneal(), LinearAnneal(n_sweeps=3.5)]
)
def test_a_path_begun_in_turn_enters_rows_without_churn_and_then_follows(schedule):
    """The rows enter one an assignment, are churned for as long as the path takes to hold as many,
    and from there on sizes and exponents are the path's own."""
    path = schedule.path(1000)
    begun = begun_in_turn(path, 150)
    total = int(path.assignments[-1])
    of_path, of_begun = (
        size_at(np.column_stack([p.assignments, p.sizes]), np.arange(total + 1))
        for p in (path, begun)
    )
    assert (np.diff(begun.assignments) > 0).all()
    np.testing.assert_array_equal(of_begun[:151], np.arange(151))
    there = int(np.argmax(of_path >= 150))
    assert (of_begun[150 : there + 1] == 150).all()
    rest = np.abs(of_begun - of_path)[there:]
    assert rest.max() <= 1  # the path is cut within a line
    assert (begun.assignments[-1], begun.sizes[-1]) == (total, 1000)


def test_a_path_that_churns_nothing_has_no_other_beginning():
    prior = CustomAnneal([0.0, 1.0], n_sweeps=6, start="prior")
    for schedule in (SequentialGibbs(), PriorGibbs(), EnergyAnneal(), prior):
        assert begun_in_turn(schedule.path(1000), 150) is None


def test_size_at_is_exact_for_huge_numbers():
    a_j, n_j = 5_000_000_000, 9_999_991
    knots = np.array([[0, 0], [a_j, n_j], [2 * a_j, n_j]])
    at = np.array([0, 1, 123_456_789, a_j - 1, a_j, a_j + 1, 2 * a_j])
    expected = [-(-min(int(a), a_j) * n_j // a_j) for a in at]
    assert size_at(knots, at).tolist() == expected
    assert [size_after(knots, int(a)) for a in at] == expected


def test_size_at_falls_by_whole_rows():
    knots = np.array([[0, 9], [4, 2]])
    assert size_at(knots, range(5)).tolist() == [9, 8, 6, 4, 2]
    assert [size_after(knots, a) for a in range(5)] == [9, 8, 6, 4, 2]


@pytest.mark.parametrize("n_rows", [1, 2, 3, 10, 257])
@pytest.mark.parametrize("n_sweeps", [5, 7.5])
def test_equal_sweeps_are_equal_assignments(n_rows, n_sweeps):
    for schedule in EXAMPLES:
        schedule = clone(schedule).set_params(n_sweeps=n_sweeps)
        pacer = schedule.pacer(n_rows)
        assert pacer.total == round(n_sweeps * n_rows)
        assert len(run(pacer)[1]) == round(n_sweeps * n_rows)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 50])
@every_schedule
def test_every_path_keeps_the_law(schedule, n_rows):
    path = schedule.path(n_rows)
    assert path.assignments.dtype == path.sizes.dtype == np.int64
    assert path.betas.dtype == np.float64
    assert path.assignments[0] == 0 and np.all(np.diff(path.assignments) > 0)
    assert path.sizes[0] == (n_rows if path.start == "prior" else 0)
    segments, sizes, _ = run(schedule.pacer(n_rows))
    assert_law(segments, sizes, n_rows, path.sizes[0])
    knots = np.column_stack([path.assignments, path.sizes])
    np.testing.assert_array_equal(sizes, size_at(knots, np.arange(1, len(sizes) + 1)))


@pytest.mark.parametrize(
    ("n_rows", "mean_pairs"), [(10_000, 432), (100_000, 179), (1_000_000, 60), (3_000, 500)]
)
def test_accelerating_anneal_gives_loom_s_mean_pairs(n_rows, mean_pairs):
    path = AcceleratingAnneal(final_sweeps=0).path(n_rows)
    assert path.assignments[-1] / n_rows - 1 == pytest.approx(mean_pairs, abs=0.5)


def test_accelerating_anneal_follows_its_curve():
    n_rows = 200_000
    path = AcceleratingAnneal(final_sweeps=0).path(n_rows)
    # The midpoint rule for the integral of 1 + pairs(n), log-log linear between the two sizes.
    n = np.arange(n_rows) + 0.5
    power = np.log(501) / np.log(1e9 / 4e3)
    per_row = 501 * (np.maximum(n, 4e3) / 4e3) ** -power
    expected = np.concatenate([[0.0], np.cumsum(per_row)])[path.sizes]
    np.testing.assert_allclose(path.assignments, expected, rtol=1e-6, atol=2)
    knots = np.column_stack([path.assignments, path.sizes])
    between = expected[-1] * np.linspace(0.01, 0.99, 500)
    exact = np.interp(between, np.concatenate([[0.0], np.cumsum(per_row)]), np.arange(n_rows + 1.0))
    np.testing.assert_allclose(size_at(knots, between.astype(np.int64)), exact, rtol=1e-3, atol=1)


def test_accelerating_anneal_beyond_big_size_is_sequential():
    path = AcceleratingAnneal(passes=4, small_size=10, big_size=100, final_sweeps=0).path(1000)
    late = path.sizes >= 105
    np.testing.assert_array_equal(np.diff(path.sizes[late]), np.diff(path.assignments[late]))


def test_accelerating_anneal_rescales_to_n_sweeps():
    curve = AcceleratingAnneal(final_sweeps=0).path(100_000)
    scaled = AcceleratingAnneal(n_sweeps=12, final_sweeps=2).path(100_000)
    growing = scaled.assignments[:-1] - scaled.sizes[:-1]
    pairs = curve.assignments - curve.sizes
    np.testing.assert_allclose(growing, pairs * (9e5 / pairs[-1]), atol=1)
    assert scaled.assignments[-1] == 1_200_000


def test_energy_anneal_raises_the_exponent_and_ends_with_whole_sweeps():
    segments, sizes, _ = run(EnergyAnneal(n_sweeps=5, beta_min=0.2, final_sweeps=1).pacer(10))
    assert [s.beta for s in segments] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert np.all(sizes == 10)
    segments, sizes, _ = run(EnergyAnneal(n_sweeps=5, start="sequential").pacer(10))
    assert sizes[:10].tolist() == list(range(1, 11))
    assert [s.beta for s in segments if s.start < 10] == pytest.approx([0.1] * 5)
    # Segments do not fall on the sweeps of the path, yet the last two sweeps are at 1.
    last = [s for s in segments if s.beta == 1.0]
    assert [(s.start, s.stop) for s in last] == [(30, 40), (40, 50)]
    assert all(s.beta < 1.0 for s in segments if s.start < 30)


def test_custom_anneal_follows_a_callable_and_arrays():
    path = CustomAnneal(lambda t: 0.1 + 0.9 * t, n_sweeps=20, final_sweeps=4).path(1000)
    knots = np.column_stack([path.assignments, path.sizes])
    assert path.assignments[-1] == 20_000
    for t in (0.25, 0.5, 0.75, 1.0):
        assert size_at(knots, round(16_000 * t)) == 100 + 900 * t
    by_share = CustomAnneal([0.0, 0.2, 1.0], n_sweeps=10).path(50)
    by_size = CustomAnneal([0, 10, 50], n_sweeps=10).path(50)
    for a, b in zip(by_share, by_size):
        np.testing.assert_array_equal(a, b)
    exact = CustomAnneal([0, 4, 2, 6], at=[0, 9, 11, 30]).path(6)
    assert exact.assignments.tolist() == [0, 9, 11, 30]
    assert exact.sizes.tolist() == [0, 4, 2, 6]


def test_custom_anneal_grows_as_fast_as_it_can_where_the_curve_is_steeper():
    sizes = run(CustomAnneal([1.0, 1.0], n_sweeps=2).pacer(100))[1]
    assert sizes.tolist() == list(range(1, 101)) + [100] * 100
    # A curve that stays low to the end still leaves the assignments that all rows need.
    low = run(CustomAnneal(lambda t: t**50, n_sweeps=2).pacer(100))[1]
    assert low[-1] == 100 and np.all(np.diff(low) <= 1)


@every_schedule
@pytest.mark.parametrize("n_rows", [1, 2, 3, 40])
def test_realised_gives_the_same_segments(schedule, n_rows):
    pacer = schedule.pacer(n_rows)
    segments, _, _ = run(pacer)
    again = realised(schedule, pacer)
    assert again.selection == schedule.selection
    assert_same(segments, run(clone(again).pacer(n_rows))[0])


@pytest.mark.parametrize("overhead", [0.0, 1e-4])
@pytest.mark.parametrize("budget", [0.3, 1.5, 8.0])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 60, 1000])
@every_schedule
@pytest.mark.few(40)
def test_max_time_keeps_the_law_and_its_refit_is_the_same(schedule, n_rows, budget, overhead):
    max_time = budget * n_rows * float(log_cost(n_rows))
    pacer = schedule.pacer(n_rows, max_time)
    segments, sizes, _ = run(pacer, log_cost, overhead)
    assert_law(segments, sizes, n_rows, schedule.path(n_rows).sizes[0])
    assert pacer.total == len(sizes)
    again = realised(schedule, pacer)
    assert again.max_time is None
    assert_same(segments, run(clone(again).pacer(n_rows))[0])


def burn_ins(pacer, end=None, cut=None):
    """Whether moves may adapt after each segment, on a clock that is over after `end` segments.

    With `cut`, and where a segment of all rows may be left out, it is over so many assignments
    later.
    """
    seen, over = [], False
    while True:
        over = over or (end is not None and cut is None and len(seen) >= end)
        full = pacer.size == pacer.n_rows
        segment = pacer.next(1e9 if over else 0.01 * len(seen))
        if segment is None:
            return seen
        if not over and cut is not None and len(seen) >= end:
            over = True
            if full and pacer.is_optional:
                pacer.cut(segment.start + min(cut, segment.stop - segment.start - 1))
        seen += [pacer.burn_in] if segment.start < pacer.assignments else []


@pytest.mark.parametrize("cut", [None, 0, 7])
@pytest.mark.parametrize("n_rows", [2, 60])
@every_schedule
@pytest.mark.few(28)
def test_wherever_time_ends_moves_adapt_in_the_refit_as_they_did(schedule, n_rows, cut):
    for end in range(20):
        pacer = schedule.pacer(n_rows, 1e3)
        first = burn_ins(pacer, end, cut)
        assert first == burn_ins(realised(schedule, pacer).pacer(n_rows)), end


def power_cost(power):
    """Return a cost of assignments that rises with a power of the size."""
    return lambda sizes: 1e-6 * (0.2 + (sizes / 1000) ** power)


@pytest.mark.parametrize("cost", [log_cost, power_cost(0.5), power_cost(1.0)])
@pytest.mark.parametrize("budget", [2.5, 8.0, 40.0])
@pytest.mark.parametrize(
    "schedule",
    [
        LinearAnneal(),
        LinearAnneal(final_sweeps=10),
        LinearAnneal(final_sweeps=0),
        SequentialGibbs(),
        PriorGibbs(),
        EnergyAnneal(),
        AcceleratingAnneal(),
        CustomAnneal(np.sqrt, n_sweeps=20, final_sweeps=5),
    ],
    ids=str,
)
@pytest.mark.few(10)
def test_max_time_is_used_and_kept(schedule, budget, cost):
    n_rows = 5000
    sweep = float(cost(n_rows)) * n_rows
    segments, sizes, seconds = run(schedule.pacer(n_rows, budget * sweep), cost, 1e-5)
    # Within a tenth of a sweep, wherever in the budget the cost rises.
    assert abs(seconds - budget * sweep) < 0.1 * sweep + 1e-4
    assert sizes[-1] == n_rows
    path = schedule.path(n_rows)
    full = path.assignments[np.flatnonzero(path.sizes != n_rows)[-1] + 1] if 0 in path.sizes else 0
    share = 1.0 - full / path.assignments[-1]
    rises = np.flatnonzero(sizes != n_rows)
    got = 1.0 - (rises[-1] + 2 if len(rises) else 0) / len(sizes)
    # The shape's share of full-data sweeps, as far as the sequential pass leaves room for it.
    assert got >= min(share, 1.0 - 1.0 / budget) - 0.07


def test_without_the_budget_the_time_is_not_kept():
    n_rows = 5000
    max_time = 8.0 * float(log_cost(n_rows)) * n_rows
    _, sizes, _ = run(LinearAnneal().pacer(n_rows))
    assert abs(log_cost(sizes).sum() - max_time) > 0.5 * max_time


def test_max_time_does_not_stretch_a_sequential_pass():
    n_rows = 2000
    schedule = SequentialGibbs(n_sweeps=3, max_time=50.0 * float(log_cost(n_rows)) * n_rows)
    _, sizes, _ = run(schedule.pacer(n_rows), log_cost)
    assert sizes[:n_rows].tolist() == list(range(1, n_rows + 1))
    assert len(sizes) > 45 * n_rows


def test_too_little_time_still_runs_the_sequential_pass():
    n_rows = 500
    for schedule in (LinearAnneal(), SequentialGibbs(), AcceleratingAnneal()):
        segments, sizes, _ = run(schedule.pacer(n_rows, 1e-9), log_cost)
        assert sizes.tolist() == list(range(1, n_rows + 1))
    _, sizes, _ = run(PriorGibbs().pacer(n_rows, 1e-9), log_cost)
    assert len(sizes) == n_rows
    segments, _, _ = run(EnergyAnneal().pacer(n_rows, 1e-9), log_cost)
    # The draw has to come from the posterior: one sweep at 1 follows the one that was begun.
    assert [s.beta for s in segments] == [0.1, 1.0]


def test_time_that_runs_out_midway_is_caught_up():
    n_rows = 3000
    pacer = LinearAnneal(n_sweeps=20).pacer(n_rows, 0.05)
    # From 300 rows on everything takes ten times as long as it did.
    segments, sizes, seconds = run(pacer, lambda n: 1e-6 * np.where(n < 300, 1.0, 10.0))
    assert sizes[-1] == n_rows
    assert seconds < 0.06
    assert_law(segments, sizes, n_rows, 0)


def test_max_time_leaves_room_for_further_sweeps():
    n_rows = 4000
    sweep = float(log_cost(n_rows)) * n_rows
    pacer = LinearAnneal().pacer(n_rows, 30 * sweep, further_sweeps=10)
    _, _, seconds = run(pacer, log_cost)
    assert seconds == pytest.approx(20 * sweep, abs=0.3 * sweep)
    schedule_end = pacer.assignments
    before = pacer.realised()
    pacer.extend(10)
    assert not pacer.done
    _, sizes, seconds = run(pacer, log_cost, seconds=seconds)
    assert sizes.tolist() == [n_rows] * (10 * n_rows)
    assert seconds == pytest.approx(30 * sweep, abs=0.3 * sweep)
    assert pacer.total == pacer.assignments == schedule_end + 10 * n_rows
    np.testing.assert_array_equal(pacer.realised().assignments, before.assignments)


@every_schedule
def test_extend_appends_full_data_sweeps(schedule):
    pacer = schedule.pacer(7)
    total = pacer.total
    pacer.extend(1)
    pacer.extend(1.5)
    assert pacer.total == total + 7 + round(10.5)
    segments, sizes, _ = run(pacer)
    assert len(sizes) == pacer.total
    added = [s for s in segments if s.start >= total]
    assert added[0].start == total
    assert [s.stop - s.start for s in added] == [7, 7, round(10.5) - 7]
    assert all(s.beta == 1.0 for s in added)
    pacer.extend(2)
    assert [s.stop - s.start for s in run(pacer)[0]] == [7, 7]


@pytest.mark.parametrize("max_time", [None, 2e-3, 2e-2])
@every_schedule
@pytest.mark.few(6)
def test_a_stored_pacer_goes_on_as_if_it_had_not_stopped(schedule, max_time):
    n_rows = 100

    def start():
        return schedule.pacer(n_rows, max_time, further_sweeps=1)

    def finish(pacer, seconds):
        segments, _, seconds = run(pacer, log_cost, 1e-6, seconds)
        pacer.extend(1.5)
        segments += [pacer.next(seconds)]
        pacer = restored(pacer)
        return segments + run(pacer, log_cost, 1e-6, seconds)[0]

    def restored(pacer):
        file = io.BytesIO()
        np.savez(file, **pacer.to_arrays())
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            return Pacer.from_arrays(dict(arrays))

    whole = finish(start(), 0.0)
    # Three segments are the added sweeps'.
    for stop_after in {0, 1, min(5, len(whole) - 3), len(whole) // 2, len(whole) - 3}:
        pacer, seconds = start(), 0.0
        for _ in range(stop_after):
            segment = pacer.next(seconds)
            seconds += 1e-6 + float(log_cost(segment_sizes(segment)).sum())
        pacer = restored(pacer)
        assert pacer.max_time == max_time
        assert_same(whole[stop_after:], finish(pacer, seconds))


@every_schedule
def test_realised_before_the_end_begins_alike_and_reaches_full_data(schedule):
    n_rows = 200
    ends_at = run(schedule.pacer(n_rows))[0][-1].beta
    for max_time in (None, 0.01):
        pacer, seconds, segments = schedule.pacer(n_rows, max_time), 0.0, []
        for _ in range(6):
            segment = pacer.next(seconds)
            if segment is None:
                break
            segments.append(segment)
            seconds += float(log_cost(segment_sizes(segment)).sum())
            again, sizes, _ = run(realised(schedule, pacer).pacer(n_rows))
            assert sizes[-1] == n_rows
            assert ends_at <= again[-1].beta <= 1.0
            # The last one may be cut differently by what follows it.
            assert_same(segments[:-1], again[: len(segments) - 1])


def test_pacer_properties_along_the_way():
    pacer = LinearAnneal(n_sweeps=3, final_sweeps=1).pacer(4)
    assert (pacer.assignments, pacer.size, pacer.beta, pacer.done) == (0, 0, 1.0, False)
    assert (pacer.total, pacer.n_rows) == (12, 4)
    pacer.next()
    assert (pacer.assignments, pacer.size) == (1, 1)
    pacer = EnergyAnneal(n_sweeps=3, final_sweeps=1, beta_min=0.5).pacer(4)
    assert pacer.beta == 0.5
    pacer.next()
    assert pacer.beta == 0.75
    timed = LinearAnneal().pacer(1000, 1e-2)
    timed.next(0.0)
    for k in range(1, 30):
        timed.next(k * 1e-4)
    # 1e4 microseconds; the first 29 segments took 2.9e3 of them.
    assert timed.total > timed.assignments


@every_schedule
def test_schedules_are_scikit_learn_objects(schedule):
    copy = clone(schedule)
    assert copy is not schedule
    assert set(copy.get_params()) == set(schedule.get_params())
    assert copy.get_params()["n_sweeps"] == schedule.n_sweeps
    assert len(repr(copy)) < 200
    assert resolve_schedule(schedule) is not schedule


class _Stub(ClusterMixin, BaseEstimator):
    """An estimator with a schedule whose score is the schedule's number of assignments."""

    def __init__(self, schedule="anneal"):
        self.schedule = schedule

    def fit(self, X, y=None):
        self.total_ = resolve_schedule(self.schedule).pacer(len(X)).total
        return self

    def score(self, X, y=None):
        return self.total_


def test_grid_search_sets_a_schedule_s_parameters():
    grid = [
        {"schedule": ["prior_gibbs", AcceleratingAnneal(n_sweeps=7)]},
        {"schedule": [LinearAnneal()], "schedule__n_sweeps": [5, 30]},
        {"schedule": [CustomAnneal([0.1, 1.0])], "schedule__n_sweeps": [3]},
    ]
    search = GridSearchCV(_Stub(), grid, cv=2).fit(np.zeros((20, 1)))
    assert search.cv_results_["mean_test_score"].tolist() == [200, 70, 50, 300, 30]
    assert search.best_params_["schedule__n_sweeps"] == 30
    assert grid[1]["schedule"][0].n_sweeps == 20


def classes():
    """The room's public schedules."""
    members = [getattr(schedules, name) for name in schedules.__all__]
    found = [m for m in members if inspect.isclass(m) and issubclass(m, BaseSchedule)]
    return [c for c in found if c is not BaseSchedule]


def test_names_stand_for_fresh_copies():
    assert "anneal" in SCHEDULES  # the estimators' default
    for name, schedule in SCHEDULES.items():
        resolved = resolve_schedule(name)
        assert isinstance(resolved, BaseSchedule) and resolved is not schedule
        assert resolved.get_params() == schedule.get_params()


def test_every_file_s_schedule_is_public_named_and_tried():
    files = Path(schedules.__file__).parent.glob("_*.py")
    modules = [import_module(f"skanneal.schedules.{file.stem}") for file in files]
    members = [member for module in modules for member in vars(module).values()]
    defined = {m for m in members if inspect.isclass(m) and issubclass(m, BaseSchedule)}
    assert {c for c in defined if not c.__name__.startswith("Base")} == set(classes())
    assert {type(example) for example in EXAMPLES} == set(classes())
    for unnamed in set(classes()) - {type(schedule) for schedule in SCHEDULES.values()}:
        with pytest.raises(TypeError, match="required"):
            unnamed()


@pytest.mark.parametrize("member", [c.__name__ for c in classes()])
def test_every_schedule_is_on_the_pages(member):
    pages = ROOT / "doc"
    assert f"\n   {member}\n" in (pages / "api.md").read_text(encoding="utf-8")
    assert f"skanneal.schedules.{member}`" in (pages / "schedules.md").read_text(encoding="utf-8")


class Doubling(BaseSchedule):
    """A new schedule: the subsample doubles in every fifth of the assignments."""

    def __init__(self, *, n_sweeps=8, max_time=None, selection="random"):
        self.n_sweeps = n_sweeps
        self.max_time = max_time
        self.selection = selection

    def _knots(self, n_rows):
        total = max(n_rows, round(self.n_sweeps * n_rows))
        knots = [(total * i // 5, -(-n_rows // 2 ** (5 - i)), 1.0) for i in range(1, 6)]
        return [(0, 0, 1.0), *knots]


def test_a_new_schedule_needs_one_line(monkeypatch):
    model = AnnealedDPMixture(schedule="doubling", n_chains=1, n_draws=1, random_state=0)
    data = np.linspace(-1, 1, 40)[:, None]
    for refused in (model.fit, CrossCatPY(schedule="doubling").fit):
        with pytest.raises(ValueError, match="'sequential_gibbs'"):
            refused(data)
    monkeypatch.setitem(SCHEDULES, "doubling", Doubling())
    assert isinstance(model.fit(data).schedule_, Doubling)
    for estimator, unknown in ((model, "halving"), (CrossCatPY(), "halving")):
        with pytest.raises(ValueError, match="'doubling'"):
            estimator.set_params(schedule=unknown).fit(data)
    with pytest.raises(ValueError, match="'doubling'"):
        resolve_schedule("halving")
    # what runs over the registry
    test_names_stand_for_fresh_copies()
    test_schedules_are_scikit_learn_objects(Doubling())
    for n_rows in (32, 50):
        test_every_path_keeps_the_law(Doubling(), n_rows)
        test_realised_gives_the_same_segments(Doubling(), n_rows)
        test_max_time_keeps_the_law_and_its_refit_is_the_same(Doubling(), n_rows, 1.5, 1e-4)
    test_extend_appends_full_data_sweeps(Doubling())


@pytest.mark.parametrize(
    ("schedule", "parameter"),
    [
        (PriorGibbs(n_sweeps=0.5), "n_sweeps"),
        (PriorGibbs(n_sweeps="many"), "n_sweeps"),
        (SequentialGibbs(n_sweeps=np.inf), "n_sweeps"),
        (SequentialGibbs(n_sweeps=np.nan), "n_sweeps"),
        (SequentialGibbs(n_sweeps=None), "n_sweeps"),
        (LinearAnneal(max_time=0), "max_time"),
        (LinearAnneal(max_time=-1.0), "max_time"),
        (LinearAnneal(max_time=np.inf), "max_time"),
        (LinearAnneal(selection="best"), "selection"),
        (LinearAnneal(final_sweeps=-1), "final_sweeps"),
        (LinearAnneal(n_sweeps=5, final_sweeps=4.5), "final_sweeps"),
        (AcceleratingAnneal(n_sweeps=2, final_sweeps=2), "final_sweeps"),
        (AcceleratingAnneal(passes=0), "passes"),
        (AcceleratingAnneal(small_size=0), "small_size"),
        (AcceleratingAnneal(small_size=10, big_size=10), "big_size"),
        (EnergyAnneal(beta_min=1.1), "beta_min"),
        (EnergyAnneal(beta_min=-0.1), "beta_min"),
        (EnergyAnneal(start="empty"), "start"),
        (EnergyAnneal(n_sweeps=3, final_sweeps=3), "final_sweeps"),
        (CustomAnneal(0.5), "size"),
        (CustomAnneal("linear"), "size"),
        (CustomAnneal([1.0]), "size"),
        (CustomAnneal([[0.5, 1.0]]), "size"),
        (CustomAnneal(["a", "b"]), "size"),
        (CustomAnneal([0.5, 0.9]), "size"),
        (CustomAnneal([0.5, 1.2, 1.0]), "size"),
        (CustomAnneal([0.5, np.nan, 1.0]), "size"),
        (CustomAnneal([-1, 20]), "size"),
        (CustomAnneal([1, 19]), "size"),
        (CustomAnneal(lambda t: 1.0 - t), "size"),
        (CustomAnneal(lambda t: 0.5 * t), "size"),
        (CustomAnneal(lambda t: max(1.0 - 2.0 * t, t)), "size"),
        (CustomAnneal([0, 5, 19], at=[0, 30, 60]), "size"),
        (CustomAnneal([0, 15, 20], at=[0, 10, 60]), "size"),
        (CustomAnneal([5, 15, 20], at=[0, 20, 60]), "size"),
        (CustomAnneal([0, 0, 20], at=[0, 20, 60]), "size"),
        (CustomAnneal([0, 15, 20], at=[0, 20, 60], start="prior"), "size"),
        (CustomAnneal([0.0, 0.5, 1.0], at=[0, 30, 60]), "size"),
        (CustomAnneal(np.sqrt, at=[0, 30, 60]), "size"),
        (CustomAnneal([0.1, 0.5, 1.0], at=[0.0, 1.0]), "at"),
        (CustomAnneal([0.1, 0.5, 1.0], at=[0.0, 0.5, 0.9]), "at"),
        (CustomAnneal([0.1, 0.5, 1.0], at=[0.1, 0.5, 1.0]), "at"),
        (CustomAnneal([0.1, 0.5, 1.0], at=[0.0, 0.0, 1.0]), "at"),
        (CustomAnneal([0.1, 0.5, 1.0], at="linear"), "at"),
        (CustomAnneal([0, 5, 20], at=[0, 30, 60], n_sweeps=4), "n_sweeps"),
        (CustomAnneal([0.1, 1.0], n_sweeps=0), "n_sweeps"),
        (CustomAnneal([0.1, 1.0], n_sweeps=3, final_sweeps=2.5), "final_sweeps"),
        (CustomAnneal([0.1, 1.0], exponent=[0.1, 0.9]), "exponent"),
        (CustomAnneal([0.1, 1.0], exponent=[-0.1, 1.0]), "exponent"),
        (CustomAnneal([0.1, 1.0], exponent=0.5), "exponent"),
        (CustomAnneal([0.1, 1.0], exponent=lambda t: t / 2), "exponent"),
        (CustomAnneal([0.1, 1.0], at=[0.0, 1.0], exponent=[0.1, 0.9, 1.0]), "exponent"),
        (CustomAnneal([0, 20], at=[0, 60], exponent=np.sqrt), "exponent"),
        (CustomAnneal([0.1, 1.0], start="sequential"), "start"),
    ],
    ids=without_addresses,
)
def test_a_bad_parameter_is_named(schedule, parameter):
    with pytest.raises(ValueError, match=rf"\b{parameter}\b"):
        resolve_schedule(schedule).pacer(20)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="schedule must be"):
        resolve_schedule("exponential")
    with pytest.raises(ValueError, match="schedule must be"):
        resolve_schedule(None)
    with pytest.raises(ValueError, match="schedule must be"):
        resolve_schedule(LinearAnneal)
    for n_rows in (0, -1, 2.5):
        with pytest.raises(ValueError, match="n_rows"):
            LinearAnneal().pacer(n_rows)
    for max_time in (0, -1, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match="max_time"):
            LinearAnneal().pacer(10, max_time)
    with pytest.raises(ValueError, match="further_sweeps"):
        LinearAnneal().pacer(10, further_sweeps=-1)
    with pytest.raises(ValueError, match="n_sweeps"):
        LinearAnneal().pacer(10).extend(-1)
    for seconds in (None, -1.0, np.nan):
        with pytest.raises(ValueError, match="seconds"):
            LinearAnneal(max_time=1.0).pacer(10).next(seconds)


def test_other_data_than_a_realised_schedule_s_are_refused():
    once = CustomAnneal.from_path(LinearAnneal(n_sweeps=4).path(30))
    with pytest.raises(ValueError, match=r"size .* 31 rows"):
        once.pacer(31)


def test_a_cost_that_sets_in_is_not_taken_for_one_that_rises():
    """From 50 rows on a chain runs all its moves; the worst is a first plan just then."""
    schedule, max_time = SCHEDULES["anneal"], 5.0

    def settled(segment):
        return size_at(segment.knots, segment.stop) >= 50

    small = [s for s in run(schedule.pacer(5000))[0] if not settled(s)]
    before = 0.0099 * max_time / len(small)  # nothing is planned in the first hundredth
    pacer, seconds = schedule.pacer(5000, max_time), 0.0
    moves = 0.0
    while (segment := pacer.next(seconds, moves=moves)) is not None:
        moves = 1.3e-3 if settled(segment) else 0.0
        seconds += 1e-6 * (segment.stop - segment.start) + (moves or before)
    assert 0.95 * max_time < seconds < 1.05 * max_time
    assert pacer.assignments > 30 * 5000


# ------------------------------------------------------------------- a machine busy elsewhere
ALL_OF_THEM = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
MOVES_COST = 1e-4  # seconds of a segment beside its assignments


def run_held_up(pacer, delay):
    """Run on a clock that `delay(number, seconds, cost)` sets ahead; return its end and work."""
    seconds = work = number = 0
    while (segment := pacer.next(seconds)) is not None:
        cost = MOVES_COST + float(log_cost(segment_sizes(segment)).sum())
        number += 1
        seconds += cost + delay(number, seconds, cost)
        work += cost
    return seconds, work


@pytest.mark.parametrize("lost", [0.05, 0.5])
@ALL_OF_THEM
@pytest.mark.few(4)
def test_one_segment_that_is_held_up_costs_its_own_time_only(schedule, lost):
    """Wherever it comes: the plan must not take it for what all others will cost."""
    n_rows, max_time = 10_000, 4.0
    sweep = n_rows * float(log_cost(n_rows))
    for late in (1, 2, 4, 9, 14):
        delays = {late: lost * max_time}
        pacer = schedule.pacer(n_rows, max_time)
        seconds, work = run_held_up(pacer, lambda i, *_, delays=delays: delays.get(i, 0.0))
        assert abs(seconds - max_time) < sweep, late
        assert abs(work + lost * max_time - max_time) < sweep, late


@ALL_OF_THEM
def test_a_machine_shared_with_others_is_paced(schedule):
    """Turns of 5 ms, and waits of 0 to 35 ms between them: four times as long on average."""
    n_rows, max_time = 10_000, 4.0
    sweep = n_rows * float(log_cost(n_rows))
    generator = np.random.Generator(np.random.PCG64(0))

    def wait(number, seconds, cost):
        return generator.uniform(0, 0.035, generator.poisson(cost / 0.005)).sum()

    for _ in range(4):
        pacer = schedule.pacer(n_rows, max_time)
        seconds, work = run_held_up(pacer, wait)
        assert abs(seconds - max_time) < 8 * sweep  # twice what a sweep takes
        assert work > 0.15 * max_time and pacer.size == n_rows


def test_moves_are_reckoned_with():
    """They take several times as long as the churn, however few assignments it is."""
    n_rows, max_time, of_move = 10_000, 4.0, 8e-5  # seconds per row
    pacer, seconds, moves = LinearAnneal().pacer(n_rows, max_time), 0.0, 0.0
    while (segment := pacer.next(seconds, moves)) is not None:
        sizes = segment_sizes(segment)
        moves = of_move * int(sizes[-1])
        seconds += float(log_cost(sizes).sum()) + moves
    assert abs(seconds - max_time) < 0.5 * of_move * n_rows
