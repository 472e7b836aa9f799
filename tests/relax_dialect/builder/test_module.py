"""The module that is built: functions once, names, look-ups, locations."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, NameLoc
from xdsl.utils.exceptions import VerifyException

from lowering.locations import source_position
from lowering.parsing import parse_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import BuilderError, op, tensor
from relax_dialect.ops.joining import SplitOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.unary import ExpOp
from tests.support.structure import assert_same_program
from tir_dialect import te
from tir_dialect.ops.function import PrimFuncOp


def kernel(name: str, *shape: str | int, factor: float = 2) -> PrimFuncOp:
    x = te.placeholder(shape, "f32", "X")
    return te.create_prim_func([x, te.compute(shape, lambda *i: x[i] * factor, "y")], name)


def identity(bb: BlockBuilder, name: str = "main") -> None:
    with bb.function(name, {"x": ("n",)}) as (x,):
        bb.emit_func_output(x)


def test_functions_are_added_once():
    bb = BlockBuilder()
    names = [
        bb.add_func(func)
        for func in (
            kernel("f", "n", 4),
            kernel("g", "m", 4),
            kernel("f", "n", 4, factor=3),
            kernel("f", 4, "n"),
            kernel("f", "n", "m"),
            kernel("h", "m", "n"),
        )
    ]
    assert names == ["f", "f", "f_1", "f_2", "f_3", "f_3"]
    assert bb.add_func(kernel("k", "n"), "given") == "given"
    identity(bb)
    main = bb.lookup("main")
    assert isinstance(main, FuncOp)
    assert bb.add_func(main.clone(), "copy") == "main"


def test_a_wrong_function_is_not_added():
    bb = BlockBuilder()
    func = kernel("f", "n")
    for inner in list(func.body.block.ops):
        inner.detach()
    func.body.block.erase_arg(func.body.block.args[0], safe_erase=False)
    with pytest.raises(VerifyException):
        bb.add_func(func)
    assert bb.lookup("f") is None


def test_functions_are_replaced():
    bb = BlockBuilder()
    bb.add_func(kernel("f", "n"))
    bb.update_func("f", kernel("other", "n", factor=3))
    assert bb.add_func(kernel("g", "n", factor=3)) == "f"
    assert bb.add_func(kernel("g", "n")) == "g"
    with pytest.raises(BuilderError, match="no function @h to be updated"):
        bb.update_func("h", kernel("h", "n"))
    assert [func.sym_name.data for func in bb.get().ops if isinstance(func, PrimFuncOp)] == ["f", "g"]


def test_names_and_lookups():
    bb = BlockBuilder()
    identity(bb)
    assert bb.get_unique_name("main") == "main_1"
    assert bb.lookup("main") is not None
    assert bb.lookup("other") is None
    with bb.function("other", {"x": ("n",)}) as (x,):
        y = op.exp(x)
        assert bb.lookup("other") is None
        assert bb.lookup_binding(x) is None
        binding = bb.lookup_binding(y)
        assert binding is not None
        assert binding.name == "relax.exp"
        bb.emit_func_output(bb.emit(y, "result"))
    assert "%result = relax.exp %x" in str(bb.get())


def test_emit_takes_ops():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n",)}) as (x,):
        y = bb.emit(ExpOp(x.value))
        with pytest.raises(BuilderError, match="is in a block already"):
            bb.insert(y.value.owner)
        with pytest.raises(BuilderError, match="expected one result to be used as a value, got 2"):
            bb.emit(SplitOp(x.value, sections=2))
        first, _ = bb.results(bb.insert(SplitOp(x.value, sections=2)))
        bb.emit_func_output((y, first))
    bb.get()


def test_get_leaves_the_builder_open_and_finalize_empties_it():
    bb = BlockBuilder()
    identity(bb, "f")
    first = bb.get()
    identity(bb, "g")
    second = bb.finalize()
    assert (len(first.ops), len(second.ops)) == (1, 2)
    assert len(bb.finalize().ops) == 0


def test_a_module_can_be_extended():
    text = "relax.func @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { relax.return %x }"
    module = parse_module(text)
    bb = BlockBuilder(module)
    with bb.function("main", {"x": (3,)}) as (x,):
        y = bb.call("f", x)
        assert y.type == tensor((3,))
        bb.emit_func_output(y)
    with pytest.raises(BuilderError, match="there is a function @f already"):
        identity(bb, "f")
    assert bb.finalize() is module
    assert len(module.ops) == 2


def test_wrong_modules_are_not_given():
    bb = BlockBuilder()
    bb.declare("missing", {"x": ("n",)}, ("n",))
    with bb.function("main", {"x": ("n",)}) as (x,):
        bb.emit_func_output(bb.call("missing", x))
    with pytest.raises(VerifyException, match="@missing is not defined"):
        bb.finalize()


def test_locations_are_those_of_the_caller():
    bb = BlockBuilder(locations=True)
    with bb.function("main", {"x": ("n",)}) as (x,):
        y = x + 1
        with bb.at("layer1/conv"):
            z = op.nn.relu(y)
        bb.emit_func_output(z)
    add, relu = bb.lookup_binding(y), bb.lookup_binding(z)
    assert add is not None
    assert relu is not None
    here = source_position(add.location)
    assert here.filename == __file__
    assert "y = x + 1" in Path(__file__).read_text().splitlines()[here.line - 1]
    assert isinstance(relu.location, NameLoc)
    assert source_position(relu.location).name == "layer1/conv"
    func = bb.lookup("main")
    assert func is not None
    assert isinstance(func.location, FileLineColLoc)


def test_built_programs_do_not_depend_on_locations():
    with_locations, without = BlockBuilder(locations=True), BlockBuilder()
    modules: list[ModuleOp] = []
    for bb in (with_locations, without):
        identity(bb)
        modules.append(bb.get())
    assert_same_program(*modules)
