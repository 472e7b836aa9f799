"""Closures give the same results before and after they are lifted, interpreted and compiled in both modes."""

import numpy as np
import pytest

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.pipelines import RelaxToVMPass
from lowering.verify import verify_module
from relax_dialect.ops.calls import CallClosureOp, MakeClosureOp
from relax_dialect.ops.structure import ClosureOp
from tests.support.programs import as_arguments, as_plain, check_pass, run_in_turn, run_pipeline, runner

TENSOR = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %z: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %0 = relax.subtract %x, %y
    %1 = relax.multiply %0, %z
    relax.return %1
  }
  %a = relax.call_closure %f(%z)
  %b = relax.call_closure %f(%a)
  relax.return %b
}
"""

SHAPE = """
relax.func @main[%n in [1, 64], %k](%x: !relax.tensor<[n, k], f32>, %z: !relax.tensor<[n * k], f32>)
    -> !relax.tuple<!relax.tensor<[n, k], f32>, !relax.prim<i64, k>> {
  %f = relax.closure [%m](%y: !relax.tensor<[m], f32>)
      -> !relax.tuple<!relax.tensor<[n, k], f32>, !relax.prim<i64, k>> {
    %s = relax.shape [n, k]
    %0 = relax.reshape %y, %s
    %1 = relax.tuple(%0, %k)
    relax.return %1
  }
  %a = relax.call_closure %f(%z)
  relax.return %a
}
"""

NESTED = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %g = relax.closure (%z: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      %0 = relax.subtract %x, %y
      %1 = relax.subtract %0, %z
      relax.return %1
    }
    %2 = relax.call_closure %g(%y)
    %3 = relax.multiply %2, %x
    relax.return %3
  }
  %h = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %4 = relax.call_closure %f(%y)
    %5 = relax.call_closure %f(%4)
    relax.return %5
  }
  %6 = relax.call_closure %h(%x)
  relax.return %6
}
"""

RECURSIVE = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %limit: !relax.tensor<[], i64>) -> !relax.tensor<[n], f32> {
  %start = relax.constant dense<0> : tensor<i64>
  %one = relax.constant dense<1> : tensor<i64>
  %f = relax.closure rec %self (%y: !relax.tensor<[n], f32>, %i: !relax.tensor<[], i64>) -> !relax.tensor<[n], f32> {
    %c = relax.less %i, %limit
    %r = relax.if %c {
      %0 = relax.add %y, %x
      %1 = relax.add %i, %one
      %2 = relax.call_closure %self(%0, %1)
      relax.yield %2
    } else {
      relax.yield %y
    }
    relax.return %r
  }
  %2 = relax.call_closure %f(%x, %start)
  relax.return %2
}
"""

# The inner closure calls the outer one; each call doubles what the outer one binds, so n and m differ inside.
RECURSIVE_NESTED = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %limit: !relax.tensor<[], i64>) -> !relax.tensor<[_], f32> {
  %start = relax.constant dense<0> : tensor<i64>
  %one = relax.constant dense<1> : tensor<i64>
  %f = relax.closure rec %self [%m](%y: !relax.tensor<[m], f32>, %i: !relax.tensor<[], i64>)
      -> !relax.tensor<[_], f32> {
    %g = relax.closure () -> !relax.tensor<[_], f32> {
      %0 = relax.concat %y, %y axis = 0
      %1 = relax.add %i, %one
      %2 = relax.call_closure %self(%0, %1)
      relax.return %2
    }
    %c = relax.less %i, %limit
    %r = relax.if %c {
      %3 = relax.call_closure %g()
      relax.yield %3
    } else {
      %s = relax.shape [n, floordiv(m, n)]
      %t = relax.reshape %y, %s
      %u = relax.sum %t axes = [1]
      %v = relax.match_cast %u : !relax.tensor<[_], f32>
      relax.yield %v
    }
    relax.return %r
  }
  %4 = relax.call_closure %f(%x, %start)
  relax.return %4
}
"""

# The function value of itself is needed: it is passed on, and called in a dataflow region, which must not recurse.
RECURSIVE_VALUE = """
relax.func private @apply(%f: !relax.func<(!relax.tensor<[], i64>) -> !relax.tensor<[], i64>, pure>,
    %i: !relax.tensor<[], i64>) -> !relax.tensor<[], i64> {
  %0 = relax.call_closure %f(%i)
  relax.return %0
}
relax.func @main(%x: !relax.tensor<[], i64>, %limit: !relax.tensor<[], i64>) -> !relax.tensor<[], i64> {
  %f = relax.closure rec %self (%i: !relax.tensor<[], i64>) -> !relax.tensor<[], i64> {
    %c = relax.less %i, %limit
    %r = relax.if %c {
      %0 = relax.dataflow {
        %1 = relax.add %i, %x
        %2 = relax.call_closure %self(%1)
        relax.output %2
      }
      %3 = relax.call @apply(%self, %0) : !relax.tensor<[], i64>
      relax.yield %3
    } else {
      relax.yield %i
    }
    relax.return %r
  }
  %4 = relax.call @apply(%f, %x) : !relax.tensor<[], i64>
  relax.return %4
}
"""

ARGUMENT = """
relax.func private @apply[%m](%f: !relax.func<(!relax.tensor<[m], f32>) -> !relax.tensor<[m], f32>, pure>,
    %x: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
  %0 = relax.call_closure %f(%x)
  relax.return %0
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %e = relax.exp %x
  %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %0 = relax.subtract %e, %y
    relax.return %0
  }
  %1 = relax.call @apply(%f, %x) : !relax.tensor<[n], f32>
  relax.return %1
}
"""

RETURNED = """
relax.func private @maker[%m](%x: !relax.tensor<[m], f32>)
    -> !relax.func<(!relax.tensor<[m], f32>) -> !relax.tensor<[m], f32>, pure> {
  %e = relax.exp %x
  %f = relax.closure (%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
    %0 = relax.subtract %e, %y
    relax.return %0
  }
  relax.return %f
}
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %f = relax.call @maker(%x)
    : !relax.func<(!relax.tensor<[n], f32>) -> !relax.tensor<[n], f32>, pure>
  %1 = relax.call_closure %f(%x)
  relax.return %1
}
"""

DATAFLOW = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %r = relax.dataflow {
    %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      %0 = relax.add %x, %y
      relax.return %0
    }
    %1 = relax.call_closure %f(%x)
    relax.output %1
  }
  relax.return %r
}
"""

REGION_SYMBOL = """
relax.func @main(%x: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
  %r = relax.dataflow {
    %u = relax.unique %x
    %v, %m = relax.match_cast %u : !relax.tensor<[m], f32> binds [m]
    %f = relax.closure (%i: !relax.tensor<[m], f32>) -> !relax.tensor<[2 * m], f32> {
      %5 = relax.concat %i, %i axis = 0
      relax.return %5
    }
    %2 = relax.call_closure %f(%v)
    %3 = relax.match_cast %2 : !relax.tensor<[_], f32>
    relax.output %3
  }
  relax.return %r
}
"""

NUMBERS = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %c: !relax.prim<f32>, %b: !relax.prim<i1>) -> !relax.object {
  %t = relax.tuple(%x, %c)
  %r = relax.if %b {
    %f = relax.closure (%i: !relax.tensor<[n], f32>) -> !relax.object {
      %5 = relax.tuple(%t, %c, %b, %i)
      relax.return %5
    }
    %h = relax.match_cast %f : !relax.object
    relax.yield %h
  } else {
    %g = relax.closure (%i: !relax.tensor<[n], f32>) -> !relax.object {
      %5 = relax.add %i, %x
      relax.return %5
    }
    %k = relax.match_cast %g : !relax.object
    relax.yield %k
  }
  %q = relax.match_cast %r : !relax.func<(!relax.tensor<[n], f32>) -> !relax.object, pure>
  %z = relax.call_closure %q(%x)
  relax.return %z
}
"""


def f32(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


CASES: dict[str, tuple[str, tuple[object, ...]]] = {
    "tensor": (TENSOR, (f32(5), f32(5))),
    "shape": (SHAPE, (f32(2, 3), f32(6))),
    "nested": (NESTED, (f32(4),)),
    "recursive": (RECURSIVE, (f32(4), np.array(5))),
    "recursive and deep": (RECURSIVE, (f32(4), np.array(3000))),
    "recursive and nested": (RECURSIVE_NESTED, (f32(3), np.array(2))),
    "recursive as a value": (RECURSIVE_VALUE, (np.array(1), np.array(4))),
    "argument": (ARGUMENT, (f32(4),)),
    "returned": (RETURNED, (f32(4),)),
    "dataflow": (DATAFLOW, (f32(4),)),
    "symbol of a region": (REGION_SYMBOL, (np.array([1, 2, 1], np.float32),)),
    "numbers and tuples": (NUMBERS, (f32(3), 2.5, True)),
    "the other branch": (NUMBERS, (f32(3), 2.5, False)),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("program", "args"), CASES.values(), ids=CASES)
def test_results_stay_the_same(program: str, args: tuple[object, ...]) -> None:
    module = check_pass(program, "lambda-lift", [args])
    assert not any(isinstance(op, ClosureOp) for op in module.walk())
    run_in_turn(program, "main", args)


@pytest.mark.parametrize("program", [TENSOR, SHAPE, NESTED, RECURSIVE])
def test_known_closures_are_called_without_a_function_value(program: str) -> None:
    module = parse_module(program)
    run_pipeline(module, "lambda-lift")
    assert not any(isinstance(op, MakeClosureOp | CallClosureOp) for op in module.walk())


@pytest.mark.parametrize(("program", "args"), CASES.values(), ids=CASES)
def test_function_values_fit_their_functions_when_signatures_are_lowered(
    program: str, args: tuple[object, ...]
) -> None:
    module = parse_module(program)
    for each in RelaxToVMPass.passes():
        each.apply(make_context(), module)
        if each.name in ("lower-shapes", "convert-relax-to-vm"):
            verify_module(module)


ESCAPING = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %e = relax.exp %x
  %f = relax.closure (%y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %0 = relax.subtract %e, %y
    relax.return %0
  }
  relax.return %f
}
"""


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_a_returned_closure_keeps_what_it_captured_and_checks_its_arguments(mode: str) -> None:
    closure = runner(parse_module(ESCAPING), "main", mode)(f32(4))
    assert callable(closure)
    result = as_plain(closure(*as_arguments([f32(4)])))
    np.testing.assert_allclose(np.asarray(result), np.exp(f32(4)) - f32(4), rtol=1e-6)
    with pytest.raises(ValueError, match="dimension 0"):
        closure(*as_arguments([f32(3)]))
