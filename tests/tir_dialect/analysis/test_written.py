"""Which buffers a function may write: by a store, through a view, in a call, by an address."""

from tests.support.tir import parse_prim_func
from tir_dialect.analysis.structure import is_written, written_buffers

FUNC = """
tir.prim_func @f(%read: !tir.buffer<[8], f32>, %stored: !tir.buffer<[8], f32>, %seen: !tir.buffer<[8], f32>,
                 %viewed: !tir.buffer<[8], f32>, %passed: !tir.buffer<[8], f32>, %addressed: !tir.buffer<[8], f32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %x = tir.load %read[%c0]
  tir.store %x, %stored[%c0]
  %part = tir.match_buffer %seen[%c0 to %c4] : !tir.buffer<[4], f32>
  %y = tir.load %part[%c0]
  %other = tir.match_buffer %viewed[%c0 to %c4] : !tir.buffer<[4], f32>
  %inner = tir.match_buffer %other[%c0 to %c4] : !tir.buffer<[4], f32>
  tir.store %y, %inner[%c0]
  tir.call_extern "g"(%passed)
  %p = tir.address_of %addressed[%c0]
}
"""


def test_stores_views_calls_and_addresses():
    func = parse_prim_func(FUNC)
    written = [param.name_hint for param in func.params if is_written(param)]
    assert written == ["stored", "viewed", "passed", "addressed"]
    assert set(func.params) & written_buffers(func) == {param for param in func.params if is_written(param)}
