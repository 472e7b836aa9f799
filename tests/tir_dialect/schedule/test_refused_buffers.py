"""What primitives refuse that copy buffers or change them: one program each, and what the error says."""

from __future__ import annotations

import pytest

from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.texts import GET, SET, block, lines, loop, nest
from tir_dialect.schedule import Schedule

VECTOR = "%v = tir.load %T[%c0] : vector<4xi32> "
OF_A_VECTOR = "buffer \"T\" is used by 'tir.load' of a vector, expected loads and stores of single elements"
TILES = "(i) -> (i // 4, i % 4)"
SOME = "%x = tir.load %X[%vi] %on = tir.load %M[%vi] tir.if %on { tir.store %x, %T[%vi] }"
TWICE = "%y = tir.load %Y[%vi] %s = arith.addi %y, %y : i32 tir.store %s, %Y[%vi]"
HALVES = (
    "%c2 = arith.constant 2 : index %h = arith.floordivsi %vj, %c2 : index %x = tir.load %X[%h] tir.store %x, %T[%vj]"
)


def in_a_block(body: str) -> str:
    """A block whose extent is an iterator of the block around it."""
    inner = f'tir.for (%j) in (%vi) {{ tir.block "I" (%vj = spatial %j in %vi) {{ {body} }} }}'
    return loop(f'tir.block "O" (%vi = spatial %i in %n) {{ {inner} }}')


OF_A_BLOCK = 'the extent of iterator "vj" of block "I" depends on a block around, expected an expression of sizes'


@pytest.mark.parametrize(
    ("body", "primitive", "arguments", "message"),
    [
        (
            loop(block("T", SOME, "%i %n")) + loop(GET, "j"),
            "cache_write",
            ("T", 0, "local", ["Y"]),
            'block "Y" reads elements of buffer "T" that the cache may not have',
        ),
        (in_a_block(HALVES), "cache_index", ("I", "global"), OF_A_BLOCK),
        (in_a_block(HALVES), "transform_block_layout", ("I", TILES), OF_A_BLOCK),
        (in_a_block(HALVES), "reindex", ("I", ("write", 0)), OF_A_BLOCK),
        (
            loop(SET),
            "reindex_cache_read",
            ("T", 0, "local", "(i, j) -> (i)"),
            "expected an index map of 1 iterators, got (i, j) -> (i)",
        ),
        (loop(SET) + VECTOR, "unsafe_set_dtype", ("T", 0, "i64"), OF_A_VECTOR),
        (loop(SET) + VECTOR, "transform_layout", ("T", ("write", 0), TILES), OF_A_VECTOR),
        (
            loop(block("Y", TWICE, "%i %n")),
            "transform_layout",
            ("Y", ("write", 0), TILES, 0),
            'buffer "Y" is a parameter that is read and written, so it cannot be filled',
        ),
        (
            loop(SET),
            "transform_layout",
            ("T", ("write", 0), TILES, "i, j"),
            'expected an index map such as "(i, j) -> (j, i)", got "i, j"',
        ),
    ],
)
def test_buffers(body: str, primitive: str, arguments: tuple[object, ...], message: str):
    refuses(lines(body), message, primitive, *arguments)


def test_storage_align_refuses_views():
    copy = block("P", "%a = tir.load %A[%vi, %vj] tir.store %a, %U[%vi, %vj]", "%i %n", "%j %m")
    view = "%V = tir.match_buffer %U[%c0, %c0 to %m] : !tir.buffer<[m], i32>"
    read = block("Q", "%t = tir.load %V[%vj] tir.store %t, %T[%vj]", "%j %m")
    body = f"tir.for (%i, %j) in (%n, %m) {{ {copy} }} {view} tir.for (%j) in (%m) {{ {read} }}"
    sch = nest(f"%U = tir.alloc_buffer : !tir.buffer<[n, m], i32> {body}")
    refuses(sch, 'buffer "U" has views, align it before they are made', "storage_align", "P", 0, 0, 8)


def padded(condition: str, at: str = "%vi", beside: str = "") -> Schedule:
    """Copies elements on a condition, and stores 0 else."""
    choice = "%y = tir.if %on -> (i32) { %x = tir.load %X[%vi] tir.yield %x } else { tir.yield %zero }"
    return lines(loop(block("T", f"{condition} {choice} tir.store %y, %T[{at}]", "%i %n") + beside))


INSIDE = "%on = arith.cmpi sge, %vi, %c1 : index"
MIRRORED = f"{INSIDE} %top = arith.subi %n, %c1 : index %at = arith.subi %top, %vi : index"


@pytest.mark.parametrize(
    ("sch", "message"),
    [
        (padded(MIRRORED, "%at"), 'block "T" stores at other indices than its iterators, each once'),
        (padded("%on = tir.load %M[%vi]"), 'block "T" has a condition that is no comparison of indices'),
        (padded(INSIDE, beside="tir.store %zero, %T[%c0]"), "'tir.store' writes buffer \"T\", too"),
    ],
)
def test_decompose_padding_refuses(sch: Schedule, message: str):
    refuses(sch, message, "decompose_padding", "T", sch.get_loops("T")[0])
    assert not sch.can_decompose_padding("T", sch.get_loops("T")[0])
