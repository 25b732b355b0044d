"""Rows of counts as tables, blocks and mixtures of the multinomial family."""

import numpy as np
from scipy.sparse import csr_array

from oracles.mixtures import column_type, hyper_vector
from oracles.mixtures import encode as encode_column
from skanneal.families import FAMILIES, Table
from skanneal.partition_priors import PitmanYor
from skanneal.states import Mixture, Subsample

N_ROWS, N_SLOTS, REJECT = 60, 20, 1e-6


def make_table(columns):
    """A table of columns as in mixtures.py; one may be rows of counts, in columns of their own.

    Returns
    -------
    table : Table
    at : list of list of int
        Where each column stands in the table.
    """
    types, cells, at = [], [], []
    for family, values, hyper in columns:
        start = len(types)
        if family == "multinomial":
            counts = csr_array(np.array(values, dtype=np.int64))
            width = counts.shape[1]
            types += [("entries", 0)] + [("none", 0)] * (width - 1)
            cells += [counts] + [None] * (width - 1)
        else:
            types.append(column_type((family, values, hyper)))
            cells.append(encode_column((family, values, hyper)))
        at.append(list(range(start, len(types))))
    table = Table(*zip(*types, strict=True))
    table.append(cells)
    return table, at


def flat(hyper):
    """The family's vector of pseudo-counts."""
    return np.atleast_1d(np.array(hyper["pseudo_counts"], dtype=float))


def make_blocks(columns, n_slots=16):
    """(table, one block per column)."""
    table, at = make_table(columns)
    blocks = [
        FAMILIES[family](
            table,
            places,
            [flat(hyper) if family == "multinomial" else hyper_vector(family, hyper)],
            n_slots,
        )
        for (family, _, hyper), places in zip(columns, at, strict=True)
    ]
    return table, blocks


def make_mixture(columns, concentration=1.0, discount=0.0, seed=0, selection="random"):
    """(mixture, bit generator), no row in S yet."""
    bit_generator = np.random.PCG64(seed)
    table, blocks = make_blocks(columns)
    subsample = Subsample(table.n_rows, selection, bit_generator)
    return Mixture(table, blocks, PitmanYor(concentration, discount), subsample), bit_generator


def documents(rng, n_rows=N_ROWS, n_columns=7, mean=4.0, spread=0.6):
    """Rows of counts, none of them empty."""
    p = rng.dirichlet(np.full(n_columns, spread), size=n_rows)
    totals = 1 + rng.poisson(mean, n_rows)
    return [tuple(rng.multinomial(n, q).tolist()) for n, q in zip(totals, p)]
