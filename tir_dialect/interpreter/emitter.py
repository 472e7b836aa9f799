"""Generation of Python source code from a prim_func."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from tir_dialect.analysis.data_sources import DataSources
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.init import InitPlacement, init_placement
from tir_dialect.analysis.size_conditions import first_effect, size_conditions
from tir_dialect.dims import Dim
from tir_dialect.interpreter.errors import UnsupportedOpError
from tir_dialect.interpreter.runtime import NAMESPACE
from tir_dialect.interpreter.text import dim_text
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp

MAX_NESTED_LOOPS = 18
"""CPython allows 20 nested blocks in a function; deeper loops go into functions of their own."""


@dataclass
class _Function:
    """The source of one Python function, and the names of the values in it."""

    lines: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])
    indent: int = 1
    loop_depth: int = 0


class Emitter:
    """The generated source, the names of SSA values in it, and the objects that it refers to."""

    def __init__(
        self,
        func: PrimFuncOp,
        rule_of: RuleOf,
        call: Callable[[CallOp], Any],
        foreign: Callable[[ForeignCallOp | CallBoxedOp], Any],
    ):
        """`rule_of` says how an op is written; `call` and `foreign` give the functions that stand for callees."""
        self.func = func
        self.rule_of = rule_of
        self.call = call
        self.foreign = foreign
        self.dims = DimEvaluator()
        self.sources = DataSources()
        self.namespace: dict[str, Any] = dict(NAMESPACE)
        self._finished: list[str] = []
        self._current = _Function()
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
        self._body()
        self._finish("main", arguments)
        return "\n".join(self._finished)

    def _body(self) -> None:
        """The ops of the prim_func; what sizes have to be like comes before the first that has an effect."""
        position = first_effect(self.func)
        for op in self.func.body.block.ops:
            if op is position:
                self._check_sizes()
            self.op(op)

    def _check_sizes(self) -> None:
        for condition in size_conditions(self.func):
            tests = [f"{self.dim(condition.smaller)} <= {self.dim(condition.larger)}"]
            tests += [f"{self.dim(length)} <= 0" for length in condition.lengths]
            self.line(f"if not ({' or '.join(tests)}): fail_assertion({self.constant(condition.message)})")

    def _finish(self, name: str, parameters: Sequence[str]) -> None:
        self._finished += [f"def {name}({', '.join(parameters)}):", *(self._current.lines or ["  pass"])]

    @contextmanager
    def loop(self) -> Generator[None]:
        """Room for one more loop: in a function of its own where nesting gets too deep for CPython."""
        outer = self._current
        if outer.loop_depth < MAX_NESTED_LOOPS:
            outer.loop_depth += 1
            yield
            outer.loop_depth -= 1
            return
        self._current = _Function(loop_depth=1)
        yield
        name, captured = self.fresh("body"), sorted(self._current.used - self._current.defined)
        self._finish(name, captured)
        self._current = outer
        outer.used.update(captured)
        self.line(f"{name}({', '.join(captured)})")

    def early_inits(self, loop: ForOp) -> list[tuple[BlockOp, InitPlacement]]:
        """The blocks whose reductions start with `loop`, and where their inits go."""
        return self._early_inits.get(loop, [])

    def line(self, text: str) -> None:
        """Adds a line."""
        self._current.lines.append("  " * self._current.indent + text)

    @contextmanager
    def indented(self) -> Generator[None]:
        """Lines of a nested block; `pass` if there are none."""
        function = self._current
        function.indent += 1
        start = len(function.lines)
        yield
        if len(function.lines) == start:
            self.line("pass")
        function.indent -= 1

    def block(self, block: Block) -> None:
        """Adds the ops of a block."""
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        """Adds one op; UnsupportedOpError if it has no semantics here."""
        self.rule_of(op)(self, op)

    def fresh(self, prefix: str = "t") -> str:
        """A name that is not used yet."""
        self._counter += 1
        return f"{prefix}{self._counter}"

    def define(self, value: SSAValue) -> str:
        """A name for a new value."""
        name = self._names[value] = self.fresh("v")
        self._current.defined.add(name)
        return name

    def alias(self, value: SSAValue, name: str) -> None:
        """Makes `value` go by the name of something else."""
        self._names[value] = name

    def name(self, value: SSAValue) -> str:
        """The name of a value."""
        found = self._names.get(value)
        if found is None:
            raise UnsupportedOpError("a value is used before its definition")
        if found.startswith("v"):
            self._current.used.add(found)
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
        self._current.used.update(self._symbols[name] for name in dim.symbols)
        return dim_text(dim, self._symbols)


Rule: TypeAlias = Callable[[Emitter, Any], None]
"""Adds the text of one kind of op."""

RuleOf: TypeAlias = Callable[[Operation], Rule]


def hint(value: SSAValue, default: str = "value") -> str:
    """How messages call a value."""
    return f"%{value.name_hint}" if value.name_hint else default
