"""Flat dicts of arrays: the arrays of a part stand under "<part>/<name>".

This is the form in which everything is saved, sent to other processes and kept as a draw. Parts may
have parts of their own: "state/view0/normal/mean".
"""

# SPDX-License-Identifier: BSD-3-Clause


def pack(parts):
    """Return one flat dict of the arrays of all parts.

    Parameters
    ----------
    parts : dict of str to dict
        Flat dicts of arrays, by the name of their part.

    Returns
    -------
    arrays : dict

    Examples
    --------
    >>> from skanneal._native._packing import pack, unpack
    >>> pack({"state": {"labels": 1}, "pacer": {"size": 2}})
    {'state/labels': 1, 'pacer/size': 2}
    >>> unpack({"seconds": 0, "state/labels": 1, "state/normal/mean": 2})
    {'state': {'labels': 1, 'normal/mean': 2}}
    """
    return {f"{part}/{name}": a for part, arrays in parts.items() for name, a in arrays.items()}


def unpack(arrays):
    """Return the parts that `pack` was given; arrays that belong to no part are left out."""
    parts = {}
    for name, array in arrays.items():
        part, slash, rest = name.partition("/")
        if slash:
            parts.setdefault(part, {})[rest] = array
    return parts


def part_of(arrays, part):
    """Return the arrays of one part, which is empty if there are none."""
    return unpack(arrays).get(part, {})
