"""Check the arrays of atoms, before a chain goes on with them or a draw answers queries.

If the likelihood is the user's own, whose code is Python, only what this package uses is checked.
"""

# SPDX-License-Identifier: BSD-3-Clause

import copy

import numpy as np

from .._native._packing import part_of, unpack
from .._native._state_arrays import StateError, state_array
from ..likelihoods._table_rows import TableLikelihood, TableRows
from ..states import checked_blocks

NUMBERS = "iuf"


def check_uncollapsed(arrays, likelihood, n_rows):
    """Raise StateError unless an Uncollapsed state can be made of these arrays.

    Parameters
    ----------
    arrays : dict of str to ndarray
    likelihood : Likelihood
        Of the fit; it does not change.
    n_rows : int array of shape (n_shards,)
        Rows of each shard.
    """
    members = state_array(arrays, "members", "iu", (len(n_rows), None), 0, max(n_rows))
    n_atoms = members.shape[1]
    for p, n in enumerate(n_rows):
        labels = state_array(arrays, f"labels{p}", "i", (n,), 0, n_atoms - 1)
        if not np.array_equal(np.bincount(labels, minlength=n_atoms), members[p]):
            raise StateError("members", f"is not what a recount of labels{p} gives")
    state_array(arrays, "log_lik", "f", ())
    statistics = state_array(
        arrays, "statistics", NUMBERS, _shape_of_statistics(likelihood, n_atoms)
    )
    if len(statistics) != n_atoms:
        raise StateError("statistics", f"is not of {n_atoms} atoms")
    if "theta" in arrays or not likelihood.conjugate:
        state_array(arrays, "theta", NUMBERS, _shape_of_atoms(likelihood, n_atoms))
        if len(arrays["theta"]) != n_atoms:
            raise StateError("theta", f"is not of {n_atoms} atoms")
    _check_parameters(arrays, likelihood)
    if likelihood.conjugate:
        trial = copy.deepcopy(likelihood)
        trial.set_state(part_of(arrays, "likelihood"))
        try:
            checked_blocks(trial.arrays(statistics, members.sum(axis=0)), likelihood.schema)
        except StateError as error:
            raise StateError("statistics", f"is impossible: {error.key} {error.fault}") from error


def check_feature_draw(arrays, likelihood):
    """Raise StateError unless the arrays of a FeatureDraw are those of a likelihood."""
    sizes = state_array(arrays, "features/size", "iu", (None,), 0)
    if sizes.sum() > len(state_array(arrays, "labels", "i", (None,))):
        raise StateError("features/size", "holds more rows than there are labels")
    for key, n in (("theta", len(sizes)), ("prior_theta", None)):
        state_array(arrays, key, NUMBERS, _shape_of_atoms(likelihood, n))
    state_array(arrays, "proposal_seed", "iu", (None,))
    _check_parameters(arrays, likelihood)


def _shape_of_statistics(likelihood, n_atoms):
    if not isinstance(likelihood, TableLikelihood):
        return None
    none = TableRows(likelihood.schema.empty_like())
    return (n_atoms, *likelihood.statistics(none, np.zeros(0, np.int32), 1).shape[1:])


def _shape_of_atoms(likelihood, n_atoms):
    if not isinstance(likelihood, TableLikelihood):
        return None
    rng = np.random.Generator(np.random.PCG64(0))
    return (n_atoms, *likelihood.prior_draw(1, rng).shape[1:])


def _check_parameters(arrays, likelihood):
    """Raise unless what `update` draws has the shapes that it has in the likelihood."""
    if not isinstance(likelihood, TableLikelihood):
        return
    found = unpack(arrays).get("likelihood", {})
    for name, value in likelihood.state().items():
        try:
            state_array(found, name, NUMBERS, np.shape(value))
        except StateError as error:
            raise StateError(f"likelihood/{name}", error.fault) from None
