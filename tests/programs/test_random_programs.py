"""Random programs: they are well-formed, mean the same in every mode, as text, and after inference."""

from __future__ import annotations

from collections import Counter
from io import StringIO

import pytest
from hypothesis import Phase, given, settings
from xdsl.printer import Printer

from lowering.parsing import parse_module
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import Tolerance, check_pass, run_everywhere
from tests.support.sweeps import examples

CLOSE = Tolerance(relative=1e-4, absolute=1e-5)


@given(programs())
@examples(8)
def test_programs_are_well_formed_and_run(program: Program):
    verify_module(program.module)
    run(program.module, program.entry, program.inputs)


@given(programs())
@examples(8)
def test_text_is_read_back(program: Program):
    text = str(program.module)
    assert str(parse_module(text)) == text
    generic = StringIO()
    Printer(generic, print_generic_format=True).print_op(program.module)
    assert str(parse_module(generic.getvalue())) == text


@given(programs())
@examples(8)
def test_inference_changes_no_result(program: Program):
    check_pass(program.module, "infer-struct-info", [program.inputs], entry=program.entry)


@given(programs())
@examples(4)
def test_modes_agree(program: Program):
    run_everywhere(program.module, program.entry, program.inputs, CLOSE)


@pytest.mark.slow
@given(programs())
@settings(max_examples=100)
def test_inferred_programs_compile(program: Program):
    module = check_pass(program.module, "infer-struct-info", [program.inputs], entry=program.entry)
    run_everywhere(module, program.entry, program.inputs, CLOSE)


CONSTRUCTS = {
    "relax.assert",
    "relax.call",
    "relax.call_closure",
    "relax.call_dps_packed",
    "relax.call_pure_packed",
    "relax.call_tir",
    "relax.call_tir_inplace",
    "relax.closure",
    "relax.dataflow",
    "relax.for",
    "relax.if",
    "relax.make_closure",
    "relax.match_cast",
    "relax.tuple_get",
    "relax.while",
}
"""What some programs show."""


def test_programs_show_the_whole_language():
    """Each construct is in some of the programs; none has more than a hundred ops or so."""
    seen: Counter[str] = Counter()
    sizes: list[int] = []

    @given(programs())
    @settings(max_examples=100, derandomize=True, database=None, phases=[Phase.generate])
    def collect(program: Program) -> None:
        ops = list(program.module.walk())
        seen.update({op.name for op in ops})
        sizes.append(len(ops))

    collect()
    assert {name for name in CONSTRUCTS if not seen[name]} == set()
    assert max(sizes) < 250


def test_features_can_be_left_out():
    @given(programs(ALL.without("loops", "closures", "calls", "recursion", "dataflow")))
    @settings(max_examples=60, phases=[Phase.generate])
    def check(program: Program) -> None:
        names = {op.name for op in program.module.walk()}
        left_out = {"relax.for", "relax.while", "relax.closure", "relax.call", "relax.dataflow", "relax.make_closure"}
        assert not names & left_out

    check()


def some_texts() -> list[str]:
    texts: list[str] = []

    @given(programs())
    @settings(max_examples=20, derandomize=True, database=None, phases=[Phase.generate])
    def collect(program: Program) -> None:
        texts.append(f"{program.module} {program.inputs}")

    collect()
    return texts


def test_programs_are_the_same_in_every_run():
    assert some_texts() == some_texts()
