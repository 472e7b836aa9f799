"""Which symbols ops use and witness, bounds at an op, and the functions of a module."""

import gc
import weakref

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from relax_dialect.dialect import Relax
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import (
    block_symbols_used,
    called_functions,
    enclosing_module,
    find_function,
    prover_at,
    symbols_used,
    symbols_witnessed,
)
from relax_dialect.traits import impurity_of
from tir_dialect.dialect import TIR

PROGRAM = """
relax.func @main[%n in [1, 8], %k](%x: !relax.tensor<[n, k], f32>, %o: !relax.object) -> !relax.object impure {
  %gv, %m = relax.dataflow {
    %lv, %m = relax.match_cast %o : !relax.tensor<[k, m], f32> binds [m]
    relax.output %lv, %m
  }
  %s = relax.shape [n, q]
  %t = relax.strided_slice %x axes = [0] begin = [r] end = [n]
  %f = relax.closure [%a in [2, 4]](%y: !relax.tensor<[a, n], f32>) -> !relax.tensor<[a, n], f32> {
    %e = relax.exp %y
    relax.return %e
  }
  %w = relax.while [%b in [3, _]](%c: !relax.tensor<[b, n], f32> = %x) {
    %d = relax.call_pure_packed "go_on"(%c) : !relax.prim<i1>
    relax.yield %d
  } do [%b_1 as b in [3, _]](%c_1) {
    relax.yield %c_1
  }
  %r = relax.call @other(%x) impure : !relax.object
  relax.print "{}"(%x)
  relax.return %x
}
relax.func private @other(%x: !relax.object) -> !relax.object impure {
  relax.return %x
}
"""


def parse(program: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Relax, TIR):
        context.load_dialect(dialect)
    parsed = Parser(context, program).parse_module()
    assert isinstance(parsed, ModuleOp)
    return parsed


@pytest.fixture
def module() -> ModuleOp:
    return parse(PROGRAM)


def the(module: ModuleOp, name: str) -> Operation:
    return next(op for op in module.walk() if op.name == f"relax.{name}")


@pytest.mark.parametrize(
    ("name", "used", "witnessed"),
    [
        ("match_cast", {"k"}, {"m"}),
        ("dataflow", {"k"}, {"m"}),
        ("output", {"k", "m"}, set[str]()),
        ("shape", {"n", "q"}, set[str]()),
        # The positions of a slice are used too, not only what is in the type of the result.
        ("strided_slice", {"n", "k", "r"}, set[str]()),
        # A function binds its own symbols.
        ("closure", {"n"}, set[str]()),
        ("while", {"n", "k"}, set[str]()),
    ],
)
def test_symbols_of_an_op(module: ModuleOp, name: str, used: set[str], witnessed: set[str]):
    op = the(module, name)
    assert symbols_used(op) == used
    assert symbols_witnessed(op).keys() == witnessed


def test_symbols_of_blocks(module: ModuleOp):
    block = the(module, "func").regions[0].block
    assert symbols_witnessed(block) == {"n": block.args[0], "k": block.args[1]}
    assert block_symbols_used(block) == set()
    inner = the(module, "closure").regions[0].block
    assert symbols_witnessed(inner) == {"a": inner.args[0]}
    assert block_symbols_used(inner) == {"n"}
    for region in the(module, "while").regions:
        assert symbols_witnessed(region.block) == {"b": region.block.args[0]}


def test_the_witness_is_the_result(module: ModuleOp):
    cast = the(module, "match_cast")
    assert symbols_witnessed(cast) == {"m": cast.results[1]}


def test_bounds_are_those_of_all_around(module: ModuleOp):
    assert prover_at(the(module, "shape")).bounds["n"] == (1, 8)
    inner = prover_at(the(module, "exp")).bounds
    assert (inner["n"], inner["a"]) == ((1, 8), (2, 4))
    assert prover_at(the(module, "yield")).bounds["b"] == (3, None)
    assert prover_at(the(module, "shape")) is prover_at(the(module, "dataflow"))


def test_functions_are_found(module: ModuleOp):
    main, other = module.body.block.ops
    call = the(module, "call")
    assert enclosing_module(call) is module
    assert list(called_functions(call)) == ["other"]
    assert find_function(call, "other") is other
    assert find_function(call, "main") is main
    assert find_function(call, "missing") is None


def test_functions_are_found_after_changes(module: ModuleOp):
    main, other = module.body.block.ops
    assert isinstance(other, FuncOp)
    assert find_function(main, "other") is other
    other.detach()
    assert find_function(main, "other") is None
    other.properties["sym_name"] = type(other.sym_name)("renamed")
    module.body.block.add_op(other)
    assert find_function(main, "other") is None
    assert find_function(main, "renamed") is other


def test_a_module_in_which_functions_were_found_is_released():
    module = parse(PROGRAM)
    assert find_function(module, "main") is not None
    alive = weakref.ref(module)
    del module
    gc.collect()
    assert alive() is None


def test_nothing_is_found_outside_of_a_module(module: ModuleOp):
    call = the(module, "call")
    call.detach()
    assert enclosing_module(call) is None
    assert find_function(call, "other") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("exp", None),
        ("while", None),
        ("closure", None),
        ("dataflow", None),
        ("call", "calls @other, which is impure"),
        ("print", "writes to the standard output"),
    ],
)
def test_impurity(module: ModuleOp, name: str, reason: str | None):
    assert impurity_of(the(module, name)) == reason
