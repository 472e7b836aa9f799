"""The examples of the documents that the language comes from: each is read, and the complete programs run.

`examples/<document>_<what>.txt` is the text as printed there. What is no Python there is an error at that position.
"""

from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.ops.structure import FuncOp
from tests.support.programs import MODES, run_in_turn, runner
from tir_dialect.ops.function import PrimFuncOp

EXAMPLES = Path(__file__).parent / "examples"
BROKEN = {
    "mvp_heap": (15, "unmatched '\\)'"),
    "mvp_memory": (12, "unmatched '\\)'"),
    "notes_heap": (14, "unmatched '\\)'"),
    "notes_memory": (9, "unmatched '\\)'"),
    "rfc_two_regions": (8, "the name linear is not defined here"),
}
"""Texts with misprints that leave no Python, or that leave out functions they call: line and message."""

ALL = sorted(path.stem for path in EXAMPLES.glob("*.txt"))


def text_of(name: str) -> str:
    return (EXAMPLES / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in ALL if name not in BROKEN])
def test_example_is_read(name: str):
    module = parse(text_of(name), filename=f"{name}.py")
    assert [op for op in module.ops if isinstance(op, FuncOp | PrimFuncOp)]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_example_is_refused_at_its_place(name: str):
    line, message = BROKEN[name]
    with pytest.raises(TVMScriptError, match=message) as caught:
        parse(text_of(name), filename=f"{name}.py")
    assert caught.value.line == line


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def _custom_inplace_update(tensor: tvm_ffi.Tensor) -> None:
    np.from_dlpack(tensor)[...] *= 2


def _custom_print(tensor: tvm_ffi.Tensor) -> None:
    assert np.from_dlpack(tensor).ndim == 2


def _custom_add(one: tvm_ffi.Tensor, other: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(np.from_dlpack(one) + np.from_dlpack(other))


def _custom_tile(tensor: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    np.from_dlpack(out)[...] = np.tile(np.from_dlpack(tensor), (1, 2))


def _flatten(tensor: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(tensor).reshape(-1)


def _myshape_func(shape: tvm_ffi.Shape) -> tvm_ffi.Shape:
    return shape


def _custom_func(tensor: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(tensor)


PACKED = {
    "custom_inplace_update": _custom_inplace_update,
    "custom_print": _custom_print,
    "custom_add": _custom_add,
    "custom_tile": _custom_tile,
    "flatten": _flatten,
    "myshape_func": _myshape_func,
    "custom_func": _custom_func,
}


@pytest.fixture(autouse=True)
def packed_functions() -> None:
    """Other tests give these names to functions of their own."""
    for name, function in PACKED.items():
        tvm_ffi.register_global_func(name, function, override=True)


@pytest.mark.parametrize("name", ["rfc_module", "notes_module", "overview_module"])
def test_module_runs(name: str):
    x, w = random(3, 4), random(4, 5)
    result = run_in_turn(parse(text_of(name)), "relax_func", [x, w])
    np.testing.assert_allclose(result, 2 * np.exp((x @ w).reshape(-1)), rtol=1e-5)


@pytest.mark.parametrize("name", ["mvp_module", "notes_mvp"])
def test_mvp_runs(name: str):
    x = random(3, 4)
    np.testing.assert_allclose(run_in_turn(parse(text_of(name)), "myfunc", [x]), np.exp(x).reshape(-1), rtol=1e-6)


def test_rfc_matmul_runs():
    """The second matrix is read by rows, so that only square ones are in range."""
    x, y = random(4, 4), random(4, 4)
    result = run_in_turn(parse(text_of("rfc_matmul")), "relax_func", [x, y])
    np.testing.assert_allclose(result, np.tile(2 * (x @ y.T), (1, 2)), rtol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["rfc_shapes", "notes_shapes", "notes_shape_values", "overview_shapes"])
def test_shapes_run(name: str):
    """An opaque function decides the rank of a tensor."""
    x = random(3, 2, 2)
    result = run_in_turn(parse(text_of(name)), "shape_example", [x])
    np.testing.assert_allclose(result, np.exp(np.unique(x)), rtol=1e-6)


def test_safety_net_runs():
    x = random(3, 2) + 1
    result = run_in_turn(parse(text_of("notes_refinement")), "after", [x, x])
    np.testing.assert_allclose(result, np.log(x) + x, rtol=1e-6, atol=1e-6)


def test_scopes_of_the_specification_run(capfd: pytest.CaptureFixture[str]):
    x = np.array([7], np.int32)
    np.testing.assert_array_equal(run_in_turn(parse(text_of("spec_scopes")), "func", [x]), x)
    assert "not executed" not in capfd.readouterr().out


_CALLER = """
    @R.function
    def call({params}):
        return R.call_tir({callee}, ({names},), out_ty=R.Tensor({shape}, "float32"))
"""


def with_caller(name: str, callee: str, names: list[str], shape: str) -> str:
    params = ", ".join(f'{each}: R.Tensor({shape}, "float32")' for each in names)
    head = text_of(name).partition("\n\n\nir_module")[0]
    return head + _CALLER.format(params=params, callee=callee, names=", ".join(names), shape=shape)


@pytest.mark.parametrize("name", ["overview_vector_add", "overview_vector_add_printed", "overview_vector_add_te"])
def test_vector_addition_runs(name: str):
    x = random(8)
    module = parse(with_caller(name, "main", ["x"], "(8,)"))
    np.testing.assert_array_equal(run_in_turn(module, "call", [x]), x + 1)


def test_matrix_product_of_the_overview_runs():
    x, y = random(128, 128) - 0.5, random(128, 128)
    module = parse(with_caller("overview_mm_relu", "mm_relu", ["x", "y"], "(128, 128)"))
    np.testing.assert_allclose(run_in_turn(module, "call", [x, y]), np.maximum(x @ y, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["notes_symbol_argument", "notes_unbound_symbol"])
@pytest.mark.parametrize(
    "call",
    [
        'R.call_tir(ewise_fun, (x,), out_ty=R.Tensor((n, q), "float32"), tir_vars=(k,))',
        "R.call_tir_dyn((n, 2 * floordiv(k, 2)), ewise_fun, [x], (k,))",
    ],
)
def test_symbol_inside_of_an_expression(name: str, call: str):
    """The caller says what `m` is in `2 * floordiv(m, 2)`. The texts print one `2 *` too many before the loop."""
    text = text_of(name).replace("[n, 2 * 2*floordiv(m, 2)]", "[n, 2*floordiv(m, 2)]")
    text += f"""
@R.function
def main(x: R.Tensor(("n", "q"), "float32"), k: R.Prim("int64")):
    return {call}
"""
    x = random(3, 4)
    for k in (4, 5):
        np.testing.assert_array_equal(run_in_turn(parse(text), "main", [x, k]), 2 * x)
    for mode in MODES:
        with pytest.raises(ValueError, match=r"2 \* floordiv|\(A\)"):
            runner(parse(text), "main", mode)(x, 6)


def test_symbol_inside_of_an_expression_is_asked_for():
    text = (
        text_of("notes_unbound_symbol")
        + """
@R.function
def main(x: R.Tensor(("n", "q"), "float32")):
    return R.call_tir(ewise_fun, (x,), out_ty=R.Tensor((n, q), "float32"))
"""
    )
    with pytest.raises(TVMScriptError, match=r"a value for m, .* determines; give it by tir_vars=\(m,\)"):
        parse(text)


_KERNELS = """
@T.prim_func
def linear(x: T.Buffer((1, 784)), w: T.Buffer((128, 784)), b: T.Buffer((128,)), out: T.Buffer((1, 128))):
    for j in range(128):
        out[0, j] = b[j]
        for r in range(784):
            out[0, j] += x[0, r] * w[j, r]

@T.prim_func
def relu(x: T.Buffer((1, 128)), out: T.Buffer((1, 128))):
    for j in range(128):
        out[0, j] = T.max(x[0, j], T.float32(0))

@T.prim_func
def linear1(x: T.Buffer((1, 128)), w: T.Buffer((128, 128)), b: T.Buffer((128,)), out: T.Buffer((1, 128))):
    for j in range(128):
        out[0, j] = b[j]
        for r in range(128):
            out[0, j] += x[0, r] * w[j, r]
"""


@tvm_ffi.register_global_func("read_tensor", override=True)
def _read_tensor(name: str) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(random(128, 128))


def test_two_regions_run_with_what_they_call():
    """The kernels that the text calls but leaves out, and the file by a packed function of ours."""
    text = text_of("rfc_two_regions").replace(
        'R.read_tensor_from_file("tensor.txt")', 'R.call_packed("read_tensor", R.str("tensor.txt"))'
    )
    x, w, b = random(1, 784), random(128, 784) - 0.5, random(128)
    hidden = 2 * np.maximum(x @ w.T + b, 0)
    result = run_in_turn(parse(_KERNELS + text), "main", [x, w, b])
    np.testing.assert_allclose(result, hidden @ random(128, 128).T + b, rtol=1e-4, atol=1e-4)


def test_memory_example_without_its_misprints():
    text = text_of("mvp_memory").replace('R.call_packed("tirexp"),', 'R.call_packed("tirexp",')
    for name in ("flatten", "free_tensor", "free_storage"):
        text = text.replace(f'R.call_packed("{name}"),', f'R.call_packed("{name}",')
    text = text.replace('offset=0, "f32")', 'offset=0, dtype="f32")')
    (func,) = parse(text).ops
    assert isinstance(func, FuncOp)
    assert not func.function_type.pure


def test_call_of_the_rfc_with_shape_and_dtype():
    """The one line that explains `call_dps_packed`, inside of a function."""
    call = """R.call_dps_packed("custom_packed_func", (input0, input1), output_shape=(3, 4),
                 output_dtype="float32")"""
    (func,) = parse(f"@R.function\ndef f(input0: R.Tensor, input1: R.Tensor):\n    return {call}\n").ops
    assert isinstance(func, FuncOp)
    assert str(func.function_type.ret) == "!relax.tensor<[3, 4], f32>"
