"""Which values share memory, and what is written: one small case for each way that memory takes."""

import pytest
from xdsl.ir import Operation, SSAValue

from lowering.parsing import parse_module
from relax_dialect.analysis.aliases import aliases, origins
from relax_dialect.analysis.effects import may_be_view, may_be_written, may_write, unchanged_between
from relax_dialect.ops.structure import FuncOp
from tests.support.impure import HEAD, T, text

INC = 'relax.call_packed "tests.impure.increment"'


def named(body: str, *, head: str = "") -> dict[str, SSAValue]:
    """The values of `main`, in regions too, by name."""
    source = text(body) if not head else f"{HEAD[: HEAD.index('relax.func @main')]}{head} {{ {body} }}"
    func = next(op for op in parse_module(source).ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    found = {arg.name_hint: arg for op in func.walk() for region in op.regions for arg in region.block.args}
    found |= {result.name_hint: result for op in func.walk() for result in op.results}
    return {name: value for name, value in found.items() if name is not None}


PURE = f"relax.func @main[%n](%x: {T}, %y: {T}, %cc: !relax.prim<i1>) -> !relax.object"

SHARED = {
    "view": "%s = relax.shape [4 * n] %a = relax.reshape %x, %s",
    "flatten": "%a = relax.flatten %x",
    "cast": "%a = relax.match_cast %x : !relax.tensor<[_, 4], f32>",
    "field": "%t = relax.tuple(%y, %x) %a = relax.tuple_get %t[1]",
    "pure packed function": f'%a = relax.call_pure_packed "f"(%x) : {T}',
    "function": "%a = relax.call @same(%x)",
    "closure": f"%g = relax.closure () -> {T} {{ relax.return %x }} %a = relax.call_closure %g()",
    "captured": "%g = relax.make_closure @same(%x) %a = relax.call_closure %g()",
    "branch": "%a = relax.if %cc { relax.yield %x } else { relax.yield %y }",
    "dataflow": "%a = relax.dataflow { relax.output %x }",
    "loop": f"%lo = relax.prim 0 %hi = relax.prim 3 %a = relax.for %i = %lo to %hi (%s: {T} = %y) {{ relax.yield %x }}",
}
NEW = {
    "operator": "%a = relax.exp %x",
    "permutation": "%a = relax.permute_dims %x axes = [1, 0]",
    "constant": "%a = relax.constant dense<1.0> : tensor<2x4xf32>",
    "other field": "%t = relax.tuple(%y, %x) %a = relax.tuple_get %t[0]",
    "destination passing": f'%a = relax.call_dps_packed "f"(%x) : {T}',
}


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
def test_shared(body: str):
    values = named(f"{body} relax.return %a", head=PURE)
    assert values["x"] in origins(values["a"])
    assert values["a"] in aliases(values["x"])


@pytest.mark.parametrize("body", NEW.values(), ids=NEW)
def test_new(body: str):
    values = named(f"{body} relax.return %a", head=PURE)
    assert values["x"] not in origins(values["a"])
    assert values["a"] not in aliases(values["x"])


def test_fields_do_not_share_with_each_other():
    values = named("%a = relax.exp %x %b = relax.exp %y %t = relax.tuple(%a, %b) relax.return %t", head=PURE)
    assert values["b"] not in aliases(values["a"])
    assert values["t"] in aliases(values["a"])


WRITTEN = {
    "packed function": f"%a = relax.exp %x {INC}(%a)",
    "through a view": f"%a = relax.exp %x %f = relax.flatten %a {INC}(%f)",
    "in place": f"%a = relax.exp %x %b = relax.call_tir_inplace @inc(%a) inplace [0] : {T}",
    "in a branch": f"%a = relax.exp %x %u = relax.if %cc {{ {INC}(%a) relax.yield %x }} else {{ relax.yield %x }}",
    "by a function": "%a = relax.exp %x %u = relax.call @writes(%a) impure",
    "a field": f"%a = relax.exp %x %t = relax.tuple(%a, %x) %f = relax.tuple_get %t[0] {INC}(%f)",
    "a constant": f"%a = relax.constant dense<1.0> : tensor<2x4xf32> {INC}(%a)",
    "what came in": f"%a = relax.flatten %x {INC}(%x)",
    "a result that may be what came in": f"%a = relax.call @same(%x) {INC}(%x)",
}


@pytest.mark.parametrize("body", WRITTEN.values(), ids=WRITTEN)
def test_written(body: str):
    assert may_be_written(named(f"{body} relax.return %x")["a"])


READ = {
    "operators": f"%a = relax.exp %x {INC}(%x) %b = relax.exp %a",
    "another field": f"%a = relax.exp %x %t = relax.tuple(%x, %a) %f = relax.tuple_get %t[0] {INC}(%f)",
    "returned": "%a = relax.exp %x %t = relax.tuple(%a)",
    "a cast of new memory": f"%b = relax.exp %x %a = relax.match_cast %b : {T} %e = relax.exp %a",
}


@pytest.mark.parametrize("body", READ.values(), ids=READ)
def test_not_written(body: str):
    assert not may_be_written(named(f"{body} relax.return %x")["a"])


def test_parameters_of_a_pure_function_are_never_written():
    assert not may_be_written(named("%a = relax.exp %x relax.return %a", head=PURE)["x"])


BETWEEN = {
    "nothing": ("", True),
    "a write": (f"{INC}(%x)", False),
    "a write to something else": (f"{INC}(%y)", False),  # which may be the same tensor
    "a print": ('relax.print "{}"(%x)', True),
    "a branch that writes": (f"%u = relax.if %cc {{ {INC}(%x) relax.yield %x }} else {{ relax.yield %x }}", False),
    "a closure that nobody calls": (
        f"%g = relax.closure (%u: {T}) -> {T} impure {{ {INC}(%u) relax.return %u }}",
        True,
    ),
}


@pytest.mark.parametrize(("body", "expected"), BETWEEN.values(), ids=BETWEEN)
def test_unchanged_between(body: str, expected: bool):
    head = f"{PURE} impure"
    values = named(f"%a = relax.exp %x {body} %b = relax.exp %x relax.return %b", head=head)
    early, late = values["a"].owner, values["b"].owner
    assert isinstance(early, Operation)
    assert isinstance(late, Operation)
    assert unchanged_between([values["x"]], early, late) is expected


def test_what_nobody_can_write_is_unchanged_between():
    values = named(
        f"""%w = relax.constant dense<1.0> : tensor<2x4xf32>
        %a = relax.exp %w {INC}(%x) %b = relax.exp %w relax.return %b""",
        head=f"{PURE} impure",
    )
    early, late = values["a"].owner, values["b"].owner
    assert isinstance(early, Operation)
    assert isinstance(late, Operation)
    assert not may_be_written(values["w"])
    assert unchanged_between([values["w"]], early, late)
    assert not unchanged_between([values["w"], values["x"]], early, late)


def test_a_loop_that_writes_changes_what_its_next_iteration_reads():
    values = named(
        f"""%a = relax.exp %x %lo = relax.prim 0 %hi = relax.prim 3
        %r = relax.for %i = %lo to %hi (%s: {T} = %a) {{ %b = relax.exp %x {INC}(%x) relax.yield %b }}
        relax.return %r"""
    )
    early, late = values["a"].owner, values["b"].owner
    assert isinstance(early, Operation)
    assert isinstance(late, Operation)
    assert not unchanged_between([values["x"]], early, late)
    loop = late.parent_op()
    assert loop is not None
    assert may_write(loop)


FUNCTIONS = f"""
relax.func private @reads[%n](%x: {T}) -> !relax.tuple<> impure {{
  relax.print "{{}}"(%x) %t = relax.tuple() relax.return %t
}}
relax.func private @second[%n](%x: {T}, %y: {T}) -> !relax.tuple<> impure {{
  %e = relax.exp %x {INC}(%y) %t = relax.tuple() relax.return %t
}}
relax.func private @turns[%n](%x: {T}, %y: {T}, %c: !relax.prim<i1>) -> {T} impure {{
  %r = relax.if %c {{ %a = relax.call @turns(%y, %x, %c) impure : {T} relax.yield %a }}
  else {{ {INC}(%y) relax.yield %y }}
  relax.return %r
}}
relax.func private @returns[%n](%x: {T}) -> {T} impure {{
  relax.print "{{}}"(%x) relax.return %x
}}
"""
CALLS = {
    "reads": ("%u = relax.call @reads(%a) impure", False, False),
    "writes another argument": ("%u = relax.call @second(%a, %y) impure", False, True),
    "writes this argument": ("%u = relax.call @second(%y, %a) impure", True, True),
    "writes it in a call of itself": (f"%u = relax.call @turns(%a, %y, %cc) impure : {T}", True, True),
    "returns what is only read": ("%u = relax.call @returns(%a) impure %v = relax.exp %u", False, False),
    "returns what is written": (f"%u = relax.call @returns(%a) impure {INC}(%u)", True, False),
    "holds what is only read": (
        "%g = relax.make_closure @reads(%a) %u = relax.call_closure %g()",
        False,
        True,
    ),
    "holds what is written": (
        "%g = relax.make_closure @second(%y, %a) %u = relax.call_closure %g()",
        True,
        True,
    ),
}
"""Impure calls: whether `%a` is written in the end, and whether the call may write into anything."""


@pytest.mark.parametrize(("body", "is_written", "call_writes"), CALLS.values(), ids=CALLS)
def test_what_functions_do(body: str, is_written: bool, call_writes: bool):
    values = named(f"%a = relax.exp %x {body} %b = relax.exp %a relax.return %b", head=f"{FUNCTIONS} {PURE} impure")
    call = values["u"].owner
    assert isinstance(call, Operation)
    assert may_be_written(values["a"]) is is_written
    assert may_write(call) is call_writes


VIEWS = {
    "read": ("%a = relax.exp %x %c = relax.permute_dims %a axes = [0, 1] %r = relax.exp %c", True),
    "returned": ("%a = relax.exp %x %r = relax.permute_dims %a axes = [0, 1] %c = relax.flatten %r", True),
    "both returned": ("%a = relax.exp %x %c = relax.permute_dims %a axes = [0, 1] %r = relax.tuple(%a, %c)", False),
    "of a parameter": ("%a = relax.flatten %x %c = relax.negative %a %r = relax.tuple(%a, %c)", False),
}


@pytest.mark.parametrize(("body", "expected"), VIEWS.values(), ids=VIEWS)
def test_may_be_view(body: str, expected: bool):
    values = named(f"{body} relax.return %r", head=PURE)
    assert may_be_view(values["c"], values["a"]) is expected
