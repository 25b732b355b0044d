"""Settings shared by all tests, and the choice of the variants that `make test` runs."""

import os
from collections import defaultdict

import pytest

# The displays' tests draw without a screen, whatever the machine.
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves the slow ones out
def pytest_collection_modifyitems(items):
    """Of a test marked few(n), n variants are quick; the others are slow."""
    variants = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("slow"):
            variants[item.nodeid.split("[")[0]].append(item)
    for of_one_test in variants.values():
        (n,) = of_one_test[0].get_closest_marker("few").args
        quick = {round(i * (len(of_one_test) - 1) / max(n - 1, 1)) for i in range(n)}
        for i, item in enumerate(of_one_test):
            if i not in quick:
                item.add_marker(pytest.mark.slow)
