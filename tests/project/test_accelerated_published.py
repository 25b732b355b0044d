"""The published stages of Zhang, Williamson and Perez-Cruz (2022) do what the paper prints."""

from collections import defaultdict

import numpy as np
import pytest

from oracles.accelerated_chains import Case, end_counts
from oracles.accelerated_enumeration import (
    Toy,
    chi_square,
    exact_stage_matrix,
    labels_of,
    posterior,
)
from oracles.enumeration import canonical
from papers import accelerated_published
from papers.accelerated_published import (
    ALPHA,
    FEW,
    GAMMA,
    N_PLACES,
    ROWS,
    RUNS,
    PublishedAcceleration,
    PublishedExact,
    enumerated,
    ill_explained,
    law_of_sizes,
    mean_features,
    measure_bias,
)
from papers.cells import Cell
from skanneal.sharded._chain import STAGES
from skanneal.sharded._exact_stage import ExactStage

LEVEL = 1e-4
N_DRAWS = 300


def test_the_posterior_of_the_few_rows():
    states, chances = posterior(ROWS, "multinomial", {"pseudo_counts": GAMMA}, ALPHA, 0.0)
    found = enumerated()
    assert found == pytest.approx(dict(zip(states, chances)), rel=1e-9)


# -- the exact stage -------------------------------------------------------------------------------


def law_after_a_segment(start, shard_of, alpha, **options):
    """Of the oracle's stage, where every atom explains every row alike."""
    toy = Toy(np.ones((len(shard_of), 1)), [1.0], alpha)
    states = [labels_of(state) for state in toy.law()]
    matrix = exact_stage_matrix(toy, shard_of, **options)
    return dict(zip(states, matrix[states.index(start)]))


@pytest.mark.parametrize("shard_of", [(0, 1, 2), (0, 1, 1)])
@pytest.mark.few(1)
def test_the_exact_stage_is_the_printed_one(shard_of):
    start = (0, 1, 2)
    law = law_after_a_segment(start, shard_of, 0.7, off="free", instantiated="all")
    case, options = Case("multinomial", 3, "off"), {"n_draws": N_DRAWS, "n_segments": 1, "seed": 1}
    options["law"] = [start], [1.0]
    counts = end_counts(PublishedExact(3), case, shard_of, 0.7, 0.0, **options)
    assert chi_square(counts, law) > LEVEL
    counts = end_counts(ExactStage(3), case, shard_of, 0.7, 0.0, **options)
    assert chi_square(counts, law) < LEVEL  # the corrected one has another law


# -- the accelerated stage -------------------------------------------------------------------------


def printed_law(start, shard_of, alpha, n_shards):
    """After one sub-iteration, where every atom explains every row alike, by formula (7)."""
    laws = {(start, ()): 1.0}
    for row in np.argsort(shard_of, kind="stable"):
        here, after = shard_of[row], defaultdict(float)
        for (labels, born), chance in laws.items():
            left = dict.fromkeys(labels, 0)
            for other, z in enumerate(labels):
                left[z] += other != row and shard_of[other] == here
            own = [z for z in born if z[0] == here and left.get(z, 0)]
            weights = {z: n * (1 if z in own else n_shards) for z, n in left.items() if n}
            new = here, max((z[1] for z in born), default=-1) + 1
            weights[new] = alpha * (N_PLACES - len(own)) / N_PLACES
            total = sum(weights.values())
            for z, weight in weights.items():
                moved = (*labels[:row], z, *labels[row + 1 :])
                after[moved, (*born, z) if z == new else born] += chance * weight / total
        laws = after
    found = defaultdict(float)
    for (labels, _), chance in laws.items():
        order = list(dict.fromkeys(labels))
        found[canonical([order.index(z) for z in labels])] += chance
    return dict(found)


def test_the_accelerated_stage_weighs_rows_of_a_shard_by_the_number_of_shards():
    start, shard_of = (0, 0, 1, 0, 1), (0, 1, 0, 0, 1)
    case, law = Case("multinomial", 5, "off"), ([start], [1.0])
    options = {"n_draws": N_DRAWS, "n_segments": 1, "seed": 2, "law": law}
    counts = end_counts(PublishedAcceleration(3), case, shard_of, 1.5, 0.0, **options)
    assert chi_square(counts, printed_law(start, shard_of, 1.5, n_shards=2)) > LEVEL
    assert chi_square(counts, printed_law(start, shard_of, 1.5, n_shards=1)) < LEVEL


def test_rows_are_chosen_in_proportion_to_one_over_f():
    f = np.array([0.8, 0.2, 0.1])
    chosen = ill_explained(np.log(f), 4000, np.random.default_rng(0))
    counts = dict(enumerate(np.bincount(chosen, minlength=3).tolist()))
    assert chi_square(counts, dict(enumerate(1 / f / (1 / f).sum()))) > LEVEL
    assert chi_square(counts, dict(enumerate(f / f.sum()))) < LEVEL


# -- cells -----------------------------------------------------------------------------------------


def test_laws_of_sizes():
    law = law_of_sizes({(0, 0, 1): 0.5, (0, 1, 1): 0.25, (0, 1, 2): 0.25})
    assert law == {(2, 1): 0.75, (1, 1, 1): 0.25}
    assert mean_features(law) == 2.25


def test_lines_of_the_few_rows():
    found = measure_bias(PublishedExact, 2, 20, 0)
    assert found.keys() == {"features", "expected", "total_variation"}
    mean = sum(p * (max(labels) + 1) for labels, p in enumerated().items())
    assert found["expected"] == pytest.approx(mean)
    assert 1 <= found["features"] <= len(ROWS)
    assert 0 <= found["total_variation"] <= 1


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_section_4_1_have_the_stages_they_are_named_after(name, monkeypatch):
    seen = []

    def measured(algorithm, seconds, seed, n_shards):
        seen.append((algorithm, n_shards, [stage.__name__ for _, stage in STAGES[algorithm]]))
        return {}

    before = dict(STAGES)
    monkeypatch.setattr(accelerated_published.synthetic, "measure_synthetic", measured)
    data = list(accelerated_published.MANY)[-1]
    accelerated_published.measure(Cell("published", data, name, 0, 1.0))
    algorithm, which = name.split(", ")
    ((ran, n_shards, stages),) = seen
    assert (ran, n_shards) == (algorithm, 10)
    expected = {
        "published": ["PublishedAcceleration", "PublishedExact"],
        "the package's": ["AcceleratedStage", "ExactStage"],
        "the package's without splits and merges": ["AcceleratedStage", "ExactRows"],
    }[which]
    assert stages == expected[-len(before[algorithm]) :]
    assert before == STAGES


def test_images_are_dealt_to_as_many_shards_as_is_said():
    data = list(accelerated_published.IMAGES)[-1]
    cell = Cell("published_images", data, "accelerated, published", 0, 1.0)
    seen = []

    def measured(cell, n_shards):
        seen.append(STAGES["accelerated"][0][1])
        return {"of": n_shards}

    assert accelerated_published.measure(cell, measured) == {"of": 10}
    assert seen == [PublishedAcceleration]


def test_few_rows_are_dealt_to_as_many_shards_as_is_said():
    assert [int(data.split("P = ")[1]) for data in FEW] == list(FEW.values())
