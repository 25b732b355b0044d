"""The harness of the papers' figures: cells, verdicts, processor time."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness.lines import Clock
from papers import (
    cells,
    figures,
    permutation_models,
    repeats,
    tempering_chains,
    tempering_models,
    tempering_subsets,
    verdicts,
)
from papers.cells import Cell
from papers.families import FAMILIES
from papers.processor_time import ProcessorTimer

# -- a run goes on where it stopped ----------------------------------------------------------------


def family_of(n, measured, stop_after=None):
    """Of n cells; `measured` is appended to; after so many measurements it is interrupted."""

    def measure(cell):
        if stop_after is not None and len(measured) == stop_after:
            raise KeyboardInterrupt
        measured.append(cell)
        return {"value": cell.seed * 2}

    wanted = [Cell("one", "data", "method", seed, 1.0) for seed in range(n)]
    return SimpleNamespace(
        NAME="made_up",
        cells=lambda: iter(wanted),
        measure=measure,
        cost=lambda cell, typical: typical,
        __file__=cells.__file__,
    )


def test_a_run_goes_on_where_it_stopped(tmp_path):
    measured = []
    with pytest.raises(KeyboardInterrupt):
        cells.run(family_of(5, measured, stop_after=2), Clock(1), folder=tmp_path)
    assert [cell.seed for cell in measured] == [0, 1]
    cells.run(family_of(5, measured), Clock(1), folder=tmp_path)
    assert [cell.seed for cell in measured] == [0, 1, 2, 3, 4]
    lines = (tmp_path / "papers_made_up.jsonl").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [0, 2, 4, 6, 8]
    assert {"version", "script", "versions", "seconds", "load"} < json.loads(lines[0]).keys()


def test_a_run_ends_with_its_time_and_measures_only_what_is_asked_for(tmp_path):
    measured = []
    cells.run(family_of(2, measured), Clock(-1), folder=tmp_path)
    cells.run(family_of(2, measured), Clock(1), wanted=lambda cell: cell.seed > 1, folder=tmp_path)
    assert measured == []


def test_lines_of_another_commit_are_measured_anew_if_asked_for(tmp_path):
    measured, family = [], family_of(1, [])
    cells.run(family, Clock(1), folder=tmp_path)
    path = tmp_path / "papers_made_up.jsonl"
    old = json.loads(path.read_text()) | {"version": "older", "value": 7}
    path.write_text(json.dumps(old) + "\n")
    cells.run(family_of(1, measured), Clock(1), folder=tmp_path)
    assert measured == []
    cells.run(family_of(1, measured), Clock(1), anew=True, folder=tmp_path)
    assert len(measured) == 1
    (record,) = cells.lines_of(family, tmp_path).records.values()
    assert record["value"] == 0


def test_progress_counts_cells_and_what_is_left(tmp_path):
    family = family_of(3, [], stop_after=1)
    with pytest.raises(KeyboardInterrupt):
        cells.run(family, Clock(1), folder=tmp_path)
    records = cells.lines_of(family, tmp_path).records
    assert "| `one` | 1 of 3 |" in cells.progress(family, records)
    assert cells.behind(records, "one").startswith("Cells: 1 of `one`")


def test_repeated_cells_are_compared_with_the_spread_over_seeds(tmp_path):
    family, shift = family_of(4, []), [0.0]
    family.measure = lambda cell: {"score": cell.seed + shift[0]}
    cells.run(family, Clock(1), folder=tmp_path)
    records = cells.lines_of(family, tmp_path).records
    assert repeats.again_table(family, records, tmp_path) == "No cell is measured twice yet."
    for seed, shift[0] in enumerate((0.0, 5.0, 6.0)):  # t of 3 is 3.18, and the deviation 1.29
        asked = {"wanted": lambda cell, seed=seed: cell.seed == seed, "folder": tmp_path}
        repeats.measure_again(family, 9, **asked)
    repeats.measure_again(family, 9, wanted=lambda cell: cell.seed < 3, folder=tmp_path)
    repeats.measure_again(family, 9, wanted=lambda cell: True, most=-1.0, folder=tmp_path)
    assert len(repeats.lines_again(tmp_path).records) == 3
    *_, same, near, far, _, sentence = repeats.again_table(family, records, tmp_path).splitlines()
    assert same == "| `one`, data, method, seed 0, 1 | score | 0 | 0 | 1.291 | the same |"
    assert near.endswith("| 1 | 6 | 1.291 | yes |")
    assert far.endswith("| 2 | 8 | 1.291 | no |")
    assert sentence == "2 of 3 agree."
    assert repeats.agreement(1.0, 2.0, np.nan, 1) == "–"
    assert repeats.agreement(1.0, 1.0 + 1e-12, np.nan, 1) == "the same"


def test_every_line_has_a_number_to_compare():
    for family in FAMILIES.values():
        for record in cells.lines_of(family).records.values():
            assert np.isfinite(repeats.compared(record)[1])


def test_cells_of_all_families_differ():
    for family in FAMILIES.values():
        found = list(family.cells())
        assert len(found) == len(set(found)) > 0


@pytest.mark.slow
def test_pictures_and_tables_need_no_sampler(tmp_path, monkeypatch):
    for family in FAMILIES.values():
        monkeypatch.setattr(family, "measure", None)
    figures.write_tables(tmp_path)
    figures.write_pictures(tmp_path)
    families = tuple(f"table_{name}_" for name in FAMILIES)
    for page in ("two_urns", "tempering", "permutation", "schedules", "crosscat", "accelerated"):
        text = Path(figures.ROOT, "doc", f"{page}.md").read_text(encoding="utf-8")
        included = [part.split("\n")[0] for part in text.split("```{include} generated/")[1:]]
        tables = [name for name in included if name.startswith(families)]
        assert tables
        assert all((tmp_path / name).exists() for name in tables)


# -- verdicts --------------------------------------------------------------------------------------


def test_a_verdict_is_wrong_as_often_as_its_interval():
    """Of differences without a mean 5 % are decided, half of them each way."""
    rng = np.random.default_rng(0)
    found = [verdicts.is_positive(verdicts.mean(rng.normal(size=4))) for _ in range(1500)]
    for verdict in (verdicts.REPRODUCED, verdicts.REFUTED):
        assert 0.01 < found.count(verdict) / len(found) < 0.042


def test_verdicts_follow_the_interval():
    some = verdicts.Estimate(1.0, 0.1, 10)
    assert verdicts.is_positive(some) == verdicts.REPRODUCED
    assert verdicts.is_positive(some._replace(mean=-1.0)) == verdicts.REFUTED
    assert verdicts.is_positive(some._replace(mean=0.1)) == verdicts.UNDECIDED
    assert verdicts.is_about(some, 1.0, 0.3) == verdicts.REPRODUCED
    assert verdicts.is_about(some, 1.0, 0.2) == verdicts.UNDECIDED  # t of 9 is 2.26
    assert verdicts.is_about(some, 2.0, 0.3) == verdicts.REFUTED
    assert verdicts.is_about(verdicts.exact(2.0), 2.0, 0.0) == verdicts.REPRODUCED
    parts = [verdicts.REPRODUCED, verdicts.UNDECIDED]
    assert verdicts.all_of(parts) == verdicts.UNDECIDED
    assert verdicts.all_of([*parts, verdicts.REFUTED]) == verdicts.REFUTED


def test_one_run_decides_nothing():
    assert verdicts.is_positive(verdicts.mean([5.0])) == verdicts.UNDECIDED
    assert verdicts.mean([5.0]).text(1) == "5.0 (one run)"


def test_paired_differences_are_over_shared_keys():
    one, other = {0: 1.0, 1: 5.0, 2: 9.0}, {1: 4.0, 2: 6.0, 3: 0.0}
    found = verdicts.paired(one, other)
    assert (found.mean, found.n) == (2.0, 2)
    assert found.error == pytest.approx(1.0)
    unpaired = verdicts.difference(verdicts.mean([5.0, 9.0]), verdicts.mean([4.0, 6.0]))
    assert unpaired.error == pytest.approx(np.hypot(2.0, 1.0))


def test_z_scores_are_over_all_runs():
    found = verdicts.z_scores({"a": 1.0, "b": 3.0})
    assert found == {"a": -1.0, "b": 1.0}


# -- processor time --------------------------------------------------------------------------------


def test_a_timer_of_processor_seconds_sleeps_while_nothing_runs():
    called = []
    timer = ProcessorTimer(0.05, lambda: called.append(time.process_time()))
    began = timer.end - 0.05
    timer.start()
    time.sleep(0.15)
    assert called == []
    while not called:
        assert time.process_time() < began + 5
    assert called[0] >= began + 0.05
    timer.join()


# -- tempering -------------------------------------------------------------------------------------


def test_the_papers_steps_are_fixed_at_every_level():
    for inner, expected in (("hmc", lambda betas: 0.01), ("mh", lambda betas: 0.1 / betas**0.5)):
        (chain, *_) = tempering_chains.chains("gaussian", inner, 2, 64, "paper", "stt", 0)
        steps = chain.inner.get_steps()[0]
        assert len(steps) == 7
        np.testing.assert_allclose(steps, expected(chain.betas), rtol=1e-12)
    tuned, *_ = tempering_chains.chains("gaussian", "hmc", 2, 64, "tuned", "stt", 0)
    assert np.ptp(tuned.inner.get_steps()[0]) > 0.01  # the package's grow with the level


def test_rows_of_a_process_are_those_of_a_larger_one():
    few, many = (tempering_models.gaussian_process(4, n) for n in (8, 20))
    np.testing.assert_allclose((many.X + many.centre)[:8], few.X + few.centre)
    np.testing.assert_allclose(many.y[:8], few.y)


def test_chains_stop_when_they_agree_or_when_their_budget_ends():
    found = tempering_chains.run("gaussian", "hmc", 2, 64, "tuned", "none", 0, 1.0)
    assert found["stopped"]
    assert found["r_hat"] < tempering_chains.AGREE
    assert found["bulk"] > tempering_chains.ENOUGH
    found = tempering_chains.run("gaussian", "mh", 20, 64, "paper", "none", 0, 0.02)
    assert not found["stopped"]
    assert [draws for draws, _, _ in found["path"]] == sorted(d for d, _, _ in found["path"])


def test_levels_of_subsets_hold_nested_rows_or_rows_of_their_own():
    target, theta = tempering_models.gaussian_process(4, 24), np.zeros(4)
    order, other = (
        np.random.default_rng(0).permutation(24),
        np.random.default_rng(1).permutation(24),
    )
    sizes = np.array([24, 12, 6])
    expected = target.bind(order, sizes).evaluate(theta)[0]
    nested, own = (
        tempering_subsets.OwnSubsets(target, independent).bind(order, sizes)
        for independent in (False, True)
    )
    np.testing.assert_allclose(nested.evaluate(theta)[0], expected)
    values = own.evaluate(theta)[0]
    assert values[0] == pytest.approx(expected[0])
    assert np.all(values[1:] != expected[1:])
    np.testing.assert_array_equal(own.evaluate(theta)[0], values)  # the same up and down
    own.set_order(other)  # another pass
    assert np.all(own.evaluate(theta)[0][1:] != values[1:])
    value, slope = own.evaluate(theta, 1, gradient=True)
    assert value[0] == own.evaluate(theta, 1)[0][0]
    step = 1e-5 * np.eye(4)[0]
    ends = [own.evaluate(theta + sign * step, 1)[0][0] for sign in (1, -1)]
    assert slope[0] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)


# -- permutations ----------------------------------------------------------------------------------


def test_the_papers_reference_is_the_mean_number_of_clusters_of_burn_in():
    move = permutation_models.MeanOfBurnIn()
    no_rows = SimpleNamespace(rows=lambda: [])
    for burn_in, n_clusters in ((True, 10), (True, 30), (False, 7), (False, 8)):
        move.burn_in = burn_in
        move.sweep(SimpleNamespace(subsample=no_rows, n_clusters=n_clusters), None)
    assert move.tuning == 20
