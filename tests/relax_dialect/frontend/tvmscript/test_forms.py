"""Ways of writing that people use: other names, scalars beside tensors, dimensions compared, loops of any rank."""

from textwrap import dedent

import numpy as np
import pytest
import tvm_ffi

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.ops.structure import FuncOp
from tests.support.programs import EXACT, MODES, run_in_turn, runner

X = np.array([[1, -2, 3, 4], [5, 6, -7, 8]], np.float32)


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def result_of(text: str, *args: object) -> object:
    return run_in_turn(module_of(text), "f", args, EXACT)


def test_operators_under_the_name_of_their_module():
    result = result_of(
        """
        from tvm import relax
        from tvm.relax import op as relax_op

        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            return R.op.nn.relu(relax.op.add(x, relax_op.abs(x)))
        """,
        X,
    )
    np.testing.assert_array_equal(result, np.maximum(X + abs(X), 0))


SCALARS = {
    "R.add(x, s)": lambda x, s, k: x + s,
    "R.multiply(s, x)": lambda x, s, k: s * x,
    "R.maximum(x, R.prim_value(1.0))": lambda x, s, k: np.maximum(x, 1),
    "R.greater(x, s)": lambda x, s, k: x > s,
    'R.add(R.astype(x, "int64"), k)': lambda x, s, k: x.astype(np.int64) + k,
    "x * s": lambda x, s, k: x * s,
    'R.astype(x, "int64") - n': lambda x, s, k: x.astype(np.int64) - 2,
    "R.take(x, k, axis=1)": lambda x, s, k: x[:, k],
    "R.take(x, R.prim_value(n - 1), axis=0)": lambda x, s, k: x[-1],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("call", SCALARS)
def test_scalars_beside_tensors(call: str):
    text = f"""
        @R.function
        def f(x: R.Tensor(("n", 4), "float32"), s: R.Prim("float32"), k: R.Prim("int64")):
            n = T.int64()
            return {call}
        """
    np.testing.assert_array_equal(result_of(text, X, 2.5, 3), SCALARS[call](X, np.float32(2.5), 3))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("condition", ["n % 2 == 0", "R.prim_value(n % 2 == 0)", "n % 2 < k", "k > n % 2"])
def test_dimensions_are_compared_when_the_program_runs(condition: str):
    text = f"""
        @R.function
        def f(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")):
            n = T.int64()
            if {condition}:
                y = x + x
            else:
                y = x
            return y
        """
    np.testing.assert_array_equal(result_of(text, X[0], 1), 2 * X[0])
    np.testing.assert_array_equal(result_of(text, X[0, :3], 1), X[0, :3])


@pytest.mark.parametrize("mode", MODES)
def test_dimensions_are_asserted(mode: str):
    module = module_of("""
        @R.function(pure=False)
        def f(x: R.Tensor(("n",), "float32")):
            n = T.int64()
            _ = R.assert_op(R.prim_value(n % 4 == 0), R.prim_value(n), format="n is {}")
            return x
        """)
    run = runner(module, "f", mode)
    np.testing.assert_array_equal(run(X[0]), X[0])
    with pytest.raises((ValueError, AssertionError), match="n is 3"):
        run(X[0, :3])


def test_arithmetic_on_numbers_that_nothing_is_known_of():
    assert result_of("@R.function\ndef f(k: R.Prim('int64')):\n    return k * 2 + 1\n", 4) == 9


def test_dimensions_by_the_names_of_their_nodes():
    text = """
        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            return R.strided_slice(x, [0], [0], [T.FloorDiv(T.Add(n, 1), 2)])
        """
    np.testing.assert_array_equal(result_of(text, X), X[:1])


KERNELS = {
    "one name for all loops": """
            for iters in T.grid(*A.shape):
                with T.sblock("b"):
                    i, j = T.axis.remap("SS", iters)
                    B[i, j] = A[i, j] * T.float32(2)
    """,
    "some loops by star": """
            for i, j in T.grid(A.shape[0], *A.shape[1:]):
                with T.sblock("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
    """,
    "init without a reduction": """
            for i, j in T.grid(n, 4):
                with T.sblock("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    with T.init():
                        B[vi, vj] = T.float32(1)
                    B[vi, vj] = B[vi, vj] + A[vi, vj] * T.float32(2) - T.float32(1)
    """,
    "a block without iterators": """
            for i, j in T.grid(n, 4):
                with T.sblock("b"):
                    with T.init():
                        B[i, j] = T.float32(0)
                    B[i, j] = B[i, j] + A[i, j] * T.float32(2)
    """,
    "functions with a dtype": """
            for i, j in T.grid(n, 4):
                with T.sblock("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.if_then_else(vi < n, T.fabs(A[vi, vj], dtype="float32"), A[0, 0], dtype="float32")
                    B[vi, vj] = A[vi, vj] * T.float32(2)
    """,
}


@pytest.mark.parametrize("body", KERNELS)
def test_loops_and_blocks(body: str):
    head = """
        @T.prim_func
        def double(a: T.handle, b: T.handle):
            n = T.int64()
            A = T.match_buffer(a, (n, 4), "float32")
            B = T.match_buffer(b, (n, 4), "float32")
    """
    call = """
        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            return R.call_tir(double, (x,), out_ty=R.Tensor((n, 4), "float32"))
    """
    kernel = dedent(head) + dedent(KERNELS[body]).replace("\n", "\n    ")
    np.testing.assert_array_equal(result_of(kernel + dedent(call), X), 2 * X)


def test_views():
    text = """
        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            y = R.memory.view(x, R.shape([n * 4]), "float32", 0)
            return R.memory.view(y, shape=None)
        """
    np.testing.assert_array_equal(result_of(text, X), X.reshape(-1))


def test_nested_function_in_a_dataflow_region():
    text = """
        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                @R.function
                def twice(y: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32"):
                    return y + y

                z = twice(x)
                R.output(z)
            return z
        """
    np.testing.assert_array_equal(result_of(text, X), 2 * X)


def test_new_memory_is_no_effect():
    text = """
        @R.function
        def f(x: R.Tensor((2, 4), "float32")):
            y = R.builtin.alloc_tensor(R.shape([2, 4]), "float32", 0)
            return R.add(x, R.zeros_like(y))
        """
    np.testing.assert_array_equal(result_of(text, X), X)


def test_sampling_has_coordinates_as_channels():
    text = """
        @R.function
        def f(x: R.Tensor((1, 1, 2, 4), "float32"), theta: R.Tensor((1, 2, 3), "float32")):
            grid: R.Tensor((1, 2, 2, 4), "float32") = R.image.affine_grid(theta, size=(2, 4), align_corners=True)
            return R.image.grid_sample(x, grid, method="nearest", layout="NCHW", align_corners=True)
        """
    flip = np.array([[[-1, 0, 0], [0, 1, 0]]], np.float32)
    np.testing.assert_array_equal(result_of(text, X.reshape(1, 1, 2, 4), flip), X[:, ::-1].reshape(1, 1, 2, 4))


def test_dimension_where_a_number_is_needed():
    text = """
        @R.function
        def f(x: R.Tensor(("n", "c", "h", "w"), "float32"), s: R.Shape(("k",))):
            k = T.int64()
            return R.nn.max_pool2d(x, pool_size=[k, 2], strides=[k, 1])
        """
    with pytest.raises(TVMScriptError, match="known when the text is read, got the dimension k"):
        module_of(text)


def test_the_type_of_a_value_and_a_packed_function_with_a_name():
    text = """
        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            double = R.ExternFunc("test.forms.double")
            return R.call_dps_packed(double, (x,), out_ty=[x.ty])
        """

    @tvm_ffi.register_global_func("test.forms.double", override=True)
    def _double(tensor: tvm_ffi.Tensor, out: tvm_ffi.Tensor) -> None:
        np.from_dlpack(out)[...] = 2 * np.from_dlpack(tensor)

    np.testing.assert_array_equal(result_of(text, X), 2 * X)


def test_order_of_arguments_of_topi():
    text = """
        @R.function
        def f(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            return R.add(x, R.emit_te(topi.full, [n, 4], "float32", 3.0))
        """
    np.testing.assert_array_equal(result_of(text, X), X + 3)


def test_writing_a_parameter_makes_a_function_impure():
    text = """
        @I.ir_module
        class Module:
            @T.prim_func
            def zero(A: T.Buffer((2, 4), "float32")):
                for i, j in T.grid(2, 4):
                    A[i, j] = T.float32(0)

            @R.function
            def f(x: R.Tensor((2, 4), "float32")):
                cls = Module
                y = R.call_tir_inplace(cls.zero, (x,), [0], out_ty=R.Tensor((2, 4), "float32"))
                return y
        """
    func = next(op for op in module_of(text).ops if isinstance(op, FuncOp))
    assert not func.function_type.pure
    np.testing.assert_array_equal(result_of(text, X), 0 * X)


@pytest.mark.parametrize("mode", MODES)
def test_values_without_a_mark_in_the_message(mode: str):
    module = module_of("""
        @R.function(pure=False)
        def f(c: R.Tensor((), "bool"), x: R.Tensor((2, 4), "float32")):
            _ = R.assert_op(c, [x, x], format="no marks")
            return x
        """)
    run = runner(module, "f", mode)
    np.testing.assert_array_equal(run(np.array(True), X), X)
    with pytest.raises((ValueError, AssertionError), match="no marks"):
        run(np.array(False), X)


def test_names_that_are_numbers():
    """Names and symbols of `_` and digits, which leave no hint for the text of the IR."""
    result = result_of(
        """
        @R.function
        def f(_0: R.Tensor(("_1", 4), "float32")):
            _2 = R.abs(_0)
            _1 = T.int64()
            return R.add(_2, R.full((_1, 4), R.const(1, "float32")))
        """,
        X,
    )
    np.testing.assert_array_equal(result, abs(X) + 1)


def test_functions_of_the_run_time_library_are_operators():
    result = result_of(
        """
        @R.function(pure=False)
        def f(x: R.Tensor(("n", 4), "float32"), s: R.Tensor((3,), "int64")):
            a = R.call_packed("vm.builtin.copy", x, ty_args=(R.Tensor(("n", 4), "float32")))
            b = R.call_packed("vm.builtin.reshape", a, R.shape([8]), ty_args=[R.Tensor((8,), "float32")])
            k = R.call_pure_packed("vm.builtin.tensor_to_shape", s, ty_args=(R.Shape(ndim=3),))
            t = R.call_packed("vm.builtin.tuple_reset_item", (a, s), R.prim_value(1), ty_args=(R.Object,))
            c = R.call_packed("vm.builtin.tuple_getitem", t, R.prim_value(0), ty_args=(R.Tensor(("n", 4), "float32")))
            d = R.call_packed("vm.builtin.to_device", c, R.prim_value(1), R.prim_value(0), ty_args=(R.Object,))
            return R.reshape(b, k), R.call_packed("vm.builtin.shape_of", a, ty_args=R.Shape(ndim=2)), t, d
        """,
        X,
        np.array([2, 2, 2], np.int64),
    )
    assert isinstance(result, tuple)
    np.testing.assert_array_equal(result[0], X.reshape(2, 2, 2))
    np.testing.assert_array_equal(result[2][0], X)
    assert result[2][1] is None
    np.testing.assert_array_equal(result[3], X)
    assert tuple(result[1]) == (2, 4)


def test_storages_count_elements_of_their_dtype():
    text = """
        @I.ir_module
        class M:
            @T.prim_func
            def double(x: T.Buffer((2, 4), "float32"), y: T.Buffer((2, 4), "float32")):
                for i, j in T.grid(2, 4):
                    y[i, j] = x[i, j] * T.float32(2)

            @R.function(pure=False)
            def f(x: R.Tensor((2, 4), "float32")):
                storage = R.vm.alloc_storage(R.shape([2 * 4]), runtime_device_index=0, dtype="float32")
                y = R.vm.alloc_tensor(storage, offset=0, shape=R.shape([2, 4]), dtype="float32")
                _ = M.double(x, y)
                return y
        """
    np.testing.assert_array_equal(result_of(text, X), 2 * X)
    with pytest.raises(TVMScriptError, match="expected a storage of 32 bytes, got 8"):
        parse(dedent(text.replace('runtime_device_index=0, dtype="float32"', "runtime_device_index=0")))
