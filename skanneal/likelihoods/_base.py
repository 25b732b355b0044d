"""What a likelihood is: features that are instantiated, with or without a conjugate prior.

A mixture with instantiated features holds one `theta` per cluster, drawn from a base measure H, and
asks the likelihood for everything it needs of them. Rows and theta are the likelihood's own: the
samplers only slice them along their first axis.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES, Table

BLOCK_ROWS = 512  # whose statistics are held at a time


class Likelihood:
    """A likelihood f(row | theta) with a base measure H over theta: subclass it to write your own.

    theta is a float64 array whose first axis is the feature; its other axes are yours, and so is
    what an encoded row is. Every method that draws gets a `numpy.random.Generator` and must take
    all its random numbers from it. What the methods return is checked: shape, type, no NaN.

    To write: `log_lik`, `statistics`, `draw`, `prior_draw`, `log_prior`. For the algorithms that
    propose features from the data ("importance", "accelerated") also `proposal_draw` and
    `proposal_logpdf`. For rows that are not rows of a float64 array, `encode`. The object is
    pickled to the workers, so keep it small.

    Attributes
    ----------
    conjugate : bool
        Can the features be integrated out? Only a `ConjugateLikelihood` can.

    Examples
    --------
    Waiting times, x ~ Exponential(rate), with a log-normal prior on the rate, which is not
    conjugate; theta is the logarithm of the rate.

    >>> import numpy as np
    >>> from skanneal.likelihoods import Likelihood
    >>> class WaitingTimes(Likelihood):
    ...     spread = 2.0   # theta ~ N(0, spread^2)
    ...
    ...     def log_lik(self, rows, theta, out):
    ...         out[:] = theta - rows * np.exp(theta)
    ...
    ...     def statistics(self, rows, labels, n_features):
    ...         kept = labels >= 0
    ...         n = np.bincount(labels[kept], minlength=n_features)
    ...         total = np.bincount(labels[kept], rows[kept, 0], minlength=n_features)
    ...         return np.stack([n, total], axis=1)
    ...
    ...     def draw(self, statistics, theta, rng):   # a Metropolis step for every feature
    ...         n, total = statistics.T
    ...         def log_density(t):
    ...             return n * t - total * np.exp(t) + self.log_prior(t)
    ...         step = theta + rng.standard_normal(len(theta)) / np.sqrt(n + self.spread**-2)
    ...         accept = np.log(rng.random(len(theta))) < log_density(step) - log_density(theta)
    ...         return np.where(accept, step, theta)
    ...
    ...     def prior_draw(self, n, rng):
    ...         return self.spread * rng.standard_normal(n)
    ...
    ...     def log_prior(self, theta):
    ...         return -0.5 * (theta / self.spread) ** 2 - np.log(self.spread * np.sqrt(2 * np.pi))
    ...
    ...     def proposal_draw(self, rows, rng):   # around the row's own rate, within a factor of e
    ...         return rng.standard_normal(len(rows)) - np.log(rows[:, 0])
    ...
    ...     def proposal_logpdf(self, theta, row):
    ...         return -0.5 * (theta + np.log(row[0, 0])) ** 2 - 0.5 * np.log(2 * np.pi)
    >>> likelihood, rng = WaitingTimes(), np.random.default_rng(0)
    >>> rows = likelihood.encode([[0.2], [1.0], [3.0]])
    >>> theta = likelihood.prior_draw(2, rng)
    >>> out = np.empty((3, 2), dtype=np.float32)
    >>> likelihood.log_lik(rows, theta, out)
    >>> statistics = likelihood.statistics(rows, np.array([0, 1, -1], dtype=np.int32), 2)
    >>> statistics.tolist()
    [[1.0, 0.2], [1.0, 1.0]]
    >>> likelihood.draw(statistics, theta, rng).shape
    (2,)
    """

    conjugate = False

    def encode(self, X):
        """Rows as the other methods want them; called once for each part of the data.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)

        Returns
        -------
        rows : object with len(), [start:stop] and [int array]
            By default X as a float64 array.

        Raises
        ------
        ValueError
            If a row cannot be of this likelihood.
        """
        return np.asarray(X, dtype=np.float64)

    def prepare(self, theta):
        """What `log_lik` is given for theta: computed once for many blocks of rows.

        Parameters
        ----------
        theta : float64 array of shape (n_features, ...)

        Returns
        -------
        object
            By default theta itself.
        """
        return theta

    def log_lik(self, rows, theta, out):
        """Log density of rows under all features.

        Parameters
        ----------
        rows : encoded rows
        theta : object
            What `prepare` returned.
        out : float32 array of shape (len(rows), n_features), written
            -inf where a row is impossible; never NaN or inf.
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_lik")

    def score(self, rows, prepared, n_features, out):
        """`log_lik` into the first columns of wider lines.

        Parameters
        ----------
        rows : encoded rows
        prepared : object
            What `prepare` returned for n_features features.
        n_features : int
        out : float32 or float64 array of shape (len(rows), at least n_features), written
            Columns beyond the features may be written too, with finite numbers.
        """
        scores = np.empty((len(rows), n_features), np.float32)
        self.log_lik(rows, prepared, scores)
        out[:, :n_features] = scores

    def statistics(self, rows, labels, n_features):
        """What the rows say of each feature; those of two parts of the data add up.

        Parameters
        ----------
        rows : encoded rows
        labels : int32 array of shape (len(rows),)
            The feature of each row; -1: the row is not counted.
        n_features : int

        Returns
        -------
        ndarray of shape (n_features, ...)
            float64 or int64.
        """
        raise NotImplementedError(f"{type(self).__name__} has no statistics")

    def draw(self, statistics, theta, rng):
        """New features: draws from the posterior, or updates of theta that leave it invariant.

        Parameters
        ----------
        statistics : ndarray of shape (n_features, ...)
            Of each feature's rows.
        theta : float64 array of shape (n_features, ...)
            As they are.
        rng : numpy.random.Generator

        Returns
        -------
        float64 array of the shape of theta
        """
        raise NotImplementedError(f"{type(self).__name__} has no draw")

    def prior_draw(self, n, rng):
        """n features from H: float64 array of shape (n, ...)."""
        raise NotImplementedError(f"{type(self).__name__} has no prior_draw")

    def log_prior(self, theta):
        """log H of each feature, normalised: float64 array of shape (n_features,)."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prior")

    def proposal_draw(self, rows, rng):
        """One feature for each row i, from a density q_i that favours what is near the row.

        q_i must be positive wherever the row's likelihood times H is.

        Parameters
        ----------
        rows : encoded rows
        rng : numpy.random.Generator

        Returns
        -------
        float64 array of shape (len(rows), ...)
        """
        raise NotImplementedError(f"{type(self).__name__} has no proposal_draw")

    def proposal_logpdf(self, theta, row):
        """log q of one row at each feature, in the coordinates in which `log_prior` is a density.

        Parameters
        ----------
        theta : float64 array of shape (n_features, ...)
        row : encoded rows, one

        Returns
        -------
        float64 array of shape (n_features,)
        """
        raise NotImplementedError(f"{type(self).__name__} has no proposal_logpdf")

    @property
    def proposes(self):
        """Does it have the two methods of a proposal?"""
        cls = type(self)
        return all(
            getattr(cls, name) is not getattr(Likelihood, name)
            for name in ("proposal_draw", "proposal_logpdf")
        )

    def update(self, theta, statistics, sizes, rng):
        """Move the parameters of H, in place, leaving their posterior given theta invariant.

        `draw` follows at once. So where `draw` draws from the posterior itself, whatever theta was,
        an update may as well integrate features out, and not look at theta.

        Parameters
        ----------
        theta : float64 array of shape (n_features, ...)
        statistics : ndarray of shape (n_features, ...)
            Of each feature's rows.
        sizes : int64 array of shape (n_features,)
            Number of each feature's rows.
        rng : numpy.random.Generator
        """

    def state(self):
        """The parameters that `update` moves: dict of name to array, by default none."""
        return {}

    def set_state(self, state):
        """Take over what `state` returned."""

    def features(self, theta):
        """Features as they are shown to the user, by default theta."""
        return theta

    def log_jacobian(self, n_rows):
        """What to add to a log density of n_rows encoded rows to have it in the user's units."""
        return 0.0


class TableLikelihood(Likelihood):
    """A likelihood whose rows are those of a Table.

    Parameters
    ----------
    table : Table
        Its columns are the likelihood's; its rows scale the defaults.

    Attributes
    ----------
    schema : Table
        Without rows.
    """

    writes_float64 = False  # may `out` of log_lik be float64, too?

    def __init__(self, table):
        self.schema = table.empty_like()

    @staticmethod
    def _types(X):
        """Arguments of a Table for data like X."""
        raise NotImplementedError

    @staticmethod
    def _cells(X, schema):
        """Encoded columns of rows given as an array or a sparse matrix."""
        raise NotImplementedError

    @classmethod
    def of(cls, X, *args, **options):
        """The likelihood of rows like those of X, the defaults scaled by them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns)
        *args, **options
            As for the class, without the table.
        """
        table = Table(*cls._types(X))
        table.append(cls._cells(X, table))
        return cls(table, *args, **options)

    def score(self, rows, prepared, n_features, out):
        """`log_lik`, which takes wider lines here: without a copy."""
        if out.dtype == np.float32 or self.writes_float64:
            self.log_lik(rows, prepared, out)
        else:
            super().score(rows, prepared, n_features, out)

    def encode(self, X):
        """Rows of numbers, dense or sparse, as TableRows."""
        return self.rows(self._cells(X, self.schema))

    def log_jacobian(self, n_rows):
        """Cells are numbers less an offset, over a scale."""
        return -n_rows * float(np.log(self.schema.scales).sum())

    def rows(self, columns):
        """TableRows of columns that are encoded, as Table.append takes them."""
        table = self.schema.empty_like()
        table.append(columns)
        return TableRows(table)


class ConjugateLikelihood(TableLikelihood):
    """A likelihood of a family of `skanneal.families`, whose features can be integrated out.

    Parameters
    ----------
    table : Table
        Its columns are the likelihood's, all of one family; its rows scale the defaults.
    hyper : list of array-like, optional
        One flat vector per feature of the family, in cell units, as FamilyBlock wants them: one in
        all for a family of whole rows, else one per column. The family's defaults.
    grids : list of list of (ndarray or None), optional
        For each feature of the family, the grid of each coordinate; None keeps it. The family's.
        An empty list keeps all.

    Attributes
    ----------
    family : str
        Name in FAMILIES.
    """

    conjugate = True
    family = None

    def __init__(self, table, hyper=None, grids=None):
        super().__init__(table)
        member, columns = FAMILIES[self.family], np.arange(table.n_columns)
        self.hyper = _defaults(member, table, columns) if hyper is None else hyper
        self.hyper = [np.array(flat, dtype=np.float64, ndmin=1) for flat in self.hyper]
        self.grids = _grids(member, table, columns) if grids is None else grids
        self._template = self._empty_block(table, 1).to_arrays(0)
        self._take_hyper()

    # ---- what a family's likelihood writes ------------------------------------------------------

    def _take_hyper(self):
        """What depends on the hyperparameters alone."""
        raise NotImplementedError

    def _statistics_arrays(self, statistics, sizes):
        """Statistics under the names of the family's to_arrays()."""
        raise NotImplementedError

    def log_marginal_rows(self, rows):
        """Log marginal likelihood of each row alone: (len(rows),)."""
        out = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            labels = np.arange(len(part), dtype=np.int32)
            statistics = self.statistics(part, labels, len(part))
            out[start : start + len(part)] = self.log_marginal(statistics)
        return out

    def mean(self, statistics):
        """Each feature's posterior mean, in theta's shape."""
        raise NotImplementedError

    # ---- shared ---------------------------------------------------------------------------------

    @property
    def infers(self):
        """Is there a hyperparameter with a grid?"""
        return any(grid is not None for of_feature in self.grids for grid in of_feature)

    def sizes(self, statistics):
        """Number of rows of each feature, by the statistics' first column."""
        return statistics[:, 0].astype(np.int64)

    def arrays(self, statistics, sizes):
        """The family's part of the flat dict of arrays of the Mixture whose clusters are these
        features, integrated out: "<family>/<name>"."""
        return {f"{self.family}/{name}": a for name, a in self._parts(statistics, sizes).items()}

    def block(self, statistics, sizes, n_slots=None):
        """The FamilyBlock whose slots are these features, integrated out."""
        parts = self._parts(statistics, sizes)
        return FAMILIES[self.family].from_arrays(parts, self.schema, n_slots)

    def _parts(self, statistics, sizes):
        return self._template | self._statistics_arrays(statistics, np.asarray(sizes, np.int64))

    def blocks(self, table, n_slots):
        """A list of FamilyBlock with the current hyperparameters and empty slots."""
        return [self._empty_block(table, n_slots)]

    def _empty_block(self, table, n_slots):
        columns = np.arange(self.schema.n_columns)
        gappy = np.zeros(len(columns), dtype=bool)
        return FAMILIES[self.family](table, columns, self.hyper, n_slots, gappy)

    def log_marginal(self, statistics):
        """Log marginal likelihood of each feature's rows, in cell units: (n_features,)."""
        return self.block(statistics, self.sizes(statistics)).log_marginals()[: len(statistics)]

    def update(self, theta, statistics, sizes, rng):
        """Each hyperparameter from its conditional on its grid, the features integrated out: what
        follows must draw them anew."""
        if not self.infers:
            return
        block = self.block(statistics, sizes)
        for f in range(block.n_features):
            i = 0 if block.joint else int(block.columns[f])
            parts = [np.empty(0) if grid is None else grid for grid in self.grids[i]]
            starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
            grid = np.concatenate([np.empty(0), *parts])
            block.draw_hyper(f, grid, starts, 1.0, rng.bit_generator)
            self.hyper[i] = block.get_hyper(f)
        self._hyper_changed()

    def _hyper_changed(self):
        now = self._empty_block(self.schema, 1)
        names = set(now.coordinate_names)
        self._template |= {name: a for name, a in now.to_arrays(0).items() if name in names}
        self._take_hyper()

    def state(self):
        """The hyperparameters: "hyper" of shape (n_features of the family, n_coordinates)."""
        return {"hyper": np.array(self.hyper)}

    def set_state(self, state):
        self.hyper = list(np.array(state["hyper"]))
        self._hyper_changed()


def _defaults(member, table, columns):
    """A family's default hyperparameters."""
    if member.joint:
        return [member.default_hyper(table, columns)]
    return [member.default_hyper(int(table.n_levels[j])) for j in columns]


def _grids(member, table, columns):
    """A family's grids, scaled by the table."""
    if member.joint:
        return [member.grids(table, columns)]
    return [member.grids(table.column(j), int(table.n_levels[j])) for j in columns]


class TableRows:
    """Consecutive rows of a table.

    Parameters
    ----------
    table : Table
    start, stop : int, optional
        All rows by default.
    """

    def __init__(self, table, start=0, stop=None):
        self.table = table
        self.start = start
        self.stop = table.n_rows if stop is None else stop

    def __len__(self):
        return self.stop - self.start

    def __getitem__(self, rows):
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return TableRows(self.table, self.start + start, self.start + max(start, stop))
            rows = np.arange(start, stop, step)
        rows = np.asarray(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError(f"rows are taken by a slice or an array of integers, not {rows!r}")
        return TableRows(self.table.take(rows + self.start))

    def __reduce__(self):
        if len(self) == self.table.n_rows:
            return TableRows, (self.table,)
        return TableRows, (self.table.take(np.arange(self.start, self.stop)),)


def dense(X, n_columns=None):
    """X as a float64 array of shape (n_rows, n_columns)."""
    if hasattr(X, "toarray"):
        raise TypeError("X is sparse: give it as a dense array.")
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or n_columns not in (None, X.shape[1]):
        expected = "two-dimensional" if n_columns is None else f"of {n_columns} columns"
        raise ValueError(f"X must be {expected}, got shape {X.shape}.")
    return X
