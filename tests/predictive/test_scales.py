"""The detector's three scales: what each finds, calibration on rows not yet seen, order, atoms and
gaps; what an interrupt or a limit leaves."""

import pickle
import signal
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from oracles.cheap import short
from oracles.public_estimators import failures
from skanneal import MixtureOutlierDetector
from skanneal.estimators import _core, _scales
from skanneal.estimators._core import core_of as core_of_plan
from skanneal.families import Table
from skanneal.parallel import TimeLimit
from skanneal.predictive._atom_tails import AtomTails
from skanneal.predictive._calibration import Calibration
from skanneal.predictive._patterns import patterns
from skanneal.predictive._predictor import Predictor
from skanneal.predictive._tail import ViewScores, surprisals_of
from skanneal.predictive._tail import view_scores as scores_in
from skanneal.predictive._view import View
from skanneal.states import state_from_arrays


@pytest.fixture
def cheap(monkeypatch):
    """A mixture of all rows of few sweeps."""

    monkeypatch.setattr(MixtureOutlierDetector, "_own_model", lambda self: short(random_state=None))


def detector(**given):
    return MixtureOutlierDetector(**{"n_estimators": 4, "random_state": 0} | given)


def groups(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    second = np.arange(n) % 5 == 0
    return np.where(second[:, None], 6.0, 0.0) + rng.normal(size=(n, d))


# ---- scales --------------------------------------------------------------------------------------


def test_shares_of_scales_are_averaged_by_the_harmonic_mean():
    shares = np.array([[0.5, 0.2, 1e-300], [0.1, np.nan, 1.0], [0.5, 0.4, 1.0]])
    expected = stats.hmean(shares, nan_policy="omit")
    np.testing.assert_allclose(np.exp(-_scales.average(-np.log(shares))), expected)


def test_outliers_that_resemble_each_other_are_odd(cheap):
    """A tenth of the rows, denser than all others: the mixture of all rows has a component for
    them, and some members have one, too."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(270, 3)), 0.2 * rng.normal(size=(30, 3)) + 4.0]
    odd, fitted = np.arange(300) >= 270, detector(n_estimators=12).fit(X)
    assert roc_auc_score(odd, fitted.outlier_scores_) > 0.95
    assert roc_auc_score(odd, -fitted.score_samples(X)) > 0.95


def test_what_is_odd_at_one_scale_is_odd(cheap):
    """The others find nothing odd about any row."""
    X = groups()
    scales, target = detector(n_estimators=1).fit(X)._scales, np.arange(120) == 0
    odd, nothing = np.where(target, np.log(1e9), 0.0), np.zeros(120)
    for place in range(3):
        fine, few, one = np.roll([odd, nothing, nothing], place, axis=0)
        scales.calibration = lambda _, fine=fine: fine
        scales.members = [SimpleNamespace(log_shares=lambda _, few=few: few)]
        scales.core = SimpleNamespace(log_shares=lambda _, one=one: one)
        np.testing.assert_allclose(scales.means(X), np.where(target, np.log((1e9 + 2) / 3), 0.0))


def table_of_members(fitted, X):
    encoder = fitted._scales.encoder
    table = Table(*encoder.table_schema)
    table.append(encoder.apart.stored(encoder.encode(None, X)))
    return table


def test_every_member_sees_what_binds_the_numbers(cheap):
    """Where a dependence of two numbers is broken, neither of them is odd by itself."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    X = np.c_[x, x + 0.1 * rng.normal(size=(300, 1)), rng.normal(size=(300, 1))]
    X[:6, 1] = -X[:6, 0] + 0.5
    fitted = detector().fit(X)
    for member in fitted.estimators_:
        shares = member.log_shares(table_of_members(fitted, X))
        assert roc_auc_score(np.arange(300) < 6, shares) > 0.9


# ---- the core ------------------------------------------------------------------------------------


def core_of(X, judged=None, seed=0):
    common = _scales.common_of(short().fit(X), X, 50)
    judged = np.arange(len(X)) if judged is None else judged
    schema = common.encoder.table_schema
    return core_of_plan(common.plan, common.asked, schema, judged, np.random.SeedSequence(seed))


def test_the_core_has_none_of_a_fifth_of_the_rows_that_are_far():
    """Beyond them lie no rows: from all rows on, the steps lead there by themselves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) @ np.triu(np.ones((3, 3)))
    X[240:] = [6.0, -6.0, 6.0] + 0.2 * rng.normal(size=(60, 3))
    rows, _, scores = core_of(X)
    assert len(rows) == 225 and (rows < 240).all()
    assert scores[240:].min() > scores[:240].max()
    inner = X[rows] - X[rows].mean(axis=0)  # the order is that of distances by its own covariance
    distance = np.einsum("ij,jk,ik->i", inner, np.linalg.inv(inner.T @ inner), inner)
    assert stats.spearmanr(distance, scores[rows])[0] > 0.99


def test_a_row_of_the_core_is_judged_without_itself():
    """It is odder than the same row as a new one, which the component knows."""
    X = groups(40)
    rows, arrays, scores = core_of(X)
    common = _scales.common_of(short().fit(X), X, 50)
    again = scores_in(
        _core._view(arrays, common.asked.empty_like()),
        common.asked,
        Predictor([], common.encoder.table_schema),
    )
    others = np.setdiff1d(np.arange(40), rows)
    assert (scores[rows] > again[rows]).all()
    np.testing.assert_allclose(scores[others], again[others])
    np.testing.assert_array_equal(core_of(X, rows[:8])[2], scores[rows[:8]])


def test_the_core_reads_levels_atoms_and_gaps():
    """Some rows are odd by a number, by a level, or by what is beside an atom."""
    rng, n = np.random.default_rng(0), 300
    numbers = rng.normal(size=(n, 2))
    zeros = np.where(rng.random(n) < 0.4, 0.0, rng.normal(5.0, 1.0, n))
    level = rng.choice(["a", "b"], n).astype(object)
    level[2:4], numbers[rng.random(n) < 0.2, 1] = "z", np.nan
    numbers[:2, 0], zeros[4:6] = 20.0, 60.0
    X = pd.DataFrame({"x": numbers[:, 0], "y": numbers[:, 1], "zeros": zeros, "level": level})
    rows, _, scores = core_of(X)
    assert rows.min() > 5 and scores[:6].min() > np.quantile(scores, 0.9)


def test_the_core_is_looked_for_in_some_of_many_rows(monkeypatch):
    X = groups(400)
    monkeypatch.setattr(_core, "MOST_ROWS", 100)
    rows, _, scores = core_of(X)
    assert len(rows) == 75 and np.isfinite(scores).all()
    assert (rows != core_of(X, seed=1)[0]).any()


# ---- atoms ---------------------------------------------------------------------------------------


def view_scores(model, X, mixture=None):
    """ViewScores of a fit's only draw, or of a mixture."""
    queries = model._queries()
    view = queries.predictor.draws[0][0] if mixture is None else View(mixture)
    table = queries.table(model._encoded(X))
    return ViewScores(view, table, patterns(table), queries.predictor)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_atoms_are_levels_beside_a_density(unit, monkeypatch):
    """Units do not matter; nor is a component denser for being at the atom, wide as it is else."""
    rng = np.random.default_rng(0)
    X, wide = rng.normal(5.0, 1.0, size=(200, 2)), np.arange(200) < 100
    X[:, 0] *= ~wide
    X[:, 1] = np.where(wide, 1.5 * rng.normal(size=200), 8.0 + 0.5 * rng.normal(size=200))
    model = short(families={"semi_continuous": [0], "normal": [1]})

    def scores_of(rows):
        fitted = clone(model).fit(rows)
        table = fitted._training_table(rows)
        mixture = state_from_arrays(fitted.draws_[0][0].arrays, table)
        mixture.replace(np.arange(200), wide.astype(int))
        return -view_scores(fitted, rows, mixture).log_tails(0, 200)

    scores = scores_of(X)
    np.testing.assert_allclose(scores, scores_of(X * [unit, 1.0]), rtol=2e-3, atol=2e-3)
    monkeypatch.setattr(AtomTails, "entropies", lambda self: {})  # mass beside density
    odder = [np.median(of[wide]) > np.median(of[~wide]) for of in (scores, scores_of(X))]
    assert odder == [True, False]


def test_the_law_of_a_number_with_atoms_agrees_with_simulation():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(300) < 0.3, 0.0, rng.normal(5.0, 1.0, size=300))[:, None]
    model = short(families="semi_continuous", concentration=1e-8).fit(x)
    odd = view_scores(model, x)
    (block,) = odd.view.mixture.blocks
    cells = block.sample_feature(0, np.full(20_000, odd.view.slots[0]), np.random.PCG64(1))
    table = model._queries().predictor.table([cells.astype(np.float32)])
    surprisals = surprisals_of(odd.view, table, 0, 20_000)[:, 0]
    surprisals -= (cells != table.atoms[0][0]) * odd.entropies[0][0]
    law = odd.laws[0]
    assert law.least[0] + law.mean[0] == pytest.approx(surprisals.mean(), abs=0.03)
    assert law.variance[0] == pytest.approx(surprisals.var(), rel=0.1)
    density = surprisals.mean() + np.mean(cells != table.atoms[0][0]) * odd.entropies[0][0]
    assert odd.typical[0, 0] == pytest.approx(-density, abs=0.03)


def test_a_row_with_atoms_has_the_score_that_it_has_among_others():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 2)) < 0.4, 0.0, rng.normal([5.0, 9.0], [1.0, 4.0], (200, 2)))
    model = short(families="semi_continuous", random_state=2).fit(X)
    assert model.n_components_ > 1
    zero = np.flatnonzero(X[:, 0] == 0.0)
    np.testing.assert_allclose(model.score_outliers(X[zero]), model.score_outliers(X)[zero])


# ---- calibration ---------------------------------------------------------------------------------


def test_shares_of_a_sample_and_beyond():
    scores = np.r_[np.arange(100.0), 1e3]
    whole = Calibration(scores, sure=1.0)
    np.testing.assert_allclose(
        np.exp(-whole(np.array([0.0, 50.0, 99.0]))), [1, 0.5, 0.02], atol=0.01
    )
    rate = np.log(5.0) / (np.quantile(scores, 0.9) - np.quantile(scores, 0.5))
    assert whole(1e3 + 1.0) - whole(1e3) == pytest.approx(rate)
    ordinary = Calibration(scores)
    assert ordinary(1e3) == pytest.approx(np.log(10.0) + rate * (1e3 - 90.0), rel=0.01)
    alike = Calibration(np.zeros(5))
    assert alike(np.array([0.0]))[0] < 0.2 and np.isfinite(alike(9.0))


KINDS = {
    "one": lambda rng, n: rng.normal(size=(n, 4)) @ np.triu(np.ones((4, 4))),
    "groups": lambda rng, n: rng.normal(size=(n, 3)) * rng.choice([0.3, 1.0, 2.0], size=(n, 1)),
    "uniform": lambda rng, n: rng.uniform(size=(n, 3)),
    "skewed": lambda rng, n: rng.gamma(1.5, size=(n, 3)),
    "levels": lambda rng, n: rng.integers(0, 3, (n, 6)) * rng.integers(0, 2, (n, 1)),
    "zeros": lambda rng, n: np.where(rng.random((n, 3)) < 0.4, 0.0, rng.normal(5, 1, (n, 3))),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_shares_of_new_rows(kind, gaps):
    """Within a third, but for four standard errors of 3,000 new rows and of the 600 of the fit.

    Of ordinary rows 1 % should be called outliers; the tail of skewed ones is heavier than
    exponential, and of them 2 % are, in tables of 600 rows with a standard deviation of 0.7 %."""
    rng = np.random.default_rng(5)
    rows = KINDS[kind](rng, 3600).astype(float)
    if gaps:
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[np.isnan(rows).all(axis=1), 0] = rows[np.isfinite(rows[:, 0]), 0][0]
    X, new = rows[:600], rows[600:]
    fitted = MixtureOutlierDetector(random_state=0).fit(X)
    shares = np.exp(fitted.score_samples(new))
    for p in (0.1, 0.05, 0.01):
        error = 4.0 * np.sqrt(p * (1 - p) * (1 / 600 + 1 / 3000))
        assert p * 2 / 3 - error <= np.mean(shares < p) <= p * 4 / 3 + error
    assert np.mean(fitted.predict(new) == -1) < 0.04


def test_rounded_training_rows_are_read_as_new_ones(cheap):
    """In whole numbers of few values, which have noise in the fit, and depend on each other."""
    rng = np.random.default_rng(0)
    X, new = (
        np.rint(rng.normal(2.0, 1.2, size=(n, 1)) + rng.normal(0.0, 0.3, size=(n, 6)))
        for n in (400, 3000)
    )
    fitted = detector(n_estimators=2).fit(X)
    table = table_of_members(fitted, new)
    for member in fitted.estimators_:
        assert np.mean(np.exp(-member.log_shares(table)) < 0.5) == pytest.approx(0.5, abs=0.1)
    assert np.mean(np.exp(fitted.score_samples(new)) < 0.5) == pytest.approx(0.5, abs=0.1)
    numbers = short(families="multivariate_normal").fit(X)
    difference = numbers.outlier_scores_ - numbers.score_outliers(X)
    assert np.median(difference) == pytest.approx(0.0, abs=0.1)


def test_shares_of_training_rows(cheap):
    X = groups(400)
    shares = np.exp(-detector().fit(X).outlier_scores_)
    for p in (0.5, 0.1, 0.05):
        assert np.mean(shares < p) == pytest.approx(p, abs=0.01)


# ---- the detector --------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_of_isolation_forest(cheap):
    X = groups(100)
    fitted = detector(n_estimators=3, max_samples=20).fit(X)
    assert [len(member.rows) for member in fitted.estimators_] == [20] * 3
    assert fitted.max_samples_ == 20
    assert len(np.unique([member.rows for member in fitted.estimators_], axis=0)) == 3
    assert detector(max_samples=0.9, n_estimators=1).fit(X).max_samples_ == 50
    assert detector(n_estimators=1).fit(groups(600)).max_samples_ == 256
    families = [set(m.draw.hyperparameters) for m in fitted.estimators_]
    assert families == [{"multivariate_normal"}] * 3
    assert "n_rows=20" in repr(fitted.estimators_[0])
    assert repr(fitted.core_) == "Member(n_rows=75, n_components=1)"


def test_a_given_model_is_scored_alone():
    X = groups()
    model = short()
    fitted = detector(estimator=model).fit(X)
    assert fitted.estimators_ == [] and fitted.core_ is None
    np.testing.assert_array_equal(fitted.score_samples(X), -fitted.estimator_.score_outliers(X))
    np.testing.assert_array_equal(fitted.outlier_scores_, fitted.estimator_.outlier_scores_)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores(cheap):
    X = groups()
    first, second, other = (
        detector(random_state=seed, n_jobs=n_jobs).fit(X)
        for seed, n_jobs in ((3, 1), (3, 2), (4, 1))
    )
    np.testing.assert_array_equal(first.score_samples(X), second.score_samples(X))
    assert (first.score_samples(X) != other.score_samples(X)).any()
    copy = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(first.score_samples(X), copy.score_samples(X))
    assert not hasattr(clone(first), "estimators_")


def test_gaps_are_no_oddness(cheap):
    """Outliers stay outliers by the cells that they have; ordinary rows stay ordinary."""
    rng, X = np.random.default_rng(0), groups(200)
    X[:4, 1] = 40.0
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:4, 1], X[:4, 0], X[4:, 2] = 40.0, np.nan, np.nan_to_num(X[4:, 2])
    fitted = detector().fit(X)
    assert set(np.argsort(-fitted.outlier_scores_)[:4]) == {0, 1, 2, 3}
    lost = np.where(np.arange(3) == 0, np.nan, groups(300, seed=1))
    assert np.mean(fitted.predict(lost) == -1) < 0.05


def test_order_is_kept_where_it_is_known():
    """The end of a scale is odd, although each of its levels is as rare as an ordinary one."""
    rng = np.random.default_rng(0)
    names = ["none", "low", "some", "high", "most"]
    answers = np.clip(rng.normal(1.5, 0.6, size=(150, 1)) + rng.normal(0, 0.4, (150, 4)), 0, 2)
    codes = np.rint(answers).astype(int)
    codes[0] = 4
    ordered, unordered = (
        pd.DataFrame(codes).apply(
            lambda of, dtype=dtype: pd.Categorical.from_codes(of, dtype=dtype)
        )
        for dtype in (pd.CategoricalDtype(names, ordered=True), pd.CategoricalDtype(names))
    )
    families, numbers = [], ("multivariate_normal",)
    for X in (codes, ordered, unordered):
        common = _scales.common_of(short().fit(X), X, 50)
        families.append(tuple(common.plan.families))
        if X is ordered:
            encode = common.encoder.encode
            cells = encode(None, pd.DataFrame([["most"] * 4, ["none"] * 4, ["never"] * 4]))[0]
            assert cells[0] > cells[1] and np.isnan(cells[2])
    assert families == [numbers, numbers, ("categorical",)]


def test_explanations_are_of_the_oddest_rows(cheap):
    X = groups()
    X[7, 1] = 30.0
    fitted = detector().fit(X)
    line = fitted.explain_outliers(X, 1).iloc[0]
    assert line.name == 7 and line["column"] == 1
    assert line["score"] == fitted.outlier_scores_[7]
    new = fitted.explain_outliers(X[:9] + 0.1, 1, reference=X).iloc[0]
    assert new["score"] == -fitted.score_samples(X[:9] + 0.1).min()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(cheap, rows):
    X = groups()[:rows]
    fitted = detector().fit(X)
    assert np.isfinite(fitted.score_samples(X)).all() and np.isfinite(fitted.offset_)


def test_an_interrupt_keeps_what_there_is(cheap, monkeypatch):
    real, calls = _scales._mixture, []

    def interrupted(*task, stop):
        calls.append(0)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(*task, stop=stop)

    monkeypatch.setattr(_scales, "_mixture", interrupted)
    X = groups()
    with pytest.warns(ConvergenceWarning, match="interrupted: 2 of 4 mixtures of few rows"):
        fitted = detector(n_jobs=1).fit(X)
    assert len(fitted.estimators_) == 2 and np.isfinite(fitted.score_samples(X)).all()
    assert np.isfinite(fitted.outlier_scores_).all()


def test_no_time_for_small_mixtures_is_said(cheap, monkeypatch):
    monkeypatch.setattr(_scales, "_grown", lambda limit, *task, stop: None)
    X = groups()
    with pytest.warns(ConvergenceWarning, match="max_time was over: 0 of 4"):
        fitted = detector().fit(X)
    assert fitted.estimators_ == [] and np.isfinite(fitted.score_samples(X)).all()


def test_under_a_limit_some_rows_are_scored(monkeypatch):
    monkeypatch.setattr(_scales, "FEW_ROWS", 30)
    X = groups()
    model = short().fit(X)
    scales, means, _ = _scales.fit_scales(model, X, 2, 60, None, TimeLimit(1e3))
    assert len(scales.members) == 2 and np.isfinite(means).sum() == 30
    over = TimeLimit(1.0)
    over.began -= 2.0
    scales, means, _ = _scales.fit_scales(model, X, 2, 60, None, over)
    assert scales.members == [] and np.isfinite(means).sum() == 30


@pytest.mark.slow
def test_scikit_learn_checks():
    assert failures(MixtureOutlierDetector()) == []


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_a_detector_says_nothing_of_clusters(seed):
    """Of few rows its chains would give different ones; the control is the model alone."""
    X = np.random.default_rng(seed).normal(size=(8, 3))
    detector = MixtureOutlierDetector(n_estimators=2, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        detector.fit(X)
    assert not [one for one in said if "but not on the clusters" in str(one.message)]
    with pytest.warns(ConvergenceWarning, match="density, but not on the clusters"):
        detector._own_model().set_params(random_state=0).fit(X)


@pytest.mark.parametrize("own", [False, True])
def test_names_of_columns_are_compared_once_and_by_the_detector(own):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    detector = MixtureOutlierDetector(short() if own else None, n_estimators=2, random_state=0)
    detector.fit(X)
    bare = X.to_numpy()
    for ask in (detector.predict, detector.score_samples, detector.explain_outliers):
        for rows in (bare, bare[:30]):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                ask(rows)
            (one,) = said
            assert "but MixtureOutlierDetector was fitted with feature names" in str(one.message)
    with pytest.raises(ValueError, match="but MixtureOutlierDetector is expecting 2 features"):
        detector.explain_outliers(bare[:, :1])


@pytest.mark.parametrize("n_rows", [60, 300])
def test_a_light_tail_has_a_hundredth_of_the_rows(n_rows):
    """Uniform rows: none is as far out as an exponential tail has it. Less than 100 rows say
    nothing of that."""
    X = np.random.default_rng(1).random((n_rows, 2))
    detector = MixtureOutlierDetector(n_estimators=6, random_state=0).fit(X)
    n_outliers = np.count_nonzero(detector.predict(X) == -1)
    assert n_outliers == (2 if n_rows == 300 else 0)
