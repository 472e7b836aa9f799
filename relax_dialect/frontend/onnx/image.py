"""Images: other sizes, and sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects.builtin import f32, f64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.formulas import ROUND, Axis, double, falls_off, single
from relax_dialect.frontend.onnx.manipulation import element_of
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed, from_front
from relax_dialect.frontend.onnx.values import Refusal
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum
from tir_dialect.dtypes import is_float


@dataclass(frozen=True)
class Interpolation:
    """What elements are made of: in the words of `relax.image.resize1d`."""

    method: str
    coordinates: str
    rounding: str
    cubic_alpha: float
    exclude_outside: bool
    antialias: bool
    extrapolation_value: float


def resize_parameters(
    values: te.Tensor, roi: te.Tensor, sizes: Sequence[Dim], policy: str | None
) -> Sequence[te.Tensor]:
    """The scale and part of each axis as rows of three numbers, and the lengths, from sizes with a `policy`, or
    else from scales.
    """
    count, by_size = len(sizes), policy is not None
    old = te.compute((count,), lambda *i: te.cast(element_of(sizes, i[0]), "f64"), name="old_lengths")
    ratios = te.compute(
        (count,), lambda *i: te.cast(values[i], "f64") / (old[i] if by_size else te.const(1.0, "f64")), name="ratios"
    )
    scales = ratios
    if by_size and policy != "stretch":
        r, choose = te.reduce_axis(count, "r"), te.min if policy == "not_larger" else te.max
        scales = te.compute((count,), lambda *i: choose(ratios[r], r), name="scales")

    def length(*i: te.Expr) -> te.Expr:
        if by_size and policy == "stretch":
            return te.cast(values[i], "i64")
        scaled = scales[i] * old[i]
        return te.cast(te.floor(scaled + 0.5) if by_size else te.floor(scaled), "i64")

    def parameter(axis: te.Expr, which: te.Expr) -> te.Expr:
        start, end = te.cast(roi[axis], "f64"), te.cast(roi[axis + count], "f64")
        at = te.cast(which, "i64")
        return te.select(at == 0, scales[axis], te.select(at == 1, start, end))

    return [te.compute((count, 3), parameter, name="parameters"), te.compute((count,), length, name="lengths")]


def resize_axis(
    x: te.Tensor, parameters: te.Tensor, kind: Interpolation, axis: int, row: int, length: Dim
) -> te.Tensor:
    """`x` with another length along an axis, whose scale and part are a row of the parameters."""
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    size = x.shape[axis]
    scale, start, end = (parameters[row, at] for at in range(3))
    resized = Axis(double(size), double(length), scale, scale * double(size), start, end)

    def position(i: te.Expr) -> te.Expr:
        found = resized.source(kind.coordinates, i)
        if kind.coordinates != "tf_half_pixel_for_nn":
            return found
        return te.select(scale == 1, te.cast(i, "f64"), found)  # As if the axis were not named.

    positions = te.compute((length,), position, name="positions")
    if kind.method == "nearest_neighbor":
        element = _nearest(x, kind, axis, positions)
    else:
        element = _weighed(x, kind, axis, positions, te.minimum(scale, 1.0), length)

    def value(*i: te.Expr) -> te.Expr:
        found = element(i)
        if kind.coordinates == "tf_crop_and_resize":
            found = te.select(
                resized.is_beyond(positions[i[axis]]), te.const(kind.extrapolation_value, found.dtype), found
            )
        return te.cast(found, x.dtype)

    return te.compute(shape, value, name="resize_axis")


def _clamped(position: te.Expr, length: Dim) -> te.Expr:
    return te.maximum(te.minimum(te.cast(position, "index"), length - 1), 0)


def _nearest(
    x: te.Tensor, kind: Interpolation, axis: int, positions: te.Tensor
) -> Callable[[tuple[te.Expr, ...]], te.Expr]:
    rounded = ROUND[kind.rounding]

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        position = _clamped(te.cast(rounded(single(positions[i[axis]])), "i64"), x.shape[axis])
        return x[(*i[:axis], position, *i[axis + 1 :])]

    return element


def _weighed(
    x: te.Tensor, kind: Interpolation, axis: int, positions: te.Tensor, scale: te.Expr, length: Dim
) -> Callable[[tuple[te.Expr, ...]], te.Expr]:
    """Elements with weights that fall off with their distance, relative to the sum of the weights."""
    reach, size = 1 if kind.method == "linear" else 2, x.shape[axis]
    taps = constant(2 * reach)
    if kind.antialias:
        taps = 2 * maximum(ceildiv(reach * size, maximum(length, 1)), reach) + 2
    half = te.cast(te.cast(taps // 2, "index"), "i64")

    def first(i: te.Expr) -> te.Expr:
        return te.cast(te.floor(positions[i]), "i64") - half + 1

    def weight(i: te.Expr, tap: te.Expr) -> te.Expr:
        at = first(i) + te.cast(tap, "i64")
        distance = te.abs(te.cast(at, "f64") - positions[i])
        found = falls_off(kind.method, kind.cubic_alpha, distance * scale if kind.antialias else distance)
        if not kind.exclude_outside:
            return found
        end = te.cast(te.cast(size, "index"), "i64")
        return te.select(te.logical_and(at >= 0, at < end), found, 0.0)

    weights, r = te.compute((length, taps), weight, name="weights"), te.reduce_axis(taps, "t")
    totals = te.compute((length,), lambda *i: te.sum(weights[i[0], r], r), name="totals")
    wide = "f64" if str(x.dtype) == "f64" or not is_float(x.dtype) else "f32"
    tap = te.reduce_axis(taps, "tap")

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        position = _clamped(first(i[axis]) + te.cast(tap, "i64"), size)
        share = te.cast(weights[i[axis], tap] / totals[i[axis]], wide)
        return te.sum(te.cast(x[(*i[:axis], position, *i[axis + 1 :])], wide) * share, tap)

    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    sums = te.compute(shape, lambda *i: element(i), name="sums")
    return lambda i: sums[i]


_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}


@converts("Resize", since=11)
def resize(node: Node) -> Result:
    """Some axes with other lengths, which sizes or scales give, perhaps at run time."""
    axes = [from_front(axis, node.rank()) for axis in node.integers("axes") or range(node.rank())]
    policy, has_sizes = (
        node.text("keep_aspect_ratio_policy", "stretch"),
        node.has(3) and node.shape(3)[0].constant_value != 0,
    )
    crop = node.text("coordinate_transformation_mode") == "tf_crop_and_resize"
    given = 3 if has_sizes else 2
    roi = node.floats(1) if crop else ()
    if roi is None or (node.floats(given) is None and (node.dims(given) is None or not has_sizes)):
        values = node[given]
        return _at_run_time(node, axes, values, node[1] if crop else None, policy if has_sizes else None)
    lengths, scales = _by_size(node, axes, policy) if has_sizes else _by_scale(node, axes)
    return _resized(node, axes, lengths, scales, roi)


def _by_size(node: Node, axes: Sequence[int], policy: str) -> tuple[Sequence[Dim], Sequence[float | None]]:
    sizes = node.dims(3) or ()
    if policy == "stretch":
        return sizes, [None] * len(axes)
    old = fixed([node.shape()[axis] for axis in axes], "the shape of data whose aspect ratio is kept")
    ratios = [size / length for size, length in zip(fixed(sizes, "the size"), old, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    lengths = [math.floor(scale * length + 0.5) for length in old]
    return [constant(length) for length in lengths], [scale] * len(axes)


def _by_scale(node: Node, axes: Sequence[int], index: int = 2) -> tuple[Sequence[Dim], Sequence[float | None]]:
    scales = node.floats(index) or ()
    return _scaled_lengths(node, axes, scales), scales


def _scaled_lengths(node: Node, axes: Sequence[int], scales: Sequence[float]) -> list[Dim]:
    """`floor(length * scale)`."""
    if len(scales) != len(axes):
        raise Refusal(f"expected {len(axes)} scales, got {len(scales)}")
    found: list[Dim] = []
    for axis, scale in zip(axes, scales, strict=True):
        exact = Fraction(scale)
        near = exact.limit_denominator(1 << 10)
        ratio = near if abs(near - exact) * (1 << 24) <= abs(exact) and near else exact
        if ratio <= 0:
            raise Refusal(f"the scale {scale} is not positive")
        found.append(floordiv(node.shape()[axis] * ratio.numerator, ratio.denominator))
    return found


def _resized(
    node: Node, axes: Sequence[int], lengths: Sequence[Dim], scales: Sequence[float | None], roi: Sequence[float]
) -> Expr:
    """Axis by axis; those that stay as they are are left out."""
    kind, count = _interpolation(node), len(axes)
    x = _widened(node, kind)
    for at, axis in enumerate(axes):
        part = None if not roi else (roi[at], roi[at + count])
        if lengths[at] is node.shape()[axis] and scales[at] in (None, 1.0) and part in (None, (0.0, 1.0)):
            continue
        x = op.image.resize1d(
            x,
            lengths[at],
            axis,
            scale=scales[at],
            method=kind.method,
            coordinates=kind.coordinates,
            rounding=kind.rounding,
            cubic_alpha=kind.cubic_alpha,
            exclude_outside=kind.exclude_outside,
            antialias=kind.antialias,
            extrapolation_value=kind.extrapolation_value,
            roi=part,
        )
    return _narrowed(node, x)


def _widened(node: Node, kind: Interpolation) -> Expr:
    """The data in a dtype that keeps the fractions between one axis and the next."""
    dtype = node.dtype()
    if kind.method == "nearest_neighbor" or dtype in (f32, f64):
        return node[0]
    return op.astype(node[0], f64 if str(dtype) in ("i32", "i64", "ui32", "ui64") else f32)


def _narrowed(node: Node, x: Expr) -> Expr:
    return x if x.dtype == node.dtype() else op.astype(x, node.dtype())


def _interpolation(node: Node) -> Interpolation:
    method = node.text("mode", "nearest")
    if method not in _METHODS:
        raise Refusal(f"the mode {method} is not supported")
    coordinates = node.text("coordinate_transformation_mode", "half_pixel" if node.version >= 11 else "asymmetric")
    rounding = node.text("nearest_mode", "round_prefer_floor" if node.version >= 11 else "floor")
    return Interpolation(
        _METHODS[method],
        coordinates,
        rounding,
        node.number("cubic_coeff_a", -0.75),
        bool(node.integer("exclude_outside")),
        bool(node.integer("antialias")),
        node.number("extrapolation_value"),
    )


def _at_run_time(node: Node, axes: Sequence[int], values: Expr, roi: Expr | None, policy: str | None) -> Expr:
    """Scales, or with a `policy` sizes, that are data."""
    sizes, count = [node.shape()[axis] for axis in axes], len(axes)
    part = node.bb.const([0.0] * count + [1.0] * count, "f32") if roi is None else roi

    def prepare(values: te.Tensor, roi: te.Tensor) -> Sequence[te.Tensor]:
        return resize_parameters(values, roi, sizes, policy)

    parameters, tensor = node.te_all(prepare, values, part, name="resize")
    hints = node.hinted_dims(node.rank())
    lengths = node.run_time_dims(tensor, [hints[axis] for axis in axes])
    kind = _interpolation(node)
    x = _widened(node, kind)
    for at, axis in enumerate(axes):
        if _stays(kind, node.shape()[axis], lengths[at], at, axes):
            continue
        # One axis with another length; a kernel of the same sizes, but for the names of their symbols, is used again.
        length = lengths[at]
        info = x.type
        dims = info.known_dims if isinstance(info, TensorType) else None
        pattern = None if dims is None else _pattern([*dims, length])
        key = ("resize_axis", kind, axis, at, str(x.dtype), len(parameters.shape or ()), parameters.shape, pattern)
        if pattern is None or dims is None or key not in node.graph.kernels:
            made = node.te(_axis_kernel(kind, axis, at, length), x, parameters, name="resize_axis")
            call = made.value.owner
            if isinstance(call, CallTIROp):
                node.graph.kernels[key] = call.callee.root_reference.data
            x = made
        else:
            out = TensorType([*dims[:axis], length, *dims[axis + 1 :]], x.dtype)
            x = node.bb.call_tir(node.graph.kernels[key], [x, parameters], out)
    return _narrowed(node, x)


def _pattern(dims: Sequence[Dim]) -> tuple[int, ...] | None:
    """Constants, and which of the others are the same symbol; `None` if some are expressions."""
    names: dict[str, int] = {}
    found: list[int] = []
    for dim in dims:
        name = dim.as_symbol
        if dim.constant_value is not None:
            found.append(dim.constant_value)
        elif name is not None:
            found.append(-1 - names.setdefault(name, len(names)))
        else:
            return None
    return tuple(found)


def _stays(kind: Interpolation, old: Dim, new: Dim, at: int, axes: Sequence[int]) -> bool:
    """Whether an axis of one position stays as it is, whatever the scale."""
    return old is new and old.constant_value == 1 and kind.coordinates != "tf_crop_and_resize" and len(axes) > at


def _axis_kernel(kind: Interpolation, axis: int, at: int, length: Dim) -> Callable[[te.Tensor, te.Tensor], te.Tensor]:
    def kernel(x: te.Tensor, parameters: te.Tensor) -> te.Tensor:
        return resize_axis(x, parameters, kind, axis, at, length)

    return kernel


@converts("Resize", since=10)
def resize_scales(node: Node) -> Result:
    """Before version 11: by scales only."""
    return _upsampled(node)


@converts("Upsample")
def upsample(node: Node) -> Result:
    """The older form of `Resize`, with scales as attribute or operand."""
    return _upsampled(node)


def _upsampled(node: Node) -> Expr:
    axes = list(range(node.rank()))
    given = node.attributes.get("scales")
    if given is not None:
        scales: Sequence[float] | None = [float(scale) for scale in given]
    else:
        scales = node.floats(1)
    if scales is None:
        return _at_run_time(node, axes, node[1], None, None)
    return _resized(node, axes, _scaled_lengths(node, axes, scales), scales, ())


@converts("GridSample")
def grid_sample(node: Node) -> Result:
    """The elements at positions that a grid gives."""
    methods = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.text("mode", "linear")
    return op.image.grid_sample(
        node[0],
        node[1],
        method=methods.get(mode, mode),
        padding_mode=node.text("padding_mode", "zeros"),
        cubic_alpha=-0.75,
        align_corners=bool(node.integer("align_corners")),
    )


@converts("AffineGrid")
def affine_grid(node: Node) -> Result:
    """The positions to which affine maps take those of an image."""
    known = node.dims(1)
    if known is None:
        rank = node.length(1)
        hints = node.hinted_dims(rank)
        batch, *spatial = hints[: rank - 1] if rank else (None,)
        known = node.run_time_dims(node[1], [batch, None, *spatial])
    return op.image.affine_grid(node[0], known[2:], align_corners=bool(node.integer("align_corners")))
