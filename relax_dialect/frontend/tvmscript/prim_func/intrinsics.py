"""Calls in PrimFuncs that give scalars: functions, casts, constants, foreign functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from relax_dialect.frontend.tvmscript.prim_func.boxes import BOX_FORMS
from relax_dialect.frontend.tvmscript.prim_func.choice import if_then_else
from relax_dialect.frontend.tvmscript.prim_func.dtypes import element_name, split_dtype
from relax_dialect.frontend.tvmscript.prim_func.foreign import FOREIGN_FORMS, typed_arguments
from relax_dialect.frontend.tvmscript.prim_func.llvm import llvm_intrinsic
from relax_dialect.frontend.tvmscript.prim_func.masks import active_lanes, load_at, load_vector
from relax_dialect.frontend.tvmscript.prim_func.pointers import access_data, access_pointer, address_of, further_bytes
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted, promoted
from relax_dialect.frontend.tvmscript.prim_func.python_calls import call_of
from relax_dialect.frontend.tvmscript.prim_func.refusals import reason_against
from relax_dialect.frontend.tvmscript.prim_func.rows import combined, half, reinterpret, shuffle
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS, OF_DTYPES, multiply_shift
from relax_dialect.frontend.tvmscript.prim_func.structs import STRUCT_FORMS
from relax_dialect.frontend.tvmscript.prim_func.threads import env_thread
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Region, Vector, data_of
from relax_dialect.frontend.tvmscript.prim_func.vectors import broadcast, broadcast_value, ramp
from relax_dialect.frontend.tvmscript.prim_func.widths import of_bits
from relax_dialect.frontend.tvmscript.prim_func.workspaces import WORKSPACE_FORMS
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.captured import is_python
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.names import suggestion
from relax_dialect.frontend.tvmscript.text.python_values import BUILTINS, python_value
from relax_dialect.frontend.tvmscript.text.static import describe, is_dtype_name
from tir_dialect import te
from tir_dialect.te.operators import to_dtype

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_BUILTINS = frozenset({"len", "min", "max", "abs", "float", "int", "bool", "floordiv", "floormod", "ceildiv"})
"""Functions that are taken without `T.`."""


def call_in_prim_func(reader: TirExpressionReader, node: ast.Call) -> object:
    """The value of a call."""
    name = reader.aliases.name_in("tir", node.func)
    if reader.aliases.name_in("ir", node.func) == "meta_var":
        return _same(reader, node)
    if name is None:
        return _method_or_builtin(reader, node)
    bare, lanes = split_dtype(name := element_name(name))
    if is_dtype_name(bare):
        return _typed(reader, node, name) if lanes is None else _typed_vector(reader, node, name)
    if (form := FORMS.get(name)) is not None:
        return form(reader, node)
    if name in OF_DTYPES:
        dtype = Arguments(reader.source, node, f"T.{name}", "dtype").require("dtype")
        kind = reader.dtype(dtype)
        return reader.emit(node, lambda: OF_DTYPES[name](kind))
    if name in FUNCTIONS:
        given = Arguments(reader.source, node, f"T.{name}", "*operands span", None, ("dtype",))
        return _apply(reader, node, name, given)
    refuse(reader, node, name)


def refuse(reader: TirExpressionReader, node: ast.Call, name: str) -> NoReturn:
    """Says why a name of `T` is not taken."""
    if (reason := reason_against(name)) is not None:
        reader.fail(node.func, f"T.{name} {reason}")
    if name in ("break_loop", "continue_loop"):
        reader.fail(node.func, f"T.{name} is a statement, which has no value")
    reader.fail(node.func, f"there is no function T.{name}{suggestion(name, [*FUNCTIONS, *FORMS])}")


def _apply(reader: TirExpressionReader, node: ast.Call, name: str, given: Arguments) -> object:
    operands = [reader.value(each) for each in given.rest]
    if all(isinstance(each, int | float) or reader.is_dim(each) for each in operands) and len(operands) == 2:
        static = reader.static_function(node, name, operands)
        if static is not None:
            return static
    return reader.apply(node, name, *operands)


def _typed(reader: TirExpressionReader, node: ast.Call, name: str) -> object:
    """`T.float32(1.5)`, `T.int64(4)`, `T.float32(x)`."""
    given = Arguments(reader.source, node, f"T.{name}", "expr is_size_var")
    value = reader.value(given.require("expr"))
    if isinstance(value, str):
        return _named_number(reader, node, value, name)
    if isinstance(value, Vector | Region):
        return reader.apply(node, f"cast:{name}", value)
    operand = reader.scalar_operand(node, value)
    if name in ("int32", "int64", "bool") and isinstance(operand, bool | int):
        return operand
    if name in ("int32", "int64") and reader.is_dim(operand):
        return operand
    return reader.emit(node, lambda: converted(operand, to_dtype(name)))


def _typed_vector(reader: TirExpressionReader, node: ast.Call, name: str) -> object:
    """`T.float32x4(x)`."""
    value = reader.value(Arguments(reader.source, node, f"T.{name}", "expr is_size_var").require("expr"))
    return cast_to(reader, node, value, name)


def _named_number(reader: TirExpressionReader, node: ast.Call, text: str, dtype: str) -> object:
    """`T.float32("inf")`, and hexadecimal floats."""
    try:
        number = float.fromhex(text) if "0x" in text else float(text)
    except ValueError:
        reader.fail(node, f'expected a number, got "{text}"')
    return reader.emit(node, lambda: te.const(number, to_dtype(dtype)))


def _cast(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.Cast("float32", x)`, or `T.cast(x, "float32")`."""
    given = typed_arguments(reader, node, "T.Cast", "value span")
    first, second = given.require("dtype"), given.require("value")
    if not isinstance(reader.value(first), str):
        first, second = second, first
    return cast_to(reader, node, reader.value(second), reader.text(first))


def cast_to(reader: TirExpressionReader, node: ast.AST, value: object, dtype: str) -> object:
    """A scalar or vector converted to a dtype."""
    bare, lanes = split_dtype(dtype)
    if isinstance(value, Vector | Region):
        return reader.apply(node, f"cast:{bare}", value)
    if lanes is not None:
        return broadcast_value(reader, node, value, lanes, reader.emit(node, lambda: to_dtype(bare)))
    operand = reader.scalar_operand(node, value)
    return reader.emit(node, lambda: te.cast(promoted(operand)[0], to_dtype(bare)))


def _let(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.Let(body, where={x: value})`, or `T.let(x, value, body)`."""
    given = Arguments(reader.source, node, "T.Let", "first value body where")
    where = given.get("where")
    if isinstance(where, ast.Dict):
        pairs, body = list(zip(where.keys, where.values, strict=True)), given.require("first")
    else:
        pairs, body = [(given.require("first"), given.require("value"))], given.require("body")
    with reader.scope.inner():
        for target, value in pairs:
            if not isinstance(target, ast.Name):
                reader.fail(target or node, "expected a name to bind")
            reader.scope.bind(target.id, reader.value(value))
        return reader.value(body)


def _method_or_builtin(reader: TirExpressionReader, node: ast.Call) -> object:
    if _is_of_python(reader, node.func):
        return python_value(reader, node)
    if isinstance(node.func, ast.Attribute):
        value = reader.value(node.func.value)
        match node.func.attr:
            case "astype":
                dtype = Arguments(reader.source, node, "astype", "dtype").require("dtype")
                return cast_to(reader, node, value, reader.text(dtype))
            case "access_ptr" if isinstance(value, Buffer):
                return access_pointer(reader, node, value)
            case "vload" if isinstance(value, Buffer):
                return load_vector(reader, node, value)
            case other:
                reader.fail(node.func, f"{describe(value)} has no method {other}")
    if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
        return _builtin(reader, node, node.func.id)
    reader.fail(node.func, "expected a function of T")


def _is_of_python(reader: TirExpressionReader, node: ast.expr) -> bool:
    """Whether a function is one of plain Python, on numbers that are known when the text is read."""
    if isinstance(node, ast.Name):
        return node.id in BUILTINS and node.id not in _BUILTINS and node.id not in reader.scope
    return is_python(reader.aliases, reader.scope, node)


def _builtin(reader: TirExpressionReader, node: ast.Call, name: str) -> object:
    given = Arguments(reader.source, node, name, "*operands")
    if name == "float" and len(given.rest) == 1 and isinstance(given.rest[0], ast.Constant):
        return _named_number(reader, node, str(given.rest[0].value), "float32")
    if name == "len":
        items = items_of(reader.value(given.rest[0])) if given.rest else None
        return len(items) if items is not None else reader.fail(node, "expected the length of a tuple")
    if name in FUNCTIONS:
        return _apply(reader, node, name, given)
    dtypes = {"float": "float32", "int": "int32", "bool": "bool"}
    return cast_to(reader, node, reader.value(given.rest[0]), dtypes[name])


def _buffer_load(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.BufferLoad(A, [i, j], predicate)`."""
    given = Arguments(reader.source, node, "T.BufferLoad", "buffer indices predicate")
    return load_at(reader, node, _buffer(reader, given), given.require("indices"), None, given.get("predicate"))


def _masked_load(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.masked_load("float32x4", A, i, j, mask)`."""
    given = typed_arguments(reader, node, "T.masked_load", "buffer *places")
    if len(given.rest) < 2:
        reader.fail(node, "T.masked_load expected a buffer, the place and a mask")
    *places, mask = given.rest
    begin = ast.copy_location(ast.List(places, ast.Load()), node)
    return load_at(reader, node, _buffer(reader, given), begin, given.require("dtype"), mask)


def _buffer(reader: TirExpressionReader, given: Arguments) -> Buffer:
    found = reader.value(given.require("buffer"))
    if not isinstance(found, Buffer):
        reader.fail(given.require("buffer"), "expected a buffer to load from")
    return found


def _same(reader: TirExpressionReader, node: ast.Call) -> object:
    """What says something to passes of TVM only: the value itself."""
    return reader.value(Arguments(reader.source, node, "the call", "value dtype").require("value"))


def _data(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.buffer_data(A)`: the memory of a buffer."""
    return data_of(_buffer(reader, Arguments(reader.source, node, "T.buffer_data", "buffer", {}, ("dtype",))))


def _offset(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.buffer_offset(A)`: where the first element of a buffer is behind its memory."""
    found = _buffer(reader, Arguments(reader.source, node, "T.buffer_offset", "buffer", {}, ("dtype",)))
    return found.type.offset if found.base is None else found.start


def _large_integer(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.large_uint_imm("uint64", low, high)`: an integer in two halves."""
    given = Arguments(reader.source, node, "T.large_uint_imm", "dtype low high")
    bits = reader.integer(given.require("high")) << 32 | reader.integer(given.require("low"))
    dtype = reader.text(given.require("dtype"))
    return reader.emit(node, lambda: te.const(bits, to_dtype(dtype)))


def _tuple(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_tuple(x, y)`."""
    return reader.elements(Arguments(reader.source, node, "T.tvm_tuple", "*values", {}, ("dtype",)).rest)


def _undefined(reader: TirExpressionReader, node: ast.Call) -> object:
    """What no expression uses, `T.assume(c)`, or what may be any value, `T.undef()`."""
    return 0


def _target(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.target(...)` in attributes, as text: what is compiled for says the caller of `build`."""
    return ast.unparse(node.args[0]) if node.args else ""


def _multiply_shift(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.q_multiply_shift(x, y, q, s)`: `x * y * 2 ** (s - q)` of fixed-point numbers, rounded."""
    given = Arguments(reader.source, node, "T.q_multiply_shift", "x y q s", {}, ("dtype",))
    x, y = (reader.read_scalar(given.require(name)) for name in "xy")
    q, s = (reader.integer(given.require(name)) for name in "qs")
    return reader.emit(node, lambda: multiply_shift(x, y, q, max(s, 0), max(-s, 0)))


FORMS: Mapping[str, Callable[[TirExpressionReader, ast.Call], object]] = {
    **FOREIGN_FORMS,
    **STRUCT_FORMS,
    **BOX_FORMS,
    **WORKSPACE_FORMS,
    "Cast": _cast,
    "cast": _cast,
    "reinterpret": reinterpret,
    "Shuffle": shuffle,
    "vectorlow": half,
    "vectorhigh": half,
    "vectorcombine": combined,
    "get_active_lane_mask": active_lanes,
    "Let": _let,
    "let": _let,
    "address_of": address_of,
    "tvm_access_ptr": access_data,
    "handle_add_byte_offset": further_bytes,
    "ptr_byte_offset": further_bytes,
    "BufferLoad": _buffer_load,
    "masked_load": _masked_load,
    "clz": of_bits,
    "popcount": of_bits,
    "call_llvm_intrin": llvm_intrinsic,
    "call_llvm_pure_intrin": llvm_intrinsic,
    "ramp": ramp,
    "Ramp": ramp,
    "broadcast": broadcast,
    "Broadcast": broadcast,
    "likely": _same,
    "ignore_loop_partition": _same,
    "undef": _undefined,
    "assume": _undefined,
    "target": _target,
    "q_multiply_shift": _multiply_shift,
    "const": _cast,
    "env_thread": env_thread,
    "if_then_else": if_then_else,
    "IntImm": _cast,
    "FloatImm": _cast,
    "meta_var": _same,
    "StringImm": _same,
    "Call": call_of,
    "prefetch": _undefined,
    "start_profile_intrinsic": _undefined,
    "end_profile_intrinsic": _undefined,
    "buffer_data": _data,
    "buffer_offset": _offset,
    "large_uint_imm": _large_integer,
    "tvm_tuple": _tuple,
}
"""Calls of `T` that take more than scalars."""
