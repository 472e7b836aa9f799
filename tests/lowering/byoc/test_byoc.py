"""Parts of programs computed by libraries give what the whole program gives."""

import numpy as np
import pytest
import tvm_ffi
from xdsl.utils.exceptions import PassFailedException

from lowering.byoc.backends import Backend, FusionPattern, Handoff, find_backend, register_backend
from lowering.byoc.run_codegen import Program
from lowering.parsing import parse_module
from relax_dialect.patterns import is_op, wildcard
from tests.support.programs import Tolerance, check_pass, run_everywhere, run_pipeline
from vm_dialect.tensors import to_numpy

CLOSE = Tolerance(1e-4, 1e-5)
BLAS = "fuse-ops-by-pattern{backend=blas},merge-composites,run-codegen"
RNG = np.random.default_rng(11)

MLP = """
relax.func @main[%n](%x: !relax.tensor<[n, 8], f32>, %w: !relax.tensor<[8, 6], f32>, %b: !relax.tensor<[6], f32>,
    %v: !relax.tensor<[6, 3], f32>) -> !relax.tensor<[n, 3], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  %3 = relax.matmul %2, %v
  %4 = relax.exp %3
  relax.return %4
}
"""


def mlp_inputs(n: int) -> list[np.ndarray]:
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in ((n, 8), (8, 6), (6,), (6, 3))]


def ops(module) -> list[str]:
    return [op.name for op in module.walk()]


def test_one_call_of_the_library():
    module = check_pass(MLP, BLAS, [mlp_inputs(n) for n in (0, 1, 5)], tolerance=CLOSE)
    assert ops(module).count("relax.call_dps_packed") == 1
    assert "relax.matmul" not in ops(module)
    for n in (0, 1, 5):
        x, w, b, v = inputs = mlp_inputs(n)
        expected = np.exp(np.maximum(x @ w + b, 0) @ v)
        np.testing.assert_allclose(run_everywhere(module, "main", inputs, CLOSE), expected, rtol=1e-4)


@pytest.mark.parametrize(
    "passes", ["fuse-ops-by-pattern{backend=blas}", "fuse-ops-by-pattern{backend=blas},merge-composites"]
)
def test_groups_mean_the_same(passes: str):
    module = check_pass(MLP, passes, [mlp_inputs(3)], tolerance=CLOSE)
    assert "relax.fused" in ops(module)


def test_batches_and_vectors():
    text = """
relax.func @main[%b, %n](%x: !relax.tensor<[b, n, 4], f64>, %w: !relax.tensor<[4, 5], f64>,
    %v: !relax.tensor<[5], f64>) -> !relax.tensor<[b, n], f64> {
  %0 = relax.matmul %x, %w
  %1 = relax.matmul %0, %v
  relax.return %1
}
"""
    for b, n in ((2, 3), (0, 2), (1, 1)):
        inputs = [RNG.standard_normal(shape) for shape in ((b, n, 4), (4, 5), (5,))]
        module = check_pass(text, BLAS, [inputs], tolerance=CLOSE)
        expected = inputs[0] @ inputs[1] @ inputs[2]
        np.testing.assert_allclose(run_everywhere(module, "main", inputs, CLOSE), expected, rtol=1e-6)


def test_values_that_others_use_are_results():
    text = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>) -> !relax.object {
  %0 = relax.matmul %x, %w
  %1 = relax.matmul %0, %w
  %2 = relax.tuple(%0, %1)
  relax.return %2
}
"""
    inputs = [RNG.standard_normal(shape, dtype=np.float32) for shape in ((3, 4), (4, 4))]
    module = check_pass(text, BLAS, [inputs], tolerance=CLOSE)
    assert ops(module).count("relax.call_dps_packed") == 1
    first, second = run_everywhere(module, "main", inputs, CLOSE)
    np.testing.assert_allclose(first, inputs[0] @ inputs[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(second, first @ inputs[1], rtol=1e-4, atol=1e-5)


BETWEEN = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>) -> !relax.tensor<[n, 4], f32> {
  %0 = relax.matmul %x, %w
  %1 = relax.exp %0
  %2 = relax.matmul %1, %w
  %3 = relax.subtract %2, %0
  %4 = relax.matmul %2, %w
  %5 = relax.add %3, %4
  relax.return %5
}
"""


def test_groups_with_something_between_stay_apart():
    inputs = [RNG.standard_normal(shape, dtype=np.float32) for shape in ((3, 4), (4, 4))]
    module = check_pass(BETWEEN, BLAS, [inputs], tolerance=CLOSE)
    assert ops(module).count("relax.call_dps_packed") == 3
    run_everywhere(module, "main", inputs, CLOSE)


def test_what_blas_cannot_do_stays():
    """Integers, a bias that makes the product larger, dimensions that are not known."""
    text = """
relax.func @main[%n](%i: !relax.tensor<[n, 2], i32>, %j: !relax.tensor<[2, n], i32>, %x: !relax.tensor<[1, 2], f32>,
    %b: !relax.tensor<[n, n], f32>, %y: !relax.tensor<[_, 2], f32>, %w: !relax.tensor<[2, 1], f32>) -> !relax.object {
  %0 = relax.matmul %i, %j
  %1 = relax.matmul %x, %w
  %2 = relax.add %1, %b
  %3 = relax.matmul %y, %w
  %4 = relax.tuple(%0, %2, %3)
  relax.return %4
}
"""
    module = parse_module(text)
    run_pipeline(module, "fuse-ops-by-pattern{backend=blas}")
    groups = [op for op in module.walk() if op.name == "relax.fused"]
    assert [str(group.attributes["composites"]) for group in groups] == ['["blas.matmul"]']
    inputs = [np.ones((3, 2), np.int32), np.ones((2, 3), np.int32)]
    inputs += [RNG.standard_normal(shape, dtype=np.float32) for shape in ((1, 2), (3, 3), (5, 2), (2, 1))]
    run_everywhere(check_pass(text, BLAS, [inputs], tolerance=CLOSE), "main", inputs, CLOSE)


def test_a_backend_of_your_own_may_decline():
    """Partial hand-off: what the code generator declines is compiled."""
    calls: list[int] = []

    def half(x: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
        calls.append(1)
        np.divide(to_numpy(x), 2, out=to_numpy(out))

    tvm_ffi.register_global_func("tests.half", half, override=True)
    halve = is_op("relax.multiply")(wildcard(), wildcard())

    def codegen(group):
        (product, _) = group.body.block.ops
        return Handoff("tests.half") if product.operands[1] is product.operands[0] else None

    register_backend(Backend("tests", [FusionPattern("tests.multiply", halve)], codegen))
    text = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.multiply %x, %x
  %1 = relax.multiply %0, %y
  relax.return %1
}
"""
    module = parse_module(text)
    run_pipeline(module, "fuse-ops-by-pattern{backend=tests},run-codegen")
    assert [op.name for op in module.walk()][2:] == ["relax.call_dps_packed", "relax.multiply", "relax.return"]
    x = np.array([2, 4, 6], np.float32)
    np.testing.assert_array_equal(run_everywhere(module, "main", [x, x]), x / 2 * x)
    assert len(calls) == 3


def test_errors():
    with pytest.raises(ValueError, match=r"there is no backend nothing, there are blas"):
        find_backend("nothing")
    with pytest.raises(PassFailedException, match="no backend nothing"):
        run_pipeline(parse_module(MLP), "fuse-ops-by-pattern{backend=nothing}")
    with pytest.raises(ValueError, match="expected the text of a group, got"):
        Program.parse("[1, 2")
    with pytest.raises(ValueError, match="expected the text of a group, got"):
        Program.parse("{}")


NETWORK = """
relax.func @main[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %k: !relax.tensor<[5, 3, 3, 3], f32>,
    %l: !relax.tensor<[5, 5, 3, 3], f32>) -> !relax.tensor<[n, 5, 8, 8], f32> {
  %0 = relax.nn.conv2d %x, %k padding = [1, 1, 1, 1]
  %1 = relax.nn.relu %0
  %2 = relax.nn.conv2d %1, %l padding = [2, 2, 0, 0]
  %3 = relax.nn.softmax %2 axis = 1
  relax.return %3
}
"""
TORCH = "fuse-ops-by-pattern{backend=torch},merge-composites,run-codegen"


def test_what_torch_is_asked_for():
    """The second convolution pads sides differently, which PyTorch does not: it stays."""
    module = parse_module(NETWORK)
    run_pipeline(module, "fuse-ops-by-pattern{backend=torch},run-codegen")
    assert ops(module).count("relax.nn.conv2d") == 1
    assert ops(module).count("relax.call_dps_packed") == 3


def test_torch_computes():
    pytest.importorskip("torch")
    inputs = [RNG.standard_normal(shape, dtype=np.float32) for shape in ((2, 3, 8, 8), (5, 3, 3, 3), (5, 5, 3, 3))]
    module = check_pass(NETWORK, "fuse-ops-by-pattern{backend=torch},run-codegen", [inputs], tolerance=CLOSE)
    run_everywhere(module, "main", inputs, CLOSE)
