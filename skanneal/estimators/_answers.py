"""Which answers of a fit its chains agree on, where they do not agree in everything.

Chains on real tables often differ in what no user asks about, the number of small components above
all, and agree on what is asked. So each answer is compared by itself, between what a fit of one
chain alone would have said and what the fit says:

- the clusters: the adjusted Rand index of a chain's own clusters and `labels_`, in some rows. A
  chain's own clusters are made as those of the fit are, of its own best draw, judged by its own
  draws; its tree is cut into as many clusters as the fit has;
- their number: the share of the chains whose own number is that of the fit. By chance one chain in
  ten is sure of a valley that does not exist, so one of four chains may differ;
- the density: the difference of the mean log density of the training rows, each left out of what
  the chain has learnt, from that of all chains together. A difference counts only if it exceeds the
  sampling error of this mean over the rows;
- the dependence of columns, in a CrossCat: the mean difference of a pair's probability, of at most
  20 columns.

For all answers but the number, the chain that differs most decides. Once it is known that neither
the clusters nor their number are agreed, no further chain is asked for its clusters: that takes
about as long as the clusters of the fit. Chains without weight have no part in the answers, so they
are not compared; if fewer than two chains have weight, no answer counts as agreed.

Chains may agree in everything, and a fit with another seed may still cut its tree otherwise, where
a join is about as sure as `separation`. So it is also asked how the number of clusters would differ
if 1 - separation were DOUBT times as large, or as small. Cuts of one tree that give the same number
are the same.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from ..predictive._crosscat import CrossCatQueries
from ..predictive._draws import evenly
from ..predictive._loo import compared_rows
from ..summary import cut_tree
from ._verdict import SEPARATION

COMPARED_ROWS = 1000  # chains are compared by the clusters of so many rows
DRAWS = 5  # of a chain: its answers about clusters and columns are means over so many
ALIKE = 0.95  # the least adjusted Rand index of clusters that count as the same
# Numbers of clusters are the same if they differ by SAME_NUMBER of themselves at most, in SHARE of
# the chains at least.
SAME_NUMBER, SHARE = 0.05, 0.75
DOUBT = 1.5  # compared with 1, 1.25, 2, 3 and 4 by benchmarks/fits/answers.py
MOST_COLUMNS = 20  # whose dependences are compared
DEPENDENCE = 0.1  # the largest mean difference of probabilities that count as the same
NATS = 0.01  # per row: densities that differ by less count as the same


def answers_of(estimator, fitted, plan, encoder, log_densities):
    """Return what becomes `convergence_["answers"]` of chains that do not agree in everything.

    Parameters
    ----------
    estimator : BaseAnnealed
    fitted : dict
        The attributes of the fit.
    plan : ChainPlan
    encoder : Encoder
    log_densities : ndarray of shape (n_chains, n_compared)
        Of training rows under each chain, each row left out.

    Returns
    -------
    answers : dict of str to dict
        By the name of the answer "value", "limit" and "agrees".
    """
    counted = np.flatnonzero(fitted["chain_weights_"])
    chains = [fitted["draws_"][c] for c in counted]
    found = {"density": _of_density(log_densities[counted])}
    found |= of_clusters(estimator, fitted, plan.table, encoder)
    if estimator._has_views:
        found["dependence of columns"] = _of_dependence(chains, encoder)
    if len(chains) < 2:
        return {name: answer | {"agrees": False} for name, answer in found.items()}
    return found


def of_clusters(estimator, fitted, table, encoder):
    """Return the answers about clusters; parameters as in `answers_of`, with the training rows."""
    chains = [fitted["draws_"][c] for c in np.flatnonzero(fitted["chain_weights_"])]
    n_clusters = fitted["n_clusters_"]
    labels = fitted["labels_"][compared_rows(table.n_rows, COMPARED_ROWS)]
    alike, same = [], []
    for draws in chains:
        of_chain, number = _own_clusters(estimator, draws, n_clusters, table, encoder)
        alike.append(adjusted_rand_score(labels, of_chain))
        same.append(abs(number - n_clusters) <= SAME_NUMBER * n_clusters)
        if min(alike) < ALIKE and same.count(False) > (1.0 - SHARE) * len(chains):
            break
    alike, same = min(alike), np.mean(same)
    several = len(chains) > 1
    return {
        "clusters": _answer(alike, ALIKE, several and alike >= ALIKE),
        "number of clusters": _answer(same, SHARE, several and same >= SHARE),
    }


def of_separation(estimator, fitted):
    """Return the answer about where the tree is cut; none if a number of clusters is asked for, or
    labels are components."""
    if fitted.get("_clusters") is None or estimator.n_clusters or not estimator.separation:
        return {}
    evidence, doubt = fitted["_clusters"].joins.evidence, 1.0 - estimator.separation
    least, own, most = (
        1 + int(cut_tree(evidence, max(1.0 - factor * doubt, 0.0)).max())
        for factor in (1.0 / DOUBT, 1.0, DOUBT)
    )
    value = max(own - least, most - own) / own
    return {SEPARATION: _answer(value, SAME_NUMBER, value <= SAME_NUMBER)}


def _answer(value, limit, agrees):
    return {"value": float(value), "limit": float(limit), "agrees": bool(agrees)}


def _of_density(log_densities):
    """How far chains differ in the mean log density per row, in nats."""
    together = logsumexp(log_densities, axis=0) - np.log(len(log_densities))
    possible = np.isfinite(together)
    if not possible.any():
        return _answer(0.0, NATS, True)
    gaps = np.abs((log_densities - together)[:, possible].mean(axis=1))
    error = together[possible].std() / np.sqrt(np.count_nonzero(possible))
    limit = max(NATS, error)
    return _answer(gaps.max(), limit, gaps.max() <= limit)


def _own_clusters(estimator, draws, n_clusters, table, encoder):
    """Return what a fit of this chain alone would say: the cluster of each of some rows, if there
    are `n_clusters`, and its own number of clusters."""
    at = evenly(len(draws), DRAWS)
    summary = estimator._summary(draws, encoder, table, least=1, keys=None)
    rows = compared_rows(table.n_rows, COMPARED_ROWS)
    if not estimator._joins_components:
        return summary["labels_"][rows], summary["n_clusters_"]
    clusters = estimator._clusters_type(
        [draws[i] for i in at], np.ones(len(at)), summary["_point"], encoder.table_schema, None
    )
    tree = clusters.grown(table, estimator.separation).tree(estimator.separation)
    clusters.clusters = cut_tree(tree, n_clusters=n_clusters)
    own_number = int(cut_tree(tree, estimator.separation, estimator.n_clusters).max()) + 1
    return clusters.predict(table.take(rows)), own_number


def _of_dependence(chains, encoder):
    """How far chains differ in the probabilities that columns depend on each other."""
    columns = evenly(encoder.n_columns, MOST_COLUMNS)
    pairs = np.triu_indices(len(columns), 1)
    some = [[draws[i] for i in evenly(len(draws), DRAWS)] for draws in chains]
    of_chains = [
        CrossCatQueries(draws, None, encoder).dependence_probability(columns)[pairs]
        for draws in some
    ]
    gaps = np.abs(of_chains - np.mean(of_chains, axis=0))
    apart = gaps.mean(axis=1).max() if gaps.size else 0.0
    return _answer(apart, DEPENDENCE, apart <= DEPENDENCE)
