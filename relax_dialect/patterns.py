"""Patterns of relax values: what a value is made by, as data.

::

    from relax_dialect.patterns import is_const, is_op, wildcard

    x, w, b = wildcard(), is_const(), wildcard()
    product = is_op("relax.matmul")(x, w)
    layer = is_op("relax.nn.relu")(product + b) | product + b
    found = layer.match(value)
    if found is not None:
        found[x], found.ops, found.inputs

A pattern that occurs several times in another stands for one value each time: patterns are graphs, not only trees.
`lowering.relax.matchers.RewriteMatch` is the rewrite pattern that replaces what fits.
Mirrors TVM's `relax.dpl`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, cast

from typing_extensions import override
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from relax_dialect.analysis.effects import is_never_written, may_write, unchanged_between
from relax_dialect.loading import FAMILIES, names_in
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike, Prover
from tir_dialect.dtypes import dtype_name
from tir_dialect.types import DimAttr


@dataclass(frozen=True)
class Bindings:
    """Values by pattern, as a list that grows at its head: alternatives share what they have in common."""

    pattern: Pattern | None = None
    value: SSAValue | None = None
    rest: Bindings | None = None

    def __iter__(self) -> Iterator[tuple[Pattern, SSAValue]]:
        here: Bindings | None = self
        while here is not None:
            if here.pattern is not None and here.value is not None:
                yield here.pattern, here.value
            here = here.rest

    def __getitem__(self, pattern: Pattern) -> SSAValue:
        """The value of a pattern; `KeyError` if it is in an alternative that was not taken."""
        if (value := self.get(pattern)) is None:
            raise KeyError("the pattern is not part of what was matched")
        return value

    def get(self, pattern: Pattern) -> SSAValue | None:
        """The value of a pattern, if it is in an alternative that was taken."""
        return next((value for known, value in self if known is pattern), None)

    def extend(self, pattern: Pattern, value: SSAValue) -> Bindings | None:
        """With `pattern` bound to `value`; `None` if it is bound to another one."""
        for known, bound in self:
            if known is pattern:
                return self if bound is value else None
        return Bindings(pattern, value, self)


@dataclass(frozen=True)
class Match:
    """A way in which a pattern fits a value.

    `ops` are in program order, all in one block, without effects. `inputs` are the values that they use and do not
    make, in the order of use. `outputs` are the values that others use: the matched value, and those of patterns that
    `may_be_used_outside`.
    """

    value: SSAValue
    ops: tuple[Operation, ...]
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    _bound: Bindings

    def __getitem__(self, pattern: Pattern) -> SSAValue:
        """The value of a pattern; `KeyError` if it is in an alternative that was not taken."""
        return self._bound[pattern]

    def __contains__(self, pattern: Pattern) -> bool:
        return self._bound.get(pattern) is not None

    @staticmethod
    def of(value: SSAValue, bound: Bindings) -> Match | None:
        """The match, if its ops can be taken out of the program together."""
        inner = {each.op: None for pattern, each in bound if pattern.is_inner and isinstance(each, OpResult)}
        ops = _in_order(value, inner)
        if ops is None or any(map(may_write, ops)):
            return None
        shared = {each for pattern, each in bound if pattern.used_outside}
        inside = set(ops)
        results = [result for op in ops for result in op.results]
        used = [each for each in results if each is value or any(use.operation not in inside for use in each.uses)]
        outputs = tuple(used)
        if any(output is not value and output not in shared for output in outputs):
            return None
        inputs = dict.fromkeys(operand for op in ops for operand in op.operands if operand.owner not in inner)
        if not _can_stand_at_the_end(ops, inner, outputs):
            return None
        if ops and not unchanged_between(inputs, ops[0], ops[-1]):
            return None
        return Match(value, ops, tuple(inputs), outputs, bound)


def _in_order(value: SSAValue, ops: dict[Operation, None]) -> tuple[Operation, ...] | None:
    """The ops in program order; `None` if they are in several blocks. All lead to `value`, so its op is the last."""
    if not ops:
        return ()
    last = value.owner
    if isinstance(last, Block) or any(op.parent is not last.parent for op in ops):
        return None
    found: list[Operation] = []
    here: Operation | None = last
    while here is not None and len(found) < len(ops):
        if here in ops:
            found.append(here)
        here = here.prev_op
    return tuple(reversed(found))


def _can_stand_at_the_end(ops: Sequence[Operation], inner: dict[Operation, None], outputs: Sequence[SSAValue]) -> bool:
    """Whether all ops can move to where the last one is: nothing in between uses a value of theirs."""
    if not ops:
        return True
    early = {output for output in outputs if output.owner is not ops[-1]}
    between = ops[0].next_op
    while early and between is not None and between is not ops[-1]:
        if between not in inner and any(operand in early for each in between.walk() for operand in each.operands):
            return False
        between = between.next_op
    return True


def has_dtype(value: SSAValue, dtype: str) -> bool:
    """Whether `value` is a tensor of that dtype."""
    info = value.type
    return isinstance(info, TensorType) and info.dtype is not None and dtype_name(info.dtype) == dtype


def has_rank(value: SSAValue, rank: int) -> bool:
    """Whether `value` is a tensor of that rank."""
    info = value.type
    return isinstance(info, TensorType) and info.dims is not None and len(info.dims) == rank


def has_shape(value: SSAValue, shape: Sequence[DimLike | None]) -> bool:
    """Whether `value` is a tensor with provably these dimensions."""
    info = value.type
    if not isinstance(info, TensorType) or info.dims is None or len(info.dims) != len(shape):
        return False
    owner = value.owner.first_op if isinstance(value.owner, Block) else value.owner
    prover = Prover() if owner is None else prover_at(owner)
    pairs = zip(info.dims, shape, strict=True)
    return all(want is None or (dim is not None and prover.equal(dim, want) is True) for dim, want in pairs)


def attribute_is(attribute: Attribute | None, wanted: Any) -> bool:
    """Whether a property has the value that Python writes as `wanted`."""
    if attribute is None or wanted is None:
        return attribute is None and wanted is None
    return attribute == wanted if isinstance(wanted, Attribute) else python_value(attribute) == _plain(wanted)


def _plain(wanted: Any) -> Any:
    return tuple(map(_plain, cast("Sequence[Any]", wanted))) if isinstance(wanted, list | tuple) else wanted


def python_value(attribute: Attribute) -> Any:
    """A property as a plain value: a number, text, `True` for what is only present, a tuple of these."""
    match attribute:
        case IntegerAttr() | FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case UnitAttr():
            return True
        case DimAttr():
            constant = attribute.data.constant_value
            return str(attribute.data) if constant is None else constant
        case _ if isa(attribute, DenseArrayBase[IntegerType]):
            return attribute.get_values()
        case _ if isa(attribute, ArrayAttr[Attribute]):
            return tuple(python_value(each) for each in attribute)
        case _:
            return str(attribute)


Check = Callable[[SSAValue], bool]
"""Whether a value is as it has to be."""


class Pattern(ABC):
    """What a value may look like."""

    is_inner: bool = False
    """Whether the op that makes the value belongs to what is matched; else the value is an input of it."""

    used_outside: bool = False
    """Whether ops that are not matched may use the value too, where it is not the last one."""

    @property
    def op_names(self) -> frozenset[str] | None:
        """The names of ops that may make a value that fits; `None` if any may, or none."""
        return None

    @abstractmethod
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        """All ways in which `value` and what it is made of fit, given what is bound already."""

    def match(self, value: SSAValue) -> Match | None:
        """The first way in which the pattern fits `value`, with all inner values of one block and used by nothing else.

        A pattern says by `may_be_used_outside` that the second condition does not hold for it.
        """
        for bound in self.bind(value, Bindings()):
            if (found := Match.of(value, bound)) is not None:
                return found
        return None

    def find(self, value: SSAValue) -> Bindings | None:
        """The first way in which the pattern fits `value`, whoever else uses what it is made of: those ops stay.

        Nobody may write into any of it, so that new ops may read it wherever they stand.
        """
        found = self.bind(value, Bindings())
        return next((bound for bound in found if all(is_never_written(each) for _, each in bound)), None)

    # Combinations

    def __or__(self, other: Pattern) -> Pattern:
        """Fits where the first fits, else where the second does."""
        return _Either(self, other)

    def __and__(self, other: Pattern) -> Pattern:
        """Fits where both fit."""
        return _Both(self, other)

    def __invert__(self) -> Pattern:
        """Fits where this one does not; the value is an input."""
        return _Not(self)

    def optional(self, around: Callable[[Pattern], Pattern]) -> Pattern:
        """The pattern with something `around` it, if that fits, else alone."""
        return around(self) | self

    # Conditions

    def where(self, check: Check) -> Pattern:
        """Fits a value only if `check(value)` holds."""
        return _Where(self, check, f"where({getattr(check, '__name__', check)})")

    def has_dtype(self, dtype: str) -> Pattern:
        """Fits tensors with a known dtype of that name, `"f32"`."""
        return _Where(self, lambda value: has_dtype(value, dtype), f"has_dtype({dtype!r})")

    def has_rank(self, rank: int) -> Pattern:
        """Fits tensors with that many dimensions."""
        return _Where(self, lambda value: has_rank(value, rank), f"has_rank({rank})")

    def has_shape(self, shape: Sequence[DimLike | None]) -> Pattern:
        """Fits tensors with provably these dimensions; `None` stands for any."""
        return _Where(self, lambda value: has_shape(value, shape), f"has_shape({list(shape)})")

    def may_be_used_outside(self) -> Pattern:
        """Ops that are not matched may use the value."""
        return _Shared(self)

    # Operators, as in programs

    def __add__(self, other: Pattern) -> Pattern:
        return _operation("relax.add", self, other)

    def __sub__(self, other: Pattern) -> Pattern:
        return _operation("relax.subtract", self, other)

    def __mul__(self, other: Pattern) -> Pattern:
        return _operation("relax.multiply", self, other)

    def __truediv__(self, other: Pattern) -> Pattern:
        return _operation("relax.divide", self, other)

    def __matmul__(self, other: Pattern) -> Pattern:
        return _operation("relax.matmul", self, other)


class _Wildcard(Pattern):
    @override
    def __repr__(self) -> str:
        return "wildcard()"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            yield extended


class _Constant(_Wildcard):
    def __init__(self, elements: object | None):
        self._elements = elements

    @override
    def __repr__(self) -> str:
        return f"is_const({'' if self._elements is None else repr(self._elements)})"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        op = value.owner
        if (
            isinstance(op, ConstantOp)
            and self._has_elements(op)
            and is_never_written(value)
            and (extended := bound.extend(self, value)) is not None
        ):
            yield extended

    def _has_elements(self, op: ConstantOp) -> bool:
        if self._elements is None:
            return True
        import numpy as np

        array = op.array
        wanted: Any = np.asarray(self._elements)
        return array is not None and array.shape == wanted.shape and bool(np.array_equal(array, wanted))


class _Either(Pattern):
    def __init__(self, first: Pattern, second: Pattern):
        self._alternatives = (first, second)

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        first, second = (pattern.op_names for pattern in self._alternatives)
        return None if first is None or second is None else first | second

    @override
    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self._alternatives))})"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            for pattern in self._alternatives:
                yield from pattern.bind(value, extended)


class _Both(Pattern):
    def __init__(self, first: Pattern, second: Pattern):
        self._first = first
        self._second = second

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        return self._first.op_names if self._second.op_names is None else self._second.op_names

    @override
    def __repr__(self) -> str:
        return f"({self._first!r} & {self._second!r})"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            for each in self._first.bind(value, extended):
                yield from self._second.bind(value, each)


class _Not(Pattern):
    def __init__(self, refused: Pattern):
        self._refused = refused

    @override
    def __repr__(self) -> str:
        return f"~{self._refused!r}"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if next(self._refused.bind(value, bound), None) is None and (extended := bound.extend(self, value)) is not None:
            yield extended


class _Where(Pattern):
    def __init__(self, inner: Pattern, check: Check, text: str):
        """`text` is the condition as a program writes it."""
        self._inner = inner
        self._check = check
        self._text = text

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        return self._inner.op_names

    @override
    def __repr__(self) -> str:
        return f"{self._inner!r}.{self._text}"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if self._check(value) and (extended := bound.extend(self, value)) is not None:
            yield from self._inner.bind(value, extended)


class _Shared(Pattern):
    used_outside = True

    def __init__(self, inner: Pattern):
        self._inner = inner

    @property
    @override
    def op_names(self) -> frozenset[str] | None:
        return self._inner.op_names

    @override
    def __repr__(self) -> str:
        return f"{self._inner!r}.may_be_used_outside()"

    @override
    def bind(self, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
        if (extended := bound.extend(self, value)) is not None:
            yield from self._inner.bind(value, extended)


def wildcard() -> Pattern:
    """Any value, the same one wherever the pattern occurs; an input of the match."""
    return _Wildcard()


def is_const(elements: object | None = None) -> Pattern:
    """A constant tensor that nobody may write into, with these elements if they are given; an input of the match."""
    return _Constant(elements)


def _operation(name: str, *operands: Pattern) -> Pattern:
    return is_op(name)(*operands)


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
    def __repr__(self) -> str:
        text = f"is_op({', '.join(map(repr, sorted(self._names)))})"
        if self._operands is not None:
            text += f"({', '.join(map(repr, self._operands))})"
        if self._attributes:
            text += f".has_attr({', '.join(f'{name}={value!r}' for name, value in self._attributes.items())})"
        text += f".result({self._result})" if self._result else ""
        return f"{text}.in_any_order()" if self._any_order else text

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
    """A value made by an op with one of these names, `"relax.add"`, also of other dialects.

    Call the pattern with patterns of the operands; `ValueError` for a name that no op of ours has.
    """
    known = names_in(FAMILIES)
    for name in names:
        if name not in known and (name.startswith("relax.") or "." not in name):
            raise ValueError(f"there is no op {name}")
    return OperationPattern(frozenset(names), None, {})


def is_tuple(*fields: Pattern) -> Pattern:
    """A tuple made of values that fit; without fields, any tuple that is made by `relax.tuple`."""
    made = OperationPattern(frozenset({TupleOp.name}), None, {})
    return made(*fields) if fields else made


def is_tuple_get(tuple: Pattern, index: int | None = None) -> Pattern:
    """A field of a tuple that fits, at any position if there is no index."""
    return OperationPattern(frozenset({TupleGetOp.name}), [tuple], {} if index is None else {"index": index})


def is_call_tir(function: str | None = None, arguments: Sequence[Pattern] | None = None) -> Pattern:
    """The result of a PrimFunc, of any name if none is given."""
    names = frozenset({"relax.call_tir", "relax.call_tir_inplace"})
    return _Named(names, arguments, {} if function is None else {"callee": function})


def is_packed(function: str | None = None, arguments: Sequence[Pattern] | None = None) -> Pattern:
    """The result of a packed function without effects, of any name if none is given."""
    names = frozenset({"relax.call_dps_packed", "relax.call_pure_packed"})
    return _Named(names, arguments, {} if function is None else {"callee": function})
