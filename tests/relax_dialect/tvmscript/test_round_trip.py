"""Modules as TVMScript: our reader makes the same module of the text.

That TVM reads it, and computes the same, is compared by `tests/tools/compare_with_tvm.py` where TVM is installed.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from lowering.parsing import parse_module
from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from relax_dialect.ops.structure import FuncOp
from relax_dialect.tvmscript import ScriptError, as_tvmscript
from tests.support.corpus import texts, valid_module
from xdsl_relax.model import interpret

REREAD = {
    "tests/filecheck/lowering/relax/infer_struct_info_invalid.mlir#0",
    "tests/filecheck/lowering/relax/rewrites/fold_shape_computations.mlir#4",
    "tests/filecheck/lowering/relax/simplify_match_cast.mlir#5",
}
"""Modules with types that say less than is known, and are provably wrong once more is: the reader infers them anew."""

INFERRED = {
    "tests/filecheck/lowering/relax/simplify_match_cast.mlir#0",
    "tests/filecheck/lowering/relax_to_vm/convert_relax_to_vm.mlir#8",
    "tests/filecheck/relax_dialect/layers.mlir",
}
"""Modules of which the reader says more: types that it infers, and the mask of `R.nn.dropout`."""


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
        if _canonical(again) != _canonical(script) and name not in INFERRED:
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


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%0 = relax.reciprocal %x", "'relax.reciprocal' .*: TVM 0.27 has no such operator"),
        ("%0 = relax.size %x", "'relax.size' .*: TVM's operator gives a tensor where this one gives a number"),
        ('%0 = relax.constant "w" : !relax.tensor<[2], f32>', "'relax.constant' .*: its elements are in another file"),
    ],
)
def test_what_tvm_has_not_is_refused_by_name(line: str, reason: str):
    module = parse_module(
        f"relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.object {{\n  {line}\n  relax.return %0\n}}\n"
    )
    with pytest.raises(ScriptError, match=reason):
        as_tvmscript(module)
