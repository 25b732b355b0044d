"""What users give as rows and observations, beyond what scikit-learn checks."""

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


def as_numbers(**given):
    """The one array that is given by its name, as float64; a TypeError if it holds no numbers."""
    ((name, values),) = given.items()
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers: {error}.") from error
