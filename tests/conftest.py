"""Settings shared by all tests."""

import os

# The displays' tests draw without a screen, whatever the machine.
os.environ.setdefault("MPLBACKEND", "Agg")
