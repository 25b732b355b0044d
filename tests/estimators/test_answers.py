"""Whether chains agree is said answer by answer; a warning names those that they differ in."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.estimators import _answers
from skanneal.estimators._verdict import disagreement, settled
from skanneal.predictive._crosscat import CrossCatQueries


def clusters(n_rows, distance, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 2)) + distance * (np.arange(n_rows)[:, None] % 2)


def quick(**parameters):
    defaults = {"schedule": "linear_anneal", "n_draws": 10, "random_state": 0}
    return AnnealedDPMixture(families="normal", **(defaults | parameters))


@pytest.fixture
def at_odds(monkeypatch):
    """Fits whose chains are said to disagree by some figure, whatever they did."""

    def judged(*arguments):
        found = of_traces(*arguments)
        figure = {"value": 9.0, "limit": 1.1, "agrees": False}
        figures = found["convergence_"]["figures"] | {"r_hat of log_joint": figure}
        return found | {
            "converged_": False,
            "convergence_": found["convergence_"] | {"figures": figures},
        }

    from skanneal.estimators import _base_chains

    of_traces = _base_chains.judged
    monkeypatch.setattr(_base_chains, "judged", judged)


@pytest.mark.usefixtures("at_odds")
@pytest.mark.parametrize("estimate", ["clusters", "map"])
def test_chains_that_give_the_same_answers_are_settled_and_nothing_is_said(estimate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quick(point_estimate=estimate).fit(clusters(200, 9.0))
    found = model.convergence_
    cut = {"separation"} if estimate == "clusters" else set()
    assert set(found["answers"]) == {"clusters", "number of clusters", "density"} | cut
    assert found["settled"] and not model.converged_
    assert found["answers"]["clusters"]["value"] == 1.0
    assert found["answers"]["number of clusters"]["value"] == 1.0
    assert found["answers"]["density"]["value"] < 0.01


@pytest.mark.usefixtures("at_odds")
@pytest.mark.parametrize("way", ["clusters", "number", "density"])
def test_a_chain_that_says_something_else_is_seen(way, monkeypatch):
    """The negative control: one chain's answer is another one."""
    X, faulty = clusters(200, 9.0), []
    own, densities = _answers._own_clusters, _answers._of_density

    def own_clusters(estimator, draws, n_clusters, plan, encoder):
        labels, number = own(estimator, draws, n_clusters, plan, encoder)
        faulty.append(draws)
        if way == "clusters" and len(faulty) == 2:
            labels = np.random.default_rng(0).permutation(labels)
        return labels, number + (way == "number" and len(faulty) < 3)

    def of_density(log_densities):
        shifts = np.zeros(len(log_densities))
        shifts[1] = -3.0 * (way == "density")
        return densities(log_densities + shifts[:, None])

    monkeypatch.setattr(_answers, "_own_clusters", own_clusters)
    monkeypatch.setattr(_answers, "_of_density", of_density)
    named = {"clusters": "the clusters;", "number": "the number of clusters;"}
    with pytest.warns(ConvergenceWarning, match=f"but not on {named.get(way, 'the density;')}"):
        model = quick().fit(X)
    answers = model.convergence_["answers"]
    assert not model.convergence_["settled"]
    assert [answer["agrees"] for answer in answers.values()].count(False) == 1


@pytest.mark.usefixtures("at_odds")
@pytest.mark.parametrize(("shuffled", "others", "asked"), [(1, 0, 4), (0, 2, 4), (1, 2, 2)])
def test_no_chain_is_asked_that_changes_nothing(shuffled, others, asked, monkeypatch):
    """Of four chains, the first ones have other clusters, or another number of them."""
    own, n_asked = _answers._own_clusters, []

    def own_clusters(*given):
        labels, number = own(*given)
        n_asked.append(1)
        if len(n_asked) <= shuffled:
            labels = np.random.default_rng(0).permutation(labels)
        return labels, number + (len(n_asked) <= others)

    monkeypatch.setattr(_answers, "_own_clusters", own_clusters)
    with pytest.warns(ConvergenceWarning):
        answers = quick(n_chains=4).fit(clusters(200, 9.0)).convergence_["answers"]
    assert len(n_asked) == asked
    assert answers["clusters"]["agrees"] == (not shuffled)
    assert answers["number of clusters"]["agrees"] == (not others)


def test_settled_is_what_agrees_in_everything_or_in_every_answer():
    agreed, open_ = {"agrees": True}, {"agrees": False}
    assert settled(True, {}) and settled(False, {"clusters": agreed})
    assert not settled(False, {}) and not settled(False, {"clusters": agreed, "density": open_})
    for converged in (False, True):  # the cut says nothing of chains, and they nothing of it
        assert not settled(converged, {"clusters": agreed, "separation": open_})
    assert settled(True, {"separation": agreed}) and not settled(False, {"separation": agreed})


@pytest.mark.usefixtures("at_odds")
def test_nothing_is_compared_of_one_chain_or_under_a_time_limit():
    X = clusters(60, 9.0)
    alone = quick(n_chains=1).fit(X)
    assert set(alone.convergence_["answers"]) == {"separation"}
    assert not alone.convergence_["settled"]
    with pytest.warns(ConvergenceWarning, match="The chains do not agree: "):
        limited = quick(max_time=1.0).fit(X)
    assert set(limited.convergence_["answers"]) == {"separation"}
    assert not limited.convergence_["settled"]


def test_chains_that_agree_in_everything_are_settled():
    model = AnnealedDPMixture(families="normal", random_state=0).fit(clusters(200, 9.0))
    assert model.converged_ and model.convergence_["settled"]
    assert model.convergence_["answers"] == {
        "separation": {"value": 0.0, "limit": 0.05, "agrees": True}
    }


@pytest.mark.parametrize(
    ("sureness", "separation", "value"),
    [
        ([0.2, 0.86, 0.99], 0.9, 0.5),  # it would be cut if 0.15 were enough of a doubt
        ([0.2, 0.92, 0.99], 0.9, 1 / 3),  # and not any more if 0.067 were asked for
        ([0.2, 0.84, 0.94], 0.9, 0.0),
        ([0.05, 0.84, 0.94], 0.4, 0.0),
        ([0.15, 0.84, 0.94], 0.4, 1 / 3),
    ],
)
def test_a_cut_hangs_on_joins_that_are_about_as_sure(sureness, separation, value):
    """Three joins of four components, and how the number of clusters would differ."""
    evidence = np.zeros((3, 4))
    evidence[:, :2], evidence[:, 3] = [[0, 1], [2, 4], [3, 5]], [2, 3, 4]
    evidence[:, 2] = -np.log1p(-np.array(sureness))
    fitted = {"_clusters": SimpleNamespace(joins=SimpleNamespace(evidence=evidence))}
    own = AnnealedDPMixture(separation=separation)
    said = _answers.of_separation(own, fitted)["separation"]
    assert said["value"] == pytest.approx(value) and said["agrees"] == (value == 0.0)
    for other in ({"n_clusters": 2}, {"separation": 0.0}):  # there is nothing to hang on
        assert _answers.of_separation(AnnealedDPMixture(**other), fitted) == {}
    assert _answers.of_separation(own, {"_clusters": None}) == {}


def test_what_hangs_on_the_cut_is_not_settled_and_nothing_is_said_of_chains():
    X = clusters(200, 2.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AnnealedDPMixture(families="normal", random_state=0).fit(X)
        sure = model.valley_sureness_[0]
        model.cut(X, separation=1.0 - 1.2 * (1.0 - sure))
        assert model.n_clusters_ == 2 and not model.convergence_["settled"] and model.converged_
        assert model.convergence_["answers"]["separation"]["value"] == 0.5
        model.cut(X, n_clusters=2)
    assert model.convergence_["answers"] == {} and model.convergence_["settled"]


@pytest.mark.usefixtures("at_odds")
def test_views_have_the_dependence_of_columns_beside_these():
    rng = np.random.default_rng(0)
    X = np.column_stack([clusters(150, 8.0), rng.normal(size=(150, 2))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CrossCatPY(families="normal", random_state=1).fit(X)
    answer = model.convergence_["answers"]["dependence of columns"]
    chains = [
        CrossCatQueries(chain, None, model._encoder).dependence_probability(None)
        for chain in model.draws_
    ]
    assert 0.0 <= answer["value"] <= np.ptp(chains, axis=0).max()
    several = np.count_nonzero(model.chain_weights_) > 1  # one chain alone agrees with none
    assert answer["agrees"] == (several and answer["value"] <= answer["limit"])


def test_what_a_warning_says_has_no_figures():
    def answers(*agree):
        names = ("clusters", "number of clusters", "density")
        return {name: {"agrees": is_so} for name, is_so in zip(names, agree)}

    figures = {"r_hat of log_joint": {"value": 1.3, "limit": 1.1, "agrees": False}}
    common = {"figures": figures, "agreeing": np.ones(2, dtype=bool)}
    (said,) = disagreement(common | {"answers": answers(True, False, True)}, "More.")
    assert said.startswith(
        "The chains agree on the clusters and the density, but not on the number"
    )
    (said,) = disagreement(common | {"answers": answers(False, False, False)}, "More.")
    assert "do not agree on the clusters, number of clusters and the density" in said
    assert disagreement(common | {"answers": answers(True, True, True)}, "More.") == []
    at_odds = common | {"answers": answers(False, False, True)}
    assert disagreement(at_odds, "More.", ["density"]) == []  # of nothing that is not asked for
    (said,) = disagreement(at_odds, "More.", ["clusters"])
    assert said.startswith("The chains do not agree on the clusters;")
