"""Patterns of values by the op that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from typing_extensions import override
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from relax_dialect.loading import FAMILIES, names_in
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.patterns.attributes import attribute_is
from relax_dialect.patterns.match import Bindings
from relax_dialect.patterns.nodes import Pattern


class OperationPattern(Pattern):
    """A value made by an op of some name; operands and attributes fit as far as they are given."""

    is_inner = True

    def __init__(self, names: frozenset[str], operands: Sequence[Pattern] | None, attributes: Mapping[str, Any]):
        self._names = names
        self._operands = operands
        self._attributes = attributes
        self._result = 0
        self._any_order = False

    @property
    @override
    def op_names(self) -> frozenset[str]:
        return self._names

    def __call__(self, *operands: Pattern) -> OperationPattern:
        """The same op with operands that fit; without a call, any operands do."""
        return self._copy(operands=operands)

    def has_attr(self, **attributes: Any) -> OperationPattern:
        """The same op with properties that have these values; `None` means that one is not set."""
        return self._copy(attributes={**self._attributes, **attributes})

    def result(self, index: int) -> OperationPattern:
        """Another result of the op; without it, the first."""
        copy = self._copy()
        copy._result = index
        return copy

    def in_any_order(self) -> OperationPattern:
        """The same op with its operands in any order."""
        copy = self._copy()
        copy._any_order = True
        return copy

    def _copy(
        self, operands: Sequence[Pattern] | None = None, attributes: Mapping[str, Any] | None = None
    ) -> OperationPattern:
        kept = self._attributes if attributes is None else attributes
        copy = type(self)(self._names, self._operands if operands is None else operands, kept)
        copy._result, copy._any_order = self._result, self._any_order
        return copy

    def _fits(self, op: Operation) -> bool:
        return op.name in self._names and all(
            attribute_is(self._attribute(op, name), wanted) for name, wanted in self._attributes.items()
        )

    def _attribute(self, op: Operation, name: str) -> Attribute | None:
        return op.properties.get(name)

    def _arguments(self, op: Operation) -> Sequence[SSAValue]:
        return op.operands

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if not isinstance(value, OpResult) or value.index != self._result or not self._fits(value.op):
            return
        if (extended := bound.extend(self, value)) is None:
            return
        if self._operands is None:
            yield extended
            return
        given = tuple(self._arguments(value.op))
        for values in permutations(given) if self._any_order else (given,):
            yield from bind_all(self._operands, values, extended)


class _Named(OperationPattern):
    """A call of a function by name: of a PrimFunc or a packed function."""

    @override
    def _arguments(self, op: Operation) -> Sequence[SSAValue]:
        arguments: Sequence[SSAValue] = getattr(op, "arguments", op.operands)
        return arguments

    @override
    def _attribute(self, op: Operation, name: str) -> Attribute | None:
        found = op.properties.get("callee", op.properties.get("symbol"))
        return StringAttr(found.string_value()) if isinstance(found, SymbolRefAttr) else found


def bind_all(patterns: Sequence[Pattern], values: Sequence[SSAValue], bound: Bindings) -> Iterator[Bindings]:
    """All ways in which the values fit the patterns one by one; none if there are not as many."""
    if len(patterns) != len(values):
        return
    if not patterns:
        yield bound
        return
    for each in patterns[0].bind(values[0], bound):
        yield from bind_all(patterns[1:], values[1:], each)


def is_op(*names: str) -> OperationPattern:
    """A value made by an op with one of these names, `"relax.add"`.

    Call the pattern with patterns of the operands; `ValueError` for a name that no op has.
    """
    known = names_in(FAMILIES)
    for name in names:
        if name not in known:
            raise ValueError(f"there is no op {name}")
    return OperationPattern(frozenset(names), None, {})


def is_tuple(*fields: Pattern) -> Pattern:
    """A tuple made of values that fit; without fields, any tuple that is made by `relax.tuple`."""
    made = OperationPattern(frozenset({TupleOp.name}), None, {})
    return made(*fields) if fields else made


def is_tuple_get(tuple: Pattern, index: int | None = None) -> Pattern:
    """A field of a tuple that fits, at any place if there is no index."""
    return OperationPattern(frozenset({TupleGetOp.name}), [tuple], {} if index is None else {"index": index})


def is_call_tir(function: str | None = None, arguments: Sequence[Pattern] | None = None) -> Pattern:
    """The result of a PrimFunc, of any name if none is given."""
    names = frozenset({"relax.call_tir", "relax.call_tir_inplace"})
    return _Named(names, arguments, {} if function is None else {"callee": function})


def is_packed(function: str | None = None, arguments: Sequence[Pattern] | None = None) -> Pattern:
    """The result of a packed function without effects, of any name if none is given."""
    names = frozenset({"relax.call_dps_packed", "relax.call_pure_packed"})
    return _Named(names, arguments, {} if function is None else {"callee": function})
