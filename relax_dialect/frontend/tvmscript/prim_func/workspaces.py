"""Memory that a text asks of TVM's run time and gives back, and what that tells of errors and contexts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64

from relax_dialect.frontend.tvmscript.prim_func.addresses import ADDRESS, memory_at, to_address
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from tir_dialect import te
from tir_dialect.dtypes import parse_dtype
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.scalars import AssertOp
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader

_ALIGNMENT = 64


def allocate_workspace(reader: TirExpressionReader, node: ast.Call) -> Scalar:
    """`T.TVMBackendAllocWorkspace(device_type, device_id, bytes, code, bits)`: memory of the C library."""
    names = "device_type device_id nbytes dtype_code dtype_bits"
    given = Arguments(reader.source, node, "T.TVMBackendAllocWorkspace", names, {}, ("dtype",))
    size = reader.apply(node, "Add", reader.value(given.require("nbytes")), _ALIGNMENT - 1)
    whole = reader.apply(node, "Mul", reader.apply(node, "floordiv", size, _ALIGNMENT), _ALIGNMENT)
    operands = [te.const(_ALIGNMENT, ADDRESS), to_address(reader, node, reader.apply(node, "cast:int64", whole))]
    op = CallExternOp("aligned_alloc", reader.values(node, *operands), i64)
    return reader.variable(reader.insert(op), ADDRESS, "workspace")


def free_workspace(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.TVMBackendFreeWorkspace(device_type, device_id, p)`; it succeeds, which is 0."""
    names = "device_type device_id ptr"
    given = Arguments(reader.source, node, "T.TVMBackendFreeWorkspace", names, {}, ("dtype",))
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
    given = Arguments(reader.source, node, "T.tvm_check_return", "expected unexpected call", {}, ("dtype",))
    expected = reader.value(given.require("expected"))
    equal = reader.apply(node, "EQ", reader.value(given.require("call")), expected)
    assert isinstance(equal, Scalar)  # of scalars
    message = f"expected {ast.unparse(given.require('call'))} to return {ast.unparse(given.require('expected'))}"
    reader.block.add_op(AssertOp(reader.values(node, equal)[0], message, "RuntimeError"))
    return expected


def lookup_param(reader: TirExpressionReader, node: ast.Call) -> Scalar:
    """`T.lookup_param("p0")`: where a parameter of the model lies, which a C function of its name says."""
    given = Arguments(reader.source, node, "T.lookup_param", "param_name", {}, ("dtype",))
    op = CallExternOp(f"__tvm_param__{reader.text(given.require('param_name'))}", [], i64)
    return reader.variable(reader.insert(op), ADDRESS, "param")


def _same(reader: TirExpressionReader, node: ast.Call) -> object:
    return reader.value(Arguments(reader.source, node, "the call", "value", {}, ("dtype",)).require("value"))


def _first_context(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.tvm_context_id()`: a number for a place where workspaces are apart; there is one."""
    return 0


WORKSPACE_FORMS: Mapping[str, Callable[[TirExpressionReader, ast.Call], object]] = {
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
