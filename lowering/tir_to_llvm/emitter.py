"""The state in which the ops of one prim_func, or of one parallel loop, are lowered; the signature of the function; and
the errors that it raises.

Layout of an emitted function: the entry block holds what does not depend on loops (constants, dimensions, stack
memory), then the code follows. Code that can fail ends in a status: a kernel returns 1 after it has raised a tvm-ffi
error; an inner function returns a pointer to the error's text, `kind NUL message NUL`, or null, so that an error
that happens on another thread is raised by the one that called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.diagnostics import fail
from lowering.llvm.function_builder import call_op
from lowering.llvm.llvm_builder import POINTER, LLVMBuilder, ModuleBuilder
from lowering.rewriting import ConversionRewriter, PatternIndex
from lowering.tir_to_llvm.arithmetic.division import DimValues
from lowering.tir_to_llvm.arithmetic.scalars import memory_type
from lowering.tir_to_llvm.lane_values import Lanes, LaneValue, Ramp, as_vector, is_varying
from tir_dialect.analysis.structure import written_buffers
from tir_dialect.dims import Bounds, Dim
from tir_dialect.dtypes import byte_size
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType, Interval


def fence_streams(b: LLVMBuilder, streams: Mapping[Dim, int], size: Callable[[Dim], SSAValue]) -> None:
    """Emits the fence that makes non-temporal stores visible to other threads.

    `streams` says from how many elements on a buffer of so many elements was written with such stores.
    """
    for extent, elements in streams.items():
        fence, after = b.new_block(), b.new_block()
        b.branch_if(is_large(b, size(extent), elements), fence, after)
        b.start(fence)
        b.insert(llvm.CallIntrinsicOp("llvm.x86.sse.sfence", [], []))
        b.branch(after)
        b.start(after)


def is_large(b: LLVMBuilder, extent: SSAValue, elements: int) -> SSAValue:
    """Whether a buffer has so many elements that it is written with non-temporal stores."""
    return b.compare("sge", extent, b.integer(elements))


_NAME = "relax.raise"
_COLD = ArrayAttr([StringAttr("cold"), StringAttr("noinline"), StringAttr("nounwind")])

ALREADY_RAISED = ""
"""The kind in an error's text which says that a function that was called has raised."""


def raise_function(module: ModuleBuilder) -> str:
    """The name of `void raise(ptr text)`, which is added to the module once.

    The text is `kind NUL message NUL`; with an empty kind nothing is raised, since that has been done.
    """
    if _NAME not in module.defined:
        b = LLVMBuilder(module, [POINTER])
        (kind,) = b.entry.args
        new, done = b.new_block(), b.new_block()
        first = b.load(kind, i8, 1)
        b.branch_if(b.compare("eq", first, b.integer(0, i8)), done, new)
        b.start(new)
        module.declare("strlen", [POINTER], i64)
        length = b.call("strlen", [kind], i64)
        message = b.element(kind, b.add(length, b.integer(1)), i8)
        module.declare("TVMFFIErrorSetRaisedFromCStr", [POINTER, POINTER], None)
        b.insert(call_op("TVMFFIErrorSetRaisedFromCStr", (kind, message), None))
        b.branch(done)
        b.start(done)
        b.insert(llvm.ReturnOp())
        module.define(_NAME, [POINTER], None, b.finish(), internal=True, properties={"passthrough": _COLD})
    return _NAME


@dataclass(frozen=True)
class LoweringOptions:
    """Options of the lowering of tir to llvm."""

    vector_bits: int = 256
    """Width of vector registers: limits the lanes of a vectorized loop, and is LLVM's preferred vector width."""

    contract: bool = True
    """Whether products are added to sums of products without being rounded."""

    extensions: frozenset[str] = frozenset()
    """The instruction set extensions that may be used, as in `Target.extensions`."""

    streams: bool = False
    """Whether hints for non-temporal stores are followed, with x86's `sfence`."""

    @classmethod
    def of(cls, target: Target, contract: bool = True) -> LoweringOptions:
        """The options for a target."""
        return cls(target.vector_bits, contract, target.extensions, target.arch.startswith("x86"))


@dataclass
class ModuleContext:
    """State shared by the functions of one module."""

    module: ModuleBuilder
    options: LoweringOptions
    functions: Mapping[str, PrimFuncOp]
    """The prim_funcs of the module by name, for calls between them."""
    patterns: PatternIndex
    """What becomes of each class of ops."""
    outside: frozenset[str] = frozenset()
    """The routines that another module defines."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """A buffer in a function: its base address and its type."""

    pointer: SSAValue
    type: BufferType

    @cached_property
    def element(self) -> Attribute:
        """The type of an element in memory."""
        return memory_type(self.type.element_type)

    @cached_property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.type.rank

    @cached_property
    def alignment(self) -> int:
        """The alignment of every element, in bytes."""
        return byte_size(self.type.dtype)


@dataclass
class FunctionState:
    """State of one emitted function: a kernel, or the body of a parallel loop."""

    name: str
    is_kernel: bool
    """Whether the function raises and returns an i32, or returns a pointer to the error's text."""

    in_parallel: bool = False
    """Whether the code runs on several threads."""

    can_fail: bool = False
    """Whether the code emitted so far can fail."""

    may_alias: bool = False
    """Whether buffers of the function may overlap."""

    loop_depth: int = 0
    heap: list[SSAValue] = field(default_factory=list[SSAValue])
    """Heap memory to release when the function fails, innermost last."""

    parallel_count: int = 0

    streams: dict[Dim, int] = field(default_factory=dict[Dim, int])
    """For each buffer with non-temporal stores its size, and the least size for which they are non-temporal."""


class Emitter(ConversionRewriter):
    """The rewriter that lowers ops into the blocks of one llvm function, which it makes with its builder `b`."""

    def __init__(self, context: ModuleContext, state: FunctionState, argument_types: Sequence[Attribute]) -> None:
        self.b = LLVMBuilder(context.module, argument_types, context.options.contract)
        super().__init__(context.patterns, self.b.entry)
        self.context = context
        self.state = state
        self.body = self.b.new_block()
        self.b.start(self.body)
        self.values: dict[SSAValue, LaneValue] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.symbols: dict[str, SSAValue] = {}
        self.lanes: Lanes | None = None
        self._dims = DimValues(self.b, self.symbols)
        self._layouts: dict[Buffer, tuple[SSAValue, list[SSAValue]]] = {}

    def lower_body(self, block: Block) -> None:
        """Lowers the whole code of the function."""
        self.lower(block)
        self.finish()

    def finish(self) -> None:
        """Releases what the function holds and returns success; ends the entry block with a jump to the code."""
        while self.state.heap:
            self.call("relax_scratch_give", (self.state.heap.pop(),), (POINTER,))
        fence_streams(self.b, self.state.streams, self.dim)
        if self.state.is_kernel:
            success = self.b.integer(0, i32)
        else:
            success = self.null() if self.state.can_fail or not self.state.in_parallel else None
        self.b.insert(new_op(llvm.ReturnOp, () if success is None else (success,)))
        with self.entry():
            self.b.branch(self.body)

    def lower(self, block: Block) -> None:
        """Lowers the ops of a block, in order."""
        for op in block.ops:
            self.lower_op(op)

    def lower_op(self, op: Operation) -> None:
        """Lowers one op; the emitted ops take its location."""
        self.b.location = op.location
        if not self.apply_pattern(op):
            fail(op, "has no lowering to llvm", "run the passes that remove it first, such as lower-blocks")

    # Values.

    def define(self, value: SSAValue, lowered: LaneValue) -> None:
        """Records the lowered form of a tir value."""
        hint = value.name_hint
        if hint is not None and type(lowered) is not Ramp and cast("SSAValue", lowered).name_hint is None:
            cast("SSAValue", lowered).name_hint = hint
        self.values[value] = lowered

    def scalar(self, value: SSAValue) -> SSAValue:
        """The lowered form of a value that is uniform across lanes."""
        lowered = self.values[value]
        if isinstance(lowered, Ramp):
            raise ValueError("a value that differs between lanes is used as a scalar")
        return lowered

    def vector(self, value: LaneValue) -> SSAValue:
        """A value with one element per lane of the loop."""
        if self.lanes is None:
            raise ValueError("vectors of lanes exist in vectorized loops only")
        return as_vector(self.b, value, self.lanes.count)

    def varies(self, value: SSAValue) -> bool:
        """Whether a value may differ between the lanes of the current loop."""
        return self.lanes is not None and is_varying(self.values[value])

    def dim(self, dim: Dim) -> SSAValue:
        """The value of a dimension over the symbols of the function."""
        # Not with `entry`, which costs more than most dimensions.
        block, self.b.block = self.b.block, self.b.entry
        try:
            return self._dims(dim)
        finally:
            self.b.block = block

    def dims(self, dims: Sequence[Dim]) -> list[SSAValue]:
        """The values of several dimensions."""
        return [self.dim(dim) for dim in dims]

    def layout(self, buffer: Buffer) -> tuple[SSAValue, list[SSAValue]]:
        """The offset of a buffer's first element and its strides, in elements."""
        found = self._layouts.get(buffer)
        if found is None:
            found = self._layouts[buffer] = self.dim(buffer.type.offset), self.dims(buffer.type.strides)
        return found

    def bind_symbols(self, symbols: Mapping[str, SSAValue]) -> None:
        """Binds the symbols to values, which have to dominate everything."""
        self.symbols.update(symbols)
        for size in symbols.values():
            self.b.note_small(size)

    @contextmanager
    def entry(self) -> Generator[None]:
        """A context in which ops are appended to the entry block."""
        block, self.b.block = self.b.block, self.b.entry
        try:
            yield
        finally:
            self.b.block = block

    def null(self) -> SSAValue:
        """The null pointer."""
        return self.b.make(llvm.ZeroOp, (), POINTER)

    # Failure.

    def error_text(self, kind: str, message: str) -> SSAValue:
        """The address of an error's text."""
        symbol = self.context.module.text(f"{kind}\0{message}")
        return self.b.make(llvm.AddressOfOp, (), POINTER, {"global_name": SymbolRefAttr(symbol)})

    def fail_unless(self, condition: SSAValue, kind: str, message: str) -> None:
        """Fails unless the condition, a scalar, holds."""
        failed, passed = self.b.new_block(), self.b.new_block()
        self.b.branch_if(condition, passed, failed)
        self.b.start(failed)
        self.fail(self.error_text(kind, message))
        self.b.start(passed)

    def fail_if_not_null(self, error: SSAValue) -> None:
        """Propagates the error of an inner function, if there is one."""
        failed, passed = self.b.new_block(), self.b.new_block()
        address = self.b.make(llvm.PtrToIntOp, (error,), i64)
        self.b.branch_if(self.b.compare("eq", address, self.b.integer(0)), passed, failed)
        self.b.start(failed)
        self.fail(error)
        self.b.start(passed)

    def fail(self, error: SSAValue) -> None:
        """Fails: releases what the function holds, and raises or returns the error. Ends the block."""
        self.state.can_fail = True
        for memory in reversed(self.state.heap):
            self.call("relax_scratch_give", (memory,), (POINTER,))
        if not self.state.is_kernel:
            self.b.insert(llvm.ReturnOp(error))
            return
        self.b.insert(call_op(raise_function(self.context.module), (error,), None))
        self.b.insert(llvm.ReturnOp(self.b.integer(1, i32)))

    def call(
        self, name: str, arguments: Sequence[SSAValue], types: Sequence[Attribute], result: Attribute | None = None
    ) -> SSAValue | None:
        """Calls an external function, and declares it if necessary."""
        self.context.module.declare(name, types, result)
        call = self.b.insert(call_op(name, arguments, result))
        return call.results[0] if call.results else None


def function_properties(options: LoweringOptions, crowded: bool = False) -> dict[str, Attribute]:
    """Properties of a function with code: it throws no exceptions, and prefers vectors of the target's width.

    Where registers are `crowded`, the stack begins at a multiple of theirs: LLVM leaves it where it is, and to load
    what was stored across two lines of the cache just before takes as long as a dozen instructions.
    """
    return {"passthrough": _passthrough(options.vector_bits, crowded)}


@cache
def _passthrough(vector_bits: int, crowded: bool) -> ArrayAttr[Attribute]:
    found: list[Attribute] = [StringAttr("nounwind"), _pair("prefer-vector-width", vector_bits)]
    if crowded:
        found.append(_pair("alignstack", vector_bits // 8))
    return ArrayAttr(found)


def _pair(name: str, value: int) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name), StringAttr(str(value))])


def buffer_attributes(type_: BufferType, alone: bool) -> DictionaryAttr:
    """Attributes of a pointer parameter: its alignment, and whether nothing else points to its memory.

    The alignment is that of an element: what the type says is of memory that a function allocates, and callers bring
    arrays that begin anywhere.
    """
    return _pointer_attributes(byte_size(type_.dtype), alone)


@cache
def _pointer_attributes(alignment: int, alone: bool) -> DictionaryAttr:
    attributes: dict[str, Attribute] = {"llvm.align": IntegerAttr(alignment, i64)}
    if alone:
        attributes["llvm.noalias"] = UnitAttr()
    return DictionaryAttr(attributes)


@dataclass(frozen=True)
class KernelParam:
    """A parameter: a buffer or a scalar."""

    name: str
    type: Attribute
    is_written: bool
    """Whether the function may write the buffer."""


@dataclass(frozen=True)
class KernelSignature:
    """Symbols, in order, then parameters, in order: the arguments of the native function."""

    name: str
    symbols: tuple[tuple[str, Interval], ...]
    """Name, and least and greatest value (both inclusive, None if unbounded)."""

    params: tuple[KernelParam, ...]
    may_alias: bool
    """Whether buffers may overlap although one of them is written."""

    @property
    def symbol_names(self) -> tuple[str, ...]:
        """The names of the symbols."""
        return tuple(name for name, _ in self.symbols)

    @property
    def bounds(self) -> Bounds:
        """The bounds of the symbols."""
        return Bounds(dict(self.symbols))

    def key(self) -> str:
        """A text that equal signatures share, for cache keys."""
        params = [(param.name, str(param.type), param.is_written) for param in self.params]
        return f"{self.name} {self.symbols} {params} {self.may_alias}"

    def dimensions(self) -> Iterator[tuple[int, int, Dim]]:
        """Every dimension of every buffer: the index of the parameter, the axis, and the expected extent."""
        for index, param in enumerate(self.params):
            if isinstance(param.type, BufferType):
                for axis, dim in enumerate(param.type.shape):
                    yield index, axis, dim


def kernel_signature(function: PrimFuncOp) -> KernelSignature:
    """The signature of a prim_func; linear in its size."""
    written = written_buffers(function)
    return KernelSignature(
        function.sym_name.data,
        tuple((symbol.symbol.data, symbol.interval) for symbol in function.symbols),
        tuple(
            KernelParam(param.name_hint or f"p{index}", param.type, param in written)
            for index, param in enumerate(function.params)
        ),
        function.may_alias is not None,
    )
