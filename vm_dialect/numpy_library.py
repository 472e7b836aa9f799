"""Packed functions that are there wherever programs run: what NumPy has of FFTs, of LAPACK and of sorting.

They write their results into tensors that they are given. `relax.fft` and `relax.linalg` take a text that says what to
compute, then tensors, of which the last ones are the results. `tvm.contrib.sort.*` are what TVM's run time has beside
its operators, under its names: PrimFuncs that TVM lowers sorting to call them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias, cast

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


def _solved(a: Array, b: Array, options: Sequence[str]) -> Array:
    """The options name what is used of `a`: its `lower` or `upper` triangle, a `unit` one with ones on the diagonal."""
    if "lower" in options or "upper" in options:
        a = np.tril(a) if "lower" in options else np.triu(a)
    if "unit" in options:
        ones = np.eye(a.shape[-1], dtype=a.dtype)
        a = a * (1 - ones) + ones
    return np.linalg.solve(a, b)


def _factored(a: Array) -> tuple[Array, Array]:
    """Both triangles of `P @ L @ U = a` in one matrix, and the rows that were swapped in turn, counted from 1.

    As LAPACK's `getrf` has it, which NumPy does not offer; it goes over columns, for all matrices at once.
    """
    factors = a.reshape(-1, *a.shape[-2:]).copy()
    count, steps = len(factors), min(a.shape[-2:])
    pivots, every = np.empty((count, steps), np.int32), np.arange(count)
    for at in range(steps):
        chosen = at + np.abs(factors[:, at:, at]).argmax(1)
        factors[every, at], factors[every, chosen] = factors[every, chosen], factors[every, at]
        divisor = factors[:, at, at]
        factors[:, at + 1 :, at] /= np.where(divisor == 0, 1, divisor)[:, None]
        factors[:, at + 1 :, at + 1 :] -= factors[:, at + 1 :, at, None] * factors[:, None, at, at + 1 :]
        pivots[:, at] = chosen + 1
    return factors.reshape(a.shape), pivots.reshape(*a.shape[:-2], steps)


def _row_order(pivots: Array, rows: int) -> Array:
    """The order of the rows after they were swapped in turn."""
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for at in range(pivots.shape[-1]):
        other = pivots[..., at, None].astype(np.int64) - 1
        moved = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, order[..., at, None], -1)
        order[..., at] = moved[..., 0]
    return order


def _unpacked(factors: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """`P`, `L` and `U` of what `_factored` gives."""
    *_, rows, columns = factors.shape
    least = min(rows, columns)
    permutation = np.swapaxes(np.eye(rows, dtype=factors.dtype)[_row_order(pivots, rows)], -1, -2)
    lower = np.tril(factors[..., :least], -1) + np.eye(rows, least, dtype=factors.dtype)
    return permutation, lower, np.triu(factors[..., :least, :])


def _parts(*tensors: Array) -> tuple[Array, ...]:
    """Real and imaginary parts."""
    return tuple(part for each in tensors for part in (np.real(each), np.imag(each)))


_PADE = [
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0),
    *(10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0),
]
"""Of the approximation of the exponential function by polynomials of degree 13 (Higham, 2005)."""
_PADE_BOUND = 5.371920351148152
"""Up to this norm it is exact in `f64`."""


def _exponential(a: Array) -> Array:
    """The exponential function of matrices: of a power of 2 of it, squared as often."""
    x: Array = a.astype(np.float64)
    norms = np.abs(x).sum(-2).max(-1, initial=0)
    if not np.isfinite(norms).all():
        raise np.linalg.LinAlgError("the matrix has elements that are not finite")
    halvings = np.ceil(np.log2(np.maximum(norms / _PADE_BOUND, 1))).astype(np.int64)
    x = x / np.exp2(halvings)[..., None, None]
    powers = [np.broadcast_to(np.eye(x.shape[-1]), x.shape), square := x @ x]
    while len(powers) < 7:
        powers.append(powers[-1] @ square)
    even = sum(weight * power for weight, power in zip(_PADE[::2], powers, strict=True))
    odd = x @ sum(weight * power for weight, power in zip(_PADE[1::2], powers, strict=True))
    found: Array = np.linalg.solve(even - odd, even + odd)
    for done in range(int(halvings.max(initial=0))):
        found = np.where((done < halvings)[..., None, None], found @ found, found)
    return found


def _checked_factors(a: Array) -> tuple[Array, Array]:
    factors, pivots = _factored(a)
    if (np.diagonal(factors, 0, -2, -1) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    return factors, pivots


def _with_reflections(a: Array) -> tuple[Array, Array]:
    """What LAPACK's `geqrf` gives: the triangle, below which are the vectors of reflections, and their factors."""
    packed, factors = np.linalg.qr(a, "raw")
    return np.swapaxes(packed, -1, -2), factors


def _triangle(options: Sequence[str]) -> Literal["L", "U"]:
    return "U" if "upper" in options else "L"


Matrices: TypeAlias = "Array | tuple[Array, ...]"

_OF_ONE: Mapping[str, Callable[[Array, Sequence[str]], Matrices]] = {
    "inv": lambda a, _: np.linalg.inv(a),
    "cholesky": lambda a, _: np.linalg.cholesky(a),
    "det": lambda a, _: np.asarray(np.linalg.det(a)),
    "slogdet": lambda a, _: tuple(np.linalg.slogdet(a)),
    "svd": lambda a, options: tuple(np.linalg.svd(a, full_matrices="full" in options)),
    "svdvals": lambda a, _: np.linalg.svd(a, compute_uv=False),
    "qr": lambda a, options: tuple(np.linalg.qr(a, "complete" if "complete" in options else "reduced")),
    "geqrf": lambda a, _: _with_reflections(a),
    "eigh": lambda a, options: tuple(np.linalg.eigh(a, _triangle(options))),
    "eigvalsh": lambda a, options: np.linalg.eigvalsh(a, _triangle(options)),
    "eig": lambda a, _: _parts(*np.linalg.eig(a)),
    "eigvals": lambda a, _: _parts(np.linalg.eigvals(a)),
    "lu": lambda a, _: _unpacked(*_factored(a)),
    "lu_factor": lambda a, _: _checked_factors(a),
    "expm": lambda a, _: _exponential(a),
}
_OF_TWO: Mapping[str, Callable[[Array, Array, Sequence[str]], Matrices]] = {
    "lu_unpack": lambda factors, pivots, _: _unpacked(factors, pivots),
    "solve": lambda a, b, options: _solved(a, b, options),
}


def linalg(what: str, *tensors: tvm_ffi.Tensor) -> None:
    """A decomposition of matrices, or what is solved by one, over leading dimensions: `inv`, `svd full`, `solve lower`.

    `ValueError` for matrices that have none, such as singular ones.
    """
    kind, *options = str(what).split()
    if kind not in _OF_ONE and kind not in _OF_TWO:
        raise ValueError(f"relax.linalg: there is no {kind}")
    a, *others = [to_numpy(tensor) for tensor in tensors]
    try:
        found = _OF_TWO[kind](a, others.pop(0), options) if kind in _OF_TWO else _OF_ONE[kind](a, options)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{kind}: {error}") from error
    several = found if isinstance(found, tuple) else (found,)
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


def unique(
    x: Any, is_sorted: int, return_index: int, return_inverse: int, return_counts: int, axis: int | None = None
) -> object:
    """The elements, or slices along an axis, each once, and what else is wanted of `numpy.unique`: in order, or in that
    of their first occurrence.
    """
    data = _view(x)
    values, first, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not is_sorted:
        order = np.argsort(first, kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], ranks[inverse]
    wanted = [(values, True), (first, return_index), (inverse.reshape(-1), return_inverse), (counts, return_counts)]
    made = [_tensor(each) for each, is_wanted in wanted if is_wanted]
    return made[0] if len(made) == 1 else tuple(made)


def nonzero(x: Any) -> tvm_ffi.Tensor:
    """The positions of elements that are not 0: a row of indices for each dimension."""
    return _tensor(np.stack(np.atleast_1d(_view(x)).nonzero()))


def shape_to_tensor(shape: tvm_ffi.Shape) -> tvm_ffi.Tensor:
    """The sizes, `int64`."""
    return _tensor(np.array(list(shape), np.int64))


def copy(x: Any) -> tvm_ffi.Tensor:
    """A tensor of its own with the same elements."""
    return _tensor(_view(x).copy())


def reshape(x: Any, shape: tvm_ffi.Shape) -> tvm_ffi.Tensor:
    """The same memory in another shape."""
    return tvm_ffi.from_dlpack(_view(x).reshape([int(each) for each in cast("Sequence[int]", shape)]))


def shape_of(x: Any) -> tvm_ffi.Shape:
    """The sizes of a tensor."""
    return tvm_ffi.Shape(tuple(_view(x).shape))


def tensor_to_shape(x: Any) -> tvm_ffi.Shape:
    """The elements of a vector as sizes."""
    return tvm_ffi.Shape(tuple(int(each) for each in _view(x)))


def make_tuple(*fields: object) -> tuple[object, ...]:
    """A tuple."""
    return fields


def tuple_getitem(fields: Sequence[object], index: int) -> object:
    """A field of a tuple."""
    return fields[index]


def null_value() -> None:
    """Nothing."""


def same(x: object, *rest: object) -> object:
    """What is given: memory begins where it is, and there is one device."""
    return x


def _tensor(array: Array) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(np.asarray(array, order="C"))  # np.ascontiguousarray makes one dimension of none


LIBRARY: Mapping[str, Callable[..., None]] = {"relax.fft": fft, "relax.linalg": linalg}
"""Our own, by the name of the packed function. They are pure, so that programs of others may call them."""

for _name, _function in LIBRARY.items():
    tvm_ffi.register_global_func(_name, _function, override=True)

_OF_TVM = cast(
    "dict[str, Callable[..., Any]]",
    {f"tvm.contrib.sort.{each.__name__}": each for each in (argsort, sort, argsort_nms, topk)}
    | {f"relax.run.{each.__name__}": each for each in (unique, nonzero, shape_to_tensor)}
    | {
        f"vm.builtin.{each.__name__}": each
        for each in (copy, reshape, shape_of, tensor_to_shape, make_tuple, tuple_getitem, null_value)
    }
    | dict.fromkeys(("vm.builtin.ensure_zero_offset", "vm.builtin.to_device"), same),
)


@cache
def register_functions_of_tvm() -> None:
    """Enters the functions under TVM's names into the registry of tvm-ffi, but for those that somebody else has."""
    for name, function in _OF_TVM.items():
        if tvm_ffi.get_global_func(name, allow_missing=True) is None:
            tvm_ffi.register_global_func(name, function)
