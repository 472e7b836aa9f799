"""Regions that blocks read and write."""

import pytest

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.regions import block_regions
from tir_dialect.ops.blocks import BlockOp

PRELUDE = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
"""


def regions(params, body, name="b"):
    """Reads and writes of a block as text, each iterator called by its own name."""
    func = parse_prim_func(f"tir.prim_func @f[%n, %m]({', '.join(params)}) {{ {PRELUDE} {body} }}")
    block = next(op for op in func.walk() if isinstance(op, BlockOp) and op.block_name.data == name)
    found = block_regions(block)
    names = {str(dim): value.name_hint for value, dim in found.iterators.items()}

    def text(region):
        result = str(region)
        for symbol, hint in names.items():
            result = result.replace(symbol, hint)
        return result

    return [text(region) for region in found.reads], [text(region) for region in found.writes]


X, Y = "%X: !tir.buffer<[n, m], f32>", "%Y: !tir.buffer<[n, m], f32>"


def block(body, header='"b" (%vi = spatial %i in %n, %vj = spatial %j in %m)'):
    return f"tir.for (%i, %j) in (%n, %m) {{ tir.block {header} {{ {body} }} }}"


def test_points():
    body = block("%x = tir.load %X[%vi, %vj] tir.store %x, %Y[%vi, %vj]")
    assert regions([X, Y], body) == (["%X[vi, vj]"], ["%Y[vi, vj]"])


def test_inner_loops_widen():
    body = block(
        """
    tir.for (%r) in (%c3) {
      %k = arith.addi %vi, %r : index
      %x = tir.load %X[%k, %vj]
    }
    tir.store %zero, %Y[%vi, %vj]"""
    )
    reads, _ = regions(["%X: !tir.buffer<[n + 2, m], f32>", Y], body)
    assert reads == ["%X[vi to vi + 3, vj]"]


def test_several_accesses_are_joined():
    body = block(
        """
    %k = arith.addi %vi, %c1 : index
    %x = tir.load %X[%k, %vj]
    %y = tir.load %X[%vi, %vj]
    tir.store %x, %Y[%vi, %vj]"""
    )
    assert regions(["%X: !tir.buffer<[n + 1, m], f32>", Y], body)[0] == ["%X[vi to vi + 2, vj]"]


def test_a_reduction_with_init_does_not_read_its_output():
    body = block(
        """
    tir.init { tir.store %zero, %S[%vi] }
    %x = tir.load %X[%vi, %vj]
    %s = tir.load %S[%vi]
    %t = arith.addf %s, %x : f32
    tir.store %t, %S[%vi]""",
        '"b" (%vi = spatial %i in %n, %vj = reduce %j in %m)',
    )
    params = [X, "%S: !tir.buffer<[n], f32>"]
    assert regions(params, body) == (["%X[vi, vj]"], ["%S[vi]"])
    without = body.replace("tir.init { tir.store %zero, %S[%vi] }", "")
    assert regions(params, without) == (["%X[vi, vj]", "%S[vi]"], ["%S[vi]"])


TILES = """
tir.for (%i) in (%n) {
  tir.block "b" (%vi = spatial %i in %n) {
    %base = arith.muli %vi, %c4 : index
    %e = tir.dim 4 * n
    tir.for (%j) in (%c4) {
      %k = arith.addi %base, %j : index
      tir.block "inner" (%vk = spatial %k in %e) {
        %x = tir.load %X[%vk]
        tir.store %x, %Y[%vk]
      }
    }
  }
}
"""


def test_nested_blocks_count_by_their_bindings():
    params = ["%X: !tir.buffer<[4 * n], f32>", "%Y: !tir.buffer<[4 * n], f32>"]
    assert regions(params, TILES) == (["%X[4 * vi to 4 * vi + 4]"], ["%Y[4 * vi to 4 * vi + 4]"])
    assert regions(params, TILES, "inner") == (["%X[vk]"], ["%Y[vk]"])


def test_quotients_and_remainders():
    body = """
    %e = tir.dim 8 * n
    tir.for (%f) in (%e) {
      tir.block "b" (%v = spatial %f in %e) {
        %c8 = arith.constant 8 : index
        %a = arith.floordivsi %v, %c8 : index
        %b = arith.remsi %v, %c8 : index
        %x = tir.load %X[%a, %b]
        tir.store %x, %Y[%v]
      }
    }
    """
    params = ["%X: !tir.buffer<[n, 8], f32>", "%Y: !tir.buffer<[8 * n], f32>"]
    assert regions(params, body) == (["%X[floordiv(v, 8), mod(v, 8)]"], ["%Y[v]"])


def test_indices_from_memory_stand_for_the_whole_dimension():
    body = block(
        """
    %q = tir.load %I[%vi]
    %k = arith.index_cast %q : i64 to index
    %x = tir.load %X[%k, %vj]
    tir.store %x, %Y[%vi, %vj]"""
    )
    assert regions(["%I: !tir.buffer<[n], i64>", X, Y], body)[0] == ["%I[vi]", "%X[0 to n, vj]"]


def test_views_are_looked_through():
    body = block(
        """
    %R = tir.match_buffer %X[%vi, %c1 to %c4] : !tir.buffer<[3], f32>
    tir.for (%k) in (%c3) {
      %x = tir.load %R[%k]
    }
    tir.store %zero, %Y[%vi, %vj]"""
    )
    assert regions(["%X: !tir.buffer<[n, 8], f32>", Y], body)[0] == ["%X[vi, 1 to 4]"]


def test_own_buffers_do_not_count():
    body = block(
        """
    %T = tir.alloc_buffer : !tir.buffer<[4], f32>
    tir.store %zero, %T[%c0]
    %x = tir.load %T[%c0]
    tir.store %x, %Y[%vi, %vj]"""
    )
    assert regions([Y], body) == ([], ["%Y[vi, vj]"])


def test_calls_touch_everything():
    body = block('tir.call_packed "f"(%X)')
    assert regions([X], body) == (["%X[0 to n, 0 to m]"], ["%X[0 to n, 0 to m]"])


def test_vectors():
    body = """
    %tiles = tir.dim n
    %step = arith.constant 8 : index
    tir.for (%i) in (%n) {
      tir.block "b" (%vi = spatial %i in %n) {
        %k = arith.muli %vi, %step : index
        %x = tir.load %X[%k] : vector<8xf32>
        tir.store %x, %Y[%k]
      }
    }
    """
    params = ["%X: !tir.buffer<[8 * n], f32>", "%Y: !tir.buffer<[8 * n], f32>"]
    assert regions(params, body) == (["%X[8 * vi to 8 * vi + 8]"], ["%Y[8 * vi to 8 * vi + 8]"])


def test_declared_regions_come_first():
    body = block(
        """
    tir.reads %X[%vi, %c0 to %m]
    tir.writes %Y[%vi, %vj]
    tir.call_packed "f"(%X, %Y)"""
    )
    assert regions([X, Y], body) == (["%X[vi, 0 to m]"], ["%Y[vi, vj]"])


@pytest.mark.parametrize("bound", ["%vi", "%c3 to %vi"])
def test_bounds_that_depend_on_iterators(bound):
    body = block(
        f"""
    tir.for (%r) in ({bound}) {{
      %x = tir.load %X[%r, %vj]
    }}
    tir.store %zero, %Y[%vi, %vj]"""
    )
    lower = 3 if "to" in bound else 0
    assert regions([X, Y], body)[0] == [f"%X[{lower} to vi, vj]"]
