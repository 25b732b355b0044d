"""AnnealedDPMixture: a Dirichlet or Pitman-Yor process mixture, fitted by subsample annealing."""

# SPDX-License-Identifier: BSD-3-Clause

from sklearn.base import _fit_context

from ._annealed import BaseAnnealed
from ._base_table import CLUSTERS
from ._memberships import MembershipMixin


class AnnealedDPMixture(MembershipMixin, BaseAnnealed):
    """Nonparametric Bayesian mixture for tables of numbers, categories and counts, with gaps.

    Rows are partitioned by a Dirichlet process (or Pitman-Yor process); within a cluster columns
    are independent, unless a family of whole rows describes them. The chain grows from an empty
    subsample to all rows while rows churn in and out (subsample annealing, [1]_), so that it finds
    the clusters while moving is cheap.

    Parameters
    ----------
    families : "auto", str or mapping, default="auto"
        What the columns are. "auto": booleans are "bernoulli", text, categories and numbers of few
        repeated values (20 if whole, else 8) "categorical"; other numbers and dates are "normal"
        or, if rows not yet seen are then more probable, "multivariate_normal" or, with heavy tails,
        "multivariate_t" (see the user guide), or "semi_continuous" if they often repeat values
        beyond rounding; identifiers are left out, with a warning. Or a family's name, or a mapping
        of families to columns (names, positions or a mask); the user guide lists the families. Some
        describe whole rows of their columns. One of them takes no missing cells, and reads sparse
        matrices and arrays of counts, which are never made dense, where it is named for all
        columns.
    rounding : "auto", None or mapping, default="auto"
        Which columns of numbers are rounded: in fit their cells are drawn at random within half a
        step of their value, so that clusters do not collapse onto values that repeat. "auto" finds
        the steps, None leaves cells as they are, a mapping of columns gives steps (or None).
    dates : {"elapsed", "periodic"}, default="elapsed"
        What dates are: the time elapsed since 1970, or that and beside it the hour of the day, the
        day of the week and the month, as levels, where the dates span enough of these. Parts tell
        in the clustering and in what the date says of other cells; densities leave them out.
    schedule : str or schedule, default="anneal"
        How the subsample grows: a name ("anneal", "prior_gibbs", "sequential_gibbs",
        "linear_anneal", "accelerating_anneal", "energy_anneal", "smc") or an object of
        `skanneal.schedules`. With ``n_sweeps="auto"``, as "anneal" has it, blocks of full-data
        sweeps follow, each twice as long as the last, until the chains agree or their work is done;
        every second chain then begins with a sequential pass (in `CrossCatPY`, with columns apart).
    partition_prior : {"pitman_yor", "finite"}, default="pitman_yor"
        The law of who shares a component. "pitman_yor": a Dirichlet or Pitman-Yor process, whose
        number of components grows with the rows. "finite": a mixture of a random number M of
        components with weights from a symmetric Dirichlet distribution. M - 1 is
        beta-negative-binomial (1, 4, 3), or as `expected_clusters` says. Needs "split_merge".
    concentration : "infer" or float, default="infer"
        Concentration of the process: how readily new clusters open. Above ``-discount``. With
        "finite" the sum of the parameters of the Dirichlet distribution; "infer": 1 for each of the
        M components.
    discount : "infer" or float, default=0.0
        Discount of the Pitman-Yor process, in [0, 1); 0 is the Dirichlet process.
    expected_clusters : (float, float) or None, default=None
        How many components there may be: a prior of an inferred concentration. There are `low` or
        fewer with probability 0.1, and `high` or more with probability 0.1. None is from 1 to the
        square root of the number of rows, at least to 10. With "finite" it is a prior of M
        itself.
    hyperparameters : "infer" or mapping, default="infer"
        "infer": Gibbs on data-scaled grids. A mapping of families to values in the user's units
        fixes them, by the names of the user guide's table of families: each a number or one value
        per column of the family (pseudo-counts: per level). What is left out is inferred, but for
        what a family of whole rows must be given or does not infer. Of such a family a covariance
        is a number (that multiple of the identity), a vector (the diagonal) or a matrix.
    moves : "auto" or tuple of str, default="auto"
        Moves beside the hyperparameters': "gibbs" and "split_merge". "auto" is both.
    point_estimate : {"clusters", "map", "vi", "binder"}, default="clusters"
        What `labels_` are. "clusters": a cluster is one component or several, between which no
        valley is sure; see `separation`. The others give the components themselves: the most
        probable partition found (the draw of highest log joint density, from which each row moves
        to its best component until none would leave), or the partition of least expected variation
        of information or Binder loss. These two ask for 20 draws or more in all. Where whole rows
        have missing cells, "map" is the draw that is closest to the others.
    separation : float, default=0.95
        How sure it must be that a valley lies between two clusters; in [0, 1). Components between
        which it is less sure belong together. Larger: fewer clusters.
    n_clusters : int or None, default=None
        How many clusters there shall be: `labels_` are then clusters, whatever `point_estimate` and
        `separation` say, and `cluster_tree_` is cut there. None leaves the number to the data.
    noise : float or None, default=None
        Rows whose probability of being in their cluster is no more than this have the label -1
        among "clusters". None labels all rows.
    n_chains : int, default=4
        Independent chains.
    n_draws : int or "auto", default="auto"
        Draws kept per chain: where there are blocks, spread evenly over the last one; otherwise
        the schedule's end, then one every `thin` full-data sweeps. "auto": 1 if the schedule's
        `n_sweeps` is a number, so that no sweep is added; else 25, or as few as 4 where the labels
        of all draws would take more than 256 MiB.
    thin : int, default=1
        Sweeps between draws; where there are blocks, the least number of them.
    max_time : float or None, default=None
        Seconds of wall clock that the whole fit may take, all chains together; it takes the place
        of the schedule's `max_time`. The schedule is stretched or compressed to it.
    n_jobs : int or None, default=None
        Chains run at a time, through joblib (threads by default; the GIL is released).
    random_state : int, None, RandomState, Generator or SeedSequence, default=None
        An int gives the same fit every time, for any `n_jobs` and backend.
    warm_start : bool, default=False
        Whether a second `fit`, on the same rows, goes on: with ``n_draws * thin`` full-data sweeps,
        or where there are blocks, with one that is twice as long as the last.
    verbose : int, default=0
        Above 0: print a line per stage of each chain.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int64
        Clusters, the largest first: what `predict` says of the training rows. With another
        `point_estimate` the components, numbered from 0.
    n_clusters_ : int
        How many of them there are.
    component_labels_ : ndarray of shape (n_rows,), int64
        The point-estimate partition into components.
    n_components_ : int
        Its number of components.
    probabilities_ : ndarray of shape (n_rows,)
        Each row's probability of being in its cluster.
    cluster_tree_ : ndarray of shape (n_joins, 4)
        How components join to clusters, in the form of SciPy's `linkage`. The height of a join is
        how sure the valley is that it crosses: -log(1 - probability), in nats. This,
        `probabilities_` and the next ones: only where `labels_` are clusters.
    n_clusters_proba_, n_components_proba_ : ndarray
        Probability of each number of clusters, and of components, from 0. There are k clusters or
        more if k - 1 valleys are sure.
    draws_ : list of list of Draw
        ``draws_[chain][draw]`` with ``labels``, ``concentration``, ``discount``,
        ``hyperparameters``, ``log_joint`` and the clusters' statistics.
    trace_ : dict of ndarray of shape (n_chains, n_records)
        "seconds", "sweeps", "n_assigned", "n_components", "log_joint", "concentration", "discount";
        padded with nan.
    converged_ : bool
        Whether all figures of `convergence_` are within their limits. Never with one chain, fewer
        than 20 final sweeps or 4 draws per chain, or after an interrupt.
    convergence_ : dict
        "figures": by name ("r_hat of log_joint" and so on) dicts of "value", "limit" and "agrees",
        which is None where there is too little to tell. "agreeing": for each chain, whether it is
        one of the most chains of which no two are at odds.
    r_hat_, ess_ : dict of float
        Of the scalars in the trace's final full-data stage, or last block; nan where it is too
        short.
    chain_weights_ : ndarray of shape (n_chains,)
        How much each chain counts in queries; they sum to 1. Equal if `converged_`, or where chains
        predict equally well. Chains under which the rows, each left out in turn, are less probable
        count less, or 0 (stacking; see the user guide), and `fit` warns. Labels come from chains of
        at least a twentieth of the mean weight; all draws stay in `draws_`.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is, as `score_outliers` says of new rows, but without itself;
        from at most 8 of the draws, fewer above 50,000 rows.
    families_ : dict of str to ndarray
        Positions of each family's columns; as "constant", "identifier" and "collinear" those that
        are set apart: of one value, names of the rows, and what other columns determine.
    family_evidence_ : dict or None
        How "auto" chose between the families for numbers: "winner"; "decided_by", which is
        "evidence" or says why there was no competition; "columns" that competed; "margin" over the
        nearest rival in nats per row (below 0 where a simpler family is no worse within the error),
        and its "standard_error"; "n_rows" that the candidates saw, and their "log_density" then of
        rows that they did not see; "row_steps", the work. None where no column of numbers was left
        to "auto".
    atoms_ : dict of int to ndarray
        By position, the values that a column repeats beyond rounding; see the user guide.
    rounding_ : dict
        The step of each rounded column, by its name, or by its position if there are no names.
    date_parts_ : list of str
        The parts of dates in the model, such as "admitted: weekday".
    hyperparameter_grids_ : dict
        The grids, in the user's units.
    schedule_ : schedule
        The schedule that was run; with a time limit, what became of it in the first chain, as a
        custom schedule without one: the same data and seed then give that chain's bits again.
    log_evidence_, log_evidence_se_ : float
        With ``schedule="smc"`` or a `SequentialMonteCarlo`, the log of the probability density of
        the rows, given the families and the grids of the hyperparameters, and its standard error
        over chains; else nan. Without a bias in ``exp(log_evidence_)``: see the page on schedules.
    n_sweeps_ : float
        Sweeps run, further draws included.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        If X had column names.

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

    def __init__(
        self,
        *,
        families="auto",
        rounding="auto",
        dates="elapsed",
        schedule="anneal",
        partition_prior="pitman_yor",
        concentration="infer",
        discount=0.0,
        expected_clusters=None,
        hyperparameters="infer",
        moves="auto",
        point_estimate="clusters",
        separation=0.95,
        n_clusters=None,
        noise=None,
        n_chains=4,
        n_draws="auto",
        thin=1,
        max_time=None,
        n_jobs=None,
        random_state=None,
        warm_start=False,
        verbose=0,
    ):
        self.families = families
        self.rounding = rounding
        self.dates = dates
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

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, strata=None):
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
