"""Writes the Python source of a prim_func, op by op."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.init import InitPlacement, init_placement
from tir_dialect.dims import Dim
from tir_dialect.interpreter.errors import UnsupportedOpError
from tir_dialect.interpreter.runtime import NAMESPACE
from tir_dialect.interpreter.text import dim_text
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp

MAX_NESTED_LOOPS = 18
"""CPython allows 20 nested blocks in a function; deeper loops go into functions of their own."""


class Emitter:
    """The source text, the names of SSA values in it, and the objects that it refers to."""

    def __init__(self, func: PrimFuncOp, call: Callable[[CallOp], Any], foreign: Callable[[ForeignCallOp], Any]):
        """`call` and `foreign` give the Python functions that stand for callees."""
        self.func = func
        self.call = call
        self.foreign = foreign
        self.dims = DimEvaluator()
        self.namespace: dict[str, Any] = dict(NAMESPACE)
        self.loop_depth = 0
        self._lines: list[str] = []
        self._indent = 0
        self._names: dict[SSAValue, str] = {}
        self._counter = 0
        self._symbols: dict[str, str] = {}
        self._early_inits: dict[ForOp, list[tuple[BlockOp, InitPlacement]]] = {}

    def source(self) -> str:
        """The text of the function `main`, whose parameters are those of the prim_func, symbols first."""
        for op in self.func.body.walk():
            placement = init_placement(op) if isinstance(op, BlockOp) else None
            if isinstance(op, BlockOp) and placement is not None:
                self._early_inits.setdefault(placement.loop, []).append((op, placement))
        arguments = [self.define(argument) for argument in self.func.body.block.args]
        self._symbols = dict(zip(self.func.symbol_names, arguments, strict=False))
        self.line(f"def main({', '.join(arguments)}):")
        with self.indented():
            self.block(self.func.body.block)
        return "\n".join(self._lines)

    def early_inits(self, loop: ForOp) -> list[tuple[BlockOp, InitPlacement]]:
        """The blocks whose reductions start with `loop`, and where their inits go."""
        return self._early_inits.get(loop, [])

    def line(self, text: str) -> None:
        """Adds a line."""
        self._lines.append("  " * self._indent + text)

    @contextmanager
    def indented(self) -> Generator[None]:
        """Lines of a nested block; `pass` if there are none."""
        self._indent += 1
        start = len(self._lines)
        yield
        if len(self._lines) == start:
            self.line("pass")
        self._indent -= 1

    def block(self, block: Block) -> None:
        """Adds the ops of a block."""
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        """Adds one op; UnsupportedOpError if it has no semantics here."""
        rule = rules().get(type(op))
        if rule is None:
            from tir_dialect.interpreter.emit_scalars import emit_elementwise

            rule = emit_elementwise
        rule(self, op)

    def fresh(self, prefix: str = "t") -> str:
        """A name that is not used yet."""
        self._counter += 1
        return f"{prefix}{self._counter}"

    def define(self, value: SSAValue) -> str:
        """A name for a new value."""
        name = self._names[value] = self.fresh("v")
        return name

    def alias(self, value: SSAValue, name: str) -> None:
        """Makes `value` go by the name of something else."""
        self._names[value] = name

    def name(self, value: SSAValue) -> str:
        """The name of a value."""
        found = self._names.get(value)
        if found is None:
            raise UnsupportedOpError("a value is used before its definition")
        return found

    def names(self, values: tuple[SSAValue, ...]) -> list[str]:
        """The names of values."""
        return [self.name(value) for value in values]

    def assign(self, value: SSAValue, expression: str) -> None:
        """Adds the definition of a value."""
        self.line(f"{self.define(value)} = {expression}")

    def constant(self, value: object, prefix: str = "c") -> str:
        """A name for an object outside the text."""
        name = self.fresh(prefix)
        self.namespace[name] = value
        return name

    def dim(self, dim: Dim) -> str:
        """The text of a dimension over the symbols of the function."""
        return dim_text(dim, self._symbols)


Rule: TypeAlias = Callable[[Emitter, Any], None]
"""Adds the text of one kind of op."""

_rules: dict[type[Operation], Rule] = {}


def rules() -> Mapping[type[Operation], Rule]:
    """The rule for each kind of op that is not elementwise arithmetic."""
    if not _rules:
        from tir_dialect.interpreter.emit_control import CONTROL_RULES
        from tir_dialect.interpreter.emit_memory import MEMORY_RULES
        from tir_dialect.interpreter.emit_scalars import SCALAR_RULES
        from tir_dialect.interpreter.emit_vectors import VECTOR_RULES

        _rules.update(CONTROL_RULES | MEMORY_RULES | SCALAR_RULES | VECTOR_RULES)
    return _rules


def hint(value: SSAValue, default: str = "value") -> str:
    """How messages call a value."""
    return f"%{value.name_hint}" if value.name_hint else default
