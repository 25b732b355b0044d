"""What an import says where the compiled modules are missing, as in a source tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oracles.places import ROOT
from skanneal._native import _compiled

PACKAGE = ROOT / "skanneal"


def said(folder, *others):
    """The last line of `import skanneal` where the package has no compiled modules."""
    shutil.copytree(
        PACKAGE,
        folder / "skanneal",
        ignore=lambda _, names: [name for name in names if Path(name).suffix in {".so", ".pyd"}],
    )
    for other in others:
        (folder / other).touch()
    run = subprocess.run(
        [sys.executable, "-c", "import skanneal"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 1
    return run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("others", "advice"),
    [(["setup.py"], "`pip install .` in {}, and start Python in another folder"), ([], "again")],
    ids=["source tree", "installation"],
)
@pytest.mark.few(1)
def test_an_import_without_compiled_modules_says_what_to_do(others, advice, tmp_path):
    message = said(tmp_path, *others)
    assert message.startswith("ImportError: skanneal.")
    assert f"is not compiled for this Python: {tmp_path / 'skanneal'}" in message
    assert advice.format(tmp_path) in message
    assert ("make build" in message) == bool(others)


def test_what_is_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "PACKAGE", tmp_path / "skanneal")
    error = ModuleNotFoundError(name="skanneal.room._base")
    assert "has nothing that is called _base, but" in str(_compiled.not_compiled(error))
    (tmp_path / "skanneal" / "room").mkdir(parents=True)
    for suffix in (".pyx", ".cpython-30-x86_64-linux-gnu.so"):
        (tmp_path / "skanneal" / "room" / f"_base{suffix}").touch()
    said = str(_compiled.not_compiled(error))
    assert "has _base.cpython-30-x86_64-linux-gnu.so, _base.pyx, but no file that ends in" in said


@pytest.mark.parametrize("name", ["numpy", "numpy.room._base", "skanneal", None])
def test_an_error_of_another_module_stays_as_it_is(name):
    error = ModuleNotFoundError(name=name)
    assert _compiled.not_compiled(error) is error
