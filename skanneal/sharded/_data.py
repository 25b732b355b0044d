"""Rows for the accelerated sampler: from what the user gives to shards and a likelihood."""

# SPDX-License-Identifier: BSD-3-Clause

import copy
import functools
import os
import warnings
import zlib
from collections.abc import Mapping
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from ..chains import ChainPlan
from ..encoding import Encoder, RowKeys, hashed, open_table, prepare, with_bounds
from ..encoding._codecs import as_numbers
from ..encoding._identifiers import IdentifierCodec
from ..families import Table, default_family
from ..families._scaling import ordinary
from ..likelihoods import LIKELIHOODS, Likelihood, Normal, TableRows, checked
from ..predictive._draws import Draw
from ..predictive._tail import training_scores
from ._clusters import Rows
from ._draws import FeatureDraw
from ._shards import RowSource, Shards

# A likelihood has the name of the family that reads its cells and, if it is conjugate, integrates
# its atoms out. Where no family has its name, this one reads the cells:
FAMILY = {"logistic_normal": "multinomial"}
NUMBERS = ("normal", "multivariate_normal")  # what "auto" may be
HEAD_ROWS = 4096  # of a table on disk: types, scales and grids are taken from these rows
KMEANS_CLUSTERS = 100
KMEANS_ROWS = 20_000  # at most: k-means finds its centres among these rows


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
    evidence : dict or None
        How "auto" chose the likelihood, see `choose_family`.
    identity : dict
        What a fit that goes on from this one must have, too, by what a user calls it.
    asked : Table or None
        The rows as `predict` sees them, if that differs: without the noise of rounded cells.
    """

    encoder: Encoder
    likelihood: Likelihood
    shards: Shards
    table: Table
    hyper: dict
    grids: dict
    source: RowSource
    evidence: dict
    identity: dict
    asked: Table = None

    def plan(self, grid):
        """What chains share that integrate atoms out, with the partition prior's grid."""
        table = self.likelihood.schema if self.table is None else self.table
        families = self.encoder.table_families
        return ChainPlan(table, families, self.hyper, self.grids, grid, ("gibbs",))

    @property
    def rows(self):
        """All rows: the Table if atoms can be integrated out and it is in memory, else Rows."""
        if self.table is None:
            return Rows(self.source.n_rows, self.of_rows)
        if self.likelihood.conjugate:
            return self.table
        return Rows(self.table.n_rows, TableRows(self.table).__getitem__)

    def of_rows(self, rows):
        """Some rows, by index, as the likelihood takes them."""
        if self.table is None:
            return self.shards.encode(self.source.rows(rows))
        return TableRows(self.table.take(rows))

    @property
    def keys(self):
        """What tells rows apart, as `RowKeys` does."""
        if self.table is None:
            return lambda rows: hashed(self.source.rows(rows))
        return RowKeys(self.encoder, self.table)

    def described(self, draws, weights, limit):
        """Fitted attributes: what was found out of a table, and the scores of its rows."""
        if self.encoder is None:
            return {}
        out = {"family_evidence_": self.evidence, "rounding_": self.encoder.jitter.steps}
        if self.likelihood.conjugate and self.table is not None:
            schema = self.encoder.table_schema
            out["outlier_scores_"] = training_scores(
                draws, weights, self.table, schema, limit, self.asked
            )
        return out

    def draw(self, arrays):
        """Return the kept draw that these arrays hold."""
        if self.likelihood.conjugate:
            return Draw(arrays, self.encoder)
        return FeatureDraw(arrays, self.likelihood)


def family_of(likelihood):
    """The family that reads the cells of a likelihood of this name."""
    return FAMILY.get(likelihood, likelihood)


def is_conjugate(likelihood):
    """Whether atoms of a likelihood, or of one of this name, can be integrated out."""
    if isinstance(likelihood, str):
        likelihood = LIKELIHOODS.get(likelihood, Normal)  # what "auto" stands for
    return likelihood.conjugate


def read(estimator, X, n_shards, proposes, decide):
    """Check and encode X, and deal it to shards.

    Parameters
    ----------
    estimator : AcceleratedDPMixture
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like, frame, sparse matrix, memory map, or list of shard files
    n_shards : int
    proposes : bool
        Whether the algorithm makes atoms from rows.
    decide : callable
        ``decide(encoder, X, cells, plan_of, hyperparameters)`` returns an encoder whose columns
        have the family of the best evidence, their cells, and the evidence.

    Returns
    -------
    Data
    """
    own = estimator.likelihood
    if isinstance(own, Likelihood):
        own = _checked_own(own, estimator.hyperparameters, estimator.rounding, proposes)
    source = parts = None
    if isinstance(X, np.memmap) or is_list_of_shards(X):
        source = parts = RowSource(X)
        if not source.is_lazy:
            X, source = source.rows(slice(0, source.n_rows)), None
    if isinstance(own, Likelihood):
        return _read_own(estimator, X, source, n_shards, own)
    first = X if source is None else head(source)
    name = named(estimator.likelihood, first)
    if parts is not None:
        parts.check(LIKELIHOODS[name].checked_rows)
    given = _by_family(estimator.hyperparameters, name)
    encoder, cells = _encoded(estimator, name, first, source, with_bounds(given))
    refuse_gaps(encoder, cells.exact)
    evidence = None
    if source is None:
        plan_of = functools.partial(_plan, estimator, given)
        encoder, cells, evidence = decide(encoder, X, cells, plan_of, given)
        if evidence is not None and estimator.likelihood == "auto":
            name = evidence["winner"]
    table = encoder.table(cells.noisy)
    n_rows = table.n_rows if source is None else source.n_rows
    check_numbers(n_shards, estimator.init, n_rows)
    fingerprint = zlib.crc32(repr(n_rows).encode(), encoder.fingerprint(table))
    identity = {"X": fingerprint, "likelihood": name, "n_shards": n_shards}
    likelihood, hyper, grids = _make(name, given, encoder, table)
    if source is not None:
        encode = likelihood.encode
        if encoder.apart.out:
            encode = functools.partial(_encode_kept, likelihood, encoder.apart)
        shards = Shards(source, n_shards, encode)
        return Data(encoder, likelihood, shards, None, hyper, grids, source, None, identity)
    # The encoded rows are dealt, not X, so the source is an index of them.
    index = np.arange(table.n_rows)[:, None]
    shards = Shards(index, n_shards, lambda rows: TableRows(table.take(rows[:, 0])))
    source = RowSource(_numbers_of(X, encoder))
    rounded = likelihood.conjugate and encoder.jitter.lattices
    asked = encoder.table(cells.exact) if rounded else None
    known = encoder, likelihood, shards, table, hyper, grids, source, evidence, identity
    return Data(*known, asked)


def _plan(estimator, hyperparameters, encoder, table):
    """Return what chains share that compare families of numbers."""
    grid = estimator._prior_grids(table.n_rows)["concentration"]
    prepared = prepare(hyperparameters, encoder, table)
    return ChainPlan(table, encoder.table_families, *prepared, grid, ("gibbs", "split_merge"))


def _numbers_of(X, encoder):
    """Return rows in memory as an array of numbers, the same ones whatever the container."""
    if issparse(X) or isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X
    if encoder.counts:
        return np.asarray(X).astype(np.float64)
    table = open_table(X, "X")  # an array made of a frame may have dates in any unit
    out = np.zeros(table.shape)
    for j in encoder.apart.kept:
        out[:, j] = as_numbers(table.column(j), encoder.codecs[j].family)
    return out


def _by_family(hyperparameters, name):
    """Return a likelihood's hyperparameters under the name of the family that reads its cells."""
    given = {} if isinstance(hyperparameters, str) else hyperparameters
    others = sorted(set(given) - {name}, key=str)
    if others:
        raise ValueError(
            f"hyperparameters are those of the likelihood, by its name {name!r}; got {others}"
        )
    return {family_of(name): given[name]} if name in given else {}


def _encoded(estimator, name, X, source, proper):
    """Return an encoder fitted to X, and the TrainingCells.

    Where X is only the head of a source, a column that varies in the rest is not set apart, and
    cells are not jittered: a shard is read again and again, and its rows do not come with their
    places in the noise.
    """
    auto = estimator.likelihood == "auto" and source is None
    families = "auto" if auto else family_of(name)
    rounding = estimator.rounding if source is None else None
    if source is not None and isinstance(estimator.rounding, Mapping):
        raise ValueError("rounding gives steps, but rows on disk are taken as they are.")
    encoder = Encoder()
    cells = encoder.fit_encode(
        estimator,
        X,
        families,
        proper=proper,
        rounding=rounding,
        decide=lambda column: default_family("float"),
    )
    constants = encoder.apart.constants
    if source is not None and constants:
        at = np.array([*constants])
        varies = np.zeros(len(at), dtype=bool)
        for start in range(0, source.n_rows, HEAD_ROWS):
            rows = source.rows(slice(start, min(start + HEAD_ROWS, source.n_rows)))
            varies |= (rows[:, at] != [*constants.values()]).any(axis=0)
        if varies.any():
            proper = [*proper, *at[varies].tolist()]
            cells = encoder.fit_encode(estimator, X, families, proper=proper)
    return encoder, cells


def _encode_kept(likelihood, apart, rows):
    """Encode rows of all columns by a likelihood of those that are not set apart."""
    return likelihood.encode(np.column_stack(apart.stored(list(rows.T), 0.0)))


def _checked_own(likelihood, hyperparameters, rounding, proposes):
    """Return a copy of the user's likelihood whose every answer is checked."""
    if likelihood.conjugate:
        raise ValueError(
            f"likelihood: atoms of an object of the class {type(likelihood).__name__} cannot be "
            f"integrated out. Name a conjugate likelihood, as in likelihood='multinomial', or set "
            f"the class's attribute conjugate to False"
        )
    if not isinstance(hyperparameters, str):
        raise ValueError(
            "hyperparameters are those of the built-in likelihoods: a likelihood object has its own"
        )
    if isinstance(rounding, Mapping):
        raise ValueError("rounding gives steps, but a likelihood object takes cells as they are.")
    return checked(copy.deepcopy(likelihood), proposes)


def _read_own(estimator, X, source, n_shards, likelihood):
    if source is None:
        X = validate_data(estimator, X, dtype=np.float64)
        source, first = RowSource(X), X
    else:
        first = validate_data(estimator, head(source), dtype=np.float64)
    check_numbers(n_shards, estimator.init, source.n_rows)
    name = type(estimator.likelihood).__name__
    fingerprint = zlib.crc32(np.ascontiguousarray(first), zlib.crc32(repr(source.n_rows).encode()))
    identity = {"X": fingerprint, "likelihood": name, "n_shards": n_shards}
    shards = Shards(source, n_shards, likelihood.encode)
    return Data(None, likelihood, shards, None, {}, {}, source, None, identity)


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
    """Return some rows of a source on disk, evenly spread."""
    n = min(HEAD_ROWS, source.n_rows)
    return source.rows(np.unique(np.linspace(0, source.n_rows - 1, n).astype(np.int64)))


def check_numbers(n_shards, init, n_rows):
    """Raise if there are more shards or more clusters to begin with than rows."""
    if isinstance(init, Integral) and init > n_rows:
        raise ValueError(
            f"init={init} clusters are more than the rows: X has n_samples={n_rows}. Use fewer "
            f"clusters or more rows."
        )
    if n_shards > n_rows:
        raise ValueError(
            f"n_shards={n_shards} is more than the rows: X has n_samples={n_rows}. Use fewer shards"
            f" or more rows."
        )


def named(likelihood, X):
    """Return the likelihood's name, which for "auto" is that of measurements.

    Whole numbers need not be counts of one total. Read as such, they would lose all but their
    proportions.
    """
    if likelihood != "auto":
        return likelihood
    if issparse(X):
        raise TypeError(
            "likelihood='auto' takes no sparse X: name the likelihood, 'multinomial' (or "
            "'logistic_normal') for rows of counts"
        )
    return "normal"


def refuse_gaps(encoder, columns):
    """Raise if cells are missing, which some families would integrate out."""
    for j, missing in enumerate(encoder.missing(columns)):
        if missing.any() and encoder.codecs[j].family != IdentifierCodec.family:
            raise ValueError(
                f"{encoder.names.label(j)} has a missing cell (NaN), but a likelihood "
                f"describes rows without gaps: impute fills them; AnnealedDPMixture and "
                f"CrossCatPY take them"
            )


def _make(name, given, encoder, table):
    """Make the likelihood; return it with its hyperparameters and grids by column."""
    cls = LIKELIHOODS[name]
    if not cls.conjugate:
        return cls(table, **_options(name, given.get(family_of(name), {}))), {}, {}
    hyper, grids = prepare(given, encoder, table)
    keys = sorted(hyper)
    likelihood = cls(table, [hyper[j] for j in keys], [grids[j] for j in keys])
    return likelihood, hyper, grids


def _options(name, given):
    """Check and return the hyperparameters of a likelihood that is not conjugate."""
    of = f"hyperparameters[{name!r}]"
    if not isinstance(given, Mapping):
        raise ValueError(f"{of} must be a mapping, got {given!r}")
    unknown = sorted(set(given) - {"rank", "scale"}, key=str)
    if unknown:
        raise ValueError(f"{of} are rank, scale; got {unknown}")
    rank, scale = given.get("rank", 1), given.get("scale", 1.0)
    if not isinstance(rank, Integral) or rank < 1:
        raise ValueError(f"{of}['rank'] must be a positive integer, got {rank!r}")
    if not isinstance(scale, Real) or not 0.0 < scale < np.inf:
        raise ValueError(f"{of}['scale'] must be a positive number, got {scale!r}")
    return dict(given)


def first_labels(init, data, seed):
    """Return the labels that rows begin with: int64 (n_rows,), 0 .. K - 1."""
    n_rows = data.source.n_rows
    generator = np.random.Generator(np.random.PCG64(seed))
    if init == "one":
        return np.zeros(n_rows, np.int64)
    if init == "kmeans":
        kept = None
        if data.encoder is not None and data.encoder.apart.out:
            kept = data.encoder.apart.kept
        labels = _kmeans(data.source, generator, kept)
    else:
        labels = (generator.random(n_rows) * init).astype(np.int64)
    return np.unique(labels, return_inverse=True)[1]


def _kmeans(source, generator, kept=None):
    """Cluster the rows by the columns `kept`, by all if it is None; without columns all are one."""
    from sklearn.cluster import MiniBatchKMeans  # takes long to import, and few ask for it

    if kept is not None and not len(kept):
        return np.zeros(source.n_rows, np.int64)
    order = np.argsort(generator.random(source.n_rows), kind="stable")
    some = _numbers(source.rows(np.sort(order[:KMEANS_ROWS])), kept)
    fences = None if issparse(some) else _fences(some)
    some = _fenced(some, fences)
    n_clusters = min(KMEANS_CLUSTERS, some.shape[0])
    means = MiniBatchKMeans(n_clusters, n_init=1, random_state=int(generator.random() * 2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        means.fit(some)
    blocks = range(0, source.n_rows, KMEANS_ROWS)
    parts = [source.rows(slice(at, min(at + KMEANS_ROWS, source.n_rows))) for at in blocks]
    return np.concatenate([means.predict(_fenced(_numbers(part, kept), fences)) for part in parts])


def _fences(rows):
    """Return the least and the greatest ordinary value of each column: (2, n_columns)."""
    columns = map(ordinary, rows.T)
    return np.array([(column.min(), column.max()) for column in columns]).T


def _fenced(rows, fences):
    """Move wild values to the fences, since squares of 1e300 overflow."""
    return rows if fences is None else np.clip(rows, *fences)


def _numbers(rows, kept=None):
    """Make rows what scikit-learn takes: sparse rows that come in parts have long indices."""
    if not issparse(rows):
        return np.ascontiguousarray(rows if kept is None else rows[:, kept], dtype=np.float64)
    indices, indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return csr_array((rows.data.astype(np.float64), indices, indptr), rows.shape)
