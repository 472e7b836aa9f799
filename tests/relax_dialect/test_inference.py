"""Inference at construction, the run-time checks that remain, and broadcasting against NumPy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f16, f32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from relax_dialect.inference import DimRelation, Inference
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.indexing import StridedSliceOp, slice_length
from relax_dialect.ops.joining import ConcatOp, SplitOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import BroadcastToOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.normalization import GroupNormOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import ExpOp
from relax_dialect.struct_info.types import TensorType
from tests.support.corpus import ROOT, valid_module
from tests.support.struct_info import info
from tir_dialect.dims import DimLike, Prover, constant, symbol, to_dim


def value(text: str) -> SSAValue:
    return create_ssa_value(info(text))


def test_constructors_infer():
    x = value("tensor<[n, 4], f32>")
    assert AddOp(ExpOp(x), x).result.type == info("tensor<[n, 4], f32>")
    assert [result.type for result in SplitOp(x, sections=2, axis=1).res] == [info("tensor<[n, 2], f32>")] * 2


def test_constructors_refuse():
    with pytest.raises(VerifyException, match=r"'relax.add' op dimensions 4 and 5 do not broadcast"):
        AddOp(value("tensor<[4], f32>"), value("tensor<[5], f32>"))


def test_inference_needs_no_op():
    types = [info("tensor<[n, k], f32>"), info("tensor<[k, m], f32>")]
    assert MatmulOp.infer_result_types(types) == (info("tensor<[n, m], f32>"),)
    assert MatmulOp.infer_result_types(types, {"out_dtype": f16}) == (info("tensor<[n, m], f16>"),)


def test_less_may_be_known_of_any_operand():
    """Of the operators of all frozen texts: what is right of tensors is not refused where less of these is known."""
    for file in sorted((ROOT / "tests" / "frozen_texts").glob("relax*.mlir")):
        module = valid_module(file.name, file.read_text())
        ops = [] if module is None else [op for op in module.walk() if isinstance(op, Operator)]
        for op in ops:
            types = op.operand_types
            tensors = [at for at, type_ in enumerate(types) if isinstance(type_, TensorType)]
            if op.name.startswith("relax.ccl."):
                tensors = tensors[:1]  # what was started has one type
            for erased in (tensors, *([at] for at in tensors)):
                for lesser in (_without_sizes, _without_rank, _without_rank_and_dtype):
                    op.infer_result_types(
                        [lesser(type_) if at in erased else type_ for at, type_ in enumerate(types)], op.properties
                    )


def _without_sizes(info: Attribute) -> Attribute:
    assert isinstance(info, TensorType)
    return info if info.dims is None else TensorType([None] * len(info.dims), info.dtype)


def _without_rank(info: Attribute) -> Attribute:
    assert isinstance(info, TensorType)
    return TensorType(None, info.dtype)


def _without_rank_and_dtype(_: Attribute) -> Attribute:
    return TensorType(None, None)


def test_default_properties_count():
    types = [info("tensor<[n], f32>"), info("tensor<[m], f32>")]
    assert ConcatOp.infer_result_types(types) == (info("tensor<[n + m], f32>"),)


@pytest.mark.parametrize(
    ("left", "right", "checks"),
    [
        ("tensor<[n, 4], f32>", "tensor<[n, 4], f32>", []),
        ("tensor<[n, 4], f32>", "tensor<[1, 4], f32>", []),
        ("tensor<[n], f32>", "tensor<[m], f32>", [(DimRelation.BROADCAST, "n", "m")]),
        ("tensor<[n], f32>", "tensor<[4], f32>", [(DimRelation.BROADCAST, "n", "4")]),
        ("tensor<[_], f32>", "tensor<[4], f32>", []),
    ],
)
def test_broadcast_checks(left: str, right: str, checks: list[tuple[DimRelation, str, str]]):
    found = AddOp(value(left), value(right)).runtime_checks()
    assert [(check.relation, str(check.left), str(check.right)) for check in found] == checks


def test_other_checks():
    matmul = MatmulOp(value("tensor<[n, k], f32>"), value("tensor<[m, 4], f32>"))
    assert [(c.relation, str(c.left), str(c.right)) for c in matmul.runtime_checks()] == [(DimRelation.EQUAL, "k", "m")]
    reshape = ReshapeOp(value("tensor<[n, 4], f32>"), value("shape<[m]>"))
    assert [(str(c.left), str(c.right)) for c in reshape.runtime_checks()] == [("4 * n", "m")]
    split = SplitOp(value("tensor<[n], f32>"), indices=[4])
    assert [(c.relation, str(c.left), str(c.right)) for c in split.runtime_checks()] == [
        (DimRelation.AT_MOST, "4", "n")
    ]
    squeeze = SqueezeOp(value("tensor<[n, 4], f32>"), [0])
    assert [(str(c.left), str(c.right)) for c in squeeze.runtime_checks()] == [("n", "1")]
    weights = value("tensor<[n], f32>")
    norm = GroupNormOp(value("tensor<[m, n], f32>"), weights, weights, 3, 1, [])
    assert [(str(c.left), str(c.right)) for c in norm.runtime_checks()] == [("mod(n, 3)", "0")]


def test_broadcast_to_checks_that_the_target_is_met():
    found = BroadcastToOp(value("tensor<[n], f32>"), value("shape<[m]>")).runtime_checks()
    assert [(c.relation, str(c.left), str(c.right)) for c in found] == [
        (DimRelation.BROADCAST, "n", "m"),
        (DimRelation.EQUAL, "broadcast(m, n)", "m"),
    ]


def test_bounds_prove_and_refute():
    left, right = info("tensor<[n], f32>"), info("tensor<[m], f32>")
    inference = Inference(AddOp, [left, right], {}, Prover({"n": (2, 3), "m": (4, 5)}))
    with pytest.raises(VerifyException, match="do not broadcast"):
        AddOp.infer(inference)
    inference = Inference(AddOp, [left, right], {}, Prover({"n": (1, 1)}))
    assert AddOp.infer(inference) == AddOp.infer_result_types([left, right])
    assert inference.checks == []


def test_wrong_number_of_operands_is_an_error_of_the_op():
    with pytest.raises(VerifyException, match=r"'relax.add' op expected at least 1 operands, got 0"):
        AddOp.infer_result_types([])


shapes = st.lists(st.integers(0, 3), max_size=3)


@given(shapes, shapes)
def test_broadcast_is_numpys(left: list[int], right: list[int]):
    types = [TensorType(left, f32), TensorType(right, f32)]
    try:
        expected = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        with pytest.raises(VerifyException, match="do not broadcast"):
            AddOp.infer_result_types(types)
    else:
        assert AddOp.infer_result_types(types) == (TensorType(expected, f32),)


@given(shapes, shapes)
def test_symbolic_broadcast_agrees_with_numbers(left: list[int], right: list[int]):
    """The type for symbols, at values that pass the run-time checks, is the type for these values."""
    names = [f"s{index}" for index in range(len(left) + len(right))]
    values = dict(zip(names, [*left, *right], strict=True))
    symbolic = [TensorType(names[: len(left)], f32), TensorType(names[len(left) :], f32)]
    inference = Inference(AddOp, symbolic, {})
    (result,) = AddOp.infer(inference)
    assume(all(_holds(check.left.evaluate(values), check.right.evaluate(values)) for check in inference.checks))
    assert result.dims is not None
    assert tuple(dim and dim.evaluate(values) for dim in result.dims) == np.broadcast_shapes(tuple(left), tuple(right))


def _holds(left: int, right: int) -> bool:
    return left == right or 1 in (left, right)


@given(st.integers(0, 12), st.integers(-15, 15), st.integers(-15, 15), st.integers(-4, 4).filter(bool))
def test_slice_length_is_pythons(length: int, begin: int, end: int, stride: int):
    found = slice_length(constant(length), constant(begin), constant(end), stride)
    assert found is constant(len(range(length)[begin:end:stride]))


@given(st.integers(0, 12), st.integers(-15, 15), st.integers(-15, 15), st.integers(-4, 4).filter(bool))
def test_slice_length_of_a_symbol(length: int, begin: int, end: int, stride: int):
    found = slice_length(symbol("n"), constant(begin), constant(end), stride)
    assert found is not None
    assert found.evaluate({"n": length}) == len(range(length)[begin:end:stride])


@pytest.mark.parametrize("end", [2**31, 2**63 - 1])
def test_slices_to_the_far_end(end: int):
    op = StridedSliceOp(value("tensor<[n], f32>"), [0], [0], [end])
    assert op.result.type == info("tensor<[n], f32>")


@given(st.integers(0, 20), st.integers(1, 6))
def test_split_sizes_add_up(length: int, sections: int):
    concrete = SplitOp(create_ssa_value(TensorType([length], i64)), sections=sections)
    sizes = [_size(result.type.dims) for result in concrete.res]
    assert sizes == [
        len(range(length)[i * -(-length // sections) :][: -(-length // sections)]) for i in range(sections)
    ]
    symbolic = SplitOp(value("tensor<[n], i64>"), sections=sections)
    assert [to_dim(_dim(result.type.dims)).evaluate({"n": length}) for result in symbolic.res] == sizes


def _dim(dims: object) -> DimLike:
    assert isinstance(dims, tuple)
    return dims[0]


def _size(dims: object) -> int:
    return to_dim(_dim(dims)).evaluate({})
