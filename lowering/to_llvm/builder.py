"""Builds one llvm function block by block: typed helpers that make ops directly, without generic constructors.

Making an op through its keyword constructor costs three to eight times as much as `create`, and these ops are made in
greater number than any others; hence the direct form here. Integer arithmetic folds constants on the way, so index
expressions come out as a person would write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.to_llvm import llvm_ext
from lowering.to_llvm.constant_builder import ConstantBuilder
from lowering.to_llvm.module_builder import ModuleBuilder
from lowering.to_llvm.vector_types import element_type, is_vector, like, type_suffix
from tir_dialect.ops.memory import i32_array, vector_of

POINTER = llvm.LLVMPointerType()
NO_FLAGS = FastMathAttr(None)
CONTRACT = FastMathAttr([FastMathFlag.ALLOW_CONTRACT])

NO_SIGNED_WRAP = IntegerAttr(1, i32)
_WRAPS = IntegerAttr(0, i32)
_PREDICATES = {flag.value: IntegerAttr(flag.to_int(), i64) for flag in llvm.ALL_ICMP_FLAGS}
_NO_BUNDLES = i32_array()
_ONE_INDEX = i32_array(llvm.GEP_USE_SSA_VAL)
_UNORDERED = IntegerAttr(0, i64)


class LLVMBuilder(ConstantBuilder):
    """The blocks of one function; ops are appended to `block` and take `location`.

    `contract` says whether a product may be fused with a sum, which rounds once instead of twice.
    """

    def __init__(self, module: ModuleBuilder, argument_types: Sequence[Attribute], contract: bool = True) -> None:
        super().__init__(argument_types)
        self.module = module
        self.contract = contract
        self.crowded = False
        """Whether values of several registers each are likely to wait in memory."""
        self._computed: dict[tuple[object, ...], SSAValue] = {}

    # Blocks and branches.

    def new_block(self, argument_types: Sequence[Attribute] = ()) -> Block:
        """A block that is not yet placed."""
        block = Block(arg_types=argument_types)
        for argument in block.args:
            argument.location = self.location
        return block

    def start(self, block: Block) -> None:
        """Places a block after the others and goes on in it."""
        self.blocks.append(block)
        self.block = block

    def branch(self, target: Block, *values: SSAValue) -> Operation:
        """Ends the block with a jump."""
        return self.insert(llvm.BrOp.create(operands=values, successors=(target,)))

    def branch_if(self, condition: SSAValue, then: Block, otherwise: Block) -> Operation:
        """Ends the block with a two-way jump to blocks without arguments."""
        properties: dict[str, Attribute] = {"operandSegmentSizes": i32_array(1, 0, 0)}
        return self.insert(
            llvm.CondBrOp.create(operands=(condition,), properties=properties, successors=(then, otherwise))
        )

    def once(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: dict[str, Attribute] | None = None,
        fact: object = None,
    ) -> SSAValue:
        """The result of an op without effects, of which `fact` says all that operands do not; what this block has
        computed already serves again.
        """
        key = (self.block, kind, fact, *operands)
        found = self._computed.get(key)
        if found is None:
            found = self._computed[key] = self.make(kind, operands, result_type, properties)
        return found

    def undefined(self, type_: Attribute) -> SSAValue:
        """A value that is never looked at."""
        return self.once(llvm.UndefOp, (), type_, fact=type_)

    # Index arithmetic: i64 (or vectors of it), no signed overflow.

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The sum."""
        left, right = self._integers.get(lhs), self._integers.get(rhs)
        if left is not None and right is not None:
            return self.integer(left + right)
        if left == 0:
            return rhs
        return lhs if right == 0 else self._index(llvm.AddOp, lhs, rhs)

    def sub(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The difference."""
        left, right = self._integers.get(lhs), self._integers.get(rhs)
        if left is not None and right is not None:
            return self.integer(left - right)
        return lhs if right == 0 else self._index(llvm.SubOp, lhs, rhs)

    def mul(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The product."""
        left, right = self._integers.get(lhs), self._integers.get(rhs)
        if left is not None and right is not None:
            return self.integer(left * right)
        if left == 1 or right == 0:
            return rhs
        if right == 1 or left == 0:
            return lhs
        return self._index(llvm.MulOp, lhs, rhs)

    def _index(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.once(kind, (lhs, rhs), lhs.type, {"overflowFlags": NO_SIGNED_WRAP})

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An integer comparison, by LLVM's name of the predicate."""
        type_ = like(lhs.type, i1)
        return self.once(llvm.ICmpOp, (lhs, rhs), type_, {"predicate": _PREDICATES[predicate]}, predicate)

    def compare_floats(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """A float comparison, by LLVM's name of the predicate."""
        properties: dict[str, Attribute] = {"predicate": _word(predicate), "fastmathFlags": NO_FLAGS}
        return self.make(llvm_ext.FCmpOp, (lhs, rhs), like(lhs.type, i1), properties)

    def select(self, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two values."""
        if is_vector(condition.type):
            return self.make(llvm_ext.SelectOp, (condition, then, otherwise), then.type)
        return self.make(llvm.SelectOp, (condition, then, otherwise), then.type, {"fastmathFlags": NO_FLAGS})

    def wrapping(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Addition, subtraction or multiplication of integers that wraps around."""
        return self.make(kind, (lhs, rhs), lhs.type, {"overflowFlags": _WRAPS})

    # Memory.

    def element(self, base: SSAValue, index: SSAValue, type_: Attribute, *, inside: bool = True) -> SSAValue:
        """The address of `base[index]` in an array of `type_`, which has such an element unless not `inside`."""
        if self._integers.get(index) == 0:
            return base
        properties = {"rawConstantIndices": _ONE_INDEX, "elem_type": type_, "noWrapFlags": _WRAPS}
        if inside:
            properties["inbounds"] = UnitAttr()
        return self.once(llvm.GEPOp, (base, index), POINTER, properties, (type_, inside))

    def field(self, struct: SSAValue, type_: llvm.LLVMStructType, index: int) -> SSAValue:
        """The address of a field of a struct."""
        properties: dict[str, Attribute] = {
            "rawConstantIndices": i32_array(0, index),
            "elem_type": type_,
            "noWrapFlags": _WRAPS,
            "inbounds": UnitAttr(),
        }
        return self.make(llvm.GEPOp, (struct,), POINTER, properties)

    def load(self, address: SSAValue, type_: Attribute, alignment: int) -> SSAValue:
        """Reads a value."""
        properties: dict[str, Attribute] = {"ordering": _UNORDERED, "alignment": _alignment(alignment)}
        return self.make(llvm.LoadOp, (address,), type_, properties)

    def store(self, value: SSAValue, address: SSAValue, alignment: int) -> None:
        """Writes a value."""
        properties: dict[str, Attribute] = {"ordering": _UNORDERED, "alignment": _alignment(alignment)}
        self.insert(llvm.StoreOp.create(operands=(value, address), properties=properties))

    # Calls.

    def call(self, name: str, arguments: Sequence[SSAValue], result_type: Attribute) -> SSAValue:
        """A call of a function of the module that gives a result."""
        return self.insert(llvm.CallOp(name, *arguments, return_type=result_type)).results[0]

    def intrinsic(
        self, name: str, arguments: Sequence[SSAValue], result_type: Attribute, flags: FastMathAttr = NO_FLAGS
    ):
        """A call of an LLVM intrinsic by its full name."""
        properties: dict[str, Attribute] = {
            "intrin": _word(name),
            "fastmathFlags": flags,
            "op_bundle_sizes": _NO_BUNDLES,
            "operandSegmentSizes": i32_array(len(arguments), 0),
        }
        return self.make(llvm.CallIntrinsicOp, arguments, result_type, properties)

    def overloaded(
        self, name: str, arguments: Sequence[SSAValue], type_: Attribute, flags: FastMathAttr = NO_FLAGS
    ) -> SSAValue:
        """A call of an intrinsic that is overloaded on the type of its result."""
        return self.intrinsic(f"{name}.{type_suffix(type_)}", arguments, type_, flags)

    # Vectors.

    def splat(self, value: SSAValue, lanes: int) -> SSAValue:
        """A vector with `value` in every element."""
        type_ = vector_of(value.type, lanes)
        if (integer := self._integers.get(value)) is not None:
            return self.integer(integer, type_)
        if (number := self._numbers.get(value)) is not None:
            return self.float(number, type_)
        nothing = self.undefined(type_)
        first = self.once(llvm.InsertElementOp, (nothing, value, self.integer(0)), type_)
        return self.once(llvm.ShuffleVectorOp, (first, nothing), type_, {"mask": i32_array(*[0] * lanes)}, lanes)

    def extract(self, vector: SSAValue, lane: int) -> SSAValue:
        """One element of a vector."""
        return self.make(llvm_ext.ExtractElementOp, (vector, self.integer(lane)), element_type(vector.type))


@lru_cache(maxsize=1024)
def _word(text: str) -> StringAttr:
    return StringAttr(text)


@lru_cache(maxsize=64)
def _alignment(size: int) -> IntegerAttr:
    return IntegerAttr(size, i64)
