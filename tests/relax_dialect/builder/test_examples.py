"""The builder gives the programs that the example texts give."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from lowering.verify import verify_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import ShapeType
from tests.support.structure import assert_same_program
from tir_dialect import te
from tir_dialect.ops.function import PrimFuncOp

EXAMPLES = Path(__file__).parents[3] / "examples"


def exp_kernel(name: str, *shape: str) -> PrimFuncOp:
    x = te.placeholder(shape, "f32", "X")
    return te.create_prim_func([x, te.compute(shape, lambda *i: te.exp(x[i]), "exp")], name)


def user_facing(text: ModuleOp) -> ModuleOp:
    bb = BlockBuilder()
    bb.add_func(exp_kernel("tir_exp_func", "n"))
    with bb.function("relax_func", {"x": ("n", "k"), "w": tensor()}, pure=False) as (x, w):
        with bb.dataflow():
            product = x @ bb.match_cast(w, ("k", "m"))
            flat = op.flatten(product)
            gv0 = bb.emit_output(bb.call_tir("tir_exp_func", [flat], ("n * m",)))
        bb.call_packed("custom_inplace_update", gv0)
        bb.emit_func_output(gv0)
    return bb.get()


def cross_level(text: ModuleOp) -> ModuleOp:
    bb = BlockBuilder()
    bb.add_func(next(func for func in text.ops if isinstance(func, PrimFuncOp)))
    with bb.function("relax_func", {"x": ("m", "n"), "y": ("n", "k")}, pure=False) as (x, y):
        with bb.dataflow():
            gv0 = bb.emit_output(bb.call_tir("tir_matmul", [x, y], ("m", "k")))
        bb.call_packed("custom_print", gv0)
        gv1 = bb.call_packed("custom_add", gv0, gv0, out=("m", "k"))
        bb.emit_func_output(bb.call_dps_packed("custom_tile", [gv1], ("m", "2 * k")))
    return bb.get()


def mvp(text: ModuleOp) -> ModuleOp:
    bb = BlockBuilder()
    kernel = exp_kernel("tirexp", "n1", "m1")
    with bb.function("myfunc", {"x": ("n", "m")}) as (x,):
        with bb.dataflow():
            gv0 = bb.emit_output(op.flatten(bb.call_tir(kernel, [x], ("n", "m"))))
        bb.emit_func_output(gv0)
    return bb.get()


def data_dependent(text: ModuleOp) -> ModuleOp:
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        with bb.dataflow():
            (values,) = op.unique(x)
            gv0 = bb.emit_output(op.exp(bb.match_cast(values, ("m",))))
        bb.emit_func_output(gv0)
    return bb.get()


def shape_function(text: ModuleOp) -> ModuleOp:
    bb = BlockBuilder()
    with bb.function("shape_example", {"x": ("n", 2, 2)}) as (x,):
        with bb.dataflow():
            lv1 = op.flatten(op.reshape(x, ["n", 4]))
            lv3 = bb.call_pure_packed("myshape_func", op.shape(["4 * n"]), out=ShapeType([None]))
            lv4 = bb.call_dps_packed("custom_func", [lv1], (None,), shape=lv3)
            (lv5,) = op.unique(lv4)
            gv0 = bb.emit_output(op.exp(bb.match_cast(lv5, ("m",))))
        bb.emit_func_output(gv0)
    return bb.get()


def tensor_parallel(text: ModuleOp) -> ModuleOp:
    (func,) = (each for each in text.ops if isinstance(each, FuncOp))
    x, up, down = func.function_type.params
    bb = BlockBuilder()
    with bb.function("main", {"x": x, "up": up, "down": down}) as (x, up, down):
        bb.emit_func_output(bb.emit(op.nn.gelu(x @ up) @ down + x))
    return bb.get()


BUILT = {
    build.__name__: build for build in (user_facing, cross_level, mvp, data_dependent, shape_function, tensor_parallel)
}


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} == set(BUILT)


@pytest.mark.parametrize("name", BUILT)
def test_builder_gives_the_text(name: str):
    text = parse_module((EXAMPLES / f"{name}.mlir").read_text())
    built = BUILT[name](text)
    verify_module(built)
    assert_same_program(built, text)
