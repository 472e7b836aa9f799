"""`infer-struct-info`: what a program computes and refuses stays; what rewrites leave behind is repaired."""

from pathlib import Path

import numpy as np
import pytest

from lowering.context import make_context
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.relax.infer_struct_info import InferStructInfoPass
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.unary import ExpOp
from tests.support.programs import check_pass, run_pipeline
from tests.support.struct_info import info

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.mlir"))


def result_type(text: str, entry: str = "main") -> str:
    """The result type of a function after the pass."""
    module = parse_module(text)
    run_pipeline(module, "infer-struct-info")
    func = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == entry)
    return str(func.function_type.ret)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_say_all_that_can_be_inferred(path: Path):
    module = parse_module(path.read_text())
    before = str(module)
    run_pipeline(module, "infer-struct-info")
    assert str(module) == before


GROWING = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<*, f32>, !relax.tensor<*, f32>> {
  %zero = relax.prim 0
  %three = relax.prim 3
  %r, %s = relax.for %i = %zero to %three (%a: !relax.tensor<*, f32> = %x, %b: !relax.tensor<*, f32> = %x) {
    %0 = relax.concat %a, %b
    %1 = relax.exp %b
    relax.yield %0, %1
  }
  %t = relax.tuple(%r, %s)
  relax.return %t
}
"""


def test_loops_keep_what_every_iteration_keeps():
    inputs = [[np.arange(size, dtype=np.float32)] for size in (0, 1, 3)]
    check_pass(GROWING, "infer-struct-info", inputs)
    assert result_type(GROWING) == "!relax.tuple<!relax.tensor<[_], f32>, !relax.tensor<[n], f32>>"


LOOP_SYMBOL = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %r = relax.for %i = %zero to %two [%m](%a: !relax.tensor<[m, _], _> = %x) {
    %0 = relax.concat %a, %x : !relax.tensor<[_, _], _>
    relax.yield %0
  }
  relax.return %r
}
"""


def test_symbols_of_a_loop_stay_in_it():
    check_pass(LOOP_SYMBOL, "infer-struct-info", [[np.ones((size, 4), np.float32)] for size in (0, 2)])
    assert result_type(LOOP_SYMBOL) == "!relax.tensor<[_, 4], f32>"


NESTED = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %r = relax.for %i = %zero to %two (%a: !relax.object = %x) {
    %s = relax.for %j = %zero to %two (%b: !relax.object = %a) {
      %t = relax.tuple(%b)
      relax.yield %t
    }
    %u = relax.match_cast %x : !relax.tensor<*, f32>
    relax.yield %u
  }
  relax.return %r
}
"""


def test_loops_in_loops():
    check_pass(NESTED, "infer-struct-info", [[np.ones(2, np.float32)]])
    assert result_type(NESTED) == "!relax.tensor<[n], f32>"


RECURSION = """
relax.func private @repeat[%n](%k: !relax.tensor<[], i64>, %x: !relax.tensor<[n], f32>) -> !relax.tensor<*, _> {
  %zero = relax.constant dense<0> : tensor<i64>
  %one = relax.constant dense<1> : tensor<i64>
  %c = relax.equal %k, %zero
  %r = relax.if %c {
    relax.yield %x
  } else {
    %less = relax.subtract %k, %one
    %half = relax.call @repeat(%less, %x) : !relax.tensor<*, _>
    %both = relax.add %half, %x : !relax.tensor<*, _>
    relax.yield %both
  } : !relax.tensor<*, _>
  relax.return %r
}
relax.func @main[%n](%k: !relax.tensor<[], i64>, %x: !relax.tensor<[n], f32>) -> !relax.tensor<*, _> {
  %r = relax.call @repeat(%k, %x) : !relax.tensor<*, _>
  relax.return %r
}
"""


def test_recursion_uses_only_what_follows():
    check_pass(RECURSION, "infer-struct-info", [[np.array(k), np.ones(3, np.float32)] for k in (0, 1, 4)])
    assert result_type(RECURSION) == "!relax.tensor<*, f32>"


def test_a_check_that_a_function_declares_is_not_lost():
    text = """
    relax.func @main(%x: !relax.tensor<[_], f32>) -> !relax.tensor<[3], f32> {
      %0 = relax.exp %x : !relax.tensor<*, f32>
      relax.return %0
    }
    """
    module = check_pass(text, "infer-struct-info", [[np.zeros(3, np.float32)]])
    with pytest.raises(ValueError, match="expected 3, got 2"):
        run(module, "main", [np.zeros(2, np.float32)])


STALE = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<NEW, f32>) -> !relax.tensor<*, f32> {
  %0 = relax.exp %x
  %1 = relax.flatten %0
  relax.return %1
}
"""


@pytest.mark.parametrize(
    ("new", "expected"), [("[8, 4]", "[32]"), ("[n, n]", "[n * n]"), ("[_, 4]", "[_]"), ("*", "[_]")]
)
def test_types_are_repaired_after_rewrites(new: str, expected: str):
    module = parse_module(STALE.replace("NEW", new))
    exp = next(op for op in module.walk() if isinstance(op, ExpOp))
    func = exp.parent_op()
    assert isinstance(func, FuncOp)
    exp.operands[0] = func.params[1]
    with pytest.raises(InvalidModule):
        verify_module(module)
    InferStructInfoPass().apply(make_context(), module)
    verify_module(module)
    assert func.function_type.ret == info(f"tensor<{expected}, f32>")
