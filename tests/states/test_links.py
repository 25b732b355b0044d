"""Links between views: evidence, forests and laws of pairs by slow loops; links that are loaded.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from oracles.bits import same_arrays
from oracles.crosscat_chains import Case, column, make_state
from oracles.links import scaled
from oracles.mixtures import make_table
from skanneal._native._state_arrays import StateError
from skanneal.families import Table
from skanneal.states import Subsample, _links, draw_arrays, state_from_arrays
from skanneal.states._links import (
    STRENGTHS,
    chosen_links,
    counts_of,
    links_of,
    log_bayes_factors,
    ratio_of,
)
from skanneal.summary._spanning import from_roots, spanning_forest

REJECT = 1e-6  # what a control's p-value must be below


# ---- the slow oracle ----------------------------------------------------------------------------


def log_bayes_factor(given, other, shares, c):
    """Of a link against independent views: the marginal likelihood of the module's docstring."""
    pairs = list(zip(given.tolist(), other.tolist()))
    total = 0.0
    for k in set(given.tolist()):
        n_k = sum(a == k for a, _ in pairs)
        total += math.lgamma(c) - math.lgamma(n_k + c)
        for j, w in enumerate(shares):
            total += math.lgamma(pairs.count((k, j)) + c * w) - math.lgamma(c * w)
    return total - sum(math.log(shares[j]) for _, j in pairs)


def log_mean(logs):
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs) / len(logs))


def log_worth(u, v, labels, weights):
    """Of a link of two views: the mean over which is given and over c, one of V others or none."""
    directions = (u, v), (v, u)
    logs = [
        log_bayes_factor(labels[a], labels[b], weights[b].tolist(), c)
        for a, b in directions
        for c in STRENGTHS.tolist()
    ]
    return log_mean(logs) - math.log(len(labels))


def forests(n):
    """Every set of pairs of n nodes that closes no circle."""
    for n_edges in range(n):
        for edges in itertools.combinations(itertools.combinations(range(n), 2), n_edges):
            if not closes_circle(edges):
                yield edges


def closes_circle(edges):
    trees = []
    for a, b in edges:
        of_a, of_b = ([tree for tree in trees if x in tree] for x in (a, b))
        if of_a and of_a == of_b:
            return True
        trees = [tree for tree in trees if tree not in of_a + of_b]
        trees.append(set().union({a, b}, *of_a, *of_b))
    return False


def test_forests_are_counted():
    assert [sum(1 for _ in forests(n)) for n in (1, 2, 3, 4)] == [1, 2, 7, 38]


# ---- tables -------------------------------------------------------------------------------------


def labels_of(rng, n_rows, n_components):
    """Labels of a view by itself, each component with a row."""
    shares = rng.dirichlet(np.full(n_components, 2.0))
    labels = np.r_[np.arange(n_components), rng.choice(n_components, n_rows, p=shares)][:n_rows]
    return rng.permutation(labels)


def noisy(rng, labels, share, n_components):
    """Labels that go by others, but for a share of the rows."""
    own = rng.integers(0, n_components, len(labels))
    out = np.where(rng.random(len(labels)) < share, own, labels % n_components)
    return np.unique(out, return_inverse=True)[1]


def shares_of(labels, discount=0.3):
    weights = np.bincount(labels) - discount
    return weights / weights.sum()


def tables(seed, n_rows=90):
    """(labels, weights) of four views: dependent ones and others."""
    rng = np.random.default_rng(seed)
    labels = [labels_of(rng, n_rows, 3 + seed % 2)]
    for _ in range(3):
        of = labels[rng.integers(len(labels))]
        labels.append(noisy(rng, of, rng.choice([0.1, 0.4, 0.8, 1.0]), 4))
    order = rng.permutation(4)
    labels = [labels[i] for i in order]
    return labels, [shares_of(of) for of in labels]


# ---- evidence -----------------------------------------------------------------------------------


def excess(one, two):
    """Of the chi-square statistic over its degrees of freedom."""
    pairs, n = list(zip(one.tolist(), two.tolist())), len(one)
    sizes = [[of.tolist().count(k) for k in range(of.max() + 1)] for of in (one, two)]
    square = sum(
        pairs.count((k, j)) ** 2 / (sizes[0][k] * sizes[1][j])
        for k, j in itertools.product(range(len(sizes[0])), range(len(sizes[1])))
    )
    return n * (square - 1.0) - (len(sizes[0]) - 1) * (len(sizes[1]) - 1)


def check_evidence(labels, weights, asked):
    """That of the formula for the pairs that are asked, in both directions; none for others."""
    logs, n = log_bayes_factors(labels, weights), len(labels)
    assert logs.shape == (n, n, len(STRENGTHS))
    for u, v in itertools.permutations(range(n), 2):
        of = labels[u], labels[v], weights[v].tolist()
        expected = [log_bayes_factor(*of, c) if asked(u, v) else -np.inf for c in STRENGTHS]
        assert logs[u, v] == pytest.approx(expected, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_of_a_link_is_that_of_the_formula(seed):
    """Where labels agree more than those of independent views on average."""
    labels, weights = tables(seed)
    check_evidence(labels, weights, lambda u, v: excess(labels[u], labels[v]) > 0.0)


@pytest.mark.parametrize("n_partners", [1, 2])
def test_of_many_views_only_the_nearest_are_asked(n_partners, monkeypatch):
    """Those that are among the nearest to one of the two."""
    monkeypatch.setattr(_links, "PARTNERS", n_partners)
    rng = np.random.default_rng(4)
    labels = [labels_of(rng, 90, 3)]
    for share in (0.1, 0.3, 0.5, 0.4, 0.6):
        labels.append(noisy(rng, labels[rng.integers(len(labels))], share, 3))
    found = {(u, v): excess(labels[u], labels[v]) for u, v in itertools.permutations(range(6), 2)}
    nearest = {
        u: sorted((v for v in range(6) if v != u), key=lambda v: found[u, v])[-n_partners:]
        for u in range(6)
    }

    def asked(u, v):
        return found[u, v] > 0.0 and (v in nearest[u] or u in nearest[v])

    n_asked = sum(asked(u, v) for u, v in found)
    assert 6 < n_asked < sum(of > 0.0 for of in found.values())
    check_evidence(labels, [shares_of(of) for of in labels], asked)


def test_the_evidence_is_the_product_of_the_predictives():
    """p(l | k) = (n_kl + c w_l) / (n_k + c) of each row after those before it, against w_l."""
    labels, weights = tables(0)
    logs = log_bayes_factors(labels, weights)
    for s, c in enumerate(STRENGTHS.tolist()):
        before, total = [], 0.0
        for k, j in zip(labels[1].tolist(), labels[2].tolist()):
            n_k, w = sum(a == k for a, _ in before), weights[2][j]
            total += math.log((before.count((k, j)) + c * w) / (n_k + c) / w)
            before.append((k, j))
        assert logs[1, 2, s] == pytest.approx(total, rel=1e-10, abs=1e-9)


def check_chosen(labels, weights, pairs, strengths):
    """The forest of the largest sum; each link's direction and strength the most probable."""
    worth = {
        pair: log_worth(*pair, labels, weights)
        for pair in itertools.combinations(range(len(labels)), 2)
    }
    best = max(forests(len(labels)), key=lambda edges: math.fsum(worth[edge] for edge in edges))
    assert [tuple(sorted(pair)) for pair in pairs.tolist()] == sorted(best)
    for pair, c in zip(pairs.tolist(), strengths.tolist()):
        logs = {
            (u, v, b): log_bayes_factor(labels[u], labels[v], weights[v].tolist(), b)
            for u, v in (pair, pair[::-1])
            for b in STRENGTHS.tolist()
        }
        assert max(logs, key=logs.get) == (*pair, c)


@pytest.mark.parametrize("seed", range(8))
def test_the_forest_is_worth_most(seed):
    labels, weights = tables(seed)
    check_chosen(labels, weights, *chosen_links(labels, weights))


def test_a_link_stands_where_it_is_worth_something():
    """Two views that depend on each other weakly: worth little more or little less than nothing.

    They have components of different numbers, so that it matters which is given."""
    worths = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        first = labels_of(rng, 40, 2)
        labels = [first, noisy(rng, first, 0.5, 6)]
        weights = [shares_of(of) for of in labels]
        worths.append(log_worth(0, 1, labels, weights))
        assert len(chosen_links(labels, weights)[0]) == (worths[-1] > 0.0)
    for low, high in ((-0.7, 0.0), (0.0, 0.7)):  # half as probable, or twice
        assert sum(low < worth < high for worth in worths) >= 3


def test_all_sorts_of_forests_are_met():
    """By the tables of the test before: also three views of which each two are worth a link."""
    found, n_circles = [chosen_links(*tables(seed)) for seed in range(8)], 0
    assert {len(pairs) for pairs, _ in found} >= {2, 3}
    assert {u < v for pairs, _ in found for u, v in pairs.tolist()} == {True, False}
    assert len({c for _, strengths in found for c in strengths.tolist()}) > 1
    for seed, (pairs, _) in enumerate(found):
        every = itertools.combinations(range(4), 2)
        n_circles += len(pairs) < sum(log_worth(*pair, *tables(seed)) > 0.0 for pair in every)
    assert n_circles > 0


@pytest.mark.parametrize(("name", "most"), [("MOST_JUDGED", 70), ("MOST_PAIRS", 16 * 70 + 15)])
def test_many_rows_are_judged_by_some(monkeypatch, name, most):
    """200 rows by every third, more of which agree than of the others."""
    labels, weights = tables(1, n_rows=200)
    order = np.argsort(labels[0] != labels[1] % 4, kind="stable")
    rows = np.empty(200, int)
    rows[np.argsort(np.arange(200) % 3 > 0, kind="stable")] = order
    labels = [of[rows] for of in labels]
    every = chosen_links(labels, weights)
    monkeypatch.setattr(_links, name, most)
    monkeypatch.setattr(_links, "LEAST_JUDGED", 50)
    pairs, strengths = chosen_links(labels, weights)
    check_chosen([of[::3] for of in labels], weights, pairs, strengths)
    assert pairs.tolist() != every[0].tolist() or strengths.tolist() != every[1].tolist()


@pytest.mark.parametrize("n_components", [2, 5])
def test_independent_views_are_hardly_linked(n_components):
    """3 views of 300 rows: 1 of 200 tables was found to get a link, here at most 5 may."""
    n_linked = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        labels = [labels_of(rng, 300, n_components) for _ in range(3)]
        n_linked += len(chosen_links(labels, [shares_of(of) for of in labels])[0]) > 0
    assert n_linked <= 5


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_views_that_go_together_are_linked(share):
    """Two views of three, the same or alike in most rows, in any of 100 tables; the third seldom
    takes part."""
    n_more = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels = [labels_of(rng, 300, 4), labels_of(rng, 300, 3)]
        labels.append(noisy(rng, labels[0], share, 4))
        pairs, strengths = chosen_links(labels, [shares_of(of) for of in labels])
        assert [0, 2] in np.sort(pairs, axis=1).tolist()
        n_more += len(pairs) > 1
        if share == 0.0:
            assert strengths[0] == STRENGTHS[0]
    assert n_more <= 3


@pytest.mark.parametrize("n_views", [1, 2, 4])
def test_views_of_one_component_have_no_links(n_views):
    pairs, strengths = chosen_links([np.zeros(9, np.int64)] * n_views, [np.ones(1)] * n_views)
    assert pairs.shape == (0, 2) and pairs.dtype == np.int64 and strengths.shape == (0,)


# ---- laws of pairs ------------------------------------------------------------------------------


def pair_case(seed, *, given_new=0.05, other_new=0.02, shape=(4, 3), n_rows=90):
    """(counts, given, other): weights of components and of a new one."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n_rows, rng.dirichlet(np.full(shape[0] * shape[1], 0.4)))
    counts = counts.reshape(shape) + np.eye(*shape, dtype=int)
    weights = (
        np.append((1.0 - new) * (n - 0.2) / (n - 0.2).sum(), new)
        for n, new in ((counts.sum(axis=1), given_new), (counts.sum(axis=0), other_new))
    )
    return counts, *weights


NEW = [(0.05, 0.02), (0.0, 0.02), (0.05, 0.0), (0.0, 0.0)]  # weights of new components


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("new", NEW)
@pytest.mark.parametrize("c", [1.0, 64.0])
def test_pairs_have_the_weights_as_margins(c, new, drawn):
    """To 1e-9; a new component goes with all others as if views were independent."""
    for seed in range(5):
        counts, given, other = pair_case(seed, given_new=new[0], other_new=new[1])
        generator = np.random.default_rng(seed) if drawn else None
        ratios = ratio_of(counts, c, given, other, generator)
        assert (ratios >= 0.0).all()
        assert (ratios[-1] == 1.0).all() and (ratios[:, -1] == 1.0).all()
        law = np.multiply.outer(given, other) * ratios
        np.testing.assert_allclose(law.sum(axis=1), given, rtol=0, atol=1e-9)
        np.testing.assert_allclose(law.sum(axis=0), other, rtol=0, atol=1e-9)


def slow_ratios(counts, c, given, other):
    """w_k p(l | k) of components, whose shares are w, brought to these margins by turns."""
    rows, columns = ([w / sum(of[:-1]) for w in of[:-1]] for of in (given, other))
    law = [
        [w * (n + c * x) / (sum(own) + c) for n, x in zip(own, columns)]
        for w, own in zip(rows, counts)
    ]
    law = scaled(law, rows, columns)
    ratios = [[p / (w * x) for p, x in zip(own, columns)] for w, own in zip(rows, law)]
    return [[*own, 1.0] for own in ratios] + [[1.0] * len(other)]


@pytest.mark.parametrize("new", NEW)
@pytest.mark.parametrize("c", STRENGTHS)
def test_ratios_are_those_of_a_slow_fit(c, new):
    counts, given, other = pair_case(2, given_new=new[0], other_new=new[1])
    expected = slow_ratios(counts.tolist(), c, given.tolist(), other.tolist())
    np.testing.assert_allclose(ratio_of(counts, c, given, other), expected, rtol=1e-7)


@pytest.mark.parametrize("n_rows", [200, 20_000])
def test_pairs_of_views_that_are_the_same(n_rows):
    """Weights that no law of hardly any freedom has, by other discounts: nearly the margins.

    The given view's margins are exact, since its turn is the last one; the other's were found to be
    off by up to 2e-4."""
    labels = labels_of(np.random.default_rng(0), n_rows, 5)
    counts, sizes = np.diag(np.bincount(labels)), np.bincount(labels)
    given = np.append(sizes - 0.3, 1.0 + 5 * 0.3) / (n_rows + 1.0)
    other = np.append(sizes, 5.0) / (n_rows + 5.0)
    law = np.multiply.outer(given, other) * ratio_of(counts, 1.0, given, other)
    np.testing.assert_allclose(law.sum(axis=1), given, rtol=0, atol=1e-12)
    np.testing.assert_allclose(law.sum(axis=0), other, rtol=0, atol=5e-4)
    assert np.diag(law)[:-1].sum() > 0.9


@pytest.mark.parametrize("drawn", [False, True])
def test_a_link_of_no_strength_is_none(drawn):
    """c so large that no counts matter, nor the law that is drawn."""
    counts, given, other = pair_case(0)
    ratios = ratio_of(counts, 1e14, given, other, np.random.default_rng(0) if drawn else None)
    np.testing.assert_allclose(ratios, 1.0, rtol=0, atol=1e-5)
    strong = ratio_of(counts, 1.0, given, other)
    assert np.abs(strong - 1.0).max() > 0.5


RARE, SURE = 1e-7, 1e14  # weight of a component; rows by which another one has its law


def drawn_laws(c, n_draws):
    """Draws of p(l | 0) and p(l | 1), and the parameters of their Dirichlet laws.

    Margins change their laws by factors of 1 + 1e-5 at most: these two components weigh 2e-7, and a
    third one, which has the other view's shares, all else."""
    columns = np.array([0.3, 0.25, 0.45])
    counts = np.array([[3.0, 0.0, 9.0], [0.0, 2.0, 1.0], SURE * columns])
    given = np.append(0.9 * np.array([RARE, RARE, 1.0 - 2.0 * RARE]), 0.1)
    other = np.append(0.95 * columns, 0.05)
    generator = np.random.default_rng(7)
    of = [ratio_of(counts, c, given, other, generator)[:2, :3] * columns for _ in range(n_draws)]
    return np.array(of), counts[:2] + c * columns


@pytest.mark.parametrize("c", [1.0, 8.0])
def test_laws_are_drawn_from_dirichlet_laws(c):
    """Each probability has its beta law (Kolmogorov and Smirnov), means and variances are those of
    the formulas within 5 standard errors, and components draw for themselves."""
    laws, parameters = drawn_laws(c, 2000)
    np.testing.assert_allclose(laws.sum(axis=2), 1.0, atol=1e-5)
    for k, a in enumerate(parameters):
        for j, x in enumerate(laws[:, k].T):
            beta = stats.beta(a[j], a.sum() - a[j])
            assert stats.kstest(x, beta.cdf).pvalue > 1e-4
            assert abs(x.mean() - beta.mean()) < 5.0 * beta.std() / math.sqrt(len(x))
            fourth = beta.moment(4) - 4 * beta.mean() * beta.moment(3)
            fourth += 6 * beta.mean() ** 2 * beta.moment(2) - 3 * beta.mean() ** 4
            error = math.sqrt((fourth - beta.var() ** 2) / len(x))
            assert abs(x.var() - beta.var()) < 5.0 * error
    together = np.corrcoef(laws[:, 0].T, laws[:, 1].T)[:3, 3:]
    assert np.abs(together).max() < 5.0 / math.sqrt(len(laws))


def test_laws_of_another_strength_fail():
    laws, (a, _) = drawn_laws(16.0, 2000)[0], drawn_laws(8.0, 0)[1]
    assert stats.kstest(laws[:, 0, 0], stats.beta(a[0], a.sum() - a[0]).cdf).pvalue < REJECT


# ---- forests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_spanning_forest_has_the_largest_sum(seed):
    """Of 4 nodes by all forests; some edges are worth nothing, or less."""
    rng = np.random.default_rng(seed)
    worth = np.zeros((4, 4))
    for i, j in itertools.combinations(range(4), 2):
        worth[i, j] = worth[j, i] = rng.normal(0.3) if rng.random() < 0.9 else 0.0
    found = sorted(tuple(sorted(edge)) for edge in np.argwhere(spanning_forest(worth).toarray()))
    best = max(forests(4), key=lambda edges: sum(worth[edge] for edge in edges))
    assert found == [edge for edge in sorted(best) if worth[edge] > 0.0]


def test_the_larger_of_two_directions_counts():
    worth = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    forest = spanning_forest(worth).toarray()
    assert {tuple(sorted(edge)) for edge in np.argwhere(forest).tolist()} == {(0, 2), (1, 2)}


@pytest.mark.parametrize("n", [1, 3])
def test_edges_worth_nothing_are_left_out(n):
    assert not spanning_forest(np.zeros((n, n))).nnz
    assert not spanning_forest(np.full((n, n), -1.0)).nnz


def test_nodes_stand_after_their_parents():
    """A path, a star and a node alone, edges in both directions."""
    forest = np.zeros((9, 9))
    edges = [(3, 1), (1, 5), (8, 5), (6, 0), (2, 6), (6, 7)]
    for a, b in edges:
        forest[a, b] = 1.0
    order, parents = from_roots(spanning_forest(forest + forest.T))
    assert sorted(order) == [0, 1, 2, 3, 5, 6, 7, 8] and parents[4] == -1
    assert parents.tolist() == [-1, -1, 6, 1, -1, 1, 0, 6, 5]
    roots = [node for node in order if parents[node] < 0]
    assert roots == [0, 1]  # the first of each tree
    for node in order:
        if parents[node] >= 0:
            assert order.index(parents[node]) < order.index(node)
            assert (parents[node], node) in edges or (node, parents[node]) in edges


def test_no_edges_no_order():
    order, parents = from_roots(spanning_forest(np.zeros((3, 3))))
    assert order == [] and parents.tolist() == [-1, -1, -1]


# ---- links of a state, saved and loaded ---------------------------------------------------------

N, COLUMNS = 80, 3  # rows; components of the other view of the first link


def linked_state():
    """A state of three views that go together; the slots of the second one have holes."""
    rng = np.random.default_rng(3)
    first = labels_of(rng, N, 3)
    labels = [first, np.array([0, 2, 5, 9])[noisy(rng, first, 0.2, 4)], noisy(rng, first, 0.3, 2)]
    columns = [
        column("normal", (3.0 * labels[0] + rng.normal(size=N)).tolist()),
        column("poisson", rng.poisson(1 + 5 * labels[1]).tolist()),
        column("categorical", labels[2].tolist()),
    ]
    case = Case(columns, [(1.0, 0.3)], [(0.7, 0.3)])
    subsample = Subsample(N)
    subsample.fill()
    views = tuple(((v,), (of, 0)) for v, of in enumerate(labels))
    return make_state(case, (0, (0, 0, 0), views), make_table(columns), subsample)


@pytest.fixture(scope="module")
def linked():
    state = linked_state()
    return state.table, draw_arrays(state, linked=True)


def test_the_links_of_a_state(linked):
    """Counts of pairs of components, as numbered in the draw; directions as views are given."""
    _, arrays = linked
    views = arrays["link_views"].tolist()
    assert len(views) == 2 and not closes_circle(views)
    assert arrays[f"view{views[0][1]}/labels"].max() + 1 == COLUMNS
    labels = [arrays[f"view{v}/labels"].tolist() for v in range(3)]
    expected = []
    for u, v in views:
        pairs = list(zip(labels[u], labels[v]))
        for k in range(max(labels[u]) + 1):
            expected += [pairs.count((k, j)) for j in range(max(labels[v]) + 1)]
    assert arrays["link_counts"].tolist() == expected
    types = {"link_views": np.int64, "link_strengths": np.float64, "link_counts": np.int32}
    assert all(arrays[name].dtype == dtype for name, dtype in types.items())
    labels = [np.array(of) for of in labels]
    weights = [shares_of(of, discount=0.3) for of in labels]
    check_chosen(labels, weights, arrays["link_views"], arrays["link_strengths"])


def test_counts_of_each_link(linked):
    _, arrays = linked
    sizes = [np.bincount(arrays[f"view{v}/labels"]) for v in range(3)]
    found = counts_of(arrays["link_views"], arrays["link_counts"], sizes)
    for (u, v), of in zip(arrays["link_views"].tolist(), found):
        assert np.array_equal(of.sum(axis=1), sizes[u])
        assert np.array_equal(of.sum(axis=0), sizes[v])
    assert counts_of(np.empty((0, 2), np.int64), np.empty(0, np.int32), sizes) == []


def test_draws_without_links():
    state = linked_state()
    assert not [name for name in draw_arrays(state) if "link" in name]
    state.views[0].replace(np.arange(N), np.zeros(N))
    state.views[1].replace(np.arange(N), np.arange(N) % 4)
    arrays = links_of(state)  # the third view is independent of these
    assert {name: of.shape for name, of in arrays.items()} == {
        "link_views": (0, 2),
        "link_strengths": (0,),
        "link_counts": (0,),
    }
    state_from_arrays(draw_arrays(state, linked=True), state.table)


def without_rows(table):
    return Table(table.dtypes, table.n_levels)


def test_links_that_were_not_changed_are_taken(linked):
    """With the table's rows and without them; the state keeps what else it has."""
    table, arrays = linked
    state = state_from_arrays(arrays, table, Subsample(N))
    assert same_arrays(draw_arrays(state, linked=True), arrays)
    state_from_arrays(arrays, without_rows(table))


def changed(at, value):
    """The array with another value at a place."""

    def change(array):
        array = array.copy()
        array.flat[at] = value
        return array

    return change


def rewired(*pairs):
    return lambda views: np.array(pairs, views.dtype)


def moved(n):
    """A row of the first cell of a link in the n-th one: the first link has 2 columns or more."""

    def change(counts):
        counts = changed(0, counts[0] - 1)(counts)
        return changed(n, counts[n] + 1)(counts)

    return change


FAULTS = {  # array, what is done to it, words of the error
    "far": ("link_views", changed(0, 3), "must lie between 0 and 2"),
    "below 0": ("link_views", changed(3, -1), "must lie between 0 and 2"),
    "twice": ("link_views", rewired((0, 1), (1, 0)), "circle"),
    "itself": ("link_views", rewired((0, 1), (2, 2)), "circle"),
    "one view": ("link_views", lambda a: a[:, :1], "shape"),
    "no pairs": ("link_views", None, "is missing"),
    "numbers": ("link_views", lambda a: a.astype(float), "dtype"),
    "no views": ("link_views", lambda a: a[None], "shape"),
    "strength 0": ("link_strengths", changed(0, 0.0), "positive"),
    "strength below 0": ("link_strengths", changed(1, -8.0), "positive"),
    "not finite": ("link_strengths", changed(0, np.nan), "not finite"),
    "too strong": ("link_strengths", changed(0, np.inf), "not finite"),
    "a strength less": ("link_strengths", lambda a: a[:-1], "shape"),
    "strengths of pairs": ("link_strengths", lambda a: np.c_[a, a], "shape"),
    "whole strengths": ("link_strengths", lambda a: a.astype(int), "dtype"),
    "no strengths": ("link_strengths", None, "is missing"),
    "a count less": ("link_counts", lambda a: a[:-1], "shape"),
    "a count more": ("link_counts", lambda a: np.append(a, a[-1:]), "shape"),
    "negative": ("link_counts", changed(0, -1), "must lie between"),
    "a row more": ("link_counts", lambda a: changed(0, a[0] + 1)(a), "contradicts"),
    "a row in another column": ("link_counts", moved(1), "contradicts"),
    "a row in another row": ("link_counts", moved(COLUMNS), "contradicts"),
    "counts of another order": ("link_counts", lambda a: a[::-1].copy(), "contradicts"),
    "no counts": ("link_counts", None, "is missing"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_links_that_were_changed(linked, fault):
    table, arrays = linked
    name, change, words = FAULTS[fault]
    arrays = dict(arrays)
    arrays[name] = None if change is None else change(arrays[name])
    if change is None:
        del arrays[name]
    for of in (table, without_rows(table)):
        with pytest.raises(StateError, match=words) as error:
            state_from_arrays(arrays, of)
        assert error.value.key == name
    if name != "link_views":  # which is not asked of arrays that were checked before
        state_from_arrays(arrays, table, trusted=True)


def test_three_links_of_three_views(linked):
    """A circle, whatever the counts."""
    table, arrays = linked
    views = np.array([[0, 1], [1, 2], [2, 0]])
    arrays = arrays | {"link_views": views, "link_strengths": np.ones(3)}
    with pytest.raises(StateError, match="closes a circle") as error:
        state_from_arrays(arrays, table)
    assert error.value.key == "link_views"
