"""`fuse-tir`: a group of calls of kernels becomes the call of one kernel.
It has their bodies in sequence, with intermediate values in local buffers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.kernels.structure.decoding import decodes
from lowering.kernels.structure.padding import pads_bytes
from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.fusion.inline_blocks import inline_buffers
from lowering.relax.fusion.kernel_body import KernelBody, Number, is_only_loaded, number_of, replace_loads
from relax_dialect.function_symbols import KernelDims
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.callees import explicit_symbols, find_prim_func, match_prim_func
from relax_dialect.ops.control_flow import yielded
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.scope import called_functions, symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import PrimType, TensorType, as_struct_infos
from tir_dialect.dims import Dim, symbol
from tir_dialect.dtypes import scalar_type
from tir_dialect.fast_ops import erase_dead, walked
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

MOST_NAMES = 5
"""A kernel is called after the first so many of its parts."""

Slot: TypeAlias = tuple[int, int]
"""Where a value comes from: parameter `i` is `(-1, i)`, result `r` of call `m` is `(m, r)`."""


@dataclass(frozen=True)
class Member:
    """A call of the group."""

    call: CallTIROp
    func: PrimFuncOp
    bindings: Mapping[str, Dim]
    """The symbols of its PrimFunc in terms of the caller's."""


class FusedKernel:
    """The kernel that a group becomes."""

    def __init__(self, group: FusedOp, known: dict[Hashable, Mapping[str, Dim]]):
        """Fails at a call that is no call of a PrimFunc with known sizes; `known` remembers the symbols of calls."""
        self._group = group
        self._members = [_member(op, known) for op in group.body.block.ops if op is not group.body.block.last_op]
        self._outputs = yielded(group.body)
        self._inputs = self._used()
        self.numbers: tuple[Number | None, ...] = (None,) * len(self._inputs)
        """Of each input that is a constant in the code of the kernel, its value; set before the kernel is built."""
        self._slots: dict[SSAValue, Slot] = {value: (-1, i) for i, value in enumerate(self._inputs)}
        for number, member in enumerate(self._members):
            self._slots |= {result: (number, i) for i, result in enumerate(member.call.res)}
        self._shapes = [info.known_dims or () for info in self._tensors()]
        bound = [dim for member in self._members for dim in member.bindings.values()]
        self._dims = KernelDims.of(self._shapes, bound)
        self._bound = self._dims.shape(bound)
        self._buffer_types: dict[tuple[tuple[Dim, ...], Attribute], BufferType] = {}

    def _used(self) -> list[SSAValue]:
        made = {result for member in self._members for result in member.call.res}
        used = dict.fromkeys(value for member in self._members for value in member.call.arguments)
        return [value for value in used if value not in made]

    def constants(self) -> tuple[Number | None, ...]:
        """Of each input that may be a constant in the code, its value."""
        loaded: dict[SSAValue, bool] = {}
        for member in self._members:
            for value, param in zip(member.call.arguments, member.func.params, strict=False):
                loaded[value] = loaded.get(value, isinstance(value.type, TensorType)) and is_only_loaded(param)
        return tuple(number_of(value) if loaded[value] else None for value in self._inputs)

    def refresh(self) -> None:
        """Sees what has replaced the inputs since."""
        self._inputs = self._used()

    @property
    def arguments(self) -> list[SSAValue]:
        """The inputs that the kernel is called with."""
        return [value for value, number in zip(self._inputs, self.numbers, strict=True) if number is None]

    @property
    def omitted(self) -> dict[SSAValue, Number]:
        """The inputs that are constants in the code of the kernel."""
        return {value: n for value, n in zip(self._inputs, self.numbers, strict=True) if n is not None}

    def _tensors(self) -> list[TensorType]:
        values = (*self._inputs, *self._outputs)
        return [value.type for value in values if isinstance(value.type, TensorType)]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The kernel's symbols; equal kernels have them in the same order."""
        return self._dims.symbols(self._shapes, self._bound)

    @property
    def callees(self) -> list[str]:
        """The PrimFuncs that are called, in order."""
        return [member.func.sym_name.data for member in self._members]

    @cached_property
    def key(self) -> Hashable:
        """Equal for groups that have the same kernel."""
        numbers = {name: symbol(f"k{index}") for index, name in enumerate(self.symbols)}

        def text(dims: Sequence[Dim]) -> tuple[str, ...]:
            return tuple(str(dim.substitute(numbers)) for dim in self._dims.shape(dims))

        calls = tuple(
            (
                member.func.sym_name.data,
                tuple(self._slots[value] for value in member.call.arguments),
                text(tuple(member.bindings.values())),
            )
            for member in self._members
        )
        dtypes = tuple(_dtype(value) for value in (*self._inputs, *self._outputs))
        return (calls, tuple(self._slots[value] for value in self._outputs), dtypes, tuple(map(text, self._shapes)))

    def build(self, name: str) -> PrimFuncOp:
        """The PrimFunc; what lies between two calls is computed where it is used if that is profitable."""
        params = [self._parameter(value, value.name_hint) for value in self.arguments]
        names = [result.name_hint for result in self._group.res]
        params += [self._parameter(*each) for each in zip(self._outputs, names, strict=True)]
        func = PrimFuncOp(name, self.symbols, params)
        body = KernelBody(func)
        buffers: dict[SSAValue, SSAValue] = dict(zip((*self.arguments, *self._outputs), func.params, strict=True))
        buffers |= {value: body.allocate(self._buffer_type(value)) for value in self.omitted}
        inner: dict[SSAValue, None] = {}
        kept = set[SSAValue]()
        uses = Counter(value for member in self._members for value in member.call.arguments)
        for member in self._members:
            for result in member.call.res:
                if result not in buffers:
                    buffers[result] = body.allocate(self._buffer_type(result))
                    buffers[result].name_hint = result.name_hint
                    inner[buffers[result]] = None
            values = [buffers[value] for value in (*member.call.arguments, *member.call.res)]
            if pads_bytes(member.func):
                kept.update(values)
            passing = {
                buffers[value] for value in member.call.arguments if uses[value] == 1 and buffers[value] in inner
            } - kept
            if decodes(member.func):
                kept.update(buffers[result] for result in member.call.res)
            body.append(member.func, values, self._substitution(member), passing)
        body.finish()
        inherit_location(self._group, func)
        for value, number in self.omitted.items():
            replace_loads(buffers[value], number)
        # Weights stay a matrix: the kernel of the contraction decodes them in registers, or once for many rows.
        # Bytes are padded by a stage of its own, which a depthwise convolution elides.
        inline_buffers(func, [buffer for buffer in inner if buffer not in kept])
        return func

    def call(self, func: PrimFuncOp, symbols: Sequence[str]) -> CallTIROp:
        """The call of a kernel that was made for this group, or, with these symbols, for one that is equal to it."""
        own = dict(zip(symbols, self.symbols, strict=True))
        tir_vars = [self._dims.original(symbol(own[name])) for name in explicit_symbols(func)]
        types = [value.type for value in self._outputs if isinstance(value.type, TensorType)]
        call = CallTIROp(SymbolRefAttr(func.sym_name.data), self.arguments, types, tir_vars=tir_vars)
        call.location = self._group.location
        for old, new in zip(self._group.res, call.res, strict=True):
            new.name_hint = old.name_hint
        return call

    def _parameter(self, value: SSAValue, name: str | None) -> tuple[str, Attribute]:
        hint = name or "T"
        if isinstance(value.type, TensorType):
            return hint, self._buffer_type(value)
        return hint, scalar_type(_dtype(value))

    def _buffer_type(self, value: SSAValue) -> BufferType:
        """The type of the memory of a tensor; equal ones are one object, since to make one takes as long as an op."""
        key = _dims(value), _dtype(value)
        if key not in self._buffer_types:
            self._buffer_types[key] = BufferType(self._dims.shape(key[0]), key[1])
        return self._buffer_types[key]

    def _substitution(self, member: Member) -> dict[str, Dim]:
        return {name: self._dims.shape((dim,))[0] for name, dim in member.bindings.items()}


def _member(op: Operation, known: dict[Hashable, Mapping[str, Dim]]) -> Member:
    func = find_prim_func(op, op.callee) if isinstance(op, CallTIROp) else None
    if func is None or not isinstance(op, CallTIROp):
        fail(op, "expected a call of a PrimFunc in a group", "run 'legalize-ops' first")
    types = as_struct_infos((*op.arguments.types, *op.res.types))
    key = (func, types, op.tir_dims)
    if key not in known:
        match = match_prim_func(op, func, types, op.tir_dims)
        if match.slots or op.shapes:
            fail(op, "has a shape that is not known in a group", "refine it with 'relax.match_cast'")
        known[key] = {name: match.bindings[name] for name in func.symbol_names}
    return Member(op, func, known[key])


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return (value.type.known_dims if isinstance(value.type, TensorType) else None) or ()


def _dtype(value: SSAValue) -> Attribute:
    info = value.type
    dtype = info.dtype if isinstance(info, TensorType | PrimType) else None
    if dtype is None:
        raise ValueError(f"expected a tensor or prim of known dtype, got {info}")
    return dtype


def stem(callees: Sequence[str]) -> str:
    """What a kernel of these parts is called: `fused_matmul_add_relu`."""
    shown = [name.rstrip("0123456789").rstrip("_") or name for name in callees[:MOST_NAMES]]
    return "_".join(["fused", *shown, *(["etc"] if len(callees) > MOST_NAMES else [])])


class FuseTIRPass(Pass):
    """Merges the PrimFuncs that a `relax.fused` region calls into one PrimFunc; equal groups share it.

    Before:

    ```mlir
    %2 = relax.fused {
      %0 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 8], f32>
      %1 = relax.call_tir @add(%0, %b) : !relax.tensor<[n, 8], f32>
      %3 = relax.call_tir @relu(%1) : !relax.tensor<[n, 8], f32>
      relax.yield %3
    }
    ```

    After:

    ```mlir
    tir.prim_func @fused_matmul_add_relu[%n](%x: ..., %w: ..., %b: ..., %r: !tir.buffer<[n, 8], f32>) {
      %t = tir.alloc_buffer : !tir.buffer<[n, 8], f32>
      ... tir.block "matmul" ... tir.store %s, %t[%i, %j]
      ... tir.block "relu" ... maximumf(%t[%i, %j] + %b[%j], 0)
    }
    %2 = relax.call_tir @fused_matmul_add_relu(%x, %w, %b) : !relax.tensor<[n, 8], f32>
    ```

    What elementwise functions compute is computed where it is used, unless that would repeat expensive work; the rest
    is kept in buffers of the kernel, which `schedule-cpu` keeps small. A constant of one element is a number in the
    code if all groups that share the kernel have the same. PrimFuncs that only groups called go. Refuses groups of
    other ops. No group is left; idempotent.
    """

    name = "fuse-tir"
    requires = ("relax.fused",)
    removes = ("relax.fused",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replaces every group."""
        groups = [inner for inner in walked(op) if isinstance(inner, FusedOp)]
        if not groups:
            return
        kernels = _Kernels(op)
        for each, kernel in zip(groups, kernels.prepare(groups), strict=True):
            kernels.replace(each, kernel)
        _remove_unused(op, kernels.merged)


@dataclass
class _Kernels:
    """The kernels that have been made."""

    module: ModuleOp
    merged: dict[str, None] = field(default_factory=dict[str, None])
    """The PrimFuncs that have become part of others."""
    _made: dict[Hashable, tuple[PrimFuncOp, tuple[str, ...]]] = field(
        default_factory=dict[Hashable, tuple[PrimFuncOp, tuple[str, ...]]]
    )
    _known: dict[Hashable, Mapping[str, Dim]] = field(default_factory=dict[Hashable, Mapping[str, Dim]])
    _names: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)

    def prepare(self, groups: Sequence[FusedOp]) -> list[FusedKernel]:
        """The kernels of the groups. What is the same number in all groups of a kernel is a constant of its code."""
        kernels = [FusedKernel(group, self._known) for group in groups]
        agreed: dict[Hashable, tuple[Number | None, ...]] = {}
        for kernel in kernels:
            numbers = kernel.constants()
            known = agreed.setdefault(kernel.key, numbers)
            if known is not numbers:
                pairs = zip(known, numbers, strict=True)
                agreed[kernel.key] = tuple(a if repr(a) == repr(b) else None for a, b in pairs)
        for kernel in kernels:
            kernel.numbers = agreed[kernel.key]
        return kernels

    def replace(self, group: FusedOp, kernel: FusedKernel) -> None:
        """The call of one kernel instead of a group."""
        kernel.refresh()
        found = self._made.get(kernel.key)
        if found is None:
            name = fresh_name(stem(kernel.callees), self._names)
            self._names.add(name)
            found = self._made[kernel.key] = (kernel.build(name), kernel.symbols)
            # After the last kernel that there is.
            last = None
            for op in self.module.ops:
                last = op if isinstance(op, PrimFuncOp) else last
            Rewriter.insert_op(
                found[0], InsertPoint.at_start(self.module.body.block) if last is None else InsertPoint.after(last)
            )
        self.merged.update(dict.fromkeys(kernel.callees))
        call = kernel.call(*found)
        constants = [value.owner for value in kernel.omitted if isinstance(value.owner, Operation)]
        Rewriter.replace_op(group, call)
        erase_dead(constants)


def _remove_unused(module: ModuleOp, names: Iterable[str]) -> None:
    """Erases those of the PrimFuncs that nothing calls any more."""
    used = {name for op in walked(module) for name in called_functions(op)}
    gone = set(names) - used
    for op in list(module.ops):
        if isinstance(op, PrimFuncOp) and op.sym_name.data in gone:
            Rewriter.erase_op(op)
