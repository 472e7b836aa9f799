"""Sizes that an op takes to be equal are checked after a rewrite of the op as well.

The programs are those that FileCheck tests rewrite. One dimension of a parameter gets a symbol of its own, so that
inference can no longer prove what it proved, and calls have it as before and wrong: after each pass, and after all of
them, what raised raises, and what had a value has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.exceptions import DiagnosticException, ParseError

from lowering.parsing import parse_module
from lowering.registry import pass_factories
from lowering.relax.infer_struct_info import InferStructInfoPass
from lowering.relax.insert_guards import KeptChecks, apply_graph_patterns, implies
from lowering.rewriting import op_rewrite_pattern
from lowering.verify import verify_module
from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.interpreter import run
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.unary import NegativeOp, UnaryOp
from relax_dialect.struct_info.types import TensorType
from tests.support.corpus import texts
from tests.support.programs import Tolerance, as_arguments, as_plain, assert_same, run_pipeline
from tir_dialect.dims import symbol
from tir_dialect.dtypes import numpy_dtype

FILES = re.compile(r"lowering/relax/(rewrites|layout)/|lowering/relax/(eliminate|simplify)")
SLOTS = 12
SAMPLE = 17
"""A quick run sees one in so many of the programs and dimensions."""
CHANGES_VALUES = {"to-mixed-precision"}
LIKE = Tolerance(1e-3, 1e-3)
OWN = "own"
"""The symbol of the dimension that is not as inference has it."""

_HEADER = re.compile(r"(relax\.func (?:private )?@[\w.]+)(?:\[([^\]]*)\])?\(([^{]*)\) -> [^{]*?( impure)? \{")
_DIMS = re.compile(r"!relax\.tensor<\[([\w, ]*)\]")
_DIM = re.compile(r"\w+")


def loosened(text: str, slot: int) -> tuple[ModuleOp, dict[str, str]] | None:
    """A program in which the dimension `slot` of the parameters of each function is `OWN`, if it is valid then; for
    each function, what the dimension was: a symbol, or a number.
    """
    was: dict[str, str] = {}

    def with_own(header: re.Match[str]) -> str:
        start, symbols, params, impure = header.groups()
        seen, count = set[str](), 0

        def dim(found: re.Match[str]) -> str:
            nonlocal count
            is_bound_here = found[0] == "_" or (not found[0].isdigit() and found[0] not in seen)
            seen.add(found[0])
            count += not is_bound_here
            if is_bound_here or count != slot + 1:
                return found[0]
            was[start.partition("@")[2]] = found[0]
            return OWN

        types = _DIMS.sub(lambda dims: dims[0].replace(dims[1], _DIM.sub(dim, dims[1])), params)
        if OWN not in types:
            return header[0]
        bound = ", ".join(filter(None, [symbols, f"%{OWN}"]))
        return f"{start}[{bound}]({types}) -> !relax.object{impure or ''} {{"

    try:
        module = parse_module(_HEADER.sub(with_own, text))
        InferStructInfoPass().apply(Context(), module)
        verify_module(module)
    except (ParseError, DiagnosticException, ValueError):
        return None
    return module, was


@dataclass(frozen=True)
class Call:
    """A call of a function with a size for `OWN`."""

    function: str
    size: int
    arguments: Sequence[np.ndarray]


def calls(module: ModuleOp, was: Mapping[str, str]) -> Iterator[Call]:
    """Calls with the dimension as it was, and with others."""
    for func in module.ops:
        if not isinstance(func, FuncOp) or func.sym_name.data not in was or func.is_private:
            continue
        names = [each.symbol.data for each in func.function_type.symbols]
        sizes = {name: 2 + index for index, name in enumerate(names)}
        right = was[func.sym_name.data]
        right = int(right) if right.isdigit() else sizes[right]
        for size in (right, 0, 1, right + 1, 2 * right):
            values = [_drawn(info, {**sizes, OWN: size}) for info in func.function_type.params]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                yield Call(func.sym_name.data, size, known)


def _drawn(info: object, sizes: Mapping[str, int]) -> np.ndarray | None:
    if not isinstance(info, TensorType) or info.known_dims is None or info.dtype is None:
        return None
    shape = [dim.evaluate(sizes) for dim in info.known_dims]
    return np.asarray(2 * np.random.default_rng(0).standard_normal(shape)).astype(numpy_dtype(info.dtype))


def outcome(module: ModuleOp, call: Call) -> object:
    """What a call gives; `None` if it raises."""
    try:
        with np.errstate(all="ignore"):
            return as_plain(run(module, call.function, as_arguments([each.copy() for each in call.arguments])))
    except (ValueError, KeyError):  # the latter where the elements of weights are elsewhere
        return None


def faults(name: str, text: str, slot: int) -> Iterator[str]:
    """Where a program with a dimension of its own raises before a pass and not after it, or the other way round."""
    found = loosened(text, slot)
    if found is None:
        return
    module, was = found
    before = [(call, outcome(module, call)) for call in calls(module, was)]
    own_pass = name.rpartition("/")[2].partition(".")[0].replace("_", "-")
    for pipeline in {own_pass, "optimize-graph"} & {*pass_factories()} if before else ():
        rewritten = module.clone()
        run_pipeline(rewritten, pipeline)
        for call, expected in before:
            value, where = outcome(rewritten, call), f"{name}, slot {slot}: @{call.function} with {call.size}"
            if (value is None) is not (expected is None):
                yield f"{where} {'gives a value' if expected is None else 'raises'} after {pipeline}"
            elif pipeline not in CHANGES_VALUES:
                assert_same(value, expected, LIKE, f"{where} after {pipeline}")


PROGRAMS = [(name, text) for name, text in texts() if FILES.search(name)]
CASES = [(name, text, slot) for name, text in PROGRAMS for slot in range(SLOTS)]


def check(cases: Sequence[tuple[str, str, int]]) -> None:
    found = [fault for case in cases for fault in faults(*case)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_sample():
    check(CASES[::SAMPLE])


@pytest.mark.slow
def test_all():
    check(CASES)


def test_the_sweep_finds_faults(monkeypatch: pytest.MonkeyPatch):
    """Without the checks, a layer with wrong weights has a value."""
    monkeypatch.setattr(KeptChecks, "settle", lambda self, rewriter: None)
    (text,) = [text for name, text in PROGRAMS if name.endswith("expand_recurrent_layers.mlir#0")]
    assert [*faults("a layer", text, 8)]


PRODUCT = """
relax.func @main[%n, %k, %j](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[j, k], f32>,
                                 %z: !relax.tensor<[n, k], f32>) -> !relax.object {
  %r = relax.matmul %x, %y
  %e = relax.exp %r
  %f = relax.exp %z
  %t = relax.tuple(%e, %f)
  relax.return %t
}
"""
GUARD = 'equal k, j, "equal contracted dimensions"'


class Replace(RewritePattern):
    """A product is what is computed from a parameter."""

    def __init__(self, param: int, kind: type[UnaryOp] | None):
        self.param, self.kind = param, kind

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        func = op.parent_op()
        assert isinstance(func, FuncOp)
        value = func.params[self.param]
        if self.kind is None:
            rewriter.replace(op, [], [value])
        else:
            rewriter.replace(op, self.kind(value))


REPLACED = {
    "an operand of it": (0, NegativeOp, "guard %x, GUARD;negative %x_1;exp %r;exp %z;"),
    "something else": (2, NegativeOp, "guard %z, GUARD;negative %z_1;exp %r;exp %z;"),
    "a value that was there": (2, None, "guard %z, GUARD;exp %z_1;exp %z;"),
}


@pytest.mark.parametrize(("param", "kind", "expected"), REPLACED.values(), ids=REPLACED)
def test_guards_are_as_early_as_the_new_ops(param: int, kind: type[UnaryOp] | None, expected: str):
    module = parse_module(PRODUCT)
    apply_graph_patterns(module, [Replace(param, kind)])
    body = str(module).split("{")[2].split("%t =")[0]
    lines = [line.partition("= relax.")[2] for line in body.splitlines() if "=" in line]
    assert "".join(f"{line};" for line in lines) == expected.replace("GUARD", GUARD)


N, M, L = symbol("n"), symbol("m"), symbol("l")
EQUAL, BROADCAST, AT_MOST = DimRelation


@pytest.mark.parametrize(
    ("made", "wanted", "expected"),
    [
        ((EQUAL, N, M), (EQUAL, M, N), True),
        ((EQUAL, N, M), (BROADCAST, M, N), True),
        ((EQUAL, N, M), (AT_MOST, N, M), True),
        ((BROADCAST, N, M), (EQUAL, N, M), False),
        ((BROADCAST, N, M), (AT_MOST, N, M), False),
        ((AT_MOST, N, M), (AT_MOST, N, M), True),
        ((AT_MOST, M, N), (AT_MOST, N, M), False),
        ((AT_MOST, N, M), (EQUAL, N, M), False),
        ((EQUAL, N, L), (EQUAL, N, M), False),
    ],
)
def test_what_a_check_says_of_another(made: tuple[Any, ...], wanted: tuple[Any, ...], expected: bool):
    assert implies(DimCheck(*made, "one"), DimCheck(*wanted, "another")) is expected
