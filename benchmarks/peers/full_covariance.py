"""Clusters of full covariance: PermutationDPMixture beside what users would pick.

    python benchmarks/peers/full_covariance.py                    # both sizes, 10 seeds
    python benchmarks/peers/full_covariance.py --sizes 2000 --seeds 3 --no-peers

20,000 rows of 8 numbers from 20 clusters, and 2,000 of 4 from 8: equal weights, means
N(0, 3^2) or N(0, 4^2), covariances Wishart(D + 2) / (D + 2). One chain, one core, defaults
otherwise; then the same from one cluster. Printed: seconds of the fit; the gap, mean log density of
fresh rows under the same model given the true labels (hyperparameters of the fit's own draw) less
that under the fit, in nats; and how far the adjusted Rand index of `labels_` falls short of that of
the labels which the true density assigns. Beside them, on the first seeds: scikit-learn's
variational mixture of 40 (10) components with its Student-t predictive, and HDBSCAN, whose noise is
a cluster of its own.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal, wishart
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture
from threadpoolctl import threadpool_limits

from skanneal import PermutationDPMixture
from skanneal.families import Table
from skanneal.states import Mixture, Subsample

MOST_GAP = 0.005  # nats per row
MOST_SHORT = 0.002  # of the adjusted Rand index


class Size(NamedTuple):
    n_rows: int
    n_columns: int
    n_clusters: int
    spread: float  # of the means
    seconds: float
    peer_components: int


SIZES = {20_000: Size(20_000, 8, 20, 4.0, 1.0, 40), 2_000: Size(2_000, 4, 8, 3.0, 0.2, 10)}


def make_data(size, rng, n_fresh):
    """Rows, labels, fresh rows, and a function to the log joint of rows and clusters."""
    d, k = size.n_columns, size.n_clusters
    means = rng.normal(0, size.spread, (k, d))
    covariances = wishart.rvs(d + 2, np.eye(d) / (d + 2), size=k, random_state=rng)
    roots = np.linalg.cholesky(covariances)

    def draw(n):
        labels = rng.integers(k, size=n)
        noise = np.einsum("nij,nj->ni", roots[labels], rng.normal(size=(n, d)))
        return means[labels] + noise, labels

    def log_joint(X):
        parts = [multivariate_normal.logpdf(X, m, c) for m, c in zip(means, covariances)]
        return np.stack(parts, axis=1) - np.log(k)

    X, labels = draw(size.n_rows)
    return X, labels, draw(n_fresh)[0], log_joint


def score_given_labels(model, X, labels, fresh):
    """Mean log predictive of fresh rows by the fitted draw with other labels."""
    encoder, draw = model._encoder, model.draws_[0][0]
    tables = []
    for rows in (X, fresh):
        table = Table(*encoder.table_schema)
        table.append(encoder.encode(model, rows))
        tables.append(table)
    subsample = Subsample(len(X))
    subsample.fill()
    state = Mixture.from_arrays(draw.arrays, tables[0], subsample)
    state.replace(np.arange(len(X)), labels)
    scores, log_weights = state.score_rows(tables[1], 0, len(fresh))
    return float(logsumexp(scores + log_weights, axis=1).mean())


def student_t_score(model, fresh):
    """Mean log predictive of a fitted BayesianGaussianMixture: its Student-t's."""
    d = fresh.shape[1]
    weights = model.weights_
    total = np.zeros((len(fresh), len(weights)))
    for k in range(len(weights)):
        nu = model.degrees_of_freedom_[k] - d + 1
        beta = model.mean_precision_[k]
        # covariances_ holds W^-1 / nu_k
        scale = model.covariances_[k] * model.degrees_of_freedom_[k] * (1 + 1 / beta) / nu
        root = np.linalg.cholesky(scale)
        y = np.linalg.solve(root, (fresh - model.means_[k]).T)
        total[:, k] = (
            gammaln((nu + d) / 2)
            - gammaln(nu / 2)
            - d / 2 * np.log(nu * np.pi)
            - np.log(np.diag(root)).sum()
            - (nu + d) / 2 * np.log1p((y * y).sum(axis=0) / nu)
        )
    return float(logsumexp(total + np.log(weights), axis=1).mean())


def timed(fit):
    start = time.perf_counter()
    out = fit()
    return out, time.perf_counter() - start


def show(size, seed, system, seconds, gap, short, clusters):
    print(
        f"{size.n_rows:7d} {seed:5d}  {system:26s} {seconds:8.2f} {gap:9.4f} {short:9.4f} "
        f"{clusters:9d}",
        flush=True,
    )


def measure(size, seed, options):
    """Rows of the table of one seed; whether ours are within the limits."""
    rng = np.random.default_rng([seed, size.n_rows])
    X, labels, fresh, log_joint = make_data(size, rng, options.fresh)
    best = adjusted_rand_score(labels, log_joint(X).argmax(axis=1))
    good = {}
    for init in (None, "one"):
        model = PermutationDPMixture(
            families="multivariate_normal", init=init, n_chains=1, random_state=seed
        )
        _, seconds = timed(lambda model=model: model.fit(X))
        reference = score_given_labels(model, X, labels, fresh)
        gap = reference - model.score(fresh)
        short = best - adjusted_rand_score(labels, model.labels_)
        show(size, seed, f"skanneal, init={init}", seconds, gap, short, model.n_clusters_)
        good[init] = gap <= MOST_GAP and short <= MOST_SHORT and seconds <= size.seconds
    if options.peers and seed < options.peer_seeds:
        peer = BayesianGaussianMixture(
            n_components=size.peer_components, max_iter=500, random_state=seed
        )
        _, seconds = timed(lambda: peer.fit(X))
        found = peer.predict(X)
        gap = reference - student_t_score(peer, fresh)
        short = best - adjusted_rand_score(labels, found)
        show(size, seed, "BayesianGaussianMixture", seconds, gap, short, len(np.unique(found)))
        found, seconds = timed(lambda: HDBSCAN(min_cluster_size=20, copy=True).fit_predict(X))
        short = best - adjusted_rand_score(labels, found)
        show(size, seed, "HDBSCAN", seconds, np.nan, short, int(found.max()) + 1)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--fresh", type=int, default=5_000, help="rows the gap is measured on")
    parser.add_argument("--peer-seeds", type=int, default=2)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    print(
        f"{'rows':>7} {'seed':>5}  {'system':26s} {'seconds':>8} {'gap':>9} {'ARI short':>9} "
        f"{'clusters':>9}"
    )
    with threadpool_limits(1):
        for n_rows in options.sizes:
            good = [measure(SIZES[n_rows], seed, options) for seed in range(options.seeds)]
            for init in (None, "one"):
                print(
                    f"{n_rows} rows, init={init}: {sum(g[init] for g in good)} of {len(good)} "
                    f"seeds within {MOST_GAP} nats, {MOST_SHORT} of ARI and "
                    f"{SIZES[n_rows].seconds:g} s"
                )


if __name__ == "__main__":
    main()
