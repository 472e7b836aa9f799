"""What patterns match, and what they do not."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from relax_dialect.ops.structure import ReturnOp
from relax_dialect.patterns import (
    is_call_tir,
    is_const,
    is_op,
    is_packed,
    is_tuple,
    is_tuple_get,
    wildcard,
)

LAYER = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>) -> !relax.object {
  %b = relax.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  relax.return %2
}
"""


def function(body: str, result: str = "%r") -> str:
    return f"""
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 4], f32>) -> !relax.object {{
  {body}
  relax.return {result}
}}
"""


def returned(text: str | ModuleOp):
    module = parse_module(text) if isinstance(text, str) else text
    (ret,) = [op for op in module.walk() if isinstance(op, ReturnOp)]
    return ret.value


def names(match) -> list[str]:
    return [op.name for op in match.ops]


def test_a_layer():
    x, w, b = wildcard(), wildcard(), is_const()
    product = is_op("relax.matmul")(x, w)
    value = returned(LAYER)
    match = is_op("relax.nn.relu")(product + b).match(value)
    assert match is not None
    assert names(match) == ["relax.matmul", "relax.add", "relax.nn.relu"]
    assert [each.name_hint for each in match.inputs] == ["x", "w", "b"]
    assert match.outputs == (value,)
    assert match[product].owner.name == "relax.matmul"
    assert match[b].owner.name == "relax.constant"
    assert wildcard() not in match
    with pytest.raises(KeyError, match="not part"):
        match[wildcard()]


def test_operand_count_and_order():
    value = returned(function("%a = relax.nn.relu %x\n%r = relax.add %y, %a"))
    relu = is_op("relax.nn.relu")(wildcard())
    assert (relu + wildcard()).match(value) is None
    assert (wildcard() + relu).match(value) is not None
    assert is_op("relax.add")(relu, wildcard()).in_any_order().match(value) is not None
    assert is_op("relax.add")(wildcard()).match(value) is None
    assert is_op("relax.add").match(value) is not None


def test_one_pattern_is_one_value():
    x = wildcard()
    assert (x + x).match(returned(function("%r = relax.add %x, %x"))) is not None
    assert (x + x).match(returned(function("%r = relax.add %x, %y"))) is None
    assert (wildcard() + wildcard()).match(returned(function("%r = relax.add %x, %x"))) is not None


DIAMOND = "%a = relax.exp %x\n%b = relax.nn.relu %a\n%r = relax.multiply %a, %b"


def test_shared_values_inside():
    exp = is_op("relax.exp")(wildcard())
    match = (exp * is_op("relax.nn.relu")(exp)).match(returned(function(DIAMOND)))
    assert match is not None
    assert names(match) == ["relax.exp", "relax.nn.relu", "relax.multiply"]


def test_values_that_others_use():
    text = function(DIAMOND + "\n%t = relax.tuple(%b, %r)", "%t")
    fields = returned(text).owner.operands
    exp = is_op("relax.exp")(wildcard())
    relu = is_op("relax.nn.relu")(exp)
    assert (exp * relu).match(fields[1]) is None
    match = (exp * relu.may_be_used_outside()).match(fields[1])
    assert match is not None
    assert match.outputs == tuple(fields)


def test_what_is_used_in_between_cannot_be_taken_out():
    text = function("%a = relax.exp %x\n%m = relax.negative %a\n%r = relax.add %a, %m")
    exp = is_op("relax.exp")(wildcard()).may_be_used_outside()
    assert (exp + wildcard()).match(returned(text)) is None


def test_alternatives_take_the_first_that_fits():
    bias, plain = wildcard(), wildcard()
    product = is_op("relax.matmul")(plain, wildcard())
    layer = is_op("relax.nn.relu")((product + bias) | product)
    match = layer.match(returned(LAYER))
    assert match is not None
    assert bias in match
    match = layer.match(
        returned(function("%t = relax.permute_dims %y\n%p = relax.matmul %x, %t\n%r = relax.nn.relu %p"))
    )
    assert match is not None
    assert bias not in match


def test_backtracking_through_alternatives():
    """The first alternative fits the operand, but not with what comes after it."""
    x = wildcard()
    either = x | is_op("relax.exp")(x)
    pattern = is_op("relax.add")(either, is_op("relax.nn.relu")(x))
    value = returned(function("%a = relax.exp %x\n%b = relax.nn.relu %x\n%r = relax.add %a, %b"))
    match = pattern.match(value)
    assert match is not None
    assert match[x].name_hint == "x"


def test_optional_both_and_not():
    product = is_op("relax.matmul")(wildcard(), wildcard())
    chain = product.optional(lambda p: p + wildcard()).optional(is_op("relax.nn.relu"))
    assert len(chain.match(returned(LAYER)).ops) == 3
    add = is_op("relax.add")
    value = returned(LAYER).owner.operands[0]
    assert (add & wildcard().has_rank(2)).match(value) is not None
    assert (add & wildcard().has_rank(3)).match(value) is None
    assert (~is_op("relax.multiply")).match(value) is not None
    assert (~add).match(value) is None


def test_types():
    value = returned(LAYER)
    assert wildcard().has_dtype("f32").match(value) is not None
    assert wildcard().has_dtype("f16").match(value) is None
    assert wildcard().has_shape(("n", 4)).match(value) is not None
    assert wildcard().has_shape((None, 4)).match(value) is not None
    assert wildcard().has_shape(("n + 1", 4)).match(value) is None
    assert wildcard().has_shape((4,)).match(value) is None
    assert wildcard().where(lambda each: each.name_hint == "2").match(value) is None


def test_attributes():
    value = returned(function("%r = relax.sum %x axes = [1] keepdims"))
    total = is_op("relax.sum")(wildcard())
    assert total.has_attr(axes=[1], keepdims=True).match(value) is not None
    assert total.has_attr(axes=[0]).match(value) is None
    assert total.has_attr(axes=None).match(value) is None
    soft = returned(function("%r = relax.nn.leakyrelu %x alpha = 0.25"))
    assert is_op("relax.nn.leakyrelu").has_attr(alpha=0.25).match(soft) is not None
    assert is_op("relax.nn.leakyrelu").has_attr(alpha=0.5).match(soft) is None


def test_constants_by_elements():
    bias = returned(LAYER).owner.operands[0].owner.operands[1]
    assert is_const([1.0, 2.0, 3.0, 4.0]).match(bias) is not None
    assert is_const([1.0, 2.0, 3.0, 5.0]).match(bias) is None
    assert is_const(1.0).match(bias) is None
    assert is_const(np.arange(1, 5)).match(bias) is not None


def test_tuples():
    text = function("%a = relax.exp %x\n%t = relax.tuple(%a, %y)\n%r = relax.tuple_get %t[0]")
    value = returned(text)
    exp = is_op("relax.exp")(wildcard())
    assert is_tuple_get(is_tuple(exp, wildcard()), 0).match(value) is not None
    assert is_tuple_get(is_tuple(), 1).match(value) is None
    assert is_tuple_get(is_tuple()).match(value) is not None
    assert is_tuple_get(is_tuple(exp)).match(value) is None


def test_results_of_an_op():
    value = returned(function("%a, %r = relax.split %x sections = 2 axis = 1"))
    assert is_op("relax.split").match(value) is None
    assert is_op("relax.split").result(1).match(value) is not None


CALLS = """
tir.prim_func private @copy[%k](%A: !tir.buffer<[k, 4], f32>, %B: !tir.buffer<[k, 4], f32>) {
  %c4 = arith.constant 4 : index
  tir.for (%i, %j) in (%k, %c4) {
    tir.block "copy" (%a = spatial %i in %k, %b = spatial %j in %c4) {
      %v = tir.load %A[%a, %b]
      tir.store %v, %B[%a, %b]
    }
  }
}
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.call_tir @copy(%x) : !relax.tensor<[n, 4], f32>
  %1 = relax.call_dps_packed "there"(%0) : !relax.tensor<[n, 4], f32>
  relax.return %1
}
"""


def test_calls_by_name():
    value = returned(CALLS)
    copy = is_call_tir("copy", [wildcard()])
    assert is_packed("there", [copy]).match(value) is not None
    assert is_packed("elsewhere").match(value) is None
    assert is_packed(None, [is_call_tir("other")]).match(value) is None


def test_impure_ops_are_not_taken_out():
    text = function('%r = relax.call_packed "effects"(%x) : !relax.tensor<[n, 4], f32>')
    value = returned(text.replace("-> !relax.object {", "-> !relax.object impure {"))
    assert is_op("relax.call_packed").match(value) is None


def test_names_that_no_op_has():
    with pytest.raises(ValueError, match=r"there is no op relax\.nothing"):
        is_op("relax.nothing")


def test_values_of_other_blocks_are_not_taken_out():
    text = """
relax.func @main[%n](%c: !relax.tensor<[], i1>, %x: !relax.tensor<[n], f32>) -> !relax.object {
  %a = relax.exp %x
  %r = relax.if %c {
    %b = relax.nn.relu %a
    relax.yield %b
  } else {
    relax.yield %x
  }
  relax.return %r
}
"""
    module = parse_module(text)
    (relu,) = [op for op in module.walk() if op.name == "relax.nn.relu"]
    assert is_op("relax.nn.relu")(is_op("relax.exp")).match(relu.results[0]) is None
    assert is_op("relax.nn.relu").match(relu.results[0]) is not None


def test_long_chains_are_matched_in_linear_time():
    """A pattern looks at what it names, whatever else is in the block."""
    body = "\n".join(f"%v{i + 1} = relax.exp %v{i}" for i in range(2000))
    module = parse_module(function(f"%v0 = relax.nn.relu %x\n{body}\n%r = relax.nn.relu %v2000"))
    assert sum(is_op("relax.nn.relu").match(result) is not None for op in module.walk() for result in op.results) == 2


def test_a_pattern_shows_how_it_is_written():
    x = wildcard()
    either = is_op("relax.add", "relax.subtract")(x, is_const(1)).has_attr(axis=1) | x * x
    assert repr(either) == (
        "(is_op('relax.add', 'relax.subtract')(wildcard(), is_const(1)).has_attr(axis=1)"
        " | is_op('relax.multiply')(wildcard(), wildcard()))"
    )
    assert repr(x.has_dtype("f32").has_rank(2).may_be_used_outside() & ~is_const()) == (
        "(wildcard().has_dtype('f32').has_rank(2).may_be_used_outside() & ~is_const())"
    )
    named = is_op("relax.split").result(1).in_any_order().where(callable)
    assert repr(named) == "is_op('relax.split').result(1).in_any_order().where(callable)"
