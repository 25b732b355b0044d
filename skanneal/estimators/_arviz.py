"""The draws of a mixture as ArviZ reads them: what does not depend on how clusters are numbered."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

SCALARS = ("n_components", "n_views", "concentration", "view_concentration")
SCALARS += ("discount", "view_discount")


def mixture_to_arviz(draws, families, names):
    """Return an xarray.DataTree of draws.

    Parameters
    ----------
    draws : list of list of Draw, FeatureDraw or CrossCatDraw
        Of each chain. The first ones count, as many of every chain.
    families : dict of str to int array
        Positions of each family's columns.
    names : list of str
        Of the columns.
    """
    import arviz_base

    n_draws = min(map(len, draws))
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
    groups = {"posterior": posterior, "sample_stats": {"lp": log_joint}}
    return arviz_base.from_dict(groups, coords=coords, dims=dims)


def _scalar(name, value):
    """A draw's value; of several views the sum of their components, the mean of all else."""
    return np.sum(value) if name == "n_components" else np.mean(value)


def _padded(vectors):
    """Vectors side by side, with NaN at the end of the shorter ones."""
    out = np.full((len(vectors), max(map(len, vectors))), np.nan)
    for row, vector in zip(out, vectors):
        row[: len(vector)] = vector
    return out
