"""Ways in which a program writes into a value: by a packed function or in place, under its own name or that of a view,
and where it stands or in a branch, a loop, a function or a closure.

All make the same other elements of those of the value, and run whenever the program comes to them, though a compiler
does not know that of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import tvm_ffi
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import SymbolTable

from lowering.parsing import parse_module
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallPackedOp, CallPurePackedOp, CallTIRInplaceOp
from relax_dialect.ops.calls import CallClosureOp, CallOp
from relax_dialect.ops.control_flow import ForOp, IfOp, WhileOp, YieldOp
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import ClosureOp, ReturnOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, TensorType, as_struct_infos
from vm_dialect.tensors import to_numpy

WRITE = "tests.planted.write"
"""A packed function that makes other elements of those of a tensor."""

HOLDS = "tests.planted.holds"
"""A packed function that is true."""

CALLEE = "planted_write"
"""A function that writes into its parameter, in programs that call one."""


def write(tensor: tvm_ffi.Tensor) -> None:
    """Changes every element by 1 or more; of small integers, all bits; of large ones, one, as they may be indices."""
    array = to_numpy(tensor)
    if array.dtype.kind == "b":
        array[...] = ~array
    elif array.dtype.kind in "iu":
        array[...] = ~array if array.dtype.itemsize == 1 else array ^ 1
    else:
        array[...] = 2 * array + np.sign(array) + 1


tvm_ffi.register_global_func(WRITE, write, override=True)
tvm_ffi.register_global_func(HOLDS, lambda: True, override=True)


@dataclass(frozen=True)
class Written:
    """The ops of a write, and the value that is the written one from then on, if it has a new name."""

    ops: Sequence[Operation]
    name: SSAValue | None = None
    early: Sequence[Operation] = ()
    """Ops that stand where the value is made."""


class NoSuchWrite(Exception):
    """A value of which there is no write of a form."""


Form: TypeAlias = Callable[[SSAValue, ModuleOp], Written]


def packed(value: SSAValue, _: ModuleOp) -> Written:
    """A packed function writes."""
    return Written([CallPackedOp(WRITE, [value])])


def in_place(value: SSAValue, module: ModuleOp) -> Written:
    """A PrimFunc writes, and the program goes on with the old name."""
    return Written(renamed(value, module).ops)


def renamed(value: SSAValue, module: ModuleOp) -> Written:
    """A PrimFunc writes, and the program goes on with the result."""
    info = value.type
    if not isinstance(info, TensorType) or info.known_dims is None or not isinstance(info.dtype, _WRITABLE):
        raise NoSuchWrite("no memory that a PrimFunc can write")
    call = CallTIRInplaceOp(_kernel(module, len(info.known_dims), info.dtype), [value], [0], [info])
    return Written([call], call.res[0])


_WRITABLE = (Float16Type, Float32Type, Float64Type, BFloat16Type, IntegerType)


def _kernel(module: ModuleOp, rank: int, dtype: Attribute) -> str:
    """The name of a PrimFunc of the module, made if there is none, that writes a buffer of a rank and dtype."""
    name = f"planted_{rank}_{dtype}"
    if SymbolTable.lookup_symbol(module, name) is None:
        _add(module, _kernel_text(name, rank, dtype))
    return name


def _add(module: ModuleOp, text: str) -> None:
    (func,) = parse_module(text).ops
    func.detach()
    module.body.block.add_op(func)


def _kernel_text(name: str, rank: int, dtype: Attribute) -> str:
    dims, at = (", ".join(f"{mark}{axis}" for axis in range(rank)) for mark in ("d", "%i"))
    symbols = ", ".join(f"%d{axis}" for axis in range(rank))
    if isinstance(dtype, IntegerType):
        scalar = IntegerType(dtype.width.data)
        one = "true" if scalar == i1 else f"1 : {scalar}"
        compute = f"%c = arith.constant {one} %y = arith.xori %x, %c : {scalar}"
    else:
        compute = f"""%c = arith.constant 2.0 : {dtype} %d = arith.constant 0.625 : {dtype}
            %z = arith.mulf %x, %c : {dtype} %y = arith.addf %z, %d : {dtype}"""
    body = f"%x = tir.load %X[{at}] {compute} tir.store %y, %X[{at}]"
    if rank:
        body, symbols = f"tir.for ({at}) in ({symbols}) {{ {body} }}", f"[{symbols}]"
    return f"tir.prim_func private @{name}{symbols}(%X: !tir.buffer<[{dims}], {dtype}>) {{ {body} }}"


def _through(view: Callable[[SSAValue], Sequence[Operation]], write: Form, *, is_early: bool) -> Form:
    """A write of a view, which is made where it is written, or where the value is made."""

    def form(value: SSAValue, module: ModuleOp) -> Written:
        ops = view(value)
        written = write(ops[-1].results[0], module).ops
        return Written(written, early=ops) if is_early else Written([*ops, *written])

    return form


def _expanded(value: SSAValue) -> Sequence[Operation]:
    if not isinstance(value.type, TensorType) or value.type.dims is None:
        raise NoSuchWrite("an unknown rank")
    return [ExpandDimsOp(value, [0])]


def _in_tuple(value: SSAValue) -> Sequence[Operation]:
    pair = TupleOp(value, value)
    return [pair, TupleGetOp(pair.results[0], 1)]


def _of_branch(value: SSAValue) -> Sequence[Operation]:
    holds = CallPurePackedOp(HOLDS, [], PrimType(i1))
    ends = (Region(Block([YieldOp(value)])) for _ in range(2))
    return [holds, IfOp(holds.result, *ends)]


def branch(value: SSAValue, module: ModuleOp) -> Written:
    """A write in one of two branches."""
    holds = CallPurePackedOp(HOLDS, [], PrimType(i1))
    regions = Region(Block([*packed(value, module).ops, YieldOp()])), Region(Block([YieldOp()]))
    return Written([holds, IfOp(holds.result, *regions)])


def renamed_branch(value: SSAValue, module: ModuleOp) -> Written:
    """One branch writes in place; the program goes on with what the branches give."""
    holds, written = CallPurePackedOp(HOLDS, [], PrimType(i1)), renamed(value, module)
    assert written.name is not None
    regions = Region(Block([*written.ops, YieldOp(written.name)])), Region(Block([YieldOp(value)]))
    chosen = IfOp(holds.result, *regions)
    return Written([holds, chosen], chosen.res[0])


def counted_loop(value: SSAValue, module: ModuleOp) -> Written:
    """A write in a loop that runs once."""
    low, high = PrimOp(0), PrimOp(1)
    body = Block([*packed(value, module).ops, YieldOp()], arg_types=[PrimType(i64)])
    return Written([low, high, ForOp(low.result, high.result, [], Region(body))])


def carried_loop(value: SSAValue, module: ModuleOp) -> Written:
    """A loop carries the value and writes it in place; the program goes on with what it gives."""
    low, high = PrimOp(0), PrimOp(1)
    body = Block(arg_types=[PrimType(i64), value.type])
    written = renamed(body.args[1], module)
    assert written.name is not None
    body.add_ops([*written.ops, YieldOp(written.name)])
    loop = ForOp(low.result, high.result, [value], Region(body))
    return Written([low, high, loop], loop.res[0])


def conditional_loop(value: SSAValue, module: ModuleOp) -> Written:
    """A write in a loop with a condition, which runs once."""
    holds = CallPurePackedOp(HOLDS, [], PrimType(i1))
    condition, body = (Block(arg_types=[holds.result.type]) for _ in range(2))
    condition.add_op(YieldOp(*condition.args))
    stop = PrimOp(IntegerAttr(0, i1))
    body.add_ops([*packed(value, module).ops, stop, YieldOp(stop.result)])
    return Written([holds, WhileOp([holds.result], Region(condition), Region(body))])


def callee(value: SSAValue, module: ModuleOp) -> Written:
    """A function of the program writes into its argument and returns it; the program goes on with the result."""
    if SymbolTable.lookup_symbol(module, CALLEE) is None:
        _add(
            module,
            f"""relax.func private @{CALLEE}(%x: !relax.object) -> !relax.object impure {{
            relax.call_packed "{WRITE}"(%x) relax.return %x }}""",
        )
    call = CallOp(CALLEE, [value], ObjectType(), pure=False)
    (info,) = as_struct_infos([value.type])
    cast = MatchCastOp(call.results[0], info)
    return Written([call, cast], cast.result)


def closure(value: SSAValue, module: ModuleOp) -> Written:
    """A closure that was made with the value writes."""
    flag = PrimType(i1)
    body = Block(arg_types=[flag])
    body.add_ops([*packed(value, module).ops, ReturnOp(body.args[0])])
    made = ClosureOp(FuncType([flag], flag, pure=False), Region(body))
    holds = CallPurePackedOp(HOLDS, [], flag)
    return Written([holds, CallClosureOp(made.result, [holds.result])], early=[made])


def _flat(value: SSAValue) -> Sequence[Operation]:
    return [FlattenOp(value)]


FORMS: Mapping[str, Form] = {
    "packed": packed,
    "in place": in_place,
    "renamed": renamed,
    "flat": _through(_flat, packed, is_early=False),
    "early flat": _through(_flat, packed, is_early=True),
    "early flat, in place": _through(_flat, in_place, is_early=True),
    "expanded, in place": _through(_expanded, in_place, is_early=False),
    "tuple": _through(_in_tuple, packed, is_early=True),
    "of a branch": _through(_of_branch, packed, is_early=True),
    "branch": branch,
    "renamed branch": renamed_branch,
    "counted loop": counted_loop,
    "carried loop": carried_loop,
    "conditional loop": conditional_loop,
    "callee": callee,
    "closure": closure,
}
"""By name."""
