"""What to do where the package's compiled modules are missing."""

# SPDX-License-Identifier: BSD-3-Clause

import importlib.machinery
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def not_compiled(error):
    """Return the ImportError that says what was looked for, what is there, and what to do.

    Parameters
    ----------
    error : ModuleNotFoundError
        Of the package's own import.

    Returns
    -------
    error : ImportError
        The same error, if it is about a module that is not the package's.
    """
    package, *parts = (error.name or "").split(".")
    if package != PACKAGE.name or not parts:
        return error
    module = PACKAGE.joinpath(*parts)
    found = sorted(path.name for path in module.parent.glob(f"{module.name}.*"))
    there = ", ".join(found) if found else f"nothing that is called {module.name}"
    if (PACKAGE.parent / "setup.py").exists():
        advice = (
            "This is a source tree. Either install it, with `pip install .` in "
            f"{PACKAGE.parent}, and start Python in another folder, or compile it in place, with "
            "`make build` there."
        )
    else:
        advice = "The installation is incomplete, or of another Python. Install skanneal again."
    return ImportError(
        f"{error.name} is not compiled for this Python: {module.parent} has {there}, but no file "
        f"that ends in {importlib.machinery.EXTENSION_SUFFIXES[0]}. {advice}",
        name=error.name,
    )
