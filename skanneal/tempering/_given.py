"""What users give as numbers, beyond what scikit-learn checks."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def refuse_masked(**given):
    """Raise a TypeError for a masked array, whose hidden values would count as any others."""
    for name, values in given.items():
        if isinstance(values, np.ma.MaskedArray):
            raise TypeError(
                f"Masked arrays are not supported: {name} is one. Leave out the rows with hidden "
                f"values, and give the others as {name}.data."
            )


def as_numbers(name, values):
    """Return a new float64 array; a TypeError or ValueError by that name if there is none."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold numbers: {error}.") from error
