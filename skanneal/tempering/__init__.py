"""Tempering by subsampling: parallel tempering and tempered transitions on levels of fewer rows."""

# SPDX-License-Identifier: BSD-3-Clause

from ._gaussian_process import GaussianProcessTarget
from ._targets import Target

__all__ = ["GaussianProcessTarget", "Target"]
