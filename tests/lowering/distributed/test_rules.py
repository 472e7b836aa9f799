"""The rules of operator families: which dimensions of operands and results each operator lets workers share."""

import re
from functools import cache
from pathlib import Path

import pytest
from xdsl.ir import Operation

from lowering.distributed.factors import FILES, RULES, Factors, Labels, factors_of
from lowering.parsing import parse_module
from relax_dialect.index import OPERATORS
from relax_dialect.loading import family_ops
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from tests.operators.support import function

FOLDER = Path(__file__).parents[3] / "lowering" / "distributed" / "rules"


def tensor(dims: str, dtype: str = "f32") -> str:
    return f"!relax.tensor<[{dims}], {dtype}>"


CASES: dict[str, tuple[list[str], str, str]] = {}


def case(rules: str, shares: str, op: str, *operands: str) -> None:
    """An op on operands of such types, by the numbers of its rules."""
    CASES[rules] = (list(operands), op, shares)


MATRIX, CUBE, IMAGE = tensor("n, m"), tensor("n, m, 4"), tensor("n, 6, 8, 8")
NUMBERS = tensor("n", "i64")

case("B1 ", "(d0 d1) -> (d0 d1)", "relax.nn.relu %a", MATRIX)
case("A2", "(b0 d0, d0) -> (b0 d0)", "relax.nn.prelu %a, %b axis = 1", MATRIX, tensor("m"))
case("A3", "(d0 _) -> (d0 _)", "relax.nn.softmax %a", MATRIX)
case("MC1", "(d0 d1) -> (d0 d1, )", "%y, %k = relax.match_cast %a : !relax.tensor<[k, m], f32> binds [k]", MATRIX)
case("CT1 CT2", "(d0 d1, d1) -> (d0), d1 by sum", "relax.call_tir @product(%a, %b) : !relax.tensor<[n], f32>", MATRIX,
     tensor("m"))  # fmt: skip
case("CT3", "(d0, _ d0) -> (_ d0)", "relax.call_tir_inplace @keep(%a, %b) inplace [1] : !relax.tensor<[k, m], f32>",
     tensor("m"), tensor("k, m"))  # fmt: skip
case("X1", "(_ d0, i0) -> (i0 d0)", "relax.index_tensor %a, %b", MATRIX, tensor("k", "i64"))
case("X2", "(_ d0, _ d0, _) -> (_ d0)", "relax.index_put %a, %b, %c", MATRIX, tensor("k, m"), tensor("k", "i64"))
case("X3", "(_ d1, _ d1) -> (_ d1)", "relax.slice_scatter %a, %b start = 0 end = 2", tensor("5, m"), tensor("2, m"))
case("T1 T2 T3", "(b q h _, b _ h _, b _ h _) -> (b q h _)", "relax.nn.attention %a, %b, %c",
     tensor("n, m, 4, 8"), tensor("n, k, 4, 8"), tensor("n, k, 4, 8"))  # fmt: skip
case("T1 T2 T3 ", "(b q h _, b _ h _, b _ h _, h) -> (b q h _)", "relax.nn.attention %a, %b, %c, %d",
     tensor("n, m, 4, 8"), tensor("n, k, 4, 8"), tensor("n, k, 4, 8"), tensor("4"))  # fmt: skip
case("B1", "(d0 d1, d1) -> (d0 d1)", "relax.add %a, %b", MATRIX, tensor("m"))
case("A2 ", "(b0 _, _) -> (b0 _)", "relax.nn.prelu %a, %b axis = 1", MATRIX, tensor("k"))  # or one slope for all
case("V1 V2", "(n c _ _, o c _ _) -> (n o _ _), c by sum", "relax.nn.conv2d %a, %b", IMAGE, tensor("4, 6, 3, 3"))
case("V1", "(n _ _ _, _ _ _ _) -> (n _ _ _)", "relax.nn.conv2d %a, %b groups = 2", IMAGE, tensor("4, 3, 3, 3"))
case("V2", "(n c _ _, c o _ _) -> (n o _ _), c by sum", "relax.nn.conv2d_transpose %a, %b", IMAGE,
     tensor("6, 4, 3, 3"))  # fmt: skip
case("C1", "() -> ()", "relax.zeros_like %a", tensor(""))
case("C2", "(d0 _ _) -> (d0 _ _)", "relax.tril %a", CUBE)
case("B1  ", "(d0 d1) -> (d0 d1)", "relax.astype %a dtype = f16", MATRIX)
case("DF1", "(n _ _ _, o _ _ _, n _ _ _, n _ _ _) -> (n o _ _)", "relax.nn.deform_conv2d %a, %b, %c, %d",
     IMAGE, tensor("4, 6, 3, 3"), tensor("n, 18, 6, 6"), tensor("n, 9, 6, 6"))  # fmt: skip
case("DF2", "(n _ _, ) -> (n _ _ _)", "relax.nn.col2im %a, %b window = [2, 2]",
     tensor("n, 8, 9"), "!relax.shape<[4, 4]>")  # fmt: skip
case("DT1", "(n _ _) -> (n, n _ _, n _)", "%e, %f, %g = relax.vision.get_valid_counts %a", tensor("n, 5, 6"))
case("G1", "(_ d1, i d1) -> (i d1)", "relax.gather_elements %a, %b", MATRIX, tensor("k, m", "i64"))
case("G2", "(b0 _ d0, b0 i0 _) -> (b0 i0 d0)", "relax.gather_nd %a, %b batch_dims = 1", CUBE, tensor("n, k, 1", "i64"))
case("G3", "(_ d1, _ d1, _ d1) -> (_ d1)", "relax.scatter_elements %a, %b, %c", MATRIX, tensor("k, m", "i64"),
     tensor("k, m"))  # fmt: skip
case("G4", "(_ d0, _ _, _ d0) -> (_ d0)", "relax.scatter_nd %a, %b, %c", MATRIX, tensor("k, 1", "i64"), tensor("k, m"))
case("G5", "(i0, , ) -> (i0 _)", "relax.one_hot %a, %b, %c depth = 5", NUMBERS, "!relax.prim<f32>", "!relax.prim<f32>")
case("GR1", "(n c _ _, n c _ _) -> (n c _ _)", "relax.grad.max_pool2d_backward %a, %b pool_size = [2, 2]",
     IMAGE, tensor("n, 6, 7, 7"))  # fmt: skip
case("IM1", "(n c _ _, ) -> (n c _ _)", "relax.image.resize2d %a, %b", IMAGE, "!relax.shape<[4, 4]>")
case("I1 I3", "(d0 k, i0) -> (d0 i0), k by sum", "relax.take %a, %b axis = 1", MATRIX, tensor("k", "i64"))
case("I2", "(d0 _) -> (d0 _)", "relax.strided_slice %a axes = [1] begin = [0] end = [2]", tensor("n, 4"))
case("J1", "(d0 _, d0 _) -> (d0 _)", "relax.concat %a, %b axis = 1", MATRIX, MATRIX)
case("J2", "(d0 d1, d0 d1) -> (d0 _ d1)", "relax.stack %a, %b axis = 1", MATRIX, MATRIX)
case("J3", "(d1 _) -> (_ d1 _)", "relax.tile %a repeats = [2, 1, 3]", MATRIX)
case("Y1", "(d0 d1) -> (d0 d1)", "relax.nn.dropout %a", MATRIX)
case("Y2", "(n _ _) -> (n _)", "relax.nn.batch_flatten %a", CUBE)
case("Y3", "(d0 _ _ _) -> (d0 _ _ _)", "relax.nn.pixel_shuffle %a upscale_factor = 2", tensor("n, 8, 4, 4"))
case("L1 L2", "(b0 i k, b0 k j) -> (b0 i j), k by sum", "relax.matmul %a, %b", CUBE, tensor("n, 4, k"))
case("L3", "(i, j) -> (i j)", "relax.outer %a, %b", tensor("n"), tensor("m"))
case("L4", "(a b, b) -> (a), b by sum", 'relax.einsum %a, %b subscripts = "ab,b->a"', MATRIX, tensor("m"))
case("M1", "(d0 d1) -> (d1 d0)", "relax.permute_dims %a", MATRIX)
case("M2", "(d0 d1, ) -> (d0 d1 _)", "%s = relax.shape [n, 2, 3]; relax.reshape %a, %s", tensor("n, 6"))
case("M3", "(d1, ) -> (d0 d1)", "%s = relax.shape [3, n]; relax.broadcast_to %a, %s", tensor("n"))
case("M4", "(d0 _) -> (d0 _)", "relax.flip %a axis = 1", MATRIX)
case("N1", "(d0 _, _) -> (d0 _)", "relax.nn.rms_norm %a, %b axes = [-1]", MATRIX, tensor("m"))
case("N2", "(d0 _ _ _, _, _) -> (d0 _ _ _)", "relax.nn.group_norm %a, %b, %c num_groups = 2 channel_axis = 1 "
     "axes = [2, 3]", IMAGE, tensor("6"), tensor("6"))  # fmt: skip
case("PD1", "(d0 _) -> (d0 _)", "relax.nn.pad %a pad_width = [0, 0, 1, 1]", MATRIX)
case("P1", "(n c _ _) -> (n c _ _)", "relax.nn.max_pool2d %a pool_size = [2, 2]", IMAGE)
case("Q1", "(d0 d1, d1, ) -> (d0 d1)", "relax.quantize %a, %b, %c axis = 1 dtype = i8", MATRIX, tensor("m"),
     tensor("", "i8"))  # fmt: skip
case("Q2", "(d0 d1) -> (d0 d1)", 'relax.dequantize_blocks %a format = "q4_1"', tensor("n, 20", "ui8"))
case("E1", "(d0 _ d2, d0) -> (d0 _ d2)", "relax.reverse_sequence %a, %b", CUBE, NUMBERS)
case("E2", "(d0, d1) -> (d1 d0, d1 d0)", '%e, %f = relax.meshgrid %a, %b indexing = "xy"', tensor("n"), tensor("m"))
case("E3", "(N _ H W) -> (N _ H W _)", 'relax.layout_transform %a source = "NCHW" target = "NCHW2c"', IMAGE)
case("E4", "(_ _, n _, n _) -> (n _)", "relax.multinomial_from_uniform %a, %b, %c", tensor("3, 4"), tensor("n, 1"),
     tensor("n, 1", "i64"))  # fmt: skip
case("RC1", "(_ n _, _ _ _, _ _ _, _ _, n, _ n _) -> (_ _ n _, _ n _)", "%y, %h = relax.nn.gru %a, %b, %c, %d, %e, %f",
     tensor("k, n, 4"), tensor("1, 6, 4"), tensor("1, 6, 2"), tensor("1, 12"), tensor("n", "i64"),
     tensor("1, n, 2"))  # fmt: skip
case("R1 R2", "(d0 d1) -> (d0), d1 by max", "relax.max %a axes = [1]", MATRIX)
case("R3", "(d0 _) -> (d0 _)", "relax.cumsum %a axis = 1", MATRIX)
case("Z1", "(d0 _) -> (d0 _)", "relax.image.resize1d %a length = 5", tensor("n, 4"))
case("SM1", "(n c _ _, n s0 s1 _) -> (n c s0 s1)", "relax.image.grid_sample %a, %b", IMAGE, tensor("n, 3, 4, 2"))
case("SM2", "(n _ _, ) -> (n _ _ _)", "relax.image.affine_grid %a, %b", tensor("n, 2, 3"), "!relax.shape<[4, 4]>")
case("S1", "(d0 d1, d0 d1, d1) -> (d0 d1)", "relax.where %a, %b, %c", tensor("n, m", "i1"), MATRIX, tensor("m"))
case("S2 S4", "(d0 k) -> (d0)", "relax.argmax %a axis = 1", MATRIX)
case("S3", "(d0 d1, _) -> (d0 d1)", "relax.bucketize %a, %b", MATRIX, tensor("5"))
case("O1", "(d0 _) -> (d0 _, d0 _)", "%e, %f = relax.topk %a k = 2", tensor("n, 4"))
case("B1   ", "(d0 d1) -> (d0 d1)", "relax.exp %a", MATRIX)
case("N3", "(d0 d1 d2 d3, d1, d1, d1, d1) -> (d0 d1 d2 d3)", "relax.nn.batch_norm %a, %b, %c, %d, %e axis = 1", IMAGE,
     *[tensor("6")] * 4)  # fmt: skip
case("RV1", "(_ c _ _, r _, r) -> (r c _ _)", "relax.vision.roi_align %a, %b, %c height = 2 width = 2", IMAGE,
     tensor("k, 4"), tensor("k", "i64"))  # fmt: skip


PRODUCT = """tir.prim_func @product[%n, %m](%X: !tir.buffer<[n, m], f32>, %W: !tir.buffer<[m], f32>,
    %Y: !tir.buffer<[n], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "product" (%vi = spatial %i in %n, %vj = reduce %j in %m) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %Y[%vi]
      }
      %x = tir.load %X[%vi, %vj]
      %w = tir.load %W[%vj]
      %y = tir.load %Y[%vi]
      %s = math.fma %x, %w, %y : f32
      tir.store %s, %Y[%vi]
    }
  }
}
tir.prim_func @keep[%m, %k](%X: !tir.buffer<[m], f32>, %Y: !tir.buffer<[k, m], f32>) {
  tir.block "first" {
    tir.for (%j) in (%m) {
      tir.block "keep" (%vj = spatial %j in %m) {
        %first = arith.constant 0 : index
        %x = tir.load %X[%vj]
        tir.store %x, %Y[%first, %vj]
      }
    }
  }
}"""


@cache
def operators() -> dict[str, Operation]:
    """The op of each case, all of one module."""
    texts = [
        function(f"f{at}", ", ".join(f"%{name}: {info}" for name, info in zip("abcdef", operands, strict=False)), op)
        for at, (operands, op, _) in enumerate(CASES.values())
    ]
    functions = [op for op in parse_module("\n".join([PRODUCT, *texts])).ops if isinstance(op, FuncOp)]
    others = (ReturnOp, TupleOp)
    found = ([op for op in func.body.block.ops if not isinstance(op, others)] for func in functions)
    return {name: ops[-1] for name, ops in zip(CASES, found, strict=True)}


def as_text(factors: Factors) -> str:
    def values(labels: Labels) -> str:
        return " ".join(label or "_" for label in labels)

    operands, results = (", ".join(map(values, each)) for each in (factors.operands, factors.results))
    return "".join([f"({operands}) -> ({results})", *(f", {name} by {by}" for name, by in factors.reduced.items())])


@pytest.mark.parametrize("name", CASES)
def test_rule(name: str):
    factors = factors_of(operators()[name])
    assert factors is not None
    assert as_text(factors) == CASES[name][2]


def test_every_rule_has_a_case():
    rules = {rule for path in FOLDER.glob("*.py") for rule in re.findall(r"^([A-Z]+\d+): ", path.read_text(), re.M)}
    assert rules == {rule for name in CASES for rule in name.split()}


ALIKE = {
    "arange": "numbers from a start on",
    "eye": "without operands",
    "eye_like": "a diagonal is in one place only",
    "dynamic_strided_slice": "the result's dimensions are not known",
    "reinterpret": "bytes from an offset on",
    "nn.quantized_recurrence": "one scale for the whole batch",
    "vision.non_max_suppression": "the number of boxes is not known",
    "map_indices": "any map of indices",
    "random.uniform": "one sequence of numbers",
    "random.normal": "one sequence of numbers",
    "unique": "the number of values is not known",
    "nonzero": "the number of values is not known",
    "cosine_window": "a window of so many numbers",
}
"""Operators that all workers compute alike, and why."""


def test_every_operator_has_a_rule_or_a_reason():
    others = {"collective", "distributed"}  # what workers exchange
    families = " ".join(FILES.values()).split()
    without = {
        op.name.removeprefix("relax.")
        for family in OPERATORS.keys() - others
        for op in family_ops(family)
        if issubclass(op, Operator) and (family not in families or RULES[op] is None)
    }
    assert without == set(ALIKE)
