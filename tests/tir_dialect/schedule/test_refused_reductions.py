"""What primitives refuse of reductions: one program each, and what the error says."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.test_loops import refuses
from tests.tir_dialect.schedule.texts import LINES, UPDATE, block, lines, loop, sums
from tir_dialect.schedule import Schedule

PLACE = "%k = tir.load %K[%c0] %e = arith.index_cast %k : i64 to index "
"""An index from memory."""

UNKNOWN = 'the binding of iterator "vk" of block "T" is no expression of loop variables'


def updates(before: str, iterators: str, body: str) -> str:
    """A reduction over `%r` without init, with more iterators."""
    inner = f'tir.block "T" (%vr = reduce %r in %n, {iterators}) {{ {body} }}'
    return loop(f"tir.for (%r) in (%n) {{ {before} {inner} }}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PLACE + updates("", "%vi = spatial %i in %n, %vk = reduce %e in %n", UPDATE), UNKNOWN),
        (updates(PLACE.replace("%c0", "%r"), "%vi = spatial %i in %n, %vk = reduce %e in %n", UPDATE), UNKNOWN),
        (
            updates("", "%vi = spatial %c0 in %c1", PLACE + UPDATE.replace("%T[%vi]", "%T[%e]")),
            "an index in block \"T\" comes from 'tir.load', expected iterators and sizes only",
        ),
    ],
)
def test_rfactor_refuses_what_comes_from_memory(body: str, message: str):
    sch = lines(body)
    refuses(sch, message, "rfactor", sch.get_loops("T")[1], 0)


def test_rfactor_refuses_loops_with_several_blocks():
    one, other = (block(name, "tir.store %zero, %Y[%vi]", "%i %n") for name in "PQ")
    sch = lines(loop(one + other))
    refuses(sch, 'expected one block in loop "i", got 2', "rfactor", sch.get_loops("P")[0], 0)


def test_decompose_reduction_refuses_other_writers():
    before = block("U", "tir.store %zero, %T[%vi]", "%i %n")
    sch = lines(sums(before=before))
    refuses(sch, 'block "U" writes buffer "T", too', "decompose_reduction", "T", sch.get_loops("T")[0])


def test_decompose_reduction_refuses_conditions_on_spatial_and_reduce_iterators_together():
    where = "%ir = arith.addi %i, %r : index %on = arith.cmpi slt, %ir, %n : index"
    sch = lines(sums(where="where %on").replace("tir.block", f"{where} tir.block"))
    refuses(sch, 'the loops may leave out the init of block "T"', "decompose_reduction", "T", sch.get_loops("T")[0])


def test_cache_write_refuses_readers_in_the_loops_of_the_reduction():
    inner = sums().removeprefix("tir.for (%i) in (%n) {").replace("(%r)", "(%i)").rsplit("}", 1)[0]
    reader = loop(block("Y", "%t = tir.load %T[%vj] tir.store %t, %Y[%vj]", "%j %n"), "j")
    sch = lines(loop(inner + reader, "r"))
    message = 'others read buffer "T" in the loops over which block "T" reduces'
    refuses(sch, message, "cache_write", "T", 0, "local")


ADD = "%t = tir.load %T[%vj] %x = tir.load %X[%vj] %s = arith.addi %t, %x : i32 tir.store %s, %Y[%vj]"
EPILOGUE = block("Y", ADD, "%j %n")


@pytest.mark.parametrize(
    ("dtype", "epilogue", "message"),
    [
        ("ui32", loop(EPILOGUE, "j"), 'expected block "Y" to store i32, got ui32'),
        (
            "i32",
            f"tir.for (%j) in (%c1 to %n) {{ {EPILOGUE} }}",
            'the loops do not reach all values of the iterators of block "Y"',
        ),
    ],
)
def test_fuse_reduction_epilogue_refuses(dtype: str, epilogue: str, message: str):
    program = LINES.replace("%Y: !tir.buffer<[n], i32>", f"%Y: !tir.buffer<[n], {dtype}>")
    sch = Schedule(parse_prim_func(program.format(body=sums() + epilogue)))
    refuses(sch, message, "fuse_reduction_epilogue", "T", "Y")


def test_fuse_reduction_epilogue_refuses_several_operations():
    squares = UPDATE.replace(
        "%s = arith.addi %t, %x : i32", "%u = arith.addi %t, %x : i32 %s = arith.muli %u, %u : i32"
    )
    sch = lines(sums().replace(UPDATE, squares) + loop(EPILOGUE, "j"))
    message = 'block "T" does not combine the values of one result by one operation'
    refuses(sch, message, "fuse_reduction_epilogue", "T", "Y")


def test_pad_einsum_refuses_results_at_other_indices():
    place = "%top = arith.subi %n, %c1 : index %at = arith.subi %top, %vi : index "
    start = place.replace("%top", "%last").replace("%at", "%to") + "tir.store %zero, %T[%to]"
    update = place + UPDATE.replace("%T[%vi]", "%T[%at]")
    sch = lines(sums().replace(UPDATE, update).replace("tir.store %zero, %T[%vi]", start))
    refuses(sch, 'block "T" writes buffer "T" at other indices than iterators', "pad_einsum", "T", [4, 1])


def test_pad_einsum_refuses_statements_in_the_loops():
    sch = lines(sums(before="tir.store %zero, %Y[%i]"))
    refuses(sch, "the loops of block \"T\" hold 'tir.store'", "pad_einsum", "T", [4, 1])


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("%u = tir.load %X[%vi]", "tir.load"),
        ("tir.store %x, %Y[%vi]", "tir.store"),
        ("%on = tir.load %M[%c0] tir.if %on { tir.store %x, %Y[%vi] }", "tir.load"),
    ],
)
def test_pad_einsum_refuses_blocks_that_do_more(more: str, found: str):
    sch = lines(sums().replace(UPDATE, f"{UPDATE} {more}"))
    message = f"block \"T\" holds '{found}', expected a sum of products alone"
    refuses(sch, message if found == "tir.load" else 'block "T"', "pad_einsum", "T", [4, 4])
