"""Relax functions: heads, bindings, regions, branches, nested functions, as text and as the program they mean."""

from textwrap import dedent

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.ops.structure import FuncOp
from tests.support.programs import run_in_turn

X = np.array([[1, -2, 3, 4], [5, 6, -7, 8], [0, 1, 2, 3]], np.float32)
TRUE, FALSE = np.array(True), np.array(False)


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def func_of(text: str) -> FuncOp:
    (func,) = module_of(text).ops
    assert isinstance(func, FuncOp)
    return func


def head(text: str) -> str:
    """The first line of a function, without its body."""
    return str(func_of(text)).partition(" {\n")[0].removeprefix("relax.func ")


def test_module_with_two_functions():
    module = module_of("""
        from tvm.script import ir as I, relax as R

        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")) -> R.Tensor(("n", 2), "float32"):
                cls = Module
                with R.dataflow():
                    lv = R.matmul(x, w, out_dtype=None)
                    gv: R.Tensor(("n", 2), dtype="float32") = cls.activate(lv)
                    R.output(gv)
                return gv

            @R.function(private=True)
            def activate(x: R.Tensor(("k", 2), "float32")) -> R.Tensor(("k", 2), "float32"):
                return R.nn.relu(x - R.const(1.0, "float32"))
        """)
    w = np.ones((4, 2), np.float32)
    np.testing.assert_allclose(run_in_turn(module, "main", [X, w]), np.maximum(X @ w - 1, 0), rtol=1e-6, atol=1e-6)


HEADS = {
    'def f[n, m: T.int64](x: R.Tensor((n, m), "float32")):': (
        "@f[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[n, m], f32>"
    ),
    'def f(x: R.Tensor(("n", "n * 2 + 1"), dtype="float16")):': (
        "@f[%n](%x: !relax.tensor<[n, 2 * n + 1], f16>) -> !relax.tensor<[n, 2 * n + 1], f16>"
    ),
    'def f(x: R.Tensor[(n, m), "f32"]):': ("@f[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[n, m], f32>"),
    'def f(x: R.Tensor[(n, 2 * floordiv(n, 2)), "f32"]):': (
        "@f[%n](%x: !relax.tensor<[n, 2 * floordiv(n, 2)], f32>) -> !relax.tensor<[n, 2 * floordiv(n, 2)], f32>"
    ),
    'def f(x: R.Tensor[_, "f32"]):': "@f(%x: !relax.tensor<*, f32>) -> !relax.tensor<*, f32>",
    "def f(x: Tensor[(n, 4)]):": "@f[%n](%x: !relax.tensor<[n, 4], _>) -> !relax.tensor<[n, 4], _>",
    'def f(x: R.Tensor(dtype="int8", ndim=2)):': "@f(%x: !relax.tensor<[_, _], i8>) -> !relax.tensor<[_, _], i8>",
    'def f(x: R.Tensor("float32")):': "@f(%x: !relax.tensor<*, f32>) -> !relax.tensor<*, f32>",
    'def f(x: R.Shape(["n", 4])):': "@f[%n](%x: !relax.shape<[n, 4]>) -> !relax.shape<[n, 4]>",
    "def f(x: R.Shape(ndim=2)):": "@f(%x: !relax.shape<[_, _]>) -> !relax.shape<[_, _]>",
    "def f(x: R.Shape):": "@f(%x: !relax.shape<*>) -> !relax.shape<*>",
    "def f(x: R.Tuple(R.Tensor, R.Any)):": (
        "@f(%x: !relax.tuple<!relax.tensor<*, _>, !relax.object>) -> !relax.tuple<!relax.tensor<*, _>, !relax.object>"
    ),
    "def f(x: R.Object()):": "@f(%x: !relax.object) -> !relax.object",
    "def f(x: T.float32):": "@f(%x: !relax.prim<f32>) -> !relax.prim<f32>",
    'def f(x: R.Prim("int32")):': "@f(%x: !relax.prim<i32>) -> !relax.prim<i32>",
    'def f(x: R.Prim(value="n")):': "@f[%n](%x: !relax.prim<i64, n>) -> !relax.prim<i64, n>",
    'def f(x: R.Callable((R.Tensor(("k",), "float32"),), R.Tensor(("k",), "float32"), True)):': (
        "@f(%x: !relax.func<[k](!relax.tensor<[k], f32>) -> !relax.tensor<[k], f32>, pure>) -> "
        "!relax.func<[k](!relax.tensor<[k], f32>) -> !relax.tensor<[k], f32>, pure>"
    ),
    'def f(x: R.Callable(None, R.Object, False, derive_func="g")):': (
        '@f(%x: !relax.func<* derive "g" -> !relax.object, impure>) -> '
        '!relax.func<* derive "g" -> !relax.object, impure>'
    ),
    'def f(x: R.Tensor((4,), "float32", vdevice="llvm:0")):': (
        '@f(%x: !relax.tensor<[4], f32, "llvm:0">) -> !relax.tensor<[4], f32, "llvm:0">'
    ),
    "def f(x):": "@f(%x: !relax.object) -> !relax.object",
}


@pytest.mark.parametrize("line", HEADS)
def test_head(line: str):
    assert head(f"@R.function\n{line}\n    return x\n").replace("device = ", "") == HEADS[line]


def test_scalar_that_is_a_dimension_of_another_parameter():
    text = '@R.function\ndef f(n: T.int64, x: R.Tensor((n,), "float32")):\n    return x\n'
    assert head(text).startswith("@f[%n](%n_1: !relax.prim<i64, n>, %x: !relax.tensor<[n], f32>)")


def test_scalar_that_becomes_a_dimension_where_it_is_used():
    module = module_of("""
        @R.function
        def f(n: T.int64):
            return R.ones((n, 2), "float32")
        """)
    np.testing.assert_array_equal(run_in_turn(module, "f", [3]), np.ones((3, 2), np.float32))


def test_attributes_bounds_and_visibility():
    func = func_of("""
        @R.function(private=True)
        def f(x: R.Tensor(("n",), "float32")):
            R.func_attr({"num_input": 1, "tir_var_upper_bound": {"n": 64}, "relax.force_pure": True, "names": ["a", 2]})
            R.print(x)
            return x
        """)
    assert func.symbols[0].interval == (0, 64)
    assert func.is_private
    assert func.force_pure is not None
    assert {key: str(value) for key, value in func.attributes.items()} == {
        "num_input": "1 : i64",
        "names": '["a", 2 : i64]',
    }


def test_purity_is_found_through_calls():
    module = module_of("""
        @R.function
        def a(x: R.Tensor((4,), "float32")):
            return b(x)

        @R.function
        def b(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.call_packed("f", x)
            return x

        @R.function
        def c(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.call_packed("f", x, ty_args=R.Tensor((4,), "float32"))
                R.output(y)
            return y
        """)
    assert [op.function_type.pure for op in module.ops if isinstance(op, FuncOp)] == [False, False, True]


PROGRAMS = {
    "branches": (
        """
        if c:
            a = R.add(x, x)
            b = R.multiply(a, x)
        else:
            a = x
            b = R.negative(x)
        return R.add(a, b)
        """,
        lambda c: 2 * X + 2 * X * X if c else 0 * X,
    ),
    "returns_in_branches": (
        """
        if c:
            return x * 2.0
        y = x + 1.0
        return y * y
        """,
        lambda c: 2 * X if c else (X + 1) ** 2,
    ),
    "nested_branches": (
        """
        if c:
            if c:
                y = x
            else:
                y = R.exp(x)
        else:
            y = R.abs(x)
        return y
        """,
        lambda c: X if c else abs(X),
    ),
    "nested_function": (
        """
        n = T.int64()
        one = R.const(1.0)
        @R.function
        def inner(y: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            return y * x + one
        return inner(inner(x))
        """,
        lambda c: (X * X + 1) * X + 1,
    ),
    "recursion": (
        """
        @R.function
        def halve(y: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            if R.less(y, R.const(1.0)):
                z = y
            else:
                z = halve(y / 2.0)
            return z
        return halve(R.const(20.0))
        """,
        lambda c: np.float32(0.625),
    ),
    "tuples": (
        """
        t = (x, (R.exp(x), R.const(2.0)))
        a, b = t
        u: R.Tuple(R.Tensor, R.Tensor) = t[1]
        return R.TupleGetItem(u, 1) * a + b[1]
        """,
        lambda c: 2 * X + 2,
    ),
    "casts_bind_dimensions": (
        """
        m = T.int64()
        with R.dataflow():
            lv = R.nonzero(x)
            lv1: R.Tensor((2, m), "int64") = R.match_cast(lv, R.Tensor((2, m), "int64"))
            R.output(lv1)
        return R.full((m,), R.const(1.0, "float32"))
        """,
        lambda c: np.ones(np.count_nonzero(X), np.float32),
    ),
    "annotation_is_a_check": (
        """
        y = R.call_pure_packed("tvmscript.same", x)
        z: R.Tensor(("n", 4), "float32") = y
        return z + 1.0
        """,
        lambda c: X + 1,
    ),
    "shapes": (
        """
        s = R.shape_of(x)
        n, k = R.match_shape(x.shape)
        t: R.Shape = (n * k,)
        return R.reshape(x, t)
        """,
        lambda c: X.reshape(-1),
    ),
    "indices": (
        """
        return x[:, 1:3] + x[0, 3] - x[-1:, :2]
        """,
        lambda c: X[:, 1:3] + X[0, 3] - X[-1:, :2],
    ),
    "augmented_and_unpacked": (
        """
        a, b = R.split(x, 2, axis=1)
        a += b
        a *= 2.0
        return a
        """,
        lambda c: 2 * (X[:, :2] + X[:, 2:]),
    ),
}


def _register() -> None:
    import tvm_ffi

    tvm_ffi.register_global_func("tvmscript.same", lambda value: value, override=True)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("condition", [TRUE, FALSE], ids=["true", "false"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, condition: np.ndarray):
    _register()
    body, expected = PROGRAMS[name]
    lines = "\n".join("    " + line for line in dedent(body).strip().splitlines())
    text = f'@R.function\ndef f(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):\n{lines}\n'
    result = run_in_turn(parse(text), "f", [X, condition])
    np.testing.assert_allclose(result, expected(bool(condition)), rtol=1e-6)


def test_mutual_recursion_needs_types():
    text = """
        @R.function
        def even(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            if R.equal(n, R.const(0, "int64")):
                r = R.const(True, "bool")
            else:
                r = odd(n - R.const(1, "int64"))
            return r

        @R.function
        def odd(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            if R.equal(n, R.const(0, "int64")):
                r = R.const(False, "bool")
            else:
                r = even(n - R.const(1, "int64"))
            return r
        """
    result = run_in_turn(module_of(text), "even", [np.array(7)])
    assert not np.asarray(result)
    with pytest.raises(TVMScriptError, match="is called before its end"):
        module_of(text.replace(' -> R.Tensor((), "bool")', ""))


def chain(bodies: list[str]) -> str:
    """A module of functions `f0`, `f1`, ... without result types."""
    functions = [
        f"""
    @R.function(private={index > 0})
    def f{index}(x: R.Tensor((3, 4), "float32")):
        cls = Module
        return {body}
"""
        for index, body in enumerate(bodies)
    ]
    return "@I.ir_module\nclass Module:\n" + "".join(functions)


def test_long_chains_of_functions_without_result_types():
    """Each is read before those that call it, whatever the order of the text."""
    module = parse(chain([*(f"cls.f{index}(x)" for index in range(1, 400)), "R.abs(x)"]))
    names = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]
    assert names == [f"f{index}" for index in range(400)]
    text = chain(["cls.f2(x)", "R.abs(x)", "R.add(cls.f1(x), cls.f3(x))", "R.negative(cls.f1(x))"])
    np.testing.assert_array_equal(run_in_turn(parse(text), "f0", [X]), 0 * X)


def test_errors_of_functions_without_result_types_are_said_once():
    for text in (chain(["R.exp(cls.f1(x))", "R.foo(x)"]), chain(["R.foo(x)", "R.exp(cls.f0(x))"])):
        with pytest.raises(TVMScriptError) as caught:
            parse(text)
        assert "R.foo" in str(caught.value)
        assert not caught.value.others


def test_locations_are_those_of_the_text():
    func = func_of("""
        @R.function
        def f(x: R.Tensor((4,), "float32")):
            y = R.exp(x)
            return y
        """)
    first = func.body.block.first_op
    assert first is not None
    location = first.location
    assert isinstance(location, FileLineColLoc)
    assert (location.filename.data, location.line.data, location.column.data) == ("test.py", 4, 5)
