"""Laws that rows are drawn from: mixtures whose densities are known exactly.

A law has `log_weights` of its components, `sample(rng, labels)` for rows of given components, and
`log_densities(rows)` of shape (n_rows, n_components). A cell that is NaN is missing, and the
density is that of the others; only laws of independent columns bear that.
"""

from math import lgamma

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy
from scipy.stats import t as student_t

TINY = 1e-6  # a level's probability is at least about this, so that no held-out row is impossible


class Law:
    """Base: a mixture with the given weights."""

    def __init__(self, weights):
        self.log_weights = np.log(weights)

    def labels(self, rng, n_rows):
        """Components of rows drawn from the mixture: (n_rows,)."""
        return rng.choice(len(self.log_weights), size=n_rows, p=np.exp(self.log_weights))

    def joint(self, rows):
        """Log weight plus log density in each component: (n_rows, n_components)."""
        return self.log_densities(rows) + self.log_weights

    def log_density(self, rows):
        """Log density of each row: (n_rows,)."""
        return logsumexp(self.joint(rows), axis=1)

    def bayes(self, rows):
        """The most probable component of each row, the Bayes rule: (n_rows,)."""
        return self.joint(rows).argmax(axis=1)


class Gaussians(Law):
    """Gaussian components; means (n_components, d), covariances (n_components, d, d)."""

    def __init__(self, weights, means, covariances):
        super().__init__(weights)
        self.means, self.covariances = np.asarray(means), np.asarray(covariances)

    def sample(self, rng, labels):
        factors = np.linalg.cholesky(self.covariances)
        noise = rng.standard_normal((len(labels), self.means.shape[1]))
        return self.means[labels] + np.einsum("nij,nj->ni", factors[labels], noise)

    def log_densities(self, rows):
        difference = rows[:, None] - self.means
        squares = np.einsum(
            "nki,kij,nkj->nk", difference, np.linalg.inv(self.covariances), difference
        )
        log_determinants = np.linalg.slogdet(self.covariances)[1]
        return -0.5 * (squares + log_determinants + self.means.shape[1] * np.log(2 * np.pi))


class Normal:
    """A column of numbers; means and standard deviations, one per component."""

    family = "normal"

    def __init__(self, means, deviations):
        self.means, self.deviations = np.asarray(means), np.asarray(deviations)

    def sample(self, rng, labels):
        return rng.normal(self.means[labels], self.deviations[labels])

    def log_densities(self, cells):
        z = (cells[:, None] - self.means) / self.deviations
        return -0.5 * z**2 - np.log(self.deviations) - 0.5 * np.log(2 * np.pi)


class Levels:
    """A categorical column; probabilities of shape (n_components, n_levels), rows coded from 0."""

    family = "categorical"

    def __init__(self, probabilities):
        self.probabilities = (probabilities + TINY) / (probabilities + TINY).sum(1, keepdims=True)

    def sample(self, rng, labels):
        bounds = np.cumsum(self.probabilities, axis=1)[labels, :-1]
        return (rng.random(len(labels))[:, None] > bounds).sum(axis=1).astype(float)

    def log_densities(self, cells):
        return np.log(self.probabilities)[:, cells.astype(int)].T


class Rates:
    """A column of Poisson counts; one rate per component."""

    family = "poisson"

    def __init__(self, rates):
        self.rates = np.asarray(rates)

    def sample(self, rng, labels):
        return rng.poisson(self.rates[labels]).astype(float)

    def log_densities(self, cells):
        return xlogy(cells[:, None], self.rates) - self.rates - gammaln(cells[:, None] + 1)


class Columns(Law):
    """Columns (`Normal`, `Levels`, `Rates`) that are independent within a component."""

    def __init__(self, weights, columns):
        super().__init__(weights)
        self.columns = list(columns)

    def sample(self, rng, labels):
        return np.column_stack([column.sample(rng, labels) for column in self.columns])

    def log_densities(self, rows):
        total = np.zeros((len(rows), len(self.log_weights)))
        for column, cells in zip(self.columns, rows.T):
            known = ~np.isnan(cells)
            total[known] += column.log_densities(cells[known])
        return total


class Students(Law):
    """One component of independent columns, each Student's t times a scale."""

    def __init__(self, degrees, scales):
        super().__init__([1.0])
        self.degrees, self.scales = degrees, np.asarray(scales)

    def sample(self, rng, labels):
        return rng.standard_t(self.degrees, size=(len(labels), len(self.scales))) * self.scales

    def log_densities(self, rows):
        return student_t.logpdf(rows, self.degrees, scale=self.scales).sum(axis=1, keepdims=True)


class Cube(Law):
    """One component: the uniform law on the unit cube."""

    def __init__(self, n_columns):
        super().__init__([1.0])
        self.n_columns = n_columns

    def sample(self, rng, labels):
        return rng.random((len(labels), self.n_columns))

    def log_densities(self, rows):
        inside = ((rows >= 0) & (rows <= 1)).all(axis=1, keepdims=True)
        return np.where(inside, 0.0, -np.inf)


class Documents(Law):
    """Multinomial rows given their totals; topics of shape (n_components, n_words)."""

    def __init__(self, weights, topics, mean_total):
        super().__init__(weights)
        self.topics, self.mean_total = np.asarray(topics), mean_total

    def sample(self, rng, labels):
        totals = 1 + rng.poisson(self.mean_total - 1, size=len(labels))
        return np.stack([rng.multinomial(n, self.topics[k]) for n, k in zip(totals, labels)])

    def log_densities(self, rows):
        coefficients = [lgamma(row.sum() + 1) - gammaln(row + 1).sum() for row in rows]
        return xlogy(rows[:, None], self.topics).sum(axis=2) + np.array(coefficients)[:, None]


class Views:
    """Independent views of the columns, each a law of its own; `view_of` gives a column's view."""

    def __init__(self, laws, view_of):
        self.laws, self.view_of = laws, np.asarray(view_of)

    def _parts(self, rows):
        return [(law, rows[:, self.view_of == v]) for v, law in enumerate(self.laws)]

    def sample(self, rng, labels):
        rows = np.empty((len(labels[0]), len(self.view_of)))
        for v, law in enumerate(self.laws):
            rows[:, self.view_of == v] = law.sample(rng, labels[v])
        return rows

    def labels(self, rng, n_rows):
        """Components of rows in each view: a list of (n_rows,)."""
        return [law.labels(rng, n_rows) for law in self.laws]

    def log_density(self, rows):
        """Log density of each row: (n_rows,)."""
        return np.sum([law.log_density(part) for law, part in self._parts(rows)], axis=0)
