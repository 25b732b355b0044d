"""`make digests`: it sees a single bit, and has a case for every member of every registry."""

import inspect

import numpy as np
import pytest

import skanneal
from harness import digest_cases, digests
from harness import digest_records as records
from skanneal import likelihoods, partition_priors, schedules, tempering

NO_QUESTIONS = {  # methods that fit, are scikit-learn's, or say in another form what is there
    *("fit", "fit_predict", "fit_transform", "n_iter_"),
    *("get_params", "get_metadata_routing", "cut"),
    *("describe_clusters", "explain_outliers", "to_arviz"),
}


CASES = dict(digest_cases.cases())


def arrays(**changed):
    """A case's arrays, some of them changed or added."""
    return {"trace_/log_joint": np.array([1.0, np.nan, 0.0]), "labels_": np.arange(3)} | changed


def flipped(array, bit):
    """The array with one bit changed."""
    words = array.copy()
    words.view(np.uint64)[bit // 64] ^= np.uint64(1 << bit % 64)
    return words


# ---- comparing ----------------------------------------------------------------------------------


def test_equal_arrays_are_equal():
    assert digests.compare(arrays(), arrays()) is None


@pytest.mark.parametrize("bit", [0, 63, 64, 115, 128, 191])
def test_a_single_bit_is_seen(bit):
    name = "trace_/log_joint"
    changed = arrays() | {name: flipped(arrays()[name], bit)}
    assert digests.compare(arrays(), changed).startswith(f"{name}: by ")


def test_the_largest_difference_is_told():
    changed = arrays(labels_=np.array([0, 3, 0]))
    assert digests.compare(arrays(), changed) == "labels_: by 2 at most"


def test_another_type_shape_or_text_is_seen():
    assert "int64[3] became int32[3]" in digests.compare(
        arrays(), arrays(labels_=np.arange(3, dtype=np.int32))
    )
    assert "became" in digests.compare(arrays(), arrays(labels_=np.arange(3)[:, None]))
    texts = arrays(name=np.array("normal")), arrays(name=np.array("poisson"))
    assert digests.compare(*texts) == "name: other text"


def test_a_missing_key_is_seen_on_either_side():
    more = arrays(n_sweeps_=np.array(3.0))
    assert digests.compare(more, arrays()) == "n_sweeps_: only in the old one"
    assert digests.compare(arrays(), more) == "n_sweeps_: only in the new one"


def test_a_renamed_key_is_compared_under_its_new_name():
    old, new = {"trace_/beta": np.zeros(2)}, {"trace_/size": np.zeros(2)}
    names = {"beta": "size"}
    assert digests.compare(old, new) is not None
    for sides in ((old, new), (old, old), (new, new)):
        assert digests.compare(*sides, names) is None
    assert digests.compare(old, {"trace_/size": np.ones(2)}, names) == "trace_/size: by 1 at most"


def test_a_case_of_one_side_passes_and_one_that_fails_does_not():
    old = {"same": arrays(), "gone": arrays(), "broken": arrays(), "other": arrays()}
    new = {"same": arrays(), "broken": "ValueError: no", "other": {}, "added": arrays()}
    passes = {case: passed for case, passed, _ in digests.verdicts(old, new)}
    assert passes == {"same": True, "gone": True, "broken": False, "other": False, "added": True}


# ---- the cases ----------------------------------------------------------------------------------


def test_a_case_gives_the_same_arrays_twice_and_others_for_another_seed():
    case = CASES["family/normal/plain"]
    first, second = (dict(records.flatten(case())) for _ in range(2))
    assert digests.compare(first, second) is None
    other = digest_cases.mixture(families="normal", random_state=1)
    third = dict(records.flatten(records.record(other, digest_cases.cells("normal"))))
    assert digests.compare(first, third).startswith("trace_/")
    assert not any(
        "object" in str(array.dtype) or " at 0x" in str(array) for array in first.values()
    )


def classes_of(module, base):
    """The public classes of a module below a base."""
    members = (getattr(module, name) for name in module.__all__)
    found = [c for c in members if inspect.isclass(c) and issubclass(c, base) and c is not base]
    return [c.__name__ for c in found if not c.__name__.startswith("Base")]


def members():
    """How the names of each member's cases begin, for every registry."""
    yield from (f"estimator/{name}/" for name in skanneal.__all__)
    yield from (f"family/{name}/" for name in digest_cases.FAMILIES)
    yield from (f"move/{name}" for name in {**digest_cases.MOVES, **digest_cases.COLUMN_MOVES})
    yield from (f"schedule/{name}" for name in schedules.SCHEDULES)
    yield from (f"schedule/{n}/" for n in classes_of(schedules, schedules.BaseSchedule))
    yield from (f"ladder/{name}" for name in classes_of(schedules, schedules.BaseLadder))
    yield from (f"likelihood/{name}/" for name in likelihoods.LIKELIHOODS)
    algorithms = digest_cases.options(skanneal.AcceleratedDPMixture, "algorithm")
    yield from (f"likelihood/normal/{name}" for name in algorithms)
    yield from (f"prior/{p.__name__}/" for p in partition_priors.PARTITION_PRIORS.values())
    yield from (f"tempering/mean/{name}/" for name in tempering.METHODS)
    yield from (f"tempering/mean/none/{name}" for name in tempering.INNER)
    yield from (f"backend/{name}" for name in ("threads", "processes", "dask"))


@pytest.mark.parametrize("member", list(members()))
def test_every_member_has_a_case(member):
    assert any(name.startswith(member) for name in CASES)


@pytest.mark.parametrize("name", skanneal.__all__)
def test_every_question_to_an_estimator_is_asked(name):
    methods = {
        method
        for method in dir(getattr(skanneal, name))
        if not method.startswith(("_", "set_")) and method not in NO_QUESTIONS
    }
    assert methods <= {*records.ABOUT_ROWS, *records.ABOUT_OBSERVATIONS, *records.ABOUT_NONE}


def test_a_new_member_has_a_case_and_a_new_estimator_without_one_is_an_error(monkeypatch):
    monkeypatch.setitem(digest_cases.FAMILIES, "other", digest_cases.FAMILIES["normal"])
    assert "family/other/plain" in dict(digest_cases.cases())
    monkeypatch.setattr(skanneal, "__all__", [*skanneal.__all__, "OtherMixture"])
    with pytest.raises(KeyError, match="OtherMixture"):
        dict(digest_cases.cases())
