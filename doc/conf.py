"""Sphinx configuration: MyST pages, numpydoc API pages, a sphinx-gallery of examples."""

import inspect
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmarks")]

from fits import ablation_page, page, suite_page, tempered_page
from papers import figures
from skanneal.families import FAMILIES
from skanneal.moves import MOVES
from skanneal.schedules import SCHEDULES

project = "skanneal"
author = "skanneal developers"
copyright = "2026, skanneal developers"
release = version = installed_version("skanneal")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
# The tables under generated/ are included by pages, not pages themselves.
exclude_patterns = ["_build", "generated/table_*.md", "auto_examples/**/*.ipynb"]
templates_path = ["_templates"]
html_math_renderer = "mathml"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = "skanneal"
html_sidebars = {"first_steps": []}  # it has no pages below it
html_theme_options = {"show_prev_next": False, "header_links_before_dropdown": 6}


def registry_table(registry, heading):
    """Markdown table of a registry: each name and the first line of its class's docstring.

    Of an object its `repr` comes before that, on one line: a line break would end the table.
    """
    lines = [f"| {heading} | |", "|---|---|"]
    for name, member in registry.items():
        is_class = inspect.isclass(member)
        summary = (inspect.getdoc(member if is_class else type(member)) or "").partition("\n")[0]
        code = "" if is_class else f"`{' '.join(repr(member).split())}`: "
        lines.append(f"| `{name}` | {code}{summary} |")
    return "\n".join(lines) + "\n"


def write_included(app):
    """Write what the pages include: tables of the registries, so that a registered name appears by
    itself, and the results of benchmarks, so that figures come from the lines that were measured.
    """
    folder = Path(app.srcdir, "generated")
    folder.mkdir(exist_ok=True)
    for heading, registry in (("family", FAMILIES), ("move", MOVES), ("schedule", SCHEDULES)):
        table = registry_table(registry, heading)
        Path(folder, f"table_{heading}.md").write_text(table, encoding="utf-8")
    Path(folder, "table_kinds.md").write_text(page.kinds_in_words(), encoding="utf-8")
    Path(folder, "table_problems.md").write_text(page.tables(), encoding="utf-8")
    tables = suite_page.TABLES | {"ablation": ablation_page.table}
    tables |= {"rungs": tempered_page.table, "ratios": tempered_page.ratios}
    for name, table in tables.items():
        Path(folder, f"table_{name}.md").write_text(table(), encoding="utf-8")
    figures.write_tables(folder)


def setup(app):
    app.connect("builder-inited", write_included)
