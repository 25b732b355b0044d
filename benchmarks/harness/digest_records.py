"""What `digests.py` compares of a fitted estimator: what it shows, and its answers, as arrays."""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from harness.digest_data import N_ROWS
from skanneal import tempering

ASKED = 8  # rows that queries are about
CLOCK = {"seconds", "seconds_warmup", "elapsed"}  # no two runs agree on these
OPAQUE = {"likelihood_"}  # an object, which shows in draws and queries
# What users read in a draw, under the names of any commit.
DRAW = (
    *("log_joint", "labels", "n_clusters", "n_components", "sizes", "concentration", "discount"),
    *("hyperparameters", "n_views", "view_labels", "row_labels", "view_concentration"),
    *("view_discount", "theta", "features", "arrays"),
)
# Questions to a fitted estimator: its methods, and what they are given beside the rows ..
ABOUT_ROWS = {
    **dict.fromkeys(("predict", "predict_proba", "new_cluster_proba", "score_samples"), {}),
    **dict.fromkeys(("surprisal", "score_outliers", "decision_function", "transform"), {}),
    "imputations": {"n_imputations": 2},
    "impute": {"return_std": True},
    "row_similarity": {"others": [2], "columns": [0]},
    "sample_y": {"n_samples": 2},
}
# .. of those that want the observations too, and of those that want no rows.
ABOUT_OBSERVATIONS = {"score": {}, "log_predictive_density": {}}
ABOUT_NONE = {
    "sample": {"n_samples": 5},
    "get_feature_names_out": {},
    "dependence_probability": {},
    "mutual_information": {"n_samples": 20, "return_std": True},
    "most_similar_rows": {"rows": [0, 3]},
    "log_marginal_likelihood": {"theta": np.array([0.1, 0.2, 0.3, -1.0]), "eval_gradient": True},
}


def parts(value):
    """The named parts of a value, None of one that has none."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "arrays"):
        return {name: getattr(value, name) for name in DRAW if hasattr(value, name)}
    if hasattr(value, "_asdict"):
        return value._asdict()
    if hasattr(value, "path"):
        return value.path(N_ROWS)._asdict()
    if hasattr(value, "segments"):
        return {stage: value.segments(stage) for stage in ("accelerated", "exact", "all")}
    if isinstance(value, BaseEstimator):
        return {n: v for n, v in vars(value).items() if n[0] != "_" and n[-1] == "_"}
    if isinstance(value, tempering.TemperingResult):
        return vars(value)
    if issparse(value):
        return {name: getattr(value, name) for name in ("indptr", "indices", "data")}
    if hasattr(value, "columns"):
        return {str(name): np.asarray(value[name]) for name in value.columns}
    if isinstance(value, (list, tuple)):
        return {str(i): part for i, part in enumerate(value)}
    return None


def flatten(value, path=""):
    """Yield (path, array) of all parts, those by the clock left out; objects by their repr."""
    if (named := parts(value)) is not None:
        for name, part in named.items():
            if name not in CLOCK | OPAQUE:
                yield from flatten(part, f"{path}/{name}" if path else str(name))
        return
    array = np.asarray(value)
    if array.dtype == object:
        array = np.array([repr(cell) for cell in array.ravel()]).reshape(array.shape)
    yield path, array


def unnamed(method, answer):
    """An answer whose numbers belong to cells or pairs of columns, without the columns' names."""
    if method == "impute":
        filled, spread = answer
        return filled, np.asarray(spread)
    if method == "mutual_information":
        return tuple(map(np.asarray, answer))
    return np.asarray(answer) if method in ("surprisal", "dependence_probability") else answer


def record(make, X, *y, n_fits=1, asked=None, also=None, **fit):
    """Make an estimator, fit it; what it shows, and its answers about a few rows."""
    model = make()
    for _ in range(n_fits):
        model.fit(X, *y, **fit)
    asked, y = (X if asked is None else asked)[:ASKED], [part[:ASKED] for part in y]
    shown = parts(model)
    out = {name: shown.pop(name) for name in ("trace_", "draws_") if name in shown} | shown
    questions = (ABOUT_ROWS, [asked]), (ABOUT_OBSERVATIONS, [asked, *y]), (ABOUT_NONE, [])
    for methods, given in questions:
        for method, how in methods.items():
            if hasattr(model, method):
                out[method] = unnamed(method, getattr(model, method)(*given, **how))
    return out | {"also": None if also is None else also(model, asked)}
