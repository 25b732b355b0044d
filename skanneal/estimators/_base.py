"""What every mixture estimator shares: validate, encode, run chains, summarise, predict."""

# SPDX-License-Identifier: BSD-3-Clause

import warnings
import zlib
from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._missing import is_scalar_nan
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._encoding import Encoder
from ..chain import TRACE, Model, run_chain
from ..components import FAMILIES, Table
from ..diagnostics import diagnose
from ..moves import MOVES
from ..parallel import run_tasks, spawn_seeds
from ..schedules import SCHEDULES, BaseSchedule, SequentialGibbs, resolve_schedule
from ..states import Mixture, Subsample
from ..summary import point_estimate
from ._draws import Draw, Predictor
from ._hyperparameters import grids_in_units, partition_grid, prepare

SEEN = ("n_features_in_", "feature_names_in_")
SCALARS = ("n_clusters", "log_joint", "concentration", "discount")
DISAGREE = 1.1  # R-hat above which chains are said to disagree
ENOUGH_RECORDS = 20  # full-data records per chain below which nothing is said
ROUNDING = 1e-6  # nats between log joint densities that say nothing
SKETCH_ROWS = 2000


class BaseMixtureEstimator(ClusterMixin, DensityMixin, BaseEstimator):
    """Base of the mixture estimators; see a subclass for parameters and attributes."""

    _doc_link_module = "skanneal"
    _parameter_constraints: dict = {
        "families": [StrOptions({"auto", *FAMILIES}), Mapping],
        "schedule": [StrOptions(set(SCHEDULES)), BaseSchedule],
        "concentration": [StrOptions({"infer"}), Real],
        "discount": [StrOptions({"infer"}), Interval(Real, 0, 1, closed="left")],
        "hyperparameters": [StrOptions({"infer"}), Mapping],
        "moves": [StrOptions({"auto"}), tuple, list],
        "point_estimate": [StrOptions({"map", "vi", "binder"})],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator, np.random.SeedSequence],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    # ---- fit ------------------------------------------------------------------------------------

    def _fit(self, X, strata):
        """The whole fit; attributes are set at its end, all of them or none."""
        schedule = resolve_schedule(self.schedule)
        moves = self._resolve_moves()
        grid = partition_grid(self.concentration, self.discount)
        resume = self.warm_start and hasattr(self, "_states")
        encoder = Encoder()
        before = {name: getattr(self, name) for name in SEEN if hasattr(self, name)}
        try:
            columns = encoder.fit_encode(self, X, self.families)
            table = Table(*encoder.table_schema)
            table.append(columns)
            del columns
            hyper, grids = prepare(self.hyperparameters, encoder.families_, table)
            seeds = spawn_seeds(self.random_state, self.n_chains + 1)
            model = Model(table, encoder.families_, hyper, grids, grid, moves)
            fingerprint = _fingerprint(table)
            if resume:
                states = self._earlier_states(fingerprint)
            else:
                states = [None] * self.n_chains
                model = model._replace(strata=self._strata(strata, schedule, model, seeds[-1]))
            tasks = [
                (model, schedule, seed, self.n_draws, self.thin, state, self.verbose)
                for seed, state in zip(seeds, states)
            ]
            results, interrupted = run_tasks(_chain_task, tasks, n_jobs=self.n_jobs)
            results = [r for r in results if r is not None and r["trace"]["n_clusters"][-1] > 0]
            if not results:
                raise KeyboardInterrupt
            fitted = self._results(encoder, model, results)
        except BaseException:
            for name in SEEN:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise
        self.__dict__.update(fitted, _fingerprint=fingerprint)
        self._warn_of_disagreement(table.n_rows)
        if interrupted:
            warnings.warn(
                "The fit was interrupted: it keeps the last complete state of each chain.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _resolve_moves(self):
        if isinstance(self.moves, str):
            return ("gibbs", "split_merge")
        unknown = [move for move in self.moves if not (isinstance(move, str) and move in MOVES)]
        if unknown or "gibbs" not in self.moves:
            raise ValueError(
                f"moves must be 'auto' or names among {sorted(MOVES)}, 'gibbs' with them; "
                f"got {self.moves!r}"
            )
        return tuple(self.moves)

    def _earlier_states(self, fingerprint):
        if len(self._states) != self.n_chains:
            raise ValueError(
                f"warm_start: the earlier fit had {len(self._states)} chains, n_chains is now "
                f"{self.n_chains}"
            )
        if fingerprint != self._fingerprint:
            raise ValueError(
                "warm_start goes on with the same rows: X or families differ from the earlier fit's"
            )
        return self._states

    def _strata(self, strata, schedule, model, seed):
        """Codes of the rows' strata for stratified selection, given or from a sketch."""
        n_rows = model.table.n_rows
        if strata is not None:
            if np.shape(strata) != (n_rows,):
                raise ValueError(f"strata must have shape ({n_rows},), got {np.shape(strata)}")
            codes = {}  # in order of appearance: labels of any sort, missing ones among them
            labels = (None if is_scalar_nan(label) else label for label in strata)
            return np.array([codes.setdefault(label, len(codes)) for label in labels])
        if schedule.selection != "stratified":
            return None
        return sketch(model, seed)

    def _results(self, encoder, model, results):
        """The fitted attributes; R-hat and ESS are of the final full-data stage."""
        table = model.table
        offsets, scales = table.offsets, table.scales
        chains = [[Draw(arrays, offsets, scales) for arrays in r["draws"]] for r in results]
        draws = [draw for chain in chains for draw in chain]
        log_joints = [draw.log_joint for draw in draws]
        labels = point_estimate([draw.labels for draw in draws], log_joints, self.point_estimate)
        trace = _padded([r["trace"] for r in results])
        full = trace["n_assigned"] == table.n_rows
        final = {name: np.where(full, trace[name], np.nan) for name in SCALARS}
        if full.any() and np.ptp(trace["log_joint"][full]) < ROUNDING:
            final["log_joint"][full] = trace["log_joint"][full][0]
        r_hats, esses = diagnose(final)
        return {
            "families_": encoder.families_,
            "hyperparameter_grids_": grids_in_units(
                model.grids, encoder.families_, table, model.prior_grid
            ),
            "draws_": chains,
            "trace_": trace,
            "schedule_": results[0]["schedule"],
            "n_sweeps_": float(np.nanmax(trace["sweeps"])),
            "labels_": labels,
            "n_clusters_": int(labels.max()) + 1,
            "r_hat_": r_hats,
            "ess_": esses,
            "_encoder": encoder,
            "_states": [r["state"] for r in results],
            "_point": _partition_arrays(draws[int(np.argmax(log_joints))], labels, table),
        }

    def _warn_of_disagreement(self, n_rows):
        full = self.trace_["n_assigned"] == n_rows
        worst = self.r_hat_["log_joint"]
        if full.sum(axis=1).min() >= ENOUGH_RECORDS and worst > DISAGREE:
            warnings.warn(
                f"Chains disagree: R-hat of the log joint density is {worst:.2f}. Raise the "
                f"schedule's n_sweeps, or look at `trace_`.",
                ConvergenceWarning,
                stacklevel=5,  # the caller of fit
            )

    # ---- queries --------------------------------------------------------------------------------

    def _predictor(self, draws=None):
        check_is_fitted(self)
        draws = [draw for chain in self.draws_ for draw in chain] if draws is None else draws
        return Predictor(draws, self._encoder.table_schema)

    def _query(self, predictor, X):
        return predictor.table(self._encoder.encode(self, X))

    def fit_predict(self, X, y=None, **fit_params):
        """Fit and return `labels_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            As in `fit`.
        y : None
            Not used.
        **fit_params : dict
            Handed to `fit`.

        Returns
        -------
        labels : ndarray of shape (n_rows,), int64
            The point-estimate partition.
        """
        return self.fit(X, **fit_params).labels_

    def predict(self, X):
        """Most probable existing cluster of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        labels : ndarray of shape (n_rows,), int64
            Clusters of `labels_`.
        """
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        """Probability of each existing cluster, given that the row is in one of them.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_clusters_)
            Rows sum to 1.
        """
        check_is_fitted(self)
        predictor = self._predictor([self._point])
        return predictor.cluster_probabilities(self._query(predictor, X))

    def new_cluster_proba(self, X):
        """Probability that each row belongs to none of the clusters seen so far.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Any cell may be missing.

        Returns
        -------
        probabilities : ndarray of shape (n_rows,)
            Averaged over chains and draws.
        """
        predictor = self._predictor()
        return predictor.new_cluster_probability(self._query(predictor, X))

    def score_samples(self, X):
        """Log predictive density of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Missing cells are integrated out.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            In nats and the units of X; densities are averaged over chains and draws, the term of a
            new cluster included.
        """
        predictor = self._predictor()
        return predictor.log_density(self._query(predictor, X))

    def score(self, X, y=None):
        """Mean log predictive density per row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Held-out rows.
        y : None
            Not used.

        Returns
        -------
        score : float
            In nats per row; cross-validation maximises it.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples=1):
        """Draw new rows from the posterior predictive.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        rows : ndarray, frame or list
            Of the sort, the columns and where possible the dtypes of the X of `fit`.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}")
        seed = spawn_seeds(self.random_state, self.n_chains + 2)[-1]  # none of the fit's
        columns, _ = self._predictor().sample(int(n_samples), seed)
        for j in np.concatenate(
            [self.families_.get(f, np.empty(0, np.int64)) for f in ("categorical", "bernoulli")]
        ).astype(int):
            columns[j] = columns[j].astype(np.int64)
        return self._encoder.decode(columns)

    def surprisal(self, X):
        """How unexpected each cell is given the rest of its row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Missing cells do not count.

        Returns
        -------
        surprisal : ndarray of shape (n_rows, n_columns)
            -log p(cell | the row's other cells) in nats; nan for missing cells.
        """
        predictor = self._predictor()
        return predictor.cell_surprisals(self._query(predictor, X))

    def impute(self, X):
        """Fill missing cells: numbers by their posterior mean, levels by the most probable one.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Not changed.

        Returns
        -------
        filled : of the type of X
            Observed cells untouched.
        """
        predictor = self._predictor()
        return self._encoder.decode(predictor.expectations(self._query(predictor, X)), like=X)

    @property
    def n_iter_(self):
        """Sweeps run, rounded up: scikit-learn's name for `n_sweeps_`."""
        check_is_fitted(self, "n_sweeps_")
        return int(np.ceil(self.n_sweeps_))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "draws_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = False
        return tags


def _chain_task(model, schedule, seed, n_draws, thin, state, verbose, stop):
    return run_chain(model, schedule, seed, n_draws, thin, state, stop, verbose)


def _fingerprint(table):
    """A number that tells tables apart: of their encoded cells, offsets and scales."""
    header = (table.dtypes, table.n_rows, table.offsets.tolist(), table.scales.tolist())
    crc = zlib.crc32(repr(header).encode())
    for j in range(table.n_columns):
        crc = zlib.crc32(np.ascontiguousarray(table.column(j)), crc)
    return crc


def _padded(traces):
    """Chains side by side, padded with nan: dict of arrays (n_chains, n_records)."""
    longest = max(len(trace["sweeps"]) for trace in traces)
    return {
        name: np.array([np.r_[t[name], np.full(longest - len(t[name]), np.nan)] for t in traces])
        for name in TRACE
    }


def _partition_arrays(draw, labels, table):
    """A draw with another partition of the training rows: what `predict` asks."""
    mixture = Mixture.from_arrays(draw.arrays, table, Subsample(table.n_rows))
    mixture.replace(np.arange(table.n_rows), labels)
    arrays = mixture.to_arrays() | {"log_joint": np.array(mixture.log_joint())}
    return Draw(arrays, table.offsets, table.scales)


def sketch(model, seed):
    """Strata from a quick look: cluster a few rows, then send every row to its cluster.

    Rows for which a new cluster is more probable than any of those found are a stratum of their
    own: that is where what is rare lies.

    Returns
    -------
    strata : ndarray of shape (n_rows,), int64
    """
    table = model.table
    generator = np.random.Generator(np.random.PCG64(seed))
    order = np.argsort(generator.random(table.n_rows), kind="stable")
    rows = np.sort(order[:SKETCH_ROWS])
    small = table.empty_like()
    small.append([table.column(j)[rows] for j in range(table.n_columns)])
    result = run_chain(model._replace(table=small), SequentialGibbs(n_sweeps=3), seed)
    mixture = Mixture.from_arrays(result["draws"][0], table.empty_like())
    strata = np.empty(table.n_rows, dtype=np.int64)
    for start in range(0, table.n_rows, 8192):
        stop = min(start + 8192, table.n_rows)
        scores, log_weights = mixture.score_rows(table, start, stop)
        strata[start:stop] = (scores + log_weights).argmax(axis=1)
    return np.unique(strata, return_inverse=True)[1]
