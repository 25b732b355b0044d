"""From a user's table to encoded rows and back, hyperparameters included."""

from ._collinear import CollinearCodec
from ._containers import open_table, square_table
from ._distinct import RowKeys, all_keys, hashed, n_distinct
from ._encoder import Encoder
from ._family_choice import atoms_or_auto, auto_family
from ._given import check_determined, check_whole_rows, encode_given, put_given
from ._hyperparameters import (
    by_column,
    grids_in_units,
    prepare,
    spread_centres,
    with_bounds,
)
from ._places import ordered_as_numbers
from ._recoded import NOTHING, Recoded
from ._repeats import warn_of_repeats
from ._row_hyperparameters import row_values_in_units
from ._schema import Schema
from ._training_cells import training_cells

__all__ = [
    "NOTHING",
    "CollinearCodec",
    "Encoder",
    "Recoded",
    "RowKeys",
    "Schema",
    "all_keys",
    "atoms_or_auto",
    "auto_family",
    "by_column",
    "check_determined",
    "check_whole_rows",
    "encode_given",
    "grids_in_units",
    "hashed",
    "n_distinct",
    "open_table",
    "ordered_as_numbers",
    "prepare",
    "put_given",
    "row_values_in_units",
    "spread_centres",
    "square_table",
    "training_cells",
    "warn_of_repeats",
    "with_bounds",
]
