"""What is known about shapes held in tensors is what the interpreter computes."""

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.analysis.shape_values import ShapeValues
from relax_dialect.interpreter import run
from relax_dialect.ops.structure import FuncOp
from tests.support.programs import IDENTICAL, check_pass, run_everywhere

SIZES = {"n": 5, "m": 3}

BODIES = {
    "take": "%i = relax.constant dense<[1, -1]> : tensor<2xi64> %r = relax.take %t, %i axis = 0",
    "take_clip": '%i = relax.constant dense<[7, -9]> : tensor<2xi64> %r = relax.take %t, %i axis = -1 mode = "clip"',
    "take_wrap": '%i = relax.constant dense<[7, -9]> : tensor<2xi64> %r = relax.take %t, %i axis = 0 mode = "wrap"',
    "gather_elements": "%i = relax.constant dense<[2, 0, 1]> : tensor<3xi64> %r = relax.gather_elements %t, %i",
    "gather_nd": "%i = relax.constant dense<[[2], [0]]> : tensor<2x1xi64> %r = relax.gather_nd %t, %i",
    "gather_nd_whole": """%i = relax.constant dense<0> : tensor<1x0xi64> %g = relax.gather_nd %t, %i
        %r = relax.squeeze %g axes = [0]""",
    "slice": "%r = relax.strided_slice %t axes = [0] begin = [-1] end = [-9223372036854775808] strides = [-1]",
    "dynamic_slice": """%b = relax.constant dense<1> : tensor<1xi64> %e = relax.constant dense<9> : tensor<1xi64>
        %s = relax.constant dense<1> : tensor<1xi64> %r = relax.dynamic_strided_slice %t, %b, %e, %s""",
    "concat": "%c = relax.constant dense<[8, -1]> : tensor<2xi64> %r = relax.concat %t, %c axis = 0",
    "stack": "%s = relax.stack %t, %t axis = 1 %r = relax.flatten %s",
    "split": "%a, %b = relax.split %t indices = [1] axis = 0 %r = relax.concat %b, %a axis = 0",
    "views": "%a = relax.expand_dims %t axes = [0] %b = relax.permute_dims %a %r = relax.squeeze %b axes = [1]",
    "broadcast": "%s = relax.shape [2, 3] %b = relax.broadcast_to %t, %s %r = relax.flatten %b",
    "flip": "%r = relax.flip %t axis = 0",
    "tile": "%r = relax.tile %t repeats = [2]",
    "repeat": "%r = relax.repeat %t repeats = 2 axis = 0",
    "arithmetic": "%a = relax.add %t, %t %b = relax.multiply %a, %t %c = relax.subtract %b, %t %r = relax.negative %c",
    "divide": "%c = relax.constant dense<[2, 3, 7]> : tensor<3xi64> %r = relax.divide %t, %c",
    "divide_constants": """%a = relax.constant dense<[-7, 7, -7]> : tensor<3xi64>
        %b = relax.constant dense<[2, -2, -2]> : tensor<3xi64> %r = relax.divide %a, %b""",
    "floor_divide": "%c = relax.constant dense<[2, 3, 7]> : tensor<3xi64> %r = relax.floor_divide %t, %c",
    "modulo": "%c = relax.constant dense<[2, 3, 7]> : tensor<3xi64> %r = relax.floor_mod %t, %c",
    "power": "%c = relax.constant dense<[2, 0, 1]> : tensor<3xi64> %r = relax.power %t, %c",
    "extremes": """%c = relax.constant dense<[2, 3, 7]> : tensor<3xi64> %a = relax.maximum %t, %c
        %b = relax.minimum %a, %t %r = relax.abs %b""",
    "where": """%c = relax.constant dense<[-1, 3, -1]> : tensor<3xi64> %z = relax.constant dense<-1> : tensor<i64>
        %e = relax.equal %c, %z %r = relax.where %e, %t, %c""",
    "logic": """%z = relax.constant dense<0> : tensor<i64> %a = relax.greater_equal %t, %z %b = relax.less %t, %z
        %c = relax.logical_or %a, %b %d = relax.logical_not %c %e = relax.logical_and %c, %c
        %f = relax.logical_and %d, %e %r = relax.astype %f dtype = i64""",
    "sum": "%r = relax.sum %t keepdims",
    "prod": "%r = relax.prod %t axes = [0] keepdims",
    "max": "%s = relax.stack %t, %t axis = 1 %r = relax.max %s axes = [1]",
    "float": """%f = relax.astype %t dtype = f32 %c = relax.constant dense<2.0> : tensor<f32> %d = relax.multiply %f, %c
        %e = relax.divide %d, %c %g = relax.floor %e %r = relax.astype %g dtype = i64""",
    "arange": """%a = relax.prim n %b = relax.prim n + 3 %c = relax.prim 1 %r = relax.arange %a, %b, %c""",
    "full": "%s = relax.shape [2] %v = relax.prim n + 1 %r = relax.full %s, %v",
    "ones": "%s = relax.shape [2] %r = relax.ones %s dtype = i64",
    "size": "%v = relax.size %x %s = relax.shape [1] %r = relax.full %s, %v",
    "shape_get": "%s = relax.shape_of %x %v = relax.shape_get %s[1] %w = relax.shape [1] %r = relax.full %w, %v",
}


def program(body: str) -> str:
    return f"""
    relax.func @main[%n, %m](%x: !relax.tensor<[n, 2 * m, 4], f32>) -> !relax.object {{
      %shape = relax.shape_of %x
      %t = relax.shape_to_tensor %shape
      {body}
      relax.return %r
    }}
    """


def argument(n: int, m: int) -> np.ndarray:
    return np.zeros((n, 2 * m, 4), np.float32)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_values_are_those_of_the_interpreter(body: str):
    module = parse_module(program(body))
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    terminator = func.body.block.last_op
    assert terminator is not None
    dims = ShapeValues().known_dims(terminator.operands[0])
    assert dims is not None
    assert [dim.evaluate(SIZES) for dim in dims] == run(module, "main", [argument(**SIZES)]).tolist()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_folding_keeps_values(body: str):
    module = check_pass(program(body), "fold-shape-computations", [[argument(n, m)] for n in (1, 5) for m in (1, 3)])
    left = {op.name for op in module.walk()} - {"builtin.module", "relax.func", "relax.return"}
    assert left <= {"relax.shape_of", "relax.shape", "relax.shape_to_tensor", "relax.constant"}


def test_what_is_not_known_is_not_known():
    module = parse_module(
        """
        relax.func @main[%n](%x: !relax.tensor<[n], i64>, %v: !relax.tensor<[2], i64>) -> !relax.object {
          %c = relax.constant dense<3> : tensor<1xi64>
          %0 = relax.concat %v, %c axis = 0
          %1 = relax.tensor_to_shape %0
          relax.return %1
        }
        """
    )
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    values = ShapeValues()
    *_, shape, _ = func.body.block.ops
    dims = values.dims(shape.results[0])
    assert dims is not None
    assert [dim is None for dim in dims] == [True, True, False]
    assert values.known_dims(shape.results[0]) is None
    assert values.elements(func.params[0]) is None


def test_reductions_of_no_elements():
    module = parse_module(
        """
        relax.func @main() -> !relax.object {
          %s = relax.shape [2, 0]
          %z = relax.zeros %s dtype = i64
          %0 = relax.prod %z axes = [1]
          relax.return %0
        }
        """
    )
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    *_, total, _ = func.body.block.ops
    elements = ShapeValues().elements(total.results[0])
    assert elements is not None
    assert [str(each) for each in elements.reshape(-1)] == ["1", "1"]


def test_long_chains_need_no_deep_stack():
    steps = "\n".join(f"%{i + 1} = relax.add %{i}, %c" for i in range(5_000))
    module = parse_module(
        program(f"%c = relax.constant dense<1> : tensor<i64> %0 = relax.add %t, %c {steps} %r = relax.add %5000, %c")
    )
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    terminator = func.body.block.last_op
    assert terminator is not None
    assert str(ShapeValues().dims(terminator.operands[0])) == "(Dim('n + 5002'), Dim('2 * m + 5002'), Dim('5006'))"


EDGES = {
    "wraps": """%a = relax.constant dense<[2147483647, -2147483648]> : tensor<2xi32>
        %b = relax.constant dense<[1, -1]> : tensor<2xi32> %r = relax.add %a, %b""",
    "quotient": """%a = relax.constant dense<[-2147483648, 7]> : tensor<2xi32>
        %b = relax.constant dense<[-1, -2]> : tensor<2xi32> %r = relax.divide %a, %b""",
    "wide_quotient": """%a = relax.constant dense<-9223372036854775808> : tensor<1xi64>
        %b = relax.constant dense<-1> : tensor<1xi64> %r = relax.divide %a, %b""",
    "magnitude": "%a = relax.constant dense<-9223372036854775808> : tensor<1xi64> %r = relax.abs %a",
    "below_zero": """%a = relax.constant dense<[0, 1]> : tensor<2xui32>
        %b = relax.constant dense<[1, 1]> : tensor<2xui32> %r = relax.subtract %a, %b""",
    "large": """%a = relax.constant dense<[18446744073709551615, 1]> : tensor<2xui64>
        %b = relax.constant dense<[1, 3]> : tensor<2xui64> %r = relax.add %a, %b""",
    "narrowed": "%a = relax.constant dense<[4294967296, -1]> : tensor<2xi64> %r = relax.astype %a dtype = i32",
    "saturated": "%a = relax.constant dense<[1.0e20, -4.0e9]> : tensor<2xf32> %r = relax.astype %a dtype = i32",
    "rounded": """%a = relax.constant dense<[16777217, 3]> : tensor<2xi64> %f = relax.astype %a dtype = f32
        %r = relax.astype %f dtype = i64""",
    "sum": """%a = relax.constant dense<[2147483647, 5]> : tensor<2xi32> %r = relax.sum %a keepdims""",
    "prod": """%a = relax.constant dense<[65536, 65536]> : tensor<2xi32> %r = relax.prod %a keepdims""",
    "power": """%a = relax.constant dense<[10, -2]> : tensor<2xi32> %b = relax.constant dense<[16, 15]> : tensor<2xi32>
        %r = relax.power %a, %b""",
    "negative_zero": """%a = relax.constant dense<[-0.0, 0.0]> : tensor<2xf32> %b = relax.negative %a
        %one = relax.constant dense<1.0> : tensor<2xf32> %r = relax.divide %one, %b""",
    "ranges": """%a = relax.prim 2147483647 %b = relax.prim 2147483650 %c = relax.prim 1
        %r = relax.arange %a, %b, %c dtype = i32""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("body", EDGES.values(), ids=EDGES.keys())
def test_what_a_dtype_does_not_hold(body: str):
    """Numbers that wrap around, are rounded or cut off are the interpreter's, in every mode."""
    text = f"relax.func @main() -> !relax.object {{ {body} relax.return %r }}"
    check_pass(text, "fold-shape-computations", [()], tolerance=IDENTICAL)
    run_everywhere(text, "main", [], IDENTICAL)
