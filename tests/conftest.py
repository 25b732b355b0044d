"""Settings shared by all tests, the choice of the variants that `make test` runs, and long runs
that go on where they ended."""

import hashlib
import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest

# What fails in a helper is shown as what fails in a test.
pytest.register_assert_rewrite("oracles")
# The displays' tests draw without a screen, whatever the machine.
os.environ.setdefault("MPLBACKEND", "Agg")
# What a shell starts in the background ignores interrupts, which some tests need.
signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).parent.parent
PASSED = ROOT / ".pytest_cache" / "passed"  # a file per state of the sources
KNOWN = "SKANNEAL_PASSED"  # variable with the file that all of a run's processes read


def pytest_addoption(parser):
    parser.addoption(
        "--resume",
        action="store_true",
        help="leave out tests that passed in earlier runs with this option and these sources",
    )


def pytest_configure(config):
    if config.getoption("resume") and not hasattr(config, "workerinput"):
        PASSED.mkdir(parents=True, exist_ok=True)
        config.resumed = PASSED / digest_of_sources()
        config.resumed.touch()
        known = PASSED / f"before-{os.getpid()}"  # what this run adds is not yet in it
        known.write_bytes(config.resumed.read_bytes())
        os.environ[KNOWN] = str(known)


def pytest_unconfigure(config):
    if hasattr(config, "resumed"):
        Path(os.environ.pop(KNOWN)).unlink()


def digest_of_sources():
    """Of all that tests read: the package, the tests, documents, examples and benchmarks."""
    paths = [path for path in ROOT.glob("*.*") if path.is_file()]
    for folder in ("skanneal", "tests", "doc", "examples", "benchmarks"):
        paths += (ROOT / folder).rglob("*.*")
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.suffix in {".py", ".pyx", ".pxd", ".h", ".md", ".toml"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Reports:
    """Notes the tests that pass, up to their end; only the process that collects all reports has
    one."""

    def __init__(self, path):
        self.path, self.called = path, set()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.called.add(report.nodeid)
        elif report.when == "teardown" and report.passed and report.nodeid in self.called:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


def pytest_sessionstart(session):
    if hasattr(session.config, "resumed"):
        session.config.pluginmanager.register(Reports(session.config.resumed))


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves the slow ones out
def pytest_collection_modifyitems(config, items):
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
    if config.getoption("resume"):
        known = set(Path(os.environ[KNOWN]).read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
        items[:] = [item for item in items if item.nodeid not in known]
