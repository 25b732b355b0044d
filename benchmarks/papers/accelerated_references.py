"""References for the accelerated sampler's image benchmark: other predictors of rows of counts.

All of them are mixtures of multinomials over D columns with theta ~ Dirichlet(gamma, ..., gamma).
Every log density is per test row and includes that row's multinomial coefficient, which no
predictor can change. The predictors:

- `prior_predictive`: one multinomial drawn from the prior, no data at all;
- `singletons`: every training row its own cluster;
- `expectation_maximisation`: a finite mixture, started at random rows;
- `variational_bayes`: truncated mean field of Blei and Jordan (2006), concentration fixed.

A clustering with sizes n_k and summed counts c_k predicts in two ways: `plug_in`, the mixture of
the features (gamma + c_k) / sum with weights n_k / n, occupied clusters only; and `full`, the same
integrated over what is not known, sum_k w_k DM(x; gamma + c_k) with the partition's predictive
weights w_k and, as a cluster of counts 0, the new cluster.

EM and mean field share one pass over blocks of rows on `N_THREADS` threads: a float32 matrix
product, softmax in place, and a sparse product for the statistics, for which responsibilities
below `LEAST` are dropped.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix
from scipy.special import betaln, digamma, gammaln
from threadpoolctl import threadpool_limits

N_THREADS = 2
BLOCK = 1000  # rows at a time
CELLS = 2_000_000  # of a table of log densities at a time
LEAST = 1e-6  # responsibility
MOST_ERROR = 2e-4  # of a cell's term in the singletons' full predictive


def threaded(function, tasks):
    """Results of function(*task), in order; of several each on one thread, BLAS included."""
    if len(tasks) == 1:
        return [function(*tasks[0])]
    with threadpool_limits(1):
        return Parallel(N_THREADS, prefer="threads")(delayed(function)(*task) for task in tasks)


def blocks(n, size):
    return [slice(at, min(n, at + size)) for at in range(0, n, size)]


def log_sum_exp(values):
    """Over the last axis, in double; `values` is overwritten by the normalised weights."""
    most = values.max(axis=1, keepdims=True)
    values -= most
    np.exp(values, out=values)
    sums = values.sum(axis=1, keepdims=True)
    values /= sums
    return most[:, 0].astype(np.float64) + np.log(sums[:, 0], dtype=np.float64)


# -- predictives -----------------------------------------------------------------------------------


def log_coefficients(X):
    """Log multinomial coefficient of each row."""
    factorials = gammaln(np.arange(int(X.max()) + 1) + 1.0)
    return gammaln(X.sum(axis=1, dtype=np.int64) + 1.0) - factorials[X].sum(axis=1)


def log_whole(mass, totals):
    """-log (mass)_total, the part of a Dirichlet-multinomial that no column has to itself."""
    return gammaln(mass) - gammaln(mass + totals)


def prior_predictive(X, gamma):
    """Log density of each row under one multinomial drawn from the prior."""
    rises = gammaln(gamma + np.arange(int(X.max()) + 1)) - gammaln(gamma)
    totals = X.sum(axis=1, dtype=np.int64)
    return log_coefficients(X) + rises[X].sum(axis=1) + log_whole(X.shape[1] * gamma, totals)


def posterior_means(counts, gamma):
    """Features of clusters with these summed counts."""
    theta = np.asarray(counts, dtype=np.float64) + gamma
    return theta / theta.sum(axis=1, keepdims=True)


def predictive_log_weights(sizes, concentration, discount=0.0):
    """Of clusters of these sizes and, last, of a new one."""
    weights = np.append(np.asarray(sizes) - discount, concentration + discount * len(sizes))
    return np.log(weights / (np.sum(sizes) + concentration))


def plug_in(X, theta, weights):
    """Log density of each row under features `theta` with weights that need not sum to 1."""
    log_theta = np.log(theta).T.astype(np.float32)
    log_weights = np.log(weights / np.sum(weights)).astype(np.float32)

    def mixed(rows):
        return log_sum_exp(X[rows].astype(np.float32) @ log_theta + log_weights)

    found = threaded(mixed, [(rows,) for rows in blocks(len(X), BLOCK)])
    return log_coefficients(X) + np.concatenate(found)


class Indicators(NamedTuple):
    """Rows as `full` needs them: a sparse indicator of (column, count) in place of the counts."""

    matrix: csr_matrix
    columns: np.ndarray  # of each indicator
    values: np.ndarray  # its count
    totals: np.ndarray  # of each row
    constants: np.ndarray  # log coefficients

    @classmethod
    def of(cls, X):
        rows, columns = np.nonzero(X)
        most = int(X.max()) + 1
        pairs, at = np.unique(columns * most + X[rows, columns], return_inverse=True)
        matrix = csr_matrix((np.ones(len(at), np.float32), (rows, at)), (len(X), len(pairs)))
        totals = X.sum(axis=1, dtype=np.int64)
        return cls(matrix, pairs // most, pairs % most, totals, log_coefficients(X))


def full(indicators, counts, log_weights, gamma):
    """Log density of each row, integrated over the features of clusters with summed `counts`."""
    matrix, columns, values, totals, constants = indicators
    counts = np.asarray(counts, dtype=np.float64)

    steps = np.arange(values.max())[:, None]

    def scores(clusters):
        own = counts[clusters].T + gamma
        rises = np.log(own[:, None, :] + steps).cumsum(axis=1)  # log (a)_1, log (a)_2, ...
        whole = log_whole(own.sum(axis=0), totals[:, None]) + log_weights[clusters]
        return log_sum_exp(matrix @ rises[columns, values - 1].astype(np.float32) + whole)

    width = max(1, CELLS // max(counts.shape[1] * len(steps), len(totals)))
    found = threaded(scores, [(clusters,) for clusters in blocks(len(counts), width)])
    return constants + log_sum_exp(np.stack(found, axis=1))


def singletons(train, test, gamma, concentration):
    """Plug-in and full log densities of each test row, every training row its own cluster.

    The full one is sum_j g(x_ij, x_j) over columns with g(n, x) = log (gamma + n)_x, no matrix
    product; but the table of g, tiny, is to `MOST_ERROR` a product of few columns, so that a
    cell becomes so many numbers and all pairs of rows are one matrix product after all.
    """
    values = np.arange(int(max(train.max(), test.max())) + 1)
    table = gammaln(gamma + values[:, None] + values) - gammaln(gamma + values)[:, None]
    left, singular, right = np.linalg.svd(table - table[0])
    rank = 1
    while np.abs(table - table[0] - left[:, :rank] * singular[:rank] @ right[:rank]).max() > (
        MOST_ERROR
    ):
        rank += 1
    left, right = (left[:, :rank] * singular[:rank]).astype("f"), right[:rank].T.astype("f")
    totals = test.sum(axis=1, dtype=np.int64)
    log_weights = predictive_log_weights(np.ones(len(train)), concentration)
    n_columns, blocks_of_train = train.shape[1], blocks(len(train), BLOCK)

    def flat(vectors, X):
        return vectors[X].reshape(len(X), -1)

    def of_block(rows, own):
        X = test[rows]
        plain, levels, base = X.astype(np.float32), flat(right, X), table[0][X].sum(axis=1)
        plug, whole = [], []
        for clusters in blocks_of_train:
            log_theta = np.log(posterior_means(train[clusters], gamma)).astype(np.float32)
            plug.append(log_sum_exp(plain @ log_theta.T))
            masses = gamma * n_columns + train[clusters].sum(axis=1, dtype=np.int64)
            scores = levels @ flat(left, train[clusters]).T
            whole.append(log_sum_exp(scores + log_whole(masses, totals[rows, None])))
        new = log_whole(gamma * n_columns, totals[rows])
        plug = log_sum_exp(np.stack(plug, axis=1)) - np.log(len(train))
        whole = np.logaddexp(
            log_sum_exp(np.stack(whole, axis=1)) + log_weights[0], new + log_weights[-1]
        )
        return plug + own[rows], whole + base + own[rows]

    own = log_coefficients(test)
    found = threaded(of_block, [(rows, own) for rows in blocks(len(test), BLOCK)])
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


# -- fits ------------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """FamilyBlock of a reference: sizes and counts are expected ones."""

    sizes: np.ndarray  # (n_components,)
    counts: np.ndarray  # (n_components, n_columns)
    log_weights: np.ndarray  # (n_components,)
    objective: float  # EM: log likelihood without coefficients; mean field: the bound


def expected(X, log_theta, log_weights):
    """Sizes, counts of the components, and the sum of the rows' log densities."""
    log_theta = log_theta.T.astype(np.float32)
    log_weights = log_weights.astype(np.float32)

    def part(rows):
        weights = X[rows] @ log_theta
        weights += log_weights
        log_density = log_sum_exp(weights).sum()
        at = np.flatnonzero(weights > LEAST)
        row, component = np.divmod(at, weights.shape[1])
        shape = weights.shape[::-1]
        sparse = csr_matrix((weights.ravel()[at], (component, row)), shape)
        return np.asarray(sparse.sum(axis=1)).ravel(), sparse @ X[rows], log_density

    sizes, counts, log_density = 0.0, 0.0, 0.0
    for each in threaded(part, [(rows,) for rows in blocks(len(X), BLOCK)]):
        sizes, counts, log_density = sizes + each[0], counts + each[1], log_density + each[2]
    return sizes, counts.astype(np.float64), log_density


def prepared(X, n_components, seed):
    """float32 rows of the columns that have counts, those columns, and random rows."""
    used = np.flatnonzero(X.any(axis=0))
    dense = np.ascontiguousarray(X[:, used], dtype=np.float32)
    rng = np.random.default_rng(seed)
    return dense, used, dense[rng.choice(len(X), n_components, replace=False)].astype(np.float64)


def spread_out(counts, used, n_columns):
    """Counts of all columns from those of the used ones."""
    whole = np.zeros((len(counts), n_columns))
    whole[:, used] = counts
    return whole


def expectation_maximisation(X, n_components, *, n_passes=30, gamma=1.0, seed=0):
    """Yield the mixture after each pass; theta is the posterior mean given expected counts."""
    dense, used, counts = prepared(X, n_components, seed)
    sizes = np.ones(n_components)
    for _ in range(n_passes):
        mass = counts.sum(axis=1, keepdims=True) + gamma * X.shape[1]
        log_weights = np.log(np.maximum(sizes, 1e-30) / sizes.sum())
        sizes, counts, objective = expected(dense, np.log((counts + gamma) / mass), log_weights)
        log_weights = np.log(np.maximum(sizes, 1e-30) / sizes.sum())
        yield Fitted(sizes, spread_out(counts, used, X.shape[1]), log_weights, objective)


def variational_bayes(X, truncation, *, n_passes=30, gamma=1.0, concentration=10.0, seed=0):
    """Yield the mean field after each pass, the components in order of their sizes.

    q = prod_t Beta(v_t) prod_t Dirichlet(theta_t) prod_i q(z_i); v_truncation = 1. Each pass
    updates q of sticks and features, then q(z); the bound is that after q(z). Sticks break best
    from the largest component on, so they are sorted before each pass.
    """
    dense, used, counts = prepared(X, truncation, seed)
    n_columns, sizes = X.shape[1], np.ones(truncation)
    for _ in range(n_passes):
        order = np.argsort(-sizes, kind="stable")
        sizes, counts = sizes[order], counts[order]
        ones, rest = 1.0 + sizes[:-1], concentration + sizes[::-1].cumsum()[::-1][1:]
        log_v, log_not = (digamma(part) - digamma(ones + rest) for part in (ones, rest))
        log_weights = np.append(log_v, 0.0) + np.append(0.0, log_not.cumsum())
        own, mass = counts + gamma, counts.sum(axis=1) + gamma * n_columns
        log_theta = digamma(own) - digamma(mass)[:, None]
        # less the divergences from the priors; a column without counts has none
        sticks = betaln(ones, rest) - betaln(1.0, concentration)
        sticks += (1.0 - ones) * log_v + (concentration - rest) * log_not
        features = (gammaln(own) - gammaln(gamma) - counts * log_theta).sum(axis=1)
        features += gammaln(gamma * n_columns) - gammaln(mass)
        bound = sticks.sum() + features.sum()
        sizes, counts, log_density = expected(dense, log_theta, log_weights)
        ones, rest = 1.0 + sizes[:-1], concentration + sizes[::-1].cumsum()[::-1][1:]
        log_means = np.append(np.log(ones / (ones + rest)), 0.0)
        log_means[1:] += np.log(rest / (ones + rest)).cumsum()
        whole = spread_out(counts, used, n_columns)
        yield Fitted(sizes, whole, log_means, bound + log_density)
