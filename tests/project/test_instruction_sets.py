"""Every instruction set gives the same bits: each level in a process of its own."""

import os
import subprocess
import sys

import pytest

DIGESTS = (
    "digest_of_column_families",
    "digest_of_row_families",
    "digest_of_counts",
    "digest_of_likelihoods",
    "digest_of_draws",
)
CODE = """
from oracles import digests_of_runs
for digest in {digests}:
    print(digest, getattr(digests_of_runs, digest)())
"""


def digests_at(level):
    """One line per digest."""
    paths = filter(None, sys.path)
    run = subprocess.run(
        [sys.executable, "-P", "-c", CODE.format(digests=DIGESTS)],
        env=os.environ | {"SKANNEAL_SIMD": level, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits():
    """A level above what the processor has falls back to its best, so 2 is safe anywhere."""
    plain = digests_at("0")
    assert [line.split()[0] for line in plain] == list(DIGESTS)
    assert all(len(line.split()[1]) == 64 for line in plain)
    assert digests_at("1") == plain
    assert digests_at("2") == plain
