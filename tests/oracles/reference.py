"""Slow oracles of the collapsed likelihood families, for one feature of one cluster.

A feature is a column, or for the row families a row of d cells, given as a sequence of d numbers.

With x_1..x_n the observed values of the cluster (missing cells add nothing and score 0):

normal       x ~ N(mu, s2), mu ~ N(mu0, s2 / kappa0), s2 ~ nu0 sigma2_0 / chi^2(nu0)
             kappa_n = kappa0 + n, nu_n = nu0 + n,
             nu_n s_n = nu0 sigma2_0 + sum (x - mean)^2 + kappa0 n (mean - mu0)^2 / kappa_n
             m(x) = pi^(-n/2) sqrt(kappa0 / kappa_n) G(nu_n/2) / G(nu0/2)
                    (nu0 sigma2_0)^(nu0/2) / (nu_n s_n)^(nu_n/2)
             predictive: Student t, nu_n degrees of freedom, scale^2 = s_n (1 + 1 / kappa_n)
categorical  levels 0..L-1, Dirichlet(a_1..a_L), A = sum a:
             m(x) = G(A) / G(A + n) prod_l G(a_l + n_l) / G(a_l);  predictive (a_l + n_l) / (A + n);
             a value that is no level of the fit: a_min / (n + A + a_min)
bernoulli    Beta(a, b), a belongs to true
poisson      Gamma(shape, rate); 1 / x! is in the marginal and in the predictive
gamma_exponential
             x ~ Exponential(r), r ~ Gamma(a, b):  m(x) = G(a + n) / G(a) b^a / (b + sum x)^(a + n)
             predictive: (a + n) (b + S)^(a + n) / (b + S + x)^(a + n + 1) with S = sum x
log_normal   log x as of normal; the Jacobian: m(x) = m_normal(log x) / prod x, and the predictive
             Student t of log x, over x
semi_continuous
             a value is one of the ATOMS or stands elsewhere; Dirichlet(b, a, .., a) of which, and
             elsewhere x as of normal: the product of the two marginals, and of the two predictives,
             of which an atom has the first alone
semi_continuous_log_normal
             the same with AMOUNT_ATOMS, and elsewhere x as of log_normal
negative_binomial
             x ~ NB(r, p), C(x) p^r (1 - p)^x with C(x) = G(x + r) / (x! G(r)), p ~ Beta(a, b):
             m(x) = B(a + n r, b + sum x) / B(a, b) prod C(x), the beta functions in 45 digits
multinomial  a value is a row of counts x_1..x_D of sum X; Dirichlet(a_1..a_D), A = sum a, or one a
             for all; N = sum of all n_j = sum of all rows' x_j:
             m(x) = G(A) / G(A + N) prod_j G(a_j + n_j) / G(a_j) prod_rows X! / prod_j x_j!
multivariate_normal
             x ~ N(mu, V), mu ~ N(mu0, V / kappa0), V ~ inverse Wishart(nu0, scale0)
             Psi_n = scale0 + sum (x - mean)(x - mean)'
                     + kappa0 n (mean - mu0)(mean - mu0)' / kappa_n
             m(x) = pi^(-n d/2) (kappa0 / kappa_n)^(d/2) G_d(nu_n/2) / G_d(nu0/2)
                    |scale0|^(nu0/2) / |Psi_n|^(nu_n/2)
             predictive: multivariate t, nu_n - d + 1 degrees of freedom, centre mu_n,
             shape Psi_n (kappa_n + 1) / (kappa_n (nu_n - d + 1))
multivariate_log_normal
             log x as of multivariate_normal; the Jacobian: m(x) = m_multivariate_normal(log x) /
             prod of all x, and the predictive over the product of the row
known_normal x ~ N(mu, covariance), mu ~ N(prior_mean, prior_covariance): the rows of a cluster
             are jointly normal, with prior_covariance between any two of them

The sums of squares are exact rationals, so that no rounding is shared with the package, and a
marginal is never computed from predictives or the reverse: their agreement is a test.
Source: Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), section 5;
Gelman et al., Bayesian Data Analysis, chapter 2. ``integrated_log_marginal`` uses neither: it
integrates prior times likelihood numerically.
"""

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
from scipy import integrate, special, stats

from oracles import large_counts


def is_missing(value):
    """Whether a cell is None or NaN."""
    return value is None or value != value


def observed(values):
    """The values of a cluster that are not missing, as a list."""
    return [value for value in values if not is_missing(value)]


# ---------------------------------------------------------------------------- normal
def _normal_posterior(values, hyper):
    """Exact (n, kappa_n, nu_n, mu_n, nu_n s_n) as rationals."""
    exact = [Fraction(float(value)) for value in values]
    mu0, kappa0, nu0, sigma2_0 = (
        Fraction(float(hyper[name])) for name in ("mu0", "kappa0", "nu0", "sigma2_0")
    )
    n = len(exact)
    mean = sum(exact, Fraction(0)) / n if n else mu0
    squares = sum(((value - mean) ** 2 for value in exact), Fraction(0))
    kappa_n = kappa0 + n
    mu_n = (kappa0 * mu0 + n * mean) / kappa_n
    total = nu0 * sigma2_0 + squares + kappa0 * n * (mean - mu0) ** 2 / kappa_n
    return n, kappa_n, nu0 + n, mu_n, total


def _normal_log_marginal(values, hyper):
    n, kappa_n, nu_n, _, total = _normal_posterior(values, hyper)
    kappa0, nu0, sigma2_0 = (float(hyper[name]) for name in ("kappa0", "nu0", "sigma2_0"))
    return (
        math.lgamma(nu_n / 2)
        - math.lgamma(nu0 / 2)
        + 0.5 * math.log(kappa0 / kappa_n)
        + 0.5 * nu0 * math.log(nu0 * sigma2_0)
        - 0.5 * float(nu_n) * math.log(total)
        - 0.5 * n * math.log(math.pi)
    )


def _normal_log_predictive(value, values, hyper):
    _, kappa_n, nu_n, mu_n, total = _normal_posterior(values, hyper)
    scale2 = total / nu_n * (1 + 1 / kappa_n)
    squared = (Fraction(float(value)) - mu_n) ** 2 / (nu_n * scale2)
    return (
        math.lgamma((nu_n + 1) / 2)
        - math.lgamma(nu_n / 2)
        - 0.5 * math.log(math.pi * nu_n * scale2)
        - 0.5 * float(nu_n + 1) * math.log1p(squared)
    )


# ----------------------------------------------------------------------- categorical
def _level(value, n_levels):
    """The level as an integer, or None where the fit has no such level."""
    level = int(value)
    return level if level == value and 0 <= level < n_levels else None


def _level_counts(values, n_levels):
    counts = [0] * n_levels
    for value in values:
        level = _level(value, n_levels)
        if level is None:
            raise ValueError(f"{value!r} is not one of the {n_levels} levels")
        counts[level] += 1
    return counts


def _categorical_log_marginal(values, hyper):
    pseudo_counts = [float(a) for a in hyper["pseudo_counts"]]
    counts = _level_counts(values, len(pseudo_counts))
    total = math.fsum(pseudo_counts)
    return (
        math.lgamma(total)
        - math.lgamma(total + len(values))
        + math.fsum(
            math.lgamma(a + n) - math.lgamma(a) for a, n in zip(pseudo_counts, counts, strict=True)
        )
    )


def _categorical_log_predictive(value, values, hyper):
    pseudo_counts = [float(a) for a in hyper["pseudo_counts"]]
    counts = _level_counts(values, len(pseudo_counts))
    total = math.fsum(pseudo_counts) + len(values)
    level = _level(value, len(pseudo_counts))
    if level is None:
        least = min(pseudo_counts)
        return math.log(least / (total + least))
    return math.log((pseudo_counts[level] + counts[level]) / total)


# ------------------------------------------------------------------------- bernoulli
def _bernoulli_log_marginal(values, hyper):
    a, b = float(hyper["a"]), float(hyper["b"])
    n_true = sum(1 for value in values if value)
    n_false = len(values) - n_true
    return (
        math.lgamma(a + n_true)
        + math.lgamma(b + n_false)
        - math.lgamma(a + b + len(values))
        - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
    )


def _bernoulli_log_predictive(value, values, hyper):
    a, b = float(hyper["a"]), float(hyper["b"])
    n_true = sum(1 for other in values if other)
    weight = a + n_true if value else b + len(values) - n_true
    return math.log(weight / (a + b + len(values)))


# --------------------------------------------------------------------------- poisson
def _poisson_log_marginal(values, hyper):
    shape, rate = float(hyper["shape"]), float(hyper["rate"])
    total = sum(int(value) for value in values)
    return (
        shape * math.log(rate)
        - math.lgamma(shape)
        + math.lgamma(shape + total)
        - (shape + total) * math.log(rate + len(values))
        - math.fsum(math.lgamma(int(value) + 1) for value in values)
    )


def _poisson_log_predictive(value, values, hyper):
    shape = float(hyper["shape"]) + sum(int(other) for other in values)
    rate = float(hyper["rate"]) + len(values)
    count = int(value)
    return (
        math.lgamma(shape + count)
        - math.lgamma(shape)
        - math.lgamma(count + 1)
        + shape * math.log(rate / (rate + 1))
        - count * math.log(rate + 1)
    )


# ----------------------------------------------------------------- gamma_exponential
def _gamma_exponential_posterior(values, hyper):
    """Exact (a + n, b + S) as rationals."""
    total = sum((Fraction(float(value)) for value in values), Fraction(float(hyper["b"])))
    return Fraction(float(hyper["a"])) + len(values), total


def _gamma_exponential_log_marginal(values, hyper):
    a, b = float(hyper["a"]), float(hyper["b"])
    alpha, beta = _gamma_exponential_posterior(values, hyper)
    return math.lgamma(alpha) - math.lgamma(a) + a * math.log(b) - float(alpha) * math.log(beta)


def _gamma_exponential_log_predictive(value, values, hyper):
    alpha, beta = _gamma_exponential_posterior(values, hyper)
    return math.log(alpha / beta) - float(alpha + 1) * math.log1p(Fraction(float(value)) / beta)


# ------------------------------------------------------------------------ log_normal
def _log_normal_log_marginal(values, hyper):
    logs = [math.log(value) for value in values]
    return _normal_log_marginal(logs, hyper) - math.fsum(logs)


def _log_normal_log_predictive(value, values, hyper):
    logs = [math.log(other) for other in values]
    return _normal_log_predictive(math.log(value), logs, hyper) - math.log(value)


# --------------------------------------- semi_continuous, semi_continuous_log_normal
ATOMS = [-0.5, 0.0]
AMOUNT_ATOMS = [0.0, 1.0]


def _which(values, atoms=ATOMS):
    """Of each value 0 elsewhere, l at the l-th atom."""
    return [1 + atoms.index(value) if value in atoms else 0 for value in values]


def _of_which(hyper):
    return {"pseudo_counts": [hyper["b"]] + [hyper["a"]] * len(ATOMS)}


def _elsewhere(values, atoms=ATOMS):
    return [value for value in values if value not in atoms]


def _semi_log_marginal(values, hyper, atoms, of_numbers):
    """`of_numbers` is the log marginal of what is elsewhere."""
    of_which = _categorical_log_marginal(_which(values, atoms), _of_which(hyper))
    return of_which + of_numbers(_elsewhere(values, atoms), hyper)


def _semi_log_predictive(value, values, hyper, atoms, of_number):
    (which,) = _which([value], atoms)
    log_share = _categorical_log_predictive(which, _which(values, atoms), _of_which(hyper))
    if which > 0:
        return log_share
    return log_share + of_number(value, _elsewhere(values, atoms), hyper)


# ----------------------------------------------------------------- negative_binomial
def _log_count_ways(x, r):
    return math.lgamma(int(x) + r) - math.lgamma(int(x) + 1) - math.lgamma(r)


def _log_beta(values, hyper):
    """log B(a + n r, b + sum x)."""
    r, a, b = (Fraction(float(hyper[name])) for name in ("r", "a", "b"))
    ends = a + len(values) * r, b + sum(int(value) for value in values)
    first, second, both = (
        large_counts.log_gamma(Decimal(z.numerator) / z.denominator) for z in (*ends, sum(ends))
    )
    return first + second - both


def _negative_binomial_log_marginal(values, hyper):
    ratio = float(_log_beta(values, hyper) - _log_beta([], hyper))
    return ratio + math.fsum(_log_count_ways(value, float(hyper["r"])) for value in values)


def _negative_binomial_log_predictive(value, values, hyper):
    ratio = float(_log_beta([*values, value], hyper) - _log_beta(values, hyper))
    return ratio + _log_count_ways(value, float(hyper["r"]))


# ----------------------------------------------------------------------- multinomial
def _pseudo_counts(hyper, n_columns):
    given = hyper["pseudo_counts"]
    return [float(a) for a in (given if np.ndim(given) else [given] * n_columns)]


def _log_ways(row):
    return math.lgamma(sum(row) + 1) - math.fsum(math.lgamma(count + 1) for count in row)


def _multinomial_log_marginal(values, hyper):
    if not values:
        return 0.0
    pseudo_counts = _pseudo_counts(hyper, len(values[0]))
    sums = [sum(counts) for counts in zip(*values, strict=True)]
    total = math.fsum(pseudo_counts)
    return (
        math.lgamma(total)
        - math.lgamma(total + sum(sums))
        + math.fsum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(pseudo_counts, sums))
        + math.fsum(map(_log_ways, values))
    )


def _multinomial_log_predictive(value, values, hyper):
    # One item after another from the urn that holds the pseudo-counts and the cluster's counts.
    weights = _pseudo_counts(hyper, len(value))
    for row in values:
        weights = [weight + count for weight, count in zip(weights, row, strict=True)]
    total, drawn, log_probability = math.fsum(weights), 0, 0.0
    for weight, count in zip(weights, value, strict=True):
        for i in range(int(count)):
            log_probability += math.log((weight + i) / (total + drawn))
            drawn += 1
    return log_probability + _log_ways(value)


# --------------------------------------------------------------- multivariate_normal
def _mvn_hyper(hyper):
    mu0, scale0 = np.asarray(hyper["mu0"], float), np.asarray(hyper["scale0"], float)
    return mu0, float(hyper["kappa0"]), float(hyper["nu0"]), scale0


def _mvn_posterior(values, hyper):
    """(kappa_n, nu_n, mu_n, Psi_n); the sums of products in extended precision."""
    mu0, kappa0, nu0, scale0 = _mvn_hyper(hyper)
    rows = np.array(values, dtype=np.longdouble).reshape(len(values), len(mu0))
    n = len(rows)
    mean = rows.sum(axis=0) / n if n else np.array(mu0, np.longdouble)
    total = np.array(scale0, np.longdouble)
    for row in rows:
        total = total + np.outer(row - mean, row - mean)
    total = total + np.outer(mean - mu0, mean - mu0) * (kappa0 * n / (kappa0 + n))
    centre = (kappa0 * mu0 + n * mean) / (kappa0 + n)
    return kappa0 + n, nu0 + n, centre, total


def _log_det(matrix):
    """By elimination, in extended precision."""
    left = np.array(matrix, dtype=np.longdouble)
    out = np.longdouble(0)
    while len(left):
        out += np.log(left[0, 0])
        left = left[1:, 1:] - np.outer(left[1:, 0], left[0, 1:]) / left[0, 0]
    return out


def _squared_distance(matrix, vector):
    """v' M^-1 v = 1 - |M - v v'| / |M|, but by elimination of the bordered matrix."""
    border = np.block([[matrix, vector[:, None]], [vector[None], np.zeros((1, 1))]])
    left = np.array(border, dtype=np.longdouble)
    for _ in range(len(vector)):
        left = left[1:, 1:] - np.outer(left[1:, 0], left[0, 1:]) / left[0, 0]
    return -left[0, 0]


def _log_gamma_d(x, d):
    """Log of the multivariate gamma function."""
    return d * (d - 1) / 4 * math.log(math.pi) + math.fsum(math.lgamma(x - j / 2) for j in range(d))


def _mvn_log_marginal(values, hyper):
    mu0, kappa0, nu0, scale0 = _mvn_hyper(hyper)
    kappa_n, nu_n, _, total = _mvn_posterior(values, hyper)
    n, d = len(values), len(mu0)
    return (
        -0.5 * n * d * math.log(math.pi)
        + 0.5 * d * math.log(kappa0 / kappa_n)
        + _log_gamma_d(nu_n / 2, d)
        - _log_gamma_d(nu0 / 2, d)
        + 0.5 * nu0 * _log_det(scale0)
        - 0.5 * nu_n * _log_det(total)
    )


def _mvn_log_predictive(value, values, hyper):
    kappa_n, nu_n, centre, total = _mvn_posterior(values, hyper)
    d = len(centre)
    degrees = nu_n - d + 1
    shape = total * (kappa_n + 1) / (kappa_n * degrees)
    squared = _squared_distance(shape, np.asarray(value, np.longdouble) - centre)
    return (
        math.lgamma((degrees + d) / 2)
        - math.lgamma(degrees / 2)
        - 0.5 * d * math.log(degrees * math.pi)
        - 0.5 * _log_det(shape)
        - 0.5 * (degrees + d) * np.log1p(squared / degrees)
    )


# ---------------------------------------------------------------------- known_normal
def _known_hyper(hyper):
    names = ("covariance", "prior_mean", "prior_covariance")
    return (np.asarray(hyper[name], dtype=np.longdouble) for name in names)


def _known_log_marginal(values, hyper):
    covariance, prior_mean, prior_covariance = _known_hyper(hyper)
    n, d = len(values), len(prior_mean)
    if n == 0:
        return 0.0
    joint = np.kron(np.eye(n), covariance) + np.kron(np.ones((n, n)), prior_covariance)
    shifts = (np.array(values, dtype=np.longdouble) - prior_mean).ravel()
    squared = _squared_distance(joint, shifts)
    return -0.5 * (n * d * math.log(2 * math.pi) + _log_det(joint) + squared)


def _known_log_predictive(value, values, hyper):
    covariance, prior_mean, prior_covariance = _known_hyper(hyper)
    n, d = len(values), len(prior_mean)
    total = np.array(values, dtype=np.longdouble).reshape(n, d).sum(axis=0)
    # the mean's posterior: N(centre, spread), spread = (V0^-1 + n V^-1)^-1 = V0 (V + n V0)^-1 V
    inner = np.linalg.inv(np.array(covariance + n * prior_covariance, dtype=float))
    gain = np.array(prior_covariance, dtype=float) @ inner
    centre = prior_mean + gain @ (total - n * prior_mean)
    shape = covariance + gain @ covariance
    squared = _squared_distance(shape, np.asarray(value, np.longdouble) - centre)
    return -0.5 * (d * math.log(2 * math.pi) + _log_det(shape) + squared)


# ------------------------------------------------------- prior x likelihood, integrated
def _logs_of_rows(rows):
    return [tuple(map(math.log, row)) for row in rows]


def _mvln_log_marginal(values, hyper):
    logs = _logs_of_rows(values)
    return _mvn_log_marginal(logs, hyper) - math.fsum(x for row in logs for x in row)


def _mvln_log_predictive(value, values, hyper):
    (own,) = _logs_of_rows([value])
    return _mvn_log_predictive(own, _logs_of_rows(values), hyper) - math.fsum(own)


def _mvln_integral(values, hyper):
    logs = _logs_of_rows(values)
    return _mvn_integral(logs, hyper) - sum(x for row in logs for x in row)


def _mvn_integral(values, hyper):
    # V = C C', C lower with diagonal exp(a), exp(b) and entry c exp(a); mu in closed form given V
    mu0, kappa0, nu0, scale0 = _mvn_hyper(hyper)
    n = len(values)
    a, b, c = np.meshgrid(
        np.linspace(-5, 7, 141), np.linspace(-5, 7, 141), np.sinh(np.linspace(-6, 6, 241)),
        indexing="ij",
    )  # fmt: skip
    steps = 12 / 140 * 12 / 140 * 12 / 240
    # of V = [[A^2, A^2 c], [., A^2 c^2 + B^2]]: |dV / d(a, b, c)| = 4 A^4 B^2
    jacobian = math.log(4) + 4 * a + 2 * b + 0.5 * np.log1p(c**2)
    log_det = 2 * a + 2 * b

    def squared(x, y):
        """x' V^-1 x"""
        return (x * np.exp(-a)) ** 2 + ((y - c * x) * np.exp(-b)) ** 2

    def trace(matrix):
        """tr(matrix V^-1) through the matrix's own square root."""
        values, vectors = np.linalg.eigh(matrix)
        return sum(
            squared(*(root * column))
            for root, column in zip(np.maximum(values, 0) ** 0.5, vectors.T)
        )

    log_density = (
        -0.5 * (nu0 + 3) * log_det
        - 0.5 * trace(scale0)
        + 0.5 * nu0 * float(_log_det(scale0))
        - nu0 * math.log(2)
        - _log_gamma_d(nu0 / 2, 2)
    )
    # rows given V: deviations from mu0 have covariance (1 + 1 1' / kappa0) kron V
    rows = np.asarray(values, dtype=float).reshape(n, 2) - mu0
    among = np.linalg.inv(np.eye(n) + np.ones((n, n)) / kappa0)
    if n:
        log_density = log_density - 0.5 * trace(rows.T @ among @ rows)
    log_density = log_density - 0.5 * n * log_det - n * math.log(2 * math.pi)
    log_density = log_density - 0.5 * 2 * math.log(1 + n / kappa0)
    return special.logsumexp(log_density + jacobian) + math.log(steps)


def _known_integral(values, hyper):
    covariance, prior_mean, prior_covariance = (np.asarray(v, float) for v in _known_hyper(hyper))
    grid = np.stack(np.meshgrid(np.linspace(-12, 12, 601), np.linspace(-12, 12, 601)), axis=-1)
    log_density = stats.multivariate_normal.logpdf(grid, prior_mean, prior_covariance)
    for value in values:
        log_density = log_density + stats.multivariate_normal.logpdf(
            np.asarray(value) - grid, np.zeros(2), covariance
        )
    return special.logsumexp(log_density) + 2 * math.log(24 / 600)


def _normal_integral(values, hyper):
    # mu = mu0 + sqrt(s2) z keeps one grid of z wide enough and fine enough for every s2.
    log_s2 = np.linspace(-9.0, 45.0, 1081)[:, None]
    z = np.linspace(-45.0, 45.0, 1201)[None, :]
    s2, root = np.exp(log_s2), np.exp(log_s2 / 2)
    nu0 = hyper["nu0"]
    log_density = stats.invgamma.logpdf(s2, nu0 / 2, scale=nu0 * hyper["sigma2_0"] / 2) + log_s2
    log_density = log_density + stats.norm.logpdf(z, 0, 1 / math.sqrt(hyper["kappa0"]))
    for value in values:
        log_density = (
            log_density + stats.norm.logpdf((value - hyper["mu0"]) / root - z) - log_s2 / 2
        )
    cell = (log_s2[1, 0] - log_s2[0, 0]) * (z[0, 1] - z[0, 0])
    return special.logsumexp(log_density) + math.log(cell)


def _log_normal_integral(values, hyper):
    return _normal_integral(np.log(values), hyper) - np.log(values).sum()


def _categorical_integral(values, hyper):
    # Sticks p = u, (1 - u) v, (1 - u) (1 - v) on logit scales: smooth, and no end is singular.
    pseudo_counts = np.asarray(hyper["pseudo_counts"], dtype=float)
    counts = _level_counts(values, len(pseudo_counts))
    grid = np.linspace(-50.0, 50.0, 801)
    left, right = special.expit(grid), special.expit(-grid)
    if len(counts) == 2:
        probabilities = np.array([left, right])
        log_jacobian = np.log(left * right)
    elif len(counts) == 3:
        u, v = (axis.ravel() for axis in np.meshgrid(left, left))
        one_u, one_v = (axis.ravel() for axis in np.meshgrid(right, right))
        probabilities = np.array([u, one_u * v, one_u * one_v])
        log_jacobian = np.log(u * one_u * v * one_v) + np.log(one_u)
    else:
        raise ValueError("the numerical integral is written for 2 or 3 levels")
    log_density = stats.dirichlet.logpdf(probabilities, pseudo_counts) + log_jacobian
    log_density = log_density + np.asarray(counts) @ np.log(probabilities)
    return special.logsumexp(log_density) + (len(counts) - 1) * math.log(grid[1] - grid[0])


def _semi_integral(values, hyper, atoms, of_numbers):
    of_which = _categorical_integral(_which(values, atoms), _of_which(hyper))
    return of_which + of_numbers(_elsewhere(values, atoms), hyper)


def _negative_binomial_integral(values, hyper):
    def density(p):
        likelihood = math.prod(stats.nbinom.pmf(int(value), hyper["r"], p) for value in values)
        return stats.beta.pdf(p, hyper["a"], hyper["b"]) * likelihood

    return math.log(integrate.quad(density, 0, 1)[0])


def _multinomial_integral(values, hyper):
    n_columns = len(values[0]) if values else 3
    items = [j for row in values for j, count in enumerate(row) for _ in range(count)]
    levels = {"pseudo_counts": _pseudo_counts(hyper, n_columns)}
    return _categorical_integral(items, levels) + math.fsum(map(_log_ways, values))


def _bernoulli_integral(values, hyper):
    def density(p):
        likelihood = math.prod(stats.bernoulli.pmf(int(value), p) for value in values)
        return stats.beta.pdf(p, hyper["a"], hyper["b"]) * likelihood

    return math.log(integrate.quad(density, 0, 1)[0])


def _poisson_integral(values, hyper):
    def density(rate):
        likelihood = math.prod(stats.poisson.pmf(int(value), rate) for value in values)
        return stats.gamma.pdf(rate, hyper["shape"], scale=1 / hyper["rate"]) * likelihood

    middle = (hyper["shape"] + sum(values)) / (hyper["rate"] + len(values))
    return math.log(
        integrate.quad(density, 0, middle)[0] + integrate.quad(density, middle, np.inf)[0]
    )


def _gamma_exponential_integral(values, hyper):
    def density(rate):
        likelihood = math.prod(stats.expon.pdf(value, scale=1 / rate) for value in values)
        return stats.gamma.pdf(rate, hyper["a"], scale=1 / hyper["b"]) * likelihood

    middle = (hyper["a"] + len(values)) / (hyper["b"] + sum(values))
    return math.log(
        integrate.quad(density, 0, middle)[0] + integrate.quad(density, middle, np.inf)[0]
    )


# ------------------------------------------------------------------------ public face
_LOG_MARGINAL = {
    "normal": _normal_log_marginal,
    "categorical": _categorical_log_marginal,
    "bernoulli": _bernoulli_log_marginal,
    "poisson": _poisson_log_marginal,
    "gamma_exponential": _gamma_exponential_log_marginal,
    "log_normal": _log_normal_log_marginal,
    "semi_continuous": partial(_semi_log_marginal, atoms=ATOMS, of_numbers=_normal_log_marginal),
    "semi_continuous_log_normal": partial(
        _semi_log_marginal, atoms=AMOUNT_ATOMS, of_numbers=_log_normal_log_marginal
    ),
    "negative_binomial": _negative_binomial_log_marginal,
    "multinomial": _multinomial_log_marginal,
    "multivariate_normal": _mvn_log_marginal,
    "multivariate_log_normal": _mvln_log_marginal,
    "known_normal": _known_log_marginal,
}
_LOG_PREDICTIVE = {
    "normal": _normal_log_predictive,
    "categorical": _categorical_log_predictive,
    "bernoulli": _bernoulli_log_predictive,
    "poisson": _poisson_log_predictive,
    "gamma_exponential": _gamma_exponential_log_predictive,
    "log_normal": _log_normal_log_predictive,
    "semi_continuous": partial(_semi_log_predictive, atoms=ATOMS, of_number=_normal_log_predictive),
    "semi_continuous_log_normal": partial(
        _semi_log_predictive, atoms=AMOUNT_ATOMS, of_number=_log_normal_log_predictive
    ),
    "negative_binomial": _negative_binomial_log_predictive,
    "multinomial": _multinomial_log_predictive,
    "multivariate_normal": _mvn_log_predictive,
    "multivariate_log_normal": _mvln_log_predictive,
    "known_normal": _known_log_predictive,
}
_INTEGRAL = {
    "normal": _normal_integral,
    "categorical": _categorical_integral,
    "bernoulli": _bernoulli_integral,
    "poisson": _poisson_integral,
    "gamma_exponential": _gamma_exponential_integral,
    "log_normal": _log_normal_integral,
    "semi_continuous": partial(_semi_integral, atoms=ATOMS, of_numbers=_normal_integral),
    "semi_continuous_log_normal": partial(
        _semi_integral, atoms=AMOUNT_ATOMS, of_numbers=_log_normal_integral
    ),
    "negative_binomial": _negative_binomial_integral,
    "multinomial": _multinomial_integral,
    "multivariate_normal": _mvn_integral,
    "multivariate_log_normal": _mvln_integral,
    "known_normal": _known_integral,
}

# One small column (two separated sets of rows) and its hyperparameters per family.
EXAMPLES = {
    "normal": (
        [-1.3, 1.1, -0.8, 1.9, 0.4, -1.0],
        {"mu0": 0.3, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7},
    ),
    "categorical": ([0, 2, 0, 2, 1, 0], {"pseudo_counts": [0.9, 1.4, 1.1]}),
    "bernoulli": ([True, False, True, False, False, True], {"a": 0.8, "b": 1.3}),
    "poisson": ([0, 6, 1, 4, 3, 0], {"shape": 1.5, "rate": 0.6}),
    "gamma_exponential": ([0.25, 3.5, 0.0, 5.0, 2.25, 0.5], {"a": 1.4, "b": 0.9}),
    "log_normal": (
        [0.25, 3.0, 0.5, 6.5, 1.5, 0.375],
        {"mu0": 0.3, "kappa0": 0.5, "nu0": 6.0, "sigma2_0": 0.7},
    ),
    "semi_continuous": (
        [0.0, 1.5, 0.0, 2.0, -0.5, 1.75],
        {"mu0": 0.3, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7, "a": 0.8, "b": 1.3},
    ),
    "semi_continuous_log_normal": (
        [0.0, 3.0, 0.0, 6.5, 1.0, 0.375],
        {"mu0": 0.3, "kappa0": 0.5, "nu0": 6.0, "sigma2_0": 0.7, "a": 0.8, "b": 1.3},
    ),
    "negative_binomial": ([0, 9, 1, 7, 4, 0], {"r": 1.75, "a": 6.0, "b": 2.0}),
}
# The same of the row families; two columns, of the multinomial three.
_AMOUNTS = [(0.25, 0.5), (3.0, 4.5), (0.5, 0.375), (7.5, 3.5), (1.5, 1.25), (0.375, 1.0)]
_ROWS = [(-1.25, -0.5), (1.0, 1.5), (-0.75, -1.0), (2.0, 1.25), (0.5, 0.25), (-1.0, 0.0)]
ROW_EXAMPLES = {
    "multivariate_normal": (
        _ROWS,
        {"mu0": [0.3, -0.1], "kappa0": 0.5, "nu0": 3.5, "scale0": [[0.9, 0.3], [0.3, 0.7]]},
    ),
    "multivariate_log_normal": (
        _AMOUNTS,
        {"mu0": [0.3, -0.1], "kappa0": 0.5, "nu0": 3.5, "scale0": [[0.9, 0.3], [0.3, 0.7]]},
    ),
    "known_normal": (
        _ROWS,
        {
            "covariance": [[0.8, 0.3], [0.3, 0.5]],
            "prior_mean": [0.2, -0.3],
            "prior_covariance": [[2.0, -0.4], [-0.4, 3.0]],
        },
    ),
    "multinomial": (
        [(2, 0, 1), (0, 3, 0), (1, 0, 0), (0, 1, 1), (2, 1, 0), (0, 2, 0)],
        {"pseudo_counts": [0.6, 1.1, 0.8]},
    ),
}


def log_marginal(family, values, hyper):
    """Log marginal likelihood of one feature of one cluster.

    Parameters
    ----------
    family : str
        A key of EXAMPLES or ROW_EXAMPLES.
    values : sequence of shape (n,)
        Numbers, level codes, truth values, counts or rows; None and NaN are missing.
    hyper : dict
        By the names in EXAMPLES and ROW_EXAMPLES; densities are per unit of ``values``.

    Returns
    -------
    float
        In nats; 0 for a cluster without observed values.

    Examples
    --------
    >>> round(log_marginal("bernoulli", [True, None, False], {"a": 1, "b": 1}), 6)
    -1.791759
    """
    return float(_LOG_MARGINAL[family](observed(values), hyper))


def log_predictive(family, value, values, hyper):
    """Log predictive density of ``value`` for a cluster that holds ``values``; see log_marginal.

    Examples
    --------
    >>> round(log_predictive("categorical", 7, [0, 0, 1], {"pseudo_counts": [1, 0.5]}), 6)
    -2.302585
    """
    if is_missing(value):
        return 0.0
    return float(_LOG_PREDICTIVE[family](value, observed(values), hyper))


def integrated_log_marginal(family, values, hyper):
    """The same as log_marginal by numerical integration of prior times likelihood.

    For a few values of moderate size; a categorical feature may have 2 or 3 levels, a row 2 cells.
    """
    return float(_INTEGRAL[family](observed(values), hyper))
