"""Questions to a fitted CrossCatPY, against slow formulas and counting on a tiny table.

The oracle reads the public attributes of the draws and the training cells: every density is a sum
over the clusters of all views, in plain Python. The views of a fit are independent or linked.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from oracles.cheap import CHEAP
from oracles.crosscat_fits import (
    FAMILY,
    LEVELS,
    all_draws,
    canonical,
    code,
    crosscat,
    crosscat_frame,
    hidden_sides,
    hyper_of,
    members,
)
from oracles.links import links_of, log_law
from oracles.reference import is_missing, log_predictive, observed
from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.families import Table
from skanneal.predictive import _crosscat, _information
from skanneal.predictive._point import crosscat_arrays
from skanneal.schedules import SequentialGibbs

NAN = float("nan")


# Views of the columns in the four draws that the queries are asked about.
VIEWS = ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 1, 0, 2, 2, 2], [0, 0, 0, 1, 2, 1])


@pytest.fixture(scope="module", params=[False, True], ids=["independent", "linked"])
def fitted(request):
    """A fit whose draws have chosen partitions: no query depends on what the chains found."""
    X = crosscat_frame()
    model = crosscat(point_estimate="map", linked_views=request.param).fit(X)
    rng = np.random.default_rng(3)
    encoder = model._encoder
    table = Table(*encoder.table_schema)
    table.append(encoder.encode(model, X))
    draws = all_draws(model)
    for draw, views in zip(draws, VIEWS):
        views = np.array(views)
        sides = [
            hidden_sides(40, 0)[int(np.mean(np.flatnonzero(views == v)) > 2)]
            for v in range(views.max() + 1)
        ]
        labels = [
            canonical(np.where(rng.random(40) < 0.7, side, rng.integers(4, size=40)))
            for side in sides
        ]
        sources = [0] * len(labels)
        draw.arrays = crosscat_arrays(views, labels, sources, draw, encoder.table_families, table)
    assert any(len(draw.arrays.get("link_views", ())) for draw in draws) == request.param
    return model, X, draws


@pytest.fixture
def query():
    """Gaps, a level of which the fit knows nothing, and cells far out."""
    query = crosscat_frame(10, seed=1)
    query.loc[0] = None
    query.loc[1, "colour"] = "violet"
    query.loc[2, ["size", "count"]] = [1e4, 300]
    query.loc[3, ["size", "weight", "colour", "count"]] = None
    return query


# ---- the slow oracle ----------------------------------------------------------------------------


def coded(X):
    """Rows as lists of oracle cells."""
    return [[code(name, cell) for name, cell in zip(FAMILY, row)] for row in X.to_numpy()]


def log_weights(draw, v):
    """Of the clusters of view v, the new one last."""
    sizes, alpha, d = draw.sizes[v], draw.concentration[v], draw.discount[v]
    return np.log(np.r_[sizes - d, alpha + d * len(sizes)] / (sizes.sum() + alpha))


def cell_scores(X, draw, j, cell):
    """log p(cell of column j | cluster), for the clusters of its view."""
    key = id(draw.arrays), j, cell
    if key not in KNOWN:
        v, family = draw.view_labels[j], list(FAMILY.values())[j]
        scores = [
            log_predictive(family, cell, members(X, draw, j, v, c), hyper_of(draw, j))
            for c in range(draw.n_components[v] + 1)
        ]
        KNOWN[key] = np.array(scores), draw.arrays
    return KNOWN[key][0]


# The same cells are asked for again and again. The draws' arrays are kept, since others could get
# the id of those that are gone.
KNOWN = {}


def densities(X, draw, j, points):
    """p(number or count | cluster): (n_points, n_clusters + 1), through SciPy."""
    out = []
    for c in range(draw.n_components[draw.view_labels[j]] + 1):
        if list(FAMILY.values())[j] == "poisson":
            a, b = posterior(X, draw, j, c)
            out.append(stats.nbinom.pmf(points, a, b / (1 + b)))
        else:
            nu, centre, variance = posterior(X, draw, j, c)
            out.append(stats.t.pdf(points, nu, centre, np.sqrt(variance)))
    return np.array(out).T


def own_scores(X, draw, v, row):
    """log p(the row's cells in view v | its clusters)."""
    return sum(cell_scores(X, draw, j, row[j]) for j in np.flatnonzero(draw.view_labels == v))


def law_of_tuples(draw):
    """log P of the clusters of all views, by tuple."""
    weights = [np.exp(log_weights(draw, u)) for u in range(draw.n_views)]
    key = id(draw.arrays), tuple(float(of[-1]) for of in weights)
    if key not in KNOWN:
        links = links_of(draw, weights) if "link_views" in draw.arrays else {}
        KNOWN[key] = log_law(weights, links), draw.arrays
    return KNOWN[key][0]


def law_of_pairs(draw, u, v):
    """P of the clusters of two views; of one, on the diagonal."""
    sizes = draw.n_components + 1
    out = np.zeros((sizes[u], sizes[v]))
    for at, log_p in law_of_tuples(draw).items():
        out[at[u], at[v]] += np.exp(log_p)
    return out


def view_scores(X, draw, v, row):
    """log p(row, cluster) of the clusters of view v."""
    own = [own_scores(X, draw, u, row) for u in range(draw.n_views)]
    out = np.full(len(own[v]), -np.inf)
    for at, log_prior in law_of_tuples(draw).items():
        log = log_prior + sum(scores[k] for scores, k in zip(own, at))
        out[at[v]] = np.logaddexp(out[at[v]], log)
    return out


def draw_score(X, draw, row):
    """log p(row | draw)."""
    return logsumexp(view_scores(X, draw, 0, row))


def slow_score(X, draws, row):
    """log p(row), averaged over draws."""
    return logsumexp([draw_score(X, draw, row) for draw in draws]) - np.log(len(draws))


def slow_scores(X, draws, query):
    return np.array([slow_score(X, draws, row) for row in coded(query)])


def information_of(model, *columns, **options):
    """`mutual_information` without the columns' names, by position."""
    answer = model.mutual_information(*columns, **options)
    return tuple(map(np.asarray, answer)) if options.get("return_std") else np.asarray(answer)


def posterior(X, draw, j, c):
    """(shape, rate) of a count's, (degrees, centre, scale^2) of a number's predictive."""
    values = observed(members(X, draw, j, draw.view_labels[j], c))
    hyper, n = hyper_of(draw, j), len(values)
    if list(FAMILY.values())[j] == "poisson":
        return hyper["shape"] + sum(values), hyper["rate"] + n
    mean = np.mean(values) if n else 0.0
    kappa, nu = hyper["kappa0"] + n, hyper["nu0"] + n
    squares = hyper["nu0"] * hyper["sigma2_0"] + sum((x - mean) ** 2 for x in values)
    squares += hyper["kappa0"] * n / kappa * (mean - hyper["mu0"]) ** 2
    centre = (hyper["kappa0"] * hyper["mu0"] + n * mean) / kappa
    return nu, centre, squares / nu * (1 + 1 / kappa)


def moments(X, draw, j, c):
    """Mean and variance of a number's predictive, in X's units."""
    if list(FAMILY.values())[j] == "poisson":
        a, b = posterior(X, draw, j, c)
        return stats.nbinom.stats(a, b / (1 + b))
    nu, centre, variance = posterior(X, draw, j, c)
    return centre, variance * stats.t.var(max(nu, 3.0))


def responsibilities(X, draws, j, row):
    """P(draw, cluster of column j's view | row): one array per draw."""
    scores = []
    for draw in draws:
        scores.append(view_scores(X, draw, draw.view_labels[j], row))
    return [np.exp(s - logsumexp(np.concatenate(scores))) for s in scores]


class TestDensities:
    def test_score_samples(self, fitted, query):
        model, X, draws = fitted
        expected = slow_scores(X, draws, query)
        np.testing.assert_allclose(model.score_samples(query), expected, rtol=1e-5, atol=1e-5)
        assert model.score(query) == pytest.approx(expected.mean(), rel=1e-5)
        assert expected[0] == pytest.approx(0, abs=1e-12)

    def test_the_oracle_notices_one_view_for_all(self, fitted, query):
        """Negative control: a mixture over all columns has other densities."""
        model, _, _ = fitted
        options = {"families": {"poisson": ["count"]}, "random_state": 1, "n_chains": 2}
        other = AnnealedDPMixture(**CHEAP, **options).fit(crosscat_frame())
        gap = np.abs(model.score_samples(query)[1:] - other.score_samples(query)[1:])
        assert gap.min() > 1e-3

    @pytest.mark.parametrize("given", [["size"], ["colour", "count"], list(FAMILY)[1:], []])
    def test_conditional_density_is_a_ratio_of_joint_densities(self, fitted, query, given):
        model, X, draws = fitted
        known = query.copy()
        known[[name for name in FAMILY if name not in given]] = None
        expected = slow_scores(X, draws, query) - slow_scores(X, draws, known)
        positions = [list(FAMILY).index(name) for name in given]
        for form in (given, positions, np.isin(list(FAMILY), given)):
            got = model.score_samples(query, given=form)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        assert given == [] or np.abs(got - model.score_samples(query))[1:].max() > 0.1

    def test_everything_given_leaves_nothing(self, fitted, query):
        assert (fitted[0].score_samples(query, given=list(FAMILY)) == 0).all()

    def test_probabilities_sum_to_the_marginal_for_every_missing_pattern(self, fitted):
        model, _, _ = fitted
        counts = pd.Series(range(400), dtype=object)
        for cells in itertools.product([None, "red"], [None, True], [None, 3], [None, "round"]):
            row = dict(zip(["colour", "wet", "count", "shape"], cells)) | {"size": 1.0}
            row = pd.DataFrame([{name: row.get(name) for name in FAMILY}], dtype=object)
            for name, values in (
                ("colour", LEVELS["colour"]),
                ("wet", [True, False]),
                ("count", counts),
                ("shape", LEVELS["shape"]),
            ):
                if row[name][0] is None:
                    every = pd.concat([row] * len(values), ignore_index=True)
                    every[name] = pd.Series(values, dtype=object)
                    total = np.exp(model.score_samples(every)).sum()
                    assert total == pytest.approx(np.exp(model.score(row)), rel=1e-4)

    def test_density_integrates_to_one(self, fitted):
        model, _, _ = fitted
        u = np.linspace(-25, 25, 4001)  # sinh reaches into the heavy tails of a new cluster
        rows = pd.DataFrame({name: [None] * len(u) for name in FAMILY}, dtype=object)
        rows["weight"] = 30 + 40 * np.sinh(u)
        density = np.exp(model.score_samples(rows)) * 40 * np.cosh(u)
        assert np.trapezoid(density, u) == pytest.approx(1, abs=1e-3)

    def test_new_cluster_proba(self, fitted, query):
        """That of the view with the most columns."""
        model, X, draws = fitted
        expected = []
        for row in coded(query):
            new, whole = [], []
            for draw in draws:
                v = np.bincount(draw.view_labels).argmax()
                scores = view_scores(X, draw, v, row)
                whole.append(draw_score(X, draw, row))
                new.append(whole[-1] - logsumexp(scores) + scores[-1])
            expected.append(np.exp(logsumexp(new) - logsumexp(whole)))
        np.testing.assert_allclose(model.new_cluster_proba(query), expected, rtol=1e-4)

    def test_surprisal(self, fitted, query):
        model, X, draws = fitted
        whole = slow_scores(X, draws, query)
        surprisal = np.asarray(model.surprisal(query))
        for j, name in enumerate(FAMILY):
            without = query.copy()
            without[name] = None
            expected = slow_scores(X, draws, without) - whole
            expected[query[name].isna()] = NAN
            np.testing.assert_allclose(surprisal[:, j], expected, rtol=1e-5, atol=1e-5)

    def test_answers_do_not_depend_on_the_batch(self, fitted, query, monkeypatch):
        model, _, _ = fitted
        asked = (
            model.score_samples,
            model.new_cluster_proba,
            model.surprisal,
            model.predict_proba,
            lambda q: model.impute(q, return_std=True)[1],
            model.row_similarity,
        )
        for ask in asked:
            whole = ask(query)
            rows = np.concatenate([ask(query.iloc[i : i + 1]) for i in range(len(query))])
            np.testing.assert_allclose(rows, whole, rtol=1e-9, atol=1e-12)
        with monkeypatch.context() as patch:
            patch.setattr("skanneal.predictive._predictor.BLOCK_BYTES", 1000)
            for ask in asked:
                small = ask(query)
                patch.undo()
                np.testing.assert_allclose(small, ask(query), rtol=1e-9, atol=1e-12)


class TestPointEstimate:
    def test_predict_proba(self, query):
        X = crosscat_frame()
        model = crosscat(point_estimate="map").fit(X)
        draws = all_draws(model)
        best = max(draws, key=lambda draw: draw.log_joint)
        (v,) = {
            v
            for v in range(best.n_views)
            if np.array_equal(canonical(best.row_labels[v]), model.labels_)
        }
        assert v == np.bincount(best.view_labels).argmax()
        proba = model.predict_proba(query)
        np.testing.assert_array_equal(model.predict(query), proba.argmax(axis=1))
        order = [best.row_labels[v][np.argmax(model.labels_ == c)] for c in range(proba.shape[1])]
        for row, got in zip(coded(query), proba):
            scores = view_scores(X, best, v, row)[order]
            np.testing.assert_allclose(got, np.exp(scores - logsumexp(scores)), rtol=1e-4)

    def test_transform(self, query):
        X = crosscat_frame()
        model = crosscat().fit(X)
        draws = all_draws(model)
        best = max(draws, key=lambda draw: draw.log_joint)
        codes = model.transform(query)
        assert codes.shape == (len(query), model.n_views_) and codes.dtype == np.int64
        for v in range(model.n_views_):
            labels = model.row_labels_[v]
            order = [best.row_labels[v][np.argmax(labels == c)] for c in range(labels.max() + 1)]
            for row, got in zip(coded(query), codes[:, v]):
                assert got == view_scores(X, best, v, row)[order].argmax()


class TestMissingCells:
    def test_numbers_get_their_posterior_mean_and_standard_deviation(self, fitted, query):
        model, X, draws = fitted
        filled, uncertainty = model.impute(query, return_std=True)
        uncertainty = np.asarray(uncertainty)
        assert filled.equals(model.impute(query))
        for i, row in enumerate(coded(query)):
            for j, (name, family) in enumerate(FAMILY.items()):
                if not is_missing(row[j]):
                    assert filled[name][i] == query[name][i] and uncertainty[i, j] == 0
                    continue
                if family in ("categorical", "bernoulli"):
                    continue
                shares = np.concatenate(responsibilities(X, draws, j, row))
                both = [
                    moments(X, draw, j, c)
                    for draw in draws
                    for c in range(draw.n_components[draw.view_labels[j]] + 1)
                ]
                mean, variance = np.transpose(both)
                expected = shares @ mean
                spread = np.sqrt(shares @ (variance + (mean - expected) ** 2))
                assert filled[name][i] == pytest.approx(expected, rel=1e-4, abs=1e-4)
                assert uncertainty[i, j] == pytest.approx(spread, rel=1e-4)

    def test_levels_get_the_most_probable_one(self, fitted, query):
        model, X, draws = fitted
        filled, uncertainty = model.impute(query, return_std=True)
        uncertainty = np.asarray(uncertainty)
        found = 0
        for i, row in enumerate(coded(query)):
            for j, name in enumerate(FAMILY):
                values = {"wet": [False, True]}.get(name, LEVELS.get(name))
                if values is None or not is_missing(row[j]):
                    continue
                found += 1
                scores = [
                    slow_score(X, draws, [*row[:j], code(name, value), *row[j + 1 :]])
                    for value in values
                ]
                chances = np.exp(scores - slow_score(X, draws, row))
                assert chances.sum() == pytest.approx(1)
                assert filled[name][i] == values[chances.argmax()]
                assert uncertainty[i, j] == pytest.approx(1 - chances.max(), rel=1e-4)
        assert found > 4

    def test_a_full_table_comes_back(self, fitted):
        model, _, _ = fitted
        full = crosscat_frame(5, seed=2, missing=0)
        filled, uncertainty = model.impute(full, return_std=True)
        uncertainty = np.asarray(uncertainty)
        assert filled.equals(full) and not uncertainty.any()

    def test_a_single_mixture_tells_its_uncertainty_too(self):
        X = crosscat_frame()
        options = {"families": {"poisson": ["count"]}, "n_chains": 1, "random_state": 0}
        model = AnnealedDPMixture(**CHEAP, **options)
        filled, uncertainty = model.fit(X).impute(X, return_std=True)
        uncertainty = np.asarray(uncertainty)
        assert filled.equals(model.impute(X))
        assert ((uncertainty > 0) == X.isna().to_numpy()).all()
        given = model.score_samples(X, given=["size"])
        known = X.copy()
        known[list(FAMILY)[1:]] = None
        np.testing.assert_allclose(given, model.score_samples(X) - model.score_samples(known))
        assert (model.sample(3, given={"colour": "red"})["colour"] == "red").all()


class TestSample:
    """Chi-square and Kolmogorov-Smirnov tests, one try each, false alarms 1e-4."""

    CELLS = tuple(itertools.product(LEVELS["colour"], [True, False], LEVELS["shape"]))

    def frequencies(self, rows):
        counts = rows.value_counts(["colour", "wet", "shape"])
        return np.array([counts.get(cell, 0) for cell in self.CELLS])

    def chances(self, model, given, asked):
        rows = pd.DataFrame(None, index=range(len(self.CELLS)), columns=list(FAMILY), dtype=object)
        rows[["colour", "wet", "shape"]] = self.CELLS
        for name, value in given.items():
            rows[name] = value
        return np.exp(model.score_samples(rows, given=asked))

    @pytest.mark.parametrize("given", [{}, {"size": 4.5, "count": 9}, {"weight": 8.0}])
    def test_conditional_simulation_of_levels(self, fitted, given):
        model, _, _ = fitted
        rows = model.sample(4000, given=given)
        assert list(rows.columns) == list(FAMILY)
        for name, value in given.items():
            assert (rows[name] == value).all()
        seen = self.frequencies(rows)
        assert seen.sum() == 4000
        right = self.chances(model, given, list(given))
        assert right.sum() == pytest.approx(1)
        assert stats.chisquare(seen, 4000 * right).pvalue > 1e-4
        if given:  # negative control: as if nothing were given
            wrong = self.chances(model, {}, [])
            assert stats.chisquare(seen, 4000 * wrong).pvalue < 1e-4

    @pytest.mark.parametrize("given", [{"colour": "green"}, {"shape": "square", "size": 0.0}])
    def test_conditional_simulation_of_numbers(self, fitted, given):
        model, _, _ = fitted
        rows = model.sample(4000, given=given)
        u = np.linspace(-20, 20, 8001)
        for name, centre, scale in (("weight", 30.0, 20.0), ("size", 2.0, 2.0)):
            if name in given:
                continue
            points = pd.DataFrame(None, index=range(len(u)), columns=list(FAMILY), dtype=object)
            points[name] = centre + scale * np.sinh(u)
            cdfs = []
            for known in (given, {}):
                for column, value in known.items():
                    points[column] = value
                    density = np.exp(model.score_samples(points, given=list(given))) * np.cosh(u)
                points[list(given)] = None
                if not known:
                    density = np.exp(model.score_samples(points)) * np.cosh(u)
                steps = (density[1:] + density[:-1]) / 2 * np.diff(u)
                cdfs.append(np.r_[0, np.cumsum(steps)] / steps.sum())
            place = np.arcsinh((rows[name].to_numpy(float) - centre) / scale)
            values = [np.interp(place, u, cdf) for cdf in cdfs]
            assert stats.kstest(values[0], "uniform").pvalue > 1e-4
            informed = np.abs(cdfs[0] - cdfs[1]).max() > 0.1
            assert not informed or stats.kstest(values[1], "uniform").pvalue < 1e-4

    def test_means_are_those_of_impute(self, fitted):
        model, _, _ = fitted
        given = {"colour": "red", "count": 2}
        row = pd.DataFrame([{name: given.get(name) for name in FAMILY}], dtype=object)
        filled, spread = model.impute(row, return_std=True)
        spread = np.asarray(spread)
        rows = model.sample(4000, given=given)
        error = rows["weight"].mean() - filled["weight"][0]
        assert abs(error) < 4 * spread[0, 3] / np.sqrt(4000)
        share = (rows["shape"] == filled["shape"][0]).mean()
        assert abs(share - (1 - spread[0, 5])) < 4 * np.sqrt(0.25 / 4000)

    def test_seeds(self, fitted):
        model, _, _ = fitted
        rows = model.sample(5, given={"size": 0.0})
        assert rows.equals(model.sample(5, given={"size": 0.0}))
        assert not rows.equals(model.sample(5))

    def test_an_unlikely_given_chooses_the_draw_that_expects_it(self):
        """Draws weigh by the density of what is given."""
        X = crosscat_frame()
        model = crosscat().fit(X)
        given = {"size": 9.0, "colour": "blue"}
        chances = [
            draw_score(X, draw, [9.0, 0, None, None, None, None]) for draw in all_draws(model)
        ]
        weights = np.exp(chances - logsumexp(chances))
        assert weights.max() > 0.3  # the draws differ
        right = self.chances(model, given, list(given))
        seen = self.frequencies(model.sample(4000, given=given))
        likely = right > 0
        blue = np.array([cell[0] == "blue" for cell in self.CELLS])
        assert seen[~blue].sum() == 0
        right = right[blue & likely] / right[blue & likely].sum()
        assert stats.chisquare(seen[blue], 4000 * right).pvalue > 1e-4


class TestMutualInformation:
    VALUES = {
        "colour": range(3),
        "wet": [False, True],
        "count": range(400),
        "shape": range(2),
    }

    def table(self, X, draw, j):
        """p(value | cluster): (n_values, n_clusters + 1)."""
        values = self.VALUES[list(FAMILY)[j]]
        if list(FAMILY)[j] == "count":
            return densities(X, draw, j, values)
        return np.exp([cell_scores(X, draw, j, value) for value in values])

    def pair(self, X, draws, i, j):
        """Mean over draws of the information of two discrete columns, by enumeration."""
        total = 0.0
        for draw in draws:
            w = np.exp(log_weights(draw, draw.view_labels[i]))
            a, b = (self.table(X, draw, k) for k in (i, j))
            joint = a @ law_of_pairs(draw, *draw.view_labels[[i, j]]) @ b.T
            product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            if i == j:
                joint, product = np.diag(a @ w), np.outer(a @ w, a @ w)
            seen = joint > 0
            total += np.sum(joint[seen] * np.log(joint[seen] / product[seen]))
        return total / len(draws)

    @pytest.mark.slow
    def test_discrete_columns_by_enumeration(self, fitted):
        model, X, draws = fitted
        names = list(self.VALUES)
        information, error = information_of(model, names, return_std=True)
        assert not error.any()
        np.testing.assert_array_equal(information, information.T)
        at = [list(FAMILY).index(name) for name in names]
        expected = [[self.pair(X, draws, i, j) for j in at] for i in at]
        np.testing.assert_allclose(information, expected, rtol=1e-5, atol=5e-5)
        counts = names.index("count")
        rest = np.delete(np.delete(information, counts, 0), counts, 1)
        without = np.delete(np.delete(expected, counts, 0), counts, 1)
        np.testing.assert_allclose(rest, without, rtol=1e-5, atol=1e-9)
        assert np.max(expected - np.diag(np.diag(expected))) > 0.05

    def test_numbers_by_integration(self, fitted):
        model, X, draws = fitted
        information, error = information_of(model, n_samples=20_000, return_std=True)
        u = np.linspace(-9, 9, 241)
        step = u[1] - u[0]
        for i, j in ((0, 3), (0, 1), (3, 4), (0, 2)):
            expected = 0.0
            for draw in draws:
                law = law_of_pairs(draw, *draw.view_labels[[i, j]])
                tables, cells = [], []
                for k in (i, j):
                    name = list(FAMILY)[k]
                    if FAMILY[name] == "normal":
                        centre, scale = ((2.0, 2.0), (30.0, 20.0))[k == 3]
                        points = centre + scale * np.sinh(u)
                        measure = scale * np.cosh(u) * step
                    else:
                        points = self.VALUES[name]
                        measure = np.ones(len(points))
                    if FAMILY[name] in ("normal", "poisson"):
                        tables.append(densities(X, draw, k, points))
                    else:
                        tables.append(np.exp([cell_scores(X, draw, k, x) for x in points]))
                    cells.append(measure)
                joint = tables[0] @ law @ tables[1].T
                product = np.outer(tables[0] @ law.sum(axis=1), tables[1] @ law.sum(axis=0))
                expected += np.sum(joint * np.log(joint / product) * np.outer(*cells)) / len(draws)
            if expected < 1e-6:
                assert information[i, j] == error[i, j] == 0
                continue
            assert 0 < error[i, j] < 0.02
            assert abs(information[i, j] - expected) < 4 * error[i, j] + 1e-4

    def test_the_new_cluster_counts(self, fitted):
        """Negative control of the enumeration: weights without the new cluster's differ."""
        _, X, draws = fitted
        at = [list(FAMILY).index(name) for name in ("colour", "wet", "shape")]
        pairs = list(itertools.combinations(at, 2))
        right = [self.pair(X, draws, i, j) for i, j in pairs]
        original = log_weights
        try:
            globals()["log_weights"] = lambda draw, v: np.log(
                np.r_[draw.sizes[v] / draw.sizes[v].sum(), 1e-300]
            )
            wrong = [self.pair(X, draws, i, j) for i, j in pairs]
            assert not np.allclose(wrong, right, rtol=1e-4, atol=1e-8)  # ten times the tolerances
        finally:
            globals()["log_weights"] = original

    def test_zero_across_views(self, fitted):
        model, _, _ = fitted
        apart = np.asarray(model.dependence_probability()) == 0
        assert apart.any() and (information_of(model)[apart] == 0).all()

    def test_diagonal_and_normalisation(self, fitted):
        model, _, _ = fitted
        information, error = information_of(model, return_std=True)
        assert np.isinf(np.diag(information)[[0, 3]]).all()
        normalized, spread = information_of(model, normalized=True, return_std=True)
        np.testing.assert_allclose(normalized, np.sqrt(1 - np.exp(-2 * information)))
        assert (np.diag(normalized)[[0, 3]] == 1).all() and normalized.max() <= 1
        low = np.sqrt(1 - np.exp(-2 * np.maximum(information - error / 2, 0)))
        high = np.sqrt(1 - np.exp(-2 * (information + error / 2)))
        sizeable = np.isfinite(information) & (error > 0) & (information > 5 * error)
        np.testing.assert_allclose(spread[sizeable], (high - low)[sizeable], rtol=0.05)

    def test_normalised_information_of_jointly_normal_numbers(self):
        """|correlation|, to what a mixture makes of it."""
        rng = np.random.default_rng(0)
        X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=2000)
        schedule = SequentialGibbs(n_sweeps=30)
        model = CrossCatPY(schedule=schedule, n_chains=1, n_draws=1, random_state=0).fit(X)
        assert information_of(model, normalized=True)[0, 1] == pytest.approx(0.9, abs=0.05)

    @pytest.mark.slow
    def test_independent_estimates_agree_within_their_error(self, fitted):
        model, _, _ = fitted
        values, errors = [], []
        for seed in range(8):
            other = crosscat().fit(crosscat_frame()).set_params(random_state=seed)
            value, error = information_of(other, ["size", "colour"], return_std=True)
            values.append(value[0, 1])
            errors.append(error[0, 1])
        assert 0.4 < np.std(values) / np.mean(errors) < 2  # 8 values: outside with chance 1e-3

    def test_counts_that_take_many_values_are_simulated(self, fitted, monkeypatch):
        model, _, _ = fitted
        exact = information_of(model, ["count", "shape"])
        monkeypatch.setattr(_information, "MOST_COUNTS", 3)
        simulated, error = information_of(
            model, ["count", "shape"], n_samples=5000, return_std=True
        )
        assert 0 < error[0, 1] < 0.02
        assert abs(simulated[0, 1] - exact[0, 1]) < 4 * error[0, 1]

    def test_blocks(self, fitted, monkeypatch):
        model, _, _ = fitted
        whole = information_of(model)
        monkeypatch.setattr(_information, "BLOCK_NUMBERS", 50)
        np.testing.assert_allclose(model.mutual_information(), whole, rtol=1e-9, atol=1e-12)


class TestRowsAndColumns:
    def test_dependence_probability_by_counting(self, fitted):
        """Where a draw has two columns in one view, or in two of a tree of links, they may depend:
        how probably is asked of the components (test_relevance.py)."""
        model, _, draws = fitted
        trees = []
        for draw in draws:
            links = np.eye(draw.n_views)
            for u, v in draw.arrays.get("link_views", ()):
                links[u, v] = 1.0
            trees.append(connected_components(links, directed=False)[1][draw.arrays["view_of"]])
        together = [[np.mean([t[i] == t[j] for t in trees]) for j in range(6)] for i in range(6)]
        found, together = np.asarray(model.dependence_probability()), np.array(together)
        assert (found <= together).all() and (found[together == 0] == 0).all()
        apart = ~np.eye(6, dtype=bool) & (together > 0)
        assert (found[apart] > 0.5 * together[apart]).any()  # which the views tell
        np.testing.assert_allclose(
            model.dependence_probability(["count", "size"]), found[[4, 0]][:, [4, 0]]
        )

    def test_columns_of_a_view_of_one_cluster_depend_on_nothing(self):
        """By counting, in draws with so many clusters in each view."""
        X = crosscat_frame()
        model = crosscat().fit(X)
        draws, encoder = all_draws(model), model._encoder
        table = Table(*encoder.table_schema)
        table.append(encoder.encode(model, X))
        n_clusters = ([2, 1], [3, 1], [1, 1, 1], [1, 1, 1])
        for draw, views, sizes in zip(draws, VIEWS, n_clusters):
            labels = [np.arange(40) % k for k in sizes]
            parts = np.array(views), labels, [0] * len(sizes), draw
            draw.arrays = crosscat_arrays(*parts, encoder.table_families, table)

        def share(depend):
            """The share of draws in which `depend` says of each pair that it depends."""
            return [
                [
                    np.mean([i == j or depend(v[i], v[j], k) for v, k in zip(VIEWS, n_clusters)])
                    for j in range(6)
                ]
                for i in range(6)
            ]

        found = np.asarray(model.dependence_probability())
        several = np.array(share(lambda v, w, sizes: v == w and sizes[v] > 1))
        assert (found <= several).all() and ((found > 0) == (several > 0)).all()
        assert np.abs(found - share(lambda v, w, sizes: v == w)).max() == 1.0
        assert [draw.n_views for draw in draws] == [2, 2, 3, 3]  # such a view is a view

        # a new row may open another cluster, unless concentration and discount are 0
        assert information_of(model)[found == 0].max() > 1e-6
        for draw, sizes in zip(draws, n_clusters):
            for v in np.flatnonzero(np.array(sizes) == 1):
                for name in ("concentration", "discount"):
                    draw.arrays[f"view{draw.stored(v)}/{name}"] = np.array(0.0)
        assert information_of(model)[found == 0].max() < 1e-9
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(np.asarray(model.surprisal(X))[X.notna().to_numpy()]).all()
        assert not model.impute(X).isna().any(axis=None)

    @pytest.mark.parametrize("columns", [None, ["size"], ["colour", "count"]])
    def test_row_similarity_by_counting(self, fitted, columns):
        model, _, draws = fitted
        used = range(6) if columns is None else [list(FAMILY).index(name) for name in columns]

        partitions = [  # per draw, of its views that count
            [draw.row_labels[v] for v in {int(draw.view_labels[j]) for j in used}] for draw in draws
        ]

        def similarity(a, b):
            shares = [
                sum(labels[a] == labels[b] for labels in views) / len(views) for views in partitions
            ]
            return sum(shares) / len(shares)

        expected = [[similarity(a, b) for b in range(40)] for a in range(40)]
        got = model.row_similarity(columns=columns)
        np.testing.assert_allclose(got, expected)
        some = model.row_similarity([3, -1], np.arange(40) < 7, columns=columns)
        np.testing.assert_allclose(some, np.array(expected)[[3, 39], :7])
        assert got.max() <= 1.0
        if columns is not None:
            assert np.abs(got - model.row_similarity()).max() > 0.1

    def test_similarity_of_new_rows(self, fitted, query):
        model, X, draws = fitted
        rows = coded(query)
        memberships = []
        for row in rows:
            own = []
            for draw in draws:
                scores = [view_scores(X, draw, v, row) for v in range(draw.n_views)]
                own.append([np.exp(s - logsumexp(s)) for s in scores])
            memberships.append(own)
        expected = [
            [
                np.mean(
                    [
                        np.mean([own[d][v][draw.row_labels[v][i]] for v in range(draw.n_views)])
                        for d, draw in enumerate(draws)
                    ]
                )
                for i in range(40)
            ]
            for own in memberships
        ]
        got = model.row_similarity(query)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(model.row_similarity([5, 7], query), got[:, [5, 7]].T)
        both = [
            [
                np.mean(
                    [
                        np.mean([one[d][v][:-1] @ two[d][v][:-1] for v in range(draw.n_views)])
                        for d, draw in enumerate(draws)
                    ]
                )
                for two in memberships
            ]
            for one in memberships
        ]
        np.testing.assert_allclose(model.row_similarity(query, query), both, rtol=1e-4, atol=1e-7)

    @pytest.mark.parametrize("block", [1 << 24, 100])
    def test_most_similar_rows(self, fitted, query, block, monkeypatch):
        model, _, _ = fitted
        monkeypatch.setattr(_crosscat, "BLOCK_NUMBERS", block)
        whole = model.row_similarity()
        similarity, positions = model.most_similar_rows([4, 0, -1], 6)
        assert similarity.shape == positions.shape == (3, 6)
        for row, values, found in zip((4, 0, 39), similarity, positions):
            others = [i for i in range(40) if i != row]
            ranked = sorted(others, key=lambda i: (-round(whole[row, i], 9), i))[:6]
            assert found.tolist() == ranked
            np.testing.assert_allclose(values, whole[row, ranked])
        similarity, positions = model.most_similar_rows(query, 3, columns=["size"])
        expected = np.sort(model.row_similarity(query, columns=["size"]), axis=1)[:, :-4:-1]
        np.testing.assert_allclose(similarity, expected, rtol=1e-9, atol=1e-12)

    def test_a_hundred_thousand_rows_need_no_square(self):
        rng = np.random.default_rng(0)
        X = np.where(rng.random(100_000) < 0.5, 4.0, -4.0)[:, None] + rng.normal(size=(100_000, 2))
        fixed = {"normal": {"mu0": 0.0, "kappa0": 1.0, "nu0": 3.0, "sigma2_0": 1.0}}
        schedule = SequentialGibbs(n_sweeps=1)
        model = CrossCatPY(schedule=schedule, n_chains=1, n_draws=1, random_state=0)
        model.set_params(moves=("gibbs",), hyperparameters=fixed).fit(X)
        with pytest.raises(ValueError, match=r"100000 x 100000 .* 74\.5 GiB.*most_similar_rows"):
            model.row_similarity()
        assert model.row_similarity([5, 6]).shape == (2, 100_000)
        similarity, positions = model.most_similar_rows(np.arange(3), 4)
        assert similarity.min() > 0 and positions.max() < 100_000


class TestMissingIndicator:
    """A hidden column does what the same column does when it is there for all to see."""

    @pytest.fixture(scope="class")
    @classmethod
    def twins(cls):
        X = crosscat_frame(missing=0.0)
        rng = np.random.default_rng(5)
        big = X["count"].astype(float) > 4
        X.loc[rng.random(40) < np.where(big, 0.7, 0.05), "size"] = None  # not at random
        X.loc[rng.random(40) < 0.2, "colour"] = None
        longer = {"schedule": SequentialGibbs(n_sweeps=30), "n_draws": 5, "random_state": 2}
        hidden = crosscat(missing_indicator=["size", "colour"], **longer).fit(X)
        return X, hidden, crosscat(**longer).fit(cls.shown(X))

    @staticmethod
    def shown(X):
        return X.assign(has_size=X["size"].notna(), has_colour=X["colour"].notna())

    @pytest.mark.slow
    def test_the_same_chain(self, twins):
        _, hidden, shown = twins
        for one, two in zip(all_draws(hidden), all_draws(shown)):
            assert all(np.array_equal(one.arrays[name], two.arrays[name]) for name in two.arrays)
            np.testing.assert_array_equal(one.view_labels, two.view_labels[:6])
            for name, values in one.hyperparameters["bernoulli"].items():
                np.testing.assert_array_equal(values, two.hyperparameters["bernoulli"][name][:1])
        assert hidden.view_labels_.shape == (6,) and hidden.n_features_in_ == 6
        assert hidden.dependence_probability().shape == (6, 6)
        assert hidden.mutual_information().shape == (6, 6)
        assert sum(map(len, hidden.families_.values())) == 6
        assert len(hidden.row_labels_) == hidden.n_views_ == hidden.view_labels_.max() + 1

    def test_densities(self, twins, query):
        X, hidden, shown = twins
        for rows in (X, query):
            np.testing.assert_array_equal(
                hidden.score_samples(rows), shown.score_samples(self.shown(rows))
            )
            expected = np.asarray(shown.surprisal(self.shown(rows)))[:, :6]
            np.testing.assert_array_equal(hidden.surprisal(rows), expected)
            np.testing.assert_array_equal(
                hidden.score_samples(rows, given=["size", "wet"]),
                shown.score_samples(self.shown(rows), given=["size", "wet", "has_size"]),
            )

    def test_a_gap_is_filled_given_that_it_is_one(self, twins, query):
        _, hidden, shown = twins
        filled, spread = hidden.impute(query, return_std=True)
        spread = np.asarray(spread)
        expected, expected_spread = shown.impute(self.shown(query), return_std=True)
        expected_spread = np.asarray(expected_spread)
        assert filled.equals(expected[list(FAMILY)])
        np.testing.assert_array_equal(spread, expected_spread[:, :6])

    def test_samples_have_gaps_as_often_as_the_data(self, twins):
        X, hidden, _ = twins
        rows = hidden.sample(3000)
        for name in FAMILY:
            share = X[name].isna().mean() if name in ("size", "colour") else 0
            assert rows[name].isna().mean() == pytest.approx(share, abs=0.1)
        assert rows["size"].isna().any()
        big = rows["count"].astype(int) > 4
        gaps = rows["size"].isna()
        assert gaps[big].mean() > gaps[~big].mean() + 0.1

    def test_given_gaps(self, twins):
        _, hidden, shown = twins
        rows = hidden.sample(500, given={"size": None, "wet": True})
        assert rows["size"].isna().all() and rows["wet"].all()
        expected = shown.sample(500, given={"has_size": False, "wet": True})
        assert (rows["count"] == expected["count"]).all()
        rows = hidden.sample(500, given={"size": 1.5})
        expected = shown.sample(500, given={"size": 1.5, "has_size": True})
        assert (rows["size"] == 1.5).all() and (rows["count"] == expected["count"]).all()
        with pytest.raises(ValueError, match="missing value for column 'wet'"):
            hidden.sample(5, given={"wet": None})
