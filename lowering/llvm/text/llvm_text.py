"""A printer of llvm-dialect modules as LLVM IR, in one pass over the ops.

It replaces `xdsl.backend.llvm.convert`, which builds an `llvmlite.ir` module first and knows fewer ops. Every function
is printed separately; constants, addresses and undefined values are operands, not instructions. An edge to a block with
arguments gets a block of its own where a branch names the same successor twice, because LLVM's phi nodes identify edges
by their source block only.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from lowering.llvm.text.instructions import EMITTERS
from lowering.llvm.text.module_text import ModuleText
from tir_dialect.garbage import release


def llvm_text(module: ModuleOp) -> str:
    """The LLVM IR text of a module of `llvm.func` and `llvm.mlir.global`; no target is named in it.

    A `vm.constant` is no part of it: the code gets constants when it is loaded.

    Raises `CodegenError` for what LLVM has no text for, naming the op.
    """
    return ModuleText(module, EMITTERS).text()


def spent_text(module: ModuleOp) -> str:
    """The text of a module that nobody looks at afterwards, which is freed; errors as `llvm_text`."""
    text = llvm_text(module)
    release(module)
    return text
