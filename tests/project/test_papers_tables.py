"""What the tables of the papers' pages make of their cells."""

import numpy as np
import pytest

from papers import (
    accelerated_course,
    accelerated_published,
    accelerated_synthetic,
    accelerated_table,
    evidence_figures,
    help_figures,
    schedules_cells,
    schedules_claims,
)
from papers.cells import Cell
from papers.verdicts import REFUTED, REPRODUCED, UNDECIDED, Estimate


def records_of(figure, scores):
    """(data, method, seed, budget) to score, as lines of a figure."""
    common = {"version": "a", "seconds": 1.0, "sweeps": 1.0}
    return {
        Cell(figure, data, method, seed, budget): common | {"score": score}
        for (data, method, seed, budget), score in scores.items()
    }


def map_of(gain):
    """Lines of the map in which annealing gains so much over the better cold start."""
    rng = np.random.default_rng(0)
    scores = {}
    for data, setting in help_figures.SETTINGS.items():
        for seed in range(3):
            noise = 0.01 * rng.normal(size=3)
            for method, level in zip(help_figures.METHODS, (gain(setting), 0.0, -1.0)):
                scores[data, method, seed, 1.0] = level + noise[0]
    return records_of("map", scores)


def test_the_map_tells_where_annealing_gains():
    records = map_of(lambda setting: 1.0 if setting.separation == 8 else 0.1)
    gains = help_figures.gains_of(records, "map")
    assert {gain.over for gain in gains.values()} == {"prior_gibbs"}
    found = {text: verdict for text, _, verdict in help_figures.claims(records)}
    assert found["It gains more with 8 than with 2: separation"] == REPRODUCED
    assert found["It gains more with 8,000 than with 500: rows"] == UNDECIDED
    worse = map_of(lambda setting: -0.2)
    assert next(iter(help_figures.claims(worse)))[2] == REFUTED


def test_a_rank_correlation_needs_more_than_a_few_settings():
    few = dict(enumerate([1.0, 3.0, 2.0, 4.0, 5.0, 6.0]))
    rank, estimate = help_figures.correlation(few, few)
    assert rank == pytest.approx(1.0)
    noisy = dict(enumerate(np.random.default_rng(0).normal(size=40)))
    rank, estimate = help_figures.correlation(noisy, dict(enumerate(range(40))))
    assert abs(rank) < 0.4
    low, high = estimate.interval()
    assert low < 0 < high


def test_annealing_with_the_papers_kernel_is_compared_over_all_data_sets():
    scores, panels = {}, list(schedules_cells.PANELS)[:2]
    rng = np.random.default_rng(0)
    for panel, seed in ((panel, seed) for panel in panels for seed in range(4)):
        for method, level in zip(schedules_cells.PAPERS, (1.0, 0.0, 1.0)):
            scores[panel, method, seed, 2.0] = level + 0.1 * rng.normal()
    records = records_of("papers_kernel", scores)
    found = {
        text: verdict for text, _, verdict in schedules_claims.claims_of_papers_kernel(records)
    }
    assert (
        found["equal seconds, all 2 data sets: `linear_anneal` beats `prior_gibbs`"] == REPRODUCED
    )
    last = "equal seconds, all 2 data sets: `linear_anneal` beats `sequential_gibbs`"
    assert found[last] == UNDECIDED
    both = schedules_claims.over_panels([Estimate(1.0, 0.3, 5), Estimate(3.0, 0.4, 8)])
    assert (both.mean, both.n) == (2.0, 5)
    assert both.error == pytest.approx(0.25)


def test_gamma_and_components_of_em_are_chosen_without_the_test_images(monkeypatch):
    images = accelerated_table.Images(np.arange(100).reshape(50, 2), np.full((7, 2), -1))
    seen = []

    def measured(data, n_components, gamma, cell):
        seen.append(data.test)
        return {
            "full": -abs(gamma - 0.3) - abs(n_components - 300),
            "chosen": (n_components, gamma),
        }

    monkeypatch.setattr(accelerated_table, "images_of", lambda data: images)
    monkeypatch.setattr(accelerated_table, "measure_em", measured)
    data = next(iter(accelerated_table.DATA))
    found = accelerated_table.measure(Cell("table1", data, accelerated_table.EM_TUNED, 0, 1.0))
    assert found["chosen"] == (300, 0.3)
    assert [len(rows) for rows in seen] == [5] * 12 + [7]
    assert all((rows >= 0).all() for rows in seen[:-1])
    apart = images.for_tuning(0)
    assert sorted(np.concatenate(apart).ravel()) == list(range(100))


def test_a_line_keeps_the_most_popular_features():
    features = np.arange(1.0, 13.0).reshape(3, 4)
    curve = [(0.5, {"full": -2.0, "plug_in": -3.0, "clusters": 3})]
    found = accelerated_course.described(curve, [2, 9, 0.1], features)
    assert found["sizes"] == [9.0, 2.0]
    assert (found["seconds_at"], found["full_at"]) == ([0.5], [-2.0])
    pictures = accelerated_course.pictures_of(found | {"sizes": [9.0, 2.0, 0.6]})
    assert pictures.shape == (3, 2, 2)
    np.testing.assert_array_equal(pictures[0].ravel(), np.rint(255 * features[1] / 8))


@pytest.mark.parametrize("figure", accelerated_synthetic.FIGURES)
def test_algorithms_with_another_predictive_are_told(figure):
    def records(shift, rise=0.0):
        rng = np.random.default_rng(0)
        return {
            Cell(figure, "rows", name, seed, 8.0): {
                "late": 0.001 * rng.normal() + shift * (name == "slice"),
                "seconds_at": [1.0, 4.0, 8.0],
                "full_at": [-1.0, 0.0, rise * (name == "slice")],
            }
            for name in accelerated_synthetic.FIGURES[figure][1]
            for seed in range(4)
        }

    ((_, _, same),) = accelerated_synthetic.claims(records(0.0))
    ((_, _, other),) = accelerated_synthetic.claims(records(0.05))
    assert (same, other) == (REPRODUCED, REFUTED)
    ((text, measured, verdict),) = accelerated_synthetic.claims(records(0.05, rise=0.2))
    assert "that have arrived" in text
    assert measured.endswith("; slice still climbs")
    assert verdict == REPRODUCED  # of the others


def lines_of_published_stages(bias, more):
    """Published stages are so many features off, and end with so many more in section 4.1."""
    rng, found, common = np.random.default_rng(0), {}, {"version": "a", "seconds": 1.0}
    for cell in accelerated_published.cells():
        off = cell.method.endswith(accelerated_published.THEIRS)
        noise = 0.01 * rng.normal()
        if cell.figure == "bias":
            of = {"features": 2.7 + bias * off + noise, "expected": 2.7, "total_variation": 0.1}
        elif cell.figure == "published_images":
            full = -1120.0 - 5.0 * more * off + noise
            of = {"full": full, "plug_in": full, "clusters": 90, "sweeps": 100.0}
        else:
            of = {"late": -22.5, "clusters": 20.0 + more * off + noise}
            of |= {"seconds_at": [0.1, 0.2 + 0.1 * off, 1.0], "full_at": [-23.0, -22.5, -22.5]}
        found[cell] = common | of
    return found


def test_published_stages_that_are_off_are_told():
    def verdicts_of(records):
        found = {text: verdict for text, _, verdict in accelerated_published.claims(records)}
        about = ("exact stage, pub", "exact stage, the pack", "more features", "predicts better")
        return [{v for text, v in found.items() if words in text} for words in about]

    expected = [{REFUTED}, {REPRODUCED}, {REPRODUCED}, {REPRODUCED}]
    assert verdicts_of(lines_of_published_stages(-0.5, 1.0)) == expected
    expected = [{REPRODUCED}, {REPRODUCED}, {REFUTED}, {REFUTED}]
    assert verdicts_of(lines_of_published_stages(0.0, -1.0)) == expected


def test_runs_of_published_stages_are_timed_against_the_median_end():
    def sooner(records):
        found = accelerated_published.claims(records)
        return [verdict for text, _, verdict in found if "sooner" in text]

    records = lines_of_published_stages(0.0, 0.0)
    assert sooner(records) == [REFUTED] * 4
    table = accelerated_published.published_table(records)
    assert "0.30, 0.30, 0.30, 0.30" in table
    assert "0 of 4" not in table
    never = {"late": -24.0, "full_at": [-24.0] * 3}
    slow = {
        cell: record | (never if cell.method == "accelerated, the package's" else {})
        for cell, record in records.items()
    }
    assert sooner(slow) == [REPRODUCED, REFUTED] * 2
    assert accelerated_published.published_table(slow).count("0 of 4") == 2


def test_tables_of_published_stages_have_a_row_for_each_and_the_enumerated_number():
    table = accelerated_published.bias_table(lines_of_published_stages(-0.5, 0.0))
    for name in accelerated_published.BIAS_STAGES:
        assert f"| {name} |" in table
    assert "2.20 ± " in table
    assert "| enumerated | 2.700 | 2.700 | 2.700 |" in table
    assert "No cell" in accelerated_published.bias_table({})
    assert "No cell" in accelerated_published.published_table({})
    images = accelerated_published.images_table(lines_of_published_stages(0.0, 1.0))
    assert (
        "| P = 10 | accelerated, published | -1125.0 ± 0.0 | -1125.0 ± 0.0 | 90 | 100 |" in images
    )


def test_estimates_of_the_evidence_are_compared_with_the_largest_setting():
    names = [evidence_figures.name_of(*setting) for setting in evidence_figures.SETTINGS]
    records = {
        Cell("evidence", "rows", name, seed): {
            "log_evidence": 10.0 + 0.1 * seed - 5.0 * (name == names[0])
        }
        for name in names
        for seed in range(4)
    }
    found = [verdict for *_, verdict in evidence_figures.claims(records)]
    assert found == [REFUTED, REPRODUCED, REPRODUCED]
