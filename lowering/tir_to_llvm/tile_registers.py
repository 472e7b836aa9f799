"""The tile registers of AMX: one instruction for each op, on a register that is named.

Linux gives a process the registers when it asks (`arch_prctl`); a module asks before it first configures them. If they
are refused the kernel raises an error, as the instructions would end the process.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, i8, i16, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.llvm.function_builder import dense_integers
from lowering.llvm.llvm_builder import POINTER, LLVMBuilder, ModuleBuilder
from lowering.rewriting import op_rewrite_pattern
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.memory import address_at, element_offset
from tir_dialect.ops.tile_registers import (
    LAST_COLUMNS,
    LAST_ROWS,
    TILE_SIZE,
    ConfigureTilesOp,
    DotTilesOp,
    LoadTileOp,
    ReleaseTilesOp,
    StoreTileOp,
    ZeroTileOp,
)

_EXTENSIONS = frozenset(("amx-int8", "amx-bf16"))
_PERMITS = "relax.permits_tiles"
_ARCH_PRCTL, _REQUEST_STATE, _TILE_DATA = 158, 0x1023, 18
"""The number of the system call, what it is to do, and the component of the processor's state that it is about."""
_UNKNOWN, _REFUSED, _PERMITTED = 0, 1, 2
_CONFIGURATION_BYTES, _ROW_BYTES_AT, _ROWS_AT = 64, 16, 48
"""Of `ldtilecfg`: the size, and where it has the bytes of a row of each register (16 bits) and its rows (8 bits)."""
_DOTS = {(True, True): "ss", (True, False): "su", (False, True): "us", (False, False): "uu"}
"""The instruction's suffix by which factors have a sign."""


class LowerConfigureTiles(RewritePattern):
    """Asks for the registers, and gives all but those of last steps sixteen rows of 64 bytes."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConfigureTilesOp, e: Emitter) -> None:
        _check_target(op, e)
        b = e.b
        permitted = b.call(_permits_tiles(b.module), [], i8)
        e.fail_unless(
            b.compare("eq", permitted, b.integer(_PERMITTED, i8)),
            "RuntimeError",
            "the operating system refuses the tile registers of AMX to this process; "
            'build for a target without them, "features=-amx-int8,-amx-bf16"',
        )
        rest = e.scalar(op.rest)
        message = f"'{op.name}' expected at most {TILE_SIZE} groups"
        e.fail_unless(b.compare("ule", rest, b.integer(TILE_SIZE)), "IndexError", message)
        whole = b.compare("eq", rest, b.integer(0))
        groups = b.select(whole, b.integer(TILE_SIZE), rest)
        with e.entry():
            memory = b.stack(VectorType(i8, [_CONFIGURATION_BYTES]), _CONFIGURATION_BYTES)
        # Palette 1: eight registers of sixteen rows of 64 bytes.
        values = [0] * _CONFIGURATION_BYTES
        values[0] = 1
        for tile in range(LAST_COLUMNS + 1):
            values[_ROW_BYTES_AT + 2 * tile], values[_ROWS_AT + tile] = 4 * TILE_SIZE, TILE_SIZE
        b.store(b.constant(dense_integers(values, i8), VectorType(i8, [_CONFIGURATION_BYTES])), memory, 1)
        row_bytes = b.make(llvm.TruncOp, (b.mul(groups, b.integer(4)),), i16)
        b.store(row_bytes, _at(b, memory, _ROW_BYTES_AT + 2 * LAST_ROWS), 1)
        b.store(b.make(llvm.TruncOp, (groups,), i8), _at(b, memory, _ROWS_AT + LAST_COLUMNS), 1)
        _instruction(b, "ldtilecfg", [memory])


class LowerReleaseTiles(RewritePattern):
    """So that the operating system need not save them."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReleaseTilesOp, e: Emitter) -> None:
        _check_target(op, e)
        _instruction(e.b, "tilerelease", [])


class LowerZeroTile(RewritePattern):
    """Makes accumulators zero."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ZeroTileOp, e: Emitter) -> None:
        _check_target(op, e)
        _instruction(e.b, "tilezero", [e.b.integer(op.tile.value.data, i8)])


class LowerTileAccess(RewritePattern):
    """Reads or writes rows of a register that are as far apart as rows of the buffer."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: LoadTileOp | StoreTileOp, e: Emitter) -> None:
        _check_target(op, e)
        b, buffer = e.b, e.buffers[op.buffer]
        offset = element_offset(e, buffer, [e.scalar(index) for index in op.indices])
        assert isinstance(offset, SSAValue)  # of scalars
        address, pitch = address_at(e, buffer, offset), b.mul(e.layout(buffer)[1][-2], b.integer(4))
        if isinstance(op, StoreTileOp):
            b.note_write(address)
        name = "tileloadd64" if isinstance(op, LoadTileOp) else "tilestored64"
        _instruction(b, name, [b.integer(op.tile.value.data, i8), address, pitch])


class LowerDotTiles(RewritePattern):
    """Sixteen times sixteen dot products."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DotTilesOp, e: Emitter) -> None:
        extension = "amx-bf16" if op.is_float else "amx-int8"
        if extension not in e.context.options.extensions:
            fail(op, f"needs a target with {extension}", "compile for sapphirerapids or newer")
        suffix = "f16ps" if op.is_float else f"{_DOTS[op.lhs_dtype == i8, op.rhs_dtype == i8]}d"
        tiles = [e.b.integer(each.value.data, i8) for each in (op.acc, op.lhs, op.rhs)]
        _instruction(e.b, f"tdpb{suffix}", tiles)


def _instruction(b: LLVMBuilder, name: str, operands: Sequence[SSAValue]) -> None:
    b.insert(llvm.CallIntrinsicOp(f"llvm.x86.{name}", [*operands], []))


def _check_target(op: Operation, e: Emitter) -> None:
    if not _EXTENSIONS & e.context.options.extensions:
        fail(op, "needs a target with the tile registers of AMX", "compile for sapphirerapids or newer")


def _at(b: LLVMBuilder, memory: SSAValue, byte: int) -> SSAValue:
    return b.element(memory, b.integer(byte), i8)


def _permits_tiles(module: ModuleBuilder) -> str:
    """The name of `i8 permits_tiles()`, which is added to the module once: whether the process may use them."""
    if _PERMITS in module.defined:
        return _PERMITS
    b = LLVMBuilder(module, [])
    flag = b.make(llvm.AddressOfOp, (), POINTER, {"global_name": module.flag(f"{_PERMITS}.known")})
    ask, done = b.new_block(), b.new_block()
    known = b.load(flag, i8, 1)
    b.branch_if(b.compare("eq", known, b.integer(_UNKNOWN, i8)), ask, done)
    b.start(done)
    b.insert(llvm.ReturnOp(known))
    b.start(ask)
    module.declare("syscall", [i64, i64, i64], i64)
    arguments = [b.integer(number) for number in (_ARCH_PRCTL, _REQUEST_STATE, _TILE_DATA)]
    answer = b.call("syscall", arguments, i64)
    found = b.select(b.compare("eq", answer, b.integer(0)), b.integer(_PERMITTED, i8), b.integer(_REFUSED, i8))
    b.store(found, flag, 1)
    b.insert(llvm.ReturnOp(found))
    module.define(_PERMITS, [], i8, b.finish(), internal=True, properties={})
    return _PERMITS
