"""AcceleratedDPMixture: a Dirichlet or Pitman-Yor process mixture on shards, conjugate or not."""

# SPDX-License-Identifier: BSD-3-Clause

import copy
import time
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from ..chains._chain import ChainPlan
from ..encoding import grids_in_units, partition_grid
from ..likelihoods import LIKELIHOODS, Likelihood
from ..parallel import InterruptNote, spawn_seeds
from ..parallel._time_limit import TimeLimit
from ..predictive._draws import Draw
from ..schedules import AcceleratedSchedule, PriorGibbs
from ..sharded._chain import ACCELERATED_SHARE, STAGES, AcceleratedChain, ShardedRun
from ..sharded._data import FAMILY, first_labels, read
from ..sharded._draws import FeatureDraw
from ..sharded._point import features_of, point_of
from ..sharded._queries import FeatureQueryMixin, is_conjugate
from ..sharded._shards import ShardPool
from ..summary._settled import warn_unless_settled
from ._all_or_nothing import all_or_nothing
from ._base import BaseMixtureEstimator, _padded

ALGORITHMS = ("collapsed", *STAGES)
ONE_SHARD = ("auxiliary", "collapsed", "importance")  # one row after another
POINT = 3  # of the seeds' purposes
CLIMBING_SHARE = 0.1  # of max_time, that the point estimate may always climb for
APPROXIMATE = " That is of the accelerated stage, which is approximate: warm_start goes on exactly."
AUTO_ALGORITHM = "accelerated"  # measured: see doc/accelerated.md


class AcceleratedDPMixture(FeatureQueryMixin, BaseMixtureEstimator):
    """Nonparametric Bayesian mixture on shards of the rows, with or without a conjugate prior.

    Clusters are *features*: parameters of a likelihood, instantiated, so that shards of the rows
    can be sampled side by side and any likelihood will do. A first, approximate stage makes
    features from rows that are ill explained; then an exact stage leaves the posterior invariant
    (Zhang, Williamson and Perez-Cruz [1]_, corrected: see the user guide).

    Parameters
    ----------
    likelihood : str or Likelihood, default="auto"
        Of a row given its feature: "multinomial" (rows of counts), "poisson" (independent counts),
        "gaussian" (independent numbers), "gaussian_full" (with covariances), "logistic_normal"
        (rows of counts whose log-odds are normal of low rank; not conjugate), or an object of a
        subclass of `skanneal.likelihoods.Likelihood`. "auto": "gaussian"; rows of counts have to be
        named, for a table of whole numbers may as well hold measurements.
    hyperparameters : "infer" or mapping, default="infer"
        Data-scaled grids and Gibbs steps, or a mapping of the likelihood's name to what is fixed,
        by name as in `AnnealedDPMixture`: ``{"multinomial": {"pseudo_counts": 1.0}}``. Of
        "logistic_normal" `rank` and `scale`.
    concentration : "infer" or float, default="infer"
        Concentration of the process.
    discount : "infer" or float, default=0.0
        Discount of the Pitman-Yor process, in [0, 1); 0 is the Dirichlet process.
    algorithm : str, default="auto"
        "accelerated": the accelerated stage, then the exact one. "hybrid": the exact stage alone.
        "auxiliary": Neal's algorithm 8. "importance": algorithm 8 with features proposed by the
        row. "slice": the uncollapsed slice sampler. "collapsed": Gibbs sampling with features
        integrated out. "auto" is the measured best, "accelerated". "auxiliary", "importance" and
        "collapsed" take one row after another: they use one shard.
    schedule : AcceleratedSchedule or None, default=None
        Lengths of the stages, and the time; None is ``AcceleratedSchedule()``.
    n_shards : int, default=2
        Shards of the rows. Results depend on it, but not on `n_jobs`. More shards than jobs even
        the load out.
    n_auxiliary : int, default=3
        Empty features at a time: in "auxiliary", "importance", and in the exact stage if the
        likelihood is not conjugate.
    init : {"one", "kmeans"} or int, default="one"
        All rows in one cluster, 100 clusters by k-means, or so many at random.
    point_estimate : {"map", "vi", "binder"}, default="map"
        `labels_` is the most probable partition found (the draw of highest log joint density, from
        which each row moves to its best cluster until none would leave), or the partition of least
        expected variation of information or Binder loss. With a time limit, they take what is
        left of it, or a tenth.
    n_chains : int, default=1
        Independent chains.
    n_draws : int, default=1
        Draws kept per chain: the schedule's end, then one every `thin` sub-iterations.
    thin : int, default=1
        Sub-iterations between draws.
    max_time : float or None, default=None
        Seconds of wall clock that the fit may take, all of it; where the schedule has a `max_time`
        too, the smaller holds. The schedule is stretched or compressed to it.
    n_jobs : int or None, default=None
        Segments (a shard of a chain between two synchronisations) at a time, through joblib:
        threads by default, processes, Dask or Ray by ``joblib.parallel_config``.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs` and backend.
    warm_start : bool, default=False
        Whether a second `fit`, on the same rows, goes on with ``n_draws * thin`` sub-iterations.
    verbose : int, default=0
        Above 0: print a line per record of the trace.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int64
        The point-estimate partition, numbered from 0.
    n_clusters_ : int
        Its number of clusters.
    features_ : ndarray of shape (`n_clusters_`, ...)
        Its clusters' features, with a conjugate prior their posterior means: probabilities, rates,
        or means and variances, of the columns in `families_` that are not constant.
    draws_ : list of list of Draw or FeatureDraw
        ``draws_[chain][draw]``.
    trace_ : dict of ndarray of shape (n_chains, n_records)
        At every synchronisation: "seconds", "sweeps" (sub-iterations), "n_assigned",
        "n_components", "log_joint", "concentration", "discount", and "burn_in", 1 in the
        accelerated stage; padded with nan.
    r_hat_, ess_ : dict of float
        Of the scalars in the trace, burn-in left out; nan where it is too short.
    likelihood_ : Likelihood
        The likelihood, with the hyperparameters it began with.
    families_ : dict of str to ndarray
        Positions of each family's columns, for the built-in likelihoods; as "constant" those of
        columns of numbers that have one value in all rows, and are set apart.
    hyperparameter_grids_ : dict
        The grids, in the user's units, if the likelihood is conjugate.
    algorithm_ : str
        The algorithm that was run.
    schedule_ : AcceleratedSchedule
        The schedule that was run; with a time limit, what became of it, without one: the same data
        and seed then give the same bits again, except that "collapsed", whose last sweep the time
        may cut short, is rounded down to whole sweeps.
    n_sweeps_ : float
        Sub-iterations run, further draws included.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        If X had column names.

    See Also
    --------
    AnnealedDPMixture : Tables of mixed columns with gaps, on one machine.

    References
    ----------
    .. [1] M. M. Zhang, S. A. Williamson, F. Perez-Cruz (2022). "Accelerated Parallel Non-conjugate
       Sampling for Bayesian Non-parametric Models". Statistics and Computing.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import AcceleratedDPMixture
    >>> from skanneal.schedules import AcceleratedSchedule
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.multinomial(50, [.6, .3, .1], 100), rng.multinomial(50, [.1, .3, .6], 100)]
    >>> schedule = AcceleratedSchedule(n_accelerated=20, n_exact=200)
    >>> model = AcceleratedDPMixture(
    ...     likelihood="multinomial",
    ...     schedule=schedule,
    ...     point_estimate="vi",
    ...     n_draws=50,
    ...     thin=4,
    ...     random_state=0,
    ... ).fit(X)
    >>> model.n_clusters_
    2
    >>> np.sort(model.features_[:, 0]).round(1).tolist()
    [0.1, 0.6]
    """

    _parameter_constraints: dict = {
        "likelihood": [StrOptions({"auto", *LIKELIHOODS}), Likelihood],
        "hyperparameters": BaseMixtureEstimator._parameter_constraints["hyperparameters"],
        "concentration": [StrOptions({"infer"}), Real],
        "discount": [StrOptions({"infer"}), Real],
        "algorithm": [StrOptions({"auto", *ALGORITHMS})],
        "schedule": [AcceleratedSchedule, None],
        "n_shards": [Interval(Integral, 1, None, closed="left")],
        "n_auxiliary": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"one", "kmeans"}), Interval(Integral, 1, None, closed="left")],
        **{
            name: BaseMixtureEstimator._parameter_constraints[name]
            for name in (
                "point_estimate",
                "n_chains",
                "n_draws",
                "thin",
                "max_time",
                "n_jobs",
                "random_state",
                "warm_start",
                "verbose",
            )
        },
    }

    _length = "n_exact"

    def __init__(
        self,
        *,
        likelihood="auto",
        hyperparameters="infer",
        concentration="infer",
        discount=0.0,
        algorithm="auto",
        schedule=None,
        n_shards=2,
        n_auxiliary=3,
        init="one",
        point_estimate="map",
        n_chains=1,
        n_draws=1,
        thin=1,
        max_time=None,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        verbose=0,
    ):
        self.likelihood = likelihood
        self.hyperparameters = hyperparameters
        self.concentration = concentration
        self.discount = discount
        self.algorithm = algorithm
        self.schedule = schedule
        self.n_shards = n_shards
        self.n_auxiliary = n_auxiliary
        self.init = init
        self.point_estimate = point_estimate
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.thin = thin
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Run the chains.

        Parameters
        ----------
        X : array-like, frame, sparse matrix, memory map or list of shard files
            Rows, shape (n_rows, n_columns), without missing cells; never changed. Sparse with a
            likelihood of counts that is named. A memory map, or a list of paths of .npy files or of
            .npz files of CSR matrices, is read shard by shard and need not fit into memory: one
            shard per job does.
        y : None
            Not used.

        Returns
        -------
        self : AcceleratedDPMixture

        Raises
        ------
        ValueError, TypeError
            Naming the column, row, parameter or method at fault.
        """
        schedule = AcceleratedSchedule() if self.schedule is None else copy.deepcopy(self.schedule)
        schedule._validate_params()
        limit = TimeLimit(self.max_time, schedule.max_time)
        schedule.set_params(max_time=None)
        algorithm = AUTO_ALGORITHM if self.algorithm == "auto" else self.algorithm
        if algorithm == "accelerated" and schedule.n_exact == 0:
            raise ValueError(
                "the accelerated stage is burn-in, of which nothing is kept: n_exact of the "
                "schedule must be at least 1"
            )
        if algorithm == "collapsed" and not is_conjugate(self.likelihood):
            raise ValueError(
                f"algorithm='collapsed' integrates features out: {self._name()} has no conjugate "
                f"prior. Use 'accelerated', 'hybrid', 'auxiliary', 'importance' or 'slice'"
            )
        partition_grid(self.concentration, self.discount)  # whose errors come before any work
        with all_or_nothing(self):
            n_shards = 1 if algorithm in ONE_SHARD else self.n_shards
            data = read(self, X, n_shards, algorithm in ("accelerated", "importance"))
            data = data._replace(fingerprint=(data.fingerprint, algorithm == "collapsed"))
            grid = partition_grid(self.concentration, self.discount, data.shards.n_rows)
            if algorithm == "collapsed":
                fitted, interrupted = self._fit_collapsed(data, schedule, grid, limit)
            else:
                fitted, interrupted = self._fit_uncollapsed(data, schedule, grid, algorithm, limit)
        fitted["_fingerprint"] = data.fingerprint
        fitted["algorithm_"] = algorithm
        for name in ("families_", "hyperparameter_grids_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)
        if self.n_chains > 1:
            self._warn_of_disagreement(data.shards.n_rows, stacklevel=4)
        self._warn_of_edge({"prior_grid": grid}, data.shards.n_rows, stacklevel=4)
        if not interrupted:
            warn_unless_settled(self.trace_, schedule, limit.seconds, stacklevel=3)
        if interrupted:
            warnings.warn(
                "The fit was interrupted: it keeps the last complete state of each chain."
                + (APPROXIMATE if np.all(self.trace_["burn_in"] == 1.0) else ""),
                ConvergenceWarning,
                stacklevel=3,  # the caller of fit, beyond its decorator
            )
        return self

    # ---- the two ways ---------------------------------------------------------------------------

    def _fit_uncollapsed(self, data, schedule, grid, algorithm, limit):
        """All chains, one segment after another; (fitted attributes, interrupted)."""
        seeds = spawn_seeds(self.random_state, self.n_chains + 1)
        with InterruptNote() as note:
            run, lengths, draws = self._run(data, schedule, grid, algorithm, seeds, note, limit)
            up = np.inf
            if limit:
                left = limit.left - run.reading  # a pass for the features follows
                up = time.perf_counter() + max(left, CLIMBING_SHARE * limit.seconds)

            def ended():
                return note.noted or time.perf_counter() >= up

            if lengths and (limit or run.interrupted):
                if not all(lengths) and not run.interrupted:
                    stages = [key for (key, _), done in zip(STAGES[algorithm], lengths) if not done]
                    stages = "" if "all" in stages else f" in stage {' and '.join(stages)}"
                    self._warn_of_short_time(limit, algorithm, stages)
                schedule = _realised(schedule, lengths)
            fitted = self._fitted(data, grid, run.chains, draws, ended)
        return fitted | {"schedule_": schedule}, run.interrupted

    def _run(self, data, schedule, grid, algorithm, seeds, note, limit):
        """(Run, lengths of each stage's segments or none of them, draws by chain)."""
        hook = getattr(self, "_on_record", None)
        with ShardPool(data.shards, self.n_jobs) as pool:
            if self.warm_start and hasattr(self, "_states"):
                states = self._earlier_states(data.fingerprint)
                chains = [
                    AcceleratedChain.from_arrays(
                        s, data.shards, copy.deepcopy(data.likelihood), grid
                    )
                    for s in states
                ]
                run = ShardedRun(pool, chains, note, self.verbose, hook)
                lengths, draws, end = [], [], run.end(limit)
            else:
                starts = seeds[-1].spawn(self.n_chains)
                chains = [
                    AcceleratedChain(
                        data.shards,
                        copy.deepcopy(data.likelihood),
                        grid,
                        first_labels(self.init, data, start),
                        seed,
                    )
                    for seed, start in zip(seeds, starts)
                ]
                run = ShardedRun(pool, chains, note, self.verbose, hook)
                begun = run.first()
                end = run.end(limit)
                lengths = self._run_stages(run, schedule, algorithm, end) if begun else []
                if run.interrupted and not any(lengths):  # no state but the one to begin with
                    raise KeyboardInterrupt
                draws = [[chain.draw() for chain in chains]]
            stage = STAGES[algorithm][-1][1](self.n_auxiliary)
            between = AcceleratedSchedule(n_accelerated=0, n_exact=self.thin).segments("exact")
            while len(draws) < self.n_draws:
                done = sum(run.stage(stage, between, end))
                if run.interrupted and not draws and not done:  # nothing that is not there already
                    raise KeyboardInterrupt
                if done == self.thin or not draws:
                    draws.append([chain.draw() for chain in chains])
                if done < self.thin:
                    break
        return run, lengths, list(zip(*draws))

    @staticmethod
    def _warn_of_short_time(limit, algorithm, stages=""):
        warnings.warn(
            f"max_time={limit.seconds:g} is too short for algorithm={algorithm!r} to give every "
            f"row a turn{stages}: the other rows stay where they were before. It was over after "
            f"{limit.taken:.3g} seconds. Give more time, or fewer rows.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _earlier_states(self, fingerprint):
        if fingerprint != self._fingerprint:
            raise ValueError(
                "warm_start goes on with the same rows: X, likelihood, n_shards, or whether "
                "algorithm is 'collapsed', differ from the earlier fit's"
            )
        return super()._earlier_states(fingerprint)

    def _run_stages(self, run, schedule, algorithm, max_time):
        """Lengths of the segments of each stage."""
        lengths = []
        stages = STAGES[algorithm]
        for key, make in stages:
            last = key == stages[-1][0]
            deadline = max_time and max_time * (1.0 if last else ACCELERATED_SHARE)
            of_stage = schedule.segments(key)
            further = (self.n_draws - 1) * self.thin if last else 0
            stage = make(self.n_auxiliary)
            lengths.append(run.stage(stage, of_stage, deadline, max_time, further))
        return lengths

    def _fit_collapsed(self, data, schedule, grid, limit):
        """Collapsed Gibbs sampling, the chains side by side; (fitted attributes, interrupted)."""
        if data.table is None:
            raise ValueError("algorithm='collapsed' holds all rows: X must fit into memory")
        seeds = spawn_seeds(self.random_state, self.n_chains + 1)
        starts = seeds[-1].spawn(self.n_chains)
        n_sweeps = schedule.n_accelerated + schedule.n_exact
        gibbs = PriorGibbs(n_sweeps=n_sweeps)
        resume = self.warm_start and hasattr(self, "_states")
        states = self._earlier_states(data.fingerprint) if resume else [None] * self.n_chains
        model = self._model(data, grid)
        models = [model._replace(init=first_labels(self.init, data, start)) for start in starts]
        results, interrupted = self._run_chains(limit, models, gibbs, seeds, states)
        began = np.nanmax(self.trace_["sweeps"]) if resume else 0.0
        if interrupted and all(r["trace"]["sweeps"][-1] <= began for r in results):
            raise KeyboardInterrupt  # no state but those to begin with
        if not interrupted and not all(r["in_time"] for r in results):
            self._warn_of_short_time(limit, "collapsed")
        with InterruptNote() as note:
            fitted = self._collapsed_results(data, model, results, schedule, resume, limit)
        return fitted, interrupted or note.noted

    def _collapsed_results(self, data, model, results, schedule, resume, limit):
        """Fitted attributes."""
        fitted = self._results(data.encoder, model, results)
        fitted["schedule_"] = schedule
        if limit and not resume:
            n_sweeps = int(results[0]["schedule"].at[-1]) // data.table.n_rows
            fitted["schedule_"] = AcceleratedSchedule(n_accelerated=0, n_exact=n_sweeps)
        sweeps = fitted["trace_"]["sweeps"]
        fitted["trace_"]["burn_in"] = np.where(np.isnan(sweeps), np.nan, 0.0)
        fitted["likelihood_"] = data.likelihood
        fitted["features_"] = features_of(data, fitted["_point"])
        return fitted

    def _model(self, data, grid):
        families = data.encoder.table_families
        return ChainPlan(data.table, families, data.hyper, data.grids, grid, ("gibbs",))

    def _name(self):
        return (
            repr(self.likelihood)
            if isinstance(self.likelihood, str)
            else type(self.likelihood).__name__
        )

    # ---- what is fitted -------------------------------------------------------------------------

    def _fitted(self, data, grid, chains, draws, ended):
        conjugate = data.likelihood.conjugate
        if conjugate:
            kept = [[Draw(arrays, data.encoder) for arrays in of_chain] for of_chain in draws]
        else:
            kept = [[FeatureDraw(a, data.likelihood) for a in of_chain] for of_chain in draws]
        trace = _padded([{n: np.array(v) for n, v in c.trace.items()} for c in chains])
        flat = [draw for of_chain in kept for draw in of_chain]
        seed = np.random.PCG64(self._seed(POINT))
        point, state = point_of(data, flat, self.point_estimate, seed, ended)
        fitted = {
            "draws_": kept,
            "trace_": trace,
            "n_sweeps_": float(np.nanmax(trace["sweeps"])),
            "labels_": point.labels.astype(np.int64),
            "n_clusters_": point.n_components,
            "likelihood_": data.likelihood,
            "_point": point,
            "_encoder": data.encoder,
            "_states": [chain.to_arrays() for chain in chains],
        }
        fitted["r_hat_"], fitted["ess_"] = self._diagnosed(trace, data.shards.n_rows)
        if data.encoder is not None:
            fitted["families_"] = data.encoder.families_
        if conjugate:
            model = self._model(data, grid)
            if model.table is None:
                model = model._replace(table=data.likelihood.schema)
            fitted["hyperparameter_grids_"] = grids_in_units(model, data.encoder.shown_families)
        fitted["features_"] = features_of(data, point, state)
        return fitted

    def __sklearn_tags__(self):
        tags = super(BaseMixtureEstimator, self).__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.likelihood, str) and (
            FAMILY.get(self.likelihood) == "multinomial"
        )
        return tags


def _realised(schedule, lengths):
    """What was run, as a schedule without a time limit."""
    first, last = lengths if len(lengths) == 2 else ([], lengths[0])
    return AcceleratedSchedule(
        n_accelerated=sum(first), n_exact=sum(last), sync_every=[*first, *last] or [1]
    )
