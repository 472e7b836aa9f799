"""Calls: of functions of the module, of function values, of PrimFuncs and of packed functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from relax_dialect.builder.convert import as_shape, as_value
from relax_dialect.builder.emitter import Emitter
from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.expr import Expr, Value
from relax_dialect.builder.functions import FunctionTable
from relax_dialect.builder.types import InfoLike, as_result_types, as_struct_info
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_packed import CallDPSPackedOp, CallPackedOp, CallPurePackedOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.prim_func import explicit_symbols, match_prim_func
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.calls import call_result, partial_application
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, DimLike, symbol, to_dim
from tir_dialect.ops.function import PrimFuncOp

Shapes: TypeAlias = Value | Sequence[DimLike]
"""A shape value, or dimensions."""

Sizes: TypeAlias = Sequence[DimLike] | Mapping[str, DimLike]
"""Values of symbols of a PrimFunc, in their order or by name."""


class CallEmitter(Emitter):
    """An emitter that knows the functions of a module."""

    def __init__(self, module: ModuleOp, *, locations: bool = False):
        super().__init__(locations=locations)
        self.functions = FunctionTable(module)

    def values(self, values: Sequence[Value]) -> list[SSAValue]:
        """Bare values."""
        return [as_value(self, value) for value in values]

    # Relax functions

    def call(self, function: str | Expr, *arguments: Value) -> Expr:
        """Calls a function of the module by name, or a function value; the symbols are bound from the arguments."""
        values = self.values(arguments)
        if isinstance(function, Expr):
            return self.expr(self.insert(CallClosureOp(function.value, values)).result)
        callee = self.functions.type_of(function)
        result = _checked(function, lambda: call_result(callee, _types(values)).ret)
        return self.expr(self.insert(CallOp(function, values, result, pure=callee.pure)).result)

    def make_closure(self, function: str, *captured: Value) -> Expr:
        """A relax function or PrimFunc of the module as a value, its first parameters bound to the captured values."""
        values = self.values(captured)
        callee = self.functions.value_type(function)
        rest = _checked(function, lambda: partial_application(callee, _types(values)))
        return self.expr(self.insert(MakeClosureOp(function, values, rest)).result)

    def extern_func(self, name: str, info: FuncType | None = None) -> Expr:
        """A packed function as a value."""
        return self.expr(self.insert(ExternFuncOp(name, info)).result)

    # PrimFuncs

    @overload
    def call_tir(
        self,
        function: str | PrimFuncOp,
        arguments: Sequence[Value],
        out: list[InfoLike],
        *,
        tir_vars: Sizes = (),
    ) -> tuple[Expr, ...]: ...
    @overload
    def call_tir(
        self,
        function: str | PrimFuncOp,
        arguments: Sequence[Value],
        out: InfoLike,
        *,
        shape: Shapes | None = None,
        tir_vars: Sizes = (),
    ) -> Expr: ...
    def call_tir(
        self,
        function: str | PrimFuncOp,
        arguments: Sequence[Value],
        out: InfoLike | list[InfoLike],
        *,
        shape: Shapes | None = None,
        tir_vars: Sizes = (),
    ) -> Expr | tuple[Expr, ...]:
        """Calls a PrimFunc with new tensors of the types `out`, a list if there are several; gives those.

        `tir_vars` are the values of symbols that no buffer determines; by name, of other symbols too, which are
        compared. `shape` is the shape of the result where its type does not say it.
        """
        types, several = as_result_types(out)
        callee, values, shapes = self._prim_func(function), self.values(arguments), self._shapes(shape)
        values, sizes = self._sizes(callee, values, types, tir_vars)
        op = CallTIROp(callee.sym_name.data, values, _tensors(types), shapes=shapes, tir_vars=sizes)
        op.verify_results()
        match_prim_func(op, callee, (*_types(values), *types), op.tir_dims)
        results = self.results(self.insert(op))
        return results if several else results[0]

    def call_tir_inplace(
        self,
        function: str | PrimFuncOp,
        arguments: Sequence[Value],
        inplace: Sequence[int],
        out: list[InfoLike],
        tir_vars: Sizes = (),
    ) -> tuple[Expr, ...]:
        """Calls a PrimFunc that writes results into arguments: `inplace` says for each into which, or -1."""
        types, _ = as_result_types(out)
        callee = self._prim_func(function)
        fresh = [info for info, target in zip(types, inplace, strict=False) if target < 0]
        values, sizes = self._sizes(callee, self.values(arguments), fresh, tir_vars)
        op = CallTIRInplaceOp(callee.sym_name.data, values, inplace, _tensors(types), tir_vars=sizes)
        op.verify_()
        return self.results(self.insert(op))

    def _sizes(
        self, callee: PrimFuncOp, values: list[SSAValue], out: Sequence[StructInfo], given: Sizes
    ) -> tuple[list[SSAValue], Sequence[DimLike]]:
        """The arguments and `tir_vars` of a call: of all symbols if values are given that shapes determine too."""
        if not isinstance(given, Mapping):
            return values, given
        explicit = explicit_symbols(callee)
        if missing := [name for name in explicit if name not in given]:
            raise BuilderError(f"call of @{callee.sym_name.data}: expected a value for {', '.join(missing)}")
        sizes = [given[name] for name in explicit]
        if given.keys() <= {*explicit}:
            return values, sizes
        values = [self.with_named_dims(value) for value in values]
        call = CallTIROp(callee.sym_name.data, values, (), tir_vars=sizes)
        found = match_prim_func(call, callee, (*_types(values), *out), call.tir_dims).bindings
        if all(found[name] is to_dim(size) for name, size in given.items()):
            return values, sizes
        return values, [given.get(name, found[name]) for name in callee.symbol_names]

    def with_named_dims(self, value: SSAValue) -> SSAValue:
        """The value; a tensor of known rank with new symbols for the dimensions of which nothing is known."""
        info = value.type
        if not isinstance(info, TensorType) or info.dims is None or None not in info.dims:
            return value
        names: list[str] = []
        dims: list[Dim] = []
        for dim in info.dims:
            if dim is None:
                names.append(fresh_name("s", {*names, *self.frame.taken}))
            dims.append(symbol(names[-1]) if dim is None else dim)
        return self.insert(MatchCastOp(value, info.with_shape(dims), names)).result

    def _prim_func(self, function: str | PrimFuncOp) -> PrimFuncOp:
        name = self.functions.add(function) if isinstance(function, PrimFuncOp) else function
        found = self.functions.find(name)
        if not isinstance(found, PrimFuncOp):
            what = "not defined" if found is None else f"a '{found.name}'"
            raise BuilderError(f"expected the PrimFunc @{name}, but it is {what}")
        return found

    def _shapes(self, shape: Shapes | None) -> list[SSAValue]:
        return [] if shape is None else [as_shape(self, shape)]

    # Packed functions

    @overload
    def call_packed(self, name: str, *arguments: Value, out: None = None) -> None: ...
    @overload
    def call_packed(self, name: str, *arguments: Value, out: InfoLike) -> Expr: ...
    def call_packed(self, name: str, *arguments: Value, out: InfoLike | None = None) -> Expr | None:
        """Calls a packed function, which may have any effect; without `out` its result is dropped."""
        info = None if out is None else as_struct_info(out)
        op = self.insert(CallPackedOp(name, self.values(arguments), info))
        return None if op.result is None else self.expr(op.result)

    def call_pure_packed(self, name: str, *arguments: Value, out: InfoLike | None = None) -> Expr:
        """Calls a packed function that is promised to be pure; without `out` nothing is known of the result."""
        info = None if out is None else as_struct_info(out)
        return self.expr(self.insert(CallPurePackedOp(name, self.values(arguments), info)).result)

    @overload
    def call_dps_packed(self, name: str, arguments: Sequence[Value], out: list[InfoLike]) -> tuple[Expr, ...]: ...
    @overload
    def call_dps_packed(
        self, name: str, arguments: Sequence[Value], out: InfoLike, *, shape: Shapes | None = None
    ) -> Expr: ...
    def call_dps_packed(
        self, name: str, arguments: Sequence[Value], out: InfoLike | list[InfoLike], *, shape: Shapes | None = None
    ) -> Expr | tuple[Expr, ...]:
        """Calls a packed function that writes new tensors of the types `out`, a list if there are several."""
        types, several = as_result_types(out)
        op = CallDPSPackedOp(name, self.values(arguments), _tensors(types), shapes=self._shapes(shape))
        results = self.results(self.insert(op))
        return results if several else results[0]


def _types(values: Sequence[SSAValue]) -> tuple[StructInfo, ...]:
    return as_struct_infos(value.type for value in values)


def _checked(function: str, infer: Callable[[], Any]) -> Any:
    try:
        return infer()
    except Mismatch as mismatch:
        raise BuilderError(f"call of @{function}: argument {mismatch}") from mismatch


def _tensors(types: Sequence[StructInfo]) -> list[TensorType]:
    tensors = [info for info in types if isinstance(info, TensorType)]
    if len(tensors) != len(types):
        raise BuilderError(f"expected tensors as results of a call into destinations, got {', '.join(map(str, types))}")
    return tensors
