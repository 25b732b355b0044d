"""The draws of a mixture as ArviZ reads them: what does not depend on how clusters are numbered.

If the training table is given, the tree also has the observed cells, the log density of each row
given all others and the draw, and a table from the posterior predictive of each draw. The log
densities leave the row out: a mixture whose parameters are integrated out gives a row a density
only given the other rows. `arviz_stats.loo` takes them as they are (see `predictive/_loo.py`).
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..encoding import open_table
from ..parallel import spawn_seeds
from ..predictive._loo import log_likelihoods

MOST_BYTES = 1 << 30  # of the tables that are drawn
DIMS = ("chain", "draw", "row")
SCALARS = ("n_components", "n_views", "concentration", "view_concentration")
SCALARS += ("discount", "view_discount")


def mixture_to_arviz(draws, families, names, groups=None):
    """Return an xarray.DataTree of draws.

    Parameters
    ----------
    draws : list of list of Draw, FeatureDraw or CrossCatDraw
        Of each chain. The first ones count, as many of every chain.
    families : dict of str to int array
        Positions of each family's columns.
    names : list of str
        Of the columns.
    groups : dict of str to (dict of str to ndarray), default=None
        Further groups of variables by row, of each draw or observed.
    """
    import arviz_base

    n_draws = shared_draws(draws)
    flat = [draw for chain in draws for draw in chain[:n_draws]]

    def stacked(values):
        values = np.array(values, dtype=np.float64)
        return values.reshape(len(draws), n_draws, *values.shape[1:])

    posterior, coords, dims = {}, {}, {}
    for name in SCALARS:
        if hasattr(flat[0], name):
            posterior[name] = stacked([_scalar(name, getattr(draw, name)) for draw in flat])
    hyperparameters = [getattr(draw, "hyperparameters", {}) for draw in flat]
    for family, of_family in hyperparameters[0].items():
        columns = [names[j] for j in families[family]]
        for name, first in of_family.items():
            key = f"{family}_{name}"
            several = [drawn[family][name] for drawn in hyperparameters]
            if isinstance(first, list):  # one array per column, of unequal lengths
                several = [_padded(vectors) for vectors in several]
            posterior[key] = stacked(several)
            if posterior[key].shape[2:3] == (len(columns),) and posterior[key].ndim == 3:
                coords[f"{family}_column"], dims[key] = columns, [f"{family}_column"]
            elif isinstance(first, list):
                coords[f"{family}_column"] = columns
                dims[key] = [f"{family}_column", f"{family}_level"]
    log_joint = stacked([draw.log_joint for draw in flat])
    own = {"posterior": posterior, "sample_stats": {"lp": log_joint}}
    for name, of_rows in (groups or {}).items():
        own[name] = of_rows
        dims |= dict.fromkeys(of_rows, ["row"])
    return arviz_base.from_dict(own, coords=coords, dims=dims)


def shared_draws(draws):
    """How many draws every chain has."""
    return min(map(len, draws))


def groups_of_table(estimator, X, table, names, replicate, seed):
    """The groups that a table adds: what was observed, its likelihood, and tables like it.

    Parameters
    ----------
    estimator : BaseTable
        Fitted.
    X : array-like or frame
        The training data.
    table : Table
        The same, encoded.
    names : list of str
    replicate : bool
        Whether tables like it are wanted.
    seed : SeedSequence
        Of these.
    """
    queries, encoder = estimator._queries(), estimator._encoder
    n_draws, n_chains = shared_draws(estimator.draws_), len(estimator.draws_)
    draws = [draw for chain in estimator.draws_ for draw in chain[:n_draws]]
    columns, kept = estimator._encoded(X), [int(j) for j in encoder.apart.kept]
    named = {j: names[j] + "_" * (names[j] in DIMS) for j in kept}
    if replicate and (n_bytes := 8 * len(draws) * len(kept) * table.n_rows) > MOST_BYTES:
        raise ValueError(
            f"The tables of posterior_predictive would take {n_bytes / 2**30:.1f} GiB: give "
            f"posterior_predictive=False."
        )
    missing, read = encoder.missing(columns), open_table(X, "X")
    observed = {
        named[j]: np.where(missing[j], np.nan, _plain(encoder, columns, read, j)) for j in kept
    }
    logs = log_likelihoods(draws, table).reshape(n_chains, n_draws, -1)
    groups = {"observed_data": observed, "log_likelihood": {"rows": logs}}
    if replicate:
        drawn = {name: np.empty((len(draws), table.n_rows)) for name in observed}
        nothing = queries.table(encoder.missing_columns(1))
        for d, (draw, own) in enumerate(zip(draws, spawn_seeds(seed, len(draws)))):
            cells = queries.simulated(queries.of_draw(draw, own), nothing, own, table.n_rows)
            for j in kept:
                drawn[named[j]][d] = np.where(missing[j], np.nan, cells[j])
        groups["posterior_predictive"] = {
            name: cells.reshape(n_chains, n_draws, -1) for name, cells in drawn.items()
        }
    return groups


def _plain(encoder, columns, read, j):
    """A column as numbers: codes of levels, days of dates."""
    return columns[j] if encoder.codecs[j].n_levels else read.column(j).values


def _scalar(name, value):
    """A draw's value; of several views the sum of their components, the mean of all else."""
    return np.sum(value) if name == "n_components" else np.mean(value)


def _padded(vectors):
    """Vectors side by side, with NaN at the end of the shorter ones."""
    out = np.full((len(vectors), max(map(len, vectors))), np.nan)
    for row, vector in zip(out, vectors):
        row[: len(vector)] = vector
    return out
