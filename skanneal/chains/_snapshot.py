"""The snapshot of a chain: a header in JSON and the arrays of its parts, in one flat dict."""

# SPDX-License-Identifier: BSD-3-Clause

import json

import numpy as np

from .._native._packing import pack, unpack

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
    ValueError
        If the snapshot has another format than this version writes.
    """
    header = json.loads(str(arrays["header"]))
    if header["format"] != FORMAT:
        raise ValueError(f"state of format {header['format']}, this version reads {FORMAT}")
    return header, unpack(arrays)
