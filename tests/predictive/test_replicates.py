"""Tables from single draws, and what ArviZ makes of them and of rows left out."""

import numpy as np
import pandas as pd
import pytest
from arviz_stats import loo

import skanneal
from skanneal import AcceleratedDPMixture, AnnealedDPMixture, CrossCatPY
from skanneal.schedules import AcceleratedSchedule, SequentialGibbs

FIXED = {
    "normal": {"mu0": 1.0, "kappa0": 0.3, "nu0": 4.0, "sigma2_0": 1.0},
    "log_normal": {"mu0": 0.0, "kappa0": 0.3, "nu0": 4.0, "sigma2_0": 0.5},
    "categorical": {"pseudo_counts": 0.7},
    "multivariate_normal": {
        "mu0": 1.0,
        "kappa0": 0.3,
        "nu0": 4.0,
        "scale0": [[1.0, 0.2], [0.2, 1.0]],
    },
}


def few_rows():
    """Sixteen rows of four columns in other units than the cells', a far one among them."""
    rng = np.random.default_rng(4)
    group = np.repeat([0.0, 2.0], 8)
    X = pd.DataFrame(
        {
            "a": 1.5 * group + rng.normal(size=16),
            "b": np.exp(0.5 * group + rng.normal(size=16)),
            "kind": list("xxyxxyxxyyyxyyyy"),
            "d": group + rng.normal(size=16),
        }
    )
    X.loc[15, "a"] = 9.0
    X.loc[2, "a"] = np.nan
    return X


def exact(make, families, n_draws=80, **options):
    """A model whose prior does not depend on the rows, so that it can be fitted without one."""
    if make is CrossCatPY:
        options["moves"] = "gibbs", "column_gibbs"
    used = {family: FIXED[family] for family in families}
    schedule = SequentialGibbs(n_sweeps=20)
    return make(
        families=families,
        hyperparameters=used,
        concentration=1.0,
        discount=0.0,
        rounding=None,
        schedule=schedule,
        n_chains=2,
        n_draws=n_draws,
        random_state=0,
        **options,
    )


FAMILIES = {"normal": ["a", "d"], "log_normal": ["b"], "categorical": ["kind"]}
MODELS = {
    "mixture": (AnnealedDPMixture, FAMILIES),
    "crosscat": (CrossCatPY, FAMILIES),
    "rows": (AnnealedDPMixture, {"multivariate_normal": ["a", "d"], "categorical": ["kind"]}),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
@pytest.mark.parametrize(("make", "families"), MODELS.values(), ids=MODELS)
@pytest.mark.few(1)
@pytest.mark.slow
def test_loo_is_the_density_of_a_row_that_was_left_out(make, families):
    """By fits to the other rows. The control is the density given all rows, its own among them."""
    X = few_rows()[[name for names in families.values() for name in names]]
    model = exact(make, families, point_estimate="map").fit(X)
    tree = model.to_arviz(X, posterior_predictive=False)
    assert set(tree.children) == {"posterior", "sample_stats", "observed_data", "log_likelihood"}
    elpd = loo(tree, pointwise=True).elpd_i.to_numpy()
    asked = [1, 15]
    left_out = []
    for i in asked:
        others = exact(make, families, n_draws=60, point_estimate="map").fit(X.drop(index=i))
        left_out.append(others.score_samples(X.iloc[[i]])[0])
    np.testing.assert_allclose(elpd[asked], left_out, atol=0.5)
    assert (model.score_samples(X.iloc[asked]) - left_out).sum() > 1.0


@pytest.mark.slow
def test_groups_of_the_table():
    """Observed cells, and tables with the same gaps, by chain and draw; levels by their codes."""
    X = few_rows()
    X["when"] = pd.date_range("2020-01-01", periods=16)
    X["same"] = 3.0
    X["draw"] = np.arange(16) % 3
    model = AnnealedDPMixture(schedule="sequential_gibbs", n_chains=2, n_draws=100, random_state=0)
    model.fit(X)
    tree = model.to_arviz(X)
    observed, drawn = tree["observed_data"], tree["posterior_predictive"]
    assert (
        set(observed.data_vars) == set(drawn.data_vars) == {"a", "b", "kind", "d", "when", "draw_"}
    )
    np.testing.assert_array_equal(observed["a"], X["a"])
    np.testing.assert_array_equal(observed["kind"], (X["kind"] == "y").astype(float))
    days = (X["when"] - pd.Timestamp("1970-01-01")).dt.days
    np.testing.assert_array_equal(observed["when"], days)
    for name in drawn.data_vars:
        cells = drawn[name].to_numpy()
        assert cells.shape == (2, 100, 16)
        gaps = np.broadcast_to(np.isnan(observed[name].to_numpy()), cells.shape)
        np.testing.assert_array_equal(np.isnan(cells), gaps)
    assert set(np.unique(drawn["kind"])) == {0.0, 1.0}
    same, other = model.to_arviz(X), model.to_arviz(X, random_state=5)
    np.testing.assert_array_equal(same["posterior_predictive"]["a"], drawn["a"])
    assert not np.array_equal(other["posterior_predictive"]["d"], drawn["d"])
    assert tree["log_likelihood"]["rows"].shape == (2, 100, 16)
    assert set(model.to_arviz().children) == {"posterior", "sample_stats"}
    # the law is that of sample
    rows = model.sample(4000)
    assert drawn["kind"].mean() == pytest.approx((rows["kind"] == "y").mean(), abs=0.1)
    assert np.median(drawn["d"]) == pytest.approx(rows["d"].median(), abs=0.3)


def test_each_table_is_of_one_draw():
    """Two draws of two partitions: the spread of rows within a table tells them apart."""
    X = np.r_[np.zeros(30), np.full(30, 50.0)][:, None] + np.random.default_rng(0).normal(
        size=(60, 1)
    )
    model = AnnealedDPMixture(
        families="normal", schedule="sequential_gibbs", n_chains=1, n_draws=40, random_state=0
    ).fit(X)
    tables = model.sample(300, n_replicates=40)
    tree = model.to_arviz(X)["posterior_predictive"]["0"].to_numpy()[0]
    for cells in (np.array(tables)[:, :, 0], tree):
        assert len(cells) == 40
        shares = (cells > 25).mean(axis=1)
        assert np.abs(shares - 0.5).max() < 6 * np.sqrt(0.25 / cells.shape[1])
    own = [float(draw.concentration) for draw in model.draws_[0]]
    assert len(set(own)) > 1
    # as many as there are draws: each of them once
    queries = model._queries()
    turns = queries.turns(40, np.random.SeedSequence(0), "n")
    assert len({id(predictor) for predictor, _ in turns}) == 40


@pytest.mark.parametrize("make", [AnnealedDPMixture, CrossCatPY])
def test_samples_by_random_state(make):
    X = few_rows()
    model = make(schedule="sequential_gibbs", n_chains=1, n_draws=3, random_state=0).fit(X)
    assert model.sample(6).equals(model.sample(6))
    one, same, other = (model.sample(6, random_state=seed) for seed in (1, 1, 2))
    assert one.equals(same) and not one.equals(other) and not one.equals(model.sample(6))
    generator = np.random.default_rng(0)
    assert not model.sample(6, random_state=generator).equals(
        model.sample(6, random_state=generator)
    )
    tables = model.sample(6, {"kind": "y"}, n_replicates=4, random_state=1)
    assert [len(rows) for rows in tables] == [6] * 4 and not tables[0].equals(tables[1])
    assert all((rows["kind"] == "y").all() for rows in tables)
    for wrong in (0, 2.5):
        with pytest.raises(ValueError, match="n_replicates must be a positive integer"):
            model.sample(3, n_replicates=wrong)


def test_what_is_not_available(monkeypatch):
    X = few_rows()
    model = AnnealedDPMixture(schedule="sequential_gibbs", n_chains=1, n_draws=3, random_state=0)
    model.fit(X)
    with pytest.raises(ValueError, match="X must be the training data: its cells"):
        model.to_arviz(X.iloc[::-1])
    monkeypatch.setattr(skanneal.estimators._arviz, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="posterior_predictive=False"):
        model.to_arviz(X)
    assert "log_likelihood" in model.to_arviz(X, posterior_predictive=False).children
    monkeypatch.undo()
    counts = np.random.default_rng(0).multinomial(20, [0.2, 0.3, 0.5], size=30)
    schedule = AcceleratedSchedule(n_accelerated=4, n_exact=4)
    options = {"schedule": schedule, "random_state": 0, "n_draws": 2}
    atoms = AcceleratedDPMixture(likelihood="logistic_normal", **options).fit(counts)
    with pytest.raises(ValueError, match="conjugate likelihood and rows in memory"):
        atoms.to_arviz(counts)
    assert set(atoms.to_arviz().children) == {"posterior", "sample_stats"}
    model = AcceleratedDPMixture(likelihood="poisson", **options).fit(counts)
    assert model.to_arviz(counts)["log_likelihood"]["rows"].shape == (1, 2, 30)
    rows = AcceleratedDPMixture(likelihood="multinomial", **options).fit(counts)
    logs = rows.to_arviz(counts)["log_likelihood"]["rows"].to_numpy()
    np.testing.assert_allclose(logs.mean(), rows.score(counts), atol=0.5)
