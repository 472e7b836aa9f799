"""Functions, closures, calls: signatures, symbols, results, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.utils.exceptions import VerifyException

from lowering.verify import verify_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import BuilderError, op, tensor
from relax_dialect.interpreter import run
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, TupleType


def only_function(bb: BlockBuilder) -> FuncOp:
    module = bb.get()
    verify_module(module)
    (func,) = module.ops
    assert isinstance(func, FuncOp)
    return func


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_symbols_are_those_of_the_parameters_in_order_of_occurrence():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", "4 * m"), "y": ("m", "k")}, bounds={"k": (1, 8)}) as (_, y):
        bb.emit_func_output(y)
    func = only_function(bb)
    assert func.function_type.symbol_names == ("n", "m", "k")
    assert [symbol.interval for symbol in func.symbols] == [(0, None), (0, None), (1, 8)]
    assert [param.name_hint for param in func.params] == ["x", "y"]


def test_result_type_is_that_of_the_result_without_inner_symbols():
    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(None, "f32"), "y": ("n",)}) as (x, y):
        bb.emit_func_output((bb.match_cast(x, ("m",)), y))
    assert only_function(bb).function_type.ret == TupleType([tensor((None,)), tensor(("n",))])


def test_given_result_type_is_kept():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}, ret=ObjectType()) as (x,):
        bb.emit_func_output(x)
    assert only_function(bb).function_type.ret == ObjectType()


def test_attributes_visibility_and_purity():
    bb = BlockBuilder()
    attrs = {"num_input": 1, "codegen": "dnnl", "fast": True, "axes": [0, 1], "raw": StringAttr("a")}
    with bb.function("main", {"x": ("n",)}, attrs=attrs, private=True, pure=False) as (x,):
        bb.call_packed("effect", x)
        bb.emit_func_output(x)
    func = only_function(bb)
    assert "private @main" in str(func)
    assert 'attributes {num_input = 1 : i64, codegen = "dnnl", fast, axes = [0, 1], raw = "a"}' in str(func).replace(
        " : i64]", "]"
    ).replace("0 : i64", "0")
    assert not func.function_type.pure


def with_effect(bb: BlockBuilder, *, force_pure: bool) -> None:
    with bb.function("main", {"x": ("n",)}, force_pure=force_pure) as (x,):
        bb.call_packed("effect", x)
        bb.emit_func_output(x)


def test_impure_op_in_a_pure_function_is_refused_at_its_end():
    bb = BlockBuilder()
    with pytest.raises(VerifyException, match=r"is pure, but holds 'relax\.call_packed'"):
        with_effect(bb, force_pure=False)
    with_effect(bb, force_pure=True)
    assert only_function(bb).force_pure is not None


def test_recursion_needs_a_result_type():
    bb = BlockBuilder()
    with pytest.raises(BuilderError, match="called before its end"), bb.function("f", {"x": ("n",)}) as (x,):
        bb.call("f", x)
    with bb.function("f", {"x": ("n",)}, ret=("n",)) as (x,):
        bb.emit_func_output(bb.call("f", x))
    assert only_function(bb).function_type.ret == tensor(("n",))


def test_mutual_recursion_by_declaration():
    bb = BlockBuilder()
    bb.declare("odd", {"k": tensor((), "i64")}, tensor((), "i1"))
    for name, other, at_zero in (("even", "odd", True), ("odd", "even", False)):
        with bb.function(name, {"k": tensor((), "i64")}, ret=tensor((), "i1")) as (k,):
            with bb.if_(k == 0) as branch:
                with branch.then():
                    bb.yield_(bb.const(at_zero))
                with branch.otherwise():
                    bb.yield_(bb.call(other, k - 1))
            bb.emit_func_output(branch.result)
    module = bb.finalize()
    verify_module(module)
    assert [bool(run(module, "even", [np.array(k)])) for k in range(4)] == [True, False, True, False]


def test_declaration_binds():
    bb = BlockBuilder()
    bb.declare("f", {"x": ("n",)}, ("n",))
    with pytest.raises(BuilderError, match="was declared as"), bb.function("f", {"x": ("n", 1)}, ret=("n",)):
        pass
    with bb.function("g", {"x": ("n",)}) as (x,):
        bb.emit_func_output(bb.call("f", x))
    with pytest.raises(VerifyException, match="@f is not defined in the module"):
        bb.get()


def test_call_binds_the_symbols_of_the_callee():
    bb = BlockBuilder()
    with bb.function("join", {"x": ("n",), "y": ("m",)}, private=True) as (x, y):
        bb.emit_func_output(op.concat([x, y]))
    with bb.function("main", {"x": ("m",)}) as (x,):
        joined = bb.call("join", x, op.concat([x, x]))
        assert joined.type == tensor(("3 * m",))
        bb.emit_func_output(joined)
    assert run(bb.get(), "main", [ones(2)]).shape == (6,)


def test_wrong_calls():
    bb = BlockBuilder()
    with bb.function("f", {"x": ("n", "n")}) as (x,):
        bb.emit_func_output(x)
    with bb.function("main", {"x": (2, 3)}) as (x,):
        with pytest.raises(BuilderError, match=r"call of @f: argument #0 dimension 1: 3 does not match n"):
            bb.call("f", x)
        with pytest.raises(BuilderError, match="not defined: declare it before it is called"):
            bb.call("g", x)
        with pytest.raises(VerifyException, match="expected a function as callee"):
            bb.call(x, x)
        bb.emit_func_output(x)


def test_closures_capture_values_and_symbols():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        with bb.closure({"y": ("m", "n")}) as scale:
            (y,) = scale.params
            bb.emit_func_output(y * x)
        assert scale.value.type == FuncType([tensor(("m", "n"))], tensor(("m", "n")), symbols=["m"])
        result = scale.value(op.full(["5", "n"], 2.0, "f32"))
        assert result.type == tensor((5, "n"))
        bb.emit_func_output(result)
    module = bb.get()
    verify_module(module)
    np.testing.assert_array_equal(run(module, "main", [ones(3) * 4]), np.full((5, 3), 8, np.float32))


def test_recursive_closure():
    bb = BlockBuilder()
    scalar = tensor((), "i64")
    with bb.function("main", {"n": scalar}) as (n,):
        with bb.closure({"k": scalar}, ret=scalar, recursive="factorial") as factorial:
            (k,) = factorial
            with bb.if_(k <= 1) as branch:
                with branch.then():
                    bb.yield_(bb.const(1))
                with branch.otherwise():
                    bb.yield_(k * factorial.itself(k - 1))
            bb.emit_func_output(branch.result)
        bb.emit_func_output(factorial.value(n))
    module = bb.get()
    verify_module(module)
    assert run(module, "main", [np.array(5)]) == 120


def test_function_values():
    bb = BlockBuilder()
    with bb.function("add", {"x": ("n",), "y": ("n",)}, private=True) as (x, y):
        bb.emit_func_output(x + y)
    with bb.function("main", {"x": ("n",)}, pure=False) as (x,):
        add_x = bb.make_closure("add", x)
        assert add_x.type == FuncType([tensor(("n",))], tensor(("n",)))
        packed = bb.extern_func("some.function")
        packed(x)
        bb.emit_func_output(bb.call(add_x, x))
    verify_module(bb.get())


def test_functions_inside_of_functions_are_separate():
    bb = BlockBuilder()
    with bb.function("outer", {"x": ("n",)}) as (x,):
        with bb.function("inner", {"y": ("n",)}) as (y,):
            with pytest.raises(BuilderError, match="is not visible in function inner"):
                op.add(y, x)
            bb.emit_func_output(y)
        bb.emit_func_output(bb.call("inner", x))
    verify_module(bb.get())


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda bb, x: bb.emit_output(x), "emit_output belongs into a dataflow region"),
        (lambda bb, x: op.add(x, bb.prim(1)), "expected a tensor, got !relax.prim"),
        (lambda bb, x: bb.symbol("m"), "the symbol m is not bound in function main"),
        (lambda bb, x: bb.get(), "function main is still open"),
        (lambda bb, x: op.shape(["n", "m"]), "'relax.shape' op uses the symbol m, which is not bound"),
        (lambda bb, x: bb.weight("w", PrimType()), "the weight w expected the type of a tensor"),
    ],
)
def test_misuse_inside_of_a_function(misuse: Callable[..., object], message: str):
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        with pytest.raises((BuilderError, VerifyException), match=message):
            misuse(bb, x)
        bb.emit_func_output(x)
    verify_module(bb.get())


def test_ends_of_functions():
    bb = BlockBuilder()
    with pytest.raises(BuilderError, match="function f has no result"), bb.function("f", {"x": ("n",)}):
        pass
    with bb.function("f", {"x": ("n",)}) as (x,):
        bb.emit_func_output(x)
        with pytest.raises(BuilderError, match=r"function f has ended with 'relax\.return' already"):
            op.exp(x)
        with pytest.raises(BuilderError, match="has ended"):
            bb.emit_func_output(x)
    with pytest.raises(BuilderError, match="there is a function @f already"), bb.function("f"):
        pass
    with bb.function("g", {"x": ("n",)}) as (x,):
        with bb.dataflow(), pytest.raises(BuilderError, match="after its inner scopes have ended"):
            bb.emit_func_output(x)
        bb.emit_func_output(x)
    assert len(bb.get().ops) == 2


def test_outside_of_functions():
    bb = BlockBuilder()
    with pytest.raises(BuilderError, match="no function is open"):
        bb.const(1)
    with pytest.raises(BuilderError, match="no function is open"):
        op.zeros([2], "f32")


def test_an_error_leaves_nothing_behind():
    bb = BlockBuilder()
    with pytest.raises(ZeroDivisionError), bb.function("main", {"x": ("n",)}):
        raise ZeroDivisionError
    with bb.function("main", {"x": ("n",)}) as (x,):
        bb.emit_func_output(x)
    assert len(bb.get().ops) == 1
