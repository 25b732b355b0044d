"""PermutationDPMixture: a Dirichlet or Pitman-Yor process mixture with permutation moves."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._native._types import Hyperparameters, Seed, TableLike
from ..moves import BEAM, EXACT_ROWS, PERMUTATIONS, PROGRAMS
from ..schedules import PriorGibbs, SequentialGibbs, size_at
from ._annealed import BaseAnnealed
from ._base_table import CLUSTERS
from ._fit_context import validated
from ._memberships import MembershipMixin


def sweeps_from_init(n_rows):
    """Sweeps that schedule="anneal" stands for with `init`: 30 for 20,000 rows and more, at most
    120 for fewer; measured from one cluster, which takes most."""
    return round(min(120.0, 30 * max(1.0, 20_000 / n_rows) ** 0.5))


class PermutationDPMixture(MembershipMixin, BaseAnnealed):
    """Nonparametric Bayesian mixture whose sampler moves whole partitions at once.

    The model is that of `AnnealedDPMixture`. Beside row-wise Gibbs and split-merge, a permutation
    move puts the rows in a random order, weighs every way to cut the order into clusters by a
    dynamic program, and draws one (Liang, Jordan and Taskar [1]_). The moves share the work about
    evenly: in a sweep Gibbs passes over the rows once, and every other move is applied as often as
    costs the same. The cost counts rows scored in a tile of 16 clusters and rows added to a
    cluster.

    Parameters
    ----------
    families : "auto", str or mapping, default="auto"
        What the columns are, as in `AnnealedDPMixture`.
    rounding : "auto", None or mapping, default="auto"
        Which columns of numbers are rounded, as in `AnnealedDPMixture`.
    dates : {"elapsed", "periodic"}, default="elapsed"
        How dates are read. "elapsed": as the time elapsed since 1970. "periodic": the hour of the
        day, the day of the week and the month are added as levels, where the dates span enough of
        them. These parts count in the clustering and when a date is used to predict other cells;
        densities of dates and of whole rows leave them out.
    margins : {"model", "data"}, default="model"
        Whether the law of a column of numbers by itself is the mixture's, or a smooth one of the
        training values, and levels are bound within components, as in `AnnealedDPMixture`.
    schedule : str or schedule, default="anneal"
        How the subsample grows, as in `AnnealedDPMixture`. With `init`, "anneal" stands for
        ``PriorGibbs`` with 30 sweeps, and more for fewer than 20,000 rows.
    partition_prior : {"pitman_yor", "finite"}, default="pitman_yor"
        The prior of the partition into components. "pitman_yor": a Dirichlet or Pitman-Yor process,
        whose number of components grows with the number of rows. "finite": a mixture with a random
        number M of components, whose weights have a symmetric Dirichlet distribution. M is above m
        with probability 1 / (m + 1), unless `expected_clusters` is given. The prior keeps the
        centres of components apart, so that they can be counted. "finite" needs the move
        "split_merge".
    concentration : "infer", "marginal" or float, default="infer"
        Concentration of the process, above ``-discount``: the larger, the more readily new
        components open. "marginal" integrates it out in the weights of permutation moves, over the
        grid of "infer". With "finite" it is the sum of the parameters of the Dirichlet
        distribution, and "infer" and "marginal" mean 1 for each of the M components.
    discount : "infer" or float, default=0.0
        Discount of the Pitman-Yor process, in [0, 1); 0 is the Dirichlet process.
    expected_clusters : (float, float) or None, default=None
        A pair (low, high) that says how many components to expect: the prior of an inferred
        concentration gives `low` or fewer components with probability 0.1, and `high` or more with
        probability 0.1. None means from 1 to the square root of the number of rows, or to 10 if
        that is more. `high` is at most the number of rows. With "finite" it is a prior of M itself,
        which has no such bound.
    hyperparameters : "infer" or mapping, default="infer"
        As in `AnnealedDPMixture`.
    moves : tuple of str, default=("gibbs", "permutation", "split_merge")
        The moves that are combined; "gibbs" must be among them. "auto" is all three.
    permutation : {"projection", "uniform", "markov"}, default="projection"
        How rows are ordered. "projection": by projections on random directions; in burn-in this is
        a hill climb, afterwards its exact form takes turns with uniform orders. "uniform": any
        order that keeps clusters together. "markov": a chain from row to similar row through each
        cluster, which costs the square of the sizes of the clusters.
    program : {"exact", "quadratic", "beam"} or float, default="beam"
        How an order is cut into clusters. "exact": O(n^3), up to 1000 rows. "quadratic": O(n^2)
        with an acceptance step. "beam": about O(n), as it keeps only segments that matter. A number
        in [0, 1) is a beam that may drop so large a share of the sum over segments at each row;
        "beam" is 1e-32.
    init : None, "one", int or "sequential", default=None
        How chains begin. None leaves it to the schedule. Otherwise all rows are present from the
        beginning: in one cluster, in a number of clusters at random, or added one after another by
        sequential prediction. This needs a schedule of full-data sweeps.
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
        "seconds", "sweeps", "n_assigned", "n_components", "log_joint", "concentration", "discount"
        and, with permutation moves, "burn_in": 1 for the first half of the sweeps, in which these
        climb and adapt, 0 for the rest, which leaves the posterior as it is; padded with nan.
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
        final full-data stage, without burn-in; nan where this is too short.
    chain_weights_ : ndarray of shape (n_chains,)
        How much each chain counts in queries; the weights sum to 1. They are equal if `converged_`
        is true, or if the chains predict equally well. Otherwise a chain counts less, or not at
        all, if it makes the training rows, each left out in turn, less probable (stacking; see the
        user guide), and `fit` warns. Labels come from chains with at least a twentieth of the mean
        weight; `draws_` keeps all draws.
    outlier_scores_ : ndarray of shape (n_rows,)
        How odd each training row is: the scores that `score_outliers` gives to new rows, but each
        row is left out of the model that scores it. They are averaged over at most 8 of the draws,
        and over fewer where there are many rows or components.
    families_ : dict of str to ndarray
        The positions of each family's columns. Columns that are set apart are listed as "constant"
        (they have one value), "identifier" (they name the rows, or are free text) and
        "collinear" (other columns determine them).
    family_evidence_ : dict or None
        How "auto" chose between the families for numbers, as in `AnnealedDPMixture`.
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
        With ``schedule="smc"``, the log evidence and its standard error, as in `AnnealedDPMixture`.
    n_sweeps_ : float
        The number of sweeps that were run, including those between draws.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it had names.

    See Also
    --------
    AnnealedDPMixture : The same model without permutation moves by default.

    References
    ----------
    .. [1] P. Liang, M. I. Jordan, B. Taskar (2007). "A Permutation-Augmented Sampler for DP Mixture
       Models". ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal import PermutationDPMixture
    >>> rng = np.random.default_rng(1)
    >>> X = np.concatenate([rng.normal(-4, 1, (100, 3)), rng.normal(4, 1, (100, 3))])
    >>> model = PermutationDPMixture(init="one", n_chains=2, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    """

    _parameter_constraints: dict = {
        **BaseAnnealed._parameter_constraints,
        **CLUSTERS,
        "concentration": [StrOptions({"infer", "marginal"}), Real],
        "permutation": [StrOptions(set(PERMUTATIONS))],
        "program": [StrOptions(set(PROGRAMS)), Interval(Real, 0, 1, closed="left")],
        "init": [
            StrOptions({"one", "sequential"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
    }
    _auto_moves = ("gibbs", "permutation", "split_merge")

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
        moves: str | Sequence[str] = ("gibbs", "permutation", "split_merge"),
        permutation: Any = "projection",
        program: Any = "beam",
        init: str | int | None = None,
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
        self.permutation = permutation
        self.program = program
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
    def fit(self, X: TableLike, y: Any = None, strata: ArrayLike | None = None) -> Self:
        """Run the chains.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            Numbers, categories and counts; NaN, None and NA are missing cells. Never changed.
        y : None
            Not used.
        strata : array-like of shape (n_rows,), default=None
            Labels over which a schedule with ``selection="stratified"`` keeps the subsample
            balanced; by default a quick sketch of X.

        Returns
        -------
        self : PermutationDPMixture

        Raises
        ------
        ValueError, TypeError
            Naming the column or parameter at fault, before any work starts.
        """
        return self._keep(*self._fit(X, strata))

    @property
    def _marginal(self):
        return isinstance(self.concentration, str) and self.concentration == "marginal"

    @property
    def _concentration(self):
        return "infer" if self._marginal else self.concentration

    def _started(self, schedule, n_rows):
        if self.init is None:
            return schedule
        if isinstance(self.schedule, str) and self.schedule == "anneal":
            schedule = PriorGibbs(n_sweeps=sweeps_from_init(n_rows))
        if self.init == "sequential" and isinstance(schedule, PriorGibbs):
            schedule = SequentialGibbs(**schedule.get_params())
        path = schedule.path(n_rows)
        start = n_rows if self.init == "sequential" else 0
        at = np.r_[start, path.assignments[path.assignments > start]]
        sizes = size_at(np.column_stack([path.assignments, path.sizes]), at)
        if (sizes < n_rows).any() or (path.betas != 1.0).any():
            raise ValueError(
                f"init={self.init!r} starts with all rows and goes on with full-data sweeps: "
                f"schedule must be 'prior_gibbs' or 'sequential_gibbs' (for init='sequential') or "
                f"'anneal', which then stands for the former; got {self.schedule!r}"
            )
        if isinstance(self.init, Integral) and self.init > n_rows:
            raise ValueError(f"init={self.init} clusters are more than the {n_rows} rows")
        return schedule

    def _other_starts(self, plan, schedule):
        if self.init is not None:
            return [(plan, schedule)]
        return super()._other_starts(plan, schedule)

    def _running(self, priors, n_rows):
        if self.program == "exact" and n_rows > EXACT_ROWS:
            raise ValueError(
                f"program='exact' holds up to {EXACT_ROWS} rows, X has {n_rows}: "
                f"use program='beam', which takes any number"
            )
        named = isinstance(self.program, str)
        permutation = {
            "permutation": self.permutation,
            "program": self.program if named else "beam",
            "tolerance": BEAM if named else self.program,
            "grid": priors["concentration"] if self._marginal else None,
        }
        first = {"one": 1, "sequential": None}.get(self.init, self.init)
        return {
            "options": {"permutation": permutation},
            "init": first,
        }
