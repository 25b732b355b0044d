"""Extensions are found by glob; this file holds every compiler directive. Metadata: pyproject.toml.

SKANNEAL_DEBUG=1 at build time turns bounds checks and the states' validate() on.
"""

import os
import platform
import re
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("SKANNEAL_DEBUG", "0") == "1"

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": DEBUG,
    "nonecheck": False,
    "embedsignature": True,
    "freethreading_compatible": True,
}

# -ffp-contract=off: a multiply and an add are fused only where the code says so, and then on every
# instruction set alike (see skanneal/_native/_lanes.h). No -ffast-math: missing cells are NaN.
FLAGS = ["-O2", "-g0", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
FLAGS += ["-ftree-vectorize", "-fvect-cost-model=dynamic"]  # -O3 compiles four times as long


class BuildExtensions(build_ext):
    """Choose flags by compiler."""

    def build_extensions(self):
        if self.compiler.compiler_type == "msvc":
            flags = ["/O2", "/fp:precise"]
        else:
            flags = FLAGS + (["-Og", "-g"] if DEBUG else [])
        self.parallel = self.parallel or os.cpu_count()
        for extension in self.extensions:
            extension.extra_compile_args = flags
        super().build_extensions()


def headers_of(path):
    """The headers that a module includes, itself or through other headers and cimports."""
    sources = [*Path("skanneal").rglob("*.h"), *Path("skanneal").rglob("*.pxd")]
    found, to_read = set(), [path, path.with_suffix(".pxd")]
    while to_read:
        source = to_read.pop()
        text = source.read_text(encoding="utf-8") if source.exists() else ""
        names = {f"{name}.pxd" for name in re.findall(r"(\w+) cimport", text)}
        names.update(re.findall(r'(\w+\.h)"', text))
        new = [source for source in sources if source.name in names and source not in found]
        found.update(new)
        to_read += new
    return sorted(str(source) for source in found if source.suffix == ".h")


def find_extensions():
    libraries = [] if platform.system() == "Windows" else ["m"]
    return [
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            depends=headers_of(path),
            include_dirs=[numpy.get_include()],
            libraries=libraries,
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        )
        for path in sorted(Path("skanneal").rglob("*.pyx"))
    ]


setup(
    ext_modules=cythonize(
        find_extensions(),
        compiler_directives=DIRECTIVES,
    ),
    cmdclass={"build_ext": BuildExtensions},
)
