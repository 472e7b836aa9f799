"""Signatures of private functions change with all their calls: tuples, unused parameters, unread results."""

import numpy as np
import pytest

from relax_dialect.ops.structure import FuncOp
from tests.support.programs import check_pass

X = np.arange(3, dtype=np.float32)
Y = X * 10

NESTED = """
relax.func private @f[%n](
  %t: !relax.tuple<!relax.tensor<[n], f32>, !relax.tuple<!relax.tensor<[n], f32>, !relax.tuple<>>>, %c: !relax.prim<i1>
) -> !relax.tensor<[n], f32> {
  %a = relax.tuple_get %t[0]
  %u = relax.tuple_get %t[1]
  %b = relax.tuple_get %u[0]
  %r = relax.if %c {
    %s = relax.subtract %a, %b
    relax.yield %s
  } else {
    %v = relax.tuple(%b, %u)
    %yes = relax.prim i1 true
    %s = relax.call @f(%v, %yes) : !relax.tensor<[n], f32>
    relax.yield %s
  }
  relax.return %r
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>, %c: !relax.prim<i1>)
    -> !relax.tensor<[n], f32> {
  %e = relax.tuple()
  %u = relax.tuple(%y, %e)
  %t = relax.tuple(%x, %u)
  %0 = relax.call @f(%t, %c) : !relax.tensor<[n], f32>
  relax.return %0
}
"""

FROM_OUTSIDE = """
relax.func private @f(%t: !relax.tuple<!relax.object, !relax.tuple<!relax.object>>) -> !relax.object {
  relax.return %t
}
relax.func @main(%t: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
  %0 = relax.call @f(%t) : !relax.object
  relax.return %0
}
"""

HANDED_ON = """
relax.func private @f[%n, %k](%k0: !relax.tensor<[], i64>, %x: !relax.tensor<[n], f32>, %w: !relax.tensor<[k], f32>)
    -> !relax.tensor<[n], f32> {
  %zero = relax.constant dense<0> : tensor<i64>
  %one = relax.constant dense<1> : tensor<i64>
  %done = relax.equal %k0, %zero
  %r = relax.if %done {
    relax.yield %x
  } else {
    %less = relax.subtract %k0, %one
    %more = relax.add %x, %x
    %s = relax.call @f(%less, %more, %w) : !relax.tensor<[n], f32>
    relax.yield %s
  }
  relax.return %r
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[_], f32>) -> !relax.tensor<[n], f32> {
  %k = relax.constant dense<2> : tensor<i64>
  %0 = relax.call @f(%k, %x, %w) : !relax.tensor<[n], f32>
  relax.return %0
}
"""

TELLS_A_SYMBOL = """
relax.func private @f[%n, %k](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[k], f32>, %v: !relax.tensor<[k], f32>)
    -> !relax.tensor<[k], f32> {
  %0 = relax.shape [k]
  %1 = relax.ones %0 dtype = f32
  relax.return %1
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[3], f32>) -> !relax.tensor<[3], f32> {
  %u = relax.match_cast %w : !relax.tensor<[_], f32>
  %0 = relax.call @f(%x, %w, %u) : !relax.tensor<[3], f32>
  relax.return %0
}
"""

UNREAD = """
relax.func private @inner(%x: !relax.tensor<[3], f32>)
    -> !relax.tuple<!relax.tensor<[3], f32>, !relax.tensor<[3], f32>, !relax.tensor<[3], f32>> {
  %0 = relax.exp %x
  %1 = relax.sin %x
  %2 = relax.tuple(%x, %0, %1)
  relax.return %2
}
relax.func private @outer(%x: !relax.tensor<[3], f32>)
    -> !relax.tuple<!relax.tensor<[3], f32>, !relax.tensor<[3], f32>, !relax.tensor<[3], f32>> {
  %0 = relax.call @inner(%x) : !relax.tuple<!relax.tensor<[3], f32>, !relax.tensor<[3], f32>, !relax.tensor<[3], f32>>
  relax.return %0
}
relax.func @main(%x: !relax.tensor<[3], f32>, %y: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.call @outer(%x) : !relax.tuple<!relax.tensor<[3], f32>, !relax.tensor<[3], f32>, !relax.tensor<[3], f32>>
  %1 = relax.tuple_get %0[2]
  %2 = relax.call @inner(%y) : !relax.tuple<!relax.tensor<[3], f32>, !relax.tensor<[3], f32>, !relax.tensor<[3], f32>>
  %3 = relax.tuple_get %2[0]
  %4 = relax.tuple(%1, %3)
  relax.return %4
}
"""

AS_A_VALUE = """
relax.func private @f[%n](
  %w: !relax.tensor<[n], f32>, %t: !relax.tuple<!relax.object, !relax.object>, %u: !relax.object
) -> !relax.tuple<!relax.object, !relax.object> {
  %0 = relax.tuple(%t, %t)
  relax.return %0
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %t = relax.tuple(%x, %x)
  %0 = relax.call @f(%x, %t, %x) : !relax.tuple<!relax.object, !relax.object>
  %1 = relax.tuple_get %0[0]
  %2 = relax.make_closure @f(%x, %t) : !relax.func<(!relax.object) -> !relax.tuple<!relax.object, !relax.object>, pure>
  %3 = relax.call_closure %2(%x)
  %4 = relax.tuple(%1, %3)
  relax.return %4
}
"""
"""What the value captures may change, not what it is called with."""


@pytest.mark.parametrize(
    ("program", "name", "args", "signatures"),
    [
        (NESTED, "expand-tuple-arguments", [X, Y, False], {"f": 3}),
        (FROM_OUTSIDE, "expand-tuple-arguments", [(X, (Y,))], {"f": 2}),
        (HANDED_ON, "remove-unused-parameters", [X, Y], {"f": 2}),
        (TELLS_A_SYMBOL, "remove-unused-parameters", [X, Y], {"f": 1}),
        (UNREAD, "remove-unused-outputs", [X, Y], {"inner": 1, "outer": 1}),
        (AS_A_VALUE, "expand-tuple-arguments", [X], {"f": 4}),
        (AS_A_VALUE, "remove-unused-parameters", [X], {"f": 2}),
        (AS_A_VALUE, "remove-unused-outputs", [X], {"f": 3}),
    ],
)
def test_results_stay(program: str, name: str, args: list[object], signatures: dict[str, int]):
    module = check_pass(program, name, [args])
    functions = {op.sym_name.data: op.function_type for op in module.ops if isinstance(op, FuncOp)}
    assert {name: len(functions[name].params) for name in signatures} == signatures
