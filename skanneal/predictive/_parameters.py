"""Mixtures whose components have drawn weights and parameters.

What a chain keeps has the parameters of components integrated out, so rows that are drawn from it
one by one do not share them. Here they are drawn once, from their law given the component's rows,

    Normal             s2 ~ nu_n s2_n / chi2(nu_n), mu ~ N(mu_n, s2 / kappa_n)
    full covariances   Sigma ~ IW(nu_n, Psi_n), mu ~ N(mu_n, Sigma / kappa_n)
    levels, atoms      p ~ Dirichlet(a + counts)
    rates of counts and of waiting times   r ~ Gamma(a + sum or cells, b + cells or sum)
    negative binomial  p ~ Beta(a + cells r, b + sum)

and so are the weights of the components, with that of all new ones together last:

    w ~ Dirichlet(n_1 - s, ..., n_K - s, open(K)).

A component with drawn parameters is kept as what it would be after MANY rows from its law: its
predictive density is then the density at these parameters, up to 1 / MANY, so everything that is
asked of a draw can be asked of it. The statistics are chosen so that the posterior is centred at
the parameters themselves. A new component has no parameters yet: each of its rows draws its own.
"""

# SPDX-License-Identifier: BSD-3-Clause

from functools import singledispatch

import numpy as np

from .._native._packing import pack as pack_arrays
from ..families._categorical import Categorical
from ..families._forms import pack
from ..families._gamma_exponential import GammaExponential
from ..families._known_normal import KnownNormal, diagonalise
from ..families._multinomial import Multinomial
from ..families._multivariate_normal import MultivariateNormal
from ..families._negative_binomial import NegativeBinomial
from ..families._normal import Normal
from ..families._poisson import Poisson
from ..families._semi_continuous import SemiContinuous
from ..states import Mixture

MANY = 1 << 24  # rows: log-gamma functions of more would lose the digits of a density


def with_parameters(mixture, generator):
    """A mixture for queries whose components have drawn parameters, and their drawn weights.

    Parameters
    ----------
    mixture : Mixture
    generator : numpy.random.Generator

    Returns
    -------
    drawn : Mixture
        Its slots 0 .. K - 1 are the components that have rows, in their order.
    log_weights : ndarray of shape (K + 1,)
        The last is that of all new components together.
    """
    slots = np.flatnonzero(mixture.sizes())
    arrays = dict(mixture.prior.to_arrays())
    for block in mixture.blocks:
        own = block.to_arrays(slots)
        own |= settled(block, own, generator) | {"size": np.full(len(slots), MANY)}
        arrays |= pack_arrays({block.family: own})
    return Mixture.from_arrays(arrays, mixture.table, trusted=True), draw_weights(
        mixture.sizes()[slots], mixture.prior, generator
    )


def draw_weights(sizes, prior, generator):
    """Log weights of components of these sizes and of a new one, drawn: (K + 1,)."""
    if not len(sizes):
        return np.zeros(1)
    shapes = np.r_[sizes - prior.reduction, prior.open_weight(len(sizes))]
    return log_dirichlet(shapes, generator)


def log_dirichlet(shapes, generator):
    """Logarithms of a Dirichlet variate along the first axis; a shape of 0 gives -inf."""
    with np.errstate(divide="ignore"):
        # log of Gamma(a) as log Gamma(a + 1) + log(U) / a: those of small shapes would be 0
        logs = np.log(generator.standard_gamma(shapes + 1.0))
        logs += np.log1p(-generator.random(np.shape(shapes))) / shapes
    return logs - np.logaddexp.reduce(logs, axis=0)


def whole_counts(log_shares, pseudo_counts):
    """Counts of MANY cells that, with the pseudo-counts, have these shares: (n, K)."""
    shares = np.exp(log_shares) * (MANY + pseudo_counts.sum(axis=0)) - pseudo_counts
    cumulative = np.cumsum(np.maximum(shares, 0.0), axis=0)
    rounded = np.rint(cumulative / cumulative[-1] * MANY).astype(np.int64)
    return np.diff(rounded, axis=0, prepend=0)


@singledispatch
def settled(block, arrays, generator):
    """Statistics of a block's components after MANY rows from drawn parameters.

    Parameters
    ----------
    block : FamilyBlock
    arrays : dict of str to ndarray
        Of the block, as `to_arrays` gives them; each slot has rows.
    generator : numpy.random.Generator

    Returns
    -------
    statistics : dict of str to ndarray
        What replaces the arrays of the same names.
    """
    raise NotImplementedError(f"the parameters of {type(block).__name__} cannot be drawn")


@settled.register
def _(block: Normal, arrays, generator):
    numbers = (arrays[name] for name in ("n", "mean", "m2"))
    return normal_statistics(*numbers, arrays, np.full(arrays["n"].shape, MANY), generator)


def normal_statistics(n, mean, m2, hyper, n_after, generator):
    """Numbers in components: the statistics of n_after of them from drawn parameters."""
    mu0, kappa0, nu0, sigma2_0 = (hyper[name][:, None] for name in Normal.coordinate_names)
    kappa, nu = kappa0 + n, nu0 + n
    squares = nu0 * sigma2_0 + m2 + kappa0 * n / kappa * (mean - mu0) ** 2
    variance = squares / (2.0 * generator.standard_gamma(0.5 * nu))
    centre = mu0 + n / kappa * (mean - mu0)
    centre += np.sqrt(variance / kappa) * generator.standard_normal(centre.shape)
    # the posterior after n_after numbers is centred at `centre` and `variance`
    some = np.maximum(n_after, 1)
    shift = (kappa0 + some) / some * (centre - mu0)
    rest = nu0 * sigma2_0 + kappa0 * some / (kappa0 + some) * shift**2
    after = np.maximum((nu0 + some) * variance - rest, 0.0)
    held = n_after > 0
    return {
        "n": n_after,
        "mean": np.where(held, mu0 + shift, 0.0),
        "m2": np.where(held, after, 0.0),
    }


@settled.register
def _(block: SemiContinuous, arrays, generator):
    count = arrays["count"].copy()
    for f, j in enumerate(arrays["columns"]):
        own = slice(1 + len(block.table.atoms[j]))
        pseudo = np.full((own.stop, 1), arrays["a"][f])
        pseudo[0] = arrays["b"][f]
        shares = log_dirichlet(count[f, own] + pseudo, generator)
        count[f, own] = whole_counts(shares, pseudo)
    before = (arrays["count"][:, 0], arrays["mean"], arrays["m2"])
    numbers = normal_statistics(*before, arrays, count[:, 0], generator)
    return {"count": count, "mean": numbers["mean"], "m2": numbers["m2"]}


@settled.register
def _(block: Categorical, arrays, generator):
    count = arrays["count"].copy()
    stops = np.cumsum(arrays["n_levels"])
    for a, start, stop in zip(block.hyper_of(arrays), stops - arrays["n_levels"], stops):
        shares = log_dirichlet(count[start:stop] + a[:, None], generator)
        count[start:stop] = whole_counts(shares, a[:, None])
    return {"count": count, "missing": np.zeros_like(arrays["missing"])}


@settled.register
def _(block: Poisson, arrays, generator):
    shape, rate = arrays["shape"][:, None], arrays["rate"][:, None]
    mean = generator.standard_gamma(shape + arrays["total"]) / (rate + arrays["n"])
    total = np.rint(np.maximum(mean * (rate + MANY) - shape, 0.0)).astype(np.int64)
    return {"n": np.full_like(arrays["n"], MANY), "total": total}


@settled.register
def _(block: GammaExponential, arrays, generator):
    a, b = arrays["a"][:, None], arrays["b"][:, None]
    # of a tiny shape the rate may underflow to 0
    rate = np.maximum(generator.standard_gamma(a + arrays["n"]), np.finfo(float).tiny)
    mean = (b + arrays["total"]) / rate
    return {
        "n": np.full_like(arrays["n"], MANY),
        "total": np.maximum(mean * (a + MANY) - b, 0.0),
    }


@settled.register
def _(block: NegativeBinomial, arrays, generator):
    r, a, b = (arrays[name][:, None] for name in block.coordinate_names)
    shapes = np.stack([a + r * arrays["n"], b + arrays["total"]])
    success, failure = log_dirichlet(shapes, generator)
    total = np.exp(failure - success) * (a + MANY * r) - b
    total = np.rint(np.clip(total, 0.0, 2.0**62)).astype(np.int64)
    return {"n": np.full_like(arrays["n"], MANY), "total": total}


@settled.register
def _(block: Multinomial, arrays, generator):
    pseudo = np.broadcast_to(arrays["pseudo_counts"], len(arrays["count"]))[:, None]
    shares = log_dirichlet(arrays["count"] + pseudo, generator)
    count = whole_counts(shares, pseudo)
    return {"count": count, "total": count.sum(axis=0)}


@settled.register
def _(block: KnownNormal, arrays, generator):
    v = diagonalise(arrays["covariance"], arrays["prior_covariance"])[2][:, None]
    gain = v / (1.0 + arrays["size"] * v)
    place = gain * arrays["sum"] + np.sqrt(gain) * generator.standard_normal(arrays["sum"].shape)
    return {"sum": place * (1.0 + MANY * v) / v}


@settled.register
def _(block: MultivariateNormal, arrays, generator):
    """Of a Student's t given the rows' weights."""
    d, n_slots = len(arrays["columns"]), len(arrays["size"])
    kappa0, nu0 = arrays["kappa0"], arrays["nu0"]
    weight = arrays.get("total", arrays["size"])
    factors = np.zeros((n_slots, d, d))
    factors[:, *np.tril_indices(d)] = arrays["factor"].T
    roots = draw_roots(nu0 + arrays["size"], factors, generator)
    normal = generator.standard_normal((n_slots, d, 1))
    away = np.linalg.solve(roots, normal)[:, :, 0].T / np.sqrt(kappa0 + weight)
    centre = weight / (kappa0 + weight) * (arrays["mean"] - arrays["mu0"][:, None])
    kappa, nu = kappa0 + MANY, nu0 + MANY
    after = {
        "mean": arrays["mu0"][:, None] + kappa / MANY * (centre + away),
        # of Psi the inverse root, of Psi over Sigma in the predictive law the ratio
        "factor": pack(roots.transpose(1, 2, 0)) / np.sqrt(kappa / (kappa + 1.0) * (nu - d + 1.0)),
        "total": np.full(n_slots, float(MANY)),
    }
    return {name: value for name, value in after.items() if name in arrays}


def draw_roots(degrees, factors, generator):
    """Draw B, lower triangular, with B'B the inverse of Sigma ~ IW(degrees, Psi), for each slot.

    B = T W, with W'W the inverse of Psi and T lower triangular, T'T of the standard Wishart law:
    that is Bartlett's decomposition in the reverse order of columns.

    Parameters
    ----------
    degrees : float64 array of shape (n_slots,)
    factors : float64 array of shape (n_slots, d, d)
        W.
    generator : numpy.random.Generator

    Returns
    -------
    roots : float64 array of shape (n_slots, d, d)
    """
    n_slots, d, _ = factors.shape
    bartlett = np.tril(generator.standard_normal((n_slots, d, d)), -1)
    shapes = 0.5 * (degrees[:, None] - d + 1.0 + np.arange(d))
    bartlett[:, range(d), range(d)] = np.sqrt(2.0 * generator.standard_gamma(shapes))
    return bartlett @ factors
