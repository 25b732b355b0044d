"""What the pages' Python blocks print, shown below each block.

    python doc/snippets.py                  # run all pages, and write what their blocks print
    python doc/snippets.py README.md        # one page, from the project's root

The blocks of a page run in order, in one namespace. A block that prints is followed by a block of
text with what it printed. A test runs the pages, too, and fails where the two differ.
"""

import io
import os
import re
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stdout
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "doc").glob("*.md"))]


def pages():
    """The pages with a Python block, as paths from the project's root."""
    found = (page for page in WRITTEN if BLOCK.search(page.read_text(encoding="utf-8")))
    return [page.relative_to(ROOT).as_posix() for page in found]


def printed(text, name):
    """Run the blocks of a page in the working folder, to which they may write.

    Parameters
    ----------
    text : str
        The page.
    name : str
        What tracebacks call it.

    Yields
    ------
    code, shown, output : str
        A block, the text that the page shows below it, and what it printed.
    """
    namespace = {}
    for code, shown in BLOCK.findall(text):
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(code, name, "exec"), namespace)
        yield code, shown, "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def with_outputs(text, name):
    """The page with what its blocks print."""
    outputs = (output for *_, output in list(printed(text, name)))

    def shown(match):
        output = next(outputs)
        return f"```python\n{match[1]}```\n" + (f"\n```text\n{output}```\n" if output else "")

    return BLOCK.sub(shown, text)


def main(*names):
    os.environ.setdefault("MPLBACKEND", "Agg")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in names or pages():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            new = with_outputs(text, name)
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"{name} has new outputs")


if __name__ == "__main__":
    main(*sys.argv[1:])
