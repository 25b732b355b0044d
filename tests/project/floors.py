"""The oldest versions that the package says it runs on, one requirement a line: `make floors`.

What the build needs, what a user gets, the extras that the tests use, and the tests themselves.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
EXTRAS = ("plot", "pandas", "arviz", "dask", "test")
FLOOR = re.compile(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)")


def requirements():
    """All requirements, without those on extras of the package itself."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    lists = [project["build-system"]["requires"], project["project"]["dependencies"]]
    lists += [project["project"]["optional-dependencies"][extra] for extra in EXTRAS]
    return [one for several in lists for one in several if not one.startswith("skanneal[")]


def floors():
    """Each distribution's oldest version: the highest floor where several name it."""
    found = {}
    for requirement in requirements():
        name, version = FLOOR.match(requirement).groups()
        found[name] = max(found.get(name, version), version, key=release)
    return found


def release(version):
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in floors().items()), sep="\n")
