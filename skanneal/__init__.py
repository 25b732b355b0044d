"""Nonparametric Bayesian clustering and density estimation by annealed Monte Carlo."""

import typing as _typing

try:
    from . import estimators
    from .estimators import *  # noqa: F403
except ModuleNotFoundError as error:
    from ._native._compiled import not_compiled

    raise not_compiled(error) from None

__version__ = "0.1.0"

if not _typing.TYPE_CHECKING:
    __all__ = estimators.__all__  # the public names, listed where they are imported
