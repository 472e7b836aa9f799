"""Errors of compiled code: a function in each module that raises an error text as a tvm-ffi error."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, StringAttr, i8, i64

from lowering.llvm.builder.function_builder import call_op
from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.llvm.builder.module_builder import ModuleBuilder

_NAME = "relax.raise"
_COLD = ArrayAttr([StringAttr("cold"), StringAttr("noinline"), StringAttr("nounwind")])

ALREADY_RAISED = ""
"""The kind in an error's text which says that a function that was called has raised."""


def raise_function(module: ModuleBuilder) -> str:
    """The name of `void raise(ptr text)`, which is added to the module once.

    The text is `kind NUL message NUL`; with an empty kind nothing is raised, since that has been done.
    """
    if _NAME not in module.defined:
        _define(module)
    return _NAME


def _define(module: ModuleBuilder) -> None:
    b = LLVMBuilder(module, [POINTER])
    (kind,) = b.entry.args
    new, done = b.new_block(), b.new_block()
    first = b.load(kind, i8, 1)
    b.branch_if(b.compare("eq", first, b.integer(0, i8)), done, new)
    b.start(new)
    module.declare("strlen", [POINTER], i64)
    length = b.call("strlen", [kind], i64)
    message = b.element(kind, b.add(length, b.integer(1)), i8)
    module.declare("TVMFFIErrorSetRaisedFromCStr", [POINTER, POINTER], None)
    b.insert(call_op("TVMFFIErrorSetRaisedFromCStr", (kind, message), None))
    b.branch(done)
    b.start(done)
    b.insert(llvm.ReturnOp())
    module.define(_NAME, [POINTER], None, b.finish(), internal=True, properties={"passthrough": _COLD})
