"""Outcomes that a forest binds within components: by enumeration, from the formulas.

Random tests: fixed seeds, one try; a false alarm has probability 1e-6 or less.
"""

import copy
import pickle
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.predictive import _forests
from skanneal.predictive._forest import Forest, pair_evidence
from skanneal.predictive._forest_view import ForestView
from skanneal.predictive._forests import STRENGTHS, Edges
from skanneal.schedules import SequentialGibbs

QUICK = {
    "n_chains": 1,
    "n_draws": 3,
    "schedule": SequentialGibbs(n_sweeps=6),
    "random_state": 0,
    "margins": "data",
}
RARE = 1e-6


def fitted(X, estimator=AnnealedDPMixture, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**QUICK | parameters).fit(X)


def twins(n, n_pairs=6, seed=0):
    """Pairs of columns of three levels, of which the second is mostly the first: the pairs are
    independent of each other, so that few components cannot say what goes together."""
    rng = np.random.default_rng(seed)
    one = rng.integers(3, size=(n, n_pairs))
    two = np.where(rng.random(one.shape) < 0.6, one, rng.integers(3, size=one.shape))
    names = [f"{name}{i}" for i in range(n_pairs) for name in "ab"]
    return pd.DataFrame(np.stack([one, two], axis=2).reshape(n, -1), columns=names).astype(str)


def four(n, seed=0):
    """Columns of 3, 2, 3 and 2 levels in two clusters."""
    rng = np.random.default_rng(seed)
    one = rng.random(n) < 0.5
    columns = {}
    for name, size in zip("abcd", (3, 2, 3, 2)):
        columns[name] = np.where(one & (rng.random(n) < 0.8), 1, rng.integers(size, size=n))
    return pd.DataFrame(columns).astype(str)


def with_atoms(n, seed=0):
    """Two levels, and amounts of which many are 0, in three clusters."""
    rng = np.random.default_rng(seed)
    sort = rng.integers(3, size=n)
    first = np.exp(2.0 * sort - 1.0 + 0.2 * rng.normal(size=n)) * (rng.random(n) > 0.4)
    other = (3.0 + 2.0 * sort + 0.3 * rng.normal(size=n)) * (rng.random(n) > 0.3)
    level = rng.integers(2, size=n).astype(str)
    return pd.DataFrame({"level": level, "first": first, "other": other})


def bind(model, columns, parents, seed=0):
    """Give a model forests that its rows do not ask for: of those of these columns that a view has,
    in this order. The parents are places among all; a column whose parent is not in the view is
    the child of the column before."""
    rng = np.random.default_rng(seed)
    queries = model._queries()
    edges = []
    for views in queries.predictor.draws:
        queries.margins.edges.clear()
        of_draw = []
        for view in views:
            held = [j for j in columns if j in view.features]
            if len(held) < 2:
                of_draw.append(None)
                continue
            up = [columns[p] if p >= 0 else None for p in (parents[columns.index(j)] for j in held)]
            up = [held.index(p) if p in held else i - 1 for i, p in enumerate(up)]
            sizes = [view.outcome_probabilities(j).shape[1] for j in held]
            shapes = [(len(view.slots) - 1, sizes[p], size) for p, size in zip(up, sizes)]
            counts = [
                None if p < 0 else (rng.integers(2, size=shape) * rng.integers(60, size=shape))
                for p, shape in zip(up, shapes)
            ]
            weights = [None if p < 0 else rng.dirichlet(np.ones(len(STRENGTHS))) for p in up]
            of_draw.append(Edges(held, up, counts, weights))
        edges.append(of_draw)
    margins = model._margins
    margins.edges, margins.law, margins._maps = edges, None, None
    assert any(of is not None for of_draw in edges for of in of_draw)
    return model


def bound(model):
    """The pairs of columns that any draw's forest binds."""
    names = list(model.feature_names_in_)
    return {
        frozenset((names[of.columns[parent]], names[place]))
        for of_draw in model._margins.edges
        for of in of_draw
        if of is not None
        for place, parent in zip(of.columns, of.parents)
        if parent >= 0
    }


# ---- a forest by itself --------------------------------------------------------------------------

SIZES, PARENTS = (2, 3, 2, 3, 2), (-1, 0, 1, 1, -1)


@pytest.fixture(scope="module")
def forest():
    """Five nodes in two components: what binds them, and the Forest."""
    rng = np.random.default_rng(1)
    base = [rng.dirichlet(np.ones(size), size=2).T for size in SIZES]
    bound = [
        None if up < 0 else np.moveaxis(rng.dirichlet(np.ones(size), size=(SIZES[up], 2)), 1, 2)
        for up, size in zip(PARENTS, SIZES)
    ]
    return base, bound, Forest(PARENTS, base, bound)


def probability(base, bound, outcomes, k):
    """Of whole rows, from the formula."""
    out = 1.0
    for node, up in enumerate(PARENTS):
        out *= (
            base[node][outcomes[node], k]
            if up < 0
            else bound[node][outcomes[up], outcomes[node], k]
        )
    return out


def marginal(base, bound, known, k):
    """Of rows with missing outcomes, -1: the sum over what they may be."""
    of_nodes = [range(size) if x < 0 else [x] for x, size in zip(known, SIZES)]
    return sum(probability(base, bound, outcomes, k) for outcomes in product(*of_nodes))


def every_row():
    return np.array(list(product(*[range(-1, size) for size in SIZES])), dtype=np.int32)


def test_ratios_of_all_rows_with_all_gaps(forest):
    base, bound, own = forest
    rows = every_row()
    ratios = own.log_ratios(rows)
    for row, found in zip(rows, ratios):
        for k in range(2):
            alone = sum(np.log(base[node][x, k]) for node, x in enumerate(row) if x >= 0)
            expected = np.log(marginal(base, bound, row, k)) - alone
            assert found[k] == pytest.approx(expected, abs=1e-12)


def test_long_forests_do_not_underflow():
    """A star of 400 leaves that contradict each other, whose centre is missing."""
    base = [np.full((2, 1), 0.5) for _ in range(401)]
    sure = np.array([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]])[:, :, None]
    own = Forest([-1] + [0] * 400, base, [None] + [sure] * 400)
    row = np.r_[-1, np.zeros(200), np.ones(200)].astype(np.int32)
    expected = 200 * np.log(2.0 * sure[0, 1, 0]) + 200 * np.log(2.0 * sure[0, 0, 0])
    assert own.log_ratios(row[None])[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("known", [(-1, -1, -1, -1, -1), (-1, -1, 1, 2, -1), (1, -1, 0, -1, 0)])
def test_draws_given_the_rest(forest, known):
    base, bound, own = forest
    n = 40_000
    rows = np.tile(np.array(known, np.int32), (n, 1))
    drawn = own.draw(rows, np.ones(n, np.int64), np.random.PCG64(3))
    of_nodes = [range(size) if x < 0 else [x] for x, size in zip(known, SIZES)]
    cells = list(product(*of_nodes))
    expected = np.array([probability(base, bound, cell, 1) for cell in cells])
    found = [np.sum((drawn == cell).all(axis=1)) for cell in cells]
    assert sum(found) == n
    assert stats.chisquare(found, n * expected / expected.sum()).pvalue > RARE


# ---- evidence ------------------------------------------------------------------------------------


def log_dirichlet_multinomial(counts, shapes):
    counts, shapes = np.ravel(counts), np.ravel(shapes)
    rises = gammaln(shapes + counts) - gammaln(shapes)
    return gammaln(shapes.sum()) - gammaln(shapes.sum() + counts.sum()) + rises.sum()


def test_evidence_is_that_of_dirichlet_laws():
    rng = np.random.default_rng(0)
    n, n_components, sizes = 400, 3, (2, 4, 3)
    labels = rng.integers(n_components, size=n).astype(np.int32)
    outcomes = np.column_stack([rng.integers(size, size=n) for size in sizes])
    outcomes[rng.random(outcomes.shape) < 0.1] = -1
    base = [rng.dirichlet(np.ones(size), size=n_components).T for size in sizes]
    pairs = np.array(list(combinations(range(3), 2)))
    first = np.cumsum([0, *sizes])
    found = pair_evidence(
        outcomes.astype(np.int32), labels, first, np.vstack(base).copy(order="C"), STRENGTHS, pairs
    )
    for p, pair in enumerate(map(list, pairs)):
        for s, c in enumerate(STRENGTHS):
            expected = log_evidence(outcomes[:, pair], labels, [base[j].T for j in pair], c)
            assert found[p, s] == pytest.approx(expected, abs=1e-8)


def log_evidence(outcomes, labels, base, c):
    """Log Bayes factor of two columns, from the formula; outcomes (n, 2), base of each (K, n)."""
    out = 0.0
    for k in np.unique(labels):
        own = (labels == k) & (outcomes >= 0).all(axis=1)
        counts = np.zeros((base[0].shape[1], base[1].shape[1]))
        np.add.at(counts, tuple(outcomes[own].T), 1)
        one, two = (c * of[k] for of in base)
        out += log_dirichlet_multinomial(counts, np.outer(one, two) / c)
        out -= log_dirichlet_multinomial(counts.sum(axis=1), one)
        out -= log_dirichlet_multinomial(counts.sum(axis=0), two)
    return out


def has_circle(edges):
    trees = {i: {i} for i in range(4)}
    for i, j in edges:
        if trees[i] is trees[j]:
            return True
        trees[i] |= trees[j]
        for k in trees[j]:
            trees[k] = trees[i]
    return False


def test_the_forest_is_the_most_probable_one():
    """Of all forests of four columns, in draws of one component, by their mean evidence."""
    X = twins(300, 2)
    X["b1"] = np.where(np.random.default_rng(1).random(300) < 0.7, X["b0"], X["b1"])
    X = X.mask(np.random.default_rng(2).random(X.shape) < 0.05)
    model = fitted(X, families="categorical", concentration=1e-100, discount=0.0)
    outcomes = np.column_stack([X[name].fillna("-1").astype(int) for name in X])
    pairs, used = list(combinations(range(4), 2)), model._margins.used
    views = [view for (view,) in model._queries().predictor.draws]
    draws = [(views[d], np.asarray(model._queries().draws[d].labels)) for d in used]
    logs = np.array(
        [
            [
                [
                    log_evidence(
                        outcomes[:, pair], labels, [view.level_probabilities(j) for j in pair], c
                    )
                    for c in STRENGTHS
                ]
                for pair in map(list, pairs)
            ]
            for view, labels in draws
        ]
    )  # (draw, pair, strength)
    gains = (logsumexp(logs, axis=2) - np.log(len(STRENGTHS))).mean(axis=0) - np.log(4)
    best = max(
        (
            of
            for n in range(4)
            for of in combinations(range(6), n)
            if not has_circle([pairs[p] for p in of])
        ),
        key=lambda of: sum(gains[p] for p in of),
    )
    assert len(best) >= 2
    for d, ((edges,), (_, labels)) in enumerate(zip(model._margins.edges, draws)):
        found = {}
        for node, up in enumerate(edges.parents):
            if up >= 0:
                pair = [edges.columns[up], edges.columns[node]]
                found[pairs.index(tuple(sorted(pair)))] = node, pair
        assert set(found) == set(best)
        for p, (node, pair) in found.items():
            weights = np.exp(logs[d, p] - logsumexp(logs[d, p]))
            assert edges.weights[node] == pytest.approx(weights, abs=1e-9)
            known = (outcomes[:, pair] >= 0).all(axis=1)
            expected = np.zeros_like(edges.counts[node])
            np.add.at(expected, (labels[known], *outcomes[known][:, pair].T), 1)
            assert np.array_equal(edges.counts[node], expected)


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_the_columns_that_depend_are_bound(estimator):
    model = fitted(twins(500), estimator, families="categorical")
    pairs = {frozenset((f"a{i}", f"b{i}")) for i in range(6)}
    assert bound(model) <= pairs  # components may have told some already, as views do
    if estimator is AnnealedDPMixture:
        assert len(bound(model)) >= 5


def test_of_many_columns_some_rows_say_which_depend(monkeypatch):
    """The tables of edges are those of all rows."""
    monkeypatch.setattr(_forests, "MOST_COMPARED", 200 * 12**2)
    X = twins(600)
    model = fitted(X, families="categorical")
    pairs = {frozenset((f"a{i}", f"b{i}")) for i in range(6)}
    assert bound(model) <= pairs and len(bound(model)) >= 4
    counts = [n for (of,) in model._margins.edges for n in of.counts if n is not None]
    assert {int(n.sum()) for n in counts} == {600}


def test_independent_columns_are_not_bound():
    X = np.random.default_rng(2).integers(3, size=(500, 6)).astype(str)
    model = fitted(X, families="categorical")
    assert not any(of for of_draw in model._margins.edges for of in of_draw)
    assert not model._margins.changed
    assert model.sample(3).shape == (3, 6)


# ---- answers of a fit ----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["mixture", "views"])
def levels(request):
    """A fit of four columns of levels, all rows there can be, and their probabilities."""
    estimator = {"mixture": AnnealedDPMixture, "views": CrossCatPY}[request.param]
    X = four(400)
    X = X.mask(np.random.default_rng(5).random(X.shape) < 0.05)
    model = bind(fitted(X, estimator, families="categorical"), [2, 0, 1, 3], [-1, 0, 1, 0])
    rows = pd.DataFrame(
        list(product(*[sorted(X[name].dropna().unique()) for name in X])), columns=X.columns
    )
    return model, rows, np.exp(model.score_samples(rows))


def test_probabilities_add_up_to_one(levels):
    _, _, p = levels
    assert p.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("known", [("a",), ("c", "d"), ("a", "c"), ("b", "d")])
def test_gaps_are_summed_over(levels, known):
    model, rows, p = levels
    some = rows.copy()
    some[[name for name in rows if name not in known]] = None
    expected = rows.assign(p=p).groupby(list(known))["p"].transform("sum")
    assert np.exp(model.score_samples(some)) == pytest.approx(expected.to_numpy(), rel=1e-9)


def test_conditional_densities_and_surprisals_are_ratios(levels):
    model, rows, p = levels
    table = rows.assign(p=p)
    given = model.score_samples(rows, given=["a", "c"])
    expected = np.log(p / table.groupby(["a", "c"])["p"].transform("sum"))
    assert given == pytest.approx(expected.to_numpy(), abs=1e-9)
    surprisals = np.asarray(model.surprisal(rows))
    for j, name in enumerate(rows):
        others = [other for other in rows if other != name]
        expected = -np.log(p / table.groupby(others)["p"].transform("sum"))
        assert surprisals[:, j] == pytest.approx(expected.to_numpy(), abs=1e-9)


@pytest.mark.parametrize("given", [{}, {"c": "2"}, {"a": "1", "c": "0"}])
def test_samples_have_these_probabilities(levels, given):
    model, rows, p = levels
    n = 40_000
    own = np.ones(len(rows), dtype=bool)
    for name, value in given.items():
        own &= (rows[name] == value).to_numpy()
    drawn = model.sample(n, given=given or None, random_state=1)
    counts = drawn.value_counts().reindex(pd.MultiIndex.from_frame(rows[own])).fillna(0)
    assert counts.sum() == n
    expected = n * p[own] / p[own].sum()
    few = expected < 5
    found = np.r_[counts.to_numpy()[~few], counts.to_numpy()[few].sum()]
    expected = np.r_[expected[~few], expected[few].sum()]
    keep = expected > 0
    assert stats.chisquare(found[keep], expected[keep]).pvalue > RARE


def test_levels_given_the_rest_of_the_row(levels):
    """Whether a row has the cell itself or not."""
    model, rows, p = levels
    queries = model._queries()
    for blank in (False, True):
        for j, name in enumerate(rows):
            some = rows.assign(**{name: None})[list(rows)] if blank else rows
            table = queries.table(queries.encoder.encode(None, some))
            found = queries.law.level_probabilities(table, [j])[j]
            others = [other for other in rows if other != name]
            whole = rows.assign(p=p).groupby(others)["p"].transform("sum").to_numpy()
            codes = pd.Categorical(rows[name]).codes
            assert found[range(len(rows)), codes] == pytest.approx(p / whole, rel=1e-9)


def test_fills_are_the_most_probable_levels(levels):
    model, rows, p = levels
    for name in rows:
        others = [other for other in rows if other != name]
        filled = model.impute(rows.assign(**{name: None})[list(rows)])
        best = rows.assign(p=p).sort_values("p").groupby(others)[name].last()
        expected = best.reindex(pd.MultiIndex.from_frame(rows[others])).to_numpy()
        sums = rows.assign(p=p).groupby(others)["p"]
        clear = (sums.transform("max") / sums.transform("sum") > 0.51).to_numpy()
        assert (filled[name].to_numpy() == expected)[clear].all()


def test_a_pickle_answers_the_same(levels):
    model, rows, p = levels
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(np.exp(again.score_samples(rows)), p)


def test_drawn_parameters_are_laws_around_the_means():
    model = bind(fitted(four(400), families="categorical"), [0, 1, 2], [-1, 0, 1])
    view = next(v for views in model._queries().law.draws for v in views)
    assert isinstance(view, ForestView)
    outcomes = np.array(list(product(range(3), range(2), range(3))), dtype=np.int32)
    draws = [view.drawn(np.random.default_rng(seed)) for seed in range(300)]

    def laws(of):
        base = [np.log(of.outcome_probabilities(place).T) for place in of.edges.columns]
        alone = sum(logs[x] for logs, x in zip(base, outcomes.T))
        return np.exp(of.forest.log_ratios(outcomes) + alone)

    probabilities = np.array([laws(of) for of in draws])
    assert probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-9)
    largest = int(np.argmax(view.mixture.sizes()[view.slots[:-1]]))
    mean, spread = (f(probabilities[:, :, largest], axis=0) for f in (np.mean, np.std))
    error = spread / np.sqrt(len(draws))
    assert (np.abs(mean - laws(view)[:, largest]) < 6 * error + 1e-6).all()
    assert spread.max() > 0.005
    assert np.ptp(probabilities[:, :, -1], axis=0).max() < 1e-12  # of a new component


# ---- numbers with atoms --------------------------------------------------------------------------


def fit_of_amounts(name):
    estimator = CrossCatPY if name == "views" else AnnealedDPMixture
    family = "semi_continuous" if name == "views" else name
    families = {"categorical": ["level"], family: ["first", "other"]}
    X = with_atoms(500)
    X = X.mask(np.random.default_rng(1).random(X.shape) < 0.05)
    return bind(fitted(X, estimator, families=families), [1, 0, 2], [-1, 0, 0])


@pytest.fixture(scope="module", params=["semi_continuous", "semi_continuous_log_normal", "views"])
def amounts(request):
    return fit_of_amounts(request.param)


@pytest.mark.few(1)
def test_density_and_atoms_add_up_to_one(amounts):
    """Of the first amount, given the level and whether the other is 0."""
    at = np.r_[np.geomspace(1e-12, 1e-3, 2000), np.linspace(1e-3, 60.0, 60_000)]
    for level, other in product("01", (0.0, 5.0)):
        rows = pd.DataFrame({"level": level, "first": at, "other": other})
        known = ["level", "other"]
        p = np.exp(amounts.score_samples(rows, given=known))
        zero = np.exp(amounts.score_samples(rows.iloc[:1].assign(first=0.0), given=known))
        assert np.trapezoid(p, at) + zero[0] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("given", [{"level": "1"}, {"level": "0", "other": 0.0}, {"other": 5.0}])
def test_draws_of_amounts_have_that_law(amounts, given):
    drawn = amounts.sample(20_000, given=given, random_state=4)
    row = pd.DataFrame({"level": [None], "first": [np.nan], "other": [np.nan]}).assign(**given)
    zero = np.exp(amounts.score_samples(row.assign(first=0.0), given=list(given)))[0]
    found = np.sum(drawn["first"] == 0)
    assert stats.binomtest(int(found), 20_000, zero).pvalue > RARE
    numbers = drawn["first"][drawn["first"] > 0].to_numpy()
    at = np.r_[np.geomspace(1e-9, 1e-2, 500), np.linspace(1e-2, 200.0, 40_000)]
    p = np.exp(
        amounts.score_samples(
            pd.concat([row] * len(at), ignore_index=True).assign(first=at), given=list(given)
        )
    )
    below = np.r_[0.0, np.cumsum(np.diff(at) * (p[1:] + p[:-1]) / 2)]
    test = stats.ks_1samp(numbers, lambda x: np.interp(x, at, below / below[-1]))
    assert test.statistic < 0.02 + stats.kstwobign.isf(RARE) / np.sqrt(len(numbers))


@pytest.mark.parametrize("name", ["semi_continuous", "views"])
def test_fills_of_amounts_are_means(name):
    """Those of logarithms are means of logarithms, and that of 0 is none."""
    model = fit_of_amounts(name)
    for given in ({"level": "1", "other": 0.0}, {"level": "0", "other": 5.0}):
        row = pd.DataFrame({"first": [np.nan], **{k: [v] for k, v in given.items()}})
        filled = model.impute(row[["level", "first", "other"]])["first"].iloc[0]
        drawn = model.sample(40_000, given=given, random_state=5)["first"]
        assert filled == pytest.approx(drawn.mean(), abs=5.5 * drawn.std() / 200 + 0.01)


@pytest.mark.parametrize("level, other", [("0", 5.0), ("1", 0.0), (None, 7.0)])
def test_the_mode_of_an_amount_is_the_likeliest_centre(amounts, level, other):
    """Of those of all components, under the law on the axis of the mixture's cells."""
    queries = amounts._queries()
    frame = pd.DataFrame({"level": [level], "first": [np.nan], "other": [other]})
    row = queries.encoder.encode(None, frame)
    table, law = queries.modelled(row)[0], queries.law

    def log_density(cell):
        columns = [table.column(j) for j in range(table.n_columns)]
        columns[1] = np.array([cell], dtype=np.float32)
        return law.log_density(law.table(columns))[0]

    centres = np.concatenate([law.view_of(views, 1).means(1) for views in law.draws])
    densities = np.array([log_density(centre) for centre in centres])
    value = queries.law.fill(table, queries.encoder.missing(row), mode=True)[0][1][0]
    block, _ = law.view_of(law.draws[0], 1).features[1]
    schema = queries.encoder.table_schema
    numbers = block.in_units(centres * schema.scales[1] + schema.offsets[1])
    found = densities[np.argmin(np.abs(numbers - value))]
    assert found == pytest.approx(densities.max(), abs=1e-6)
    assert np.ptp(densities) > 0.01


# ---- what it is for ------------------------------------------------------------------------------


def test_new_rows_are_more_probable():
    X, new = twins(500), twins(2000, seed=9)
    scores = [
        fitted(X, families="categorical", margins=margins).score_samples(new)
        for margins in ("data", "model")
    ]
    gain = scores[0] - scores[1]
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(new))


def test_new_rows_of_independent_columns_are_as_probable():
    """An edge that is not there costs its share of the evidence, if it is taken for one."""
    rng = np.random.default_rng(4)
    X, new = (rng.integers(4, size=(n, 12)).astype(str) for n in (300, 2000))
    scores = [
        fitted(X, families="categorical", margins=margins).score(new)
        for margins in ("data", "model")
    ]
    assert scores[0] > scores[1] - 0.01


def test_clusters_are_those_of_the_mixture():
    X = twins(300)
    models = [fitted(X, margins=margins) for margins in ("data", "model")]
    assert np.array_equal(models[0].labels_, models[1].labels_)
    assert np.array_equal(models[0].outlier_scores_, models[1].outlier_scores_)


def test_tables_of_edges_matter():
    """A control: with the outcomes of the children mixed up, new rows are less probable."""
    model = fitted(twins(500), families="categorical")
    other = copy.deepcopy(model)
    for of_draw in other._margins.edges:
        for of in of_draw:
            of.counts[:] = [None if n is None else n[:, :, ::-1].copy() for n in of.counts]
    new = twins(1000, seed=3)
    assert model.score(new) > other.score(new) + 0.5
