"""How TVM's operators become ours: names, orders and defaults of arguments, and results that differ."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, i1, i32, i64
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, floordiv, product

OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "floor_mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}

COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}

UNARY: Mapping[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.Invert: "bitwise_not",
    ast.Not: "logical_not",
}

REFUSED_STATEMENTS: Mapping[type[ast.stmt], str] = MappingProxyType(
    {
        ast.For: "relax functions have no `for`; write a recursive function, or a loop in a PrimFunc",
        ast.While: "relax functions have no `while`; write a recursive function, or a loop in a PrimFunc",
        ast.Try: "programs have no exceptions",
        ast.Raise: "programs have no exceptions; use R.assert_op",
        ast.Assert: "use R.assert_op",
        ast.ClassDef: "classes have no place in a function",
        ast.Import: "imports have no place in a function",
        ast.ImportFrom: "imports have no place in a function",
    }
)
"""Statements of Python that are none of a program."""

_TYPES = ("Any", "Callable", "DTensor", "Object", "Prim", "Shape", "Tensor", "dist.DTensor")

_BUILDERS = (
    *("If", "Then", "Else", "SeqExpr", "arg"),
    *("emit_var_binding", "func_name", "func_ret_ty", "func_ret_type", "func_ret_value"),
)

REFUSED_OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "grad": "this operator of gradients is not known: differentiate before, or write it as operators",
        "nn.attention_var_len": "rows of unlike length are a kernel for GPUs in TVM; cut them apart, or use a mask",
        "macro": "R.macro stands above a function, which is read where it is called",
        "rewriter": "R.rewriter describes a pass, not a program",
        **dict.fromkeys(_TYPES, "a type is no value; it follows a colon or an arrow"),
        **dict.fromkeys(_BUILDERS, "it builds programs from Python; a text has the program itself"),
        "device_mesh": "a mesh stands in I.module_global_infos, or in a type or call that asks for one",
        "dist.device_mesh": "a mesh stands in I.module_global_infos, or in a type or call that asks for one",
        "dataflow": "R.dataflow begins a region: `with R.dataflow():`",
        "function": "R.function stands above a function",
    }
)
"""Why some names of `R` are not taken."""

OPERATOR_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "dot": "matmul",
        "ewise_add": "add",
        "ewise_mul": "multiply",
        "ewise_sub": "subtract",
        "ewise_div": "divide",
        "nn.dense": "matmul",
        "nn.matmul": "matmul",
        "nn.leaky_relu": "nn.leakyrelu",
        "nn.flatten": "flatten",
        "transpose": "permute_dims",
        "concatenate": "concat",
        "var": "variance",
        "sub": "subtract",
        "mul": "multiply",
        "div": "divide",
        "pow": "power",
    }
)
"""Other names of operators, as older texts have them."""

SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "alpha": ("slope",),
        "axes": ("axis",),
        "axis": ("axes",),
        "bins": ("boundaries",),
        "boundaries": ("boundaries",),
        "coordinate_transformation_mode": ("coordinates",),
        "data": ("x", "indices"),
        "dst_shape": ("shape",),
        "end": ("stop",),
        "expr": ("x", "shape"),
        "fill_value": ("value",),
        "input": ("x",),
        "input_tensor": ("x",),
        "key": ("k",),
        "lhs": ("x",),
        "m": ("columns",),
        "moving_mean": ("mean",),
        "moving_var": ("variance",),
        "n": ("rows",),
        "newshape": ("shape",),
        "off_value": ("off",),
        "on_value": ("on",),
        "operands": ("inputs",),
        "out_dtype": ("dtype",),
        "pad_mode": ("mode",),
        "prob": ("probabilities",),
        "query": ("q",),
        "rhs": ("y",),
        "output_grad": ("gradient",),
        "rounding_method": ("rounding",),
        "sample_indices": ("rows",),
        "seq_lengths": ("lengths",),
        "src": ("source",),
        "tensors": ("inputs", "vectors"),
        "uniform_sample": ("uniform",),
        "value": ("v",),
        "weight": ("w", "weight"),
        "x1": ("x",),
        "x2": ("y",),
        "x3": ("z",),
    }
)
"""What our parameters are called for a name of TVM's, in order of preference."""

_POOL = "x pool_size=1 strides padding dilation ceil_mode count_include_pad layout out_layout"

_ADAPTIVE = "x output_size=None layout out_layout"

SIGNATURES: Mapping[str, str] = MappingProxyType(
    {
        "argsort": "x axis descending dtype=i32",
        "ccl.allgather": "x num_workers in_group",
        "ccl.allreduce": "x op_type in_group",
        "dequantize": "x scale zero_point axis dtype=f32",
        "eye": "rows columns k dtype=f32",
        **{f"grad.{kind}_pool2d_backward": f"gradient {_POOL}" for kind in ("avg", "max")},
        "image.resize2d": "x size roi layout method coordinates rounding cubic_alpha=-0.75 cubic_exclude "
        "extrapolation_value out_dtype",
        "index_put": "x indices values accumulate",
        "nn.adaptive_avg_pool1d": _ADAPTIVE,
        "nn.adaptive_avg_pool2d": _ADAPTIVE,
        "nn.adaptive_avg_pool3d": _ADAPTIVE,
        "nn.attention": "q k v bias scale causal_mask window_size",
        "nn.attention_bias": "q k v bias scale causal_mask window_size",
        **{f"nn.max_pool{count}d": _POOL for count in (1, 2, 3)},
        "nn.avg_pool2d": _POOL,
        "nn.avg_pool1d": _POOL.replace("count_include_pad", "count_include_pad=True"),
        "nn.avg_pool3d": _POOL.replace("count_include_pad", "count_include_pad=True"),
        "nn.batch_norm": "x gamma beta mean variance axis epsilon center scale momentum training",
        "nn.group_norm": "x gamma beta num_groups channel_axis axes epsilon center scale",
        "nn.instance_norm": "x gamma beta channel_axis axes epsilon center scale",
        "nn.rms_norm": "x weight axes=-1 epsilon",
        "quantize": "x scale zero_point axis dtype=i8",
        "split": "x indices_or_sections axis",
        "topk": "x k=1 axis ret_type largest dtype=i32",
        "unique": "x sorted return_index return_inverse return_counts axis",
    }
)
"""TVM's parameters in its order, by our names where we have them, with TVM's defaults where ours are others."""

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])")


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


def _indices(layout: str) -> list[int]:
    """Where the axes of a blocked layout stand, those of one dimension side by side, outer before inner."""
    axes, plain = _axes(layout), plain_layout(layout)
    return sorted(range(len(axes)), key=lambda index: (plain.index(axes[index][0]), index))


def unblocked(value: Expr, layout: str) -> Expr:
    """A tensor of a blocked layout in the layout without blocks."""
    dims, axes, indices = _dims(value, layout), _axes(layout), _indices(layout)
    sizes = dict.fromkeys(plain_layout(layout), constant(1))
    for (letter, _), dim in zip(axes, dims, strict=True):
        sizes[letter] = sizes[letter] * dim
    return relax_op("reshape")(relax_op("permute_dims")(value, indices), list(sizes.values()))


def blocked(value: Expr, layout: str) -> Expr:
    """A tensor in the layout without blocks in the blocked one."""
    axes, indices = _axes(layout), _indices(layout)
    outer = dict(zip(plain_layout(layout), _dims(value, plain_layout(layout)), strict=True))
    for letter, size in axes:
        outer[letter] = outer[letter] if size is None else floordiv(outer[letter], constant(size))
    split = [outer[letter] if size is None else constant(size) for letter, size in (axes[index] for index in indices)]
    back = [indices.index(index) for index in range(len(indices))]
    return relax_op("permute_dims")(relax_op("reshape")(value, split), back)


def _dims(value: Expr, layout: str) -> Sequence[Dim]:
    dims = value.type.known_dims if isinstance(value.type, TensorType) else None
    if dims is None or len(dims) != len(_axes(layout)):
        raise ValueError(f"{layout} expected a tensor of {len(_axes(layout))} known dimensions, got {value.type}")
    return dims


def resize2d(x: Expr, size: object, *, layout: str | None = None, **rest: Any) -> Expr:
    """Images whose layout has blocks are resized without them."""
    if layout is None or not has_blocks_of("", layout):
        return relax_op("image.resize2d")(x, size, layout=layout, **rest)
    return blocked(relax_op("image.resize2d")(unblocked(x, layout), size, layout=plain_layout(layout), **rest), layout)


def windowed(name: str, key: str) -> Callable[..., Expr]:
    """A convolution or pooling of images in blocks, which the operator has not; `key` names its layout."""

    def make(x: Expr, **rest: Any) -> Expr:
        layout: str = rest.get(key) or ""
        out, kernel = rest.get("out_layout") or layout, rest.get("kernel_layout") or ""
        if not has_blocks_of("N", layout, out):
            return relax_op(name)(x, **rest)
        rest |= {key: plain_layout(layout), "out_layout": plain_layout(out)}
        if has_blocks_of("", kernel):
            rest |= {"w": unblocked(rest["w"], kernel), "kernel_layout": plain_layout(kernel)}
        result = relax_op(name)(unblocked(x, layout) if has_blocks_of("", layout) else x, **rest)
        return blocked(result, out) if has_blocks_of("", out) else result

    return make


Adapter = Callable[[Any, Mapping[str, Any]], object]
"""From our result and the arguments to TVM's result."""


def relax_op(name: str) -> Callable[..., Any]:
    """The function of the builder that makes `relax.<name>`."""
    return function_of(operator_classes()[f"relax.{name}"])


def _scalar_tensor(result: Any, arguments: Mapping[str, Any]) -> object:
    """The number of elements is a tensor of rank 0 there, and a prim value here."""
    return relax_op("full")([], result, i64)


def _with_mask(result: Any, arguments: Mapping[str, Any]) -> object:
    """Outside of training nothing is masked."""
    return (result, relax_op("ones_like")(arguments["x"]))


def _alone(result: Any, arguments: Mapping[str, Any]) -> object:
    """One result is no tuple."""
    items = cast("tuple[object, ...]", result) if isinstance(result, tuple) else (result,)
    return items[0] if len(items) == 1 else items


def _batch_norm(
    x: Expr,
    gamma: Expr,
    beta: Expr,
    mean: Expr,
    variance: Expr,
    *,
    momentum: float = 0.1,
    training: Any = True,
    **rest: Any,
) -> tuple[Expr, Expr, Expr]:
    """With the statistics of the batch in training, and what the running statistics become; else with those given."""
    normalize = relax_op("nn.batch_norm")
    if not training:
        return normalize(x, gamma, beta, mean, variance, **rest), mean, variance
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise ValueError("R.nn.batch_norm in training expected data of known rank; write training=False for inference")
    axes = [axis for axis in range(rank) if axis != rest.get("axis", 1) % rank]
    found = [relax_op(name)(x, axes) for name in ("mean", "variance")]
    running = [(1 - momentum) * old + momentum * new for old, new in zip((mean, variance), found, strict=True)]
    return normalize(x, gamma, beta, *found, **rest), running[0], running[1]


def _median(x: Expr, axes: Sequence[int] | None = None, *, keepdims: bool = False) -> object:
    """The lower of two middle elements; along an axis its position comes with it."""
    dims = x.type.known_dims if isinstance(x.type, TensorType) else None
    if dims is None or len(axes or ()) > 1:
        raise ValueError("R.median expected data of known dimensions, and one axis or none")
    if not axes:
        value, _ = _middle(relax_op("flatten")(x), product(dims), 0)
        return relax_op("reshape")(value, [1] * len(dims) if keepdims else [])
    found = _middle(x, dims[axes[0]], axes[0])
    return found if keepdims else tuple(relax_op("squeeze")(each, axes) for each in found)


def _middle(x: Expr, length: Dim, axis: int) -> tuple[Expr, Expr]:
    """The middle of an ordering along an axis, and its position."""
    first = (length - 1) // 2
    indices = relax_op("strided_slice")(relax_op("argsort")(x, axis=axis, dtype=i64), [axis], [first], [first + 1])
    return relax_op("gather_elements")(x, indices, axis=axis), indices


def _of_truth(name: str) -> Callable[..., object]:
    """A sum or product, also of truth values: those are counted, and what comes out is a truth value again."""

    def make(x: Expr, *, dtype: Attribute | None = None, **rest: Any) -> object:
        given = {} if dtype is None else {"dtype": dtype}
        if not isinstance(x.type, TensorType) or x.type.dtype != i1:
            return relax_op(name)(x, **rest, **given)
        counted = relax_op(name)(relax_op("astype")(x, dtype or i32), **rest)
        return counted if dtype is not None else relax_op("astype")(counted, i1)

    return make


def _multiply(x: object, y: object) -> object:
    """The product of truth values is whether both hold."""
    types = [each.type if isinstance(each, Expr) else None for each in (x, y)]
    truths = [isinstance(each, TensorType) and each.dtype == i1 for each in types]
    return relax_op("logical_and" if all(truths) else "multiply")(x, y)


def _affine(name: str) -> Callable[..., object]:
    """A normalisation; without `scale` the factors count as 1, without `center` what is added as 0."""

    def make(x: Expr, gamma: Expr, beta: Expr, *, center: bool = True, scale: bool = True, **rest: Any) -> object:
        factors = gamma if scale else relax_op("ones_like")(gamma)
        added = beta if center else relax_op("zeros_like")(beta)
        return relax_op(name)(x, factors, added, **rest)

    return make


def _take(x: Expr, indices: Any, *, axis: int | None = None, mode: str = "fast") -> object:
    """A number as the index of one slice; in the mode `nan`, NaN for an index that is negative or out of range."""
    indices = relax_op("full")([], indices, i64) if isinstance(indices, int) else indices
    if mode != "nan":
        return relax_op("take")(x, indices, axis, mode)
    info, rank = x.type, indices.type.rank if isinstance(indices.type, TensorType) else None
    dims = info.known_dims if isinstance(info, TensorType) else None
    if not isinstance(info, TensorType) or not isinstance(info.dtype, AnyFloat) or dims is None or rank is None:
        raise ValueError("R.take with the mode nan expected floats of known shape, and indices of known rank")
    if axis is not None and not -len(dims) <= axis < len(dims):
        raise ValueError(f"R.take: axis {axis} is out of range for {info}")
    at = 0 if axis is None else axis % len(dims)
    length = relax_op("astype")(relax_op("full")([], dims[at], i64), indices.dtype)
    valid = relax_op("logical_and")(indices >= 0, indices < length)
    inner = relax_op("expand_dims")(valid, [rank + each for each in range(len(dims) - at - 1)])
    taken = relax_op("take")(x, indices, axis, "clip")
    return relax_op("where")(inner, taken, relax_op("full")([], float("nan"), info.dtype))


def _rounded(name: str) -> Callable[..., object]:
    """A rounding function, which integers are results of."""

    def make(x: Any) -> object:
        info = x.type if isinstance(x, Expr) else None
        return x if isinstance(info, TensorType) and isinstance(info.dtype, IntegerType) else relax_op(name)(x)

    return make


def _concat(inputs: Sequence[Expr], axis: int | None = 0) -> object:
    """Without an axis, vectors one after the other."""
    return relax_op("concat")(inputs, axis or 0)


def _split(x: Expr, *, axis: int = 0, indices: Sequence[object] | None = None, **rest: Any) -> object:
    """Parts from one index to the next; they are empty where an index is after the next, or before the beginning."""
    known = [each for each in indices or () if isinstance(each, int)]
    if indices is None or len(known) != len(indices):
        return relax_op("split")(x, axis=axis, **rest, **({} if indices is None else {"indices": indices}))
    starts = [0, *(max(each, 0) for each in known)]
    if starts == sorted(starts) and min(known, default=0) >= 0:
        return relax_op("split")(x, axis=axis, indices=indices, **rest)
    ends = [max(start, end) for start, end in pairwise([*starts, _END])]
    return tuple(relax_op("strided_slice")(x, [axis], [at], [end]) for at, end in zip(starts, ends, strict=True))


_END = (1 << 63) - 1
"""After every element."""


def _squeeze(x: Expr, axes: Sequence[int] | None = None) -> Expr:
    """Dimensions that are known not to be 1 stay, as in PyTorch."""
    dims = x.type.dims if isinstance(x.type, TensorType) else None
    if axes is None or dims is None:
        return relax_op("squeeze")(x, axes)
    ones = [axis for axis in axes if not -len(dims) <= axis < len(dims) or _may_be_one(dims[axis])]
    return relax_op("squeeze")(x, ones) if ones or not axes else x


def _may_be_one(dim: Dim | None) -> bool:
    return dim is None or dim.constant_value in (None, 1)


def _adaptive_pool(name: str) -> Callable[..., object]:
    """Without a size of its own the result has the data's: each window is one element."""

    def make(x: Expr, output_size: Sequence[int] | None = None, **rest: Any) -> object:
        return x if output_size is None else windowed(name, "layout")(x, output_size=output_size, **rest)

    return make


_RANKS = (1, 2, 3)

_ADAPTIVE_POOLS = [f"nn.adaptive_avg_pool{count}d" for count in _RANKS]

_POOLS = [f"nn.{kind}_pool{count}d" for kind in ("avg", "max") for count in _RANKS]

_CONVOLUTIONS = [f"nn.conv{count}d{kind}" for kind in ("", "_transpose") for count in _RANKS]

FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "concat": _concat,
    "image.resize2d": resize2d,
    "median": _median,
    "multiply": _multiply,
    "nn.batch_norm": _batch_norm,
    **{name: _affine(name) for name in ("nn.group_norm", "nn.instance_norm")},
    "split": _split,
    "squeeze": _squeeze,
    "take": _take,
    **{name: _rounded(name) for name in ("ceil", "floor", "round", "trunc")},
    **{name: _of_truth(name) for name in ("cumprod", "cumsum", "prod", "sum")},
    **{name: _adaptive_pool(name) for name in _ADAPTIVE_POOLS},
    **{name: windowed(name, "layout") for name in _POOLS},
    **{name: windowed(name, "data_layout") for name in _CONVOLUTIONS},
}
"""What stands for an operator that takes other arguments than ours."""

RESULTS: Mapping[str, Adapter] = {
    "nn.dropout": _with_mask,
    "size": _scalar_tensor,
    "topk": _alone,
    "unique": _alone,
}
"""What has to be done to our results to get TVM's, by operator."""
