"""Passes that make a function more special: by `bind-params` and `bind-symbolic-vars` parameters become constants and
symbols numbers, by `update-param-struct-info` parameters get types that say more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import ParseError, VerifyException

from lowering.diagnostics import fail, refuse
from lowering.locations import inherit_location
from lowering.relax.infer_struct_info import StructInfoInference
from relax_dialect.builder.emitter import elements
from relax_dialect.function_symbols import bindings, substitute_in, substitute_in_value
from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.scope import called_functions, find_function, prover_at
from relax_dialect.struct_info.match import Match, Mismatch, Verdict, entry_match, is_subtype, match_types
from relax_dialect.struct_info.symbols import erase_symbols, iter_bare_symbols, iter_symbols, substitute
from relax_dialect.struct_info.types import FuncType, PrimType, StructInfo, TensorType, as_struct_infos
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.specialization import specialize
from tir_dialect.types import SymbolAttr


def find_entry(module: ModuleOp, name: str, expected: str = "'relax.func'") -> FuncOp:
    """The function `name`, whose signature may change since nothing in the module refers to it; `expected` says what
    the module may have under this name.

    Raises `InvalidModule` if there is none, or if it is used.
    """
    func = find_function(module, name)
    if not isinstance(func, FuncOp):
        fail(module, f"expected a {expected} @{name}, but the module has none")
    _check_unused(module, name)
    return func


def find_kernel(module: ModuleOp, name: str) -> PrimFuncOp | None:
    """The PrimFunc `name`, if there is one; raises `InvalidModule` if it is used."""
    func = find_function(module, name)
    if not isinstance(func, PrimFuncOp):
        return None
    _check_unused(module, name)
    return func


def _check_unused(module: ModuleOp, name: str) -> None:
    func = find_function(module, name)
    can_inline = isinstance(func, FuncOp) and func.is_private
    for op in module.walk():
        if name in called_functions(op):
            hint = "run 'inline-functions' first" if can_inline else "change a copy that nothing refers to"
            fail(op, f"refers to @{name}, whose signature would change", hint)


def bind_symbols(func: FuncOp, values: Mapping[str, int]) -> None:
    """Replaces symbols that `func` binds by numbers, in the signature and the body.

    Raises `InvalidModule` if there is no such symbol, a value is out of its bounds, another symbol cannot be solved
    any more, or an op can never succeed for these values.
    """
    bounds = {bound.symbol.data: bound.interval for bound in func.symbols}
    for name, value in values.items():
        if name not in bounds:
            known = f"binds {', '.join(bounds)}" if bounds else "binds no symbols"
            fail(func, f"@{func.sym_name.data} {known}, got a value for {name}")
        low, high = bounds[name]
        if value < low or (high is not None and value > high):
            fail(
                func, f"@{func.sym_name.data} expected {name} in [{low}, {'_' if high is None else high}], got {value}"
            )
    mapping = {name: constant(value) for name, value in values.items()}
    old, names = func.function_type, func.param_names
    witnesses = dict(zip(old.symbol_names, func.witnesses, strict=True))
    func.function_type = FuncType(
        [substitute(param, mapping) for param in old.params],
        substitute(old.ret, mapping),
        pure=old.pure,
        symbols=[bound for bound in old.symbols if bound.symbol.data not in mapping],
    )
    for name, dim in mapping.items():
        witness = witnesses[name]
        if witness.uses.get_length():
            op = PrimOp(dim)
            op.result.name_hint = witness.name_hint
            inherit_location(func, op)
            Rewriter.insert_op(op, InsertPoint.at_start(func.body.block))
            witness.replace_all_uses_with(op.result)
        func.body.block.erase_arg(witness)
    for argument in func.body.block.args:
        substitute_in_value(argument, mapping)
    substitute_in(func.body.block.ops, mapping)
    func.name_params(names)
    settle_function(func)


def bind_in_kernel(func: PrimFuncOp, values: Mapping[str, int]) -> None:
    """Replaces sizes and scalar parameters of a kernel by numbers; raises `InvalidModule` where that cannot be."""
    try:
        made = specialize(func, values)
    except ValueError as error:
        fail(func, str(error).removeprefix("specialize: "))
    Rewriter.replace_op(func, made)


def settle(ops: Iterable[Operation]) -> None:
    """Makes ops whose symbols were replaced valid again; raises `VerifyException` if one can never succeed now.

    Where inference, knowing more, chooses another of two dimensions that are equal at run time only, a
    `relax.match_cast` leads back to the type that the uses expect.
    """
    for op in [inner for each in ops for inner in each.walk()]:
        try:
            op.verify_()
        except VerifyException:
            if not isinstance(op, InfersResultTypes):
                raise
            prover = prover_at(op)
            inferred = op.infer_result_types(op.operand_types, op.properties, prover)
            for result, info, old in zip(op.results, inferred, as_struct_infos(op.result_types), strict=True):
                if is_subtype(info, old, prover) is Verdict.RUNTIME:
                    new = Rewriter.replace_value_with_new_type(result, info)
                    cast = MatchCastOp(new, old)
                    cast.result.name_hint = new.name_hint
                    inherit_location(op, cast)
                    Rewriter.insert_op(cast, InsertPoint.after(op))
                    _replace_other_uses(new, cast)
            op.verify_()


def _replace_other_uses(value: SSAValue, cast: MatchCastOp) -> None:
    value.replace_uses_with_if(cast.result, lambda use: use.operation is not cast)


def settle_function(func: FuncOp) -> None:
    """Makes a function whose signature has changed valid again; raises `InvalidModule` if that cannot be."""
    try:
        entry_match(func.function_type)
    except Mismatch as mismatch:
        fail(func, f"@{func.sym_name.data} cannot be entered any more: {mismatch.reason}", "bind that symbol as well")
    for op in list(func.body.block.ops):
        try:
            settle((op,))
        except VerifyException as error:
            fail(op, f"'{op.name}' op can never succeed then: {error}", "bind other values")


def _texts(spec: ArgSpec, kind: str) -> dict[str, str]:
    """Options that are one text each; raises `ValueError`, which calls a text a `kind`."""
    texts: dict[str, str] = {}
    for name, given in spec.parameters.items():
        if len(given) != 1 or not isinstance(given[0], str):
            raise ValueError(f"'{spec.name}' expected one {kind} for {name}")
        texts[name] = given[0]
    return texts


@dataclass(frozen=True)
class BindParamsPass(ModulePass):
    """Replaces parameters of a function by constants, and removes them from its signature.

    `BindParamsPass("main", {"w": array, 2: "conv1.weight"})` takes parameters by name or index (counted without the
    symbols), and arrays of any DLPack library, or the name under which a weight is kept outside of the module. In text
    there are weights only: `bind-params{func=main w="conv1.weight"}`.

    Before, with an array of shape `[2]` for `w`:

    ```mlir
    relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>, %w: !relax.tensor<[k], f32>)
        -> !relax.tensor<[n, k], f32> {
      %0 = relax.add %x, %w
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
      %w = relax.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %0 = relax.add %x, %w
      relax.return %0
    }
    ```

    Symbols that the arrays determine become numbers everywhere. Refuses a function that the module
    itself uses, parameters that the function does not have, hence to bind one twice, arrays of another type, weights of
    a type with unknown dimensions, and what `bind-symbolic-vars` refuses.
    """

    name = "bind-params"

    func: str = "main"
    """The function."""
    params: Mapping[int | str, Any] = field(default_factory=dict[int | str, Any])
    """An array or the name of a weight for each index or name of a parameter."""

    @override
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Reads the options; every one but `func` is a parameter. Raises `ValueError` at a value that is no name."""
        names = _texts(spec, "name")
        return cls(names.pop("func", "main"), {**names})

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """The options as text; raises `ValueError` if there are arrays or indices, which have none."""
        options: dict[str, tuple[str]] = {"func": (self.func,)}
        for key, value in self.params.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise ValueError(f"'{self.name}' expected names only, got an index or array for {key}")
            options[key] = (value,)
        return ArgSpec(self.name, {**options})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Symbols first, then the constants, then the signature."""
        func = find_entry(op, self.func)
        # The values by the index of the parameter.
        names = func.param_names
        given: dict[int, Any] = {}
        for key, value in self.params.items():
            if key not in (names if isinstance(key, str) else range(len(names))):
                listed = ", ".join(names) or "none"
                fail(func, f"@{func.sym_name.data} has the parameters {listed}, got a value for {key}")
            index = names.index(key) if isinstance(key, str) else key
            if index in given:
                fail(func, f"@{func.sym_name.data} got two values for parameter #{index}")
            given[index] = value
        constants = {i: ConstantOp(elements(value)) for i, value in given.items() if not isinstance(value, str)}
        bind_symbols(func, _symbol_values(func, constants))
        for index, value in sorted(given.items(), reverse=True):
            # Puts a constant at the start, with a cast to the type of the parameter if it is not of that
            # type.
            constant = constants.get(index) or _weight(func, index, value)
            param, info = func.params[index], func.function_type.params[index]
            ops: list[ConstantOp | MatchCastOp] = [constant]
            if constant.result.type != info:
                ops.append(MatchCastOp(constant.result, info))
            inherit_location(func, ops)
            ops[-1].result.name_hint = param.name_hint
            param.replace_all_uses_with(ops[-1].result)
            Rewriter.insert_op(ops, InsertPoint.at_start(func.body.block))
        # Takes parameters without uses out of the signature; the others keep their names.
        indices = set(given)
        old, params, names = func.function_type, func.params, func.param_names
        for index in indices:
            func.body.block.erase_arg(params[index])
        kept = [info for index, info in enumerate(old.params) if index not in indices]
        func.function_type = FuncType(kept, old.ret, pure=old.pure, symbols=old.symbols)
        func.name_params([name for index, name in enumerate(names) if index not in indices])
        settle_function(func)


def _symbol_values(func: FuncOp, constants: Mapping[int, ConstantOp]) -> dict[str, int]:
    """The symbols that constants determine, and what they are; fails if the constants are wrong."""
    declared = [func.function_type.params[index] for index in constants]
    try:
        try:
            return _solve(func, constants, {name for info in declared for name in iter_symbols(info)})
        except Mismatch:  # `n * m` alone says nothing of `n`
            return _solve(func, constants, {name for info in declared for name in iter_bare_symbols(info)})
    except Mismatch as mismatch:
        index = list(constants)[mismatch.path.root]
        where = f" {mismatch.path.text}" if mismatch.path.text else ""
        fail(func, f"@{func.sym_name.data} parameter #{index}{where}: {mismatch.reason}", "bind an array of that type")


def _solve(func: FuncOp, constants: Mapping[int, ConstantOp], wanted: Collection[str]) -> dict[str, int]:
    """The values of the wanted symbols; raises `Mismatch`."""
    ignored = [name for name in func.function_type.symbol_names if name not in wanted]
    match = match_types(
        [erase_symbols(func.function_type.params[index], ignored) for index in constants],
        [constant.result.type for constant in constants.values()],
        [bound for bound in func.symbols if bound.symbol.data in wanted],
    )
    known = {name: dim.constant_value for name, dim in match.bindings.items()}
    return {name: value for name, value in known.items() if value is not None}


def _weight(func: FuncOp, index: int, name: str) -> ConstantOp:
    info = func.params[index].type
    if not isinstance(info, TensorType):
        fail(func, f"@{func.sym_name.data} parameter #{index} expected a tensor to bind a weight, got {info}")
    op = ConstantOp(name, info)
    try:
        op.verify_()
    except VerifyException as error:
        fail(func, f"@{func.sym_name.data} parameter #{index}: {error}", "run 'bind-symbolic-vars' first")
    return op


@dataclass(frozen=True)
class BindSymbolicVarsPass(ModulePass):
    """Replaces symbols of a function by integers, throughout its signature and body.

    `BindSymbolicVarsPass("main", {"n": 4})`, in text `bind-symbolic-vars{func=main n=4}`.

    Before:

    ```mlir
    relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%k](%x: !relax.tensor<[4, k], f32>) -> !relax.tensor<[4 * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    Arguments of other sizes are refused when the function is called. Of a PrimFunc, scalar parameters can be bound too,
    to integers (`tir_dialect.specialize` in Python, which also takes floats, sizes over others, and shapes).

    Refuses a function that the module itself uses,
    symbols that the function does not bind, hence to bind one twice, and values that are out of bounds, that leave
    another symbol without a parameter to solve it from, or with which an op can never succeed.
    """

    name = "bind-symbolic-vars"

    func: str = "main"
    """The function."""
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number for each symbol; in text, one option each. A symbol called `func` cannot be given in text."""

    @override
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Reads the options; every one but `func` is a symbol. Raises `ValueError` at a value that is no integer."""
        func = spec.parameters.get("func", ("main",))
        if len(func) != 1 or not isinstance(func[0], str):
            raise ValueError(f"'{cls.name}' expected one name as func")
        values: dict[str, int] = {}
        for name, given in spec.parameters.items():
            if name != "func":
                if len(given) != 1 or isinstance(given[0], bool) or not isinstance(given[0], int):
                    raise ValueError(f"'{cls.name}' expected one integer for {name}")
                values[name] = given[0]
        return cls(func[0], values)

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {"func": (self.func,), **{name: (value,) for name, value in self.values.items()}})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the one function."""
        kernel = find_kernel(op, self.func)
        if kernel is None:
            bind_symbols(find_entry(op, self.func, "'relax.func' or 'tir.prim_func'"), self.values)
        else:
            bind_in_kernel(kernel, self.values)


@dataclass(frozen=True)
class UpdateParamStructInfoPass(ModulePass):
    """Changes parameter types of a function, and infers the types of its body anew.

    `UpdateParamStructInfoPass("main", {"x": tensor((4, "m"))})` takes types by the name of the parameter; in text
    `update-param-struct-info{func=main x="!relax.tensor<[4, m], f32>"}`.

    Before:

    ```mlir
    relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%m](%x: !relax.tensor<[4, m], f32>) -> !relax.tensor<[4 * m], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    Symbols of the old types become what the new ones say, in the types of other parameters too; symbols of the new
    types are bound by the call, and keep their bounds if they have the name of an old one. What an old type demands
    and a new one does not show is checked by a `relax.match_cast`.

    Refuses a function that the module itself uses, parameters that it does not have, types that can never be right or
    that do not tell a symbol, and names that the body binds itself.
    """

    name = "update-param-struct-info"

    func: str = "main"
    """The function."""
    params: Mapping[str, StructInfo | str] = field(default_factory=dict[str, StructInfo | str])
    """A type, or its text, by the name of a parameter."""

    @override
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Reads the options; every one but `func` is a parameter. Raises `ValueError` at a value that is no text."""
        texts = _texts(spec, "text")
        return cls(texts.pop("func", "main"), {**texts})

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {"func": (self.func,), **{name: (str(info),) for name, info in self.params.items()}})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the one function."""
        func = find_entry(op, self.func)
        names = func.param_names
        types: dict[int, StructInfo] = {}
        for name, given in self.params.items():
            if name not in names:
                listed = ", ".join(names) or "none"
                fail(func, f"@{self.func} has the parameters {listed}, got a type for {name}")
            types[names.index(name)] = _parsed(ctx, func, name, given) if isinstance(given, str) else given
        if any(func.function_type.params[index] != info for index, info in types.items()):
            _update(func, types)


def _parsed(ctx: Context, func: FuncOp, name: str, text: str) -> StructInfo:
    try:
        info = Parser(ctx, text).parse_type()
    except ParseError as error:
        fail(func, f"@{func.sym_name.data} parameter {name} expected a type: {error}")
    if not isinstance(info, StructInfo):
        fail(func, f"@{func.sym_name.data} parameter {name} expected a relax type, got {info}")
    return info


def _update(func: FuncOp, given: Mapping[int, StructInfo]) -> None:
    match = _match(func, given)
    old, called = func.function_type, func.param_names
    demanded = [substitute(info, match.bindings) for info in old.params]
    types = [given.get(index, info) for index, info in enumerate(demanded)]
    bounds = {bound.symbol.data: bound for bound in old.symbols}
    names = dict.fromkeys(name for info in types for name in iter_symbols(info))
    inner = set(bindings(func.body.block.parent_op() or func)) - bounds.keys()
    for name in names:
        if name in inner:
            fail(func, f"@{func.sym_name.data} binds the symbol {name} itself", "choose another name")
    symbols = [bounds.get(name) or SymbolAttr(name) for name in names]
    _replace_entry(func, types, symbols, match.bindings)
    func.function_type = FuncType(types, substitute(old.ret, match.bindings), pure=old.pure, symbols=symbols)
    func.name_params(called)
    for param, info, wanted in zip(func.params, types, demanded, strict=True):
        if is_subtype(info, wanted) is not Verdict.YES:
            cast = MatchCastOp(param, wanted)
            cast.result.name_hint = param.name_hint
            inherit_location(func, cast)
            param.replace_all_uses_with(cast.result)
            cast.operands[0] = param
            Rewriter.insert_op(cast, InsertPoint.at_start(func.body.block))
    inference = StructInfoInference()
    inference.function(func)
    refuse(inference.findings)


def _match(func: FuncOp, given: Mapping[int, StructInfo]) -> Match:
    """What the symbols of the old types become; fails if the new types do not tell."""
    name = func.sym_name.data
    old = [func.function_type.params[index] for index in given]
    named = {each for info in old for each in iter_symbols(info)}
    try:
        match = match_types(old, list(given.values()), [each for each in func.symbols if each.symbol.data in named])
    except Mismatch as mismatch:
        where = f" {mismatch.path.text}" if mismatch.path.text else ""
        fail(func, f"@{name} parameter #{list(given)[mismatch.path.root]}{where}: {mismatch.reason}")
    for known, dim in match.bindings.items():
        if not match.slots.keys().isdisjoint(dim.symbols):
            fail(func, f"@{name} expected types that tell the symbol {known}", "name that dimension")
    for check in match.bound_checks:
        if check.value.as_symbol != check.symbol.symbol.data:
            fail(
                func,
                f"@{name} expected {check.symbol.symbol.data} within its bounds, got {check.value}",
                "keep its name",
            )
    return match


def _replace_entry(
    func: FuncOp, types: Sequence[StructInfo], symbols: Sequence[SymbolAttr], values: Mapping[str, Dim]
) -> None:
    """New witnesses and types of parameters; in the body, values for the symbols that there were."""
    block, witnesses = func.body.block, dict(zip(func.function_type.symbol_names, func.witnesses, strict=True))
    params = func.params
    # Before anything new is inserted, whose symbols are the new ones.
    substitute_in(block.ops, {name: dim for name, dim in values.items() if dim.as_symbol != name})
    for index, bound in enumerate(symbols):
        name = bound.symbol.data
        block.insert_arg(PrimType(value=name), index).name_hint = name
    for name, witness in witnesses.items():
        if witness.first_use is not None:
            number = PrimOp(values.get(name, symbol(name)))
            number.result.name_hint = witness.name_hint
            inherit_location(func, number)
            Rewriter.insert_op(number, InsertPoint.at_start(block))
            witness.replace_all_uses_with(number.result)
        block.erase_arg(witness)
    for param, info in zip(params, types, strict=True):
        Rewriter.replace_value_with_new_type(param, info)
