"""What the pages show runs: their Python blocks, in order, and the demo, without a warning.

In a notebook an estimator is a page too, whose links must lead somewhere.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.utils import estimator_html_repr

import skanneal

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]
    if BLOCK.search(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page):
    namespace = {}
    for block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        exec(compile(block, page, "exec"), namespace)


@pytest.mark.parametrize("name", skanneal.__all__)
def test_html_representation_has_no_links_to_pages_of_others(name):
    assert "https://scikit-learn.org" not in estimator_html_repr(getattr(skanneal, name)())


def test_demo_prints_no_warning(tmp_path):
    picture = tmp_path / "demo.png"
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr == ""
    assert "clusters found" in done.stdout
    assert picture.stat().st_size > 10_000
