"""Chains that count differently: leave-one-out densities, and what fits make of them.

Nothing here is random but data and fits of fixed seeds.
"""

import copy
import math
import pickle
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from skops import io

from oracles.enumeration import clusters, log_eppf, partitions
from oracles.mixtures import (
    COLUMN_FAMILIES,
    ROW_FAMILIES,
    hyper_vector,
    make_blocks,
    make_table,
    random_columns,
    random_rows,
)
from oracles.reference import is_missing, log_marginal, log_predictive
from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.displays import CoassignmentDisplay
from skanneal.families import FAMILIES, Table
from skanneal.partition_priors import Finite, PitmanYor
from skanneal.predictive import _loo
from skanneal.predictive._clusters import joints_without
from skanneal.predictive._loo import chain_log_densities, chain_weights, log_densities_without
from skanneal.predictive._point import crosscat_arrays
from skanneal.schedules import SequentialGibbs
from skanneal.states import CrossCat, Mixture, logs_without
from skanneal.summary import relabel

# ---- leave-one-out densities --------------------------------------------------------------------


def slow_without(columns, labels, row, concentration, discount, *, kept=False):
    """log p(row | the other rows and their labels), the row's own label summed out.

    kept : the fault of the control, in which the row's cluster still holds the row.
    """
    others = [r for r in range(len(labels)) if r != row or kept]
    names = sorted({labels[r] for r in others})
    members = [[r for r in others if labels[r] == name] for name in names]
    weights = [len(rows) - discount for rows in members]
    weights.append(concentration + discount * len(members) if others else 1.0)
    weights[-1] = weights[-1] if weights[-1] > 1e-12 else 1e-300  # all components have rows
    total = len(others) + concentration if others else 1.0
    return logsumexp(
        [
            math.log(weight / total)
            + sum(
                log_predictive(family, values[row], [values[r] for r in rows], hyper)
                for family, values, hyper in columns
            )
            for weight, rows in zip(weights, [*members, []], strict=True)
        ]
    )


def counts_state(columns, prior):
    """A mixture of one column of rows of counts."""
    ((_, values, hyper),) = columns
    width = len(values[0])
    table = Table(["entries"] + ["none"] * (width - 1), [0] * width)
    table.append([csr_array(np.array(values, dtype=np.int64))] + [None] * (width - 1))
    pseudo_counts = np.array(hyper["pseudo_counts"], dtype=float)
    block = FAMILIES["multinomial"](table, list(range(width)), [pseudo_counts])
    return table, Mixture(table, [block], prior, None)


def mixture_state(columns, prior):
    """A mixture of other columns."""
    table = make_table(columns)
    return table, Mixture(table, make_blocks(table, columns), prior, None)


def columns_of(family, n_rows, seed):
    """Random data of a family: a dense and a gappy column, or rows."""
    rng = np.random.default_rng(seed)
    if family == "multinomial":
        values = [tuple(row) for row in 1 + rng.poisson(2.0, (n_rows, 3))]
        return [(family, values, {"pseudo_counts": rng.uniform(0.3, 2, 3).tolist()})]
    if family in ROW_FAMILIES:
        return [random_rows(family, n_rows, rng)]
    return random_columns([family], n_rows, seed)


def differences_of_two(states, of_labels, of_columns, priors):
    """How a row's density differs between two states: the package's, the formula's, the fault's.

    Terms of the row alone, which the package may leave out, are gone.
    """
    rows = np.arange(len(of_labels[0]))
    shown, exact, faulty = [], [], []
    for state, labels, columns, prior in zip(states, of_labels, of_columns, priors, strict=True):
        state.replace(rows, np.array(labels))
        before = state.to_arrays()
        shown.append(logs_without(state, rows))
        after = state.to_arrays()
        for name in before:
            np.testing.assert_array_equal(after[name], before[name], err_msg=name)
        given = (columns, labels), (prior.concentration, prior.discount)
        exact.append([slow_without(*given[0], row, *given[1]) for row in rows])
        faulty.append([slow_without(*given[0], row, *given[1], kept=True) for row in rows])
    return tuple(np.subtract(*pair) for pair in (shown, exact, faulty))


PRIORS = {  # two points of each; "finite" with as many components as clusters
    "pitman_yor": (PitmanYor(1.3, 0.0), PitmanYor(0.4, 0.5)),
    "finite": (Finite(5 * 0.7, -0.7), Finite(3 * 0.3, -0.3)),
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", [name for name in FAMILIES if not FAMILIES[name].weighted])
@pytest.mark.few(8)
def test_a_row_left_out(family, prior):
    """Clusters of one row and of several, two points of a prior, two sets of hyperparameters."""
    of_columns = [columns_of(family, 12, seed) for seed in (0, 1)]
    of_columns[1] = [
        (family, values, hyper) for (_, values, _), (_, _, hyper) in zip(*of_columns, strict=True)
    ]
    priors = PRIORS[prior]
    make = counts_state if family == "multinomial" else mixture_state
    states = [make(*given)[1] for given in zip(of_columns, priors, strict=True)]
    of_labels = [(0, 1, 1, 2, 2, 2, 3, 3, 0, 4, 4, 4), (0, 0, 0, 1, 1, 0, 0, 1, 2, 1, 0, 0)]
    shown, exact, faulty = differences_of_two(states, of_labels, of_columns, priors)
    np.testing.assert_allclose(shown, exact, rtol=0, atol=1e-4)
    assert np.abs(shown - faulty).max() > 0.05, "the row is still in its cluster"


def added_by_distance(family, value, seen, hyper):
    """2h (exp(e / 2h) - 1) - e of a number or a row of numbers, e its surprisal above that at the
    centre of those that were seen; of amounts that of their logarithms; 0 of other families. Where
    none was seen -e, as if the number were at the centre."""
    if family == "log_normal" and not is_missing(value):
        logs = [other if is_missing(other) else math.log(other) for other in seen]
        return added_by_distance("normal", math.log(value), logs, hyper)
    if family == "multivariate_log_normal" and not is_missing(value):
        logs = [other if is_missing(other) else list(map(math.log, other)) for other in seen]
        return added_by_distance("multivariate_normal", list(map(math.log, value)), logs, hyper)
    if family not in ("normal", "multivariate_normal") or is_missing(value):
        return 0.0
    of_no_rows = not seen
    seen = [other for other in seen if not is_missing(other)]
    total = hyper["kappa0"] * np.array(hyper["mu0"]) + sum(map(np.array, seen))
    centre = total / (hyper["kappa0"] + len(seen))
    twice = hyper["nu0"] + len(seen) + 1
    at_centre, here = (log_predictive(family, x, seen, hyper) for x in (centre.tolist(), value))
    excess = at_centre - here
    return (0.0 if of_no_rows else twice * math.expm1(excess / twice)) - excess


@pytest.mark.parametrize("family", [name for name in FAMILIES if not FAMILIES[name].weighted])
def test_rows_are_laid_between_clusters_without_themselves(family):
    """Under each cluster's rows but the row itself, relative to the centre of no rows, with tails
    that show the distance; a lone row stays."""
    columns, prior = columns_of(family, 12, 0), PitmanYor(1.3, 0.2)
    make = counts_state if family == "multinomial" else mixture_state
    table, state = make(columns, prior)
    labels, rows = np.array((0, 1, 1, 2, 2, 2, 3, 3, 0, 4, 2, 2)), np.arange(12)
    state.replace(rows, labels)

    def log_density(row, members, left_out, tails):
        total = 0.0
        for name, values, hyper in columns:
            seen = [values[r] for r in members if r != left_out or len(members) == 1]
            total += log_predictive(name, values[row], seen, hyper)
            if tails:
                held = [values[r] for r in members]
                total -= added_by_distance(name, values[row], held, hyper)
        return total

    def expected(kept=False, tails=True):
        out = np.empty((12, 5))
        for row, k in np.ndindex(out.shape):
            members = np.flatnonzero(labels == k)
            out[row, k] = math.log((len(members) - 0.2) / (12 + 1.3))
            out[row, k] += log_density(row, members, None if kept else row, tails)
            out[row, k] -= log_density(row, [], None, tails)
        return out

    found = joints_without(state.views[0], table, rows)
    np.testing.assert_allclose(found, expected(), rtol=1e-5, atol=1e-4)
    assert np.abs(found - expected(kept=True)).max() > 0.05, "the row is still in its cluster"
    if family.endswith("normal") and family not in ("known_normal", "semi_continuous_log_normal"):
        assert np.abs(found - expected(tails=False)).max() > 0.05, "the tails are those of a t"


def crosscat_draw(columns, view_of, of_views, prior):
    """A draw of a CrossCat with these views and, in each, this partition of the rows."""
    table = make_table(columns)
    at = {family: [] for family in FAMILIES}
    for j, (family, _, _) in enumerate(columns):
        at[family].append(j)
    families = {family: np.array(own) for family, own in at.items() if own}
    hyper = {j: hyper_vector(family, hyper) for j, (family, _, hyper) in enumerate(columns)}
    state = CrossCat.start(
        table, families, hyper, np.array(view_of), PitmanYor(1.0, 0.0), prior, None
    )
    for view, labels in zip(state.views, of_views, strict=True):
        view.replace(np.arange(len(labels)), np.array(labels))
    return table, SimpleNamespace(arrays=state.to_arrays(numbered=True))


def test_several_views_and_draws():
    """The product over views, and over draws one over the mean of one over the density."""
    columns = random_columns(COLUMN_FAMILIES, 8, seed=3)
    rng, prior = np.random.default_rng(3), PitmanYor(0.7, 0.2)
    chains, exact, rows = [], [], range(8)
    for n_draws in (1, 3):
        draws, logs = [], []
        for _ in range(n_draws):
            view_of = np.arange(len(columns)) % 2
            of_views = rng.integers(4, size=(2, 8)).tolist()
            of_views = [np.unique(labels, return_inverse=True)[1].tolist() for labels in of_views]
            table, draw = crosscat_draw(columns, view_of, of_views, prior)
            draws.append(draw)
            of_view = [[columns[j] for j in np.flatnonzero(view_of == v)] for v in (0, 1)]
            logs.append(
                [
                    sum(slow_without(own, labels, row, 0.7, 0.2) for own, labels in parts)
                    for row in rows
                    for parts in [list(zip(of_view, of_views, strict=True))]
                ]
            )
        chains.append(draws)
        exact.append([-math.log(np.mean([math.exp(-log[row]) for log in logs])) for row in rows])
    shown = chain_log_densities(chains, table)
    np.testing.assert_allclose(shown[1] - shown[0], np.subtract(*exact[::-1]), atol=1e-4)


def test_the_identity_of_importance_sampling():
    """Over all partitions, weighted by the posterior: p(x) / p(x without the row)."""
    columns = random_columns(["normal", "categorical"], 5, seed=5)
    prior = (0.8, 0.3)

    def log_evidence(rows):
        return {
            labels: log_eppf([len(c) for c in clusters(labels)], *prior)
            + sum(
                log_marginal(family, [values[rows[r]] for r in cluster], hyper)
                for family, values, hyper in columns
                for cluster in clusters(labels)
            )
            for labels in partitions(len(rows))
        }

    table, state = mixture_state(columns, PitmanYor(*prior))
    posterior = log_evidence(range(5))
    whole = logsumexp(list(posterior.values()))
    inverse, kept = np.full((2, 5), -np.inf)
    for labels, log_weight in posterior.items():
        state.replace(np.arange(5), np.array(labels))
        draw = SimpleNamespace(arrays=state.to_arrays(numbered=True))
        logs = log_densities_without(draw, table, np.arange(5))
        inverse = np.logaddexp(inverse, log_weight - whole - logs)
        kept = np.logaddexp(kept, log_weight - whole + logs)
    for row in range(5):
        others = [r for r in range(5) if r != row]
        exact = whole - logsumexp(list(log_evidence(others).values()))
        assert -inverse[row] == pytest.approx(exact, abs=1e-4)
    assert np.abs(kept + inverse).max() > 0.05, "the plain mean over draws would do as well"


def test_the_only_row():
    columns = random_columns(["normal"], 1, seed=0, missing=0.0)
    _, state = mixture_state(columns, PitmanYor(-0.2, 0.5))
    state.replace(np.arange(1), np.zeros(1, int))
    exact = slow_without(columns, (0,), 0, -0.2, 0.5)
    assert logs_without(state, np.arange(1))[0] == pytest.approx(exact, abs=1e-5)


def test_of_many_rows_some_are_compared():
    for n_rows in (1, 2000):
        np.testing.assert_array_equal(_loo.compared_rows(n_rows), np.arange(n_rows))
    rows = _loo.compared_rows(5000)
    assert len(rows) == 2000 and (np.diff(rows) > 0).all() and rows[-1] < 5000
    assert abs(rows.mean() - 2500) < 200


# ---- fits ---------------------------------------------------------------------------------------


def data(n_rows=150, seed=0):
    """Three clusters of four columns, of which the last is of levels."""
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n_rows)
    numbers = 5.0 * z[:, None] + rng.normal(size=(n_rows, 3))
    return np.column_stack([numbers, (z + (rng.random(n_rows) < 0.1)) % 3])


def quick(cls=AnnealedDPMixture, **parameters):
    defaults = {
        "families": {"normal": [0, 1, 2], "categorical": [3]},
        "schedule": SequentialGibbs(n_sweeps=20),
        "n_chains": 4,
        "n_draws": 2,
        "random_state": 0,
    }
    return cls(**(defaults | parameters))


def regrouped(draw, table, labels):
    """The arrays of a draw with these clusters of the rows in every view."""
    state = _loo.state_from_arrays(draw.arrays, table)
    for view in state.views:
        view.replace(np.arange(table.n_rows), labels)
    return state.to_arrays(numbered=True)


@pytest.fixture
def with_a_bad_chain(monkeypatch):
    """Fits in which one chain has all rows in one cluster and claims to be the most probable.

    The others have the clusters that the rows were drawn from.
    """
    true = np.random.default_rng(0).integers(3, size=150)

    def weigh(chains, table, agree):
        assert not agree, "two draws are too few to say so"
        if len(chains) > 1:
            for c, draw in ((c, draw) for c, chain in enumerate(chains) for draw in chain):
                labels = np.zeros_like(true) if c == 2 else true
                draw.arrays = regrouped(draw, table, labels) | {
                    "log_joint": np.array(float(c == 2))
                }
        return chain_weights(chains, table)

    monkeypatch.setattr("skanneal.estimators._annealed.chain_weights", weigh)


ESTIMATORS = (AnnealedDPMixture, PermutationDPMixture, CrossCatPY)


@pytest.mark.parametrize("cls", ESTIMATORS)
class TestOneBadChain:
    def fitted(self, cls, **parameters):
        with pytest.warns(ConvergenceWarning, match="count less .*; `chain_weights_`"):
            return quick(cls, **parameters).fit(data())

    @pytest.mark.usefixtures("with_a_bad_chain")
    def test_densities_of_the_others(self, cls):
        model, held_out = self.fitted(cls), data(1000, seed=1)
        np.testing.assert_array_equal(model.chain_weights_, np.array([1, 1, 0, 1]) / 3)
        assert len(model.draws_) == 4
        good, equal = copy.copy(model), copy.copy(model)
        good.draws_ = [model.draws_[c] for c in (0, 1, 3)]
        good.chain_weights_ = np.full(3, 1 / 3)
        equal.chain_weights_ = np.full(4, 0.25)
        assert model.score(held_out) > good.score(held_out) - 0.01
        assert equal.score(held_out) < good.score(held_out) - 0.1

    @pytest.mark.usefixtures("with_a_bad_chain")
    @pytest.mark.parametrize("method", ["map", "vi", "binder"])
    @pytest.mark.few(3)
    def test_labels_of_the_others(self, cls, method):
        model = self.fitted(cls, point_estimate=method)
        assert model.n_clusters_ > 1
        assert all(draw.labels.max() == 0 for draw in model.draws_[2])
        shown = CoassignmentDisplay.from_estimator(model).coassignment
        assert shown.min() < 0.01 < 0.25, "rows of two clusters that no good chain joins"

    @pytest.mark.usefixtures("with_a_bad_chain")
    @pytest.mark.few(1)
    def test_stored_and_loaded(self, cls, tmp_path):
        model, rows = self.fitted(cls), data(20, seed=1)
        joblib.dump(model, tmp_path / "model")
        stored = io.dumps(model)
        trusted = io.get_untrusted_types(data=stored)
        for loaded in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(tmp_path / "model"),
            io.loads(stored, trusted=trusted),
        ):
            np.testing.assert_array_equal(loaded.chain_weights_, model.chain_weights_)
            np.testing.assert_array_equal(loaded.score_samples(rows), model.score_samples(rows))

    @pytest.mark.few(1)
    def test_equal_weights(self, cls):
        """One chain, or chains that agree: nothing is weighed, and nothing said."""
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "The rows are less probable")
            one = quick(cls, n_chains=1).fit(data())
            four = quick(cls).fit(data())
        np.testing.assert_array_equal(one.chain_weights_, [1.0])
        np.testing.assert_array_equal(four.chain_weights_, [0.25] * 4)
        unweighted, rows = copy.copy(four), data(20, seed=1)
        del unweighted.chain_weights_
        for query in ("score_samples", "new_cluster_proba", "surprisal", "impute"):
            np.testing.assert_array_equal(
                getattr(four, query)(rows), getattr(unweighted, query)(rows)
            )


def test_chains_known_to_agree_are_not_compared(monkeypatch):
    monkeypatch.setattr(_loo, "chain_log_densities", None)
    np.testing.assert_array_equal(chain_weights([[], []], None, agree=True)[0], [0.5, 0.5])
    np.testing.assert_array_equal(chain_weights([[]], None)[0], [1.0])
    model = quick(schedule="anneal", n_draws="auto").fit(data())
    assert model.converged_
    np.testing.assert_array_equal(model.chain_weights_, [0.25] * 4)
    with pytest.raises(TypeError):
        quick().fit(data())


def test_which_draws_labels_are_made_of():
    """Means over partitions ask for chains that agree, among those that count."""
    chains = [["a", "b"], ["c", "d"], ["e", "f"]]

    def chosen(method, agreeing, weights):
        fitted = {"draws_": chains, "chain_weights_": np.array(weights)}
        fitted["convergence_"] = {"agreeing": np.array(agreeing, dtype=bool)}
        return "".join(AnnealedDPMixture(point_estimate=method)._draws_for_labels(fitted))

    for method in ("vi", "binder"):
        assert chosen(method, [1, 1, 1], [1 / 3, 1 / 3, 1 / 3]) == "abcdef"
        assert chosen(method, [1, 0, 1], [1 / 3, 1 / 3, 1 / 3]) == "abef"
        assert chosen(method, [1, 0, 1], [0.5, 0.5, 0.0]) == "ab"
        assert chosen(method, [1, 0, 1], [0.0, 0.99, 0.01]) == "cd"
    assert chosen("map", [1, 0, 0], [0.5, 0.5, 0.0]) == "abcd"


def weak(n_rows, seed=0):
    """Columns of which short chains do not find out whether they depend on each other."""
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n_rows)
    levels = (z[:, None] + rng.integers(2, size=(n_rows, 2))) % 3
    return np.column_stack([z[:, None] + rng.normal(size=(n_rows, 2)), levels])


@pytest.fixture(scope="module")
def uneven():
    """A CrossCat of three chains that count differently, and each chain as a fit of its own.

    The draws have chosen partitions: no query depends on what the chains found.
    """
    families = {"normal": [0, 1], "categorical": [2, 3]}
    schedule = SequentialGibbs(n_sweeps=2)
    model = quick(CrossCatPY, families=families, n_chains=3, schedule=schedule).fit(weak(60))
    encoder, rng = model._encoder, np.random.default_rng(4)
    table = model._queries().table(encoder.encode(model, weak(60)))
    for chain, views in zip(model.draws_, ([0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 2, 3]), strict=True):
        for draw in chain:
            labels = [relabel(rng.integers(4, size=60)) for _ in range(max(views) + 1)]
            given = np.array(views), labels, [0] * len(labels), draw, encoder.table_families, table
            draw.arrays = crosscat_arrays(*given)
    model.chain_weights_ = np.array([0.5, 0.3, 0.2])
    alone = [copy.copy(model) for _ in range(3)]
    for chain, own in zip(model.draws_, alone, strict=True):
        own.draws_, own.chain_weights_ = [chain], np.ones(1)
    return model, alone


class TestQueriesOfChainsThatCountDifferently:
    rows = weak(12, seed=1)

    def mean(self, model, values):
        return np.tensordot(model.chain_weights_, values, axes=1)

    def test_densities(self, uneven):
        model, alone = uneven
        densities = [np.exp(own.score_samples(self.rows)) for own in alone]
        expected = self.mean(model, densities)
        np.testing.assert_allclose(np.exp(model.score_samples(self.rows)), expected, rtol=1e-10)
        new = [own.new_cluster_proba(self.rows) for own in alone]
        np.testing.assert_allclose(
            model.new_cluster_proba(self.rows),
            self.mean(model, np.multiply(new, densities)) / expected,
            rtol=1e-10,
        )
        surprisals = [own.surprisal(self.rows) for own in alone]
        without = self.mean(
            model, [d[:, None] * np.exp(s) for d, s in zip(densities, surprisals, strict=True)]
        )
        np.testing.assert_allclose(
            model.surprisal(self.rows), np.log(without) - np.log(expected)[:, None], rtol=1e-8
        )

    def test_gaps(self, uneven):
        model, alone = uneven
        gappy = self.rows.copy()
        gappy[:, 1] = np.nan
        shares = [np.exp(own.score_samples(gappy)) for own in alone]
        shares = model.chain_weights_[:, None] * shares
        fills = [own.impute(gappy)[:, 1] for own in alone]
        np.testing.assert_allclose(
            model.impute(gappy)[:, 1], (shares * fills).sum(0) / shares.sum(0), rtol=1e-8
        )

    def test_columns_and_rows(self, uneven):
        model, alone = uneven
        equal = copy.copy(model)
        equal.chain_weights_ = np.full(3, 1 / 3)
        questions = {
            "dependence_probability": {},
            "row_similarity": {"rows": [0, 1, 2], "others": self.rows},
            "mutual_information": {"columns": [2, 3]},
        }
        for question, given in questions.items():
            expected = self.mean(model, [getattr(own, question)(**given) for own in alone])
            shown, otherwise = (getattr(own, question)(**given) for own in (model, equal))
            np.testing.assert_allclose(shown, expected, rtol=1e-10, err_msg=question)
            assert not np.allclose(otherwise, expected, rtol=1e-3), question

    def test_samples(self, uneven):
        """A chain that counts nothing has no part; of the others each has its own."""
        model, alone = uneven
        only = copy.copy(model)
        only.chain_weights_ = np.array([0.0, 1.0, 0.0])
        np.testing.assert_array_equal(only.sample(30), alone[1].sample(30))
        table = model._queries().table(model._encoder.missing_columns(1))
        per_draw = np.exp(model._queries().predictor.log_densities(table)[0])
        np.testing.assert_allclose(per_draw / per_draw.sum(), np.repeat([0.25, 0.15, 0.1], 2))


# ---- few draws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["vi", "binder"])
def test_a_mean_over_few_partitions(method):
    model = quick(n_chains=2, n_draws=9, point_estimate=method)
    with pytest.warns(ConvergenceWarning, match=f"'{method}' averages over 18 draws: .* n_draws"):
        model.fit(data(40))
    for enough in ({"n_draws": 10}, {"point_estimate": "map"}):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            clone(model).set_params(**enough).fit(data(40))
        assert not any("averages over" in str(warning.message) for warning in found)
