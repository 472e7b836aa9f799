"""The frame of a native function: slots that own objects, and arena blocks; every exit releases them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.ir import Operation, SSAValue

from lowering.llvm.builder.function_builder import call_op
from lowering.vm_to_llvm.abi import ANY, ANY_BYTES, I1, I8, PTR
from lowering.vm_to_llvm.globals import ARENAS, ModuleGlobals
from lowering.vm_to_llvm.runtime_builder import RuntimeBuilder
from tir_dialect.new_ops import new_op


@dataclass(frozen=True)
class ArenaSlot:
    """Where a function keeps the block of one `vm.alloc_storage`."""

    pointer: SSAValue
    """Stack slot with the block's address, null before it is taken."""

    cache: SSAValue
    """Address of the cache that the block comes from."""


class Frame:
    """Slots are handed out while the function is lowered; `finish` makes the code that depends on their number."""

    def __init__(self, emit: RuntimeBuilder, shared: ModuleGlobals, kept: Iterable[SSAValue]) -> None:
        self._emit = emit
        self._shared = shared
        self._slots = emit.stack(ANY)
        self._count = 0
        self._numbers = {value: self._allocate(1) for value in kept}
        self._temporary = 0
        self._temporary_count = 0
        self._arenas: list[ArenaSlot] = []
        self._releases: list[Operation] = []

    def holds(self, value: SSAValue) -> bool:
        """Whether a value has a slot."""
        return value in self._numbers

    def slot(self, value: SSAValue) -> SSAValue:
        """The address of a value's slot."""
        return self._address(self._numbers[value])

    def new_slot(self) -> SSAValue:
        """The address of a slot that belongs to no value."""
        return self._address(self._allocate(1))

    def temporary_slots(self, count: int) -> SSAValue:
        """The address of `count` slots that all ops share; each leaves them empty, or with what nobody uses."""
        if count > self._temporary_count:
            self._temporary, self._temporary_count = self._allocate(count), count
        return self._address(self._temporary)

    def new_arena(self) -> ArenaSlot:
        """A cache in the module, and a stack slot that is null at the start of a call."""
        emit = self._emit
        pointer = emit.stack(PTR).at_least(1)
        null = new_op(llvm.ZeroOp, (), (PTR,))
        cache = llvm.GEPOp(emit.address(ARENAS), [self._shared.new_arena() * 8], I8, inbounds=True)
        emit.entry.add_ops([null, llvm.StoreOp(null.res, pointer), cache])
        self._arenas.append(ArenaSlot(pointer, cache.result))
        return self._arenas[-1]

    def release(self) -> None:
        """Emits the code that empties the slots and gives the arenas back.

        All arenas of the function have to be known.
        """
        emit, shared = self._emit, self._shared
        call = call_op(shared.runtime("vmrt_release"), (self._slots.at_least(1), emit.integer(0)), None)
        self._releases.append(emit.insert(call))
        for arena in self._arenas:
            emit.call(shared.runtime("vmrt_arena_give"), [arena.cache, emit.load(arena.pointer, PTR)], None)

    def finish(self) -> None:
        """Emits the code that empties every slot, at the end of the prologue, where emission goes on."""
        emit = self._emit
        emit.block = emit.entry
        if self._count == 0:
            for release in self._releases:
                release.detach()
                release.erase()
            self._slots.drop()
            return
        for release in self._releases:
            release.operands[1] = emit.integer(self._count)
        size = emit.integer(self._count * ANY_BYTES)
        operands = [self._slots.at_least(1), emit.integer(0, I8), size, emit.integer(0, I1)]
        emit.insert(llvm.CallIntrinsicOp("llvm.memset.p0.i64", operands, []))

    def _allocate(self, count: int) -> int:
        """The number of the first of `count` new slots."""
        self._count += count
        self._slots.at_least(self._count)
        return self._count - count

    def _address(self, number: int) -> SSAValue:
        return self._emit.offset(self._slots.at_least(1), number * ANY_BYTES)
