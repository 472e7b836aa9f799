"""Layouts with blocks of dimensions, `"NCHW4c"`, `"NCHW2n4c"`: tensors are brought into the layout without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, floordiv

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])")


def _op(name: str) -> Callable[..., Any]:
    return function_of(operator_classes()[f"relax.{name}"])


def _axes(layout: str) -> list[tuple[str, int | None]]:
    """The axes of a layout, each with the size of its block, if it is one."""
    return [(whole or block.upper(), int(size) if size else None) for whole, size, block in _AXIS.findall(layout)]


def plain_layout(layout: str) -> str:
    """The layout without blocks."""
    return "".join(letter for letter, size in _axes(layout) if size is None)


def has_blocks_of(letter: str, *layouts: str) -> bool:
    """Whether one of the layouts has blocks of a dimension; of any dimension for the empty string."""
    found = [axis for layout in layouts for axis in _axes(layout)]
    return any(size is not None and letter in ("", name) for name, size in found)


def _places(layout: str) -> list[int]:
    """Where the axes of a blocked layout stand, those of one dimension side by side, outer before inner."""
    axes, plain = _axes(layout), plain_layout(layout)
    return sorted(range(len(axes)), key=lambda place: (plain.index(axes[place][0]), place))


def unblocked(value: Expr, layout: str) -> Expr:
    """A tensor of a blocked layout in the layout without blocks."""
    dims, axes, places = _dims(value, layout), _axes(layout), _places(layout)
    sizes = dict.fromkeys(plain_layout(layout), constant(1))
    for (letter, _), dim in zip(axes, dims, strict=True):
        sizes[letter] = sizes[letter] * dim
    return _op("reshape")(_op("permute_dims")(value, places), list(sizes.values()))


def blocked(value: Expr, layout: str) -> Expr:
    """A tensor in the layout without blocks in the blocked one."""
    axes, places = _axes(layout), _places(layout)
    outer = dict(zip(plain_layout(layout), _dims(value, plain_layout(layout)), strict=True))
    for letter, size in axes:
        outer[letter] = outer[letter] if size is None else floordiv(outer[letter], constant(size))
    split = [outer[letter] if size is None else constant(size) for letter, size in (axes[place] for place in places)]
    back = [places.index(place) for place in range(len(places))]
    return _op("permute_dims")(_op("reshape")(value, split), back)


def _dims(value: Expr, layout: str) -> Sequence[Dim]:
    dims = value.type.known_dims if isinstance(value.type, TensorType) else None
    if dims is None or len(dims) != len(_axes(layout)):
        raise ValueError(f"{layout} expected a tensor of {len(_axes(layout))} known dimensions, got {value.type}")
    return dims


def resize2d(x: Expr, size: object, *, layout: str | None = None, **rest: Any) -> Expr:
    """Images whose layout has blocks are resized without them."""
    if layout is None or not has_blocks_of("", layout):
        return _op("image.resize2d")(x, size, layout=layout, **rest)
    return blocked(_op("image.resize2d")(unblocked(x, layout), size, layout=plain_layout(layout), **rest), layout)


def windowed(name: str, key: str) -> Callable[..., Expr]:
    """A convolution or pooling of images in blocks, which the operator has not; `key` names its layout."""

    def make(x: Expr, **rest: Any) -> Expr:
        layout: str = rest.get(key) or ""
        out, kernel = rest.get("out_layout") or layout, rest.get("kernel_layout") or ""
        if not has_blocks_of("N", layout, out):
            return _op(name)(x, **rest)
        rest |= {key: plain_layout(layout), "out_layout": plain_layout(out)}
        if has_blocks_of("", kernel):
            rest |= {"w": unblocked(rest["w"], kernel), "kernel_layout": plain_layout(kernel)}
        result = _op(name)(unblocked(x, layout) if has_blocks_of("", layout) else x, **rest)
        return blocked(result, out) if has_blocks_of("", out) else result

    return make
