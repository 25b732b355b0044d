"""families="auto" by evidence, amounts: which columns are described by their logarithms, what of it
is said, and what stays plain.

Random tests: fixed seeds, one try.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

from oracles.cheap import CHEAP
from skanneal import AnnealedDPMixture, CrossCatPY, MixtureOutlierDetector, PermutationDPMixture
from skanneal.encoding import Encoder, Recoded
from skanneal.estimators import _logarithms
from skanneal.estimators._contest import Contest
from skanneal.families import FAMILIES, candidates, default_family, family_of_logarithms
from skanneal.schedules import SequentialGibbs

PLAIN, LOGARITHMS = "normal", "log_normal"
WITH_ATOMS = "semi_continuous_log_normal"
QUICK = {"n_chains": 1, "schedule": SequentialGibbs(n_sweeps=3), "random_state": 0}


def fitted(X, estimator=AnnealedDPMixture, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**QUICK | parameters).fit(X)


def families(model):
    return {name: columns.tolist() for name, columns in model.families_.items()}


def amounts(n=150, d=2, seed=0):
    return np.exp(np.random.default_rng(seed).normal(size=(n, d)))


# ---- what is chosen -----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.few(3)
def test_amounts_are_never_negative(estimator, d):
    X = amounts(d=d)
    X[::7, 0] = np.nan
    model = fitted(X, estimator)
    assert families(model) == {LOGARITHMS: list(range(d))}
    assert (model.sample(500) > 0.0).all()
    assert all((filled > 0.0).all() for filled in model.impute(X, n_imputations=3))
    assert (fitted(X, estimator, families=PLAIN).sample(500) < 0.0).any()  # the control


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("exponential", lambda rng, n: rng.exponential(size=n)),
        ("gamma", lambda rng, n: rng.gamma(0.5, size=n)),
        ("waiting", lambda rng, n: 30.0 * rng.weibull(0.7, size=n)),
    ],
)
@pytest.mark.few(3)
def test_skewed_amounts_of_other_laws(name, draw, n):
    """Also in a table of few rows."""
    model = fitted(draw(np.random.default_rng(2), n)[:, None])
    assert families(model) == {LOGARITHMS: [0]}


def coordinates(n=200):
    """Groups about three centres."""
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [6.0, 1.0], [2.0, 7.0]])
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 2))


@pytest.mark.parametrize(
    "place",
    [
        lambda X: X - X.min(axis=0) + 3.0,  # positive
        lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0),  # from 0 to 1
        lambda X: 100.0 + X,
        lambda X: X,
    ],
)
@pytest.mark.few(2)
def test_coordinates_are_not_bent(place):
    model = fitted(place(coordinates()))
    assert {LOGARITHMS, WITH_ATOMS}.isdisjoint(families(model))


def test_a_few_zeros_are_atoms_if_the_rest_is_skewed():
    X = amounts(300)
    X[:6, 0], X[:6, 1] = 0.0, -1.0
    model = fitted(X)
    assert families(model)[WITH_ATOMS] == [0] and model.atoms_[0].tolist() == [0.0]
    rows = model.sample(500)
    assert (rows[:, 0] >= 0.0).all() and (rows[:, 0] == 0.0).any()
    assert np.isfinite(model.score_samples(X)).all()


def test_a_single_zero_needs_more_evidence():
    """It may be where a scale was put."""
    rng = np.random.default_rng(0)
    X = np.c_[np.abs(rng.normal(1.2, 1.0, 150))]
    twice, once = np.r_[X, [[0.0], [0.0]]], np.r_[X, [[0.0]]]
    shown = [fitted(of).family_evidence_["logarithms"] for of in (twice, once)]
    assert (shown[0]["negative"] > 0.01).all() and (shown[1]["negative"] > 0.01).all()
    assert (np.abs(shown[1]["margin"]) < 3.0 * shown[1]["standard_error"]).all()
    assert [of["chosen"].tolist() for of in shown] == [[True], [False]]


def test_rounded_amounts_stay_positive():
    """The noise of a rounded cell does not reach 0; the fit is that of the named family."""
    X = np.round(20.0 * amounts(200)) + 1.0
    model, named = fitted(X), fitted(X, families=LOGARITHMS)
    assert families(model) == {LOGARITHMS: [0, 1]} and set(model.rounding_.values()) == {1.0}
    assert (model.sample(300) >= 0.0).all()
    np.testing.assert_array_equal(model.labels_, named.labels_)
    assert model.draws_[0][0].log_joint == named.draws_[0][0].log_joint


def test_durations_may_be_amounts_and_dates_are_none():
    days = pd.to_timedelta(amounts(300)[:, 0] * 1e3, unit="s")
    later = pd.to_timedelta(amounts(300, 1, 5)[:, 0], unit="D")
    frame = pd.DataFrame({"wait": days, "day": pd.Timestamp("1970-01-01") + later})
    model = fitted(frame)
    assert families(model)[LOGARITHMS] == [0] and families(model)[PLAIN] == [1]
    assert (model.sample(200)["wait"] > pd.Timedelta(0)).all()


def test_a_column_of_few_cells_stays_plain():
    """And says nothing, without a warning."""
    X = amounts(150)
    X[5:, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = AnnealedDPMixture(**QUICK).fit(X)
    assert families(model) == {PLAIN: [1], LOGARITHMS: [0]}
    assert np.isnan(model.family_evidence_["logarithms"]["margin"][1])


# ---- beside the family of whole rows ------------------------------------------------------------


def test_whole_rows_have_plain_numbers():
    """Where these win, the fit is that of plain numbers, and the amounts are in them."""
    rng = np.random.default_rng(0)
    X = 6.0 + rng.normal(size=(150, 1)) + 0.05 * rng.normal(size=(150, 4))
    model = fitted(X)
    winner = model.family_evidence_["winner"]
    assert FAMILIES[winner].joint and families(model) == {winner: [0, 1, 2, 3]}
    assert model.draws_[0][0].log_joint == fitted(X, families=winner).draws_[0][0].log_joint


def test_logarithms_compete_for_whole_rows():
    """The candidate of single columns has them: its density is that of its own fit."""
    X = np.c_[amounts(300), np.random.default_rng(1).normal(size=300)]
    model = fitted(X)
    evidence = model.family_evidence_
    assert families(model) == {PLAIN: [2], LOGARITHMS: [0, 1]}
    assert evidence["winner"] == PLAIN and evidence["decided_by"] == "evidence"
    assert evidence["margin"] > 3.0 * evidence["standard_error"]


# ---- what is said -------------------------------------------------------------------------------


def test_the_evidence():
    X = np.c_[np.random.default_rng(1).normal(size=150), amounts(150), coordinates(150) + 9.0]
    shown = fitted(X).family_evidence_["logarithms"]
    assert shown["columns"].tolist() == [1, 2, 3, 4]
    # the components are better if the amounts are logarithms, which is no merit of the others
    assert shown["chosen"].tolist() == [True, True, False, False]
    assert (shown["negative"][:2] > 0.003).all() and (shown["negative"][2:] < 0.003).all()
    assert (shown["margin"][:2] > 0.0).all() and (shown["standard_error"] > 0.0).all()
    assert shown["n_rows"] == 112 and shown["row_steps"] > 0
    assert (fitted(X, n_jobs=2).family_evidence_["logarithms"]["margin"] == shown["margin"]).all()


def test_the_unit_does_not_matter():
    X = amounts(150)
    one, two = (fitted(of).family_evidence_["logarithms"] for of in (X, 2.0**20 * X))
    np.testing.assert_allclose(one["margin"], two["margin"], atol=1e-4)


def test_verbose_names_the_columns(capsys):
    frame = pd.DataFrame(amounts(150), columns=["price", "weight"])
    fitted(frame, verbose=1)
    assert "logarithms  column 'price', column 'weight', after 112 rows" in capsys.readouterr().out


# ---- what does not compete ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "parameters"),
    [
        (coordinates(), {}),
        (100.0 + coordinates(), {}),  # a logarithm is a straight line there
        (amounts(7), {}),
        (amounts(), {"families": PLAIN}),
        (amounts(), {"hyperparameters": {PLAIN: {"kappa0": 1.0}}}),
    ],
)
def test_some_tables_cost_nothing(monkeypatch, X, parameters):
    monkeypatch.setattr(_logarithms, "Contest", None)
    model = fitted(X, **parameters)
    assert not any(FAMILIES[name].logarithms_of for name in model.families_)
    evidence = model.family_evidence_
    assert evidence is None or evidence["logarithms"] is None


def test_without_time_numbers_stay_plain(monkeypatch):
    monkeypatch.setattr(Contest, "next_stage", lambda self: False)
    assert families(fitted(amounts(), max_time=1.0)) == {PLAIN: [0, 1]}


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.few(1)
def test_warm_start_keeps_the_logarithms(monkeypatch, estimator):
    X = np.c_[amounts(150), np.where(np.arange(150) < 5, 0.0, amounts(150, 1, 3)[:, 0])]
    model = fitted(X, estimator, warm_start=True, random_state=None)
    before, evidence = families(model), model.family_evidence_
    assert before == {LOGARITHMS: [0, 1], WITH_ATOMS: [2]}
    monkeypatch.setattr(Contest, "next_stage", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert families(model) == before and model.family_evidence_ is evidence


def test_the_work_is_bounded():
    """Of a table of many rows, chains see a thousand."""
    shown = fitted(amounts(5000, 1)).family_evidence_["logarithms"]
    steps_of_chain = (_logarithms.SWEEPS + 1) * 1000 + 1000  # with the rows that it judges
    assert shown["n_rows"] == 1000 and shown["row_steps"] < 4 * steps_of_chain


# ---- parts --------------------------------------------------------------------------------------


def test_the_families_of_logarithms():
    assert family_of_logarithms(default_family("float")) == LOGARITHMS
    assert family_of_logarithms(default_family("atoms")) == WITH_ATOMS
    assert LOGARITHMS not in candidates("float")


def test_a_column_is_encoded_anew_with_the_same_noise():
    """Whatever other column is rounded, too."""
    X = np.round(30.0 * amounts(80, 3)) + 1.0
    encoder, named = Encoder(), Encoder()
    cells = encoder.fit_encode(AnnealedDPMixture(), X, rounding="auto")
    of_logarithms = named.fit_encode(AnnealedDPMixture(), X, {LOGARITHMS: [1]}, rounding="auto")
    recoded = Recoded.of(encoder, X, {1: LOGARITHMS})
    for ours, theirs in zip((recoded.noisy, recoded.exact), of_logarithms):
        np.testing.assert_array_equal(ours[1], theirs[1])
    changed, others = recoded.put(encoder, cells)
    assert changed.families_[LOGARITHMS].tolist() == [1] and others.noisy[0] is cells.noisy[0]
    assert encoder.families_.keys() == {PLAIN}


def test_the_detector_has_logarithms():
    detector = MixtureOutlierDetector(AnnealedDPMixture(**CHEAP | {"random_state": 0}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector.fit(amounts(150))
    assert detector.predict([[1e-9, 1.0], [1.0, 1.0]]).tolist() == [-1, 1]


@pytest.mark.parametrize("zeros", [False, True])
def test_later_numbers_that_are_no_amounts_are_odd(zeros):
    """The lower, the odder; the control: an error where the family is named."""
    X = amounts(n=300)
    X[: 60 * zeros, 0] = 0.0
    model = fitted(X)
    assert families(model) == ({WITH_ATOMS: [0]} if zeros else {}) | {LOGARITHMS: [0, 1][zeros:]}
    least = X[X[:, 0] > 0.0, 0].min()
    rows = np.c_[[1.0, least, 0.0, -1.0, -100.0, np.nan], np.ones(6)]
    scores = model.score_outliers(rows)
    assert np.isfinite(model.score_samples(rows)).all()
    assert scores[4] > scores[3] > 3.0 > max(scores[0], scores[5])
    assert scores[3] > scores[1] and (scores[2] < 3.0) == zeros
    assert MixtureOutlierDetector(random_state=0).fit(X).predict(rows)[[0, 3, 4]].tolist() == [
        1, -1, -1
    ]  # fmt: skip
    own = fitted(X, families=model.families_)
    with pytest.raises(ValueError, match="must hold numbers above 0, got -100"):
        own.score_samples(rows)
