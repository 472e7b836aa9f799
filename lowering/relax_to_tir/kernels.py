"""The kernels of a module."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.relax_to_tir.kernel import Kernel, Made
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.symbols import symbol_name
from tir_dialect import te
from tir_dialect.ops.function import PrimFuncOp


@dataclass
class Kernels:
    """The PrimFuncs of a module that legalisation has made; equal kernels are made once."""

    module: ModuleOp
    _made: dict[Hashable, Made] = field(default_factory=dict[Hashable, Made])
    _names: set[str] = field(default_factory=set[str])
    _last: PrimFuncOp | None = None

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)

    def call(self, kernel: Kernel, outputs: Callable[[], te.Tensor | Sequence[te.Tensor]], name: str) -> CallTIROp:
        """The call of the PrimFunc that computes `outputs`; they are asked for if there is no equal kernel yet."""
        found = self._made.get(kernel.key)
        if found is None:
            unique = fresh_name(name, self._names)
            self._names.add(unique)
            found = self._made[kernel.key] = kernel.build(outputs(), unique)
            block = self.module.body.block
            insert_point = InsertPoint.at_start(block) if self._last is None else InsertPoint.after(self._last)
            Rewriter.insert_op(found.func, insert_point)
            self._last = found.func
        return kernel.call(found)
