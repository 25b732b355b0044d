"""Clusters of rows, averaged over draws: what is below `predict_proba` where labels are clusters.

The components of a point estimate give the names, g = 1 .. K. A component k of a draw s has the
share a_skg of its rows in g. The posterior mean density of a row's being in g,

    f_g(x) = sum_s w_s sum_k a_skg p_sk(x),    p_sk(x) = weight_k p(x | rows of k),

needs no matching of labels, and a new row is read as the training rows are. A cluster is a set of
these components, and its density the sum of theirs. Which of them belong together is asked of the
draws one by one: log odds of means over draws level off where a draw's component has rows of both
sides, and what levels off piles up at two values, as if there were a valley.

In a table of several views all this is said of one view of each draw, the one that shares most
columns with the point estimate's largest.

If a number of clusters is asked for, draws of fewer components have no say: of them a cluster would
have the shares of its rows, and no border. If there is no other draw, or a cluster would end
without a row, the point estimate is the only judge, and if even then a cluster has no row, the
weights of clusters are raised until each is the most probable one of some row. Where no weights are
enough, components join first that no row tells apart.

No more is held at a time than the scores of a block of rows under one draw: a table of n rows and
K components has n K of them.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import expit, logsumexp

from ..parallel import LEAST
from ..summary import cut_tree, rank_clusters
from ..summary._cluster_tree import pair_heights, surer, valley_tree
from ..summary._tree_order import Joins
from ._draws import evenly, state_of
from ._judges import gathered, joints_without, shares_in
from ._loo import compared_rows
from ._one_or_two_groups import two_groups
from ._parts import beneath, main_peaks, neighbourhood, numbers_of, parted, show_as_many
from ._point import matching_view
from ._predictor import Predictor
from ._raised_weights import alike, raised_weights
from ._tail import TIMED_ROWS

MOST_DRAWS, FEW_DRAWS = 16, 4  # that clusters are averaged over
ROWS_TIMES_DRAWS, CELLS = 400_000, 4 * 10**6  # fewer draws of more rows, or of more components
FEW_LABELLING = 2  # that label very many rows
TREE_ROWS, ROWS_EACH = 4000, 100  # in which valleys are looked for; more, of many components
TREE_DRAWS = 31  # that judge valleys: where 9 did, fits of other seeds agreed less often
_LOOKED_CELLS = 2 * 10**6  # rows times components; beyond that, fewer rows than ROWS_EACH says
_TREE_CELLS = 4 * 10**6  # these times draws; beyond that, fewer draws
_FEW_JUDGES = 3  # with any number of components
FEWEST_COMPONENTS = 3  # of which one can lie beneath three peaks: its own and those of the others
LARGEST = np.finfo(float).max
LABELLING = 1.5  # how much longer labels take than the scores that they are made from


class Clusters:
    """The clusters of a fit.

    Parameters
    ----------
    draws : list of Draw or CrossCatDraw
        Those that are averaged over.
    weights : ndarray of shape (n_draws,)
    point : Draw or CrossCatDraw
        Whose components the clusters are made of; parted, where these are about several peaks.
    schema : Schema
        Of the Table.
    noise : float or None
        As in the estimator.

    Attributes
    ----------
    joins : Joins
        What the tree is made from, wherever it is cut.
    tree : ndarray of shape (n_components - 1, 4)
        See `Joins`.
    separation : float or None
        Where the tree is cut; None if a number of clusters was asked for.
    clusters : ndarray of shape (n_components,), int64
        The cluster of each component; -1 if it is in none that has a row.
    raised : ndarray of shape (n_components,) or None
        What is added to the log weight of each component: None for nothing.
    n_clusters : int
    labels : ndarray of shape (n_rows,), int64
        Of the training rows.
    confidence : ndarray of shape (n_rows,)
        The training rows' probability of being in the clusters of `labels`; nan if there was no
        time to find it out, and each row has the cluster of its component.
    """

    timed_rows = TIMED_ROWS

    def __init__(self, draws, weights, point, schema, noise):
        self.schema, self.noise, self.raised = schema, noise, None
        self.n_looked = looked_rows(int(point.labels.max()) + 1)
        self._average(draws, weights, point)

    def _average(self, draws, weights, point):
        """Average over these draws."""
        self.draws, self.weights, self.point = draws, weights, point
        own = [matching_view(draw, point) for draw in draws]
        self.views = [view for view, _ in own]
        self.shares = [shares_in(labels, point.labels) for _, labels in own]
        self.component_sizes = [np.bincount(labels) for _, labels in own]

    @classmethod
    def of(
        cls,
        draws,
        weights,
        point,
        encoder,
        table,
        estimator,
        limit=None,
        n_clusters=None,
        joins=None,
        asked=None,
    ):
        """Find the clusters that an estimator asks for in the training rows.

        They are averaged over as many draws as the time limit, if there is one, leaves time for.

        n_clusters : int or None
            How many there shall be: not more than components of the point estimate.
        joins : Joins or None
            Those that were found earlier, if the same components are joined again.
        asked : Table or None
            The rows as `predict` sees them, if that differs: without the noise of rounded cells.
        """
        if n_clusters is not None:
            enough = [matching_view(draw, point)[1].max() + 1 >= n_clusters for draw in draws]
            draws = [draw for draw, has in zip(draws, enough) if has] or [point]
            weights = weights[enough] if any(enough) else np.ones(1)
        n_cells = table.n_rows * (int(point.labels.max()) + 1)
        most = min(ROWS_TIMES_DRAWS // table.n_rows, CELLS // n_cells)
        used = evenly(len(draws), np.clip(most, FEW_DRAWS, TREE_DRAWS))
        schema = None if encoder is None else encoder.table_schema
        self = cls([draws[d] for d in used], weights[used], point, schema, estimator.noise)
        self.joins = joins
        if joins is None:
            self.joins = self.grown(table, estimator.separation, limit)
        elif joins.parted:
            self._part_draws(table, *self._peaks(table, self._judging(table), limit))
        n_labelling = np.clip(ROWS_TIMES_DRAWS // table.n_rows, FEW_LABELLING, MOST_DRAWS)
        self._keep(evenly(len(self.draws), n_labelling))
        self.separation = estimator.separation if n_clusters is None else None
        self.tree = self.joins.tree(estimator.separation)
        clusters = cut_tree(self.tree, estimator.separation, n_clusters)
        table = table if asked is None else asked
        timed = limit and table.n_rows > self.timed_rows
        if timed and not self._leave_out_draws(table, clusters, limit):
            self._number(clusters, clusters[self.point.labels])
            self.labels = self.clusters[self.point.labels]
            self.confidence = np.full(table.n_rows, np.nan)
            return self
        self._label(table, clusters)
        if n_clusters is not None and self.n_clusters < n_clusters:
            self._average([self.point], np.ones(1), self.point)
            self._label(table, clusters)
        if n_clusters is not None and self.n_clusters < n_clusters:
            self._raise(table, estimator.separation, n_clusters)
        return self

    def _leave_out_draws(self, table, clusters, limit):
        """Keep as many draws as there is time for, and at least one; return False if there is no
        time even for that one."""
        began, n_timed = limit.taken, self.timed_rows
        first = (table.n_rows - n_timed) // 2
        for _ in self.joints(table.take(np.arange(first, first + n_timed)), clusters):
            pass
        seconds = LABELLING * (limit.taken - began) * table.n_rows / n_timed  # of all draws
        n_draws = int(min(limit.left / max(seconds, LEAST), 1.0) * len(self.draws))
        self._keep(evenly(len(self.draws), max(n_draws, 1)))
        return n_draws > 0

    def _keep(self, kept):
        """Average over some of the draws alone."""
        self.weights = self.weights[kept]
        for name in ("draws", "views", "shares", "component_sizes"):
            setattr(self, name, [getattr(self, name)[d] for d in kept])

    def _label(self, table, clusters):
        """Label all rows, and number the clusters from the largest; one without a row is none.

        Numbers are given last, so that one pass over the rows is enough."""
        self.clusters, self.n_clusters, empty = clusters, int(clusters.max()) + 1, []
        labels, confidence = self._labelled(table, empty)
        self._number(clusters, labels)
        numbers = np.empty(int(clusters.max()) + 1, dtype=np.int64)
        numbers[clusters] = self.clusters
        for start, stop, of, shares in empty:  # rows are given to be in one of those that are left
            confidence[start:stop] /= 1.0 - shares[:, numbers[of] < 0].sum(axis=1)
        labels = numbers[labels]
        self.labels, self.confidence = self._without_noise(labels, confidence), confidence

    def _number(self, clusters, labels):
        """Number the clusters from the largest by the rows' labels; one without a row is none."""
        ranks, sizes = rank_clusters(labels)
        number = np.full(int(clusters.max()) + 1, -1)
        number[labels] = ranks
        self.clusters, self.n_clusters = number[clusters], len(sizes)

    def joints(self, table, clusters):
        """Yield (start, stop, joints) of blocks of rows: the log densities of their being in each
        cluster, in the order of the clusters' numbers, and last of being in a new component.

        clusters : int array of shape (n_components,)
            The number of each component's cluster. Joints are of shape (stop - start, as many as
            there are numbers, and 1).
        """
        members = clusters[:, None] == np.unique(clusters)
        by_size, raised = np.log(members.sum(axis=0)), 0.0
        if self.raised is not None:
            raised = np.where(members, self.raised[:, None], -np.inf).max(axis=0)
            members = members * np.exp(np.minimum(self.raised[:, None] - raised, 0.0))
        shares = [weight * (of @ members) for of, weight in zip(self.shares, self.weights)]
        log_weights = np.log(self.weights)
        for start, stop, of_draws in self.scored(self.draws, self.views, table):
            sums, reference, new = np.zeros((stop - start, len(by_size))), -np.inf, []
            for joint, share, log_weight in zip(of_draws, shares, log_weights):
                # finite also for a row that is impossible in all components; a row that is far
                # from all of them, which a new one explains, is nearer to some than to others
                largest = np.maximum(joint[:, :-1].max(axis=1, keepdims=True), -LARGEST)
                higher = np.maximum(reference, largest)
                sums *= np.exp(reference - higher)
                known = joint[:, :-1] - higher
                sums += np.exp(known, out=known) @ share
                reference = higher
                new.append(joint[:, -1] + log_weight)
            out = np.empty((stop - start, len(by_size) + 1))
            with np.errstate(divide="ignore"):
                np.add(np.log(sums, out=sums), reference, out=out[:, :-1])
            out[:, -1] = logsumexp(new, axis=0)
            out[np.isneginf(out).all(axis=1)] = *by_size, 0.0  # impossible: that says nothing
            out[:, :-1] += raised
            yield start, stop, out

    def grown(self, table, separation, limit=None):
        """How the point estimate's components join, judged by some of the draws.

        With a time limit they are so many as take half of what is left of it. If there is no time
        for any, the point estimate judges itself."""
        began = limit.taken if limit else 0.0
        own = self.joints_without(self.point, self.point.main_view, table)
        judges = self._judging(table, limit, limit.taken - began if limit else 0.0)
        numbers, whole = self.numbers(self.point, table)
        known = numbers if whole else None
        given = self._judges(judges, table), self.weights[judges], numbers
        valleys = valley_tree(own, *given, factor=self.factor(table))
        pairs = pair_heights(own, *given, valleys=valleys, factor=self.factor(table))
        tree = surer(valleys, pairs)
        parts = self._by_peaks(table, separation, judges, numbers, tree, limit)
        if parts is not None:
            return Joins.of(*parts, known, parted=True)
        return Joins.of(tree, own, known)

    def _judging(self, table, limit=None, seconds=0.0):
        """Which draws judge, each of which takes so many seconds."""
        n_cells = min(table.n_rows, self.n_looked) * (int(self.point.labels.max()) + 1)
        most = min(TREE_DRAWS, len(self.draws), max(_TREE_CELLS // n_cells, _FEW_JUDGES))
        if limit:
            most = int(min(most, limit.left / 2 / max(seconds, LEAST)))
        return evenly(len(self.draws), max(most - 1 + most % 2, 0))  # an odd number has a median

    def _judges(self, judges, table):
        """What a tree takes of some draws."""
        return [
            gathered(
                self.joints_without(self.draws[d], self.views[d], table),
                self.shares[d],
                self.component_sizes[d],
            )
            for d in judges
        ]

    def _by_peaks(self, table, separation, judges, numbers, whole, limit):
        """Part the components by the peaks of the density, if a component lies beneath several
        clusters that are then found, and these are no fewer than those of whole components;
        _parts.py says why.

        whole : ndarray
            The tree of whole components.

        Returns
        -------
        tree, log_joints
            Of the parts. None if nothing is parted.
        """
        point, draws = self.point, self.draws
        labels = [matching_view(draw, point)[1] for draw in draws]
        if np.median([len(sizes) for sizes in self.component_sizes]) < FEWEST_COMPONENTS:
            return None
        around, found, of_judges = self._peaks(table, judges, limit)
        if around is None or not beneath(labels, around.rows, found):
            return None
        self.point = parted(point, point.main_view, point.labels, around, found, table)
        self._part_draws(table, around, found, of_judges)
        about = main_peaks(self.point.labels, around.rows, found)
        own = self.joints_without(self.point, self.point.main_view, table)
        given = self._judges(judges, table), self.weights[judges], numbers
        tree, labels_of_parts = valley_tree(own, *given, about), self.point.labels[around.rows]
        if beneath(labels, around.rows, cut_tree(tree, separation)[labels_of_parts]):
            tree = surer(tree, pair_heights(own, *given, about, tree))
            groups, clusters = (cut_tree(of, separation) for of in (tree, whole))
            if show_as_many(groups[labels_of_parts], point.labels[around.rows], clusters):
                return tree, own
        self._average(draws, self.weights, point)
        return None

    def _peaks(self, table, judges, limit):
        """Some rows and their edges; the basins of these rows under the mean of the draws that
        judge; and by the number of each of these its own. None for each if places between rows say
        nothing, or if there is no time."""
        around = neighbourhood(self.point, table, compared_rows(table.n_rows, self.n_looked))
        if around is None or not len(judges):
            return None, None, None
        views = [state_of(self.draws[d], table).views[self.views[d]] for d in judges]
        found = around.peaks(views, self.weights[judges], limit)
        if found is None:
            return None, None, None
        return around, found[0], dict(zip(judges.tolist(), found[1]))

    def _part_draws(self, table, around, found, of_judges):
        """Part the draws by what `_peaks` has found, if anything: each by its own basins, if they
        are known."""
        if around is not None:
            own = [of_judges.get(d, found) for d in range(len(self.draws))]
            draws = [
                parted(draw, *matching_view(draw, self.point), around, basins, table)
                for draw, basins in zip(self.draws, own)
            ]
            self._average(draws, self.weights, self.point)

    def joints_without(self, draw, view, table):
        """What `joints_without` gives of the rows in which valleys are looked for."""
        mixture = state_of(draw, table).views[view]
        return joints_without(mixture, table, compared_rows(table.n_rows, self.n_looked))

    def numbers(self, point, table):
        """The numbers of the rows in which valleys are looked for, as `numbers_of` gives them."""
        return numbers_of(point, table, self.n_looked)

    def factor(self, table):
        """The `factor` of a tree of the point estimate's components."""
        return two_groups(self.point, table, self.n_looked)

    def scored(self, draws, views, table):
        """Yield (start, stop, an iterator of each draw's log w_c p(row | x_c) of these rows in a
        view of it, given their cells in views that are linked with it)."""
        predictor = Predictor(draws, self.schema)
        for start, stop in predictor._blocks(table):
            of_draws = enumerate(views)
            yield start, stop, (predictor.of_view(d, v, table, start, stop) for d, v in of_draws)

    @property
    def _order(self):
        """The clusters in the order of their first components. In this order they are compared, so
        that it does not depend on the numbers which of two equally probable ones a row is in."""
        numbers, first = np.unique(self.clusters, return_index=True)
        numbers = numbers[np.argsort(first)]
        return numbers[numbers >= 0]

    def _shares_in(self, joints, order):
        """Probability of each cluster of `order`, given that the row is in one of them, and that of
        a new component: (n_rows, n_clusters), (n_rows,)."""
        highest = joints[:, :-1].max(axis=1, keepdims=True)
        shares = np.exp(joints[:, :-1] - highest)
        new = expit(joints[:, -1] - highest[:, 0] - np.log(shares.sum(axis=1)))
        out = shares[:, np.searchsorted(np.unique(self.clusters), order)]
        return out / out.sum(axis=1, keepdims=True), new

    def _labelled(self, table, empty=None):
        """The most probable cluster of each row, and its probability of being in that and not in a
        new component: (n_rows,) each.

        `empty`, if it is a list, is given (start, stop, clusters, shares) of clusters that are the
        most probable one of no row before `stop`, and what shares the rows from `start` have."""
        labels, confidence = np.empty(table.n_rows, dtype=np.int64), np.empty(table.n_rows)
        order = self._order
        rest = np.arange(len(order))
        for start, stop, joints in self.joints(table, self.clusters):
            shares, new = self._shares_in(joints, order)
            best = shares.argmax(axis=1)
            labels[start:stop], rest = order[best], np.setdiff1d(rest, best)
            if empty is not None and len(rest):
                empty.append((start, stop, order[rest], shares[:, rest]))
            confidence[start:stop] = shares.max(axis=1) * (1.0 - new)
        return labels, confidence

    def _without_noise(self, labels, confidence):
        """The labels, -1 where a row is too improbably in its cluster."""
        return labels if self.noise is None else np.where(confidence <= self.noise, -1, labels)

    def predict(self, table):
        """The most probable cluster of each row, or -1: (n_rows,)."""
        return self._without_noise(*self._labelled(table))

    def predict_proba(self, table):
        """Probability of each cluster, given that the row is in one: (n_rows, n_clusters)."""
        out, order = np.empty((table.n_rows, self.n_clusters)), self._order
        for start, stop, joints in self.joints(table, self.clusters):
            out[start:stop, order], _ = self._shares_in(joints, order)
        return out

    def _raise(self, table, separation, n_clusters):
        """Add so much to the log weights of components that each cluster is the most probable one
        of a row, and if there are no such weights, join first what no row tells apart."""
        rows = compared_rows(table.n_rows, TREE_ROWS)
        rows = np.union1d(rows, np.unique(self.point.labels, return_index=True)[1])
        some = table.take(rows)
        self._raise_each(table, some, n_clusters)
        if self.n_clusters < n_clusters:
            self.raised = None
            same = alike(self._known(some, np.arange(len(self.tree) + 1)), self.point.labels[rows])
            self.tree = self.joins.tree(separation, same)
            told_apart = max(len(np.unique(same)), self.n_clusters)
            self._raise_each(table, some, min(n_clusters, told_apart))

    def _raise_each(self, table, some, n_clusters):
        """Cut the tree, raise weights by some of the rows (see `raised_weights`), and label all."""
        clusters = cut_tree(self.tree, n_clusters=n_clusters)
        self.raised = raised_weights(self._known(some, clusters))[clusters]
        self._label(table, clusters)

    def _known(self, table, clusters):
        """What `joints` gives of the clusters: (n_rows, n_clusters)."""
        return np.concatenate([of[:, :-1] for _, _, of in self.joints(table, clusters)])


def looked_rows(n_components):
    """In how many rows valleys are looked for, if there are so many."""
    return max(TREE_ROWS, min(ROWS_EACH * n_components, _LOOKED_CELLS // n_components))


def labels_of_draws(draws, point, clusters):
    """Yield each draw's cluster of each training row: (n_rows,).

    A draw's component has all of its rows in the cluster that most of them are in.

    Parameters
    ----------
    draws : list of Draw, CrossCatDraw or FeatureDraw
    point : Draw, CrossCatDraw or FeatureDraw
        The point estimate, whose components the clusters are made of.
    clusters : int array of shape (n_components,)
        The cluster of each of them, -1 if it is in none.
    """
    members = clusters[:, None] == np.arange(int(clusters.max()) + 1)
    for draw in draws:
        _, labels = matching_view(draw, point)
        yield (shares_in(labels, point.labels) @ members).argmax(axis=1)[labels]


def some_draws(draws, weights):
    """Return as many of the draws, and their weights, as clusters are averaged over."""
    used = evenly(len(draws), MOST_DRAWS)
    return [draws[d] for d in used], weights[used]
