"""The core of a table: the three quarters of its rows that are least odd in one component of them.

What a detector calls odd should not depend on the outliers among its rows. So the component is made
of all rows, then of those that are least odd in it, and so on until these stay the same: the
concentration steps of Rousseeuw and Van Driessen (1999), "A fast algorithm for the minimum
covariance determinant estimator", Technometrics 41, with the score of _tail.py in place of a
distance, so that levels, atoms and gaps are rows' parts as numbers are. Of half of the rows, the
most robust choice, a covariance of many columns is uncertain; three quarters are the usual
compromise. The steps are made once, from all rows on.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..chains import first_state
from ..predictive._predictor import Predictor
from ..predictive._tail import view_scores
from ..predictive._view import View
from ..states import Subsample, state_from_arrays

SHARE = 0.75  # of the rows
STEPS = 12
MOST_ROWS = 10_000  # among which the core is looked for


def core_of(plan, asked, schema, judged, seed):
    """Find the core of the training rows.

    Parameters
    ----------
    plan : ChainPlan
        Of a chain of all rows.
    asked : Table
        The same rows as a query reads them.
    schema : Schema
        Of both tables.
    judged : int array of shape (n_judged,)
        Rows that are scored.
    seed : numpy.random.SeedSequence

    Returns
    -------
    rows : int array of shape (n_core,)
        Those of the core.
    arrays : dict of str to ndarray
        The state of the one component that has these rows.
    scores : ndarray of shape (n_judged,)
        How odd the judged rows are in it, each without itself.
    """
    bit_generator, maker = np.random.PCG64(seed), Predictor([], schema)
    n_rows = plan.table.n_rows
    looked = np.random.Generator(bit_generator).permutation(n_rows)[:MOST_ROWS]
    looked.sort()
    table = asked.take(looked)
    nearest, n_core = looked, int(np.ceil(SHARE * len(looked)))
    for _ in range(STEPS):
        rows = nearest
        arrays = _component(plan, rows, bit_generator)
        scores = view_scores(_view(arrays, asked.empty_like()), table, maker)
        nearest = np.sort(looked[np.argsort(scores, kind="stable")[:n_core]])
        if np.array_equal(nearest, rows):
            break
    scores = view_scores(_view(arrays, asked.empty_like()), asked.take(judged), maker)
    _, at, of_core = np.intersect1d(judged, rows, assume_unique=True, return_indices=True)
    own = _view(arrays, plan.table.take(rows))
    scores[at] = view_scores(own, asked.take(rows), maker, training=True)[of_core]
    return rows, arrays, scores


def _component(plan, rows, bit_generator):
    """The arrays of a state in which these rows are one component."""
    own = plan._replace(table=plan.table.take(rows), init=1)
    return first_state(own, Subsample(len(rows)), "prior", bit_generator).to_arrays()


def _view(arrays, table):
    return View(state_from_arrays(arrays, table, trusted=True))
