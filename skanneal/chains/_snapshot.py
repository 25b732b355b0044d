"""The snapshot of a chain: a header in JSON and the arrays of its parts, in one flat dict."""

# SPDX-License-Identifier: BSD-3-Clause

import json

import numpy as np

from .._native._packing import pack, unpack
from .._native._state_arrays import StateError, state_array

FORMAT = 1


def write_snapshot(header, parts):
    """Return a flat dict of arrays from which a chain can run on.

    Parameters
    ----------
    header : dict
        Everything but arrays; JSON must be able to hold it.
    parts : dict of str to dict
        Flat dicts of arrays, by the name of their part.
    """
    header = np.array(json.dumps({"format": FORMAT} | header))
    return pack(parts) | {"header": header}


def read_snapshot(arrays):
    """Return the header and the parts that `write_snapshot` was given.

    Raises
    ------
    StateError
        If the header is none, or the snapshot has another format than this version writes.
    """
    try:
        header = json.loads(str(state_array(arrays, "header", "U", ())))
        found = header["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError("header", f"cannot be read ({error})") from error
    if found != FORMAT:
        raise StateError("header", f"is of format {found!r}, this version reads {FORMAT}")
    return header, unpack(arrays)
