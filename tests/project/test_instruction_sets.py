"""Every instruction set gives the same bits: each level in a process of its own."""

import os
import subprocess
import sys

DIGESTS = (
    "test_components.digest_of_a_run",
    "test_row_families.digest_of_a_run",
    "test_multinomial.digest_of_a_run",
    "test_likelihoods.digest_of_all",
    "test_draws.digest_of_draws",
)
CODE = """
import importlib
for digest in {digests}:
    module, name = digest.split(".")
    print(digest, getattr(importlib.import_module(module), name)())
"""


def digests_at(level):
    """One line per digest."""
    paths = [os.path.dirname(os.path.abspath(__file__)), *filter(None, sys.path)]
    run = subprocess.run(
        [sys.executable, "-P", "-c", CODE.format(digests=DIGESTS)],
        env=os.environ | {"SKANNEAL_SIMD": level, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_every_instruction_set_gives_the_same_bits():
    """A level above what the processor has falls back to its best, so 2 is safe anywhere."""
    plain = digests_at("0")
    assert [line.split()[0] for line in plain] == list(DIGESTS)
    assert all(len(line.split()[1]) == 64 for line in plain)
    assert digests_at("1") == plain
    assert digests_at("2") == plain
