"""Densities of counts in 45 digits, from the formulas: the oracle where doubles would cancel."""

import functools
from decimal import Decimal, getcontext

import numpy as np

getcontext().prec = 45
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
BERNOULLI = [
    Decimal(a) / b
    for a, b in ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156))
]


def log_gamma(z):
    """Stirling's series beyond 100, where its last term is below 1e-24, the recurrence before."""
    z, product = Decimal(z), Decimal(1)
    while z < 100:
        product *= z
        z += 1
    series = sum(b / z ** (2 * i + 1) for i, b in enumerate(BERNOULLI))
    return (z - Decimal("0.5")) * z.ln() - z + (2 * PI).ln() / 2 + series - product.ln()


@functools.cache
def log_factorial(x):
    return log_gamma(int(x) + 1)


def poisson_log_marginal(values, shape, rate):
    shape, rate, total = Decimal(shape), Decimal(rate), sum(map(int, values))
    gammas = log_gamma(shape + total) - log_gamma(shape) - sum(map(log_factorial, values))
    return shape * rate.ln() - (shape + total) * (rate + len(values)).ln() + gammas


def poisson_log_predictive(value, values, shape, rate):
    return poisson_log_marginal([*values, value], shape, rate) - poisson_log_marginal(
        values, shape, rate
    )


def poisson_log_density(row, theta):
    """Of counts under rates exp(theta)."""
    cells = zip(map(int, row), map(Decimal, map(float, theta)))
    return sum(x * t - t.exp() - log_factorial(x) for x, t in cells)


def multinomial_log_density(row, theta):
    """Of a row under probabilities exp(theta), as they are: their sum need not be 1."""
    cells = [(int(x), Decimal(float(t))) for x, t in zip(row, theta) if x]
    return log_factorial(sum(x for x, _ in cells)) + sum(x * t - log_factorial(x) for x, t in cells)


def multinomial_log_marginal(rows, pseudo_counts):
    sums = [sum(map(int, column)) for column in zip(*rows)]
    prior = [Decimal(float(a)) for a in pseudo_counts]
    out = log_gamma(sum(prior)) - log_gamma(sum(prior) + sum(sums))
    out += sum(log_gamma(a + n) - log_gamma(a) for a, n in zip(prior, sums))
    return out + sum(log_factorial(sum(row)) - sum(map(log_factorial, row)) for row in rows)


def errors(shown, exact):
    """Of an array of floats against an array of Decimal."""
    shown = np.asarray(shown)
    out = [float(Decimal(float(a)) - b) for a, b in zip(shown.ravel(), np.ravel(exact))]
    return np.array(out).reshape(shown.shape)
