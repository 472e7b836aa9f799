"""Resolution of external symbols of generated code: the C library, libm, tvm-ffi, our own runtime.

Each name is looked up explicitly in a fixed order of libraries; nothing depends on what else the process has loaded.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from lowering.llvm.errors import CodegenError
from lowering.llvm.loading.linking import LoadedCode, link
from lowering.runtime.kernel.support import SUPPORT, support_object


def resolve_symbols(names: Iterable[str], extra: Mapping[str, int] | None = None) -> dict[str, int]:
    """Addresses of `names`: from `extra` first, then from the run-time libraries.

    Raises `CodegenError` that lists every name that is nowhere.
    """
    known = extra or {}
    found: dict[str, int] = {}
    missing: list[str] = []
    for name in names:
        address = known[name] if name in known else library_symbol(name)
        if address is None:
            missing.append(name)
        else:
            found[name] = address
    if missing:
        where = "not in libc, libm, tvm-ffi or OpenMP, pass their addresses"
        raise CodegenError(f"undefined symbols {', '.join(sorted(missing))}: {where}")
    return found


@cache
def library_symbol(name: str) -> int | None:
    """The address of a function of the run-time libraries, or None."""
    for support in SUPPORT:
        if name in support.symbols:
            return _loaded(support.text()).symbols[name]
    if name in _OPENMP_STAND_INS:
        return _openmp_symbol(name)
    if name.startswith("TVMFFI"):
        return _lookup(_tvm_ffi(), name)
    addresses = (_lookup(library, name) for library in _system_libraries())
    return next((address for address in addresses if address is not None), None)


@cache
def _loaded(text: str) -> LoadedCode:
    """The functions of a text of the support, in this process; what they call themselves is of the C library."""
    return link([support_object(text)], resolve_symbols)


def _lookup(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


@cache
def _tvm_ffi() -> ctypes.CDLL:
    from tvm_ffi import libinfo

    return ctypes.CDLL(libinfo.find_libtvm_ffi())


# libgcc converts half floats on processors that cannot.
_SYSTEM_LIBRARIES = ("libm.so.6", "libc.so.6", "libgcc_s.so.1", "libSystem.dylib")
_OPENMP_LIBRARIES = ("libgomp.so.1", "libgomp.so", "libgomp.dylib", "libomp.so.5", "libomp.so", "libomp.dylib")


def _open(names: Iterable[str]) -> Iterable[ctypes.CDLL]:
    for name in names:
        try:
            yield ctypes.CDLL(name)
        except OSError:
            continue


@cache
def _system_libraries() -> tuple[ctypes.CDLL, ...]:
    return tuple(_open(_SYSTEM_LIBRARIES))


@cache
def openmp_library() -> ctypes.CDLL | None:
    """An OpenMP run time with GNU's entry points, or None after one line on stderr that says so."""
    for library in _open(_OPENMP_LIBRARIES):
        if hasattr(library, "GOMP_parallel"):
            return library
    print("xdsl-relax: no OpenMP run time (libgomp) found, parallel loops run on one thread", file=sys.stderr)
    return None


def _openmp_symbol(name: str) -> int | None:
    library = openmp_library()
    if library is not None:
        return _lookup(library, name)
    return ctypes.cast(_OPENMP_STAND_INS[name], ctypes.c_void_p).value


_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _run_serially(body: int, data: int, threads: int, flags: int) -> None:
    _BODY(body)(data)


def _ignore(threads: int) -> None:
    """The number of threads stays 1."""


# For a machine without OpenMP: a parallel region is one call of its body, by thread 0 of 1.
_OPENMP_STAND_INS: dict[str, Any] = {
    "GOMP_parallel": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(
        _run_serially
    ),
    "omp_get_thread_num": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0),
    "omp_get_num_threads": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1),
    "omp_get_max_threads": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1),
    "omp_set_num_threads": ctypes.CFUNCTYPE(None, ctypes.c_int)(_ignore),
}
