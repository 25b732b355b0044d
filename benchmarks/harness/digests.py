"""Two commits side by side: do they draw the same bits?

    python benchmarks/harness/digests.py HEAD~1                 # or: make digests REF=HEAD~1
    python benchmarks/harness/digests.py HEAD~1 family move     # only cases whose names begin so

Builds the commit in ``.digests/<its hash>`` (kept, and used again when asked for the same commit)
and the working tree in place, runs the cases of ``digest_cases.py`` on both, and prints a line per
case: equal, differs (the first key that does, and the largest difference), fails, or that only one
side has it. The exit status is 1 if a case differs or fails.

Where a refactoring renames a key, `RENAMED` maps the old name to the new one. It is applied to both
sides, so that it may be there before the renaming is.
"""

import argparse
import io
import os
import pickle
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".digests"
CASES = Path(__file__).with_name("digest_cases.py")

# Old -> new, parts of a case's name or of a key ("trace_/n_clusters" has two).
RENAMED = {
    "n_clusters": "n_components",
    "gaussian": "normal",
    "gaussian_full": "multivariate_normal",
}


# ---- comparing ----------------------------------------------------------------------------------


def renamed(path, names=RENAMED):
    """A path with its parts as they are called today."""
    return "/".join(names.get(part, part) for part in path.split("/"))


def difference(old, new):
    """None if two arrays have the same bits, else what distinguishes them.

    Not-a-number equals not-a-number of the same bits only, and zero does not equal minus zero.
    """
    if old.dtype != new.dtype or old.shape != new.shape:
        if old.dtype.kind in "US" and new.dtype.kind in "US" and old.shape == new.shape:
            return "other text"
        return f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
    if old.tobytes() == new.tobytes():
        return None
    if old.dtype.kind not in "biufc":
        return "other text"
    wide = np.result_type(old.dtype, np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.abs(old.astype(wide) - new.astype(wide))
    return f"by {np.nanmax(distance) if not np.isnan(distance).all() else np.nan:.3g} at most"


def compare(old, new, names=RENAMED):
    """What distinguishes the arrays of a case, by the first key that differs; None if nothing does.

    Parameters
    ----------
    old, new : dict of str to ndarray
    names : dict of str to str
        Parts of keys, old to new.
    """
    old, new = ({renamed(key, names): a for key, a in side.items()} for side in (old, new))
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in new or key not in old:
            return f"{key}: only in the {'old' if key in old else 'new'} one"
        if (found := difference(old[key], new[key])) is not None:
            return f"{key}: {found}"
    return None


def verdicts(old, new):
    """Yield (case, whether it passes, a line about it) for the records of two sides."""
    old, new = ({renamed(case): made for case, made in side.items()} for side in (old, new))
    for case in [*old, *(case for case in new if case not in old)]:
        sides = {"old": old.get(case), "new": new.get(case)}
        failed = [f"fails on {name}: {made}" for name, made in sides.items() if type(made) is str]
        if failed:
            yield case, False, "; ".join(failed)
        elif None in sides.values():
            yield case, True, f"only in the {'new' if sides['old'] is None else 'old'} one"
        elif (found := compare(*sides.values())) is not None:
            yield case, False, f"DIFFERS {found}"
        else:
            yield case, True, f"equal ({len(sides['old'])} arrays)"


# ---- the two sides ------------------------------------------------------------------------------


def check_out(ref):
    """The folder with a commit's files; one from an earlier call serves again."""
    git = ["git", "-C", str(ROOT)]
    name = [*git, "rev-parse", "--verify", ref + "^{commit}"]
    commit = subprocess.check_output(name, text=True).strip()
    tree = FOLDER / commit
    if not tree.is_dir():
        partial = tree.with_suffix(".partial")
        archive = subprocess.check_output([*git, "archive", commit])
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(partial, filter="data")
        partial.rename(tree)
    return tree


def build(tree):
    """Compile what is not compiled yet, with ccache where there is one."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tree} does not build:\n{done.stderr}")


def start(tree, file, only):
    """A process that runs the cases on the package in a folder, without others' threads."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    environment = os.environ | threads | {"PYTHONPATH": str(tree)}
    command = [sys.executable, str(CASES), str(tree), str(file), *only]
    return subprocess.Popen(command, env=environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("ref", help="the commit that the working tree is compared with")
    parser.add_argument("only", nargs="*", help="how the names of the cases to run begin")
    arguments = parser.parse_args()
    old, began = check_out(arguments.ref), time.perf_counter()
    for tree in (old, ROOT):
        build(tree)
    print(f"built in {time.perf_counter() - began:.0f} s")
    files = [FOLDER / "old.pkl", FOLDER / "new.pkl"]
    sides = [start(tree, file, arguments.only) for tree, file in zip((old, ROOT), files)]
    codes = [side.wait() for side in sides]
    if any(codes):
        sys.exit("the cases did not run to their end")
    (old, seconds, absent), (new, seconds_new, absent_new) = (
        pickle.loads(file.read_bytes()) for file in files
    )
    lines = list(verdicts(old, new))
    width = max(len(case) for case, *_ in lines)
    for case, _, line in lines:
        print(f"{case:{width}}  {line}")
    for line in sorted({*absent, *absent_new}):
        print(line)
    wrong = sum(not passes for _, passes, _ in lines)
    print(f"{len(lines)} cases, {wrong} differ or fail; {seconds:.0f} s and {seconds_new:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
