"""AnnealedDPMixture: a Dirichlet or Pitman-Yor process mixture, fitted by subsample annealing."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from .._native._types import Hyperparameters, Seed, TableLike
from ._annealed import BaseAnnealed
from ._base_table import CLUSTERS
from ._fit_context import validated
from ._memberships import MembershipMixin


class AnnealedDPMixture(MembershipMixin, BaseAnnealed):
    """Nonparametric Bayesian mixture for tables of numbers, categories and counts, with gaps.

    Rows are partitioned by a Dirichlet process (or Pitman-Yor process); within a component columns
    are independent, unless a family of whole rows describes them. A chain begins with an empty
    subsample that grows to all rows, while rows enter and leave it (subsample annealing, [1]_). So
    it finds the clusters while it is cheap to move them.

    Parameters
    ----------
    families : "auto", str or mapping, default="auto"
        What the columns are. With "auto", booleans are "bernoulli"; text, categories and numbers
        with few repeated values (20 if whole, else 8) are "categorical". Other numbers and dates
        are "normal" or, if this makes rows not yet seen more probable, "multivariate_normal" or,
        with heavy tails, "multivariate_t" (see the user guide). Numbers that often repeat values
        beyond rounding are "semi_continuous". Where numbers are never negative and are better
        described by their logarithms, "log_normal" takes the place of "normal",
        "semi_continuous_log_normal" that of both where there are zeros, and
        "multivariate_log_normal" competes, too; draws are then never negative. Under
        "multivariate_normal" and "multivariate_t" numbers are plain, and draws of a column that is
        never negative may be so. Identifiers are left out, with a warning. Otherwise the name of a
        family, or a mapping of families to columns (names, positions or a mask); the user guide
        lists the families. Some families describe whole rows. One of these, "multinomial", takes no
        missing cells; if it is named for all columns, X may be a sparse matrix or array of counts,
        which is never made dense.
    rounding : "auto", None or mapping, default="auto"
        How rounded columns of numbers are treated. Their cells are jittered in fit: drawn at random
        within half a step of their value, so that clusters do not collapse onto values that repeat.
        "auto" finds the steps, None leaves all cells as they are, and a mapping of columns gives
        their steps (or None).
    dates : {"elapsed", "periodic"}, default="elapsed"
        How dates are read. "elapsed": as the time elapsed since 1970. "periodic": the hour of the
        day, the day of the week and the month are added as levels, where the dates span enough of
        them. These parts count in the clustering and when a date is used to predict other cells;
        densities of dates and of whole rows leave them out.
    margins : {"model", "data"}, default="model"
        What a column of numbers is like by itself. "model": as the mixture says. "data": a smooth
        law of the training values takes the place of the mixture's own, in the whole column and
        within each component, and numbers go together as before: `sample`, `score_samples`,
        `impute` and `surprisal` then follow one law in which a column keeps its shape and its ends;
        one that was never negative stays so. Draws are rounded as the column is, with numbers that
        recur as often as in fit, and a value is an atom however few cells it has. Levels and atoms
        that depend on each other within components are bound by a forest. Clusters, and how odd a
        row is, are the mixture's. Densities take longer. See the page on synthetic tables.
    schedule : str or schedule, default="anneal"
        How the subsample grows: a name ("anneal", "prior_gibbs", "sequential_gibbs",
        "linear_anneal", "accelerating_anneal", "energy_anneal", "smc") or an object of
        `skanneal.schedules`. If its ``n_sweeps`` is "auto", as in "anneal", blocks of full-data
        sweeps follow, each twice as long as the last, until the chains agree (of a single chain,
        until the halves of the last block do) or a limit of work is reached. Every second chain
        then begins with a sequential pass (in `CrossCatPY`, with each column in a view of its own).
    partition_prior : {"pitman_yor", "finite"}, default="pitman_yor"
        The prior of the partition into components. "pitman_yor": a Dirichlet or Pitman-Yor process,
        whose number of components grows with the number of rows. "finite": a mixture with a random
        number M of components, whose weights have a symmetric Dirichlet distribution. M is above m
        with probability 1 / (m + 1), unless `expected_clusters` is given. The prior keeps the
        centres of components apart, so that they can be counted. "finite" needs the move
        "split_merge".
    concentration : "infer" or float, default="infer"
        Concentration of the process, above ``-discount``: the larger, the more readily new
        components open. With "finite" it is the sum of the parameters of the Dirichlet
        distribution, and "infer" means 1 for each of the M components.
    discount : "infer" or float, default=0.0
        Discount of the Pitman-Yor process, in [0, 1); 0 is the Dirichlet process.
    expected_clusters : (float, float) or None, default=None
        A pair (low, high) that says how many components to expect: the prior of an inferred
        concentration gives `low` or fewer components with probability 0.1, and `high` or more with
        probability 0.1. None means from 1 to the square root of the number of rows, or to 10 if
        that is more. `high` is at most the number of rows. With "finite" it is a prior of M itself,
        which has no such bound.
    hyperparameters : "infer" or mapping, default="infer"
        "infer": Gibbs draws on grids that are scaled to the data. Otherwise a mapping of families
        to fixed values in the user's units, by the names in the user guide's table of families:
        each value is a number, or one value per column of the family (pseudo-counts: per level).
        Hyperparameters that are left out are inferred, except those of families of whole rows that
        must be given or are never inferred. A covariance is given as a number (this multiple of the
        identity), a vector (the diagonal) or a matrix.
    moves : "auto" or tuple of str, default="auto"
        The moves of rows: "gibbs" and "split_merge". "auto" is both. The hyperparameters always
        move.
    point_estimate : {"clusters", "map", "vi", "binder"}, default="clusters"
        What `labels_` are. "clusters": a cluster is one component or several of which it is not
        sure that they are two clusters; see `separation`. With the other values `labels_` are the
        components themselves. "map": the most probable partition found, which is the draw of
        highest log joint density, from which rows are then moved to better components one by one
        until no move is better. "vi" and "binder": the partition of least expected variation of
        information or Binder loss; these need 20 draws or more in all. If a family of whole rows
        has missing cells, "map" is the draw that is closest to the others.
    separation : float, default=0.9
        How probable it must be that two clusters are two, in [0, 1): by a valley between them, or
        since two normal clusters explain neighbouring components better than one of another shape
        and all draws know their border. A larger value gives fewer clusters.
    n_clusters : int or None, default=None
        The number of clusters wanted, which there are then if so many rows differ; otherwise there
        is one for each row that differs, with a warning. `labels_` are clusters, whatever
        `point_estimate` and `separation` are, and `cluster_tree_` is cut at this number: of
        sure clusters small and near ones are joined, or components that overlap least parted.
        Draws of fewer components have no say; where all have fewer, components are split. None
        leaves the number to the data.
    noise : float or None, default=None
        Where `labels_` are clusters, a row gets the label -1 if the probability that it is in its
        cluster is at most this. None labels all rows.
    n_chains : int, default=4
        Independent chains.
    n_draws : int or "auto", default="auto"
        Draws kept per chain. If the schedule has blocks, they are spread evenly over the last
        block; otherwise the first is the state at the end of the schedule, and the others follow
        every `thin` full-data sweeps. "auto": 1 if the schedule's `n_sweeps` is a number, so that
        no sweeps are added; else 25, or fewer, but at least 4, if the labels of all draws would
        take more than 256 MiB.
    thin : int, default=1
        Sweeps between draws. If the schedule has blocks, the least number of sweeps between them.
    max_time : float or None, default=None
        Seconds of wall clock that the whole fit may take, all chains together. It replaces the
        schedule's `max_time`; the schedule is stretched or compressed to it.
    n_jobs : int or None, default=None
        How many chains run at a time, through joblib. By default they run in threads, which release
        the GIL.
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs` and backend.
    warm_start : bool, default=False
        Whether a second `fit`, on the same rows, continues the first: with ``n_draws * thin``
        full-data sweeps or, if the schedule has blocks, with a block twice as long as the last.
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
    probabilities_ : ndarray of shape (n_rows,)
        For each row the probability that it is in its cluster and not in a new one: about that of
        `predict_proba`, times 1 less `new_cluster_proba`, which are means over more draws. This and
        the next four attributes exist only where `labels_` are clusters.
    cluster_tree_ : ndarray of shape (n_joins, 4)
        How components join to clusters, in the form of SciPy's `linkage`. Heights say
        how sure it is that there are more clusters than are left above: -log(1 - probability), in
        nats. The order says what overlaps, and of sure clusters, what is near.
    valley_sureness_ : ndarray of shape (n_joins,)
        The heights of `cluster_tree_` as probabilities, the surest first: 1 - exp(-height).
    n_clusters_proba_ : ndarray of shape (`n_components_` + 2,)
        The probability of each number of clusters, from 0 on; the last is that of more than
        `n_components_`. That of k is proportional to the product over the k - 1 surest joins of
        (1 - `separation`) / (1 - sureness). `n_clusters_` is the most probable number unless
        `n_clusters` asks for another one: these probabilities say then, too, what the rows say.
    n_components_proba_ : ndarray of shape (most components of a draw + 1,)
        The posterior probability of each number of components, from 0 on: the share of the draws
        that have so many. `n_components_` is that of one partition, the point estimate, which need
        not have the most probable number: single draws hold small components that come and go.
    draws_ : list of list of Draw
        ``draws_[chain][draw]`` has ``labels``, ``concentration``, ``discount``,
        ``hyperparameters``, ``log_joint`` and the statistics of the components.
    trace_ : dict of ndarray of shape (n_chains, n_records)
        "seconds", "sweeps", "n_assigned", "n_components", "log_joint", "concentration", "discount";
        padded with nan.
    converged_ : bool
        Whether all figures of `convergence_` are within their limits. It is never true with one
        chain, with fewer than 20 final sweeps or 4 draws per chain, or after an interrupt.
    convergence_ : dict
        "figures": for each figure, such as "r_hat of log_joint", a dict with "value", "limit" and
        "agrees", which is None where there is too little to tell. "agreeing": for each chain,
        whether it belongs to the largest group of chains that agree with each other. "answers":
        where the chains do not agree in everything, for each answer ("clusters", "number of
        clusters", "density") a dict with "value", "limit" and "agrees"; and for "separation", where
        the tree is cut, whether another number of clusters is nearly as sure; see the page on how
        sure a fit is. "settled": whether they agree in everything or on every answer, and the
        clusters do not hang on where the tree is cut.
    r_hat_, ess_ : dict of float
        R-hat and the effective sample size of the scalars in `trace_`, over the last block or the
        final full-data stage; nan where this is too short.
    chain_weights_ : ndarray of shape (n_chains,)
        How much each chain counts in queries; the weights sum to 1. They are equal if `converged_`
        is true, or if the chains predict equally well. Otherwise a chain counts less, or not at
        all, if it makes the training rows, each left out in turn, less probable (stacking; see the
        user guide), and `fit` warns. Labels come from chains with at least a twentieth of the mean
        weight; `draws_` keeps all draws.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is: the scores that `score_outliers` gives to new rows, but each
        row is left out of the model that scores it. They are averaged over at most 8 of the draws,
        and over fewer where there are many rows or components; nan if `max_time` left no time even
        for one of them.
    families_ : dict of str to ndarray
        The positions of each family's columns. Columns that are set apart are listed as "constant"
        (they have one value), "identifier" (they name the rows, or are free text) and
        "collinear" (other columns determine them).
    family_evidence_ : dict or None
        How "auto" chose between the families for numbers; None if no column of numbers was left to
        "auto". "winner"; "decided_by", which is "evidence" or says why there was no competition;
        "columns" that competed; "margin" over the nearest rival in nats per row (below 0 if a
        simpler family is no worse within the error), and its "standard_error"; "n_rows" that the
        candidates saw, and their "log_density" for rows that they did not see; "row_steps", the
        work. "logarithms" is None if no column might hold amounts, else a dict with the "columns"
        for which plain numbers and logarithms competed; by column whether logarithms were "chosen",
        the "margin" by which they make a cell not yet seen more probable, in nats, its
        "standard_error", and the share of "negative" numbers that plain numbers foretell; "n_rows"
        and "row_steps" as above. In families of whole rows it does not count which columns without
        zeros were chosen; `logarithms_` has those that are logarithms.
    logarithms_ : ndarray of int
        The positions of the columns that are described by their logarithms.
    atoms_ : dict of int to ndarray
        For each column, by position, the values that it repeats beyond rounding; see the user
        guide.
    rounding_ : dict
        The step of each rounded column, by its name, or by its position if there are no names.
    date_parts_ : list of str
        The parts of dates in the model, such as "admitted: weekday".
    hyperparameter_grids_ : dict
        The grids of the inferred hyperparameters, in the user's units, by family and name: an array
        for each of the family's columns. What is fixed, by you or by the family (`mu0` of
        "multivariate_normal" is the columns' means), is left out.
    schedule_ : schedule
        The schedule that was run. With a time limit it is what the first chain did, as a custom
        schedule without a limit: with the same data and seed it gives that chain's bits again.
    log_evidence_, log_evidence_se_ : float
        With ``schedule="smc"`` or a `SequentialMonteCarlo`, the log of the probability density of
        the rows, given the families and the grids of the hyperparameters, and its standard error
        over chains; nan otherwise. ``exp(log_evidence_)`` is unbiased: see the page on schedules.
    n_sweeps_ : float
        The number of sweeps that were run, including those between draws.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    sklearn.mixture.BayesianGaussianMixture : Variational fit of a truncated Gaussian mixture.

    References
    ----------
    .. [1] F. Obermeyer, J. Glidden, E. Jonas (2014). "Scaling Nonparametric Bayesian Inference via
       Subsample-Annealing". AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import AnnealedDPMixture
    >>> rng = np.random.default_rng(1)
    >>> X = np.concatenate([rng.normal(-4, 1, (100, 3)), rng.normal(4, 1, (100, 3))])
    >>> model = AnnealedDPMixture(n_chains=2, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.score(X) > -7
    True
    """

    _parameter_constraints: dict = {**BaseAnnealed._parameter_constraints, **CLUSTERS}

    _begins_in_pieces = True

    def __init__(
        self,
        *,
        families: str | Mapping[str, Any] = "auto",
        rounding: str | Mapping[Any, float] | None = "auto",
        dates: str = "elapsed",
        margins: str = "model",
        schedule: Any = "anneal",
        partition_prior: str = "pitman_yor",
        concentration: str | float = "infer",
        discount: str | float = 0.0,
        expected_clusters: tuple[float, float] | None = None,
        hyperparameters: Hyperparameters = "infer",
        moves: str | Sequence[str] = "auto",
        point_estimate: str = "clusters",
        separation: float = 0.9,
        n_clusters: int | None = None,
        noise: float | None = None,
        n_chains: int = 4,
        n_draws: int | str = "auto",
        thin: int = 1,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.families = families
        self.rounding = rounding
        self.dates = dates
        self.margins = margins
        self.schedule = schedule
        self.partition_prior = partition_prior
        self.concentration = concentration
        self.discount = discount
        self.expected_clusters = expected_clusters
        self.hyperparameters = hyperparameters
        self.moves = moves
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
    def fit(self, X: TableLike, y: Any = None, strata: ArrayLike | None = None) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_columns)
            Numbers, categories and counts; NaN, None and NA are missing cells. Never changed.
            Sparse only with ``families="multinomial"``.
        y : None
            Not used.
        strata : array-like of shape (n_rows,), default=None
            Labels over which a schedule with ``selection="stratified"`` keeps the subsample
            balanced; by default a quick sketch of X.

        Returns
        -------
        self : AnnealedDPMixture

        Raises
        ------
        ValueError, TypeError
            Naming the column or parameter at fault, before any work starts.
        """
        return self._keep(*self._fit(X, strata))
