"""Other clusters of a fit's components."""

# SPDX-License-Identifier: BSD-3-Clause

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import validate_parameter_constraints

from .._native._warning import warn
from ._answers import of_clusters, of_separation
from ._verdict import SEPARATION, settled


def cut_again(estimator, X, n_clusters, separation):
    """Do what `BaseTable.cut` says."""
    separation = estimator.separation if separation is None else separation
    wanted = {"n_clusters": n_clusters, "separation": separation}
    constraints = {name: estimator._parameter_constraints[name] for name in wanted}
    validate_parameter_constraints(
        constraints, wanted, caller_name=f"{type(estimator).__name__}.cut"
    )
    if estimator._clusters is None:
        raise ValueError(
            f"There is no tree to cut, as labels_ are components with "
            f"point_estimate={estimator.point_estimate!r}. Fit with 'clusters', or with n_clusters."
        )
    if n_clusters is not None and n_clusters > estimator.n_components_:
        raise ValueError(
            f"n_clusters={n_clusters} are more than the {estimator.n_components_} components that "
            f"the fit has: set n_clusters and fit again, which splits components."
        )
    table, asked = _training_rows(estimator, X)
    before = estimator.get_params(deep=False)
    fitted, encoder = dict(vars(estimator)), estimator._encoder
    try:
        estimator.set_params(**wanted)
        fitted |= estimator._clustered(
            fitted, encoder, table, n_clusters, joins=estimator._clusters.joins, asked=asked
        )
        fitted["convergence_"] = _convergence(estimator, fitted, table)
    except BaseException:
        estimator.set_params(**{name: before[name] for name in wanted})
        raise
    for name, value in fitted.items():
        if name not in before:
            setattr(estimator, name, value)
    for complaint in too_few(n_clusters, estimator.n_clusters_):
        warn(f"{complaint} A fit with that n_clusters splits components.", ConvergenceWarning)


def too_few(asked, found):
    """What to say if there are fewer clusters than were asked for."""
    if asked is None or found >= asked:
        return []
    return [
        f"n_clusters={asked} are more than there are rows that components tell apart (equal rows "
        f"are one): there are {found} clusters. Ask for fewer."
    ]


def _convergence(estimator, fitted, table):
    """What the fit says of its chains, with what it says of clusters anew."""
    convergence, converged = fitted["convergence_"], fitted["converged_"]
    if "answers" not in convergence:
        return convergence
    before = convergence["answers"]
    interrupted = settled(converged, before) and not convergence["settled"]
    answers = {name: answer for name, answer in before.items() if name != SEPARATION}
    if answers:
        answers |= of_clusters(estimator, fitted, table, estimator._encoder)
    answers |= of_separation(estimator, fitted)
    agreed = settled(converged, answers) and not interrupted
    return convergence | {"answers": answers, "settled": agreed}


def _training_rows(estimator, X):
    """X as rows, if these are those of the fit: as chains had them, and as `predict` sees them, if
    that differs, else None."""
    known = getattr(estimator, "_rows", None)
    if known is None:
        table = estimator._queries().table(estimator._encoded(X))
        same = table.n_rows == len(estimator.component_labels_)
    else:
        table = estimator._training_table(X)
        same = table is not None
    if not same:
        raise ValueError("X must be the training data: its rows are not those of the fit.")
    rounded = known is not None and estimator._encoder.jitter.lattices
    return table, estimator._queries().table(estimator._encoded(X)) if rounded else None
