"""Tensors that workers share, and devices, as TVM's tests write them."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import parse
from relax_dialect.interpreter import run
from tests.support.programs import MODES, as_arguments, as_plain
from vm_dialect import VirtualMachine

KERNELS = """
    @T.prim_func
    def twice(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.sblock("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)

    @T.prim_func
    def half(x: T.Buffer((4, 3), "float32"), y: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(4, 3):
            with T.sblock("half"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)
"""


def module_of(body: str, meshes: str = "R.device_mesh((2,), I.Range(0, 2)), R.device_mesh((1,), [4])") -> ModuleOp:
    """The module of a function, whose text has the indentation of a class's body."""
    text = f"""@I.ir_module
class Module:
    I.module_attrs({{"device_num": 10}})
    I.module_global_infos({{"mesh": [{meshes}], "vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 1)]}})
{KERNELS}
    @R.function
{body}"""
    module = parse(text)
    assert str(parse_module(str(module))) == str(module)
    return module


X = np.arange(24, dtype=np.float32).reshape(4, 6)


def results(module: ModuleOp) -> list[object]:
    """What `main` gives of `X`, in every mode."""
    machines = [VirtualMachine(build(module.clone(), mode=mode)) for mode in MODES if mode != "interpret"]
    return [as_plain(run(module, "main", [X])), *(as_plain(each["main"](*as_arguments([X]))) for each in machines)]


def test_placements_change_no_value():
    """Neither does an exchange that stays with the worker."""
    module = module_of("""\
    def main(x: R.DTensor((4, 6), "float32", device_mesh="mesh[0]", placement="S[0]")):
        y: R.DTensor((4, 6), "float32", "mesh[0]", "R") = R.dist.redistribute(x, "mesh[0]", "R")
        z = R.dist.call_tir(Module.twice, y, R.DTensor((4, 6), "float32", "mesh[0]", "R"))
        part = R.dist.redistribute_replica_to_shard(z, num_workers=2, axis=1)
        one = R.dist.const(1.0, R.DTensor((), "float32", "mesh[1]", "R"))
        return R.ccl.allgather(R.ccl.allreduce(R.add(part, one), "max", in_group=False), 1)
    """)
    text = str(module)
    assert "device_meshes = {mesh = [{shape = [2 : i64], devices = [0 : i64, 1 : i64]}, {shape = [1 : i64]" in text
    lines = [line.strip() for line in text.splitlines() if "relax.dist" in line or "relax.ccl" in line]
    assert [line.partition(" = ")[2].split("%")[0] for line in lines] == [
        "relax.dist.annotate_sharding ",
        "relax.dist.redistribute ",
        "relax.dist.annotate_sharding ",
        "relax.dist.redistribute ",
        "relax.dist.annotate_sharding ",
        "relax.ccl.allreduce ",
        "relax.ccl.allgather ",
    ]
    assert 'op_type = "max" all_groups' in text
    assert 'mesh = [2] placement = "S[1]"' in text
    np.testing.assert_array_equal(run(module, "main", [X]), 2 * X + 1)
    with pytest.raises(InvalidModule, match="has dimension 0 in 2 tiles for as many workers"):
        build(module)
    one = parse_module(text.replace("mesh = [2]", "mesh = [1]"))
    for found in results(one):
        np.testing.assert_array_equal(found, 2 * X + 1)


LOCAL = """\
    def main(x: R.DTensor((4, 6), "float32", "mesh[0]", "S[1]")) -> R.DTensor((4, 6), "float32", "mesh[0]", "S[1]"):
        cls = Module
        y: R.DTensor((4, 6), "float32", "mesh[0]", "S[1]") = R.dist.call_tir_local_view(
            cls.KERNEL, (x,), out_ty=R.DTensor((4, 6), "float32", "mesh[0]", "S[1]"))
        return y
"""


def test_functions_of_the_parts_of_one_worker():
    module = module_of(LOCAL.replace("KERNEL", "twice"), "R.device_mesh((1,), I.Range(0, 1))")
    for found in results(module):
        np.testing.assert_array_equal(found, 2 * X)


def test_functions_of_the_parts_of_several_workers():
    """Their shapes are checked; an error says why they do not run."""
    module = module_of(LOCAL.replace("KERNEL", "half"))
    assert "relax.call_tir @half(%gv_1) : !relax.tensor<[4, 3], f32>" in str(module)
    with pytest.raises(InvalidModule, match=r"' op has dimension 1 in 2 tiles"):
        build(module)
    with pytest.raises(ValueError, match="3 does not match 6"):
        module_of(LOCAL.replace("KERNEL", "twice"))


def test_parts_of_tensors():
    """Of a tensor that is no `R.DTensor`, the dimension is divided."""
    module = module_of("""\
    def main(x: R.Tensor((4, 6), "float32")):
        return R.dist.redistribute_replica_to_shard(x, num_workers=3, axis=1)
    """)
    assert "-> !relax.tensor<[4, 2], f32>" in str(module)
    with pytest.raises(ValueError, match="expected 3 workers, got 1"):
        results(module)


def test_devices():
    """The CPU's tensors are where they are; other devices stay in types."""
    module = module_of("""\
    def main(x: R.Tensor((4, 6), "float32"), y: R.Tensor((4, 6), "float32", "vdevice:1")):
        a: R.Tensor((4, 6), "float32") = R.to_vdevice(x, I.vdevice("llvm", 0, "global"))
        b = R.hint_on_device(R.to_vdevice(a, "vdevice:0"), R.cpu(0))
        return R.hint_on_device(b, R.device("cpu", 0))
    """)
    assert '%y: !relax.tensor<[4, 6], f32, "cuda:0">' in str(module)
    assert "relax.return %x" in str(module)


@pytest.mark.parametrize(
    ("parameter", "result"),
    [
        ('R.DTensor((4, 6), "float32", "mesh[0]", "S[0]")', 'R.Tensor((4, 6), "float32")'),
        ('R.Tensor((4, 6), "float32")', 'R.DTensor((4, 6), "float32", "mesh[0]", "S[0]")'),
    ],
    ids=["parameter that nobody uses", "result"],
)
def test_placements_in_signatures_are_not_lost(parameter: str, result: str):
    module = module_of(f"""\
    def main(x: {parameter}, y: R.Tensor((4, 6), "float32")) -> {result}:
        return R.exp(y)
""")
    assert "relax.dist.annotate_sharding" in str(module)
    for mode in MODES:
        if mode != "interpret":
            with pytest.raises(InvalidModule, match="has dimension 0 in 2 tiles for as many workers"):
                build(module.clone(), mode=mode)


@pytest.mark.parametrize("form", ["R.Tuple({0}, {1})", "R.Tuple([{0}, {1}])", "R.Tuple({1}, R.Tuple({0}, {1}))"])
def test_fields_of_a_result_are_placed(form: str):
    """What only the type of the result says is not lost."""
    tensor = 'R.DTensor((4, 6), "float32", "mesh[0]", "{0}")'
    returned = "(y, x)" if form.count("R.Tuple") == 1 else "(x, (y, x))"
    module = module_of(f"""\
    def main(x: R.Tensor((4, 6), "float32")) -> {form.format(tensor.format("S[1]"), tensor.format("R"))}:
        y = R.exp(x)
        return {returned}
""")
    said = [op.properties["placement"] for op in module.walk() if op.name == "relax.dist.annotate_sharding"]
    assert sorted(map(str, said))[-1] == '"S[1]"'
    with pytest.raises(InvalidModule, match="2 tiles for as many workers"):
        build(module)
