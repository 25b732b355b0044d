"""Estimators on families of whole rows with missing cells: queries by formula, runs, labels."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from oracles.bits import same_arrays, same_bits
from oracles.mixtures import NUMBER_ROWS, hyper_vector
from oracles.reference import ROW_EXAMPLES
from oracles.row_fits import integrated_score, mixed, mixed_model, mixture, slow_score, two_clusters
from skanneal import CrossCatImputer, PermutationDPMixture
from skanneal.chains import Chain, ChainPlan
from skanneal.chains._completed import completed
from skanneal.families import FAMILIES, Table
from skanneal.parallel import StopFlag
from skanneal.schedules import EnergyAnneal, LinearAnneal, PriorGibbs, SequentialGibbs
from skanneal.summary import expected_vi

every_family = pytest.mark.parametrize("family", NUMBER_ROWS)


def gappy_clusters(n_rows=60, seed=0, share=0.2):
    """(X with gaps, X, clusters); the first rows lack all or one of their cells."""
    X, side = two_clusters(n_rows, seed)
    gaps = np.random.default_rng(seed + 2).random(X.shape) < share
    gaps[:4] = [[True, True], [True, False], [False, True], [False, False]]
    return np.where(gaps, np.nan, X), X, side


@every_family
class TestQueries:
    """Of fits without gaps, whose clusters the oracle knows."""

    def test_densities(self, family):
        X, _ = two_clusters()
        model = mixture(family, n_chains=1, discount=0.3).fit(X)
        whole = np.array([12.0, -1.0])
        rows = np.array([[12.0, np.nan], [np.nan, -1.0], whole, [np.nan, np.nan]])
        if family == "multivariate_normal":  # a law of one column by itself
            expected = [slow_score(model, family, X, whole, (j,)) for j in (0, 1)]
        else:
            expected = [integrated_score(model, family, X, whole, j) for j in (1, 0)]
        expected += [slow_score(model, family, X, whole), 0.0]
        np.testing.assert_allclose(model.score_samples(rows), expected, atol=2e-4)
        given = model.score_samples(rows[2:3], given=[0])
        np.testing.assert_allclose(given, expected[2] - expected[0], atol=4e-4)
        surprisal = model.surprisal(rows[:2])
        assert np.isnan(surprisal[[0, 1], [1, 0]]).all()
        np.testing.assert_allclose(surprisal[[0, 1], [0, 1]], -model.score_samples(rows[:2]))

    def test_missing_cells(self, family):
        """impute, its deviation and the draws, by integration over the cell."""
        X, _ = two_clusters()
        model = mixture(family, n_draws=2, schedule=SequentialGibbs(n_sweeps=8)).fit(X)
        row = np.array([[10.5, np.nan]])
        grid = np.linspace(-60.0, 60.0, 4001)
        logs = model.score_samples(np.column_stack([np.full_like(grid, 10.5), grid]))
        density = np.exp(logs - logsumexp(logs)) / (grid[1] - grid[0])
        mean = np.trapezoid(grid * density, grid)
        filled, deviation = model.impute(row, return_std=True)
        assert filled[0, 0] == 10.5 and deviation[0, 0] == 0.0
        assert filled[0, 1] == pytest.approx(mean, abs=0.02)
        if family == "known_normal":  # of Student's t the tails beyond the grid count
            variance = np.trapezoid((grid - mean) ** 2 * density, grid)
            assert deviation[0, 1] == pytest.approx(np.sqrt(variance), rel=0.01)
        draws = model.sample(4000, given={0: 10.5})
        assert (draws[:, 0] == 10.5).all()
        cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
        cumulative *= grid[1] - grid[0]
        quantiles = np.interp(draws[:, 1], grid, cumulative)
        counts = np.bincount(np.minimum((quantiles * 10).astype(int), 9), minlength=10)
        assert ((counts - 400) ** 2 / 400).sum() < 33.7  # chi-square of 9, 1e-4
        cells = np.repeat(row, 50, axis=0)
        drawn = CrossCatImputer(clone_of(model, family), strategy="sample", random_state=0)
        assert np.std(drawn.fit(X).transform(cells)[:, 1]) > 0.1

    def test_the_mode_is_a_likely_centre(self, family):
        X, side = two_clusters(200)
        imputer = CrossCatImputer(clone_of(None, family), strategy="mode", random_state=0).fit(X)
        near = X[side == 0].mean(axis=0)
        filled = imputer.transform(np.array([[near[0], np.nan]]))
        assert filled[0, 1] == pytest.approx(near[1], abs=0.5)

    def test_regression_within_clusters(self, family):
        """What the observed cell says of the missing one is used: two clusters have one slope."""
        X, _ = two_clusters(400, seed=5)
        model = mixture(family, schedule="anneal", n_chains=1, n_draws=4).fit(X)
        rows = np.array([[9.0, np.nan], [11.0, np.nan]])
        low, high = model.impute(rows)[:, 1]
        assert high - low == pytest.approx(0.8, abs=0.25)  # 2 times 0.4 / 1


def plan_of(family):
    """Chains on rows with gaps."""
    X, _, _ = gappy_clusters()
    table = Table(["f4"] * 2, [0] * 2)
    table.append(list(np.float32((X - [12.0, -1.0]) / 2.0).T))
    hyper, columns = ROW_EXAMPLES[family][1], np.arange(2)
    grids = {0: FAMILIES[family].grids(table, columns)}
    prior_grid = np.array([(a, d) for d in (0.0, 0.3) for a in (0.5, 2.0, 8.0)])
    hyper = {0: hyper_vector(family, hyper)}
    return ChainPlan(table, {family: columns}, hyper, grids, prior_grid, ("gibbs", "split_merge"))


def clone_of(model, family):
    parameters = {} if model is None else {"n_draws": 2}
    return mixture(family, **parameters)


@every_family
class TestFits:
    def test_clusters_with_gaps(self, family):
        X, whole, side = gappy_clusters(300)
        model = mixture(family, schedule="anneal", n_draws=6).fit(X)
        known = ~np.isnan(X).all(axis=1)
        assert adjusted_rand_score(side[known], model.labels_[known]) > 0.65
        gaps = np.isnan(X)
        filled = model.impute(X)
        assert (filled[~gaps] == X[~gaps]).all()
        one = gaps.sum(axis=1) == 1
        error = np.sqrt(np.mean((filled[one] - whole[one])[gaps[one]] ** 2))
        assert error < 1.1
        for draw in model.draws_[0]:
            assert draw.arrays["fills"].shape == (gaps.sum(),)
        assert np.isfinite(model.score_samples(X)).all()
        assert model.score_samples(X)[0] == pytest.approx(0.0, abs=1e-12)

    def test_labels_are_those_of_the_central_draw(self, family):
        X, _, _ = gappy_clusters()
        model = mixture(family, n_chains=1, n_draws=7, schedule=PriorGibbs(n_sweeps=2)).fit(X)
        labels = [draw.labels for draw in model.draws_[0]]
        losses = [expected_vi(own, labels) for own in labels]
        assert expected_vi(model.component_labels_, labels) == pytest.approx(min(losses), abs=1e-12)
        with pytest.warns(UserWarning, match="averages over 7 draws"):
            other = mixture(family, n_chains=1, n_draws=7, point_estimate="vi").fit(X)
        assert len(other.labels_) == len(X)

    def test_beside_columns(self, family):
        X = mixed()
        X.loc[[0, 4, 7], "y"] = np.nan
        X.loc[[1, 7], "x"] = np.nan
        model = mixed_model(family, n_draws=3).fit(X)
        for query in ("predict", "score_samples", "surprisal", "new_cluster_proba"):
            assert len(getattr(model, query)(X)) == len(X)
        filled = model.impute(X)
        assert not filled.isna().any(axis=None)
        assert model.draws_[0][0].arrays["fills"].shape == (5,)
        sampled = model.sample(20, given={"x": 10.0, "level": "a"})
        assert isinstance(sampled, pd.DataFrame) and (sampled["x"] == 10.0).all()
        assert sampled["y"].std() > 0

    def test_odd_columns(self, family):
        X, _, _ = gappy_clusters(20)
        X[:, 1] = np.nan  # of this column no cell is known
        model = mixture(family).fit(X)
        assert np.isfinite(model.score_samples(X)).all()
        nothing = mixture(family).fit(np.full((6, 2), np.nan))
        assert np.isfinite(nothing.score_samples([[1.0, np.nan], [0.0, 2.0]])).all()

    @pytest.mark.parametrize(
        "schedule", [PriorGibbs(n_sweeps=3), EnergyAnneal(n_sweeps=8), LinearAnneal(n_sweeps=6)]
    )
    @pytest.mark.few(2)
    def test_same_seed_same_bits(self, family, schedule):
        X, _, _ = gappy_clusters()
        models = [
            mixture(family, schedule=schedule, n_draws=2, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2)
        ]
        same_bits(*models)
        assert len(models[0].labels_) == len(X)

    def test_warm_start_goes_on(self, family):
        X, _, _ = gappy_clusters()
        once = mixture(family, n_draws=5, schedule=LinearAnneal(n_sweeps=6)).fit(X)
        first = mixture(family, n_draws=1, schedule=LinearAnneal(n_sweeps=6), warm_start=True)
        first.fit(X)
        first.set_params(n_draws=4).fit(X)
        assert same_arrays(once.draws_[1][-1].arrays, first.draws_[1][-1].arrays)

    @pytest.mark.parametrize("schedule", [LinearAnneal(n_sweeps=6), PriorGibbs(n_sweeps=3)])
    def test_a_resumed_chain_is_bit_for_bit(self, family, schedule):
        plan = plan_of(family)
        straight = Chain.begin(plan, schedule, np.random.SeedSequence(28))
        straight.run()
        chain = Chain.begin(plan, schedule, np.random.SeedSequence(28))
        while (segment := chain.pacer.next(0.0)) is not None:
            assert chain.make_assignments(segment, StopFlag())
            chain.make_moves(segment, StopFlag())
            chain = Chain.from_arrays(pickle.loads(pickle.dumps(chain.to_arrays())), plan)
            chain.state.validate()
        assert same_arrays(chain.draw(), straight.draw())
        assert len(np.unique(chain.draw()["fills"])) > 10

    def test_what_an_interrupt_leaves_is_completed(self, family):
        """Rows that were not in get the centres of their missing cells' laws."""
        chain = Chain.begin(plan_of(family), LinearAnneal(n_sweeps=6), np.random.SeedSequence(1))
        while chain.state.subsample.size < 20:
            chain.make_assignments(chain.pacer.next(0.0), StopFlag())
        whole = completed(chain.state)
        assert (whole.get_labels() >= 0).all()
        entered = ~np.isin(whole.table.fills(), chain.state.table.fills())
        assert entered.any() and np.isfinite(whole.table.fills()).all()
        assert same_arrays(whole.to_arrays(), completed(chain.state).to_arrays())

    def test_permutations(self, family):
        X, _, side = gappy_clusters(50)
        hyper = {family: {"covariance": [[1.0, 0.4], [0.4, 0.5]]}}
        model = PermutationDPMixture(
            families=family,
            hyperparameters=hyper if family == "known_normal" else "infer",
            n_chains=2,
            schedule=SequentialGibbs(n_sweeps=10),
            random_state=0,
        ).fit(X)
        known = ~np.isnan(X).any(axis=1)
        assert adjusted_rand_score(side[known], model.component_labels_[known]) > 0.6
