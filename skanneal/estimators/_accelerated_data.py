"""Rows for the accelerated sampler: from what the user gives to shards and a likelihood."""

# SPDX-License-Identifier: BSD-3-Clause

import copy
import os
import warnings
import zlib
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from .._encoding import Encoder
from ..components import Table
from ..likelihoods import LIKELIHOODS, Likelihood, TableRows, checked
from ..shards import RowSource, Shards
from ._hyperparameters import prepare

# The family that reads a likelihood's cells, and of a conjugate one the family it is.
FAMILY = {
    "gaussian": "normal",
    "gaussian_full": "multivariate_normal",
    "logistic_normal": "multinomial",
    "multinomial": "multinomial",
    "poisson": "poisson",
}
HEAD_ROWS = 4096  # of rows on disk, from which types, scales and grids are taken
KMEANS_CLUSTERS = 100
KMEANS_ROWS = 20_000  # that the centres are found from


class Data(NamedTuple):
    """What a fit works on.

    Attributes
    ----------
    encoder : Encoder or None
        None with a likelihood of the user's own.
    likelihood : Likelihood
    shards : Shards
    table : Table or None
        All rows, if they are in memory and encoded.
    hyper, grids : dict
        By column, see `prepare`.
    source : RowSource
        The rows as they came.
    fingerprint : int
    """

    encoder: Encoder
    likelihood: Likelihood
    shards: Shards
    table: Table
    hyper: dict
    grids: dict
    source: RowSource
    fingerprint: int


def read(estimator, X, n_shards, proposes):
    """Check and encode X, and deal it to shards.

    Parameters
    ----------
    estimator : AcceleratedDPMixture
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like, frame, sparse matrix, memory map, or list of shard files
    n_shards : int
    proposes : bool
        Whether the algorithm makes features from rows.

    Returns
    -------
    Data
    """
    source = None
    if isinstance(X, np.memmap) or is_list_of_shards(X):
        source = RowSource(X)
        if not source.is_lazy:
            X, source = source.rows(slice(0, source.n_rows)), None
    if isinstance(estimator.likelihood, Likelihood):
        return _read_own(estimator, X, source, n_shards, proposes)
    name = estimator.likelihood
    if name == "auto":
        name = auto_likelihood(X if source is None else head(source))
    encoder, table = Encoder(), None
    columns = encoder.fit_encode(estimator, X if source is None else head(source), FAMILY[name])
    refuse_gaps(encoder, columns)
    table = Table(*encoder.table_schema)
    table.append(columns)
    check_shards(n_shards, table.n_rows if source is None else source.n_rows)
    likelihood, hyper, grids = _make(name, estimator.hyperparameters, encoder, table)
    if source is not None:
        shards = Shards(source, n_shards, likelihood.encode)
        return Data(encoder, likelihood, shards, None, hyper, grids, source, _crc(table.bytes()))
    # the encoded rows are dealt, not X: a shard's rows are those of an index
    index = np.arange(table.n_rows)[:, None]
    shards = Shards(index, n_shards, lambda rows: TableRows(table.take(rows[:, 0])))
    raw = X if issparse(X) else np.asarray(X)
    if raw.dtype.kind not in "biuf":  # a list or a frame of mixed columns, all of them numbers
        raw = raw.astype(np.float64)
    fingerprint = _crc(table.bytes())
    return Data(encoder, likelihood, shards, table, hyper, grids, RowSource(raw), fingerprint)


def _read_own(estimator, X, source, n_shards, proposes):
    likelihood = checked(copy.deepcopy(estimator.likelihood), proposes)
    if not isinstance(estimator.hyperparameters, str):
        raise ValueError(
            "hyperparameters are those of the built-in likelihoods: a likelihood object has its own"
        )
    if source is None:
        X = validate_data(estimator, X, dtype=np.float64)
        source = RowSource(X)
        fingerprint = _crc([np.ascontiguousarray(X).tobytes()])
    else:
        first = validate_data(estimator, head(source), dtype=np.float64)
        fingerprint = _crc([np.ascontiguousarray(first).tobytes()])
    check_shards(n_shards, source.n_rows)
    shards = Shards(source, n_shards, likelihood.encode)
    return Data(None, likelihood, shards, None, {}, {}, source, fingerprint)


def is_list_of_shards(X):
    """Whether X is a list of files or of two-dimensional arrays, not of rows."""
    if not isinstance(X, (list, tuple)) or not len(X):
        return False
    return all(
        isinstance(part, (str, os.PathLike))
        or issparse(part)
        or np.ndim(part) == 2
        and isinstance(part, np.ndarray)
        for part in X
    )


def head(source):
    """Some rows of a source on disk, evenly spread."""
    n = min(HEAD_ROWS, source.n_rows)
    return source.rows(np.unique(np.linspace(0, source.n_rows - 1, n).astype(np.int64)))


def check_shards(n_shards, n_rows):
    """Raise if there are more shards than rows."""
    if n_shards > n_rows:
        raise ValueError(
            f"n_shards={n_shards} is more than the rows: X has n_samples={n_rows}. Use fewer shards"
            f" or more rows."
        )


def auto_likelihood(X):
    """ "multinomial" for rows of counts, else "gaussian"."""
    if issparse(X):
        raise TypeError(
            "likelihood='auto' takes no sparse X: name the likelihood, 'multinomial' (or "
            "'logistic_normal') for rows of counts"
        )
    try:
        cells = np.asarray(X)
        cells = cells if cells.dtype.kind in "biufc" else cells.astype(np.float64)
    except (TypeError, ValueError):
        return "gaussian"  # whose encoder names the column at fault
    if cells.ndim != 2 or not cells.size or cells.dtype.kind == "c":
        return "gaussian"
    if cells.dtype.kind == "f" and not (
        np.isfinite(cells).all() and (cells == np.rint(cells)).all()
    ):
        return "gaussian"
    counts = cells.min() >= 0 and (cells != 0).any(axis=1).all()
    return "multinomial" if counts and cells.dtype.kind != "b" else "gaussian"


def refuse_gaps(encoder, columns):
    """Raise if cells are missing, which some families would integrate out."""
    for j, missing in enumerate(encoder.missing(columns)):
        if missing.any():
            raise ValueError(
                f"{encoder.label(j)} has a missing cell (NaN), but a likelihood describes rows "
                f"without gaps: impute fills them; AnnealedDPMixture and CrossCatPY take them"
            )


def _make(name, hyperparameters, encoder, table):
    """The likelihood, and its hyperparameters and grids by column."""
    cls, family = LIKELIHOODS[name], FAMILY[name]
    given = {} if isinstance(hyperparameters, str) else dict(hyperparameters)
    if not cls.conjugate:
        options = given.pop(name, {})
        if given:
            raise ValueError(
                f"hyperparameters of the likelihood {name!r} go by its name; got {sorted(given)}"
            )
        return cls(table, **options), {}, {}
    if name in given:
        given[family] = given.pop(name)
    hyper, grids = prepare(given or "infer", encoder, table)
    keys = sorted(hyper)
    likelihood = cls(table, [hyper[j] for j in keys], [grids[j] for j in keys])
    return likelihood, hyper, grids


def _crc(parts):
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return crc


def first_labels(init, source, seed):
    """Where rows are at first: int64 labels (n_rows,), 0 .. K - 1."""
    n_rows = source.n_rows
    generator = np.random.Generator(np.random.PCG64(seed))
    if init == "one":
        return np.zeros(n_rows, np.int64)
    if init == "kmeans":
        labels = _kmeans(source, generator)
    else:
        if init > n_rows:
            raise ValueError(f"init={init} clusters are more than the {n_rows} rows")
        labels = (generator.random(n_rows) * init).astype(np.int64)
    return np.unique(labels, return_inverse=True)[1]


def _kmeans(source, generator):
    order = np.argsort(generator.random(source.n_rows), kind="stable")
    some = source.rows(np.sort(order[:KMEANS_ROWS]))
    n_clusters = min(KMEANS_CLUSTERS, some.shape[0])
    means = MiniBatchKMeans(n_clusters, n_init=1, random_state=int(generator.random() * 2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        means.fit(some.astype(np.float64))
    blocks = range(0, source.n_rows, KMEANS_ROWS)
    parts = [source.rows(slice(at, min(at + KMEANS_ROWS, source.n_rows))) for at in blocks]
    return np.concatenate([means.predict(part.astype(np.float64)) for part in parts])
