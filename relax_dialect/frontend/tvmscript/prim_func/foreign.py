"""Calls of functions from outside: C functions, packed functions, TVM's run time, intrinsics of LLVM."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from relax_dialect.frontend.tvmscript.prim_func.buffers import ADDRESS, memory_at, moved, to_address, view
from relax_dialect.frontend.tvmscript.prim_func.expressions import Form, TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import element_name, promoted
from relax_dialect.frontend.tvmscript.prim_func.scalars import Buffer, Index, Pointer, pointer_to
from relax_dialect.frontend.tvmscript.prim_func.structs import (
    AnyAt,
    PointerValue,
    TensorAt,
    boxed_argument,
    call_boxed,
    result_of,
    set_field,
    tensor_on_stack,
)
from relax_dialect.frontend.tvmscript.prim_func.vectors import named_dtype
from relax_dialect.frontend.tvmscript.scopes import is_dtype_name
from tir_dialect import te
from tir_dialect.calling_conventions import FIELDS
from tir_dialect.dims import Dim
from tir_dialect.dtypes import byte_size, dtype_name, parse_dtype, scalar_type
from tir_dialect.ops.arithmetic import AssertOp
from tir_dialect.ops.calls import CallExternOp, CallPackedOp
from tir_dialect.te.coerce import is_index
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

_WITHOUT_RESULT = ("", "void", "handle")
"""Dtypes of calls whose results no expression uses."""


def _call_extern(reader: TirExpressionReader, node: ast.Call) -> object:
    given = reader.typed_arguments(node, "T.call_extern", "func *arguments")
    dtype = reader.text(given.require("dtype"))
    name = reader.text(given.require("func"))
    if (runtime := WORKSPACE_FORMS.get(name)) is not None:
        return runtime(reader, ast.copy_location(ast.Call(node.func, given.rest, []), node))
    return _foreign(reader, node, _evaluated(reader, given.rest), name, dtype, packed=False)


def _evaluated(reader: TirExpressionReader, nodes: Sequence[ast.expr]) -> list[tuple[ast.expr, object]]:
    return [(each, reader.value(each)) for each in nodes]


def _call_pure_extern(reader: TirExpressionReader, node: ast.Call) -> object:
    given = reader.typed_arguments(node, "T.call_pure_extern", "func *arguments")
    dtype, name = reader.text(given.require("dtype")), reader.text(given.require("func"))
    if dtype in _WITHOUT_RESULT:
        return _foreign(reader, node, _evaluated(reader, given.rest), name, dtype, packed=False)
    scalars = [reader.read_scalar(each) for each in given.rest]
    return reader.emit(node, lambda: te.call_extern(to_dtype(dtype), name, *(promoted(each)[0] for each in scalars)))


def _call_packed(reader: TirExpressionReader, node: ast.Call) -> object:
    """A packed function: tensors and numbers as they are, boxed if there are other values among them."""
    given = reader.arguments(node, "T.call_packed", "func *arguments", {}, ("dtype",))
    name, kind_node = reader.text(given.require("func")), given.get("dtype")
    dtype = "" if kind_node is None else reader.text(kind_node)
    values = [_packed_argument(reader, each) for each in given.rest]
    if not any(map(_needs_box, values)):
        return _foreign(reader, node, list(zip(given.rest, values, strict=True)), name, dtype, packed=True)
    any_value = call_boxed(reader, node, name, values)
    return None if dtype in _WITHOUT_RESULT else result_of(reader, node, any_value, dtype)


def _packed_argument(reader: TirExpressionReader, node: ast.expr) -> object:
    value = boxed_argument(reader, node)
    if isinstance(value, Pointer):
        value = _first_element(reader, node, value)
    return value


def _needs_box(value: object) -> bool:
    return isinstance(value, str | None | TensorAt | AnyAt | PointerValue) or (
        isinstance(value, Buffer) and value.extents is not None
    )


def _foreign(
    reader: TirExpressionReader,
    node: ast.Call,
    rest: Sequence[tuple[ast.expr, object]],
    name: str,
    dtype: str,
    *,
    packed: bool,
) -> object:
    """Calls a function from outside, here and once."""
    arguments = [_argument(reader, *each) for each in rest]
    pointer = dtype == "handle" and reader.wants_value
    kind = (
        None if dtype in _WITHOUT_RESULT and not pointer else named_dtype(reader, node, "int64" if pointer else dtype)
    )
    result = None if kind is None or is_index(kind) else scalar_type(kind)
    op = (CallPackedOp if packed else CallExternOp)(name, arguments, result)
    reader.block.add_op(op)
    return None if kind is None or op.result is None else reader.variable(op.result, kind)


def _argument(reader: TirExpressionReader, node: ast.expr, value: object) -> SSAValue:
    if isinstance(value, str):
        value = to_address(reader, node, value)
    if isinstance(value, Pointer):
        value = _first_element(reader, node, value)
    if isinstance(value, Buffer):
        return value.value
    operand = reader.scalar_operand(node, value)
    scalar = reader.emit(node, lambda: promoted(operand)[0])
    if is_index(scalar.dtype):
        scalar = reader.emit(node, lambda: te.cast(scalar, "i64"))
    return reader.values(node, scalar)[0]


def _first_element(reader: TirExpressionReader, node: ast.expr, memory: Pointer) -> Buffer:
    """Memory as a buffer, whose address is handed over: the whole one, or one that begins further after."""
    buffer = memory.buffer
    if buffer is None:
        reader.fail(node, "memory without a shape is given one by T.decl_buffer")
    if memory.is_whole:
        return buffer
    return view(reader, node, memory, BufferType([], memory.dtype, scope=memory.scope))


def make_array(reader: TirExpressionReader, node: ast.Call) -> Buffer | TensorAt:
    """`T.tvm_stack_make_array(data, shape, strides, ndim, value, elem_offset)`; the value shows the dtype."""
    names = "data shape strides ndim value elem_offset"
    given = reader.arguments(node, "T.tvm_stack_make_array", names, {}, ("dtype",))
    data_node = given.require("data")
    data, offset_node = reader.value(data_node), given.get("elem_offset")
    if isinstance(data, Buffer):
        data = pointer_to(data)
    dtype = data.dtype if isinstance(data, Pointer) else parse_dtype(_dtype(reader, given.require("value")))
    offset = reader.index(node, 0 if offset_node is None else reader.value(offset_node))
    shape, strides = (_extents(reader, given.get(name)) for name in ("shape", "strides"))
    known, steps = _known(shape), _known(strides)
    if isinstance(data, Pointer) and known is not None and (strides is None or steps is not None):
        return view(reader, node, data, BufferType(known, dtype, strides=steps), "tensor", offset)
    start = reader.apply(node, "Mul", offset, byte_size(dtype))
    memory = moved(reader, node, to_address(reader, data_node, data), start)
    tensor = tensor_on_stack(reader, node, memory, shape or [], dtype_name(dtype))
    for name, number in (("strides", 3), ("shape", 2)):
        where = given.get(name)
        if where is not None and (name == "strides" or shape is None):
            set_field(reader, where, FIELDS[number], tensor, 0, reader.value(where))
    if shape is None:
        set_field(reader, node, FIELDS[4], tensor, 0, reader.value(given.require("ndim")))
    return TensorAt(tensor)


def _known(indices: list[Index] | None) -> list[Dim] | None:
    """The numbers, if all of them are known before the program runs."""
    dims = [each for each in indices or () if isinstance(each, Dim)]
    return dims if indices is not None and len(dims) == len(indices) else None


def _extents(reader: TirExpressionReader, node: ast.expr | None) -> list[Index] | None:
    """The numbers in `T.tvm_stack_make_shape(n, m)`; `None` if they are elsewhere."""
    match node:
        case ast.Call() if reader.aliases.name_in("tir", node.func) == "tvm_stack_make_shape":
            return [reader.index(each, reader.value(each)) for each in node.args]
        case _:
            return None


def _dtype(reader: TirExpressionReader, node: ast.expr) -> str:
    """The dtype that `T.float32(0)` or `T.Cast("float32", 0)` shows."""
    if isinstance(node, ast.Call):
        name = element_name(reader.aliases.name_in("tir", node.func) or "")
        texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
        for each in (name, *texts):
            if isinstance(each, str) and is_dtype_name(each):
                return each
    reader.fail(node, 'expected a number that shows the dtype, as T.float32(0) or T.Cast("float32", 0)')


_ALIGNMENT = 64


def allocate_workspace(reader: TirExpressionReader, node: ast.Call) -> Scalar:
    """`T.TVMBackendAllocWorkspace(device_type, device_id, bytes, code, bits)`: memory of the C library."""
    names = "device_type device_id nbytes dtype_code dtype_bits"
    given = reader.arguments(node, "T.TVMBackendAllocWorkspace", names, {}, ("dtype",))
    size = reader.apply(node, "Add", reader.value(given.require("nbytes")), _ALIGNMENT - 1)
    whole = reader.apply(node, "Mul", reader.apply(node, "floordiv", size, _ALIGNMENT), _ALIGNMENT)
    operands = [te.const(_ALIGNMENT, ADDRESS), to_address(reader, node, reader.apply(node, "cast:int64", whole))]
    op = CallExternOp("aligned_alloc", reader.values(node, *operands), i64)
    return reader.variable(reader.insert(op), ADDRESS, "workspace")


def free_workspace(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.TVMBackendFreeWorkspace(device_type, device_id, p)`; it succeeds, which is 0."""
    names = "device_type device_id ptr"
    given = reader.arguments(node, "T.TVMBackendFreeWorkspace", names, {}, ("dtype",))
    address = to_address(reader, node, reader.value(given.require("ptr")))
    memory = memory_at(reader, node, address, BufferType([1], parse_dtype("uint8")), "workspace")
    reader.block.add_op(CallExternOp("free", [memory.value]))
    return 0


def throw_last_error(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_throw_last_error()`: the program ends here with an error."""
    failed = reader.values(node, te.const(False, "i1"))[0]
    reader.block.add_op(AssertOp(failed, "a function that the program has called failed", "RuntimeError"))
    return 0


def check_return(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_check_return(expected, unexpected, call)`: the call, which has to give what is expected."""
    given = reader.arguments(node, "T.tvm_check_return", "expected unexpected call", {}, ("dtype",))
    expected = reader.value(given.require("expected"))
    equal = reader.apply(node, "EQ", reader.value(given.require("call")), expected)
    assert isinstance(equal, Scalar)  # of scalars
    message = f"expected {ast.unparse(given.require('call'))} to return {ast.unparse(given.require('expected'))}"
    reader.block.add_op(AssertOp(reader.values(node, equal)[0], message, "RuntimeError"))
    return expected


def lookup_param(reader: TirExpressionReader, node: ast.Call) -> Scalar:
    """`T.lookup_param("p0")`: where a parameter of the model lies, which a C function of its name says."""
    given = reader.arguments(node, "T.lookup_param", "param_name", {}, ("dtype",))
    op = CallExternOp(f"__tvm_param__{reader.text(given.require('param_name'))}", [], i64)
    return reader.variable(reader.insert(op), ADDRESS, "param")


def _same(reader: TirExpressionReader, node: ast.Call) -> object:
    return reader.value(reader.arguments(node, "the call", "value", {}, ("dtype",)).require("value"))


def _first_context(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_context_id()`: the number of a context of workspaces; there is one."""
    return 0


WORKSPACE_FORMS: Mapping[str, Form] = {
    "TVMBackendAllocWorkspace": allocate_workspace,
    "TVMBackendFreeWorkspace": free_workspace,
    "tvm_throw_last_error": throw_last_error,
    "tvm_check_return": check_return,
    "lookup_param": lookup_param,
    "tvm_context_id": _first_context,
    "tvm_thread_context": _same,
    "tvm_thread_invariant": _same,
}
"""Calls of `T` of TVM's run time."""

_SAME = (
    "sqrt exp exp2 exp10 log log2 log10 sin cos tan asin acos atan sinh cosh tanh "
    "fabs floor ceil trunc pow copysign fma"
)

_FUNCTIONS = MappingProxyType(
    {
        **{name: name for name in _SAME.split()},
        "rint": "nearbyint",
        "nearbyint": "nearbyint",
        "roundeven": "nearbyint",
        "fmuladd": "fma",
        "ctpop": "popcount",
        "smax": "max",
        "smin": "min",
    }
)
"""The functions of `T` that intrinsics are."""

_OF_ONE = frozenset(_FUNCTIONS.values()) - {"pow", "copysign", "fma", "max", "min"}


def llvm_intrinsic(reader: TirExpressionReader, node: ast.Call) -> object:
    """The function that an intrinsic is; `TVMScriptError` for one that only some machines have."""
    what = f"T.{reader.aliases.name_in('tir', node.func)}"
    given = reader.typed_arguments(node, what, "name *operands")
    name = _name(reader, given.require("name"))
    if not isinstance(name, str):
        # An intrinsic by its number in one release of LLVM: that of three numbers is the sum of a
        # product.
        if len(given.rest) != 4:
            reader.fail(
                given.require("name"), "the numbers of intrinsics are those of one release of LLVM; write the name"
            )
        return reader.apply(node, "fma", *(reader.value(each) for each in given.rest[1:]))
    function = _FUNCTIONS.get(name.removeprefix("llvm.").partition(".")[0]) if name.count(".") < 3 else None
    if function is None:
        reader.fail(given.require("name"), f"{name} names an instruction of one machine; use a function of T")
    operands = [reader.value(each) for each in given.rest]
    if function in _OF_ONE and len(operands) == 2:
        # texts of TVM before 0.20 say first how many operands tell the intrinsic's type
        operands = operands[1:]
    return reader.apply(node, function, *operands)


def _name(reader: TirExpressionReader, node: ast.expr) -> object:
    """The name, also in `T.llvm_lookup_intrinsic_id("llvm.sqrt")`; a number, where the text has that."""
    is_looked_up = isinstance(node, ast.Call) and reader.aliases.name_in("tir", node.func) == "llvm_lookup_intrinsic_id"
    if isinstance(node, ast.Call) and is_looked_up and node.args:
        node = node.args[0]
    return reader.value(node)


FOREIGN_FORMS: Mapping[str, Form] = {
    "call_extern": _call_extern,
    "call_pure_extern": _call_pure_extern,
    "call_packed": _call_packed,
    "tvm_call_packed": _call_packed,
    "call_cpacked": _call_packed,
    "tvm_call_cpacked": _call_packed,
    "tvm_call_trace_packed": _call_packed,
    "tvm_stack_make_array": make_array,
}
"""Calls of `T` of functions from outside."""
