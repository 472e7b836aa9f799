"""The functions of the module that is being built, and calls of them, of PrimFuncs and of packed functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from relax_dialect.builder.emitter import (
    BuilderError,
    DTypeLike,
    Emitter,
    InfoLike,
    Operand,
    SymbolBounds,
    Value,
    as_dtype,
    as_prim,
    as_result_types,
    as_shape,
    as_struct_info,
    as_tensor,
    as_value,
    constant,
    new_symbols,
)
from relax_dialect.builder.expr import Expr
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallDPSPackedOp, CallPackedOp, CallPurePackedOp, CallTIRInplaceOp, CallTIROp
from relax_dialect.ops.callees import explicit_symbols, match_prim_func, prim_func_type
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.match import Mismatch, call_result, partial_application
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import FuncType, StructInfo, TensorType, as_struct_infos
from tir_dialect.analysis.fingerprint import Fingerprint, prim_func_fingerprint
from tir_dialect.dims import Dim, DimLike, symbol, to_dim
from tir_dialect.ops.function import PrimFuncOp

AnyFunc: TypeAlias = FuncOp | PrimFuncOp


class FunctionTable:
    """The functions of a module by name, with those that are announced or open and not in the module yet."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self._functions: dict[str, AnyFunc] = {}
        self._types: dict[str, FuncType | None] = {}
        self._names: set[str] = set()
        self._declared: set[str] = set()
        self._fingerprints: dict[str, str] = {}
        """The name of a function by what it is."""
        self._new: list[str] = []
        """Functions that are not among `_fingerprints` yet: most programs never ask."""
        for op in module.ops:
            if (name := symbol_name(op)) is not None:
                self._names.add(name)
            if isinstance(op, FuncOp | PrimFuncOp):
                self._enter(op)

    # Names and look-up

    def unique_name(self, base: str) -> str:
        """A name that no function has: `base`, `base_1`, ..."""
        return fresh_name(base, self._names)

    def find(self, name: str) -> AnyFunc | None:
        """The function of that name, if it is in the module."""
        return self._functions.get(name)

    def type_of(self, name: str) -> FuncType:
        """What is known about a relax function, which may be open or announced; `BuilderError` if that is too
        little.
        """
        if name not in self._types:
            found = self._functions.get(name)
            what = "not defined: declare it before it is called" if found is None else f"a '{found.name}'"
            raise BuilderError(f"expected the relax function @{name}, but it is {what}")
        known = self._types[name]
        if known is None:
            raise BuilderError(f"@{name} is called before its end, so its result type has to be given: ret=...")
        return known

    def value_type(self, name: str) -> FuncType:
        """The type of a relax function or PrimFunc as a value; `BuilderError` if there is none, or too little known."""
        found = self._functions.get(name)
        return prim_func_type(found) if isinstance(found, PrimFuncOp) else self.type_of(name)

    # Change

    def declare(self, name: str, info: FuncType) -> None:
        """Announces a relax function that is defined later; `BuilderError` if the name is taken."""
        self._reserve(name)
        self._declared.add(name)
        self._types[name] = info

    def open(self, name: str, info: FuncType | None) -> None:
        """Reserves the name of a relax function that is being built; its type is known if its result's is.

        `BuilderError` if the name is taken, or was declared with another type.
        """
        if name not in self._declared:
            self._reserve(name)
            self._types[name] = info
            return
        declared = self._types[name]
        if info is not None and info != declared:
            raise BuilderError(f"@{name} was declared as {declared}, got {info}")
        self._declared.discard(name)

    def _reserve(self, name: str) -> None:
        if name in self._names:
            raise BuilderError(f"there is a function @{name} already; choose another name or use get_unique_name")
        self._names.add(name)

    def forget(self, name: str) -> None:
        """Gives a reserved name back, as the function did not come to its end."""
        self._names.discard(name)
        self._types.pop(name, None)

    def define(self, func: AnyFunc) -> None:
        """Appends a function under its name."""
        self.module.body.block.add_op(func)
        self._enter(func)

    def add(self, func: AnyFunc, name: str | None = None) -> str:
        """Adds a function and gives its name; one that is there already, but for names, is not added again.

        A name that is taken gets a number.
        """
        func = func.clone() if func.parent is not None else func
        func.verify()
        while self._new:
            self._fingerprints.setdefault(_fingerprint(self._functions[self._new[0]]), self._new.pop(0))
        if (known := self._fingerprints.get(_fingerprint(func))) is not None:
            return known
        unique = self.unique_name(name or func.sym_name.data)
        func.sym_name = StringAttr(unique)
        self.define(func)
        return unique

    def update(self, name: str, func: AnyFunc) -> None:
        """Puts a function instead of another; `BuilderError` if there is none of that name."""
        old = self._functions.get(name)
        if old is None:
            raise BuilderError(f"there is no function @{name} to be updated")
        func = func.clone() if func.parent is not None else func
        func.sym_name = StringAttr(name)
        self._fingerprints = {key: other for key, other in self._fingerprints.items() if other != name}
        self._types.pop(name, None)
        self.module.body.block.insert_op_after(func, old)
        old.detach()
        old.erase()
        self._enter(func)

    def _enter(self, func: AnyFunc) -> None:
        name = func.sym_name.data
        self._names.add(name)
        self._functions[name] = func
        if isinstance(func, FuncOp):
            self._types[name] = func.function_type
        self._new.append(name)


def _fingerprint(func: AnyFunc) -> str:
    return prim_func_fingerprint(func) if isinstance(func, PrimFuncOp) else Fingerprint()(func, ("sym_name",))


Shapes: TypeAlias = Value | Sequence[DimLike]
"""A shape value, or dimensions."""

Sizes: TypeAlias = Sequence[DimLike] | Mapping[str, DimLike]
"""Values of symbols of a PrimFunc, in their order or by name."""


class CallEmitter(Emitter):
    """An emitter of constants, prim values, casts and calls, which knows the functions of a module."""

    def __init__(self, module: ModuleOp, *, locations: bool = False):
        super().__init__(locations=locations)
        self.functions = FunctionTable(module)

    def values(self, values: Sequence[Value]) -> list[SSAValue]:
        """Bare values."""
        return [as_value(self, value) for value in values]

    def expr(self, value: SSAValue) -> Expr:
        """A value with operators."""
        return Expr(self, value)

    def exprs(self, values: Sequence[SSAValue]) -> tuple[Expr, ...]:
        """Values with operators."""
        return tuple(Expr(self, value) for value in values)

    def results(self, op: Operation) -> tuple[Expr, ...]:
        """The results of an op with operators."""
        return self.exprs(op.results)

    # Known values and refinements

    def emit(self, value: Operand, name: str | None = None) -> Expr:
        """A value with operators, called `name` in text; an op that is in no block yet is emitted."""
        expr = self.expr(as_tensor(self, value, None))
        return expr if name is None else expr.named(name)

    def const(self, data: Any, dtype: DTypeLike | None = None, name: str | None = None) -> Expr:
        """A constant tensor: of a number, nested lists, or an array of any DLPack library.

        One with a `name`, or with many elements, becomes a weight: it is not copied, and text shows its name only.
        """
        return self.expr(constant(self, data, dtype, name).result)

    def weight(self, name: str, info: InfoLike) -> Expr:
        """A constant tensor that is kept outside of the module, by name; its shape and dtype have to be known."""
        declared = as_struct_info(info)
        if not isinstance(declared, TensorType):
            raise BuilderError(f"the weight {name} expected the type of a tensor, got {declared}")
        op = ConstantOp(name, declared)
        op.verify_()
        return self.expr(self.insert(op).result)

    def prim(self, value: DimLike | float, dtype: DTypeLike | None = None) -> Expr:
        """A prim value: a dimension, a number or a truth value."""
        return self.expr(as_prim(self, value, None if dtype is None else as_dtype(dtype)))

    def symbol(self, name: str) -> Expr:
        """The value of a symbol that is visible here, its witness."""
        witness = self.symbols.get(name)
        if witness is None:
            raise BuilderError(f"the symbol {name} is not bound in {self.frame.what}")
        return self.expr(witness)

    def match_cast(
        self, value: Value, info: InfoLike, name: str | None = None, *, bounds: SymbolBounds | None = None
    ) -> Expr:
        """Checks that a value has a type and refines it; symbols of the type that are not visible yet are bound."""
        declared = as_struct_info(info)
        op = MatchCastOp(as_value(self, value), declared, new_symbols([declared], self.symbols, bounds))
        op.verify_()
        result = self.expr(self.insert(op).result)
        return result if name is None else result.named(name)

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
        """Calls a packed function that is promised to be pure; without `out` nothing is known about the result."""
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
