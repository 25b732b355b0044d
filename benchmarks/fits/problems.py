"""Kinds of problem, each a function of a seed: rows, held-out rows, and what is true of them.

To add a kind: a function of a seed that returns a `Problem`, under `@kind` (`real_tables.py` has
those that are read rather than simulated). The first paragraph of
its docstring stands in the documentation, in words for a reader who knows no statistics beyond a
mixture. A kind that has several sizes takes them in turn by seed.
"""

from typing import NamedTuple
from zlib import crc32

import numpy as np
from scipy.optimize import brentq

from fits.laws import Columns, Cube, Documents, Gaussians, Levels, Normal, Rates, Students, Views

N_FRESH = 1000  # held-out rows
KINDS = {}


class Problem(NamedTuple):
    """A table, and what is known of the law behind it.

    Attributes
    ----------
    train, fresh : array of shape (n_rows, n_columns)
        Rows to fit and held-out rows of the same law.
    families : str or dict
        The estimator's `families`.
    starts : list of (n_rows,) int arrays
        For each true view a partition of the training rows: the components that they were drawn
        from, or the classes of a real table.
    view_of : int array of shape (n_columns,)
        The true view of each column; zeros if there is one.
    bayes : int array or None
        What the estimator's labels are compared with. Of a mixture, the most probable component of
        each training row under the true densities; of a table in views, the true views.
    log_density : float array of shape (n_fresh,) or None
        The true log density of the held-out rows.
    estimator : str
        Name of the estimator whose defaults are tried.
    law : Law, Views or None
        What the rows were drawn from.
    """

    train: np.ndarray
    fresh: np.ndarray
    families: str | dict
    starts: list
    view_of: np.ndarray
    bayes: np.ndarray | None = None
    log_density: np.ndarray | None = None
    estimator: str = "AnnealedDPMixture"
    law: object = None


def kind(function):
    """Register a kind of problem under its function's name."""
    KINDS[function.__name__] = function
    return function


def generator(name, seed):
    """The random generator of a kind's seed."""
    return np.random.default_rng([seed, crc32(name.encode())])


def from_law(law, rng, n_rows, families, gaps=0.0):
    """The problem of rows drawn from a mixture; a share `gaps` of the cells is missing."""
    labels = law.labels(rng, n_rows)
    train = law.sample(rng, labels)
    fresh = law.sample(rng, law.labels(rng, N_FRESH))
    if gaps:
        for rows in (train, fresh):
            rows[rng.random(rows.shape) < gaps] = np.nan
    return Problem(
        train,
        fresh,
        families,
        [labels],
        np.zeros(train.shape[1], dtype=int),
        law.bayes(train),
        law.log_density(fresh),
        law=law,
    )


def covariances(rng, n, d, spread=2.0):
    """Covariances in random directions, standard deviations between 1 / spread and spread."""
    deviations = spread ** rng.uniform(-1, 1, size=(n, d))
    turns = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    return turns @ (deviations[:, :, None] ** 2 * turns.transpose(0, 2, 1))


def equal(n):
    """Equal weights."""
    return np.full(n, 1 / n)


# ---- Gaussians and what is not quite Gaussian ----------------------------------------------------


def error_of_bayes(law, rng):
    """The share of 2,000 simulated rows that the Bayes rule gives to a wrong component."""
    labels = law.labels(rng, 2000)
    return float(np.mean(law.bayes(law.sample(rng, labels)) != labels))


@kind
def overlapping(seed):
    """Fifteen overlapping Gaussians in two dimensions: 2,000 rows, equal weights, elongated shapes
    in random directions. They stand so close that even who knows them all assigns 15 % of the rows
    wrongly.
    """
    rng = generator("overlapping", seed)
    places, shapes = rng.random((15, 2)), covariances(rng, 15, 2, 1.5)

    def excess(side):
        law = Gaussians(equal(15), side * places, shapes)
        return error_of_bayes(law, np.random.default_rng(seed)) - 0.15

    side = brentq(excess, 1.0, 1000.0, xtol=0.01)
    law = Gaussians(equal(15), side * places, shapes)
    return from_law(law, rng, 2000, "multivariate_normal")


@kind
def separated(seed):
    """Eight Gaussians in four dimensions, far apart: 1,000 rows, unequal weights, means some
    fourteen standard deviations apart in a typical pair.
    """
    rng = generator("separated", seed)
    weights = rng.uniform(1, 4, 8)
    columns = [Normal(rng.normal(0, 5, 8), np.ones(8)) for _ in range(4)]
    law = Columns(weights / weights.sum(), columns)
    return from_law(law, rng, 1000, "normal")


ONE_GAUSSIAN = ((100, 2), (300, 2), (1000, 1), (1000, 5), (2000, 20))


@kind
def one_gaussian(seed):
    """One Gaussian and nothing else, in turn 100 x 2, 300 x 2, 1,000 x 1, 1,000 x 5 and 2,000 rows
    x 20 columns. The true number of clusters is one.
    """
    rng = generator("one_gaussian", seed)
    n_rows, n_columns = ONE_GAUSSIAN[seed % len(ONE_GAUSSIAN)]
    law = Columns([1.0], [Normal([0.0], [1.0])] * n_columns)
    return from_law(law, rng, n_rows, "normal")


HEAVY_TAILS = ((300, 6), (1000, 1), (1000, 2))


@kind
def heavy_tails(seed):
    """One population whose columns have heavy tails (Student's t with 4 degrees of freedom), in
    turn 300 x 6, 1,000 x 1 and 1,000 x 2. No single Gaussian fits it, so several components are no
    error; what matters is the density.
    """
    rng = generator("heavy_tails", seed)
    n_rows, n_columns = HEAVY_TAILS[seed % len(HEAVY_TAILS)]
    return from_law(Students(4, np.ones(n_columns)), rng, n_rows, "normal")


@kind
def uniform(seed):
    """Points spread evenly over a square or a cube, in turn: 1,000 rows without any cluster, whose
    sharp edges no Gaussian has.
    """
    rng = generator("uniform", seed)
    return from_law(Cube(2 + seed % 2), rng, 1000, "normal")


@kind
def rare(seed):
    """Three small clusters of 1 % each beside one large: 2,000 rows, five columns, the small ones
    about six standard deviations away.
    """
    rng = generator("rare", seed)
    directions = rng.standard_normal((3, 5))
    means = np.vstack([np.zeros(5), 6 * directions / np.linalg.norm(directions, axis=1)[:, None]])
    law = Columns([0.97, 0.01, 0.01, 0.01], [Normal(column, np.ones(4)) for column in means.T])
    return from_law(law, rng, 2000, "normal")


@kind
def correlated(seed):
    """Four groups that differ in how their columns go together more than in where they lie: 1,000
    rows, four columns, full covariances in random directions.
    """
    rng = generator("correlated", seed)
    law = Gaussians(equal(4), rng.normal(0, 1.5, (4, 4)), covariances(rng, 4, 4, 3.0))
    return from_law(law, rng, 1000, "multivariate_normal")


# ---- levels, counts, documents, gaps -------------------------------------------------------------


@kind
def levels(seed):
    """Eight clusters of categorical rows: 1,000 rows, 12 columns of four levels, whose
    probabilities differ from cluster to cluster.
    """
    rng = generator("levels", seed)
    shares = rng.dirichlet(np.full(4, 0.5), size=(12, 8))
    return from_law(Columns(equal(8), map(Levels, shares)), rng, 1000, "categorical")


@kind
def counts(seed):
    """Five clusters of counts: 1,000 rows, six columns of Poisson counts with means around 5."""
    rng = generator("counts", seed)
    rates = rng.gamma(2.0, 2.5, size=(6, 5))
    return from_law(Columns(equal(5), map(Rates, rates)), rng, 1000, "poisson")


@kind
def documents(seed):
    """Ten topics: 1,000 documents of about 60 words out of a vocabulary of 200. A document has one
    topic.
    """
    rng = generator("documents", seed)
    topics = rng.dirichlet(np.full(200, 0.2), size=10) + 1e-4
    law = Documents(equal(10), topics / topics.sum(axis=1, keepdims=True), 60)
    problem = from_law(law, rng, 1000, "multinomial")
    return problem._replace(train=problem.train.astype(int), fresh=problem.fresh.astype(int))


@kind
def mixed_with_gaps(seed):
    """Six clusters of rows with numbers, levels and counts, three columns each; 15 % of the cells
    of all 1,000 rows are missing at random.
    """
    rng = generator("mixed_with_gaps", seed)
    columns = [
        *(Normal(rng.normal(0, 2, 6), np.ones(6)) for _ in range(3)),
        *map(Levels, rng.dirichlet(np.full(4, 0.5), size=(3, 6))),
        *map(Rates, rng.gamma(2.0, 2.5, size=(3, 6))),
    ]
    families = {"normal": [0, 1, 2], "categorical": [3, 4, 5], "poisson": [6, 7, 8]}
    return from_law(Columns(equal(6), columns), rng, 1000, families, gaps=0.15)


# ---- tables in views -----------------------------------------------------------------------------

# rows, views, columns of each view
TABLES = (
    (500, 1, 12),
    (500, 4, 3),
    (1000, 2, 10),
    (1000, 8, 5),
    (2000, 3, 25),
    (10_000, 4, 10),
    (50_000, 8, 10),
)


@kind
def tables(seed):
    """Tables whose columns fall into independent views, each with row clusters of its own, for
    `CrossCatPY`: in turn 500 rows of one view, then up to 50,000 rows of eight views, 3 to 25
    columns each, half of them numbers and half of four levels; four to eight clusters per view.
    """
    n_rows, n_views, width = TABLES[seed % len(TABLES)]
    return in_views(generator("tables", seed), n_rows, n_views, width, (width + 1) // 2)


def in_views(rng, n_rows, n_views, width, n_numbers, n_clusters=(4, 8), n_levels=4, evenness=5.0):
    """The problem of a table in independent views.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_rows, n_views : int
    width, n_numbers : int
        Columns of each view, and how many of them are numbers; the others have `n_levels` levels.
    n_clusters : (int, int)
        Of a view: at least, at most.
    evenness : float
        The weights of a view's clusters are Dirichlet with this parameter.
    """
    view_of = rng.permutation(np.repeat(np.arange(n_views), width))
    laws = []
    for _ in range(n_views):
        k = int(rng.integers(n_clusters[0], n_clusters[1] + 1))
        numbers = [Normal(rng.normal(0, 2, k), np.ones(k)) for _ in range(n_numbers)]
        shares = rng.dirichlet(np.full(n_levels, 0.5), size=(width - n_numbers, k))
        weights = rng.dirichlet(np.full(k, evenness))
        laws.append(Columns(weights, [*numbers, *map(Levels, shares)]))
    law = Views(laws, view_of)
    labels = law.labels(rng, n_rows)
    train = law.sample(rng, labels)
    fresh = law.sample(rng, law.labels(rng, N_FRESH))
    families = np.array(
        [law.laws[v].columns[np.sum(view_of[:j] == v)].family for j, v in enumerate(view_of)]
    )
    return Problem(
        train,
        fresh,
        {name: np.flatnonzero(families == name).tolist() for name in np.unique(families)[::-1]},
        labels,
        view_of,
        bayes=view_of,
        log_density=law.log_density(fresh),
        estimator="CrossCatPY",
        law=law,
    )
