"""The lists of ops have the order of xDSL's `walk`."""

from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from lowering.parsing import parse_module
from tir_dialect.fast_ops import ops_in, walked

PROGRAM = """
relax.func @main(%x: !relax.tensor<[4], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<[4], f32> {
  %y = relax.if %c {
    %0 = relax.exp %x
    relax.yield %0
  } else {
    %1 = relax.add %x, %x
    relax.yield %1
  }
  relax.return %y
}
tir.prim_func @double[%n](%X: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "double" (%v = spatial %i in %n) {
      %x = tir.load %X[%v]
      %y = arith.addf %x, %x : f32
      tir.store %y, %X[%v]
    }
  }
}
"""


def test_the_order_of_walk() -> None:
    module = parse_module(PROGRAM)
    assert walked(module) == list(module.walk())
    assert len(walked(module)) > 10
    for op in module.walk():
        assert walked(op) == list(op.walk())
        for region in op.regions:
            assert ops_in(region) == list(region.walk())
        assert ops_in(*op.regions) == list(op.walk())[1:]


def test_blocks_in_order() -> None:
    inner = [test.TestOp() for _ in range(5)]
    outer = test.TestOp(regions=[Region([Block(inner[:2]), Block(inner[2:4])]), Region(), Region(Block(inner[4:]))])
    module = ModuleOp([outer, test.TestOp()])
    assert walked(module) == list(module.walk())
    assert ops_in(*outer.regions) == inner
