"""Hashes of what compiled kernels draw, which are the same for every instruction set."""

import hashlib
from itertools import product

import numpy as np

from oracles import count_rows
from oracles.bits import all_scores
from oracles.count_rows import documents
from oracles.likelihood_rows import (
    NUMBERS,
    make,
    make_rows,
    partition,
    rng_of,
    scores,
)
from oracles.mixtures import (
    COLUMN_FAMILIES,
    ROW_FAMILIES,
    make_mixture,
    random_column,
    random_columns,
    random_rows,
)
from oracles.slot_draws import draws
from skanneal.likelihoods import LIKELIHOODS
from skanneal.moves import SplitMerge, churn


def digest_of_column_families():
    """A hash of labels, statistics and scores after a churn of mixed columns."""
    digest = hashlib.sha256()
    rng = np.random.default_rng(16)
    n = 200
    columns = random_columns(COLUMN_FAMILIES, n, 17)
    columns += [random_column("categorical", n, rng, n_levels=300, missing=0.1)]
    columns += [random_column("normal", n, rng) for _ in range(19)]
    columns += [random_column("categorical", n, rng, n_levels=5) for _ in range(19)]
    mixture, bit_generator = make_mixture(columns, 30.0, 0.3, seed=18)
    knots = np.array([[0, 0], [3 * n, n], [10 * n, n]])
    for start in range(0, 5 * n, n):
        beta = 1.0 if start > 3 * n else 0.05
        churn([mixture], mixture.subsample, bit_generator, knots, start, start + n, beta)
        digest.update(mixture.get_labels().tobytes())
        for row in range(20):
            digest.update(mixture.scores(row)[1].tobytes())
    for value in mixture.to_arrays().values():
        digest.update(value.tobytes())
    return digest.hexdigest()


def digest_of_row_families():
    """A hash of labels, statistics and scores after churns of every row family."""
    digest = hashlib.sha256()
    for family, d in product(ROW_FAMILIES, (2, 11)):
        columns = [random_rows(family, 150, np.random.default_rng(16), d)]
        mixture, bit_generator = make_mixture(columns, 20.0, 0.3, seed=18)
        knots = np.array([[0, 0], [450, 150], [1500, 150]])
        for start in range(0, 900, 150):
            beta = 1.0 if start > 450 else 0.05
            churn([mixture], mixture.subsample, bit_generator, knots, start, start + 150, beta)
            digest.update(mixture.get_labels().tobytes())
            for row in range(10):
                digest.update(mixture.scores(row)[1].tobytes())
        (block,) = mixture.blocks
        for row in range(5):
            block.extend_row(row, 1)
        for value in block.to_arrays().values():
            digest.update(value.tobytes())
        digest.update(all_scores(block).tobytes())
    return digest.hexdigest()


def digest_of_counts():
    """A hash of labels, statistics and scores after a churn."""
    rng = np.random.default_rng(16)
    digest = hashlib.sha256()
    rows = np.array(documents(rng, 200, 40, mean=30.0, spread=0.1))
    rows[::9] *= 37
    columns = [("multinomial", rows, {"pseudo_counts": 0.05})]
    mixture, bit_generator = count_rows.make_mixture(columns, 30.0, 0.3, seed=18)
    knots = np.array([[0, 0], [600, 200], [2000, 200]])
    for start in range(0, 1000, 200):
        beta = 1.0 if start > 600 else 0.05
        churn([mixture], mixture.subsample, bit_generator, knots, start, start + 200, beta)
        SplitMerge().sweep(mixture, bit_generator, beta=beta)
        digest.update(mixture.get_labels().tobytes())
        for row in range(20):
            digest.update(mixture.scores(row)[1].tobytes())
    for value in mixture.to_arrays().values():
        digest.update(value.tobytes())
    return digest.hexdigest()


def digest_of_likelihoods():
    digest = hashlib.sha256()
    for name in LIKELIHOODS:
        likelihood, rows, _ = make(name, n_rows=61)
        labels, statistics, sizes = partition(likelihood, rows, 21)
        theta = likelihood.draw(statistics, likelihood.prior_draw(21, rng_of(32)), rng_of(33))
        likelihood.update(theta, statistics, sizes, rng_of(34))
        theta = likelihood.draw(statistics, theta, rng_of(35))
        for value in (theta, statistics, scores(likelihood, rows, theta)):
            digest.update(value.tobytes())
        digest.update(likelihood.proposal_draw(rows, rng_of(36)).tobytes())
        if name not in NUMBERS:  # counts so large that they are scored in float64
            X = 1000 * make_rows(name, n_rows=61)
            digest.update(scores(likelihood, likelihood.encode(X), theta).tobytes())
    return digest.hexdigest()


def digest_of_draws():
    """A hash of how often each slot was drawn, see test_instruction_sets.py."""
    return hashlib.sha256(repr(sorted(draws().items())).encode()).hexdigest()
