"""Errors raised by generated code, and the locations that they mention."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import SSAValue

from lowering.llvm.builder.function_builder import call_op
from lowering.locations import names, source_position
from lowering.vm_to_llvm.abi import RUNTIME
from lowering.vm_to_llvm.globals import ModuleGlobals
from lowering.vm_to_llvm.runtime_builder import RuntimeBuilder


def raise_error(
    emit: RuntimeBuilder, shared: ModuleGlobals, kind: str, message: SSAValue, values: Sequence[SSAValue]
) -> None:
    """Raises an error of the class `kind`; `message` is a format string of C for the values."""
    name = shared.runtime("vmrt_raise")
    class_name = emit.address(shared.text(kind.encode()))
    emit.insert(call_op(name, (class_name, message, *values), None, RUNTIME[name]))


def backtrace_line(location: LocationAttr, function: str) -> str:
    """A line as in Python's tracebacks, which tvm-ffi makes frames of; empty if the location is unknown.

    The imported name of an op stands behind that of the function.
    """
    where, imported = source_position(location), names(location)
    caller = f"{function} ({', '.join(imported)})" if imported else function
    if where.filename is not None:
        return f'  File "{where.filename}", line {where.line}, in {caller}\n'
    return f'  File "<{function}>", line 0, in {caller}\n' if imported else ""
