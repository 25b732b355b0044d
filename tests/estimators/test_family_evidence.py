"""families="auto" by evidence: who wins, what it costs, and what stays out of it."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skanneal import AnnealedDPMixture, CrossCatPY, PermutationDPMixture
from skanneal.estimators import _contest, _family_evidence
from skanneal.estimators._contest import Contest, Order
from skanneal.estimators._rounds import BLOCK
from skanneal.families import FAMILIES, candidates
from skanneal.parallel import StopFlag
from skanneal.schedules import SequentialGibbs, resolve_schedule

QUICK = {"n_chains": 1, "schedule": SequentialGibbs(n_sweeps=2), "random_state": 0}
INDEPENDENT, COVARIANCE, TAILS = candidates("float")


def correlated(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 1)) + 0.1 * rng.normal(size=(n_rows, 4))


def fitted(X, estimator=AnnealedDPMixture, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**QUICK | parameters).fit(X)


# ---- who wins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
@pytest.mark.parametrize("n_rows", [160, 800])
@pytest.mark.few(3)
def test_covariances_win_where_columns_depend_on_each_other(n_rows, estimator):
    model = fitted(correlated(n_rows), estimator)
    evidence = model.family_evidence_
    assert evidence["winner"] in (COVARIANCE, TAILS)  # a t of many degrees of freedom is as good
    assert list(model.families_) == [evidence["winner"]]
    assert evidence["decided_by"] == "evidence"
    ahead = evidence["log_density"][COVARIANCE][-1] - evidence["log_density"][INDEPENDENT][-1]
    assert ahead > 3 * evidence["standard_error"]
    assert evidence["columns"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
@pytest.mark.parametrize("n_rows", [120, 800])
def test_covariances_do_not_win_where_columns_are_independent(n_rows, estimator):
    """By chance they may: hence noise is allowed for, and no more."""
    X = np.random.default_rng(1).normal(size=(n_rows, 6))
    evidence = fitted(X, estimator).family_evidence_
    ahead = evidence["log_density"][COVARIANCE][-1] - evidence["log_density"][INDEPENDENT][-1]
    assert ahead < 2 * evidence["standard_error"]


def heavy_tailed(n_rows, n_columns, seed):
    """One multivariate t of 4 degrees of freedom."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    return X / np.sqrt(rng.chisquare(4.0, size=(n_rows, 1)) / 4.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(300, 6), (1000, 3)])
@pytest.mark.few(1)
def test_heavy_tails_are_one_cluster(n_rows, n_columns, seed):
    """Of normal rows they are dozens or hundreds. Of three columns a few normal components may do
    as well as a t, by the evidence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AnnealedDPMixture(n_chains=2, random_state=seed)
        model.fit(heavy_tailed(n_rows, n_columns, seed))
    evidence, (winner,) = model.family_evidence_, model.families_
    assert model.n_clusters_ == 1
    if winner != TAILS and n_columns == 3:
        lead = evidence["log_density"][winner][-1] - evidence["log_density"][TAILS][-1]
        assert lead < 2 * evidence["standard_error"]
        return
    assert winner == TAILS
    degrees = [d.hyperparameters[TAILS]["degrees"] for chain in model.draws_ for d in chain]
    assert 2.0 < np.median(degrees) < 8.0


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.few(1)
def test_heavy_tails_are_not_seen_in_gaussians(seed):
    """Or they do no harm: a t of many degrees of freedom is a normal."""
    X = np.random.default_rng(seed).normal(size=(600, 4))
    X[:, 1:] += X[:, :1]
    evidence = fitted(X).family_evidence_
    assert evidence["winner"] == COVARIANCE
    ahead = evidence["log_density"][TAILS][-1] - evidence["log_density"][COVARIANCE][-1]
    assert ahead < 0.02


def test_the_fit_is_that_of_the_named_family():
    X = correlated(150)
    auto, named = fitted(X), fitted(X, families=COVARIANCE)
    assert np.array_equal(auto.labels_, named.labels_)
    assert auto.draws_[0][0].log_joint == named.draws_[0][0].log_joint
    assert named.family_evidence_ is None


def test_iris_has_three_components():
    model = fitted(load_iris().data, schedule="anneal", n_chains=4, n_draws="auto")
    assert model.n_components_ == 3 and model.n_clusters_ in (2, 3)


# ---- when the order is settled ------------------------------------------------------------------


def curves(monkeypatch, of_rival, spread=0.3, luck=0.0):
    """Let the rival's densities be a function of the rows seen, with a spread over rows and the
    luck of a chain; the other's are -10 throughout."""

    def grow(encoder, plan, judge, seen, judged, seed, n_sweeps, state, until, *, stop):
        densities = np.full(len(judged), -10.0 if INDEPENDENT in plan.families else -20.0)
        if COVARIANCE in plan.families:
            noise = np.random.default_rng(judged).normal(size=len(judged))
            densities = of_rival(min(until, len(seen))) + spread * (noise - noise.mean())
            densities += luck * np.random.default_rng(seed.spawn(1)[0]).normal()
        return densities, None, 0

    monkeypatch.setattr(_contest, "grow", grow)
    return fitted(correlated(10_000)).family_evidence_


def test_a_rival_that_gains_is_waited_for(monkeypatch):
    evidence = curves(monkeypatch, lambda n: -9.0 - 600.0 / n)
    first = evidence["log_density"][COVARIANCE][:2]
    assert (first < -10.3).all()  # behind by many standard errors at first
    assert evidence["winner"] == COVARIANCE and len(evidence["n_rows"]) > 3


def test_a_rival_that_does_not_gain_is_not_waited_for(monkeypatch):
    evidence = curves(monkeypatch, lambda n: -11.0)
    assert evidence["winner"] == INDEPENDENT and len(evidence["n_rows"]) == 2


def test_lucky_chains_do_not_settle_the_order(monkeypatch):
    """What differs between chains counts as an error; rows alone would settle it at once."""
    luck = curves(monkeypatch, lambda n: -11.0, luck=2.0)
    assert len(luck["n_rows"]) > 2 and luck["standard_error"] > 0.1


def test_the_last_margin_is_extrapolated(monkeypatch):
    """The rival is behind with three quarters of the rows, but not with all of them."""
    evidence = curves(monkeypatch, lambda n: -9.78 - 2000.0 / n)
    assert evidence["margin"] < 0 and evidence["winner"] == COVARIANCE


# ---- the other folds ----------------------------------------------------------------------------


def never_settled(monkeypatch):
    monkeypatch.setattr(Order, "is_settled", lambda self, worth: False)


class Rows:
    """Stands for a contest's chains: what candidates say of rows, by a rule."""

    def __init__(self, monkeypatch, of_candidates):
        self.of_candidates, self.judging = of_candidates, []
        monkeypatch.setattr(_contest, "grow", self.grow)

    def grow(self, encoder, plan, judge, seen, judged, seed, n_sweeps, state, until, *, stop):
        (family,) = plan.families
        self.judging.append((family, np.sort(judged).tolist()))
        return np.array([self.of_candidates[family](row) for row in judged]), None, 0


@pytest.mark.parametrize("n_rows", [80, 202, 5000])
def test_folds_are_apart_and_hold_all_rows_of_a_small_table(monkeypatch, n_rows):
    say = {INDEPENDENT: lambda row: 0.0, COVARIANCE: lambda row: row % 3, TAILS: lambda row: -9.0}
    rows = Rows(monkeypatch, say)
    evidence = fitted(correlated(n_rows)).family_evidence_
    of_one = {tuple(judged) for family, judged in rows.judging if family == COVARIANCE}
    assert len(of_one) == _contest.FIRST_FOLDS and evidence["winner"] == COVARIANCE
    never_settled(monkeypatch)
    rows.judging = []
    fitted(correlated(n_rows))
    of_one = {tuple(judged) for family, judged in rows.judging if family == COVARIANCE}
    every = np.concatenate([*of_one])
    assert len(of_one) == _contest.FOLDS and len(np.unique(every)) == len(every)
    assert len(every) == min(n_rows, _contest.FOLDS * _contest.MOST_JUDGED)


def test_few_rows_far_out_let_the_other_folds_be_judged(monkeypatch):
    """One row in fifty speaks for heavy tails, and much. Who is surely behind is not asked again,
    and stays as far behind."""
    say = {
        INDEPENDENT: lambda row: -50.0,
        COVARIANCE: lambda row: 0.0,
        TAILS: lambda row: 200.0 if row % 50 == 0 else -1.0,
    }
    rows = Rows(monkeypatch, say)
    evidence = fitted(correlated(600)).family_evidence_
    asked = {family: sum(family == of for of, _ in rows.judging) for family in say}
    assert asked[INDEPENDENT] < asked[COVARIANCE] == asked[TAILS]
    assert evidence["winner"] == TAILS and evidence["margin"] == pytest.approx(3.02)
    means = {family: of[-1] for family, of in evidence["log_density"].items()}
    assert means[TAILS] - means[COVARIANCE] == pytest.approx(3.02)
    assert means[INDEPENDENT] < means[COVARIANCE] - 30.0


def test_a_little_is_not_worth_the_other_folds(monkeypatch):
    noise = np.random.default_rng(0).normal(size=600)
    say = {
        INDEPENDENT: lambda row: -5.0,
        COVARIANCE: lambda row: 0.0,
        TAILS: lambda row: 0.2 * noise[row],
    }
    rows = Rows(monkeypatch, say)
    evidence = fitted(correlated(600)).family_evidence_
    assert evidence["winner"] == COVARIANCE
    assert len({tuple(judged) for _, judged in rows.judging}) == _contest.FIRST_FOLDS
    say[TAILS] = lambda row: 2.0 * noise[row]  # the control: as much may be worth it
    rows.judging = []
    fitted(correlated(600))
    assert len({tuple(judged) for _, judged in rows.judging}) == _contest.FOLDS


# ---- what it costs ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [60, 399, 400, 10_000, 30_000])
def test_work_is_less_than_that_of_a_default_fit(monkeypatch, n_rows):
    """Even if all is tried; half of it if the first folds decide."""
    never_settled(monkeypatch)

    def grow(encoder, plan, judge, seen, judged, seed, n_sweeps, state, until, *, stop):
        path = resolve_schedule("anneal").set_params(n_sweeps=n_sweeps).path(len(seen))
        row_steps = path.assignments[-1] if until == np.inf else 0
        return np.zeros(len(judged)), None, row_steps + len(judged)

    monkeypatch.setattr(_contest, "grow", grow)
    evidence = fitted(np.random.default_rng(0).normal(size=(n_rows, 2))).family_evidence_
    way = resolve_schedule(AnnealedDPMixture().schedule).path(n_rows).assignments[-1]
    fit = AnnealedDPMixture().n_chains * (way + BLOCK * n_rows)  # and no block after the first
    assert 0.5 * fit < 2 * evidence["row_steps"] < 2 * fit
    monkeypatch.setattr(Contest, "judge_others", lambda self, order: False)
    evidence = fitted(np.random.default_rng(0).normal(size=(n_rows, 2))).family_evidence_
    assert 0 < evidence["row_steps"] < 0.5 * fit


def test_work_is_counted(monkeypatch):
    """Two chains of three candidates make all of their sweeps, of 375 rows each, but for what is
    less than one, and in every stage each judges 125 rows."""
    monkeypatch.setattr(Contest, "judge_others", lambda self, order: False)
    evidence = fitted(correlated(500)).family_evidence_
    n_chains, n_stages = _contest.FIRST_FOLDS * 3, len(evidence["n_rows"])
    judged = n_chains * n_stages * 125
    steps = _contest.SWEEPS * resolve_schedule("anneal").path(375).assignments[-1]
    assert evidence["n_rows"][-1] == 375
    assert evidence["row_steps"] == pytest.approx(n_chains * steps + judged, abs=n_chains * 375)


def test_a_chain_grows_through_the_stages(monkeypatch):
    """It goes on from where it was: in parts it is what it is in one."""
    calls, grow = [], _contest.grow

    def spied(*task, stop):
        calls.append((task, grow(*task, stop=stop)))
        return calls[-1][1]

    monkeypatch.setattr(_contest, "grow", spied)
    never_settled(monkeypatch)
    monkeypatch.setattr(Contest, "judge_others", lambda self, order: False)
    evidence = fitted(correlated(500)).family_evidence_
    n_chains = len(calls) // len(evidence["n_rows"])
    (task, _), (_, (densities, _, _)) = calls[0], calls[-n_chains]
    again = grow(*task[:7], None, np.inf, stop=StopFlag())
    assert len(evidence["n_rows"]) == 2 and np.array_equal(densities, again[0])


class Clock:
    """Stands for the module `time`."""

    now = 100.0

    def perf_counter(self):
        return self.now


class Decided(Exception):
    """The fit need not go on."""


def stages_within(monkeypatch, max_time, seconds_per_row):
    """Rows seen by stage, on a clock that only the competition moves; a stage costs by its rows."""
    clock = Clock()
    monkeypatch.setattr("skanneal.parallel._time_limit.time", clock)
    never_settled(monkeypatch)
    monkeypatch.setattr(Contest, "judge_others", lambda self, order: False)

    def grow(encoder, plan, judge, seen, judged, seed, n_sweeps, state, until, *, stop):
        clock.now += seconds_per_row * min(until, len(seen))
        is_over = clock.now - Clock.now > max_time / 3
        return None if is_over else (np.zeros(len(judged)), None, 0)  # as of a stopped chain

    choose_family = _family_evidence.choose_family

    def choose(*arguments):
        raise Decided(choose_family(*arguments))

    monkeypatch.setattr(_contest, "grow", grow)
    monkeypatch.setattr(_family_evidence, "choose_family", choose)
    with pytest.raises(Decided) as decided:
        fitted(correlated(4000), max_time=max_time)
    evidence = decided.value.args[0]
    return evidence["n_rows"].tolist(), evidence["decided_by"], clock.now - Clock.now


@pytest.mark.parametrize(("budget", "n_stages"), [(1.5, 1), (4, 2), (9, 3), (1e4, 5)])
def test_the_competition_takes_at_most_a_third_of_the_time(monkeypatch, budget, n_stages):
    """The first stage takes 1; each further one twice the last, of which it must have the time."""
    n_chains = _contest.FIRST_FOLDS * len(candidates("float"))
    sizes, decided_by, took = stages_within(monkeypatch, 3.0 * budget, 1 / 187 / n_chains)
    assert sizes[0] == 187 and len(sizes) == n_stages and decided_by == "evidence"
    assert took < 1.01 * budget


def test_without_time_nothing_competes(monkeypatch):
    """The first stage is stopped, and does not count."""
    sizes, decided_by, _ = stages_within(monkeypatch, 1e-3, 1.0)
    assert sizes == [] and decided_by == "max_time, which left no time to compete"


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (correlated(59), "fewer than 60 rows"),
        (correlated(100)[:, :1], "a single column without gaps"),
        (np.random.default_rng(0).normal(size=(100, 101)), "more than 100 columns"),
    ],
)
def test_some_tables_are_decided_at_no_cost(monkeypatch, X, reason):
    monkeypatch.setattr(Contest, "next_stage", None)
    evidence = fitted(X).family_evidence_
    assert (evidence["winner"], evidence["decided_by"]) == (INDEPENDENT, reason)
    assert evidence["row_steps"] == 0 and np.isnan(evidence["margin"])


# ---- what stays out of it -----------------------------------------------------------------------


def test_only_numbers_left_to_auto_compete():
    X = correlated(200)
    other = np.random.default_rng(1).normal(size=(200, 1))
    levels = np.where(other > 0, "a", "b").astype(object)
    rows = np.hstack([levels, X.astype(object), np.full((200, 1), 2.5), other])
    model = fitted(rows, families={"normal": [6]})
    assert model.family_evidence_["columns"].tolist() == [1, 2, 3, 4]
    families = {name: columns.tolist() for name, columns in model.families_.items()}
    assert families.pop(model.family_evidence_["winner"]) == [1, 2, 3, 4]
    assert families == {INDEPENDENT: [6], "categorical": [0], "constant": [5]}
    assert np.isfinite(model.score(rows))


def test_columns_with_gaps_compete_if_all_candidates_take_gaps():
    X = correlated(200)
    X[3, 1] = np.nan
    evidence = fitted(X).family_evidence_
    takes = all(FAMILIES[name].takes_gaps for name in candidates("float"))
    assert evidence["columns"].tolist() == ([0, 1, 2, 3] if takes else [0, 2, 3])


@pytest.mark.parametrize(
    "parameters",
    [{"families": "normal"}, {"hyperparameters": {"normal": {"kappa0": 1.0}}}],
)
def test_a_named_family_does_not_compete(parameters):
    model = fitted(correlated(100), **parameters)
    assert model.family_evidence_ is None and list(model.families_) == ["normal"]


def test_views_have_families_that_they_can_divide():
    evidence = fitted(correlated(100), CrossCatPY).family_evidence_
    assert set(evidence["log_density"]) == {INDEPENDENT, COVARIANCE}


def test_a_move_that_views_of_covariances_do_not_have():
    model = fitted(correlated(100), CrossCatPY, moves=("gibbs", "view_annealing"))
    assert list(model.families_) == [INDEPENDENT] and model.family_evidence_ is None


@pytest.mark.parametrize(
    "parameters",
    [
        {"partition_prior": "finite"},
        {"missing_indicator": [1]},
        {"margins": "data"},
        {"max_time": 8.0},
        {"view_concentration": 1.0, "discount": 0.0},
    ],
)
@pytest.mark.few(2)
def test_views_of_covariances_beside_other_options(parameters):
    """Two lines and a level: each line is a view of its own, or part of one."""
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 150, 1))
    X = np.hstack([one, one, two, two]) + 0.2 * rng.normal(size=(150, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    model = fitted(np.c_[X, rng.integers(2, size=150)], CrossCatPY, **parameters)
    assert model.families_[COVARIANCE].tolist() == [0, 1, 2, 3]
    views = model.view_labels_
    assert views[0] == views[1] and views[2] == views[3]
    assert np.isfinite(model.score_samples(X := np.c_[X, np.zeros(150)])).all()
    assert np.isfinite(model.impute(X)).all()


def test_candidates_are_of_one_sort_of_cell():
    """The encoder exchanges one for another without encoding any cell anew."""
    assert len(candidates("float")) >= 2
    for dtype in ("float", "levels", "boolean"):
        assert len({FAMILIES[name].cells for name in candidates(dtype)}) == 1


# ---- the same again -----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, PermutationDPMixture, CrossCatPY])
@pytest.mark.few(1)
def test_evidence_is_a_function_of_the_table(estimator):
    """Whatever the seed, and however many chains run at a time."""
    X = np.c_[correlated(150), np.exp(correlated(150, 1))]
    one, two, other = (
        fitted(X, estimator, **parameters).family_evidence_
        for parameters in ({}, {"n_jobs": 2}, {"random_state": 1})
    )
    assert one["margin"] == two["margin"] == other["margin"]
    amounts = [evidence["logarithms"]["margin"].tolist() for evidence in (one, two, other)]
    assert amounts[0] == amounts[1] == amounts[2]
    again = fitted(X[::-1], estimator).family_evidence_
    assert again["margin"] != one["margin"]  # rows are judged at other places


def test_evidence_does_not_hang_on_the_schedule():
    X = correlated(150)
    long = fitted(X, schedule=SequentialGibbs(n_sweeps=4), n_chains=2)
    assert fitted(X).family_evidence_["margin"] == long.family_evidence_["margin"]


def test_warm_start_keeps_the_family(monkeypatch):
    X = correlated(150)
    model = fitted(X, warm_start=True, random_state=None)
    evidence = model.family_evidence_
    monkeypatch.setattr(Contest, "next_stage", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert model.family_evidence_ is evidence and list(model.families_) == [COVARIANCE]


def test_verbose_says_what_was_decided(capsys):
    fitted(correlated(150), verbose=1)
    assert capsys.readouterr().out.startswith(f"families    {COVARIANCE}, ahead by ")
    fitted(correlated(50), verbose=1)
    assert "without a competition: fewer than 60 rows" in capsys.readouterr().out
