"""scikit-learn's decorator of `fit`, with the type that it has: it returns a method as it is."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context

Method = TypeVar("Method", bound=Callable[..., Any])


def validated(method: Method) -> Method:
    """Have a `fit` check the estimator's parameters; nested estimators check their own."""
    return _fit_context(prefer_skip_nested_validation=False)(method)
