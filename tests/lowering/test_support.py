"""The helpers of other tests do find what they look for."""

import numpy as np
import pytest

from tests.support.programs import EXACT, Tolerance, assert_same, check_pass, run_everywhere, run_with_copies

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.dataflow {
    %1 = relax.exp %x
    %2 = relax.add %1, %x
    relax.output %2
  }
  relax.return %0
}
"""


def test_check_pass_gives_the_rewritten_module():
    module = check_pass(PROGRAM, "to-non-dataflow", [[np.zeros(3, np.float32)], [np.ones(0, np.float32)]])
    assert "relax.dataflow" not in str(module)
    assert "relax.exp" in str(module)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (np.float32([1, 2]), np.float32([1, 2.1])),
        (np.float32([1, 2]), np.float64([1, 2])),
        (np.float32([1]), np.float32([[1]])),
        (np.float32([1]), np.float32([np.nan])),
        ((1, 2), (1, 2, 3)),
        ((1, (2,)), (1, (3,))),
        (1, 1.0),
        (True, 1),
        (None, 0),
        ("a", "b"),
    ],
    ids=str,
)
def test_differences_are_found(got: object, expected: object):
    with pytest.raises(AssertionError):
        assert_same(got, expected, EXACT, "result")


@pytest.mark.parametrize("value", [np.float32([np.nan, np.inf, -0.0]), np.int8([1]), (1, "a", None), np.float16([1])])
def test_equal_values_are_the_same(value: object):
    assert_same(value, value, EXACT, "result")


def test_tolerance_is_relative_and_absolute():
    assert_same(np.float32([1.001]), np.float32([1]), Tolerance(1e-2), "result")
    assert_same(np.float32([1e-4]), np.float32([0]), Tolerance(0, 1e-3), "result")


def test_arguments_are_copied():
    given = np.zeros(2)

    def write(array: np.ndarray) -> None:
        array[:] = 1

    result, (after,) = run_with_copies(write, [given])
    assert result is None
    assert given.tolist() == [0, 0]
    assert isinstance(after, np.ndarray)
    assert after.tolist() == [1, 1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [0, 1, 7])
def test_run_everywhere_gives_what_the_interpreter_gives(size: int):
    x = np.linspace(-1, 1, size, dtype=np.float32)
    result = run_everywhere(PROGRAM, "main", [x])
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, np.exp(x) + x, rtol=1e-6, atol=1e-6)


def test_run_everywhere_looks_at_arguments_too():
    import tvm_ffi

    from vm_dialect.tensors import to_numpy

    calls: list[int] = []

    def fill(tensor: tvm_ffi.Tensor) -> None:
        calls.append(1)
        to_numpy(tensor)[...] = len(calls)

    tvm_ffi.register_global_func("test.support.fill", fill, override=True)
    program = """
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
      relax.call_packed "test.support.fill"(%x)
      %0 = relax.subtract %x, %x
      relax.return %0
    }
    """
    with pytest.raises(AssertionError, match="bytecode"):
        run_everywhere(program, "main", [np.zeros(2, np.float32)])
    assert len(calls) == 3
