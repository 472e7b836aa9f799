"""The blocks and ops of one llvm function: its types, constants, each made once, the dominator tree of its blocks, and
the loops around the current one.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    SymbolRefAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tir_dialect.fast_ops import new_op
from tir_dialect.ops.memory import i32_array, vector_of

_SPLAT = (llvm.InsertElementOp, llvm.ShuffleVectorOp)


@dataclass
class Loop:
    """A loop that is being emitted."""

    front: Block
    """The preheader, which ends in the branch to the first iteration."""

    head: Block
    """The header, the first block of an iteration."""
    is_innermost: bool = True
    read: list[SSAValue] = field(default_factory=list[SSAValue])
    """The values that each iteration loads from the same address."""
    writes_one_address: bool = False
    """Whether each iteration stores to the same address."""


class BlockTree:
    """The dominators of the blocks that have been started.

    A block is started after all branches to it but those that close a loop, whose sources it dominates itself.
    """

    def __init__(self, entry: Block) -> None:
        self._numbers = {id(entry): 0}
        """The number of each block in the order of starts, in which dominators come first. Blocks stay, so that their
        identities do, which are quicker than their hashes."""
        self._above = [0]
        """The number of the nearest dominator, by the number of a block."""
        self._sources: dict[int, list[int]] = {}
        """The numbers of the blocks that branch to one, by its identity."""
        self.loops: list[Loop] = []
        """Those around the block at hand, the outermost first."""

    def branch(self, source: Block, target: Block) -> None:
        """Records an edge."""
        self._sources.setdefault(id(target), []).append(self._numbers[id(source)])

    def start(self, block: Block) -> None:
        """Appends a block."""
        above, *others = self._sources.get(id(block)) or [0]
        for other in others:
            above = self._common(above, other)
        self._numbers[id(block)] = len(self._above)
        self._above.append(above)

    def _common(self, a: int, b: int) -> int:
        while a != b:
            if a > b:
                a = self._above[a]
            else:
                b = self._above[b]
        return a

    def dominates(self, block: Block, other: Block) -> bool:
        """Whether a block dominates another one."""
        number, at = self._numbers[id(block)], self._numbers[id(other)]
        while at > number:
            at = self._above[at]
        return at == number

    def number_of(self, value: SSAValue) -> int:
        """How late a value is there: the number of its block. Constants are in the entry block."""
        block = value.op.parent if type(value) is OpResult else cast("BlockArgument", value).block
        return 0 if block is None else self._numbers[id(block)]

    @staticmethod
    def block_of(value: SSAValue) -> Block | None:
        """The block that a value is known from; None for what is in no block yet."""
        return value.op.parent if type(value) is OpResult else cast("BlockArgument", value).block

    def home(self, number: int, block: Block, levels: int | None = None) -> Block:
        """The block in which to compute, for `block`, a value known from the block of that number on.

        It is outside of the loops in which the value is invariant, or of the innermost `levels` of them.
        """
        current = self._numbers[id(block)]
        for loop in self.loops if levels is None else self.loops[-levels:]:
            if number <= self._numbers[id(loop.front)] < current:
                return loop.front
        return block

    @contextmanager
    def loop(self, front: Block, head: Block) -> Generator[Loop]:
        """What is started meanwhile belongs to a loop."""
        if self.loops:
            self.loops[-1].is_innermost = False
        self.loops.append(Loop(front, head))
        yield self.loops[-1]
        self.loops.pop()

    def repeats_work(self, loop: Loop) -> bool:
        """Whether iterations store to one address, or recompute the same values from loads that a store may change."""
        return loop.is_innermost and (loop.writes_one_address or self._computes_the_same(loop))

    def _computes_the_same(self, loop: Loop) -> bool:
        same = set(loop.read)
        pending = list(loop.read)
        while pending:
            for use in pending.pop().uses:
                op = use.operation
                if all(value in same or not self.changes(loop, value) for value in op.operands) and op.results:
                    if type(op) not in _SPLAT:
                        return True
                    same.add(op.results[0])
                    pending.append(op.results[0])
        return False

    def changes(self, loop: Loop, value: SSAValue) -> bool:
        """Whether a value varies in the current loop."""
        return self.number_of(value) > self._numbers[id(loop.front)]


def element_type(type_: Attribute) -> Attribute:
    """The type itself, or a vector's element type."""
    return cast("VectorType[Attribute]", type_).element_type if is_vector(type_) else type_


def lane_count(type_: Attribute) -> int | None:
    """The number of elements of a vector type; None for other types."""
    return cast("VectorType[Attribute]", type_).shape.data[0].data if is_vector(type_) else None


def lanes_of(type_: Attribute) -> int:
    """The number of elements of a vector type; `TypeError` for other types."""
    lanes = lane_count(type_)
    if lanes is None:
        raise TypeError(f"expected a vector type, got {type_}")
    return lanes


def is_vector(type_: Attribute) -> bool:
    """Whether it is a vector type."""
    # The class itself, which has no subclasses: `isinstance` goes through the abstract base and is asked for every op.
    return type(type_) is VectorType


def integer_type(type_: Attribute) -> IntegerType:
    """The type itself; `TypeError` if it is no integer type."""
    if not isinstance(type_, IntegerType):
        raise TypeError(f"expected an integer type, got {type_}")
    return cast("IntegerType", type_)


@lru_cache(maxsize=256)
def type_suffix(type_: Attribute) -> str:
    """How the names of overloaded intrinsics spell a type."""
    lanes = lane_count(type_)
    return f"{'' if lanes is None else f'v{lanes}'}{element_type(type_)}"


def like(shape: Attribute, element: Attribute) -> Attribute:
    """`element`, or a vector of it with as many elements as `shape` has."""
    lanes = lane_count(shape)
    return element if lanes is None else vector_of(element, lanes)


def dense_integers(values: Sequence[int], element: IntegerType) -> DenseIntOrFPElementsAttr:
    """A vector of integers, which fit the type."""
    return _integers(tuple(map(int, values)), element)


def dense_floats(values: Sequence[float], element: AnyFloat) -> DenseIntOrFPElementsAttr:
    """A vector of floats, rounded to the type."""
    # By their bits: zeros of both signs are equal.
    return _floats(struct.pack(f"{len(values)}d", *values), element)


@lru_cache(maxsize=1024)
def _integers(values: tuple[int, ...], element: IntegerType) -> DenseIntOrFPElementsAttr:
    return DenseIntOrFPElementsAttr.from_list(VectorType(element, [len(values)]), values)


@lru_cache(maxsize=1024)
def _floats(values: bytes, element: AnyFloat) -> DenseIntOrFPElementsAttr:
    numbers = struct.unpack(f"{len(values) // 8}d", values)
    return DenseIntOrFPElementsAttr.from_list(VectorType(element, [len(numbers)]), numbers)


EXTERNAL = llvm.LinkageAttr("external")
INTERNAL = llvm.LinkageAttr("internal")
_CONVENTION = llvm.CallingConventionAttr("ccc")


def call_op(
    callee: str,
    arguments: Sequence[SSAValue],
    result: Attribute | None,
    variadic: llvm.LLVMFunctionType | None = None,
) -> llvm.CallOp:
    """A call of a function by name, with a result if it gives one; a `variadic` one takes any number of arguments."""
    sizes = i32_array(len(arguments), 0)
    properties: dict[str, Attribute] = {"callee": symbol_ref(callee), "operandSegmentSizes": sizes}
    if variadic is not None:
        properties["var_callee_type"] = variadic
    return new_op(llvm.CallOp, arguments, () if result is None else (result,), properties)


def function_op(
    name: str,
    type_: llvm.LLVMFunctionType,
    linkage: llvm.LinkageAttr,
    properties: Mapping[str, Attribute],
    body: Region | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> llvm.FuncOp:
    """A function with a body, or the declaration of one."""
    own = {"sym_name": StringAttr(name), "function_type": type_, "CConv": _CONVENTION, "linkage": linkage}
    regions = (Region() if body is None else body,)
    return new_op(llvm.FuncOp, (), (), {**properties, **own}, location, regions=regions)


@lru_cache(maxsize=1024)
def symbol_ref(name: str) -> SymbolRefAttr:
    """The reference to a symbol of the module."""
    return SymbolRefAttr(name)


POINTER = llvm.LLVMPointerType()


class FunctionBuilder:
    """The blocks of one function and its constants; ops are appended to `block` and take `location`."""

    def __init__(self, argument_types: Sequence[Attribute]) -> None:
        self.entry = Block(arg_types=argument_types)
        self.blocks = [self.entry]
        self.block = self.entry
        self.location: LocationAttr = UNKNOWN_LOC
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}
        self._addresses: dict[str, SSAValue] = {}
        self._constant_ops: list[Operation] = []
        self._integers: dict[SSAValue, int] = {}
        self._integer_constants: dict[tuple[int, Attribute], SSAValue] = {}
        self._indices: dict[int, SSAValue] = {}
        """The constants of i64, found without a look at the type."""
        self._floats: dict[tuple[bytes, int], tuple[Attribute, SSAValue]] = {}
        """Scalars, vectors of one number and vectors of several, by their bits, as zeros of both signs are equal, and
        the identity of the type, which is quicker than a hash of its parts; the type stays alive beside the value."""
        self._numbers: dict[SSAValue, float] = {}

    def finish(self) -> Region:
        """The body of the function; constants come first in the entry block."""
        if self._constant_ops:
            first = self.entry.first_op
            if first is None:
                self.entry.add_ops(self._constant_ops)
            else:
                self.entry.insert_ops_before(self._constant_ops, first)
        return Region(self.blocks)

    # Blocks.

    def new_block(self, argument_types: Sequence[Attribute] = ()) -> Block:
        """A block that is in no function yet."""
        block = Block(arg_types=argument_types)
        for argument in block.args:
            argument.location = self.location
        return block

    def start(self, block: Block) -> None:
        """Appends a block after the others and goes on in it."""
        self.blocks.append(block)
        self.block = block

    def branch(self, target: Block, *values: SSAValue) -> Operation:
        """Ends the block with a jump."""
        return self.insert(new_op(llvm.BrOp, values, successors=(target,)))

    def branch_if(self, condition: SSAValue, then: Block, otherwise: Block, *values: SSAValue) -> Operation:
        """Ends the block with a two-way jump: to `then` with values, or to a block without arguments."""
        properties: dict[str, Attribute] = {"operandSegmentSizes": i32_array(1, len(values), 0)}
        successors = (then, otherwise)
        return self.insert(new_op(llvm.CondBrOp, (condition, *values), (), properties, successors=successors))

    # Ops.

    def insert(self, op: Operation) -> Operation:
        """Appends an op."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def make(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        """Appends an op with one result."""
        op = new_op(kind, operands, (result_type,), properties, self.location)
        self.block.add_op(op)
        return op.results[0]

    # Constants.

    def address(self, symbol: str) -> SSAValue:
        """The address of a global or a function of the module; found once."""
        found = self._addresses.get(symbol)
        if found is None:
            properties: dict[str, Attribute] = {"global_name": symbol_ref(symbol)}
            op = new_op(llvm.AddressOfOp, (), (POINTER,), properties, self.location)
            self._constant_ops.append(op)
            found = self._addresses[symbol] = op.results[0]
        return found

    def constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        """A constant of this function; equal ones are one value."""
        key = (value, type_)
        found = self._constants.get(key)
        if found is None:
            op = new_op(llvm.ConstantOp, (), (type_,), {"value": value}, self.location)
            self._constant_ops.append(op)
            found = self._constants[key] = op.results[0]
        return found

    def integer(self, value: int, type_: Attribute = i64) -> SSAValue:
        """An integer, in all elements if the type is a vector."""
        if type_ is i64 and (found := self._indices.get(value)) is not None:
            return found
        if is_vector(type_):
            wrapped = _wrapped(value, integer_type(element_type(type_)))
            return self.elements([wrapped] * lanes_of(type_), type_)
        found = self._integer_constants.get((value, type_))
        if found is None:
            attribute = _integer(value, integer_type(type_))
            wrapped, found = attribute.value.data, self.constant(attribute, type_)
            self._integer_constants[value, type_] = found
            self._integers[found] = wrapped
            if type_ is i64:
                self._indices[value] = found
        return found

    def float(self, value: float, type_: Attribute) -> SSAValue:
        """A float, in all elements if the type is a vector."""
        key = struct.pack("d", value), id(type_)
        known = self._floats.get(key)
        if known is None:
            known = self._floats[key] = type_, self._float(value, type_)
        return known[1]

    def _float(self, value: float, type_: Attribute) -> SSAValue:
        if is_vector(type_):
            return self.elements([value] * lanes_of(type_), type_)
        if not isinstance(type_, AnyFloat):
            raise TypeError(f"expected a float type, got {type_}")
        attribute = FloatAttr(value, type_)
        found = self.constant(attribute, type_)
        self._numbers[found] = attribute.value.data
        return found

    def false(self) -> SSAValue:
        """The constant false."""
        return self.integer(0, i1)

    def known_integer(self, value: SSAValue) -> int | None:
        """The number that an integer constant of this function is, or None."""
        return self._integers.get(value)

    def elements(self, values: Sequence[int] | Sequence[float], type_: Attribute) -> SSAValue:
        """A constant of a vector type."""
        element = element_type(type_)
        if isinstance(element, AnyFloat):
            key = struct.pack(f"{len(values)}d", *values), id(type_)
            known = self._floats.get(key)
            if known is None:
                known = self._floats[key] = type_, self.constant(dense_floats(values, element), type_)
            return known[1]
        return self.constant(dense_integers(cast("Sequence[int]", values), integer_type(element)), type_)

    @staticmethod
    def is_positive(value: SSAValue) -> bool:
        """Whether a value is a float constant of which all elements are greater than 0."""
        constant = value.owner.value if isinstance(value.owner, llvm.ConstantOp) else None
        if isinstance(constant, DenseIntOrFPElementsAttr):
            return all(isinstance(number, float) and number > 0 for number in constant.get_values())
        return isinstance(constant, FloatAttr) and constant.value.data > 0

    def lane_numbers(self, lanes: int) -> SSAValue:
        """The vector 0, 1, ..., lanes - 1 of i64."""
        return self.elements(range(lanes), vector_of(i64, lanes))

    def zero(self, type_: Attribute) -> SSAValue:
        """The number 0 of an integer or float type, in all elements of a vector."""
        return self.float(0.0, type_) if isinstance(element_type(type_), AnyFloat) else self.integer(0, type_)


@lru_cache(maxsize=4096)
def _integer(value: int, type_: IntegerType) -> IntegerAttr:
    """The same attribute again for the same number: to make one takes as long as an op."""
    return IntegerAttr(_wrapped(value, type_), type_)


def _wrapped(value: int, type_: IntegerType) -> int:
    """`value` as the signed number with the same bits."""
    bits = type_.width.data
    return (value + (1 << bits >> 1)) % (1 << bits) - (1 << bits >> 1) if bits > 1 else value & 1
