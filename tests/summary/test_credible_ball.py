"""Credible balls by their definition in slow plain Python; labels aligned by trying all ways."""

from itertools import permutations

import numpy as np
import pytest

from skanneal.summary import align_labels, coclustering, credible_ball, expected_binder, expected_vi

DISTANCES = {"vi": expected_vi, "binder": expected_binder}


def slow_ball(labels, draws, probability, loss, weights):
    """Wade and Ghahramani (2018, Section 4): every radius is tried, from the smallest."""
    distances = [DISTANCES[loss](labels, [draw]) for draw in draws]
    for radius in sorted(distances):
        inside = [i for i, distance in enumerate(distances) if distance <= radius]
        if sum(weights[i] for i in inside) >= probability * sum(weights) * (1 - 1e-12):
            break
    numbers = {i: len(set(draws[i].tolist())) for i in inside}

    def farthest(of):
        return max(distances[i] for i in of)

    return (
        radius,
        farthest(inside),
        farthest([i for i in inside if numbers[i] == min(numbers.values())]),
        farthest([i for i in inside if numbers[i] == max(numbers.values())]),
        min(numbers.values()),
        max(numbers.values()),
    )


@pytest.mark.parametrize("loss", DISTANCES)
def test_ball_by_definition(loss):
    rng = np.random.default_rng(0)
    for _ in range(30):
        draws = list(rng.integers(0, rng.integers(1, 5), size=(rng.integers(1, 12), 9)))
        labels, probability = rng.integers(0, 3, size=9), rng.choice([0.3, 0.5, 0.95, 1.0])
        weights = rng.integers(1, 4, size=len(draws)).astype(float)
        ball = credible_ball(
            labels, draws, probability=probability, loss=loss, draw_weights=weights
        )
        own = [DISTANCES[loss](labels, [edge]) for edge in ball[1:]]
        numbers = [edge.max() + 1 for edge in ball[2:]]
        expected = slow_ball(labels, draws, probability, loss, weights)
        np.testing.assert_allclose([ball.radius, *own, *numbers], expected, atol=1e-12)


def test_a_draw_of_no_weight_is_at_no_edge():
    draws = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
    ball = credible_ball([0, 0, 1, 1], draws, probability=1.0, draw_weights=[1, 1, 0])
    assert ball.most_clusters.tolist() == [0, 0, 1, 1]
    assert ball.farthest.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"probability": 0.0}, "probability"),
        ({"probability": 1.1}, "probability"),
        ({"loss": "rand"}, "loss"),
        ({"draw_weights": [1.0]}, "draw_weights"),
        ({"draw_weights": [1.0, -1.0]}, "draw_weights"),
        ({"draw_weights": [0.0, 0.0]}, "draw_weights"),
        ({"draw_weights": [1.0, np.nan]}, "draw_weights"),
        ({"draw_weights": [1.0, np.inf]}, "draw_weights must hold 2 finite numbers"),
        ({"labels": [0, 0]}, "one length"),
    ],
)
def test_a_ball_that_makes_no_sense_is_refused(wrong, words):
    given = {"labels": [0, 0, 1], "labels_list": [[0, 0, 1], [0, 1, 1]]} | wrong
    with pytest.raises(ValueError, match=words):
        credible_ball(**given)


def test_most_rows_have_the_number_of_the_reference():
    rng = np.random.default_rng(1)
    for _ in range(40):
        labels, reference = rng.integers(0, rng.integers(1, 5, size=2)[:, None], size=(2, 12))
        aligned = align_labels(labels, reference)
        np.testing.assert_array_equal(coclustering([aligned]), coclustering([labels]))
        size = max(len(set(labels.tolist())), reference.max() + 1)
        codes = np.unique(labels, return_inverse=True)[1]
        most = max(
            sum(way[code] == known for code, known in zip(codes, reference))
            for way in permutations(range(size))
        )
        assert (aligned == reference).sum() == most


def test_clusters_that_are_left_over_have_numbers_of_their_own():
    aligned = align_labels([4, 4, 4, 2, 2, 9, 8], [3, 3, 3, 3, 3, 3, 3])
    assert aligned.tolist() == [3, 3, 3, 4, 4, 5, 6]
    assert align_labels(np.empty(0, int), np.empty(0, int)).shape == (0,)


def test_numbers_above_those_of_the_reference_must_fit():
    greatest = 2**63 - 1
    assert align_labels([0, 0, 1], [greatest] * 2 + [3]).tolist() == [greatest, greatest, 3]
    assert align_labels([0, 1, 1], [greatest - 1] * 3).tolist() == [greatest] + [greatest - 1] * 2
    for labels, reference in (
        ([0, 1, 2], [greatest] * 3),
        ([0, 0, 0], np.full(3, 2**64 - 1, dtype=np.uint64)),
    ):
        with pytest.raises(ValueError, match="reference has the label .* int64 has no numbers"):
            align_labels(labels, reference)


def test_blocks_of_the_coclustering_make_the_whole():
    draws = list(np.random.default_rng(2).integers(0, 3, size=(7, 11)))
    whole = coclustering(draws)
    for rows in (slice(0, 5), slice(5, 11)):
        block = coclustering(draws, rows=np.arange(11)[rows], others=np.arange(11))
        np.testing.assert_array_equal(block, whole[rows])
    np.testing.assert_array_equal(coclustering(draws, others=[3, 1]), whole[:, [3, 1]])
