"""A script in a process of its own."""

import os
import subprocess
import sys


def run_script(text, folder, timeout=120):
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
