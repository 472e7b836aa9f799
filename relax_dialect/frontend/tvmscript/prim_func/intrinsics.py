"""Calls of `T.<name>` in expressions: which reader each name has, casts, constants, and why names are refused."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from relax_dialect.frontend.tvmscript import evaluator
from relax_dialect.frontend.tvmscript.evaluator import BUILTINS, items_of
from relax_dialect.frontend.tvmscript.functions import function_named, looked_up
from relax_dialect.frontend.tvmscript.prim_func.expressions import (
    Form,
    TirExpressionReader,
    access_data,
    access_pointer,
    active_lanes,
    address_of,
    further_bytes,
    if_then_else,
    load_at,
    load_vector,
)
from relax_dialect.frontend.tvmscript.prim_func.foreign import FOREIGN_FORMS, WORKSPACE_FORMS, llvm_intrinsic
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import (
    FUNCTIONS,
    OF_DTYPES,
    converted,
    element_name,
    multiply_shift,
    promoted,
    split_dtype,
)
from relax_dialect.frontend.tvmscript.prim_func.scalars import Buffer, Region, Vector, data_of
from relax_dialect.frontend.tvmscript.prim_func.structs import STRUCT_FORMS
from relax_dialect.frontend.tvmscript.prim_func.vectors import (
    broadcast,
    broadcast_value,
    combined,
    half,
    ramp,
    reinterpret,
    shuffle,
)
from relax_dialect.frontend.tvmscript.scopes import describe, is_dtype_name
from relax_dialect.frontend.tvmscript.source import Aliases, Arguments, suggestion
from relax_dialect.frontend.tvmscript.static import StaticReader, is_python, python_value
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.te import nodes
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype


@dataclass(frozen=True)
class Thread:
    """A thread that `T.env_thread` names, and `T.launch_thread` gives an extent."""

    tag: str


def env_thread(reader: StaticReader, node: ast.Call) -> Thread:
    """`tx = T.env_thread("threadIdx.x")`."""
    return Thread(reader.text(reader.arguments(node, "T.env_thread", "thread_tag dtype").require("thread_tag")))


_BUILTINS = frozenset({"len", "min", "max", "abs", "float", "int", "bool", "floordiv", "floormod", "ceildiv"})
"""Functions that are taken without `T.`."""


def refuse(reader: TirExpressionReader, node: ast.Call, name: str) -> NoReturn:
    """Says why a name of `T` is not taken."""
    if (reason := reason_against(name)) is not None:
        reader.fail(node.func, f"T.{name} {reason}")
    if name in ("break_loop", "continue_loop"):
        reader.fail(node.func, f"T.{name} is a statement, which has no value")
    reader.fail(node.func, f"there is no function T.{name}{suggestion(name, [*FUNCTIONS, *FORMS])}")


def _apply(reader: TirExpressionReader, node: ast.Call, name: str, given: Arguments) -> object:
    operands = [reader.value(each) for each in given.rest]
    if all(isinstance(each, int | float | Dim) for each in operands) and len(operands) == 2:
        # A function of two dimensions, as one; `None` if it is none of those that dimensions have.
        function = evaluator.DIM_FUNCTIONS.get(name)
        dims = [evaluator.as_dim(each) for each in operands]
        one, other = dims[0], dims[1]
        if function is None or one is None or other is None:
            static = None
        else:
            static = reader.emit(node, lambda: evaluator.simplest(function(one, other)))
        if static is not None:
            return static
    return reader.apply(node, name, *operands)


def _typed(reader: TirExpressionReader, node: ast.Call, name: str) -> object:
    """`T.float32(1.5)`, `T.int64(4)`, `T.float32(x)`."""
    given = reader.arguments(node, f"T.{name}", "expr is_size_var")
    value = reader.value(given.require("expr"))
    if isinstance(value, str):
        return _named_number(reader, node, value, name)
    if isinstance(value, Vector | Region):
        return reader.apply(node, f"cast:{name}", value)
    operand = reader.scalar_operand(node, value)
    if name in ("int32", "int64", "bool") and isinstance(operand, bool | int):
        return operand
    if name in ("int32", "int64") and isinstance(operand, Dim):
        return operand
    return reader.emit(node, lambda: converted(operand, to_dtype(name)))


def _typed_vector(reader: TirExpressionReader, node: ast.Call, name: str) -> object:
    """`T.float32x4(x)`."""
    value = reader.value(reader.arguments(node, f"T.{name}", "expr is_size_var").require("expr"))
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
    given = reader.typed_arguments(node, "T.Cast", "value span")
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
    given = reader.arguments(node, "T.Let", "first value body where")
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
                dtype = reader.arguments(node, "astype", "dtype").require("dtype")
                return cast_to(reader, node, value, reader.text(dtype))
            case "access_ptr" if isinstance(value, Buffer):
                return access_pointer(reader, node, value)
            case "vload" if isinstance(value, Buffer):
                return load_vector(reader, node, value)
            case other:
                reader.fail(node.func, f"{describe(value)} has no method {other}")
    if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
        name = node.func.id
        given = reader.arguments(node, name, "*operands")
        if name == "float" and len(given.rest) == 1 and isinstance(given.rest[0], ast.Constant):
            return _named_number(reader, node, str(given.rest[0].value), "float32")
        if name == "len":
            items = items_of(reader.value(given.rest[0])) if given.rest else None
            return len(items) if items is not None else reader.fail(node, "expected the length of a tuple")
        if name in FUNCTIONS:
            return _apply(reader, node, name, given)
        dtypes = {"float": "float32", "int": "int32", "bool": "bool"}
        return cast_to(reader, node, reader.value(given.rest[0]), dtypes[name])
    reader.fail(node.func, "expected a function of T")


def _is_of_python(reader: TirExpressionReader, node: ast.expr) -> bool:
    """Whether a function is one of plain Python, on numbers that are known when the text is read."""
    if isinstance(node, ast.Name):
        return node.id in BUILTINS and node.id not in _BUILTINS and node.id not in reader.scope
    return is_python(reader.aliases, reader.scope, node)


def _buffer_load(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.BufferLoad(A, [i, j], predicate)`."""
    given = reader.arguments(node, "T.BufferLoad", "buffer indices predicate")
    return load_at(reader, node, _buffer(reader, given), given.require("indices"), None, given.get("predicate"))


def _masked_load(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.masked_load("float32x4", A, i, j, mask)`."""
    given = reader.typed_arguments(node, "T.masked_load", "buffer *places")
    if len(given.rest) < 2:
        reader.fail(node, "T.masked_load expected a buffer, the place and a mask")
    *indices, mask = given.rest
    begin = ast.copy_location(ast.List(indices, ast.Load()), node)
    return load_at(reader, node, _buffer(reader, given), begin, given.require("dtype"), mask)


def _buffer(reader: TirExpressionReader, given: Arguments) -> Buffer:
    found = reader.value(given.require("buffer"))
    if not isinstance(found, Buffer):
        reader.fail(given.require("buffer"), "expected a buffer to load from")
    return found


def _same(reader: TirExpressionReader, node: ast.Call) -> object:
    """What says something to passes of TVM only: the value itself."""
    return reader.value(reader.arguments(node, "the call", "value dtype").require("value"))


def _data(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.buffer_data(A)`: the memory of a buffer."""
    return data_of(_buffer(reader, reader.arguments(node, "T.buffer_data", "buffer", {}, ("dtype",))))


def _offset(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.buffer_offset(A)`: where the first element of a buffer is after its memory."""
    found = _buffer(reader, reader.arguments(node, "T.buffer_offset", "buffer", {}, ("dtype",)))
    return found.type.offset if found.base is None else found.start


def _large_integer(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.large_uint_imm("uint64", low, high)`: an integer in two halves."""
    given = reader.arguments(node, "T.large_uint_imm", "dtype low high")
    bits = reader.integer(given.require("high")) << 32 | reader.integer(given.require("low"))
    dtype = reader.text(given.require("dtype"))
    return reader.emit(node, lambda: te.const(bits, to_dtype(dtype)))


def _tuple(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_tuple(x, y)`."""
    return reader.elements(reader.arguments(node, "T.tvm_tuple", "*values", {}, ("dtype",)).rest)


def _undefined(reader: TirExpressionReader, node: ast.Call) -> object:
    """What no expression uses, `T.assume(c)`, or what may be any value, `T.undef()`."""
    return 0


def _target(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.target(...)` in attributes, as text: what is compiled for says the caller of `build`."""
    return ast.unparse(node.args[0]) if node.args else ""


def _multiply_shift(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.q_multiply_shift(x, y, q, s)`: `x * y * 2 ** (s - q)` of fixed-point numbers, rounded."""
    given = reader.arguments(node, "T.q_multiply_shift", "x y q s", {}, ("dtype",))
    x, y = (reader.read_scalar(given.require(name)) for name in "xy")
    q, s = (reader.integer(given.require(name)) for name in "qs")
    return reader.emit(node, lambda: multiply_shift(x, y, q, max(s, 0), max(-s, 0)))


_WIDE = "int64"


def is_wide(aliases: Aliases, node: ast.AST, names: Container[str]) -> bool:
    """Whether an expression mentions `int64`, or one of the names that have 64 bits."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value == _WIDE:
            return True
        if isinstance(each, ast.Name) and each.id in names:
            return True
        if isinstance(each, ast.Attribute) and aliases.name_in("tir", each) == _WIDE:
            return True
    return False


def of_bits(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.clz(x)`, `T.popcount(x)`: what depends on how many bits there are."""
    name = reader.aliases.name_in("tir", node.func) or ""
    operand = reader.arguments(node, f"T.{name}", "x").require("x")
    value = reader.value(operand)
    if isinstance(value, bool | int | Dim) or (isinstance(value, Scalar) and is_index(value.dtype)):
        width = "i64" if is_wide(reader.aliases, operand, reader.wide) else "i32"
        index = reader.index(operand, value)
        scalar = nodes.size(index) if isinstance(index, Dim) else index
        value = reader.emit(node, lambda: te.cast(scalar, width))
    return reader.apply(node, name, value)


_NAMESPACES = {"tirx": "T", "tir": "T"}

_OF_DTYPE = frozenset({"call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret"})
"""Functions whose result has the dtype that the call gives."""


def call_of(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.Call(op, [x], ret_ty="float32")`; `op` is `"tirx.exp"` or `tvm.ir.Op.get("tirx.exp")`."""
    given = reader.arguments(node, "T.Call", "op args ret_ty attrs span", {"dtype": "ret_ty", "ret_type": "ret_ty"})
    op, args, kind = given.require("op"), given.require("args"), given.get("ret_ty")
    function = function_named(reader, looked_up(op) or op, _NAMESPACES)
    operands = args.elts if isinstance(args, ast.List | ast.Tuple) else [args]
    is_typed = isinstance(function, ast.Attribute) and function.attr in _OF_DTYPE
    keywords = [ast.copy_location(ast.keyword("dtype", kind), kind)] if kind is not None and is_typed else []
    return reader.value(ast.copy_location(ast.Call(function, operands, keywords), node))


_GPU_NAMES = (
    "ptx_ ptx. tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment tvm_store_matrix_sync "
    "tvm_kernel_replace_point mma_ cp_async create_barriers tvm_storage_sync tvm_warp_ tvm_global_barrier "
    "thread_return thread_filter tensormap_ TensorMap scope_id warpgroup cluster cta dp4a alloc_cast_frag "
    "alloc_tcgen05 SMEMPool TMEMPool smem tmem wg_reg_tile selector filter call_kernel call_ffi_kernel TileLayout "
    "ComposeLayout constexpr jit meta_class simdgroup make_filled_simdgroup tvm_thread_allreduce atomic_add "
    "print_buffer nd_mem_alloc_with_scope texture2d cuda metal webgpu nvshmem nki cooperative_tensor tcgen05 "
    "wgmma mbarrier device_entry kernel_id cluster_id cta_id warpgroup_id warp_id lane_id thread_id tile."
)
_GPU = tuple(_GPU_NAMES.split())

_MACHINE_NAMES = "call_llvm call_intrin call_spirv llvm_lookup dma_"
_MACHINE = tuple(_MACHINE_NAMES.split())

_BUILDER_NAMES = (
    "If Then Else While Reduce CommReducer comm_reducer Iter IterVar iter_var Range Layout Tuple index_map "
    "add_to_parent func_name func_ret arg"
)
_BUILDER = tuple(_BUILDER_NAMES.split())

_POINTERS = ("handle", "Ptr", "ptr", "buffer_var")

_REASONS: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        _GPU: "is for GPUs, which are not a target",
        _MACHINE: "names an instruction of one machine; use a function of T, or T.call_extern",
    }
)

_EXACT: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_BUILDER, "builds programs from Python; a text writes the statement or expression itself"),
        **dict.fromkeys(_POINTERS, "would be memory that nothing owns; declare buffers over that of a parameter"),
    }
)


def reason_against(name: str) -> str | None:
    """Why `T.<name>` is not taken; `None` if nothing is known against it."""
    if (reason := _EXACT.get(name)) is not None:
        return reason
    return next((reason for prefixes, reason in _REASONS.items() if name.startswith(prefixes)), None)


FORMS: Mapping[str, Form] = {
    **FOREIGN_FORMS,
    **STRUCT_FORMS,
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


class TirCallReader(TirExpressionReader):
    """Reads expressions of PrimFuncs with calls of functions of `T` in them."""

    def call(self, node: ast.Call) -> object:
        name = self.aliases.name_in("tir", node.func)
        if self.aliases.name_in("ir", node.func) == "meta_var":
            return _same(self, node)
        if name is None:
            return _method_or_builtin(self, node)
        bare, lanes = split_dtype(name := element_name(name))
        if is_dtype_name(bare):
            return _typed(self, node, name) if lanes is None else _typed_vector(self, node, name)
        if (form := FORMS.get(name)) is not None:
            return form(self, node)
        if name in OF_DTYPES:
            dtype = self.arguments(node, f"T.{name}", "dtype").require("dtype")
            kind = self.dtype(dtype)
            return self.emit(node, lambda: OF_DTYPES[name](kind))
        if name in FUNCTIONS:
            given = self.arguments(node, f"T.{name}", "*operands span", None, ("dtype",))
            return _apply(self, node, name, given)
        refuse(self, node, name)
