"""Modules as TVMScript: our reader makes the same module of the text.

That TVM reads it, and computes the same, is compared by `tests/tools/compare_with_tvm.py` where TVM is installed.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.tvmscript import ScriptError, as_tvmscript
from tests.support.corpus import texts, valid_module
from xdsl_relax.model import interpret

REREAD = {
    "tests/filecheck/lowering/relax/infer_struct_info_invalid.mlir#0",
    "tests/filecheck/lowering/relax/rewrites/fold_shape_computations.mlir#4",
    "tests/filecheck/lowering/relax/simplify_match_cast.mlir#5",
    "tests/filecheck/relax_dialect/reduction.mlir",
}
"""Modules that are wrong once types say all that is known, which the reader infers; and a median of unknown size."""

OTHERWISE = {
    "tests/filecheck/lowering/pipelines/optimize_graph.mlir",
    "tests/filecheck/lowering/relax/functions/expand_tuple_arguments.mlir#2",
    "tests/filecheck/lowering/relax/functions/expose_prim_funcs.mlir#4",
    "tests/filecheck/lowering/relax/memory/copy_constants.mlir",
    "tests/filecheck/lowering/relax/rewrites/fold_constants.mlir#1",
    "tests/filecheck/lowering/relax/rewrites/fold_shape_computations.mlir#0",
    "tests/filecheck/lowering/relax/simplify_match_cast.mlir#0",
    "tests/filecheck/lowering/relax_to_vm/convert_relax_to_vm.mlir#8",
    "tests/filecheck/relax_dialect/layers.mlir",
}
"""Modules that come back in other words: with types that the reader infers, a value for an argument that was an
expression, without fields of a tuple that was just made, the mask of `R.nn.dropout`."""


def _canonical(text: str) -> str:
    """The text with the names of values in the order of their definition. A PrimFunc that is called is public."""
    functions = re.split(r"(?=^    @)", text.replace("private=True, s_tir", "s_tir"), flags=re.MULTILINE)
    return "".join(map(_renamed, functions))


def _renamed(function: str) -> str:
    names = dict.fromkeys(re.findall(r"^ +(\w+) = ", function, re.MULTILINE))
    numbers = {name: f"v{index}" for index, name in enumerate(names)}
    return re.sub(r"(?<![.\w\"])\w+", lambda match: numbers.get(match[0], match[0]), function)


@pytest.mark.slow
def test_our_reader_makes_the_same_module_of_the_text():
    """Of every module of the tree that has a text; the others are refused by the name of an op."""
    written = 0
    refusals: list[str] = []
    different: list[str] = []
    for name, text in texts():
        module = valid_module(name, text)
        if module is None or not any(isinstance(op, FuncOp) for op in module.ops):
            continue
        try:
            script = as_tvmscript(module)
        except ScriptError as error:
            refusals.append(str(error))
            continue
        written += 1
        if name in REREAD:
            with pytest.raises(TVMScriptError):
                parse(script)
            continue
        again = as_tvmscript(parse(script))
        if any(isinstance(op, LoopOp) for op in module.walk()):
            continue  # read as functions, whose conditions are tensors
        if _canonical(again) != _canonical(script) and name not in OTHERWISE:
            different.append(f"{name}\n{script}\n{again}")
    assert not different, different[0]
    assert written > 150
    assert len(refusals) < written
    assert all(re.match(r"'\w+\.[\w.]+' cannot be written as TVMScript: \w", each) for each in refusals)


EVERYTHING = """
relax.func @main[%n in [1, 64], %m](%x: !relax.tensor<[n, m], f32>, %c: !relax.tensor<[], i1>) -> !relax.tuple<
    !relax.tensor<[n, m], f32>, !relax.tensor<[n], f32>> impure attributes {arg_names = ["in put", "c"]} {
  %k = relax.constant dense<[[1.0], [0x7f800000]]> : tensor<2x1xf32>
  %gv, %s = relax.dataflow {
    %lv0 = relax.call_tir @double(%x) : !relax.tensor<[n, m], f32>
    %lv1 = relax.sum %lv0 axes = [1]
    %a, %b = relax.split %x indices = [2] axis = 1
    relax.output %lv0, %lv1
  }
  %r = relax.if %c {
    %y = relax.exp %gv
    relax.yield %y
  } else {
    relax.yield %gv
  }
  relax.call_packed "show"(%r, %k)
  %t = relax.tuple(%r, %s)
  relax.return %t
}
tir.prim_func @double[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
  tir.for (%i, %j) in (%n, %m) {
    tir.block "double" (%vi = spatial %i in %n, %vj = spatial %j in %m) {
      %x = tir.load %X[%vi, %vj]
      %y = arith.addf %x, %x : f32
      tir.store %y, %Y[%vi, %vj]
    }
  }
}
"""

TEXT = """\
from __future__ import annotations

from typing import TypeVar

from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

m = TypeVar("m")
n = TypeVar("n")


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(in_put: R.Tensor((n, m), dtype="float32"), c: R.Tensor((), dtype="bool")) -> \
R.Tuple(R.Tensor((n, m), dtype="float32"), R.Tensor((n,), dtype="float32")):
        R.func_attr({"tir_var_lower_bound": {"n": 1}, "tir_var_upper_bound": {"n": 64}})
        cls = Module
        k = R.const([[1.0], [float("inf")]], "float32")
        with R.dataflow():
            lv0 = R.call_tir(cls.double, (in_put,), out_ty=R.Tensor((n, m), dtype="float32"))
            lv1 = R.sum(lv0, [1], False)
            a = R.split(in_put, [2], axis=1)
            R.output(lv0, lv1)
        if c:
            y = R.exp(lv0)
            r = y
        else:
            r = lv0
        _ = R.call_packed("show", r, k, ty_args=(R.Tuple(),))
        t = (r, lv1)
        return t

    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((n, m), "float32"), Y: T.Buffer((n, m), "float32")):
"""


def test_the_text_of_a_module():
    script = as_tvmscript(parse_module(EVERYTHING))
    assert script.startswith(TEXT), script
    assert _canonical(as_tvmscript(parse(script))) == _canonical(script)


FUNCTIONS_INSIDE = """
relax.func @main[%n](%c: !relax.tensor<[], i1>, %x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %f = relax.closure [%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
    %s = relax.sum %x
    %z = relax.multiply %y, %s
    relax.return %z
  }
  %g = relax.closure rec %self(%d: !relax.tensor<[], i1>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %r = relax.if %d {
      %false = relax.constant dense<false> : tensor<i1>
      %once = relax.call_closure %self(%false, %y)
      relax.yield %once
    } else {
      relax.yield %y
    }
    relax.return %r
  }
  %a, %b = relax.if %c {
    %0 = relax.exp %x
    relax.yield %0, %x
  } else {
    relax.yield %x, %x
  }
  %p = relax.add %a, %b
  %q = relax.call_closure %f(%p)
  %r = relax.call_closure %g(%c, %q)
  relax.return %r
}
"""


def test_functions_inside_and_branches_of_several_results():
    module = parse_module(FUNCTIONS_INSIDE)
    script = as_tvmscript(module)
    again = parse(script)
    assert _canonical(as_tvmscript(again)) == _canonical(script)
    assert '        def f(y: R.Tensor((m,), dtype="float32")) -> R.Tensor((m,), dtype="float32"):\n' in script
    assert 'g(R.const(False, "bool"), y_1)' in script
    assert "R.add(a[0], a[1])" in script
    x = np.arange(3, dtype=np.float32)
    for condition in (True, False):
        np.testing.assert_array_equal(
            interpret(again, np.array(condition), x), interpret(module, np.array(condition), x)
        )


LOOPS = """
relax.func @count[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.prim 0
  %r = relax.for %i = %0 to %n (%acc: !relax.tensor<[n], f32> = %x) {
    %y = relax.add %acc, %x
    relax.yield %y
  }
  relax.return %r
}
relax.func @down[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.prim -3
  %s = relax.prim -2
  %five = relax.prim 5
  %r = relax.for %i = %five to %0 step %s (%acc: !relax.tensor<[n], f32> = %x) {
    %sh = relax.shape []
    %t = relax.full %sh, %i dtype = i64
    %f = relax.astype %t dtype = f32
    %y = relax.add %acc, %f
    relax.yield %y
  }
  relax.return %r
}
relax.func @symbol[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[], f32>, !relax.tensor<[n], f32>> {
  %1 = relax.prim 1
  %z = relax.constant dense<0.0> : tensor<f32>
  %r, %q = relax.for %i as i = %1 to %n (%acc: !relax.tensor<[], f32> = %z, %x1: !relax.tensor<[n], f32> = %x) {
    %sh = relax.shape [i]
    %o = relax.ones %sh dtype = f32
    %y = relax.sum %o
    %w = relax.add %acc, %y
    %v = relax.add %x1, %x1
    relax.yield %w, %v
  }
  %t = relax.tuple(%r, %q)
  relax.return %t
}
relax.func @grow[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[_], f32> {
  %lim = relax.constant dense<10.0> : tensor<f32>
  %r = relax.while [%m](%y: !relax.tensor<[m], f32> = %x) {
    %s = relax.sum %y
    %c = relax.less %s, %lim
    relax.yield %c
  } do [%m_1 as m](%y) {
    %0 = relax.concat %y, %y axis = 0
    relax.yield %0
  }
  relax.return %r
}
relax.func @nested[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.prim 0
  %r = relax.for %i as i = %0 to %n (%acc: !relax.tensor<[n], f32> = %x) {
    %r = relax.for %j = %i to %n (%acc1: !relax.tensor<[n], f32> = %acc) {
      %y = relax.add %acc1, %x
      relax.yield %y
    }
    relax.yield %r
  }
  relax.return %r
}
relax.func private @affine[%n](%a: !relax.tensor<[n], f32>, %x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %y = relax.multiply %a, %x
  relax.return %y
}
relax.func @partial[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %f = relax.make_closure @affine(%x)
  %y = relax.call_closure %f(%x)
  relax.return %y
}
relax.func @two[%n](%x: !relax.tensor<[n, 2], f32>, %k: !relax.tensor<[_, 2], f32>)
    -> !relax.tuple<!relax.tensor<[], i64>, !relax.tensor<[_, 2], f32>> {
  %t = relax.tuple(%x, %k)
  %first, %lv1 = relax.split %x indices = [1] axis = 1
  %w = relax.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %one = relax.constant dense<1> : tensor<i64>
  %zero = relax.constant dense<0> : tensor<i64>
  %ten = relax.constant dense<5> : tensor<i64>
  %c, %y = relax.while [%m](%c: !relax.tensor<[], i64> = %zero, %y: !relax.tensor<[m, 2], f32> = %k) {
    %go = relax.less %c, %ten
    relax.yield %go
  } do [%m_1 as m](%c, %y) {
    %d = relax.add %c, %one
    %e = relax.add %y, %w
    %f = relax.tuple_get %t[0]
    %g = relax.concat %e, %f axis = 0
    %h = relax.multiply %first, %w
    %i = relax.concat %g, %h axis = 0
    relax.yield %d, %i
  }
  %o = relax.tuple(%c, %y)
  relax.return %o
}
relax.func @outer_counter[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.prim 1
  %two = relax.prim 2
  %end = relax.prim 7
  %r = relax.for %i = %0 to %end step %two (%acc: !relax.tensor<[n], f32> = %x) {
    %r = relax.for %j = %0 to %i (%acc1: !relax.tensor<[n], f32> = %acc) {
      %sh = relax.shape []
      %t = relax.full %sh, %i dtype = i64
      %f = relax.astype %t dtype = f32
      %y = relax.add %acc1, %f
      relax.yield %y
    }
    relax.yield %r
  }
  relax.return %r
}
relax.func @down_symbol[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[], f32> {
  %end = relax.prim 0
  %s = relax.prim -1
  %z = relax.constant dense<0.0> : tensor<f32>
  %r = relax.for %i as i = %n to %end step %s (%acc: !relax.tensor<[], f32> = %z) {
    %sh = relax.shape [i]
    %o = relax.ones %sh dtype = f32
    %y = relax.sum %o
    %w = relax.add %acc, %y
    relax.yield %w
  }
  relax.return %r
}
relax.func @shows(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> impure {
  %0 = relax.prim 0
  %s = relax.prim 2
  relax.for %i = %0 to %s () {
    relax.print "{}"(%x)
    relax.yield
  }
  relax.return %x
}
relax.func @known(%x: !relax.tensor<[_, _], f32>) -> !relax.tensor<[_, 2], f32> {
  %y = relax.match_cast %x : !relax.tensor<[_, 2], f32>
  %z = relax.exp %y
  relax.return %z
}
"""


def test_loops_are_functions_that_call_themselves():
    module = parse_module(LOOPS)
    script = as_tvmscript(module)
    again = parse(script)
    x, pair = np.arange(1, 4, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
    of_x = ("count", "down", "symbol", "grow", "nested", "partial", "outer_counter", "down_symbol")
    for entry, given in {**dict.fromkeys(of_x, (x,)), "two": (pair, pair[:1])}.items():
        expected, got = (interpret(each, *given, entry=entry) for each in (module, again))
        pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
        for left, right in pairs:
            np.testing.assert_array_equal(right, left, err_msg=entry)
    np.testing.assert_array_equal(interpret(again, pair, entry="known"), np.exp(pair))


def test_an_effect_of_a_loop_without_values(capsys: pytest.CaptureFixture[str]):
    script = as_tvmscript(parse_module(LOOPS))
    assert "@R.function(pure=False, private=True)\n    def shows_loop(sizes: R.Shape([i" in script
    interpret(parse(script), np.array([1, 2], np.float32), entry="shows")
    assert capsys.readouterr().out == "[1. 2.]\n" * 2


def test_what_a_cast_binds_has_no_name_of_a_signature():
    """TVM takes no `m = T.int64()` where `m` is a name of the whole text."""
    script = as_tvmscript(
        parse_module("""
relax.func @called[%m](%x: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
  relax.return %x
}
relax.func @main(%u: !relax.tensor<*, f32>) -> !relax.object {
  %v, %m = relax.match_cast %u : !relax.tensor<[m], f32> binds [m]
  %s = relax.shape [m + 1]
  %w = relax.ones %s dtype = f32
  %r = relax.call @called(%w)
  relax.return %r
}
""")
    )
    assert "m_1 = T.int64()\n        v = R.match_cast(u, R.Tensor((m_1,)" in script
    assert "R.ones(R.shape([m_1 + 1])" in script
    assert interpret(parse(script), np.ones(2, np.float32), entry="main").shape == (3,)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%0 = relax.reciprocal %x", "'relax.reciprocal' .*: TVM 0.27 has no such operator"),
        ("%0 = relax.size %x", "'relax.size' .*: TVM's operator gives a tensor where this one gives a number"),
        (
            '%f = relax.prim 0 %u = relax.call_packed "u"() : !relax.prim<i64> %0 = relax.for %i = %f to %u '
            "(%a: !relax.tensor<[4], f32> = %x) { relax.yield %a }",
            "'relax.for' .*: a bound or the step is a number that no dimension says",
        ),
        ('%0 = relax.constant "w" : !relax.tensor<[2], f32>', "'relax.constant' .*: its elements are in another file"),
    ],
)
def test_what_tvm_has_not_is_refused_by_name(line: str, reason: str):
    module = parse_module(
        f"relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.object impure {{\n  {line}\n  relax.return %0\n}}\n"
    )
    with pytest.raises(ScriptError, match=reason):
        as_tvmscript(module)


NAMED = """
tir.prim_func private @"{k}"[%{a}, %{b}](%X_: !tir.buffer<[{a}, {b}], f32>, %Y_: !tir.buffer<[{b}, {a}], f32>) {{
  tir.for (%i_, %j_) in (%{a}, %{b}) {{
    %v_ = tir.load %X_[%i_, %j_]
    tir.store %v_, %Y_[%j_, %i_]
  }}
}}
relax.func @"{f}"[%{a}, %{b}](%x_: !relax.tensor<[{a}, {b}], f32>) -> !relax.tensor<[{b}, {a}], f32>
    attributes {{arg_names = ["{p}"]}} {{
  %0 = relax.call_tir @"{k}"(%x_) : !relax.tensor<[{b}, {a}], f32>
  relax.return %0
}}
"""


@pytest.mark.parametrize(
    "names",
    [
        ("T", "I", "q", "f", "k"),  # what the text itself needs
        ("R", "cls", "range", "Module", "float"),
        ("n", "m", "n", "R", "T"),  # a parameter that is called as a symbol is
        ("a.b", "a_b", "a$b", "a b", "a_b"),  # one name of Python
        ("def", "vdef", "def", "def", "vdef"),
        ("n__x", "n__x5f", "n", "n", "m"),
        ("main", "k", "x", "main", "k"),  # a symbol that is called as a function is
        ("n", "m", "¾x", "½", "ﬁ"),  # letters and digits that no name of Python has, or has in another form
    ],
    ids=" ".join,
)
def test_names_stay_apart(names: tuple[str, ...]):
    """Whatever symbols, parameters, functions and kernels are called, the text is one of the same program."""
    text = as_tvmscript(parse_module(NAMED.format(**dict(zip("abpfk", names, strict=True)))))
    module = parse(text)
    (function,) = (op.sym_name.data for op in module.ops if isinstance(op, FuncOp))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(interpret(module, x, entry=function), x.T)
    defined = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert len({*defined, "T", "I", "R"}) == len(defined) + 3
    assert not {"T", "I", "R"} & {line.split()[0] for line in text.splitlines() if "= TypeVar(" in line}
