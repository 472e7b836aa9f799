"""A builder of llvm functions with typed helpers, which make ops directly, and what the functions of one module share.

Making an op through its keyword constructor costs three to eight times as much as `create`, and these ops are made in
greater number than any others; hence the direct form here. Integer arithmetic folds constants on the way, so index
expressions come out as a person would write them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i8,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, Region, SSAValue

from lowering.llvm import llvm_ext
from lowering.llvm.function_builder import (
    EXTERNAL,
    INTERNAL,
    call_op,
    element_type,
    function_op,
    is_vector,
    lane_count,
    like,
    type_suffix,
)
from lowering.llvm.index_builder import POINTER, WRAPS, IndexBuilder
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.memory import i32_array, vector_of

VOID = llvm.LLVMVoidType()
_ZERO = IntegerAttr(0, i8)
_NO_UNWIND = StringAttr("nounwind")
_PLAIN: Mapping[str, Attribute] = {"passthrough": ArrayAttr([_NO_UNWIND])}
_PURE: Mapping[str, Attribute] = {
    "passthrough": ArrayAttr([_NO_UNWIND, StringAttr("willreturn"), StringAttr("memory(none)")])
}
_ALLOCATION: Mapping[str, Attribute] = {
    "passthrough": ArrayAttr([_NO_UNWIND, StringAttr("willreturn"), StringAttr("memory(inaccessiblemem: readwrite)")]),
    "res_attrs": ArrayAttr([DictionaryAttr({"llvm.noalias": UnitAttr()})]),
}


class ModuleBuilder:
    """An llvm module in the making."""

    def __init__(self, vector_bits: int = 128, extensions: frozenset[str] = frozenset()) -> None:
        """`vector_bits`: of registers, 256 where x86 has AVX2 and 512 with AVX-512; `extensions`: what else it has.

        LLVM stops the process at an instruction that a machine lacks, while it splits wide vectors for any.
        """
        self.vector_bits = vector_bits
        self.avx512 = vector_bits >= 512 and "avx512dq" in extensions
        self.extensions = extensions
        self.ops: list[Operation] = []
        self.defined: set[str] = set()
        self._declared: dict[str, llvm.LLVMFunctionType] = {}
        self._texts: dict[str, str] = {}
        self._flags: dict[str, None] = {}

    def finish(self) -> ModuleOp:
        """The module: text constants and declarations first."""
        heads: list[Operation] = []
        for text, name in self._texts.items():
            size = len(text.encode())
            type_ = llvm.LLVMArrayType(size, i8)
            heads.append(
                llvm.GlobalOp(
                    type_, name, "private", constant=True, value=StringAttr(text), unnamed_addr=2, alignment=1
                )
            )
        return ModuleOp(
            [
                *[*heads, *(llvm.GlobalOp(i8, name, "internal", value=_ZERO, alignment=1) for name in self._flags)],
                *self.ops,
            ]
        )

    def flag(self, name: str) -> SymbolRefAttr:
        """The symbol of a byte of the module's own, 0 when it is loaded."""
        self._flags[name] = None
        return SymbolRefAttr(name)

    def text(self, text: str) -> str:
        """The symbol of a constant that holds `text` and a zero byte; equal texts share it."""
        return self._texts.setdefault(text + "\0", f"text.{len(self._texts)}")

    def declare(
        self,
        name: str,
        parameters: Sequence[Attribute],
        result: Attribute | None,
        pure: bool = False,
        allocates: bool = False,
    ) -> llvm.LLVMFunctionType:
        """Declares an outside function once.

        A `pure` one only computes; one that `allocates` touches no memory that others see, and gives memory of its own.

        Raises `ValueError` if it is declared already with another type.
        """
        known = self._declared.get(name)
        if known is None:
            known = self._declared[name] = llvm.LLVMFunctionType(parameters, result)
            properties = _PURE if pure else _ALLOCATION if allocates else _PLAIN
            self.ops.append(function_op(name, known, EXTERNAL, properties))
        elif known.inputs.data != tuple(parameters) or known.output != (VOID if result is None else result):
            used = llvm.LLVMFunctionType(parameters, result)
            raise ValueError(f'function "{name}" is used as {known} and as {used}')
        return known

    def declare_variadic(self, name: str, type_: llvm.LLVMFunctionType) -> None:
        """Declares an outside function with a variable number of arguments once."""
        if self._declared.setdefault(name, type_) is type_ and name not in self.defined:
            self.defined.add(name)
            self.ops.append(function_op(name, type_, EXTERNAL, {}))

    def define(
        self,
        name: str,
        parameters: Sequence[Attribute],
        result: Attribute | None,
        body: Region,
        *,
        internal: bool,
        properties: Mapping[str, Attribute],
        location: LocationAttr = UNKNOWN_LOC,
    ) -> None:
        """Adds a function with a body."""
        self.defined.add(name)
        linkage = INTERNAL if internal else EXTERNAL
        type_ = llvm.LLVMFunctionType(parameters, result)
        self.ops.append(function_op(name, type_, linkage, properties, body, location))


NO_FLAGS = FastMathAttr(None)
CONTRACT = FastMathAttr([FastMathFlag.ALLOW_CONTRACT])

_PREDICATES = {flag.value: IntegerAttr(flag.to_int(), i64) for flag in llvm.ALL_ICMP_FLAGS}
_NO_BUNDLES = i32_array()
_UNIT = UnitAttr()
_UNORDERED = IntegerAttr(0, i64)
_SAME: dict[str, Attribute] = {"asm_string": StringAttr(""), "constraints": StringAttr("=r,0")}


class LLVMBuilder(IndexBuilder):
    """The blocks of one function; ops are appended to `block` and take `location`.

    `contract` says whether products may be added to sums of products without being rounded.
    """

    def __init__(self, module: ModuleBuilder, argument_types: Sequence[Attribute], contract: bool = True) -> None:
        super().__init__(argument_types)
        self.module = module
        self.contract = contract
        self.crowded = False
        """Whether values of several registers each are likely to wait in memory."""

    def undefined(self, type_: Attribute) -> SSAValue:
        """An undefined value."""
        return self.once(llvm.UndefOp, (), type_, fact=id(type_))

    # Comparisons and choices.

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
            return self.once(llvm_ext.SelectOp, (condition, then, otherwise), then.type)
        return self.once(llvm.SelectOp, (condition, then, otherwise), then.type, {"fastmathFlags": NO_FLAGS})

    def wrapping(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Addition, subtraction or multiplication of integers that wraps around."""
        return self.make(kind, (lhs, rhs), lhs.type, {"overflowFlags": WRAPS})

    def quotient(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """A division or remainder by numbers of which none is 0.

        LLVM may not hoist a division out of a loop; what it knows to come from one it would compute again in each
        iteration.
        """
        result = self.once(kind, (lhs, rhs), lhs.type)
        if lhs.type is not i64 or rhs in self._integers:
            return result
        return self.once(llvm.InlineAsmOp, (result,), i64, _SAME)

    def any_lane(self, condition: SSAValue) -> SSAValue:
        """Whether a condition holds, or holds in any lane."""
        lanes = lane_count(condition.type)
        return condition if lanes is None else self.intrinsic(f"llvm.vector.reduce.or.v{lanes}i1", (condition,), i1)

    # Memory.

    def field(self, struct: SSAValue, type_: llvm.LLVMStructType, index: int) -> SSAValue:
        """The address of a field of a struct."""
        properties: dict[str, Attribute] = {
            "rawConstantIndices": i32_array(0, index),
            "elem_type": type_,
            "noWrapFlags": WRAPS,
            "inbounds": _UNIT,
        }
        return self.make(llvm.GEPOp, (struct,), POINTER, properties)

    def load(self, address: SSAValue, type_: Attribute, alignment: int) -> SSAValue:
        """Reads a value."""
        properties: dict[str, Attribute] = {"ordering": _UNORDERED, "alignment": _alignment(alignment)}
        value = self.make(llvm.LoadOp, (address,), type_, properties)
        self.note_read(address, value)
        return value

    def store(self, value: SSAValue, address: SSAValue, alignment: int, nontemporal: bool = False) -> None:
        """Writes a value, past the caches if it is `nontemporal`."""
        self.note_write(address)
        properties: dict[str, Attribute] = {"ordering": _UNORDERED, "alignment": _alignment(alignment)}
        if nontemporal:
            properties["nontemporal"] = _UNIT
        self.insert(new_op(llvm.StoreOp, (value, address), (), properties))

    # Calls.

    def call(self, name: str, arguments: Sequence[SSAValue], result_type: Attribute) -> SSAValue:
        """A call of a function of the module that gives a result."""
        return self.insert(call_op(name, arguments, result_type)).results[0]

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
        return self.once(llvm.CallIntrinsicOp, arguments, result_type, properties, (name, id(result_type), id(flags)))

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
