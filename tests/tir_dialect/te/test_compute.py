"""Computes and reductions: what is accepted, which tensors come out."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, f16, f32, i1, i32, i64
from xdsl.parser import Parser

from tir_dialect import te
from tir_dialect.ops.blocks import BlockOp

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), "f32", "A")
H = te.placeholder((n,), "f16", "H")


def blocks(func):
    return [op.block_name.data for op in func.walk() if isinstance(op, BlockOp)]


def test_axes_are_named_by_the_function():
    tensor = te.compute((n, m), lambda row, col: A[row, col] + 1, name="B")
    assert [axis.name for axis in tensor.source.axes] == ["row", "col"]
    tensor = te.compute((n, m), lambda *index: A[index] + 1)
    assert [axis.name for axis in tensor.source.axes] == ["i0", "i1"]


def test_wrong_number_of_variables():
    with pytest.raises(TypeError, match='"B" has rank 2, but its function takes 1 variables'):
        te.compute((n, m), lambda i: A[i, i], name="B")


def test_result_needs_a_dtype():
    numbers = te.compute((n,), lambda i: [0, 0.5, True, te.const(1, "i8")], name="B")
    assert [str(tensor.dtype) for tensor in numbers] == ["i32", "f32", "i1", "i8"]
    assert str(te.compute((n,), lambda i: i * 2 + n, name="B").dtype) == "i64"


@pytest.mark.parametrize("choose", [te.select, te.if_then_else])
def test_numbers_on_both_sides_of_a_choice_have_the_dtypes_of_tvm(choose):
    sides = [(1, 0, i32), (1, 0.5, f32), (True, False, i1), (True, 2, i32), (2.0, 3.0, f32)]
    for then, otherwise, dtype in sides:
        chosen = te.compute((n, n), lambda i, j, a=then, b=otherwise: choose(i > j, a, b))
        assert chosen.dtype == dtype


def test_several_outputs():
    plus, minus = te.compute((n,), lambda i: (A[i, 0] + 1, A[i, 0] > 1), name="B")
    assert (plus.name, plus.dtype, minus.name, minus.dtype) == ("B_v0", f32, "B_v1", i1)
    assert blocks(te.create_prim_func([A, plus, minus])) == ["B"]


def test_reduction_over_several_axes():
    r, s = te.reduce_axis(n, "r"), te.reduce_axis(m, "s")
    total = te.compute((), lambda: te.sum(A[r, s], [r, s]), name="total")
    assert total.shape == ()
    assert blocks(te.create_prim_func([A, total])) == ["total"]


def test_reductions_inside_expressions_become_stages_over_the_axes_they_need():
    r = te.reduce_axis(m, "r")
    top = te.max(A[0, r], r)
    out = te.compute((n, m), lambda i, j: te.exp(A[i, j] - te.max(A[i, r], r)) / te.sum(A[i, r], r) + top, name="B")
    func = te.create_prim_func([A, out])
    assert blocks(func) == ["B_max", "B_sum", "B_max_1", "B"]
    assert [str(op.buffer.type) for op in func.walk() if op.name == "tir.alloc_buffer"] == [
        "!tir.buffer<[n], f32>",
        "!tir.buffer<[n], f32>",
        "!tir.buffer<[], f32>",
    ]


def test_equal_reductions_are_computed_once():
    r = te.reduce_axis(m, "r")
    out = te.compute((n,), lambda i: te.sum(A[i, r], r) * te.sum(A[i, r], r), name="B")
    assert blocks(te.create_prim_func([A, out])) == ["B_sum", "B"]


def test_reduction_of_a_reduction():
    r, s = te.reduce_axis((1, n), "r"), te.reduce_axis(m, "s")
    out = te.compute((), lambda: te.max(te.sum(A[r, s], s), r), name="B")
    assert blocks(te.create_prim_func([A, out])) == ["B_sum", "B"]


def test_one_result_of_an_arg_reduction_keeps_the_other_inside():
    r = te.reduce_axis(m, "r")
    argmax = te.comm_reducer(
        lambda x, y: (te.select(x[0] >= y[0], x[0], y[0]), te.select(x[0] >= y[0], x[1], y[1])),
        lambda value, index: (te.min_value(value), 0),
        name="argmax",
    )
    index = te.compute((n,), lambda i: argmax((A[i, r], te.cast(r, "i64")), r)[1], name="B")
    assert index.dtype == i64
    func = te.create_prim_func([A, index])
    assert blocks(func) == ["B"]
    assert sum(op.name == "tir.alloc_buffer" for op in func.walk()) == 1


def test_accumulator_of_narrow_floats_must_be_chosen():
    r = te.reduce_axis(n, "r")
    with pytest.raises(TypeError, match='choose the accumulator of f16 values: accumulate="f32" or accumulate="f16"'):
        te.sum(H[r], r)
    assert te.sum(H[r], r, accumulate="f32").dtype == f32
    assert te.sum(H[r], r, accumulate="f16").dtype == f16
    assert te.max(H[r], r).dtype == f16


def test_variables_that_are_not_its_own():
    r = te.reduce_axis(m, "r")
    with pytest.raises(ValueError, match='"B" uses "r", which is used outside its reduction'):
        te.compute((n,), lambda i: te.sum(A[i, r], r) + A[i, r], name="B")
    other = te.compute((n,), lambda q: A[q, 0] * 2)
    with pytest.raises(ValueError, match='"B" uses "q", which belongs to another computation'):
        te.compute((n,), lambda i: A[i, other.source.axes[0]] * 2, name="B")


def test_reduction_in_a_branch_is_refused():
    r = te.reduce_axis(m, "r")
    with pytest.raises(ValueError, match='"B" has a reduction in a branch of if_then_else'):
        te.compute((n,), lambda i: te.if_then_else(i > 0, te.sum(A[i, r], r), 0), name="B")


def test_reduction_axes():
    r = te.reduce_axis(m, "r")
    with pytest.raises(ValueError, match=r'te\.sum: "i" is a spatial variable, expected te\.reduce_axis'):
        te.compute((n,), lambda i: te.sum(A[i, i], i))
    with pytest.raises(ValueError, match="expected at least one axis and none twice"):
        te.sum(A[0, r], [r, r])
    with pytest.raises(ValueError, match='an extent of "r" is -2'):
        te.reduce_axis((3, 1))


def test_reducers_are_checked():
    r = te.reduce_axis(m, "r")
    pair = te.comm_reducer(lambda x, y: x + 2 * y, lambda d: 0, name="pair")
    assert pair(A[0, 0], A[0, 1]) is A[0, 0] + 2 * A[0, 1], "of two values, which are combined"
    with pytest.raises(TypeError, match=r"te.bad: combine must give \(f32\), got \(i1\)"):
        te.comm_reducer(lambda x, y: x > y, lambda d: 0, name="bad")(A[0, r], r)
    with pytest.raises(TypeError, match=r"te\.bad: identity gives 1 values for 2 dtypes"):
        te.comm_reducer(lambda x, y: x, lambda *d: (0,), name="bad")((A[0, r], A[0, r]), r)
    with pytest.raises(TypeError, match="identity of a value of dtype f32 has dtype f64"):
        te.comm_reducer(lambda x, y: x, lambda d: te.const(0, "f64"), name="bad")(A[0, r], r)


def test_parameters_are_checked():
    out = te.compute((n,), lambda i: A[i, 0] * 2, name="B")
    scale = te.scalar("scale", "f32")
    with pytest.raises(ValueError, match='"f" uses the placeholder "A", which is not among its parameters'):
        te.create_prim_func([out], name="f")
    with pytest.raises(ValueError, match='a parameter of "f" is listed twice'):
        te.create_prim_func([A, A], name="f")
    with pytest.raises(TypeError, match=r'parameters of "f" must be tensors, te\.scalar variables or sizes'):
        te.create_prim_func([A, scale + 1], name="f")
    with pytest.raises(TypeError, match="expected the name of the function behind its parameters, got None"):
        te.create_prim_func([A, out], None)
    scaled = te.compute((n,), lambda i: A[i, 0] * scale, name="B")
    with pytest.raises(ValueError, match='"f" uses the scalar "scale", which is not among its parameters'):
        te.create_prim_func([A, scaled], name="f")
    func = te.create_prim_func([A, scale, scaled], name="f")
    func.verify()
    assert [str(param.type) for param in func.params] == ["!tir.buffer<[n, m], f32>", "f32", "!tir.buffer<[n], f32>"]


def test_symbols_come_from_shapes_first_then_from_bodies():
    out = te.compute((2 * (m // 2), n), lambda i, j: te.cast(i + te.var("k"), "f32"), name="B")
    func = te.create_prim_func([out], bounds={"n": (1, 2048)})
    assert func.symbol_names == ("m", "n", "k")
    assert func.bounds["n"] == (1, 2048)
    func.verify()


def test_names_that_are_no_identifiers():
    X = te.placeholder((n,), "f32", "a b!")
    func = te.create_prim_func([X, te.compute((n,), lambda i: X[i] + 1, name="T.add 1")])
    func.verify()
    assert blocks(func) == ["T.add 1"]


def test_sizes_and_conversions_as_tvm_writes_them():
    assert te.var("n", "int64") is te.size_var("n") is te.var("n")
    with pytest.raises(ValueError, match="expected one of index, int32, int64, i32, i64, got float32"):
        te.var("n", "float32")
    assert str(te.scalar("x", "f32").astype("int32").dtype) == "i32"


def test_attributes_become_annotations_of_the_block():
    r = te.reduce_axis(m, "r")
    attrs = {"rule": "none", "tile": [4, 8], "hot": True, "share": {"of": 0.5}}
    out = te.compute((n,), lambda i: te.sum(A[i, r], r) + 1, name="B", attrs=attrs)
    inner, outer = (op for op in te.create_prim_func([A, out]).walk() if isinstance(op, BlockOp))
    assert inner.annotations is None
    context = Context()
    context.load_dialect(Builtin)
    text = '{rule = "none", tile = [4 : i64, 8 : i64], hot = true, share = {of = 0.5 : f64}}'
    assert outer.annotations == Parser(context, text).parse_attribute()


def test_attribute_that_is_no_note():
    with pytest.raises(TypeError, match='attribute of "B": expected truth values, numbers or strings, got Dim'):
        te.compute((n,), lambda i: H[i], name="B", attrs={"extent": n})


def test_tensors_are_named_in_attributes():
    out = te.compute((n,), lambda i: H[i], name="B", attrs={"layout_free_placeholders": [H], "like": A})
    assert out.op.attrs == {"layout_free_placeholders": [H.name], "like": A.name}


def test_sizes_among_the_parameters():
    first = te.compute((te.var("k"), m), lambda i, j: A[i, j], name="B")
    func = te.create_prim_func([A, te.var("k"), first, te.var("more")])
    assert func.symbol_names == ("n", "m", "k", "more")
    assert [param.name_hint for param in func.params] == ["A", "B"]
    with pytest.raises(
        TypeError, match=r'parameters of "main" must be tensors, te.scalar variables or sizes \(te.var\)'
    ):
        te.create_prim_func([A, te.var("k") + 1, first])


def test_functions_without_an_expression():
    with pytest.raises(TypeError, match='te: the function of "B" returned None, expected an expression or a number'):
        te.compute((n,), lambda i: None, name="B")
    with pytest.raises(TypeError, match='te: the function of "B" returned no expression'):
        te.compute((n,), lambda i: (), name="B")
    with pytest.raises(TypeError, match='te: "B" expected a function of its indices, got 5'):
        te.compute((n,), 5, name="B")


def test_sizes_that_are_none():
    for wrong in (1.5, None):
        with pytest.raises(TypeError, match=f'te: the extents of "A" must be integers or dimensions, got {wrong}'):
            te.placeholder((wrong,), "f32", "A")
    with pytest.raises(TypeError, match="te: expected the name of a size, got 5"):
        te.var(5)
    for wrong in ((0,), (0, 1, 2)):
        with pytest.raises(ValueError, match='te: the domain of "r" must be an extent, or a lower bound and an upper'):
            te.reduce_axis(wrong)


def test_reducers_attributes_and_scalars_that_are_none():
    nothing = te.comm_reducer(lambda a, b: a + b, lambda dtype: None, name="q")
    with pytest.raises(TypeError, match=r"te\.q: identity must give expressions or numbers, got None"):
        te.compute((n,), lambda i: nothing(A[i, (r := te.reduce_axis(m, "r"))], r))
    with pytest.raises(TypeError, match='te: attributes of "B": expected values by name, got 5'):
        te.compute((n,), lambda i: 1.0, name="B", attrs=5)
    with pytest.raises(TypeError, match="te: expected the name of a scalar, got 5"):
        te.scalar(5, "f32")
    with pytest.raises(TypeError, match=r"te: extern_primfunc expected a tir\.prim_func or a module, got int"):
        te.extern_primfunc([A], 5)
    with pytest.raises(TypeError, match='te: scan "scan" expected tensors, got 1'):
        te.scan(1, A, A)
