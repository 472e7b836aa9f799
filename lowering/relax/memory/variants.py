"""Kernels that are made of other kernels, each once, and that take their place where all calls want them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from relax_dialect.scope import called_functions, symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.ops.function import PrimFuncOp


@dataclass
class Variants:
    """The kernels of a module that a pass made of others."""

    module: ModuleOp
    _made: dict[tuple[PrimFuncOp, Hashable], PrimFuncOp] = field(
        default_factory=dict[tuple[PrimFuncOp, Hashable], PrimFuncOp]
    )

    def of(self, func: PrimFuncOp, key: Hashable, suffix: str, make: Callable[[str], PrimFuncOp]) -> PrimFuncOp:
        """The variant of a kernel that a key stands for; `make` is given its name, when it is asked for first."""
        if (func, key) not in self._made:
            names = {found for op in self.module.ops if (found := symbol_name(op)) is not None}
            made = self._made[func, key] = make(fresh_name(f"{func.sym_name.data}_{suffix}", names))
            Rewriter.insert_op(made, InsertPoint.after(func))
        return self._made[func, key]

    def remove_unused(self) -> None:
        """Erases the kernels, and variants, of which only variants are called."""
        if not self._made:
            return
        used = {name for op in self.module.walk() for name in called_functions(op)}
        for func in {*(func for func, _ in self._made), *self._made.values()}:
            if func.sym_name.data not in used:
                Rewriter.erase_op(func)
