"""Calls of `R` that are known when the text is read: constants, shapes, index maps, devices, facts of a type."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerType, Signedness, i32, i64
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.evaluator import is_number, items_of
from relax_dialect.frontend.tvmscript.functions import function_named, looked_up
from relax_dialect.frontend.tvmscript.relax_func.expressions import (
    ExpressionReader,
    Form,
    ShapeDims,
    call_operator,
)
from relax_dialect.frontend.tvmscript.relax_func.operators import relax_op
from relax_dialect.frontend.tvmscript.scopes import PythonFunction, describe, is_dtype_name, typed
from relax_dialect.frontend.tvmscript.source import Arguments, dotted, is_none
from relax_dialect.frontend.tvmscript.static import StaticReader
from relax_dialect.frontend.tvmscript.types import CPU_KINDS, read_device
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.dims import Dim, FloorDivAtom, ModAtom, SymbolAtom, product, symbol
from tir_dialect.dims.expr import Atom
from tir_dialect.dtypes import lookup, parse_dtype


def _const(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.const(1.0, "float32")`, or nested lists of numbers."""
    given = reader.arguments(node, "R.const", "value dtype")
    dtype_node = given.get("dtype")
    dtype = None if dtype_node is None or is_none(dtype_node) else reader.dtype(dtype_node)
    return constant(reader, given.require("value"), dtype)


def constant(reader: ExpressionReader, node: ast.expr, dtype: Attribute | None) -> Expr:
    """The tensor of numbers in a text, of the dtype that these have if none is said."""
    value = reader.value(node)
    if not _is_data(value):
        reader.fail(node, f"R.const expected numbers, got {describe(value)}")
    return reader.emit(node, lambda: reader.builder.const(_as_lists(value), dtype or _default_dtype(value)))


def _default_dtype(value: object) -> Attribute | None:
    """Integers are `i32`, as in TVM; floats are `f32`, truth values `i1`."""
    items = items_of(value)
    if items is not None:
        kinds = {_default_dtype(each) for each in items}
        return kinds.pop() if len(kinds) == 1 else None
    return i32 if isinstance(value, int) and not isinstance(value, bool) else None


def _is_data(value: object) -> bool:
    items = items_of(value)
    return is_number(value) or type(value).__module__ == "numpy" if items is None else all(map(_is_data, items))


def _as_lists(value: object) -> object:
    items = items_of(value)
    return value if items is None else [_as_lists(each) for each in items]


def _shape(reader: ExpressionReader, node: ast.Call) -> object:
    values = reader.arguments(node, "R.shape", "value", {"values": "value"}).require("value")
    found = reader.value(values)
    if isinstance(found, Expr):
        return found
    return ShapeDims(reader.to_dim(values, each) for each in reader.fields(values, found))


def _tuple(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.tuple(x, y)`, or `R.Tuple([x, y])`, as Python makes it."""
    fields = reader.arguments(node, "R.tuple", "*fields").rest
    if len(fields) == 1 and isinstance(fields[0], ast.List):
        fields = fields[0].elts
    return reader.elements(fields)


def _prim_value(reader: ExpressionReader, node: ast.Call) -> object:
    """A number or a dimension; `R.prim_value(T.float32(2))` is a number of that dtype."""
    argument = reader.arguments(node, "R.prim_value", "value").require("value")
    value = reader.value(argument)
    if not isinstance(value, bool | int | float | Dim | Expr):
        reader.fail(node, f"R.prim_value expected a number or a dimension, got {describe(value)}")
    name = reader.aliases.name_in("tir", argument.func) if isinstance(argument, ast.Call) else None
    if name is None or not is_dtype_name(name) or isinstance(value, bool | Dim | Expr):
        return value
    return reader.emit(argument, lambda: typed(value, parse_dtype(name)))


def _str(reader: ExpressionReader, node: ast.Call) -> object:
    return reader.text(reader.arguments(node, "R.str", "value").require("value"))


def _dtype(reader: ExpressionReader, node: ast.Call) -> object:
    return reader.dtype(reader.arguments(node, "R.dtype", "value").require("value"))


def _null(reader: ExpressionReader, node: ast.Call) -> object:
    return reader.emit(node, lambda: relax_op("null")())


def _tuple_get_item(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.TupleGetItem", "tuple index", {"tuple_value": "tuple"})
    value, index = reader.value(given.require("tuple")), reader.integer(given.require("index"))
    if isinstance(value, Expr):
        return reader.emit(node, lambda: value[index])
    items = items_of(value)
    if items is None or not -len(items) <= index < len(items):
        reader.fail(node, f"expected a tuple with a field {index}, got {describe(value)}")
    return items[index]


def _linear(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.linear(x, weight, bias)`: the product with the transposed weight, and the bias."""
    given = reader.arguments(node, "R.linear", "data weight bias out_dtype")
    data, weight = reader.read(given.require("data")), reader.read(given.require("weight"))
    bias_node, dtype_node = given.get("bias"), given.get("out_dtype")
    dtype = None if dtype_node is None or is_none(dtype_node) else reader.dtype(dtype_node)

    def build() -> Expr:
        transposed = relax_op("permute_dims")(weight)
        product: Expr = relax_op("matmul")(data, transposed, dtype)
        bias = None if bias_node is None else reader.value(bias_node)
        return product if bias is None else product + reader.expr(node, bias)

    return reader.emit(node, build)


def _relu6(reader: ExpressionReader, node: ast.Call) -> object:
    data = reader.read(reader.arguments(node, "R.nn.relu6", "data").require("data"))
    return reader.emit(node, lambda: relax_op("clip")(data, 0.0, 6.0))


def same(reader: ExpressionReader, node: ast.Call) -> object:
    """What says something to passes of TVM only: the value itself."""
    synonyms = {"data": "x", "value": "x", "input": "x"}
    return reader.value(reader.arguments(node, "the call", "x", synonyms).require("x"))


def _emit(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.emit(value, annotate_ty=None)`."""
    given = reader.arguments(node, "R.emit", "value annotate_ty")
    value, declared = given.require("value"), given.get("annotate_ty")
    if declared is None or is_none(declared):
        return reader.value(value)
    return reader.refine(value, reader.read(value), reader.types.read(declared))


def _wrap_param(reader: ExpressionReader, node: ast.Call) -> object:
    given = reader.arguments(node, "R.wrap_param", "data dtype")
    value, dtype = reader.read(given.require("data")), given.get("dtype")
    target = reader.dtype(dtype) if dtype is not None else None
    if target is None or (isinstance(value.type, TensorType) and value.type.dtype == target):
        return value
    return reader.emit(node, lambda: value.astype(target))


_NAMES = ("add", "floor_divide", "floor_mod", "multiply", "subtract")


def _arithmetic(name: str) -> Callable[[ExpressionReader, ast.Call], object]:
    def read(reader: ExpressionReader, node: ast.Call) -> object:
        if len(node.args) != 2 or node.keywords or not any(_names_prim(reader, each) for each in node.args):
            return call_operator(reader, node, name)
        left, right = (reader.value(each) for each in node.args)
        one, other = (reader.expr(node, each) if isinstance(each, Dim) else each for each in (left, right))
        return reader.arithmetic(node, name, one, other)

    return read


def _names_prim(reader: ExpressionReader, node: ast.expr) -> bool:
    """Whether an argument is the name of a prim value or dimension."""
    found = reader.scope.find(node.id) if isinstance(node, ast.Name) else None
    return isinstance(found, Dim) or (isinstance(found, Expr) and isinstance(found.type, PrimType))


_NAMESPACES = {"relax": "R"}

_TYPES = {"sinfo_args": "ty_args", "op_name": "op"}


def _call(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.Call(op, [x, y], ty_args=...)`; `op` is a function or `tvm.ir.Op.get("relax.add")`."""
    given = reader.arguments(node, "R.Call", "op args attrs ty_args span", _TYPES)
    callee = given.require("op")
    if (name := looked_up(callee)) is not None:
        callee = function_named(reader, name, _NAMESPACES)
    return _made(reader, given, callee)


def _emit_with_ty(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.emit_with_ty("relax.add", (x, y), (type,))`."""
    given = reader.arguments(node, "R.emit_with_ty", "op args ty_args", _TYPES)
    return _made(reader, given, function_named(reader, given.require("op"), _NAMESPACES))


def _made(reader: ExpressionReader, given: Arguments, callee: ast.expr) -> object:
    args, types = given.require("args"), given.get("ty_args")
    operands = args.elts if isinstance(args, ast.List | ast.Tuple) else [args]
    keywords = [] if types is None else [ast.copy_location(ast.keyword("ty_args", types), types)]
    return reader.value(ast.copy_location(ast.Call(callee, operands, keywords), given.node))


# Index maps and lengths


def _layout_transform(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.layout_transform(x, index_map=lambda i, j: (j, i), pad_value=None)`; separators of axes say nothing here."""
    names = "x index_map pad_value axis_separators input_axis_separators"
    given = reader.arguments(node, "R.layout_transform", names, {"data": "x"})
    x, index_map = reader.read(given.require("x")), read_index_map(reader, given.require("index_map"))
    pad = given.get("pad_value")
    pad_value = 0.0 if pad is None or reader.value(pad) is None else known_number(reader, pad)
    return reader.emit(node, lambda: relax_op("map_indices")(x, index_map, pad_value))


def known_number(reader: ExpressionReader, node: ast.expr) -> float:
    """An expression that is a number when the text is read."""
    value = reader.value(node)
    if isinstance(value, Expr):
        value = reader.known(node, value)
    if not isinstance(value, bool | int | float):
        reader.fail(node, f"expected a number, got {describe(value)}")
    return value


def read_index_map(reader: ExpressionReader, node: ast.expr) -> AffineMap:
    """The map that a lambda of indices describes, alone or in `T.index_map`, there or by its name."""
    if isinstance(node, ast.Call) and reader.aliases.name_in("tir", node.func) == "index_map":
        node = reader.arguments(node, "T.index_map", "mapping inverse_index_map index_dtype").require("mapping")
    # A lambda, where it stands or by its name.
    if not isinstance(node, ast.Name):
        found = node
    else:
        value = reader.scope.find(node.id)
        found = value.definition()[0] if isinstance(value, PythonFunction) else reader.program.plain.get(node.id)
    if not isinstance(found, ast.Lambda) or not _has_plain_parameters(found.args):
        reader.fail(node, "expected an index map such as lambda i, j: (j, i)")
    node, indices = found.body, [f"index${position}" for position in range(len(found.args.args))]
    static = StaticReader(reader.source, reader.aliases, reader.scope)
    with reader.scope.inner():
        for parameter, index in zip(found.args.args, indices, strict=True):
            reader.scope.bind(parameter.arg, symbol(index))
        value = static.value(node)
    outputs = [static.to_dim(node, each) for each in items_of(value) or (value,)]
    positions = {index: AffineExpr.dimension(position) for position, index in enumerate(indices)}
    return AffineMap(len(indices), 0, tuple(_affine(reader, node, each, positions) for each in outputs))


def _has_plain_parameters(parameters: ast.arguments) -> bool:
    others = (parameters.vararg, parameters.kwarg, *parameters.kwonlyargs, *parameters.posonlyargs)
    return not any(others) and not parameters.defaults


def _affine(reader: ExpressionReader, node: ast.AST, dim: Dim, indices: Mapping[str, AffineExpr]) -> AffineExpr:
    """An expression of indices; products of them, and other divisors than numbers, are no index maps."""
    found = AffineExpr.constant(0)
    for coefficient, monomial in dim.terms:
        match monomial:
            case ():
                found = found + coefficient
            case ((atom, 1),):
                found = found + _atom(reader, node, atom, indices) * coefficient
            case _:
                reader.fail(node, f"expected sums, multiples, quotients and remainders of indices, got {dim}")
    return found


def _atom(reader: ExpressionReader, node: ast.AST, atom: Atom, indices: Mapping[str, AffineExpr]) -> AffineExpr:
    match atom:
        case SymbolAtom(name=name) if name in indices:
            return indices[name]
        case FloorDivAtom(denominator=divisor) | ModAtom(denominator=divisor) if divisor.constant_value is not None:
            numerator, number = _affine(reader, node, atom.operands[0], indices), divisor.constant_value
            return numerator // number if isinstance(atom, FloorDivAtom) else numerator % number
        case _:
            names = ", ".join(sorted(atom.symbols - indices.keys()))
            reader.fail(node, f"expected indices and numbers in an index map, got {names or 'another function'}")


def _reshape(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.reshape(x, (n, -1))`: one length may be -1, which is what is left; 0 is that of the operand."""
    given = reader.arguments(node, "R.reshape", "x shape", {"data": "x", "newshape": "shape"})
    x, shape_node = reader.read(given.require("x")), given.require("shape")
    value = reader.value(shape_node)
    items, known = items_of(value), x.type.known_dims if isinstance(x.type, TensorType) else None
    if items is not None and known is not None:
        # A new shape of a tensor with the lengths that 0 and -1 stand for.
        kept = [
            known[at] if isinstance(each, int) and each == 0 and at < len(known) else each
            for at, each in enumerate(items)
        ]
        open_slots = [at for at, each in enumerate(kept) if isinstance(each, int) and each == -1]
        if len(open_slots) == 1:
            (index,) = open_slots
            rest = product(reader.to_dim(shape_node, each) for at, each in enumerate(kept) if at != index)
            kept[index] = reader.emit(shape_node, lambda: product(known) // rest)
        value = tuple(kept)
    shape = reader.shape(shape_node, value)
    return reader.emit(node, lambda: relax_op("reshape")(x, shape))


# Devices


_NUMBERED = {
    1: "cpu",
    2: "cuda",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    12: "ext_dev",
    15: "webgpu",
}
_KINDS = ("cpu", "cuda", "rocm", "opencl", "metal", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu")


def _moved(reader: ExpressionReader, node: ast.Call, name: str, parameters: str) -> object:
    names = {"vdevice": "device", "dst_vdevice": "device", "data": "x"}
    given = reader.arguments(node, f"R.{name}", parameters, names)
    device = given.require("device")
    text = _made_by_python(reader, device) or read_device(reader, device)
    if text.partition(":")[0] not in CPU_KINDS:
        reader.fail(
            device, f"R.{name} expected a CPU, got {text}: programs are compiled for the CPU; leave R.{name} out"
        )
    return reader.read(given.require("x"))


def _made_by_python(reader: ExpressionReader, node: ast.expr) -> str | None:
    """The device of `tvm.cpu(0)`, which is no name of `R`."""
    kind = (dotted(node.func) or ("",))[-1] if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or kind not in _KINDS or reader.aliases.name_in("relax", node.func) is not None:
        return None
    return _named(reader, kind, node.args[0] if node.args else None)


def _device(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.device("cuda", 1)`, or `R.device(device_type=2, device_id=1)`: a string here."""
    given = reader.arguments(
        node, "R.device", "dev dev_id", {"device_type": "dev", "dev_type": "dev", "device_id": "dev_id"}
    )
    kind = reader.value(given.require("dev"))
    name = _NUMBERED.get(kind) if isinstance(kind, int) else reader.text(given.require("dev"))
    if name is None:
        reader.fail(given.require("dev"), f"expected the kind of a device or DLPack's number of one, got {kind}")
    return _named(reader, name, given.get("dev_id"))


def _of_kind(kind: str) -> Callable[[ExpressionReader, ast.Call], object]:
    def read(reader: ExpressionReader, node: ast.Call) -> object:
        return _named(reader, kind, reader.arguments(node, f"R.{kind}", "dev_id").get("dev_id"))

    return read


def _named(reader: ExpressionReader, kind: str, number: ast.expr | None) -> str:
    return kind if ":" in kind else f"{kind}:{0 if number is None else reader.integer(number)}"


_U8, _U16 = (IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16))
"""What TVM has codes, bits and lanes in."""


def _tensor(reader: ExpressionReader, node: ast.Call, given: Arguments) -> tuple[Expr, TensorType]:
    value = reader.refine(node, reader.read(given.require("x")), TensorType(None, None))
    info = value.type
    return value, info if isinstance(info, TensorType) else TensorType(None, None)


def _fact(name: str, dtype: Attribute, read: Callable[[TensorType], int | None]) -> tuple[str, Form]:
    def form(reader: ExpressionReader, node: ast.Call) -> object:
        given = reader.arguments(node, f"R.inspect.{name}", "x")
        _, info = _tensor(reader, node, given)
        found = read(info)
        if found is None:
            reader.fail(node, f"R.inspect.{name} expected a tensor of which the type knows that, got {info}")
        return reader.emit(node, lambda: reader.builder.prim(found, dtype))

    return f"inspect.{name}", form


def _dtype_part(index: int) -> Callable[[TensorType], int | None]:
    return lambda info: None if info.dtype is None else lookup(info.dtype).dlpack[index]


def _shape_i(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.inspect.tensor_shape_i(x, axis)`."""
    given = reader.arguments(node, "R.inspect.tensor_shape_i", "x axis")
    value, info = _tensor(reader, node, given)
    axis = _axis(reader, given, info)
    known = None if info.dims is None else info.dims[axis]
    if known is not None:
        return known
    shape = reader.emit(node, lambda: relax_op("shape_of")(value))
    return reader.emit(node, lambda: relax_op("shape_get")(shape, axis))


def _stride_i(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.inspect.tensor_stride_i(x, axis)`: how many elements a step along the axis passes; tensors have no gaps."""
    given = reader.arguments(node, "R.inspect.tensor_stride_i", "x axis")
    _, info = _tensor(reader, node, given)
    axis = _axis(reader, given, info)
    after = [dim for dim in (info.dims or ())[axis + 1 :] if dim is not None]
    if info.rank is None or len(after) != info.rank - axis - 1:
        reader.fail(node, f"R.inspect.tensor_stride_i expected known dimensions behind axis {axis}, got {info}")
    return product(after)


def _axis(reader: ExpressionReader, given: Arguments, info: TensorType) -> int:
    node = given.require("axis")
    axis = reader.integer(node)
    if axis < 0 or (info.rank is not None and axis >= info.rank):
        reader.fail(node, f"axis {axis} is out of range for {info}")
    return axis


VALUE_FORMS: Mapping[str, Form] = {
    "layout_transform": _layout_transform,
    "reshape": _reshape,
    "const": _const,
    "shape": _shape,
    "ShapeExpr": _shape,
    "tuple": _tuple,
    "Tuple": _tuple,
    "prim_value": _prim_value,
    "PrimValue": _prim_value,
    "str": _str,
    "StringImm": _str,
    "dtype": _dtype,
    "null_value": _null,
    "TupleGetItem": _tuple_get_item,
    "linear": _linear,
    "nn.linear": _linear,
    "nn.relu6": _relu6,
    "stop_lift_params": same,
    "builtin.stop_lift_params": same,
    "memory.ensure_zero_offset": same,
    "emit": _emit,
    "wrap_param": _wrap_param,
    **{name: _arithmetic(name) for name in _NAMES},
    "Call": _call,
    "emit_with_ty": _emit_with_ty,
    "emit_with_type": _emit_with_ty,
    "to_vdevice": lambda reader, node: _moved(reader, node, "to_vdevice", "x device"),
    "hint_on_device": lambda reader, node: _moved(reader, node, "hint_on_device", "x device memory_scope"),
    "device": _device,
    **{kind: _of_kind(kind) for kind in _KINDS},
    **dict(
        [
            _fact("tensor_ndim", i32, lambda info: info.rank),
            _fact("tensor_dtype_code", _U8, _dtype_part(0)),
            _fact("tensor_dtype_bits", _U8, _dtype_part(1)),
            _fact("tensor_dtype_lanes", _U16, lambda info: 1),
            _fact("tensor_byte_offset", i64, lambda info: 0),
            _fact("tensor_elem_offset", i64, lambda info: 0),
            ("inspect.tensor_shape_i", _shape_i),
            ("inspect.tensor_stride_i", _stride_i),
        ]
    ),
}
"""Calls of `R` that are known when the text is read."""
