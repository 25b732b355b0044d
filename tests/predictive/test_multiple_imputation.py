"""Several imputations by draws from the posterior: what varies between them, and how much.

Bounds on means and spreads are those of the normal distribution at a false-alarm rate of 1e-6.
"""

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skanneal import AnnealedDPMixture, CrossCatImputer, CrossCatPY
from skanneal.predictive import _queries
from skanneal.schedules import LinearAnneal, SequentialGibbs
from skanneal.summary import pool

BOUND = -stats.norm.ppf(0.5e-6)


def model(cls=AnnealedDPMixture, **given):
    options = {"n_chains": 2, "n_draws": 3, "random_state": 0}
    return cls(schedule=SequentialGibbs(n_sweeps=10), **options | given)


def table():
    """Two groups in two columns of numbers and one of levels, with gaps in rows 0 to 59."""
    rng = np.random.default_rng(0)
    group = np.arange(200) % 2
    frame = pd.DataFrame(
        {
            "a": np.where(group, 4.0, -4.0) + rng.normal(size=200),
            "b": np.where(group, 40.0, -40.0) + 10.0 * rng.normal(size=200),
            "c": np.where(rng.random(200) < np.where(group, 0.9, 0.2), "yes", "no"),
        }
    )
    frame.loc[:29, "b"] = np.nan
    frame.loc[30:59, "c"] = None
    return frame


def test_observed_cells_stay_and_gaps_vary():
    X = table()
    several = model().fit(X).impute(X, n_imputations=7)
    assert len(several) == 7
    for filled in several:
        assert isinstance(filled, pd.DataFrame) and not filled.isna().any().any()
        pd.testing.assert_frame_equal(filled.where(X.notna()), X)
    assert len({tuple(filled.b[:30]) for filled in several}) == 7
    assert len({tuple(filled.c[30:60]) for filled in several}) == 7


@pytest.mark.slow
def test_the_spread_between_imputations_is_the_posterior_one():
    """Means and standard deviations of the rows together, against those of `return_std`."""
    X = table()
    fitted = model().fit(X)
    mean, spread = fitted.impute(X, return_std=True)
    spread = np.asarray(spread)
    n = 120
    several, same = fitted.impute(X, return_std=True, n_imputations=n)
    np.testing.assert_array_equal(same, spread)
    drawn = np.array([filled.b[:30] for filled in several])
    scale = spread[:30, 1]
    assert abs(((drawn - mean.b[:30].to_numpy()) / scale).mean()) < BOUND / sqrt(30 * n)
    # Of the median cell: a few draws of a rare new component, whose Student's t has hardly a
    # variance, would decide the mean. Squares have a standard deviation of about 1.5 otherwise, and
    # a median of 30 has an error 1.25 times that of their mean; some 0.1 is in the tails.
    squares = ((drawn - mean.b[:30].to_numpy()) / scale) ** 2
    error = 1.25 * 1.5 / sqrt(30 * n)
    assert abs(np.median(squares.mean(axis=0)) - 1.0) < BOUND * error + 0.1
    drawn = np.array([filled.c[30:60] == mean.c[30:60] for filled in several])
    expected = 1.0 - spread[30:60, 2]
    assert abs((drawn - expected).mean()) < BOUND * 0.5 / sqrt(30 * n)
    # the control: without a gap's own spread, as means would be
    assert np.var(drawn.mean(axis=0)) < np.var(drawn)


def test_each_imputation_is_of_one_draw_and_all_draws_take_turns(monkeypatch):
    used = []

    class Noted(_queries.Predictor):
        def __init__(self, draws, *arguments):
            super().__init__(draws, *arguments)
            used.append(list(draws))

    X = table()
    fitted = model().fit(X)
    monkeypatch.setattr(_queries, "Predictor", Noted)
    fitted.chain_weights_ = np.array([0.5, 0.5])
    fitted.impute(X, n_imputations=6)
    assert all(len(draws) == 1 for draws in used)
    assert {id(draws[0]) for draws in used} == {id(d) for chain in fitted.draws_ for d in chain}


@pytest.mark.slow
def test_a_draw_counts_as_its_chain_does():
    X = table()
    fitted = model().fit(X)
    fitted.chain_weights_ = np.array([1.0, 0.0])
    alone = model().fit(X)
    alone.draws_, alone.chain_weights_ = alone.draws_[:1], np.ones(1)
    pairs = zip(fitted.impute(X, n_imputations=4), alone.impute(X, n_imputations=4), strict=True)
    for one, two in pairs:
        pd.testing.assert_frame_equal(one, two)


def test_the_same_seed_gives_the_same_imputations():
    X = table()
    one, two = (model().fit(X).impute(X, n_imputations=3) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(a, b)


def test_a_table_without_gaps():
    X = table().dropna()
    for filled in model().fit(X).impute(X, n_imputations=2):
        pd.testing.assert_frame_equal(filled, X)


@pytest.mark.parametrize("number", [0, -1, 2.5, "3"])
@pytest.mark.few(2)
def test_what_is_no_number_is_refused(number):
    X = table()
    with pytest.raises(ValueError, match="n_imputations must be a positive integer"):
        model().fit(X).impute(X, n_imputations=number)


@pytest.mark.parametrize("cls", [AnnealedDPMixture, CrossCatPY])
def test_the_imputer_gives_tables_as_transform_does(cls):
    X = table()
    imputer = CrossCatImputer(model(cls), add_indicator=True, random_state=0).fit(X)
    several, one = imputer.imputations(X, n_imputations=3), imputer.transform(X)
    assert len(several) == 3
    for filled in several:
        assert list(filled) == list(one) and not filled.isna().any().any()
        pd.testing.assert_frame_equal(filled[["a"]], one[["a"]])
        pd.testing.assert_frame_equal(filled.filter(like="missing"), one.filter(like="missing"))
    assert not several[0].equals(several[1])


# ---- how much varies between tables ------------------------------------------------------------


def one_component(families, hyperparameters, **options):
    """A model of one component and of given hyperparameters."""
    return model(
        families=families,
        hyperparameters=hyperparameters,
        concentration=1e-12,
        discount=0.0,
        rounding=None,
        **options,
    )


def is_variance(values, expected):
    """Whether normal values may have this variance."""
    ratio = np.var(values, ddof=1) / expected * (len(values) - 1)
    return 0.5e-6 < stats.chi2.cdf(ratio, len(values) - 1) < 1 - 0.5e-6


@pytest.mark.slow
def test_rows_share_the_parameters_of_a_table():
    """Means of 45 fills from 15 observed cells, whose variance is known; the control is what it
    would be if each cell had parameters of its own."""
    rng = np.random.default_rng(0)
    n, k = 60, 45
    X = pd.DataFrame({"x": rng.normal(size=n), "c": rng.choice(["no", "yes"], size=n)})
    X["n"] = rng.poisson(4.0, size=n)
    X = X.astype({"n": object})
    X.iloc[:k] = np.nan
    fitted = one_component(
        {"normal": ["x"], "categorical": ["c"], "poisson": ["n"]},
        {
            "normal": {"mu0": 0.0, "kappa0": 1.0, "nu0": 4.0, "sigma2_0": 1.0},
            "categorical": {"pseudo_counts": 1.0},
            "poisson": {"shape": 2.0, "rate": 0.5},
        },
    ).fit(X)
    tables = fitted.impute(X, n_imputations=200)
    x = X["x"][k:].astype(float)
    kappa, nu = 1.0 + n - k, 4.0 + n - k
    squares = 4.0 + ((x - x.mean()) ** 2).sum() + (n - k) / kappa * x.mean() ** 2
    shape, rate = 2.0 + X["n"][k:].sum(), 0.5 + n - k
    a = 1.0 + (X["c"][k:] == "yes").sum()
    b = 2.0 + n - k - a
    p = a / (a + b)
    laws = {  # of a cell's parameter, and of the cell given it
        "x": (squares / (nu - 2) / kappa, squares / (nu - 2)),
        "n": (shape / rate**2, shape / rate),
        "c": (p * (1 - p) / (a + b + 1), p * (1 - p) * (a + b) / (a + b + 1)),
    }
    for name, (shared, own) in laws.items():
        cells = [table[name][:k] == "yes" if name == "c" else table[name][:k] for table in tables]
        means = [np.mean(of.astype(float)) for of in cells]
        assert is_variance(means, shared + own / k), name
        assert not is_variance(means, (shared + own) / k), name


def augmented(X, hyper, n_tables, rng, apart=10):
    """Means of the second column of tables that data augmentation fills, of one normal component:
    parameters given the filled table, and then the fills given these."""
    gone = np.isnan(X[:, 1])
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    means = []
    for step in range(apart * n_tables):
        n, centre = len(X), filled.mean(axis=0)
        kappa, off = hyper["kappa0"] + n, centre - hyper["mu0"]
        psi = hyper["scale0"] + (filled - centre).T @ (filled - centre)
        psi = psi + hyper["kappa0"] * n / kappa * np.multiply.outer(off, off)
        degrees = hyper["nu0"] + n  # the inverse of a Wishart matrix, by Bartlett's decomposition
        bartlett = np.diag(np.sqrt(rng.chisquare(degrees - np.arange(2))))
        bartlett[1, 0] = rng.normal()
        root = np.linalg.cholesky(psi) @ np.linalg.inv(bartlett).T
        sigma = root @ root.T
        mu = hyper["mu0"] + n / kappa * off
        mu = rng.multivariate_normal(mu, sigma / kappa)
        slope = sigma[0, 1] / sigma[0, 0]
        spread = np.sqrt(sigma[1, 1] - slope * sigma[0, 1])
        own = mu[1] + slope * (X[gone, 0] - mu[0])
        filled[gone, 1] = own + spread * rng.normal(size=gone.sum())
        if step % apart == 0:
            means.append(filled[:, 1].mean())
    return np.array(means)


@pytest.mark.slow
def test_the_variance_between_tables_is_that_of_data_augmentation():
    """Full covariances, 60 % of a column missing: mean of the ratios of ten tables."""
    hyper = {"mu0": np.zeros(2), "kappa0": 0.5, "nu0": 4.0, "scale0": np.eye(2)}
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=100)
        X = np.c_[x, 0.7 * x + rng.normal(size=100)]
        X[rng.random(100) < 0.6, 1] = np.nan
        given = {"multivariate_normal": {name: np.asarray(h).tolist() for name, h in hyper.items()}}
        options = {"n_draws": 100, "thin": 5, "random_state": seed}
        fitted = one_component("multivariate_normal", given, **options)
        means = [t[:, 1].mean() for t in fitted.fit(X).impute(X, n_imputations=200)]
        ratios.append(np.var(means, ddof=1) / np.var(augmented(X, hyper, 400, rng), ddof=1))
    assert 0.9 < np.mean(ratios) < 1.1


def rows_with_gaps(n_rows, rng, at_random):
    """A number, another that goes with it and a level, both with gaps: completely at random, or the
    more probable the larger the first number is."""
    x = rng.normal(size=n_rows)
    frame = pd.DataFrame({"x": x, "y": 0.7 * x + rng.normal(size=n_rows)})
    frame["c"] = rng.choice(["no", "yes"], size=n_rows, p=[0.7, 0.3])
    chance = 0.6 / (1.0 + np.exp(-1.5 * x)) if at_random else 0.3
    for name in ("y", "c"):
        frame.loc[rng.random(n_rows) < chance, name] = None
    return frame


def analysis(table):
    """A mean, a slope and a proportion, and their variances."""
    x, y = (table[name].to_numpy(float) for name in "xy")
    c, n, off = (table["c"] == "yes").to_numpy(float), len(table), x - x.mean()
    slope = off @ y / (off @ off)
    rest = ((y - y.mean() - slope * off) ** 2).sum() / (n - 2)
    variances = [y.var(ddof=1) / n, rest / (off @ off), c.var(ddof=1) / n]
    return [y.mean(), slope, c.mean()], variances


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("at_random", [False, True])
def test_pooled_intervals_cover(at_random):
    """A mean, a slope and a proportion, in 400 tables of 60 rows: between 93 and 97 %, but for
    three standard errors of the shares."""
    right, covered = np.array([0.0, 0.7, 0.3]), []
    for seed in range(400):
        frame = rows_with_gaps(60, np.random.default_rng([seed, at_random]), at_random)
        fitted = AnnealedDPMixture(
            families={"multivariate_normal": ["x", "y"], "categorical": ["c"]},
            concentration=1e-9,
            schedule=LinearAnneal(n_sweeps=10),
            n_chains=1,
            n_draws=20,
            thin=2,
            random_state=seed,
        ).fit(frame)
        pairs = [analysis(table) for table in fitted.impute(frame, n_imputations=20)]
        low, high = pool(*zip(*pairs, strict=True), df_complete=58).interval.T
        covered.append((low < right) & (right < high))
    shares, error = np.mean(covered, axis=0), np.sqrt(0.95 * 0.05 / 400)
    assert (shares > 0.93 - 3 * error).all() and (shares < 0.97 + 3 * error).all()
