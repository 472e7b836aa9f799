"""`convert-tir-to-llvm`: prim_funcs become llvm functions: loops become blocks, accesses become addresses and loads, in
one walk per function. There is a pattern for every op that may be in a prim_func once blocks are lowered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import Finding, refuse
from lowering.llvm.llvm_builder import POINTER, ModuleBuilder
from lowering.registry import Pass
from lowering.rewriting import PatternIndex
from lowering.tir_to_llvm.arithmetic.scalars import llvm_type
from lowering.tir_to_llvm.calls import LowerCall, LowerCallBoxed, LowerCallExtern, LowerCallPacked, inner_name
from lowering.tir_to_llvm.control_flow import LowerFor, LowerIf, LowerTerminator, LowerWhile
from lowering.tir_to_llvm.emitter import (
    Buffer,
    Emitter,
    FunctionState,
    LoweringOptions,
    ModuleContext,
    buffer_attributes,
    function_properties,
)
from lowering.tir_to_llvm.memory import (
    LowerAddressOf,
    LowerAllocBuffer,
    LowerFlatten,
    LowerLoad,
    LowerMatchBuffer,
    LowerMemoryAt,
    LowerMisalignment,
    LowerPrefetch,
    LowerStore,
    LowerTextAddress,
    LowerView,
)
from lowering.tir_to_llvm.scalar_ops import (
    LowerAssert,
    LowerBroadcast,
    LowerCreateMask,
    LowerDim,
    LowerFirstLane,
    LowerRamp,
    LowerScalarOp,
    LowerShuffle,
    LowerVectorBitcast,
)
from lowering.tir_to_llvm.tile_registers import (
    LowerConfigureTiles,
    LowerDotTiles,
    LowerReleaseTiles,
    LowerTileAccess,
    LowerZeroTile,
)
from relax_dialect.scope import symbol_name
from tir_dialect.fast_ops import ops_in, referenced_functions
from tir_dialect.ops.calls import CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import EXTENSIONS
from tir_dialect.types import BufferType

PATTERNS = PatternIndex(
    [
        LowerScalarOp(),
        LowerLoad(),
        LowerStore(),
        LowerFor(),
        LowerIf(),
        LowerWhile(),
        LowerTerminator(),
        LowerAssert(),
        LowerDim(),
        LowerRamp(),
        LowerBroadcast(),
        LowerShuffle(),
        LowerVectorBitcast(),
        LowerCreateMask(),
        LowerFirstLane(),
        LowerAllocBuffer(),
        LowerFlatten(),
        LowerMatchBuffer(),
        LowerView(),
        LowerPrefetch(),
        LowerConfigureTiles(),
        LowerReleaseTiles(),
        LowerZeroTile(),
        LowerTileAccess(),
        LowerDotTiles(),
        LowerAddressOf(),
        LowerMemoryAt(),
        LowerMisalignment(),
        LowerTextAddress(),
        LowerCall(),
        LowerCallBoxed(),
        LowerCallExtern(),
        LowerCallPacked(),
    ]
)
"""Patterns of the conversion, by op class."""


_CALLED_BY_LLVM = frozenset({"memcpy", "memmove", "memset", "memcmp", "bcmp"})
"""What LLVM makes of loops and of copies in any function."""


@dataclass(frozen=True)
class ConvertTIRToLLVMPass(Pass):
    """Replaces every `tir.prim_func` by an `llvm.func` of the native ABI, `i32 f(i64 symbols..., parameters...)`.

    ```mlir
    tir.prim_func @copy[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
      tir.for (%i) in (%n) {
        %x = tir.load %X[%i]
        tir.store %x, %Y[%i]
      }
    }
    // becomes
    llvm.func @copy(%n: i64, %X: !llvm.ptr {llvm.noalias}, %Y: !llvm.ptr {llvm.noalias}) -> i32 {
      ...
    ^loop(%i: i64): ...
      %p = llvm.getelementptr inbounds %X[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    ```

    The function has the name of the PrimFunc, or `kernel.NAME` where LLVM or what compiled code calls has that name
    already, such as `strlen`; what names it in the module is changed too.

    0 is success; otherwise a tvm-ffi error has been raised. Vectorized loops of constant length become vector code,
    parallel loops functions that threads call. Nothing else in the module is touched.

    Requires: no `tir.block` is left (`lower-blocks`), and no function of the graph level names a PrimFunc. Refuses ops
    that have no lowering, loops bound to GPU threads, and packed calls inside parallel loops.
    """

    name = "convert-tir-to-llvm"
    removes = ("tir.prim_func",)

    vector_bits: int = 256
    """Width of the vector registers to use."""

    contract: bool = True
    """Whether products are added to sums of products without being rounded."""

    streams: bool = False
    """Whether hints on stores past the caches are followed, with the fence of x86."""

    extensions: tuple[str, ...] = ()
    """The instruction set extensions that may be used, as in `Target.extensions`."""

    def __post_init__(self) -> None:
        """`ValueError` for options that no machine has."""
        if self.vector_bits < 64 or self.vector_bits & (self.vector_bits - 1):
            raise ValueError(f"vector-bits expected a power of two of at least 64, got {self.vector_bits}")
        if unknown := [name for name in self.extensions if name not in EXTENSIONS]:
            raise ValueError(f"extensions expected some of {', '.join(EXTENSIONS)}, got {unknown[0]}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites the module in place."""
        functions = [inner for inner in op.ops if isinstance(inner, PrimFuncOp)]
        if not functions:
            return
        if any(inner.name == "relax.func" for inner in op.ops):
            _refuse_callers(op, {function.sym_name.data for function in functions})
        options = LoweringOptions(self.vector_bits, self.contract, frozenset(self.extensions), self.streams)
        _rename(op, {function.sym_name.data for function in functions if not _is_symbol(function.sym_name.data)})
        lowered = lower_prim_funcs(functions, options)
        while clashes := _clashes(functions, lowered):
            _rename(op, clashes)
            lowered = lower_prim_funcs(functions, options)
        for new in list(lowered.ops):
            new.detach()
            Rewriter.insert_op(new, InsertPoint.before(functions[0]))
        for function in functions:
            Rewriter.erase_op(function)


def _refuse_callers(module: ModuleOp, kernels: Collection[str]) -> None:
    """Refuses ops of the graph level that name a kernel; what calls LLVM functions are those of the machine."""
    refuse(
        Finding.at(op, f"names @{name}, which would become an LLVM function", "run 'relax-to-vm' before")
        for function in module.ops
        if function.name == "relax.func"
        for op in function.walk()
        for name in referenced_functions(op)
        if name in kernels
    )


def _is_symbol(name: str) -> bool:
    """Whether LLVM takes a name for that of a function like others, which it does not call on its own."""
    return "\0" not in name and not name.startswith(("llvm.", "\1")) and name not in _CALLED_BY_LLVM


def _clashes(functions: Sequence[PrimFuncOp], lowered: ModuleOp) -> set[str]:
    """The PrimFuncs with the name of something else that lowered code declares or defines."""
    counts = Counter(symbol_name(op) for op in lowered.ops)
    return {function.sym_name.data for function in functions if counts[function.sym_name.data] > 1}


def _rename(module: ModuleOp, names: Collection[str]) -> None:
    """Gives PrimFuncs other names, and changes what refers to them."""
    if not names:
        return
    from relax_dialect.struct_info.symbols import fresh_name  # only here: kernels are lowered without graphs

    taken = {name for op in module.ops if (name := symbol_name(op)) is not None}
    renamed: dict[str, str] = {}
    for name in sorted(names):
        renamed[name] = fresh_name(f"kernel.{name if name.isprintable() else name.encode().hex()}", taken)
        taken.add(renamed[name])
    for op in module.walk():
        if isinstance(op, PrimFuncOp) and (new := renamed.get(op.sym_name.data)) is not None:
            op.sym_name = StringAttr(new)
        for key, value in op.properties.items():
            if isinstance(value, SymbolRefAttr) and (new := renamed.get(value.root_reference.data)) is not None:
                op.properties[key] = SymbolRefAttr(new)


def lower_prim_funcs(
    functions: Iterable[PrimFuncOp], options: LoweringOptions, outside: Collection[str] = ()
) -> ModuleOp:
    """An llvm module with one function for each prim_func, and what they need; `functions` are left as they are.

    The routines that are `outside` are called, and defined by another module, which `lower_routine` makes.

    Raises `PassFailedException` at the op that has no lowering.
    """
    inside = {function.sym_name.data: function for function in functions}
    context = _context(inside, options, frozenset(outside))
    called = {
        op.callee.root_reference.data
        for function in inside.values()
        for op in ops_in(function.body)
        if type(op) is CallOp
    }
    for name, function in inside.items():
        if name in called:
            _lower_function(context, function, is_kernel=False)
        if not (function.is_private and name in called):
            _lower_function(context, function, is_kernel=True)
    return context.module.finish()


def lower_routine(function: PrimFuncOp, options: LoweringOptions) -> ModuleOp:
    """An llvm module that defines what other modules call; errors as `lower_prim_funcs`."""
    context = _context({function.sym_name.data: function}, options)
    _lower_function(context, function, is_kernel=False, is_outside=True)
    return context.module.finish()


def _context(
    functions: Mapping[str, PrimFuncOp], options: LoweringOptions, outside: frozenset[str] = frozenset()
) -> ModuleContext:
    builder = ModuleBuilder(options.vector_bits, options.extensions)
    return ModuleContext(builder, options, functions, PATTERNS, outside)


def _lower_function(context: ModuleContext, function: PrimFuncOp, is_kernel: bool, is_outside: bool = False) -> None:
    name = function.sym_name.data if is_kernel else inner_name(function.sym_name.data)
    arguments = function.body.block.args
    types: list[Attribute] = [_parameter_type(argument) for argument in arguments]
    state = FunctionState(name, is_kernel=is_kernel, may_alias=function.may_alias is not None)
    emitter = Emitter(context, state, types)
    emitter.b.location = function.location
    lowered = emitter.b.entry.args
    emitter.bind_symbols(dict(zip(function.symbol_names, lowered, strict=False)))
    for argument, value in zip(arguments, lowered, strict=True):
        value.name_hint = argument.name_hint
        value.location = argument.location
        if isinstance(argument.type, BufferType):
            emitter.buffers[argument] = Buffer(value, argument.type)
        else:
            emitter.define(argument, value)
    emitter.lower_body(function.body.block)
    properties = function_properties(context.options, emitter.b.crowded)
    properties["arg_attrs"] = ArrayAttr([_attributes(argument, not state.may_alias) for argument in arguments])
    result = i32 if is_kernel else POINTER
    internal = not is_outside and (not is_kernel or function.is_private)
    body = emitter.b.finish()
    context.module.define(
        name, types, result, body, internal=internal, properties=properties, location=function.location
    )


def _parameter_type(argument: SSAValue) -> Attribute:
    return POINTER if isinstance(argument.type, BufferType) else llvm_type(argument.type)


def _attributes(argument: SSAValue, alone: bool) -> DictionaryAttr:
    return buffer_attributes(argument.type, alone) if isinstance(argument.type, BufferType) else DictionaryAttr({})
