"""What the pages show runs, and prints what they say: their Python blocks, in order, and the demo,
without a warning.

In a notebook an estimator is a page too, whose links must lead somewhere.
"""

import os
import re
import subprocess
import sys

import pytest
from sklearn.utils import estimator_html_repr

import skanneal
from oracles.places import ROOT
from skanneal import displays, summary

sys.path.append(str(ROOT / "doc"))

from snippets import BLOCK, WRITTEN, pages, printed, with_outputs

PAGES = pages()
LINK = re.compile(r"\]\(([^)#:]+\.(?:md|png|svg|py|cff))(?:#[^)]*)?\)|\]\((LICENSE)\)")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.few(5)
def test_python_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may write files
    for code, shown, output in printed((ROOT / page).read_text(encoding="utf-8"), page):
        assert output == shown, f"{code}\nafter a look at it: python doc/snippets.py {page}"


def test_a_page_that_shows_something_else_is_seen():
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    ((_, shown, output),) = printed(page, "page")
    assert (shown, output) == ("2\n", "1\n")
    assert with_outputs(page, "page") == page.replace("2", "1")
    silent = "```python\nx = 1\n```\n\n```text\n2\n```\n"
    assert with_outputs(silent, "page") == "```python\nx = 1\n```\n"


@pytest.mark.slow
@pytest.mark.parametrize("package", ["distributed", "ray"])
def test_blocks_that_need_an_extra_run(package, tmp_path, monkeypatch):
    """Those marked "py": they follow the page's other blocks, and are all on one page."""
    pytest.importorskip(package, reason="an extra of its own")
    monkeypatch.chdir(tmp_path)
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    (text,) = (text for text in texts.values() if "```py\n" in text)
    before, *_ = text.split("```py\n")
    extra = re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (block,) = (block for block in extra if package in block)
    namespace = {}
    for code in (*(code for code, _ in BLOCK.findall(before)), block):
        exec(compile(code, "page", "exec"), namespace)


def test_first_steps_are_short_and_one_click_from_the_readme():
    """Each task takes at most five lines after the first block, which imports and makes a table."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](doc/first_steps.md)" in readme
    text = (ROOT / "doc" / "first_steps.md").read_text(encoding="utf-8")
    _, *sections = text.split("\n## ")
    assert len(sections) == 7
    for section in sections:
        ((block, _),) = BLOCK.findall(section)
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        assert len(lines) <= 5, section.splitlines()[0]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        assert (page.parent / (match[1] or match[2])).exists(), match[0]


@pytest.mark.parametrize("room", [skanneal, displays, summary], ids=lambda room: room.__name__)
def test_every_public_class_and_function_has_a_page(room):
    listed = set(re.findall(r"^   (\w+)$", (ROOT / "doc" / "api.md").read_text(), re.MULTILINE))
    members = {name for name in room.__all__ if callable(getattr(room, name))}
    assert members - listed == set()


def test_every_page_is_in_a_table_of_contents():
    pages = {page.stem for page in WRITTEN if page.parent.name == "doc"}
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", "".join(_texts()), re.MULTILINE | re.DOTALL)
    entries = [line for tree in trees for line in tree.splitlines() if not line.startswith(":")]
    assert sorted(filter(None, entries)) == sorted(pages - {"index"} | {"auto_examples/index"})


def _texts():
    return (page.read_text(encoding="utf-8") for page in WRITTEN)


@pytest.mark.parametrize("name", skanneal.__all__)
def test_html_representation_has_no_links_to_pages_of_others(name):
    assert "https://scikit-learn.org" not in estimator_html_repr(getattr(skanneal, name)())


@pytest.mark.slow
def test_demo_prints_no_warning(tmp_path):
    """Where there are no frames, as in the environment that `make demo` builds."""
    picture, absent = tmp_path / "demo.png", tmp_path / "absent"
    absent.mkdir()
    for name in ("pandas", "polars"):
        (absent / f"{name}.py").write_text("raise ModuleNotFoundError\n")
    path = os.pathsep.join([str(absent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), str(picture)]
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": path}}
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    assert done.stderr == ""
    assert "chains agree: yes" in done.stdout
    assert picture.stat().st_size > 10_000


def test_the_guide_says_who_sets_each_parameter():
    """Of every estimator each parameter, and no other."""
    guide = (ROOT / "doc/user_guide.md").read_text()
    section = guide.split("## What there is to set")[1].split("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", section))
    classes = [getattr(skanneal, name) for name in skanneal.__all__]
    estimators = [of for of in classes if hasattr(of, "_get_param_names")]
    assert named == {name for of in estimators for name in of._get_param_names()}
