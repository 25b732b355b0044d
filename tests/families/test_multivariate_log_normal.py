"""Rows of amounts: the multivariate normal family on logarithms, of all columns or of some.

The oracles of tests/oracles have rows whose cells are all logarithms. Here rows hold logarithms
beside plain numbers, as the evidence makes them, and every answer is that of a table in which the
user has taken the logarithms.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY, PermutationDPMixture
from skanneal.encoding import NOTHING, Encoder, Recoded
from skanneal.estimators import _family_evidence
from skanneal.estimators._contest import Contest
from skanneal.estimators._scales import common_of
from skanneal.families import FAMILIES

NAME, OF_NUMBERS = "multivariate_log_normal", "multivariate_normal"
ESTIMATORS = pytest.mark.parametrize(
    "estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY]
)


def fitted(estimator=AnnealedDPMixture, families=NAME, **options):
    return estimator(families=families, n_chains=1, n_draws=2, random_state=0, **options)


def rows_of_logs(n=90, seed=0, gaps=0.1):
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + 3.0 * rng.integers(2, size=(n, 1))
    logs[rng.random(logs.shape) < gaps] = np.nan
    logs[np.isnan(logs).all(axis=1), 0] = 0.0
    return logs


class PartlyLogarithms(AnnealedDPMixture):
    """A fit whose evidence has chosen the logarithms of the columns LOGS, and rows of both."""

    LOGS = (0, 2)

    def _decided(self, encoder, X, cells, *others, **more):
        own = Recoded.of(encoder, X, dict.fromkeys(self.LOGS, "log_normal"))
        columns = np.arange(encoder.n_columns)
        return *_family_evidence._in_family(encoder, cells, columns, NAME, NOTHING, own), None


def with_logs(X, columns=PartlyLogarithms.LOGS, function=np.log):
    out = X.copy()
    out[:, columns] = function(out[:, columns])
    return out


CASES = [
    (estimator, range(4), NAME)
    for estimator in (AnnealedDPMixture, PermutationDPMixture, CrossCatPY)
] + [(PartlyLogarithms, PartlyLogarithms.LOGS, OF_NUMBERS)]


@pytest.mark.parametrize("margins", ["model", "data"])
@pytest.mark.parametrize(("estimator", "columns", "families"), CASES)
def test_answers_are_those_of_the_logarithms(estimator, columns, families, margins):
    """The same clusters and answers; densities are over the user's numbers."""
    logs, columns = rows_of_logs(), list(columns)
    X = with_logs(logs, columns, np.exp)
    of_numbers = AnnealedDPMixture if estimator is PartlyLogarithms else estimator
    model = fitted(estimator, families, margins=margins).fit(X)
    other = fitted(of_numbers, OF_NUMBERS, margins=margins).fit(logs)
    assert list(model.families_) == [NAME]
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_array_equal(model.component_labels_, other.component_labels_)
    np.testing.assert_allclose(model.probabilities_, other.probabilities_, atol=1e-6)
    np.testing.assert_allclose(model.outlier_scores_, other.outlier_scores_, atol=1e-6)
    np.testing.assert_allclose(model.score_outliers(X), other.score_outliers(logs), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), other.predict(logs))
    near = {"atol": 1e-5 if margins == "model" else 1e-3}
    jacobian = -np.nansum(logs[:, columns], axis=1)
    np.testing.assert_allclose(model.score_samples(X), other.score_samples(logs) + jacobian, **near)
    of_others = -np.nansum(logs[:, [j for j in columns if j != 0]], axis=1)
    np.testing.assert_allclose(
        model.score_samples(X, given=[0]), other.score_samples(logs, given=[0]) + of_others, **near
    )
    of_cells = np.where(np.isin(np.arange(4), columns), logs, 0.0)
    np.testing.assert_allclose(model.surprisal(X), other.surprisal(logs) + of_cells, **near)
    filled = with_logs(model.impute(X), columns)
    if margins == "model":
        np.testing.assert_allclose(filled, other.impute(logs), atol=1e-6)
    other._reach = model._reach
    for own, its in (
        (model.sample(40), other.sample(40)),
        (
            model.sample(5, given={1: 3.0}),
            other.sample(5, given={1: np.log(3.0) if 1 in columns else 3.0}),
        ),
        *zip(model.impute(X, n_imputations=2), other.impute(logs, n_imputations=2)),
    ):
        np.testing.assert_allclose(with_logs(own, columns), its, atol=1e-4)


def test_log_joint_is_of_the_users_numbers():
    logs = rows_of_logs(gaps=0.0)
    X = with_logs(logs, function=np.exp)
    model, other = (
        fitted(estimator, OF_NUMBERS).fit(rows)
        for estimator, rows in ((PartlyLogarithms, X), (AnnealedDPMixture, logs))
    )
    jacobian = -logs[:, PartlyLogarithms.LOGS].sum()
    (ours,), (theirs,) = ([chain[-1]] for chain in (model.draws_[0], other.draws_[0]))
    assert ours.log_joint == pytest.approx(theirs.log_joint + jacobian, abs=1e-3)
    assert abs(jacobian) > 1.0
    for name, values in theirs.hyperparameters[OF_NUMBERS].items():
        np.testing.assert_array_equal(ours.hyperparameters[NAME][name], values)


def test_spreads_are_those_of_log_normals():
    X = np.exp(rows_of_logs(seed=3))
    model = fitted().fit(X)
    filled, spread = model.impute(X, return_std=True)
    logs, of_logs = fitted(families=OF_NUMBERS).fit(np.log(X)).impute(np.log(X), return_std=True)
    gaps = np.isnan(X)
    expected = stats.lognorm(of_logs[gaps], scale=np.exp(logs[gaps])).std()
    np.testing.assert_allclose(spread[gaps], expected, rtol=1e-4)
    assert (spread[~gaps] == 0.0).all()


def test_the_density_integrates_to_one():
    X = np.exp(rows_of_logs(60, seed=4, gaps=0.0)[:, :2])
    model = fitted(concentration=0.5).fit(X)
    u = np.linspace(-60.0, 60.0, 1201)
    points = np.exp(np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2))
    density = np.exp(model.score_samples(points) + np.log(points).sum(axis=1))
    assert density.sum() * (u[1] - u[0]) ** 2 == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("third", [lambda x, y: x * y, lambda x, y: 3.0 * x, lambda x, y: x / y**2])
def test_columns_that_determine_each_other_in_logarithms_are_set_apart(third):
    x, y = np.exp(0.1 * rows_of_logs(120, seed=6, gaps=0.0)[:, :2]).T
    X = np.column_stack([x, y, third(x, y)])
    gappy = X.copy()
    gappy[:5, 2] = np.nan
    gappy[5:9, 1:] = np.nan
    with pytest.warns(UserWarning, match="the logarithm of column 2 is a linear function of the"):
        model = fitted().fit(gappy)
    assert model.families_["collinear"].tolist() == [2]
    filled, spread = model.impute(gappy, return_std=True)
    np.testing.assert_allclose(filled[:5, 2], X[:5, 2], rtol=1e-5)
    assert (spread[:5] == 0.0).all()
    depends = abs(third(1.0, 2.0) - third(1.0, 1.0)) > 0.1
    assert ((spread[5:9, 2] > 0.0) == depends).all() and np.isfinite(spread).all()
    for rows in (filled, model.sample(50), model.impute(gappy, n_imputations=1)[0]):
        np.testing.assert_allclose(rows[:, 2], third(*rows[:, :2].T), rtol=1e-4)
    drawn = np.array(model.impute(gappy[5:9], n_imputations=400))[:, :, 2]
    assert (abs(np.log(spread[5:9, 2] / drawn.std(axis=0))) < 0.7).all() or not depends


def test_a_number_of_0_or_less_is_refused_where_the_family_is_asked_for():
    X = np.exp(rows_of_logs(gaps=0.0))
    for bad in (0.0, -2.0):
        X[3, 1] = bad
        with pytest.raises(ValueError, match="column 1.*must hold numbers above 0"):
            fitted().fit(X)


# ---- the evidence -------------------------------------------------------------------------------


def correlated(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(0.8 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)))


def test_correlated_amounts_are_rows_of_logarithms():
    model = AnnealedDPMixture(random_state=0).fit(correlated())
    assert {name: own.tolist() for name, own in model.families_.items()} == {NAME: [0, 1, 2]}
    evidence = model.family_evidence_
    assert evidence["winner"] == NAME and evidence["decided_by"] == "evidence"
    assert set(evidence["log_density"]) >= {NAME, OF_NUMBERS, "normal"}
    assert model.n_components_ == 1
    other = AnnealedDPMixture(random_state=0).fit(np.log(correlated()))
    new = correlated(300, 1) ** 0.5
    gain = model.score(new) - (other.score(np.log(new)) - np.log(new).sum(axis=1).mean())
    assert abs(gain) < 0.05


def test_amounts_beside_plain_numbers_are_not_in_rows_of_logarithms():
    plain = np.random.default_rng(5).normal(size=(400, 1))
    model = AnnealedDPMixture(random_state=0).fit(np.column_stack([correlated(400, 2), plain]))
    assert NAME not in model.families_ and NAME not in model.family_evidence_["log_density"]


def test_amounts_with_zeros_stay_by_themselves():
    X = np.column_stack([correlated(400, 3), correlated(400, 4)[:, 0]])
    X[np.random.default_rng(0).random(400) < 0.3, 3] = 0.0
    families = AnnealedDPMixture(random_state=0).fit(X).families_
    assert {name: own.tolist() for name, own in families.items()} == {
        NAME: [0, 1, 2],
        "semi_continuous_log_normal": [3],
    }


@pytest.mark.parametrize("collinear", ["sum", "product"])
def test_rows_without_a_density_do_not_compete(collinear):
    X = correlated(300)[:, :2]
    third = X.sum(axis=1) if collinear == "sum" else X.prod(axis=1)
    model = AnnealedDPMixture(random_state=0).fit(np.column_stack([X, third]))
    assert NAME not in model.families_
    assert NAME not in model.family_evidence_["log_density"]


def test_rows_of_logarithms_are_kept_by_a_warm_start(monkeypatch):
    model = AnnealedDPMixture(warm_start=True).fit(correlated(200))
    before, evidence = model.families_, model.family_evidence_
    assert list(before) == [NAME]
    monkeypatch.setattr(Contest, "next_stage", None)
    model.fit(correlated(200))
    assert list(model.families_) == [NAME] and model.family_evidence_ is evidence


def test_a_later_0_may_be_given_where_other_columns_follow_from_it():
    """In auto it counts as half of the least amount."""
    X = correlated(200)
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=3.0 * np.log(X[:, 2]) - 2.0)
    gappy = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    with pytest.warns(UserWarning, match="'d' is a linear function of the logarithm of column 'c'"):
        imputer = CrossCatImputer(random_state=0).fit(gappy)
    rows = imputer.estimator_.sample(20, given={"c": 0.0})
    least = 3.0 * np.log(0.5 * gappy["c"].min()) - 2.0
    np.testing.assert_allclose(rows["d"], least, atol=1e-2)


def test_later_numbers_below_0_are_odd():
    model = AnnealedDPMixture(random_state=0).fit(correlated(200))
    row = correlated(200)[:1]
    odd = row.copy()
    odd[0, 0] = -1.0
    assert model.score_outliers(odd)[0] > model.score_outliers(row)[0] + 2.0


def test_frames_keep_their_names():
    frame = pd.DataFrame(correlated(200), columns=["income", "rent", "savings"])
    model = AnnealedDPMixture(random_state=0).fit(frame)
    assert (model.sample(50) > 0.0).all().all() and list(model.sample(1)) == list(frame)


def test_the_flag_of_a_codec_is_that_of_the_table():
    encoder = Encoder()
    cells = encoder.fit_encode(AnnealedDPMixture(), np.exp(rows_of_logs()), NAME)
    table = encoder.table(cells.noisy)
    assert table.logarithms.tolist() == [True] * 4
    assert table.take([0, 1]).logarithms.tolist() == [True] * 4
    plain = Encoder()
    plain.fit_encode(AnnealedDPMixture(), np.exp(rows_of_logs()), OF_NUMBERS)
    assert not plain.table_schema.logarithms.any()
    assert FAMILIES[NAME].logarithms_of == OF_NUMBERS


def test_members_of_the_detector_have_all_numbers_in_one_row():
    """Logarithms, beside ordered levels as numbers."""
    frame = pd.DataFrame(correlated(200), columns=["a", "b", "c"])
    frame["size"] = pd.cut(frame["a"], [0, 0.5, 1, 2, np.inf], labels=list("smlx"), ordered=True)
    model = AnnealedDPMixture(random_state=0).fit(frame)
    assert model.families_[NAME].tolist() == [0, 1, 2]
    families = common_of(model, frame, 64).encoder.families_
    assert {name: own.tolist() for name, own in families.items()} == {OF_NUMBERS: [0, 1, 2, 3]}
