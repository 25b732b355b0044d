"""Which numbers an imputer fills by their logarithms, and what that makes of fills.

The oracle of a lead is a regression in plain steps. Fills are compared with those of an imputer
that takes no logarithms, on the same tables: a control that must be worse.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import CrossCatImputer
from skanneal.estimators import _imputer_model
from skanneal.estimators._box_cox import (
    RIDGE,
    _forms,
    _lead_of_logarithms,
    columns_of_logarithms,
)

N_ROWS = 300


def related(seed, n=N_ROWS, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) @ rng.uniform(0.6, 1.2, (1, d)) + 0.5 * rng.normal(size=(n, d))


def chosen(X):
    return columns_of_logarithms(dict(enumerate(np.asarray(X, dtype=np.float64).T)))


def with_gaps(X, share=0.2, seed=0):
    out = np.array(X, dtype=np.float64)
    out[np.random.default_rng(seed).random(out.shape) < share] = np.nan
    return out


@pytest.mark.parametrize("seed", range(5))
def test_what_is_normal_in_logarithms_has_them(seed):
    logs = related(seed)
    assert chosen(with_gaps(np.exp(logs))) == [0, 1, 2]
    assert chosen(with_gaps(logs + 8.0)) == []
    beside = np.column_stack([np.exp(logs[:, :2]), logs[:, 2] + 8.0])
    assert chosen(with_gaps(beside)) == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_line_stays_one(seed):
    """Of skewed numbers, too, if the logarithms would bend what is straight."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, size=N_ROWS)
    lines = np.column_stack([x, 3.0 + 2.0 * x, 9.0 - x]) + 0.02 * rng.normal(size=(N_ROWS, 3))
    lines -= np.minimum(lines.min(axis=0) - 0.01, 0.0)
    assert chosen(lines) == []


def test_some_numbers_have_no_logarithms():
    X = np.exp(related(1))
    for value in (0.0, -1.0):
        X[3, 1] = value
        assert 1 not in chosen(X)
    X = np.exp(related(1))
    X[:60, 1] = 0.25  # an atom
    assert 1 not in chosen(X)
    assert chosen(np.exp(related(1, n=7))) == []
    X = np.exp(related(1))
    X[:-3, 2] = np.nan
    assert 2 not in chosen(X)
    assert chosen(np.full((20, 2), 3.0)) == []


def test_a_multiple_has_logarithms_if_the_other_has_and_a_sum_keeps_its_parts_plain():
    X = np.exp(related(1))
    assert chosen(np.column_stack([X, 1.1 * X[:, 0]])) == [0, 1, 2, 3]
    assert chosen(np.column_stack([X, np.rint(11_000.0 * X[:, 0]) / 100.0])) == [0, 1, 2, 3]
    normal = related(1) + 9.0
    assert chosen(np.column_stack([normal, 2.0 * normal[:, 0]])) == []
    assert not {0, 1, 3} & set(chosen(np.column_stack([X, X[:, 0] + X[:, 1]])))
    assert not {0, 3} & set(chosen(np.column_stack([X, 5.0 - X[:, 0]])))


def test_neither_units_nor_the_order_of_columns_matter():
    X = with_gaps(np.column_stack([np.exp(related(2)), related(3) + 9.0]))
    assert chosen(X) == [0, 1, 2] == chosen(X * np.array([1e-6, 1e9, 1.0, 40.0, 1e-3, 1.0]))
    assert chosen(X * 1e200) == chosen(X * 1e-200) == [0, 1, 2]
    assert chosen(X[:, ::-1]) == [3, 4, 5]


def test_a_lead_is_that_of_the_regressions():
    X = with_gaps(np.exp(related(4)))
    rows = np.arange(N_ROWS)
    forms = {j: _forms(X[:, j], rows) for j in range(3)}
    known = ~np.isnan(X[:, 0])
    lead = _lead_of_logarithms(forms[0], [forms[1][1].numbers, forms[2][0].numbers], known)
    others = np.column_stack([np.log(X[:, 1]), X[:, 2]])
    others = np.nan_to_num((others - np.nanmean(others, axis=0)) / np.nanstd(others, axis=0))
    design, n = np.column_stack([np.ones(N_ROWS), others])[known], int(known.sum())
    differences = np.zeros(n)
    for sign, own in ((1.0, np.log(X[known, 0])), (-1.0, X[known, 0])):
        scale, standard = own.std(), (own - own.mean()) / own.std()
        padded = np.vstack([design, np.sqrt(RIDGE * n) * np.eye(3)])
        line = design @ np.linalg.lstsq(padded, np.r_[standard, np.zeros(3)], rcond=None)[0]
        spread = np.sqrt(np.mean((standard - line) ** 2))
        differences += sign * stats.norm.logpdf(standard, line, spread) - sign * np.log(scale)
    differences -= np.log(X[known, 0])
    assert lead.mean == pytest.approx(differences.mean(), abs=1e-9)
    assert lead.error == pytest.approx(differences.std() / np.sqrt(n), abs=1e-9)


def filled(X, monkeypatch=None, **options):
    if monkeypatch is not None:
        monkeypatch.setattr(_imputer_model, "columns_of_logarithms", lambda columns: [])
    imputer = CrossCatImputer(random_state=0, **options).fit(X)
    return imputer, imputer.transform(X), imputer.imputations(X, 5)


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.few(1)
def test_amounts_are_filled_by_their_logarithms(monkeypatch, levels):
    logs = 1.8 * related(5, d=4)
    frame = pd.DataFrame(np.exp(logs), columns=list("abcd"))
    whole = frame.copy()
    frame[:] = with_gaps(frame)
    if levels:
        frame["side"] = np.where(np.arange(N_ROWS) % 2, "left", "right")
        frame.loc[::7, "side"] = None
    imputer, means, draws = filled(frame)
    assert imputer.estimator_.families_["multivariate_log_normal"].tolist() == [0, 1, 2, 3]
    _, plain, plain_draws = filled(frame, monkeypatch)
    gaps = frame[list("abcd")].isna().to_numpy()

    def error(table):
        return np.sqrt(
            np.mean((np.log(table[list("abcd")].clip(1e-3)) - logs).to_numpy()[gaps] ** 2)
        )

    assert error(means) < 0.95 * error(plain)
    for table in draws:
        assert (table[list("abcd")] > 0.0).all().all()
        assert (table[list("abcd")] < 20.0 * whole.max()).all().all()
    assert any((table[list("abcd")] <= 0.0).any().any() for table in plain_draws)
    # the spread of drawn logarithms is that of the whole table's
    spread = np.mean([np.log(table[list("abcd")]).std() for table in draws])
    assert spread == pytest.approx(logs.std(axis=0).mean(), rel=0.1)


def test_a_level_that_multiplies_amounts(monkeypatch):
    """Regressions on levels are of the logarithms."""
    rng = np.random.default_rng(6)
    side = rng.integers(2, size=N_ROWS)
    logs = related(7, d=2) + 1.5 * side[:, None]
    frame = pd.DataFrame(np.exp(logs), columns=["a", "b"]).assign(side=np.array(["l", "r"])[side])
    frame.loc[rng.random(N_ROWS) < 0.3, "a"] = np.nan
    _, _, draws = filled(frame)
    gaps = frame["a"].isna()

    def difference(a, rows):
        values = np.log(a[rows])
        return values[side[rows] == 1].mean() - values[side[rows] == 0].mean()

    expected = difference(np.exp(logs[:, 0]), gaps.to_numpy())
    found = np.mean([difference(table["a"].to_numpy(), gaps.to_numpy()) for table in draws])
    assert found == pytest.approx(expected, abs=0.5)


def test_whole_amounts_stay_whole():
    X = np.rint(np.exp(related(8) + 3.0)) + 1.0
    gappy = with_gaps(X)
    imputer, _, draws = filled(gappy)
    assert list(imputer.estimator_.families_) == ["multivariate_log_normal"]
    assert all((table == np.rint(table)).all() and (table >= 1.0).all() for table in draws)
