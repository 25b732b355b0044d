"""AcceleratedDPMixture: a Dirichlet or Pitman-Yor process mixture on shards, conjugate or not."""

# SPDX-License-Identifier: BSD-3-Clause

import copy
from collections.abc import Mapping
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .._native._types import Hyperparameters, Seed, TableLike
from ..families import reads_sparse
from ..likelihoods import LIKELIHOODS, Likelihood
from ..parallel import InterruptNote, OfFit, TimeLimit, spawn_seeds
from ..schedules import AcceleratedSchedule, PriorGibbs
from ..sharded._chain import STAGES, ShardedRun
from ..sharded._clusters import ShardedClusters
from ..sharded._data import NUMBERS, family_of, first_labels, is_conjugate, read, refuse_gaps
from ..sharded._fit import Sampling, chains_of, draw_on_shards, realised, too_short, unreached
from ..sharded._point import features_of, point_of
from ..sharded._queries import FeatureQueries
from ..sharded._shards import ShardPool
from ..summary import warn_unless_settled
from ._base_chains import INTERRUPTED, BaseChains, check_states
from ._base_table import CLUSTERS, BaseTable
from ._callbacks import Round
from ._fit_context import validated
from ._memberships import MembershipMixin
from ._weighted_draws import weighted_draws

ALGORITHMS = ("collapsed", *STAGES)
ONE_SHARD = ("auxiliary", "collapsed", "importance")  # these take one row after another
LABELS_SHARE = 0.1  # of max_time: the point estimate leaves at least so much for the labels
APPROXIMATE = " That is of the accelerated stage, which is approximate: warm_start goes on exactly."
AUTO_ALGORITHM = "accelerated"  # measured: see doc/accelerated.md


def _integrates(estimator):
    """Whether the likelihood, fitted or to be fitted, integrates atoms out."""
    return is_conjugate(getattr(estimator, "likelihood_", estimator.likelihood))


class AcceleratedDPMixture(MembershipMixin, BaseTable, BaseChains):
    """Nonparametric Bayesian mixture on shards of the rows, with or without a conjugate prior.

    Each cluster has an *atom*, a value of the parameters of the likelihood, which is drawn like
    everything else. So shards of the rows can be sampled in parallel, and the likelihood need not
    have a conjugate prior. A first, approximate stage makes atoms from rows that are badly
    explained; then an exact stage leaves the posterior invariant (Zhang, Williamson and Perez-Cruz
    [1]_, corrected: see the user guide). The prior is always a Dirichlet or Pitman-Yor process,
    because the samplers instantiate weights of infinitely many clusters.

    Parameters
    ----------
    likelihood : str or Likelihood, default="auto"
        Density of a row given its atom: "multinomial" (rows of counts), "poisson" (independent
        counts), "normal" (independent numbers), "multivariate_normal" (numbers with covariances),
        "logistic_normal" (rows of counts whose log-odds are normal of low rank; not conjugate), or
        an object of a subclass of `skanneal.likelihoods.Likelihood`. "auto" is "normal" or, if this
        makes rows not yet seen more probable, "multivariate_normal"; it leaves identifiers out,
        with a warning. It treats whole numbers as numbers, so for rows of counts the likelihood
        must be named. Numbers are plain: draws of a column that is never negative may be negative.
    rounding : "auto", None or mapping, default="auto"
        How rounded columns of numbers are treated, as in `AnnealedDPMixture`.
    hyperparameters : "infer" or mapping, default="infer"
        "infer": Gibbs draws on grids that are scaled to the data. Otherwise a mapping of the
        likelihood's name to fixed values, by name as in `AnnealedDPMixture`: ``{"multinomial":
        {"pseudo_counts": 1.0}}``. A conjugate likelihood has the name of the family that integrates
        its atoms, and draws report its hyperparameters under this name. For "logistic_normal" the
        names are `rank` and `scale`.
    concentration : "infer" or float, default="infer"
        Concentration of the process.
    discount : "infer" or float, default=0.0
        Discount of the Pitman-Yor process, in [0, 1); 0 is the Dirichlet process.
    expected_clusters : (float, float) or None, default=None
        A pair (low, high) that says how many components to expect: the prior of an inferred
        concentration gives `low` or fewer components with probability 0.1, and `high` or more with
        probability 0.1. None means from 1 to the square root of the number of rows, or to 10 if
        that is more. `high` is at most the number of rows.
    algorithm : str, default="auto"
        "accelerated": the accelerated stage, then the exact one. "hybrid": the exact stage alone.
        "auxiliary": Neal's algorithm 8. "importance": algorithm 8 with atoms proposed near the row.
        "slice": the uncollapsed slice sampler. "collapsed": Gibbs sampling with atoms integrated
        out. "auto" is "accelerated", which was the best in measurements. "auxiliary", "importance"
        and "collapsed" take one row after another, and so use one shard.
    schedule : AcceleratedSchedule or None, default=None
        Lengths of the stages, and the time limit; None is ``AcceleratedSchedule()``.
    n_shards : int, default=2
        Number of shards of the rows. Results depend on it, but not on `n_jobs`. With more shards
        than jobs the load is more even.
    n_auxiliary : int, default=3
        Number of empty atoms at a time: in "auxiliary" and "importance", and in the exact stage if
        the likelihood is not conjugate.
    init : {"one", "kmeans"} or int, default="one"
        "one": all rows in one cluster. "kmeans": 100 clusters by k-means. A number: this many
        clusters at random.
    point_estimate : {"clusters", "map", "vi", "binder"}, default="clusters"
        What `labels_` are, as in `AnnealedDPMixture`: clusters made of components, or the
        components of the most probable partition or of the partition of least expected loss.
    separation, n_clusters, noise : float, int or None, float or None
        How components are joined to clusters, as in `AnnealedDPMixture`. The defaults are 0.9,
        None and None.
    n_chains : int, default=1
        Independent chains.
    n_draws : int, default=1
        Draws kept per chain. The first is the state at the end of the schedule; the others follow
        every `thin` sub-iterations.
    thin : int, default=1
        Sub-iterations between draws.
    max_time : float or None, default=None
        Seconds of wall clock that the whole fit may take: reading, all chains, and what follows
        them. It replaces the schedule's `max_time`. Chains have at most four fifths of it; for rows
        on disk the time of two passes over them is reserved too. What follows the chains uses the
        rest. If this is short, fewer rows are moved to better components or, if the likelihood is
        not conjugate, judge clusters, and these and outlier scores are averaged over fewer draws;
        at the least, rows have the clusters of their components, with a warning. A fit takes longer
        only if a single pass over the rows does.
    n_jobs : int or None, default=None
        How many segments run at a time, through joblib; a segment is the work of a chain on a shard
        between two synchronisations. By default they run in threads; ``joblib.parallel_config``
        chooses processes, Dask or Ray.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs` and backend.
    warm_start : bool, default=False
        Whether a second `fit`, on the same rows, continues the first with ``n_draws * thin``
        sub-iterations.
    verbose : int, default=0
        If above 0, a line is printed for each stage of each chain.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int64
        The cluster of each row; the largest cluster is 0. Where clusters are made of components,
        with `point_estimate` "clusters" or a number `n_clusters`, `predict` gives the same for the
        training rows; otherwise these are the components, and it may differ.
    n_clusters_ : int
        The number of clusters in `labels_`, those that `noise` has emptied included.
    component_labels_ : ndarray of shape (n_rows,), int64
        The component of each row in the point estimate.
    n_components_ : int
        The number of components in the point estimate.
    probabilities_, cluster_tree_, valley_sureness_, n_clusters_proba_, n_components_proba_ : array
        As in `AnnealedDPMixture`, where `labels_` are clusters. Rows are scored a block at a time,
        also those on disk. `probabilities_` are nan if there was no time for it.
    features_ : ndarray of shape (`n_components_`, ...)
        Parameters of the components: probabilities, rates, or means and variances, for the columns
        in `families_` that are not set apart. With a conjugate prior they are posterior means.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is: the scores that `score_outliers` gives to new rows, but each
        row is left out of the model that scores it. They are averaged over at most 8 of the draws;
        nan if `max_time` left no time even for one of them. Only for conjugate likelihoods and rows
        in memory.
    draws_ : list of list of Draw or FeatureDraw
        ``draws_[chain][draw]``.
    trace_ : dict of ndarray of shape (n_chains, n_records)
        At every synchronisation: "seconds", "sweeps" (sub-iterations), "n_assigned",
        "n_components", "log_joint", "concentration", "discount", and "burn_in", 1 in the
        accelerated stage; padded with nan.
    r_hat_, ess_ : dict of float
        R-hat and the effective sample size of the scalars in `trace_`, without burn-in; nan where
        it is too short.
    likelihood_ : Likelihood
        The likelihood, with the hyperparameters it began with.
    families_ : dict of str to ndarray
        The positions of each family's columns, for the built-in likelihoods. Columns that are set
        apart are listed as "constant" (they have one value), "identifier" (they name the rows) and
        "collinear" (other columns determine them).
    family_evidence_ : dict or None
        How "auto" chose between the families of the likelihoods for numbers, as in
        `AnnealedDPMixture`; None if the likelihood is named or rows are on disk.
    rounding_ : dict
        The step of each rounded column, by its name, or by its position if there are no names.
    hyperparameter_grids_ : dict
        The grids of the inferred hyperparameters, in the user's units, if the likelihood is
        conjugate; by the likelihood's name, as in `AnnealedDPMixture`.
    algorithm_ : str
        The algorithm that was run.
    schedule_ : AcceleratedSchedule
        The schedule that was run. With a time limit it is what was done, without a limit: with the
        same data and seed it gives the same bits again. It cannot if time was over within the first
        segment of a stage, whose length is then 0, nor if "collapsed", which counts whole sweeps,
        was cut short in the last one or in the moves after it.
    n_sweeps_ : float
        The number of sub-iterations that were run, including those between draws.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

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
    >>> schedule = AcceleratedSchedule(n_accelerated=20, n_exact=600)
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
        **BaseTable._parameter_constraints,
        **BaseChains._parameter_constraints,
        **CLUSTERS,
        "likelihood": [StrOptions({"auto", *LIKELIHOODS}), Likelihood],
        "rounding": [StrOptions({"auto"}), Mapping, None],
        "algorithm": [StrOptions({"auto", *ALGORITHMS})],
        "schedule": [AcceleratedSchedule, None],
        "n_shards": [Interval(Integral, 1, None, closed="left")],
        "n_auxiliary": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"one", "kmeans"}), Interval(Integral, 1, None, closed="left")],
    }
    _clusters_type = ShardedClusters
    _advice = BaseChains._advice.replace("n_sweeps", "n_exact")

    def __init__(
        self,
        *,
        likelihood: Any = "auto",
        rounding: str | Mapping[Any, float] | None = "auto",
        hyperparameters: Hyperparameters = "infer",
        concentration: str | float = "infer",
        discount: str | float = 0.0,
        expected_clusters: tuple[float, float] | None = None,
        algorithm: str = "auto",
        schedule: Any = None,
        n_shards: int = 2,
        n_auxiliary: int = 3,
        init: str | int = "one",
        point_estimate: str = "clusters",
        separation: float = 0.9,
        n_clusters: int | None = None,
        noise: float | None = None,
        n_chains: int = 1,
        n_draws: int = 1,
        thin: int = 1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.rounding = rounding
        self.hyperparameters = hyperparameters
        self.concentration = concentration
        self.discount = discount
        self.expected_clusters = expected_clusters
        self.algorithm = algorithm
        self.schedule = schedule
        self.n_shards = n_shards
        self.n_auxiliary = n_auxiliary
        self.init = init
        self.point_estimate = point_estimate
        self.separation = separation
        self.n_clusters = n_clusters
        self.noise = noise
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.thin = thin
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    @validated
    def fit(self, X: TableLike, y: Any = None) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like, frame, sparse matrix, memory map or list of shard files
            Rows, shape (n_rows, n_columns), without missing cells; never changed. Dates and
            durations are converted to days. X may be sparse if a likelihood of counts is named. A
            memory map, or a list of paths of .npy files or of .npz files of CSR matrices, is read
            shard by shard if it has more than 256 MiB, and need not fit into memory; memory must
            hold one shard per job. As such rows are never in memory together, only constant columns
            are set apart: "auto" is "normal", rounded numbers are not jittered, and identifiers
            and collinear columns are not detected.
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
        limit = TimeLimit(schedule.max_time if self.max_time is None else self.max_time)
        schedule.set_params(max_time=None)
        algorithm = self._resolve_algorithm(schedule)
        self._prior_grids()  # whose errors come before any work
        with self._all_or_nothing():
            n_shards = 1 if algorithm in ONE_SHARD else self.n_shards
            proposes = algorithm in ("accelerated", "importance")
            decide = partial(self._decided, limit=limit, names=list(NUMBERS))
            data = read(self, X, n_shards, proposes, decide)
            collapsed = algorithm == "collapsed"
            law = self._law_of(data.identity | {"whether algorithm is 'collapsed'": collapsed})
            grids = self._prior_grids(data.shards.n_rows)
            fit = self._fit_collapsed if collapsed else self._fit_on_shards
            of_chains = grids["concentration"], self._first_states(law)
            fitted, complaints, interrupted = fit(data, *of_chains, algorithm, schedule, limit)
            fitted |= data.described(*weighted_draws(fitted), limit)
            complaints += self._complaints(fitted, data.shards.n_rows, **grids)
            if interrupted:
                approximate = np.all(fitted["trace_"]["burn_in"] == 1.0)
                complaints.append(INTERRUPTED + (APPROXIMATE if approximate else ""))
        fitted |= {
            "algorithm_": algorithm,
            "likelihood_": data.likelihood,
            "_encoder": data.encoder,
            "_law": law,
        }
        self._keep(fitted, complaints)
        if not interrupted:
            warn_unless_settled(self.trace_, schedule, limit.seconds)
        return self

    def _resolve_algorithm(self, schedule):
        algorithm = AUTO_ALGORITHM if self.algorithm == "auto" else self.algorithm
        if algorithm == "accelerated" and schedule.n_exact == 0:
            raise ValueError(
                "the accelerated stage is burn-in, of which nothing is kept: n_exact of the "
                "schedule must be at least 1"
            )
        if algorithm == "collapsed" and not is_conjugate(self.likelihood):
            named = isinstance(self.likelihood, str)
            name = repr(self.likelihood) if named else type(self.likelihood).__name__
            raise ValueError(
                f"algorithm='collapsed' integrates atoms out: {name} has no conjugate prior. "
                f"Use 'accelerated', 'hybrid', 'auxiliary', 'importance' or 'slice'"
            )
        return algorithm

    def _fit_on_shards(self, data, grid, states, algorithm, schedule, limit):
        """Run uncollapsed chains in turns; return (fitted attributes, complaints, interrupted)."""
        complaints, (seeds, of_start) = [], self._seeds()
        sampling = Sampling(algorithm, schedule, self.n_auxiliary, self.n_draws, self.thin)
        with InterruptNote() as note:
            with ShardPool(data.shards, self.n_jobs) as pool:
                chains = chains_of(data, grid, states, seeds, of_start, self.init)
                with Round(self, len(chains)) as followed:
                    progress = [followed.chain(number) for number in range(len(chains))]
                    run = ShardedRun(
                        pool, chains, note, progress, getattr(self, "_on_record", None)
                    )
                    lengths, draws = draw_on_shards(run, sampling, limit, self._goes_on)
                    for chain in progress:
                        chain.end()

            def ended():  # a pass for the atoms and one for the labels follow
                after = LABELS_SHARE * limit.seconds + 2 * run.reading if limit else 0.0
                return note.noted or limit.left < after

            if lengths and (limit or run.interrupted):
                if not all(lengths) and not run.interrupted:
                    late = unreached(algorithm, lengths)
                    late = "" if "all" in late else f" in stage {' and '.join(late)}"
                    complaints.append(too_short(limit, algorithm, late))
                schedule = realised(lengths)
            draws = [[data.draw(arrays) for arrays in of_chain] for of_chain in draws]
            traces = [chain.trace.to_arrays() for chain in chains]
            states = [chain.to_arrays() for chain in chains]
            fitted = self._of_chains(draws, traces, states, data.shards.n_rows)
            flat = [draw for of_chain in draws for draw in of_chain]
            seed = np.random.PCG64(self._seed(OfFit.POINT))
            least = self._least(data.keys, data.shards.n_rows)
            point, state = point_of(data, flat, self._component_estimate, seed, ended, least)
            for chain in chains:  # no pass over the rows is needed where none has moved
                state = chain.state if chain.state.log_joint() == point.log_joint else state
            fitted |= {
                "schedule_": schedule,
                "features_": features_of(data, point, state),
                **self._of_point(point),
            }
            if data.likelihood.conjugate:
                fitted |= self._of_table(data.encoder, data.plan(grid))
            elif data.encoder is not None:
                fitted["families_"] = data.encoder.families_
            following = limit.of_interrupted if run.interrupted else limit
            fitted |= self._clustered(
                fitted, data.encoder, data.rows, least, following, asked=data.asked
            )
        return fitted, complaints, run.interrupted

    def _fit_collapsed(self, data, grid, states, algorithm, schedule, limit):
        """Run chains of collapsed Gibbs sampling side by side; return the same."""
        if data.table is None:
            raise ValueError("algorithm='collapsed' holds all rows: X must fit into memory")
        complaints, (seeds, of_start) = [], self._seeds()
        gibbs = PriorGibbs(n_sweeps=schedule.n_accelerated + schedule.n_exact)
        plan = data.plan(grid)
        check_states(states, plan)
        starts = spawn_seeds(of_start, self.n_chains)
        plans = [plan._replace(init=first_labels(self.init, data, start)) for start in starts]
        task = limit, plans, [gibbs] * len(plans), seeds, states, self.n_draws, self.thin
        results, interrupted = self._run_chains(*task)
        began = np.nanmax(self.trace_["sweeps"]) if self._goes_on else 0.0
        if interrupted and all(r["trace"]["sweeps"][-1] <= began for r in results):
            raise KeyboardInterrupt  # no state but those to begin with
        in_time = len(results) == self.n_chains and all(r["in_time"] for r in results)
        if not interrupted and not in_time:
            complaints.append(too_short(limit, algorithm))
        with InterruptNote() as note:
            fitted = self._results(data.encoder, plan, results, None, limit, data.asked)
            if limit and not self._goes_on:
                n_sweeps = int(fitted["schedule_"].at[-1]) // data.table.n_rows
                schedule = AcceleratedSchedule(n_accelerated=0, n_exact=n_sweeps)
            sweeps = fitted["trace_"]["sweeps"]
            fitted["trace_"]["burn_in"] = np.where(np.isnan(sweeps), np.nan, 0.0)
            fitted["schedule_"] = schedule
            fitted["features_"] = features_of(data, fitted["_point"])
        return fitted, complaints, interrupted or note.noted

    # ---- queries --------------------------------------------------------------------------------

    def _queries(self):
        check_is_fitted(self)
        likelihood = self.likelihood_
        if likelihood.conjugate:
            return super()._queries()
        read_rows = likelihood.encode if self._encoder is None else likelihood.rows
        return FeatureQueries(self._weighted_draws[0], self._point, read_rows)

    def _encoded(self, X):
        if self._encoder is None:
            return validate_data(self, X, dtype=np.float64, reset=False)
        columns = super()._encoded(X)
        refuse_gaps(self._encoder, columns)
        return columns

    def score_samples(self, X: TableLike, given: Any = None) -> np.ndarray:
        """Log predictive density of each row, or of some of its cells given the others.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_columns)
            Without missing cells.
        given : columns or None, default=None
            Names, positions or a mask of the columns whose cells are known: the density is then
            that of the other columns' cells given these. Conjugate likelihoods only.

        Returns
        -------
        log_density : ndarray of shape (n_rows,)
            In nats and the units of X. Densities are averaged over chains and draws, and include a
            new cluster. The density of a new cluster is exact with a conjugate prior. Otherwise it
            is an estimate from 256 atoms of the base measure and, if the likelihood has a proposal,
            from 128 atoms proposed for the row, which are always the same.
        """
        return super().score_samples(X, given)

    # rows without missing cells, but for `impute`
    sample = available_if(_integrates)(BaseTable.sample)
    surprisal = available_if(_integrates)(BaseTable.surprisal)
    score_outliers = available_if(_integrates)(BaseTable.score_outliers)
    explain_outliers = available_if(_integrates)(BaseTable.explain_outliers)
    impute = available_if(_integrates)(BaseTable.impute)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        named = isinstance(self.likelihood, str)
        tags.input_tags.sparse = named and reads_sparse(family_of(self.likelihood))
        return tags
