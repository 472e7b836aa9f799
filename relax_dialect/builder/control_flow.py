"""Branches and loops as scopes of `with`."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Block, Region, SSAValue

from relax_dialect.builder.emitter import Frame
from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.expr import Expr
from relax_dialect.builder.scopes import Scope
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.loop_header import LoopOp
from relax_dialect.ops.loops import ForOp, WhileOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import PrimType
from tir_dialect.name_hints import as_name_hint
from tir_dialect.symbols import SymbolAttr

if TYPE_CHECKING:
    from relax_dialect.builder.block_builder import BlockBuilder


class RegionScope(Scope):
    """A branch or a loop: it has results after its end."""

    def __init__(self, builder: BlockBuilder):
        super().__init__(builder)
        self._results: tuple[Expr, ...] | None = None

    @property
    def results(self) -> tuple[Expr, ...]:
        """The results; `BuilderError` before the end."""
        if self._results is None:
            raise BuilderError("a branch or loop has its results after its end")
        return self._results

    @property
    def result(self) -> Expr:
        """The only result; `BuilderError` if there is not exactly one."""
        if len(self.results) != 1:
            raise BuilderError(f"expected one result, got {len(self.results)}: use results")
        return self.results[0]

    def finish(self, op: IfOp | LoopOp) -> None:
        """Emits the op, after its verifier has looked at it."""
        op.verify_()
        self._results = self.builder.exprs(self.builder.insert(op).res)

    def end_block(self, block: Block) -> None:
        """Ends a block that has no end yet by a yield of nothing."""
        if not isinstance(block.last_op, YieldOp):
            self.builder.insert(YieldOp())


class IfScope(RegionScope):
    """A branch: `with branch.then(): ...`, then `with branch.otherwise(): ...`, each ended by `yield_`.

    Without `otherwise`, nothing is done if the condition does not hold.
    """

    def __init__(self, builder: BlockBuilder, condition: SSAValue, out: Sequence[StructInfo] | None):
        super().__init__(builder)
        self._condition = condition
        self._out = out
        self._then: Block | None = None
        self._else: Block | None = None

    @contextmanager
    def then(self) -> Generator[None]:
        """What is run if the condition holds."""
        if self._then is not None:
            raise BuilderError("the branch has its `then` already")
        self._then = Block()
        with self.builder.open_frame(Frame(self._then, "branch")):
            yield
            self.end_block(self._then)

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """What is run if the condition does not hold."""
        if self._else is not None:
            raise BuilderError("the branch has its `otherwise` already")
        self._else = Block()
        with self.builder.open_frame(Frame(self._else, "branch")):
            yield
            self.end_block(self._else)

    def check(self) -> None:
        if self._then is None:
            raise BuilderError("the branch has no `then`")

    def close(self) -> None:
        otherwise = Block([YieldOp()]) if self._else is None else self._else
        self.finish(IfOp(self._condition, Region(self._then or ()), Region(otherwise), self._out))


@dataclass(frozen=True)
class Carried:
    """What a loop carries: names, types, first values, and the symbols that each iteration binds from them."""

    names: tuple[str, ...]
    types: tuple[StructInfo, ...]
    inits: tuple[SSAValue, ...]
    symbols: tuple[SymbolAttr, ...]

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols."""
        return tuple(symbol.symbol.data for symbol in self.symbols)

    def block(self, leading: Mapping[str, StructInfo] | None = None) -> Block:
        """A block with arguments: the leading ones, the symbols, the values."""
        first = leading or {}
        witnesses = [PrimType(value=name) for name in self.symbol_names]
        block = Block(arg_types=[*first.values(), *witnesses, *self.types])
        for argument, name in zip(block.args, (*first, *self.symbol_names, *self.names), strict=True):
            argument.name_hint = as_name_hint(name)
        return block

    def witnesses(self, block: Block, leading: int = 0) -> dict[str, SSAValue]:
        """The arguments of a block that witness the symbols."""
        return dict(zip(self.symbol_names, block.args[leading:], strict=False))

    def values(self, block: Block, leading: int = 0) -> Sequence[SSAValue]:
        """The arguments of a block that are the carried values."""
        return block.args[leading + len(self.symbols) :]


class ForScope(RegionScope):
    """A counted loop; `with bb.for_(0, n, {"acc": zero}) as (i, acc): bb.yield_(acc + x)`."""

    def __init__(
        self,
        builder: BlockBuilder,
        lower: SSAValue,
        upper: SSAValue,
        step: SSAValue | None,
        carried: Carried,
        counter: str,
        symbol: str | None,
    ):
        super().__init__(builder)
        self._bounds = (lower, upper, step)
        self._carried = carried
        self._symbol = symbol
        self._block = carried.block({counter: PrimType(value=symbol)})

    @property
    def counter(self) -> Expr:
        """The counter, a prim value."""
        return self.builder.expr(self._block.args[0])

    @property
    def carried(self) -> tuple[Expr, ...]:
        """The carried values at the beginning of an iteration."""
        return self.builder.exprs(self._carried.values(self._block, 1))

    def __iter__(self) -> Iterator[Expr]:
        return iter((self.counter, *self.carried))

    def enter(self, stack: ExitStack) -> None:
        own: dict[str, SSAValue] = {} if self._symbol is None else {self._symbol: self._block.args[0]}
        symbols = own | self._carried.witnesses(self._block, 1)
        stack.enter_context(self.builder.open_frame(Frame(self._block, "loop", symbols=symbols)))

    def check(self) -> None:
        self.end_block(self._block)

    def close(self) -> None:
        lower, upper, step = self._bounds
        body, carried = Region(self._block), self._carried
        self.finish(
            ForOp(
                lower,
                upper,
                carried.inits,
                body,
                step=step,
                symbols=carried.symbols,
                counter_symbol=self._symbol,
            )
        )


class WhileScope(RegionScope):
    """A loop with a condition: `with loop.condition() as (x,): ...`, then `with loop.body() as (x,): ...`.

    Both are ended by `yield_`: of the condition, and of the values for the next iteration.
    """

    def __init__(self, builder: BlockBuilder, carried: Carried):
        super().__init__(builder)
        self._carried = carried
        self._condition = carried.block()
        self._body = carried.block()

    @contextmanager
    def condition(self) -> Generator[tuple[Expr, ...]]:
        """What decides whether there is another iteration; gives the carried values."""
        with self._open(self._condition) as values:
            yield values

    @contextmanager
    def body(self) -> Generator[tuple[Expr, ...]]:
        """An iteration; gives the carried values."""
        with self._open(self._body) as values:
            yield values

    @contextmanager
    def _open(self, block: Block) -> Generator[tuple[Expr, ...]]:
        if block.last_op is not None:
            raise BuilderError("this part of the loop has been built already")
        with self.builder.open_frame(Frame(block, "loop", symbols=self._carried.witnesses(block))):
            yield self.builder.exprs(self._carried.values(block))
            self.end_block(block)

    def check(self) -> None:
        if self._condition.last_op is None or self._body.last_op is None:
            raise BuilderError("a loop needs both `condition` and `body`")

    def close(self) -> None:
        carried = self._carried
        self.finish(WhileOp(carried.inits, Region(self._condition), Region(self._body), carried.symbols))
