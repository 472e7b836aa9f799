"""Functions, closures and dataflow regions as scopes of `with`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, SSAValue

from relax_dialect.builder.convert import as_value
from relax_dialect.builder.emitter import Frame
from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.expr import Expr, Value
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.signature import entry_region
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.erase import erase_to_scope
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import ObjectType
from tir_dialect.name_hints import as_name_hint
from tir_dialect.symbols import SymbolAttr

if TYPE_CHECKING:
    from relax_dialect.builder.block_builder import BlockBuilder

FuncAttribute: TypeAlias = Attribute | int | str | bool | Sequence[int | str]


class Scope:
    """Something that is open between `with` and its end; without an error it then becomes an op."""

    def __init__(self, builder: BlockBuilder):
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
        builder: BlockBuilder,
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
        builder: BlockBuilder,
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
        builder: BlockBuilder,
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

    def __init__(self, builder: BlockBuilder):
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


def pack(builder: BlockBuilder, value: Value | Sequence[Value]) -> SSAValue:
    """One value; several become a tuple."""
    if isinstance(value, Sequence):
        return builder.insert(TupleOp(*(as_value(builder, each) for each in value))).result
    return as_value(builder, value)
