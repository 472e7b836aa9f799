"""Calls of PrimFuncs and packed functions with sizes and ranks that only values know, in every mode."""

import numpy as np
import pytest
import tvm_ffi

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from tests.support.programs import EXACT, MODES, run_in_turn, runner

COPY = """
tir.prim_func @copy[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "copy" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
      %a = tir.load %X[%vi, %vj]
      tir.store %a, %Y[%vi, %vj]
    }
  }
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@tvm_ffi.register_global_func("test.shape_of", override=True)
def _shape_of(tensor: tvm_ffi.Tensor) -> tvm_ffi.Shape:
    return tvm_ffi.Shape(tuple(tensor.shape))


@tvm_ffi.register_global_func("test.copy_to", override=True)
def _copy_to(tensor: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(tensor).reshape(out.shape)


@tvm_ffi.register_global_func("test.same", override=True)
def _same(value: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    return value


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "kind", ["!relax.tensor<*, f32>", "!relax.tensor<*, _>", "!relax.tensor<[_, _], _>", "!relax.object"]
)
@pytest.mark.parametrize("shape", ["!relax.shape<*>", "!relax.shape<[_, _]>", "!relax.shape<[2, _]>"])
def test_a_prim_func_says_what_it_takes(kind: str, shape: str):
    """What is not known of an argument or of the result's shape follows from the buffer that it is passed for."""
    program = f"""{COPY}
      relax.func @main(%x: {kind}) -> !relax.tensor<*, f32> {{
        %o = relax.call_pure_packed "test.shape_of"(%x) : {shape}
        %y = relax.call_tir @copy(%x) shape(%o) : !relax.tensor<*, f32>
        %z = relax.add %y, %y
        relax.return %z
      }}
    """
    np.testing.assert_array_equal(run_in_turn(program, "main", [X], EXACT), X + X)


@pytest.mark.parametrize("mode", MODES)
def test_an_argument_of_another_rank_or_dtype(mode: str):
    program = f"""{COPY}
      relax.func @main(%x: !relax.tensor<*, _>) -> !relax.tensor<[2, 3], f32> {{
        %y = relax.call_tir @copy(%x) : !relax.tensor<[2, 3], f32>
        relax.return %y
      }}
    """
    run = runner(parse_module(program), "main", mode)
    np.testing.assert_array_equal(run(X), X)
    for wrong in (X.reshape(-1), X.astype(np.int32)):
        with pytest.raises((TypeError, ValueError)):
            run(wrong)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", ["[m, n]", "[k, m]"])
def test_sizes_that_may_differ_are_checked(mode: str, sizes: str):
    """A PrimFunc never gets buffers that are smaller than it was told."""
    program = f"""{COPY}
      relax.func @main[%n, %m, %k](%x: !relax.tensor<[n, m], f32>, %y: !relax.tensor<[k], f32>) -> !relax.object {{
        %r = relax.call_tir @copy(%x) : !relax.tensor<{sizes}, f32>
        relax.return %r
      }}
    """
    run = runner(parse_module(program), "main", mode)
    square = X[:, :2].copy()
    np.testing.assert_array_equal(run(square, X[0, :2]), square)
    with pytest.raises(ValueError, match=r"\(Y\)"):
        run(X, X[0])


def test_sizes_of_results_that_nothing_can_be_checked_with():
    program = """
      tir.prim_func @two[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
      }
      relax.func @main[%n, %m](%x: !relax.prim<i64, n>, %y: !relax.prim<i64, m>) -> !relax.object {
        %r, %s = relax.call_tir @two() : !relax.tensor<[n], f32>, !relax.tensor<[m], f32>
        relax.return %r
      }
    """
    with pytest.raises(InvalidModule, match="no tensor argument to check dimension 0 of argument #1"):
        runner(parse_module(program), "main", "native")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", ["!relax.shape<*>", "!relax.shape<[_, _]>"])
@pytest.mark.parametrize("result", ["*", "[_, _]", "[2, _]"])
def test_a_packed_function_writes_a_tensor_of_any_rank(shape: str, result: str):
    program = f"""
      relax.func @main(%x: !relax.tensor<[_, _], f32>) -> !relax.tensor<{result}, f32> {{
        %s = relax.call_pure_packed "test.shape_of"(%x) : {shape}
        %y = relax.call_dps_packed "test.copy_to"(%x) shape(%s) : !relax.tensor<{result}, f32>
        %z = relax.call_pure_packed "test.same"(%y) : !relax.tensor<{result}, f32>
        relax.return %z
      }}
    """
    np.testing.assert_array_equal(run_in_turn(program, "main", [X], EXACT), X)


def test_shapes_of_unknown_rank_in_branches_and_loops():
    program = """
      relax.func @main(%c: !relax.prim<i1>, %x: !relax.tensor<[_, _], f32>, %k: !relax.prim<i64>) -> !relax.object {
        %s = relax.call_pure_packed "test.shape_of"(%x) : !relax.shape<*>
        %r = relax.if %c {
          %y = relax.call_dps_packed "test.copy_to"(%x) shape(%s) : !relax.tensor<*, f32>
          relax.yield %y
        } else {
          %f = relax.flatten %x
          %t = relax.call_pure_packed "test.shape_of"(%f) : !relax.shape<*>
          %y = relax.call_dps_packed "test.copy_to"(%x) shape(%t) : !relax.tensor<*, f32>
          relax.yield %y
        }
        %zero = relax.prim 0
        %l = relax.for %i = %zero to %k (%v: !relax.tensor<*, f32> = %r) {
          %t = relax.call_pure_packed "test.shape_of"(%v) : !relax.shape<*>
          %y = relax.call_dps_packed "test.copy_to"(%v) shape(%t) : !relax.tensor<*, f32>
          %n = relax.add %y, %y
          relax.yield %n
        }
        relax.return %l
      }
    """
    np.testing.assert_array_equal(run_in_turn(program, "main", [True, X, 2], EXACT), 4 * X)
    np.testing.assert_array_equal(run_in_turn(program, "main", [False, X, 0], EXACT), X.reshape(-1))
