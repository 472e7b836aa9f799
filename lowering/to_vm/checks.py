"""Run-time checks of structural information: kinds first, then dimensions, binding symbols on the way.

This is the run-time half of the specification's "Evaluating `MatchCast`" and of the checks at the start and end of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from lowering.to_vm.sizes import Sizes
from lowering.to_vm.types import scalar_type
from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Bounds, Check, CheckKind, Dim, constant, solve, symbol
from vm_dialect import types as vm
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
from vm_dialect.ops.shapes import ShapeDimOp, TensorDimOp
from vm_dialect.ops.tuples import TupleGetOp


@dataclass(frozen=True)
class Subject:
    """A value to check."""

    value: SSAValue
    """As a register of the machine."""
    known: StructInfo
    """What is known of it without a check."""
    declared: StructInfo
    """What it has to be."""
    text: str
    """What an error calls it, such as `main: argument #0 (x)`."""


@dataclass
class TypeChecker:
    """Emits the checks of several values together, so that a symbol may be bound by any of them."""

    emit: Callable[[Operation], Operation]
    sizes: Sizes
    _patterns: list[tuple[Dim, Dim]] = field(default_factory=list[tuple[Dim, Dim]], init=False)
    _places: list[str] = field(default_factory=list[str], init=False)

    def check(
        self, subjects: Sequence[Subject], unknowns: Sequence[str], bounds: Bounds | None = None
    ) -> list[SSAValue]:
        """The values with their declared types; `unknowns` are bound in `sizes` afterwards.

        Raises `MatchError` where the check can never succeed.
        """
        values = [self._kind(s.value, s.known, s.declared, s.text) for s in subjects]
        solution = solve(self._patterns, unknowns, bounds=bounds)
        for check in solution.checks:
            if check.kind is CheckKind.DIVISIBLE:
                self._assert(check, solution.sources)
        for name, dim in solution.bindings.items():
            self.sizes.bind(symbol(name), self.sizes.value(dim))
        for check in solution.checks:
            if check.kind is not CheckKind.DIVISIBLE:
                self._assert(check, solution.sources)
        return values

    # Kinds

    def _kind(self, value: SSAValue, known: StructInfo, declared: StructInfo, text: str) -> SSAValue:
        match declared:
            case TensorType():
                return self._tensor(value, known, declared, text)
            case ShapeType():
                return self._shape(value, known, declared, text)
            case PrimType():
                return self._prim(value, declared, text)
            case TupleType():
                return self._tuple(value, known, declared, text)
            case FuncType():
                return self._emit(CheckFuncOp(value, text))
            case _:
                return value

    def _tensor(self, value: SSAValue, known: StructInfo, declared: TensorType, text: str) -> SSAValue:
        expected = vm.TensorType(declared.rank, declared.dtype)
        if not vm.is_subtype(value.type, expected):
            value = self._emit(CheckTensorOp(value, expected, text))
        shape = known.dims if isinstance(known, TensorType) else None
        self._dims(declared.dims, shape, text, lambda axis: TensorDimOp(value, axis))
        return value

    def _shape(self, value: SSAValue, known: StructInfo, declared: ShapeType, text: str) -> SSAValue:
        if not vm.is_subtype(value.type, vm.ShapeType(declared.rank)):
            value = self._emit(CheckShapeOp(value, declared.rank, text))
        shape = known.dims if isinstance(known, ShapeType) else None
        self._dims(declared.dims, shape, text, lambda axis: ShapeDimOp(value, axis))
        return value

    def _prim(self, value: SSAValue, declared: PrimType, text: str) -> SSAValue:
        expected = scalar_type(declared.dtype)
        if value.type != expected:
            op = CheckFloatOp if expected == vm.F64 else CheckBoolOp if expected == vm.I1 else CheckIntOp
            value = self._emit(op(value, text))
        if declared.value is not None:
            self._match(declared.value, self._actual(value), text)
        return value

    def _tuple(self, value: SSAValue, known: StructInfo, declared: TupleType, text: str) -> SSAValue:
        fields = tuple(declared.fields)
        inner = (
            tuple(known.fields) if isinstance(known, TupleType) and len(tuple(known.fields)) == len(fields) else None
        )
        value = self._emit(CheckTupleOp(value, len(fields), text))
        for index, part in enumerate(fields):
            known_part = inner[index] if inner is not None else _NOTHING
            self._kind(self._emit(TupleGetOp(value, index)), known_part, part, f"{text} field #{index}")
        return value

    # Dimensions

    def _dims(self, declared: Shape, known: Shape, text: str, read: Callable[[int], Operation]) -> None:
        for axis, dim in enumerate(declared or ()):
            if dim is None:
                continue
            actual = known[axis] if known is not None and len(known) == len(declared or ()) else None
            if actual is None:
                actual = self._actual(self._emit(read(axis)))
            self._match(dim, actual, f"{text} dimension {axis}")

    def _actual(self, value: SSAValue) -> Dim:
        """A name for a size that is only known at run time; the `.` keeps it apart from the program's symbols."""
        name = symbol(f"actual.{len(self._patterns)}")
        self.sizes.bind(name, value)
        return name

    def _match(self, declared: Dim, actual: Dim, place: str) -> None:
        self._patterns.append((declared, actual))
        self._places.append(place)

    def _assert(self, check: Check, sources: Mapping[str, int]) -> None:
        pattern, actual = self._patterns[check.source]
        place = self._places[check.source]
        got = self.sizes.value(actual)
        if check.kind is CheckKind.EQUAL:
            want = self.sizes.value(check.lhs)
            condition = self.sizes.apply("eq", want, self.sizes.value(check.rhs))
            origin = self._origin(pattern, sources)
            if pattern.is_constant:
                self.emit(AssertOp(condition, f"{place}: expected {pattern}, got {{}}", [got]))
            else:
                self.emit(AssertOp(condition, f"{place}: expected {pattern} = {{}}{origin}, got {{}}", [want, got]))
        elif check.kind is CheckKind.DIVISIBLE:
            condition = self.sizes.apply("eq", self.sizes.value(check.lhs % check.rhs), self.sizes.value(constant(0)))
            self.emit(AssertOp(condition, f"{place}: expected {pattern}, got {{}}, which leaves a remainder", [got]))
        else:
            condition = self.sizes.apply("ge", self.sizes.value(check.lhs), self.sizes.value(constant(0)))
            self.emit(AssertOp(condition, f"{place}: expected {pattern} within its bounds, got {{}}", [got]))

    def _origin(self, pattern: Dim, sources: Mapping[str, int]) -> str:
        """Where the symbol of the pattern was bound, if it is one symbol and bound by this check."""
        name = pattern.as_symbol
        if name is None or name not in sources:
            return ""
        return f" (from {self._places[sources[name]].split(': ')[-1]})"

    def _emit(self, op: Operation) -> SSAValue:
        return self.emit(op).results[0]


_NOTHING = TupleType(())
"""Says nothing about a tensor, a shape or a tuple with fields."""
