"""Packed functions that are there wherever programs run: what NumPy has of FFTs, of LAPACK and of sorting.

They write their results into tensors that they are given. `relax.fft` and `relax.linalg` take a text that says what to
compute, then tensors, of which the last ones are the results. `tvm.contrib.sort.*` are what TVM's run time has beside
its operators, under its names: PrimFuncs that TVM lowers sorting to call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, cast

import numpy as np
import tvm_ffi
from numpy.typing import NDArray

from vm_dialect.tensors import to_numpy

Array = NDArray[Any]


def fft(what: str, *tensors: tvm_ffi.Tensor) -> None:
    """A discrete Fourier transform: `kind axes norm`, such as `r2c 1,2 ortho`.

    The kinds are `r2c` (half of the last axis), `r2c_full`, `c2c`, `c2c_inverse` and `c2r`; the norms are NumPy's. A
    complex tensor is two, its real and its imaginary part.
    """
    kind, listed, written = str(what).split()
    norm = cast("Literal['backward', 'ortho', 'forward']", written)
    axes = [int(axis) for axis in listed.split(",")]
    arrays = [to_numpy(tensor) for tensor in tensors]
    if kind.startswith("r2c"):
        transform = np.fft.rfftn if kind == "r2c" else np.fft.fftn
        _store(transform(arrays[0], axes=axes, norm=norm), arrays[1:])
    elif kind == "c2r":
        *given, result = arrays
        sizes = [result.shape[axis] for axis in axes]
        result[...] = np.fft.irfftn(_complex(*given), sizes, axes=axes, norm=norm)
    else:
        transform = np.fft.ifftn if kind == "c2c_inverse" else np.fft.fftn
        _store(transform(_complex(*arrays[:2]), axes=axes, norm=norm), arrays[2:])


def _complex(real: Array, imaginary: Array) -> Array:
    pairs = np.stack([real, imaginary], -1)
    return pairs.view(np.result_type(pairs, np.complex64))[..., 0]


def _store(found: Any, results: list[Array]) -> None:
    real, imaginary = results
    real[...], imaginary[...] = found.real, found.imag


def _solved(a: Array, b: Array, *options: str) -> Array:
    """The options name what is used of `a`: its `lower` or `upper` triangle, a `unit` one with ones on the diagonal."""
    if "lower" in options or "upper" in options:
        a = np.tril(a) if "lower" in options else np.triu(a)
    if "unit" in options:
        ones = np.eye(a.shape[-1], dtype=a.dtype)
        a = a * (1 - ones) + ones
    return np.linalg.solve(a, b)


def _decomposed(kind: str, a: Array, *options: str) -> Any:
    """One result, or a tuple of several."""
    match kind:
        case "inv":
            return np.linalg.inv(a)
        case "cholesky":
            return np.linalg.cholesky(a)
        case "det":
            return np.linalg.det(a)
        case "slogdet":
            return tuple(np.linalg.slogdet(a))
        case "svd":
            return tuple(np.linalg.svd(a, full_matrices="full" in options))
        case "svdvals":
            return np.linalg.svd(a, compute_uv=False)
        case "qr":
            return tuple(np.linalg.qr(a, "complete" if "complete" in options else "reduced"))
        case "eigh":
            return tuple(np.linalg.eigh(a, "U" if "upper" in options else "L"))
        case "eigvalsh":
            return np.linalg.eigvalsh(a, "U" if "upper" in options else "L")
        case _:
            raise ValueError(f"relax.linalg: there is no {kind}")


def linalg(what: str, *tensors: tvm_ffi.Tensor) -> None:
    """A decomposition of matrices, or what is solved by one, over leading dimensions: `inv`, `svd full`, `solve lower`.

    `ValueError` for matrices that have none, such as singular ones.
    """
    kind, *options = str(what).split()
    a, *others = [to_numpy(tensor) for tensor in tensors]
    try:
        found = _solved(a, others.pop(0), *options) if kind == "solve" else _decomposed(kind, a, *options)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{kind}: {error}") from error
    several = cast("tuple[Array, ...]", found) if isinstance(found, tuple) else (found,)
    for result, each in zip(others, several, strict=True):
        result[...] = each


def _view(tensor: Any) -> Array:
    return np.from_dlpack(tensor)


def _order(x: Array, axis: int, is_ascending: bool) -> Array:
    """The positions of the elements in order; equal ones stay in theirs."""
    if is_ascending:
        return np.argsort(x, axis, kind="stable")
    last = x.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def argsort(x: Any, out: Any, axis: int, is_ascend: bool) -> None:
    """`out` gets the positions of the elements of `x` in order along an axis."""
    _view(out)[...] = _order(_view(x), axis, is_ascend)


def sort(x: Any, out: Any, axis: int, is_ascend: bool) -> None:
    """`out` gets the elements of `x` in order along an axis."""
    data = _view(x)
    _view(out)[...] = np.take_along_axis(data, _order(data, axis, is_ascend), axis)


def argsort_nms(x: Any, sort_num: Any, out: Any, axis: int, is_ascend: bool) -> None:
    """`argsort` of the first elements along an axis, of which `sort_num` says how many; the others stay in order."""
    data, counts = np.moveaxis(_view(x), axis, -1), _view(sort_num)
    made = np.moveaxis(_view(out), axis, -1)
    counts = counts.reshape(data.shape[:-1])
    for row in np.ndindex(data.shape[:-1]):
        count = min(max(int(counts[row]), 0), data.shape[-1])
        made[row] = np.arange(data.shape[-1])
        made[row][:count] = _order(data[row][:count], 0, is_ascend)


def topk(x: Any, *arguments: Any) -> None:
    """`topk(x, values, indices, k, axis, ret_type, is_ascend)`: the first `k` in order along an axis, all if `k` is
    less than 1; `ret_type` says whether values, indices, or `both` are among the arguments.
    """
    *outs, k, axis, kind, is_ascend = arguments
    wanted = ("values", "indices") if str(kind) == "both" else (str(kind),)
    if len(outs) != len(wanted) or not set(wanted) <= {"values", "indices"}:
        raise ValueError(f"tvm.contrib.sort.topk expected ret_type both, values or indices, got {kind}")
    data = _view(x)
    positions = _order(data, axis, is_ascend)
    positions = np.take(positions, range(k if k >= 1 else data.shape[axis]), axis)
    for out, name in zip(outs, wanted, strict=True):
        _view(out)[...] = positions if name == "indices" else np.take_along_axis(data, positions, axis)


LIBRARY: Mapping[str, Callable[..., None]] = {"relax.fft": fft, "relax.linalg": linalg}
"""Our own, by the name of the packed function. They are pure, so that programs of others may call them."""

for _name, _function in LIBRARY.items():
    tvm_ffi.register_global_func(_name, _function, override=True)

_OF_TVM = cast(
    "dict[str, Callable[..., None]]",
    {f"tvm.contrib.sort.{each.__name__}": each for each in (argsort, sort, argsort_nms, topk)},
)


@cache
def register_functions_of_tvm() -> None:
    """Enters the functions under TVM's names into the registry of tvm-ffi, but for those that somebody else has."""
    for name, function in _OF_TVM.items():
        if tvm_ffi.get_global_func(name, allow_missing=True) is None:
            tvm_ffi.register_global_func(name, function)
