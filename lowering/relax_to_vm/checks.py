"""Structural information at run time: the types of the machine that relax values have, and the checks of what these
types do not say.

This is the run-time half of the specification's "Evaluating `MatchCast`" and of the checks at the start and end of a
function. Kinds are checked first, then the sizes about which nothing static is known are read, then symbols are bound,
then dimensions and bounds are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.scoped_dict import ScopedDict

from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.match import AccessPath, LocatedCheck, Match
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, ShapeType, StructInfo, TensorType, TupleType
from tir_dialect.dims import (
    Atom,
    BroadcastAtom,
    CheckKind,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    Monomial,
    SymbolAtom,
    constant,
    from_atom,
    symbol,
)
from tir_dialect.dims.expr import intern_dim, parse_dim
from tir_dialect.dtypes import numpy_dtype, parse_dtype, range_in_i64
from vm_dialect import messages
from vm_dialect import types as vm
from vm_dialect.dtypes import ELEMENT_TYPES
from vm_dialect.executable import SignatureTypes
from vm_dialect.executable.model import split_list
from vm_dialect.ops.checks import (
    AssertOp,
    CheckBoolOp,
    CheckFloatOp,
    CheckFuncOp,
    CheckIntOp,
    CheckShapeOp,
    CheckTensorOp,
    CheckTupleOp,
)
from vm_dialect.ops.memory import ShapeDimOp, TensorDimOp
from vm_dialect.ops.values import ConstOp, IntOp, TupleGetOp

_KINDS: dict[type[Atom], str] = {
    FloorDivAtom: "floordiv",
    ModAtom: "mod",
    MinAtom: "min",
    MaxAtom: "max",
    BroadcastAtom: "broadcast",
}


class UnboundSymbolError(ValueError):
    """A dimension uses a symbol that no value in scope witnesses."""


class Sizes:
    """The dimensions whose values are known in the current scope."""

    def __init__(self, emit: Callable[[Operation], Operation]):
        """`emit` inserts an op at the insertion point."""
        self._emit = emit
        self._values: ScopedDict[Dim, SSAValue] = ScopedDict()
        self._capacities: ScopedDict[Dim, SSAValue] = ScopedDict()

    def enter(self) -> None:
        """Opens a scope: what is computed from now on is forgotten by the matching `leave`."""
        self._values, self._capacities = ScopedDict(self._values), ScopedDict(self._capacities)

    def leave(self) -> None:
        """Closes the innermost scope."""
        if self._values.parent is None or self._capacities.parent is None:
            raise ValueError("there is no scope to leave")
        self._values, self._capacities = self._values.parent, self._capacities.parent

    def bind(self, dim: Dim, value: SSAValue) -> None:
        """`value` is the value of `dim` from here on."""
        if self._values.get(dim) is None:
            self._values[dim] = value

    def knows(self, dim: Dim) -> bool:
        """Whether all symbols of `dim` are bound here."""
        return all(self._values.get(symbol(name)) is not None for name in dim.symbols)

    def value(self, dim: Dim) -> SSAValue:
        """The `i64` value of `dim`; ops are emitted for what has not been computed yet."""
        found = self._values.get(dim)
        if found is None:
            found = self._values[dim] = self._compute(dim, self.value)
        return found

    def capacity(self, dim: Dim) -> SSAValue:
        """The value of `dim`, or the nearest that 64 bits hold: as a size of memory, both are refused."""
        found = self._values.get(dim) or self._capacities.get(dim)
        if found is None:
            found = self._capacities[dim] = self._compute(dim, self.capacity, "_sat")
        return found

    def values(self, dims: Sequence[Dim]) -> list[SSAValue]:
        """The values of several dimensions."""
        return [self.value(dim) for dim in dims]

    def apply(self, kind: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`vm.int kind`."""
        return self._emit(IntOp(kind, lhs, rhs)).results[0]

    def _compute(self, dim: Dim, of: Callable[[Dim], SSAValue], overflow: str = "") -> SSAValue:
        """The ops for `dim`, whose parts `of` knows or computes; `overflow` ends the kinds of sums and products."""
        value = dim.constant_value
        if value is not None:
            return self._emit(ConstOp(value)).results[0]
        atom = dim.as_atom
        if isinstance(atom, SymbolAtom):
            raise UnboundSymbolError(f"the symbol {atom.name} is not bound here")
        if atom is not None:
            return self._reduce(_KINDS[type(atom)], [of(operand) for operand in atom.operands])
        if len(dim.terms) == 1:
            return self._reduce(f"mul{overflow}", [of(factor) for factor in _factors(*dim.terms[0])])
        # Each term is a dimension too, so that products which occur in several sums are computed once.
        positive = [of(intern_dim(((c, monomial),))) for c, monomial in dim.terms if c > 0]
        negative = [of(intern_dim(((-c, monomial),))) for c, monomial in dim.terms if c < 0]
        total = self._reduce(f"add{overflow}", positive) if positive else of(constant(0))
        return self._reduce("sub", [total, *negative])

    def _reduce(self, kind: str, values: Sequence[SSAValue]) -> SSAValue:
        return reduce(lambda a, b: self.apply(kind, a, b), values)


def _factors(coefficient: int, monomial: Monomial) -> list[Dim]:
    if coefficient != 1:
        return [intern_dim(((1, monomial),)), constant(coefficient)]
    return [from_atom(atom) for atom, power in monomial for _ in range(power)]


def emitter(builder: Builder, source: Callable[[], Operation | None]) -> Callable[[Operation], Operation]:
    """Inserts ops through `builder`, with the location of the op that `source` says is being lowered."""

    def emit(op: Operation) -> Operation:
        origin = source()
        if origin is not None:
            op.location = origin.location
        return builder.insert(op)

    return emit


def vm_type(info: Attribute) -> Attribute:
    """The type of the register that holds a value of this structural information.

    Numbers are unboxed (`i64`, `i1`, `f64`), tensors and shapes keep what is known about rank and dtype, and everything
    else is `!vm.object`.
    """
    match info:
        case TensorType():
            return vm.TensorType(info.rank, info.dtype)
        case ShapeType():
            return vm.ShapeType(info.rank)
        case PrimType():
            return scalar_type(info.dtype)
        case StructInfo():
            return vm.OBJECT
        case _:
            return info


def scalar_type(dtype: Attribute) -> Attribute:
    """The register type of a scalar: every integer is an `i64`, every float an `f64`."""
    if isinstance(dtype, AnyFloat):
        return vm.F64
    if dtype == vm.I1:
        return vm.I1
    return vm.I64


def declared_types(module: ModuleOp) -> Mapping[str, SignatureTypes]:
    """What callers are told of the types of each public function of the graph level, by name."""
    return {
        func.sym_name.data: SignatureTypes(
            tuple(map(type_text, func.function_type.params)), type_text(func.function_type.ret)
        )
        for func in module.ops
        if isinstance(func, FuncOp) and not func.is_private
    }


def type_text(info: Attribute) -> str:
    """A type as `SignatureTypes` has it."""
    match info:
        case TensorType():
            dtype = "?" if info.dtype is None else str(info.dtype)
            dims = [None] * (info.rank or 0) if info.dims is None else info.dims
            return f"{dtype}[...]" if info.rank is None else f"{dtype}[{', '.join(map(_dim_text, dims))}]"
        case ShapeType():
            dims = [None] * (info.rank or 0) if info.dims is None else info.dims
            return "shape[...]" if info.rank is None else f"shape[{', '.join(map(_dim_text, dims))}]"
        case PrimType():
            return str(info.dtype)
        case TupleType():
            return f"({', '.join(map(type_text, info.fields))})"
        case FuncType():
            return "function"
        case _:
            return "object"


def _dim_text(dim: Dim | None) -> str:
    return "?" if dim is None else str(dim)


_SHAPED = re.compile(r"(?P<dtype>\w+|\?)\[(?P<dims>.*)\]")


def parse_type(text: str) -> Attribute:
    """The type that `type_text` has written, as far as the text says it: functions and objects are `object`."""
    if text.startswith("(") and text.endswith(")"):
        return TupleType([cast("StructInfo", parse_type(field)) for field in split_list(text[1:-1])])
    if (match := _SHAPED.fullmatch(text)) is not None:
        unknown = match["dims"] == "..."
        dims = None if unknown else [None if dim == "?" else parse_dim(dim) for dim in split_list(match["dims"])]
        if match["dtype"] == "shape":
            return ShapeType(dims)
        return TensorType(dims, None if match["dtype"] == "?" else parse_dtype(match["dtype"]))
    return PrimType(parse_dtype(text)) if text in ELEMENT_TYPES else ObjectType()


@dataclass
class TypeChecks:
    """Emits the checks of values that are matched together."""

    emit: Callable[[Operation], Operation]
    sizes: Sizes
    function: str
    """What errors begin with."""
    declared: Sequence[StructInfo]
    descriptions: Sequence[str]
    """What errors call the values, such as `argument #0 (x)`."""
    values: list[SSAValue]
    """The values as registers; after `run`, with their declared types."""
    captured: int = 0
    """How many of the first values a closure has captured: errors do not name them as the origin of a symbol."""
    _fields: dict[tuple[int, tuple[int, ...]], SSAValue] = field(
        default_factory=dict[tuple[int, tuple[int, ...]], SSAValue], init=False
    )

    _slots: dict[str, Dim] = field(default_factory=dict[str, Dim], init=False)
    """Slots are names of one match only; here each has a name that no other check uses."""

    def run(self, match: Match) -> list[SSAValue]:
        """Emits the checks of `match`; its symbols are bound in `sizes` afterwards."""
        for kind in match.kind_checks:
            self._check_kind(kind.path, kind.expected)
        for name, access in match.slots.items():
            self._slots[name] = symbol(f"slot{next(_numbers)}.{name}")
            self.sizes.bind(self._slots[name], self._read(access))
        divisible = [placed for placed in match.dim_checks if placed.check.kind is CheckKind.DIVISIBLE]
        for placed in divisible:  # before the quotient is used
            self._check_dim(placed, match)
        for name, dim in match.bindings.items():
            self.sizes.bind(symbol(name), self._size(dim))
        for placed in match.dim_checks:
            if placed not in divisible:
                self._check_dim(placed, match)
        for bound in match.bound_checks:
            low, high = bound.symbol.interval
            name = bound.symbol.symbol.data
            self._check_limits(self._subject(bound.path), name, (low or 0, high), self._size(bound.value))
        return self.values

    # Values

    def _value(self, root: int, fields: tuple[int, ...]) -> SSAValue:
        """The value of a field of a tuple, read once."""
        if not fields:
            return self.values[root]
        found = self._fields.get((root, fields))
        if found is None:
            found = self._emit(TupleGetOp(self._value(root, fields[:-1]), fields[-1]))
            self._fields[root, fields] = found
        return found

    def _read(self, access: AccessPath) -> SSAValue:
        value = self._value(access.root, access.fields)
        axis = access.dim or 0
        declared = self._declared(access)
        if isinstance(declared, PrimType):
            return value if value.type == vm.I64 else self._set(access, CheckIntOp(value, self._subject(access)))
        if isinstance(declared, ShapeType):
            if not isinstance(value.type, vm.ShapeType):
                value = self._set(access, CheckShapeOp(value, declared.rank, self._subject(access)))
            return self._emit(ShapeDimOp(value, axis))
        if not isinstance(value.type, vm.TensorType):
            value = self._set(
                access, CheckTensorOp(value, vm.TensorType(declared_rank(declared)), self._subject(access))
            )
        return self._emit(TensorDimOp(value, axis))

    def _declared(self, access: AccessPath) -> StructInfo:
        info = self.declared[access.root]
        for index in access.fields:
            info = info.fields[index] if isinstance(info, TupleType) else ObjectType()
        return info

    def _set(self, access: AccessPath, op: Operation) -> SSAValue:
        value = self._emit(op)
        if access.fields:
            self._fields[access.root, access.fields] = value
        else:
            self.values[access.root] = value
        return value

    # Conditions

    def _check_kind(self, access: AccessPath, expected: StructInfo) -> None:
        value, subject = self._value(access.root, access.fields), self._subject(access)
        match expected:
            case TensorType():
                self._set(access, CheckTensorOp(value, vm.TensorType(expected.rank, expected.dtype), subject))
            case ShapeType():
                self._set(access, CheckShapeOp(value, expected.rank, subject))
            case PrimType():
                scalar = scalar_type(expected.dtype)
                check = CheckFloatOp if scalar == vm.F64 else CheckBoolOp if scalar == vm.I1 else CheckIntOp
                self._check_range(subject, expected, self._set(access, check(value, subject)))
            case TupleType():
                self._set(access, CheckTupleOp(value, len(expected.fields), subject))
                for index, part in enumerate(expected.fields):
                    if not isinstance(part, ObjectType):
                        self._check_kind(AccessPath(access.root, (*access.fields, index)), part)
            case _:
                self._set(access, CheckFuncOp(value, subject))

    def _check_range(self, subject: str, expected: PrimType, value: SSAValue) -> None:
        """A number of 64 bits is one of fewer, or of no sign, only within limits."""
        if value.type == vm.I64 and (limits := range_in_i64(expected.dtype)) is not None:
            self._check_limits(subject, numpy_dtype(expected.dtype).name, limits, value)

    def _check_limits(self, subject: str, what: str, limits: tuple[int, int | None], value: SSAValue) -> None:
        low, high = limits
        condition = self.sizes.apply("ge", value, self.sizes.value(constant(low)))
        if high is not None:
            below = self.sizes.apply("le", value, self.sizes.value(constant(high)))
            condition = self.sizes.apply("and", condition, below)
        self.emit(AssertOp(condition, messages.out_of_bounds(subject, what, low, high), [value]))

    def _check_dim(self, placed: LocatedCheck, match: Match) -> None:
        check, subject = placed.check, self._subject(placed.path)
        lhs = self._size(check.lhs)
        match check.kind:
            case CheckKind.EQUAL:
                rhs = self._size(check.rhs)
                self._check_equal(placed, lhs, rhs, match)
            case CheckKind.DIVISIBLE:
                rest, zero = self._size(check.lhs % check.rhs), self._size(constant(0))
                divisor = check.rhs.constant_term
                message = messages.wrong_multiple(subject, self._expression(placed.path), divisor)
                self.emit(AssertOp(self.sizes.apply("eq", rest, zero), message, [lhs]))
            case CheckKind.NON_NEGATIVE:
                message = messages.out_of_bounds(subject, self._expression(placed.path), 0, None)
                self.emit(AssertOp(self.sizes.apply("ge", lhs, self._size(constant(0))), message, [lhs]))

    def _check_equal(self, placed: LocatedCheck, lhs: SSAValue, rhs: SSAValue, match: Match) -> None:
        subject, expected = self._subject(placed.path), self._expression(placed.path)
        condition = self.sizes.apply("eq", lhs, rhs)
        constant_value = placed.check.lhs.constant_value
        if constant_value is not None:
            self.emit(AssertOp(condition, messages.wrong_constant(subject, constant_value), [rhs]))
            return
        source = match.sources.get(expected)
        origin = None if source is None or source.root < self.captured else self._described(source)
        self.emit(AssertOp(condition, messages.wrong_value(subject, expected, origin=origin), [lhs, rhs]))

    def _size(self, dim: Dim) -> SSAValue:
        return self.sizes.value(dim.substitute(self._slots))

    # Wording

    def _expression(self, access: AccessPath) -> str:
        """The declared dimension, as the program writes it."""
        declared = self._declared(access)
        if isinstance(declared, PrimType):
            return str(declared.value)
        if isinstance(declared, TensorType | ShapeType) and declared.dims is not None:
            return str(declared.dims[access.dim or 0])
        return str(declared)

    def _described(self, access: AccessPath) -> str:
        text = self.descriptions[access.root]
        for index in access.fields:
            text = messages.describe_field(text, index)
        if access.dim is None or isinstance(self._declared(access), PrimType):
            return text
        return messages.describe_dimension(text, access.dim)

    def _subject(self, access: AccessPath) -> str:
        return f"{self.function}: {self._described(access)}"

    def _emit(self, op: Operation) -> SSAValue:
        return self.emit(op).results[0]


def declared_rank(info: StructInfo) -> int | None:
    """The rank that a tensor or shape type states."""
    return info.rank if isinstance(info, TensorType | ShapeType) else None


_numbers = count()
