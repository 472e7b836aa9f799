"""Functions, closures, dataflow regions, branches and loops as scopes of `with`."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from relax_dialect.builder.calls import CallEmitter
from relax_dialect.builder.emitter import BuilderError, Frame, Value, as_value
from relax_dialect.builder.expr import Expr
from relax_dialect.ops.control_flow import ForOp, IfOp, WhileOp, YieldOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.signature import LoopOp, entry_region
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.struct_info.symbols import erase_to_scope
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, StructInfo
from tir_dialect.types import SymbolAttr, as_name_hint

FuncAttribute: TypeAlias = Attribute | int | str | bool | Sequence[int | str]


class ScopedEmitter(CallEmitter):
    """An emitter that knows which functions and dataflow regions are open."""

    def __init__(self, module: ModuleOp, *, locations: bool = False):
        super().__init__(module, locations=locations)
        self.open_callables: list[CallableScope] = []
        self.open_dataflows: list[DataflowScope] = []

    @contextmanager
    def open_function(self, scope: CallableScope) -> Generator[None]:
        """Makes `scope` what `emit_func_output` ends, and this the current builder."""
        self.open_callables.append(scope)
        try:
            with self.as_current():
                yield
        finally:
            self.open_callables.pop()

    @contextmanager
    def open_dataflow(self, scope: DataflowScope) -> Generator[None]:
        """Makes `scope` what `emit_output` adds to."""
        self.open_dataflows.append(scope)
        try:
            yield
        finally:
            self.open_dataflows.pop()


class Scope:
    """Something that is open between `with` and its end; without an error it then becomes an op."""

    def __init__(self, builder: ScopedEmitter):
        self.builder = builder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.enter(self._stack)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.check()
            except BaseException:
                self._stack.close()
                self.abandon()
                raise
        self._stack.close()
        if error is None:
            self.close()
        else:
            self.abandon()

    def enter(self, stack: ExitStack) -> None:
        """Opens what `stack` closes at the end."""

    def check(self) -> None:
        """Raises `BuilderError` if the scope must not end like this."""

    def close(self) -> None:
        """Makes the op, in the scope around."""

    def abandon(self) -> None:
        """Undoes what `enter` announced, because an error ended the scope."""


class CallableScope(Scope):
    """A function or closure: parameters, a body, and one result."""

    def __init__(
        self,
        builder: ScopedEmitter,
        what: str,
        params: Mapping[str, StructInfo],
        ret: StructInfo | None,
        symbols: Sequence[SymbolAttr],
        pure: bool,
        itself: str | None = None,
    ):
        super().__init__(builder)
        self.ret = ret
        """The type of the result, if it was given."""
        self._provisional = FuncType(params.values(), ret or ObjectType(), pure=pure, symbols=symbols)
        leading = [] if itself is None else [(itself, self._provisional)]
        self.region = entry_region(self._provisional, leading)
        own = len(leading)
        self._arguments = self.region.block.args[own + len(symbols) :]
        for argument, name in zip(self._arguments, params, strict=True):
            argument.name_hint = as_name_hint(name) or as_name_hint(re.sub(r"\W", "_", name, flags=re.ASCII))
        witnesses: dict[str, SSAValue] = dict(
            zip(self._provisional.symbol_names, self.region.block.args[own:], strict=False)
        )
        self.frame = Frame(self.region.block, what, symbols=witnesses)
        self.result: SSAValue | None = None

    @property
    def params(self) -> tuple[Expr, ...]:
        """The parameters."""
        return self.builder.exprs(self._arguments)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.params)

    def __repr__(self) -> str:
        names = ", ".join(each.name_hint or "_" for each in self._arguments)
        return f"the parameters of {self.frame.what}: unpack them by `as ({names}{',' * (len(self._arguments) == 1)})`"

    @property
    def declared(self) -> FuncType | None:
        """The type, if that of the result was given."""
        return None if self.ret is None else self._provisional

    def enter(self, stack: ExitStack) -> None:
        stack.enter_context(self.builder.open_frame(self.frame))
        stack.enter_context(self.builder.open_function(self))

    def emit_return(self, value: SSAValue) -> None:
        """Ends the body."""
        self.builder.insert(ReturnOp(value))
        self.result = value

    def check(self) -> None:
        if self.result is None:
            raise BuilderError(f"{self.frame.what} has no result: end it with emit_func_output")

    def function_type(self) -> FuncType:
        """The type with the result's, which is that of the returned value as far as it can be said outside."""
        known, result = self._provisional, self.result
        if self.ret is not None or result is None:
            return known
        info = self.builder.expr(result).type
        ret = erase_to_scope(info, {*known.symbol_names, *self.outer_symbols()})
        return FuncType(known.params, ret, pure=known.pure, symbols=known.symbols)

    def outer_symbols(self) -> set[str]:
        """The symbols that are visible around the function."""
        return set()


class FunctionScope(CallableScope):
    """A function of the module."""

    def __init__(
        self,
        builder: ScopedEmitter,
        name: str,
        params: Mapping[str, StructInfo],
        ret: StructInfo | None,
        symbols: Sequence[SymbolAttr],
        *,
        pure: bool,
        private: bool,
        force_pure: bool,
        attrs: Mapping[str, FuncAttribute],
        result_names: Sequence[str] | None,
    ):
        super().__init__(builder, f"function {name}", params, ret, symbols, pure)
        self.frame.isolated = True
        self.name = name
        self._names = tuple(params)
        self._results = result_names
        self._private = private
        self._force_pure = force_pure
        self._attrs = {key: as_attribute(value) for key, value in attrs.items()}

    def enter(self, stack: ExitStack) -> None:
        self.builder.functions.open(self.name, self.declared)
        super().enter(stack)

    def abandon(self) -> None:
        self.builder.functions.forget(self.name)

    def close(self) -> None:
        visibility = "private" if self._private else None
        func = FuncOp(self.name, self.function_type(), self.region, visibility=visibility, force_pure=self._force_pure)
        func.name_params(self._names)
        if self._results is not None:
            func.result_names = ArrayAttr([StringAttr(name) for name in self._results])
        func.attributes |= self._attrs
        self.builder.locate(func)
        try:
            func.verify_()
        except BaseException:
            self.abandon()
            raise
        self.builder.functions.define(func)


class ClosureScope(CallableScope):
    """A function value that captures what it uses of its surroundings."""

    def __init__(
        self,
        builder: ScopedEmitter,
        params: Mapping[str, StructInfo],
        ret: StructInfo | None,
        symbols: Sequence[SymbolAttr],
        *,
        pure: bool,
        itself: str | None,
    ):
        super().__init__(builder, "closure", params, ret, symbols, pure, itself)
        self._recursive = itself is not None
        if self._recursive and ret is None:
            raise BuilderError("a recursive closure needs the type of its result: ret=...")
        self._value: Expr | None = None

    @property
    def itself(self) -> Expr:
        """The closure inside of itself; `BuilderError` if it is not recursive."""
        if not self._recursive:
            raise BuilderError("the closure is not recursive: give it a name with recursive=...")
        return self.builder.expr(self.region.block.args[0])

    @property
    def value(self) -> Expr:
        """The function value; `BuilderError` before the end of the closure."""
        if self._value is None:
            raise BuilderError("a closure has its value after its end; inside it is `itself`")
        return self._value

    def outer_symbols(self) -> set[str]:
        return set(self.builder.symbols)

    def close(self) -> None:
        op = ClosureOp(self.function_type(), self.region, recursive=self._recursive)
        op.verify_()
        self._value = self.builder.expr(self.builder.insert(op).result)


class DataflowScope(Scope):
    """A dataflow region: pure ops, of which only the outputs are visible after it."""

    def __init__(self, builder: ScopedEmitter):
        super().__init__(builder)
        self.block = Block()
        self._outputs: list[Expr] = []

    def enter(self, stack: ExitStack) -> None:
        stack.enter_context(self.builder.open_frame(Frame(self.block, "dataflow region", "lv")))
        stack.enter_context(self.builder.open_dataflow(self))

    def output(self, value: Value, name: str | None) -> Expr:
        """Makes a value visible after the region."""
        bare = as_value(self.builder, value)
        if not self.builder.is_visible(bare):
            raise BuilderError("the output of a dataflow region is not visible in it")
        expr = self.builder.expr(bare)
        self._outputs.append(expr)
        if name is not None:
            bare.name_hint = as_name_hint(name)
        return expr

    def check(self) -> None:
        self.builder.insert(OutputOp(*(expr.value for expr in self._outputs)))

    def close(self) -> None:
        names = [expr.value.name_hint for expr in self._outputs]
        op = DataflowOp(self.block)
        op.verify_()
        self.builder.insert(op)
        for expr, result, name in zip(self._outputs, op.results, names, strict=True):
            expr.rebind(result)
            if name != "lv":
                result.name_hint = name


def as_attribute(value: FuncAttribute) -> Attribute:
    """An attribute of a function as Python writes it: `True` is a flag, integers are `i64`."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return UnitAttr() if value else IntegerAttr.from_bool(False)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, str):
        return StringAttr(value)
    return ArrayAttr[Attribute](as_attribute(element) for element in value)


def pack(builder: ScopedEmitter, value: Value | Sequence[Value]) -> SSAValue:
    """One value; several become a tuple."""
    if isinstance(value, Sequence):
        return builder.insert(TupleOp(*(as_value(builder, each) for each in value))).result
    return as_value(builder, value)


class RegionScope(Scope):
    """A branch or a loop: it has results after its end."""

    def __init__(self, builder: ScopedEmitter):
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

    def __init__(self, builder: ScopedEmitter, condition: SSAValue, out: Sequence[StructInfo] | None):
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
        builder: ScopedEmitter,
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

    def __init__(self, builder: ScopedEmitter, carried: Carried):
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
