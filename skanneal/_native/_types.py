"""Names for what the public methods take, as wide as scikit-learn's."""

# SPDX-License-Identifier: BSD-3-Clause

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

# An array, a frame of pandas or polars, a list of rows, a sparse matrix: no protocol has them all.
TableLike: TypeAlias = Any
Columns: TypeAlias = Sequence[str] | Sequence[int] | Sequence[bool] | np.ndarray | str | int
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None
Hyperparameters: TypeAlias = str | Mapping[str, Any]
