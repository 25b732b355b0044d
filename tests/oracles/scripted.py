"""Every path of the compiled samplers, by a bit generator that says what the script wants.

The compiled code draws through a ``bitgen_t``; here its ``next_double`` is a Python function. A run
asks for numbers of known kinds in a known order; `paths` replays it until every combination of
answers has been given, with the probability of each.
"""

import ctypes
import math

NAME = ctypes.create_string_buffer(b"BitGenerator")
NEXT = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)
CLOSE = 1e-9  # how near to an acceptance probability the uniform number comes, on either side


class BitGen(ctypes.Structure):
    _fields_ = [
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.c_void_p),
        ("next_uint32", ctypes.c_void_p),
        ("next_double", NEXT),
        ("next_raw", ctypes.c_void_p),
    ]


class Scripted:
    """A bit generator whose numbers are chosen.

    `kinds` is set before a run: an iterable of "radius", "angle" (the two numbers of a normal draw,
    made +1 or -1), ("below", n) and "accept"; `sums()` must return the sum of the acceptance
    probabilities so far, to which a decision's is added before its number is drawn. Outside of
    `paths` every number is one half, or what `free()` returns.
    """

    def __init__(self):
        self._struct = BitGen(next_double=NEXT(self._next))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        self.capsule = new(ctypes.addressof(self._struct), ctypes.addressof(NAME), None)
        self.error = None
        self.free = lambda: 0.5

    def _next(self, state):
        try:
            return self.free() if self.free else self._answer(next(self._kinds))
        except BaseException as error:  # ctypes cannot pass it on
            self.error = self.error or error
            return 0.5

    def _answer(self, kind):
        if kind == "radius":
            return 1.0 - math.exp(-0.5)
        if kind == "angle":
            return (0.0, 0.5)[self._choose([0.5, 0.5])]
        if isinstance(kind, tuple):
            n = kind[1]
            chosen = self._choose([1.0 / n] * n)
            self.drawn.append(chosen)
            return (chosen + 0.5) / n
        total = self.sums()
        p, self._total = total - self._total, total
        if self._choose([1.0 - p, p]):
            return p * (1.0 - CLOSE)
        return min(p * (1.0 + CLOSE), 1.0 - 2.0**-53)

    def _choose(self, chances):
        """The next choice of the script; the first possible one where the script ends."""
        possible = [i for i, chance in enumerate(chances) if chance > 0]
        if self._position == len(self._script):
            self._script.append([0, len(possible)])
        chosen = possible[self._script[self._position][0]]
        self._position += 1
        self.weight *= chances[chosen]
        return chosen

    def paths(self, run, kinds):
        """Run again and again, once per path; yields its probability and what `run()` returned.

        `kinds(drawn)` is a generator of kinds; `drawn` collects the "below" numbers.
        """
        self._script, outside, self.free = [], self.free, None
        while True:
            self._position, self._total, self.weight, self.drawn = 0, 0.0, 1.0, []
            self._kinds = kinds(self.drawn)
            result = run()
            if self.error is not None:
                raise self.error
            assert next(self._kinds, None) is None, "fewer numbers were drawn than expected"
            assert self._position == len(self._script)
            yield self.weight, result
            while self._script and self._script[-1][0] + 1 == self._script[-1][1]:
                self._script.pop()
            if not self._script:
                self.free = outside
                return
            self._script[-1][0] += 1
