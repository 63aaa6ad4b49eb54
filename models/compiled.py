"""How kernels are compiled: once per machine, without the interpreter's lock, with IEEE division."""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])
IMPORT: Final = re.compile(r"^(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+([\w.]+))", re.MULTILINE)


def compiled(kernel: Kernel) -> Kernel:
    """Compile to machine code that releases the GIL, cached on disk between processes where possible.

    The code is kept beside the source or, where that folder is read-only, in the user's cache folder; where neither
    can be written, numba refuses to cache, and every process compiles again (about a second a kernel).

    numba recognises a changed kernel by the date of its own file, but machine code also holds what the kernel calls and
    the constants it reads. So the code is kept under a digest of all these sources.
    """
    return _compile(kernel, may_allocate=True)


def compiled_in_place(kernel: Kernel) -> Kernel:
    """`compiled`, for a kernel that only changes the arrays it is given: one that makes an array does not compile.

    The users of its arrays are not counted, since the caller holds them all. That counting takes most of the time of
    a kernel that hands tuples of arrays to many functions of a few loops each.
    """
    return _compile(kernel, may_allocate=False)


def _compile(kernel: Kernel, *, may_allocate: bool) -> Kernel:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": may_allocate}
    try:
        dispatcher: Any = numba.njit(cache=True, **options)(kernel)
    except RuntimeError:
        return cast(Kernel, numba.njit(**options)(kernel))
    # The version of the index: numba compares it before it unpickles the rest, which may name classes renamed since.
    dispatcher._cache._cache_file._version = f"{numba.__version__} {sources_digest(kernel.__module__)}"
    return cast(Kernel, dispatcher)


def inlined(kernel: Kernel) -> Kernel:
    """Inline the function into its callers; for functions called in every step with many arguments."""
    return cast(Kernel, numba.njit(inline="always", nogil=True, error_model="numpy")(kernel))


@cache
def sources_digest(module: str) -> str:
    """SHA-256 of the sources of a module and of all modules that it imports, directly or not, from its own package or
    from `models`. They must have been imported, as they are while the module's functions are defined."""
    own = {module.partition(".")[0], "models"}
    found, queue = {module: b""}, [module]
    while queue:
        name = queue.pop()
        found[name] = _source(name)
        for package, names, plain in IMPORT.findall(found[name].decode()):
            parts = re.findall(r"\w+", names)
            for other in (plain or package, *(f"{package}.{part}" for part in parts)):
                if other not in found and other.partition(".")[0] in own and other in sys.modules:
                    found[other] = b""
                    queue.append(other)
    return hashlib.sha256(b"\0".join(name.encode() + b"\0" + found[name] for name in sorted(found))).hexdigest()


def _source(module: str) -> bytes:
    try:
        return inspect.getsource(sys.modules[module]).encode()
    except (OSError, TypeError):  # an interactive session, or an empty file
        return b""
