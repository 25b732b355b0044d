"""The floors of dependencies: one each, the same for building and running."""

from project.floors import FLOOR, floors, requirements


def test_every_requirement_has_one_floor():
    found = {}
    for requirement in requirements():
        name, version = FLOOR.match(requirement).groups()
        found.setdefault(name, set()).add(version)
    assert {name: versions for name, versions in found.items() if len(versions) > 1} == {}
    assert {"numpy", "scipy", "scikit-learn", "arviz-stats", "pandas", "dask"} <= set(found)
    assert floors() == {name: versions.pop() for name, versions in found.items()}


def test_numpy_is_the_one_that_arviz_stats_needs():
    """And that SciPy 1.13 and pandas 2.2.2 were the first to be built for."""
    assert int(floors()["numpy"].split(".")[0]) >= 2
