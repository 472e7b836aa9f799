import pytest

from lowering.index import INDEX
from lowering.parsing import parse_module
from lowering.registry import DIALECTS, load_dialect, load_pass
from lowering.relax_to_vm.convert_relax_to_vm import PATTERNS
from lowering.stages import (
    EXPLICIT_MEMORY,
    RELAX_CORE,
    STAGES,
    OpSet,
    Stage,
    VerifyStagePass,
    ops,
    or_later,
    stage_findings,
)

OURS = {op.name for name in DIALECTS for op in load_dialect(name).operations}
each_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


def _named(allowed: OpSet) -> set[str]:
    """The names of our ops that a set mentions one by one."""
    return {name for name in allowed.names | allowed.excepted if name.partition(".")[0] in DIALECTS}


@each_stage
def test_what_a_stage_names_exists(stage: Stage):
    named = {name for allowed in stage.functions.values() for each in allowed for name in _named(each)}
    assert named <= OURS


def test_every_op_of_ours_has_a_stage():
    allowed = [each for stage in STAGES.values() for sets in stage.functions.values() for each in sets]
    functions = {name for stage in STAGES.values() for name in stage.functions}
    assert not {name for name in OURS - functions if not any(name in each for each in allowed)}


def test_hints_name_passes_and_ops():
    assert {name for entry in INDEX.values() for name in entry.removes} <= OURS


def test_what_the_machine_has_a_form_for_is_what_may_come_before_it():
    load_pass("convert-relax-to-vm")
    converted = {op.name for op in load_dialect("relax").operations if PATTERNS.of_class(op)}
    assert converted == RELAX_CORE.names | EXPLICIT_MEMORY.names


def test_op_sets():
    allowed = ops("a.* b.x", but="a.z")
    assert ["a.y" in allowed, "a.z" in allowed, "b.x" in allowed, "b.y" in allowed, "a" in allowed] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_a_type_of_another_stage_is_found():
    stage = Stage("functions", {"func.func": (ops("func.*"),)}, frozenset({"tir"}))
    module = parse_module("func.func @f(%a: !vm.object, %b: i32, %c: !tir.buffer<[n], f32>) { func.return }")
    (finding,) = stage_findings(module, "functions", stage)
    assert finding.message == "'func.func' op has a value of type !vm.object, which is not legal in stage functions"


def test_an_unknown_stage_is_refused():
    with pytest.raises(ValueError, match=r"expected one of the stages relax, .*, got relaxed"):
        VerifyStagePass("relaxed")


def test_what_a_later_stage_allows_may_be_legal_too():
    whole = or_later("relax-legal")
    assert set(whole.functions) >= {"relax.func", "vm.func", "tir.prim_func", "llvm.func"}
    assert "relax" not in or_later("vm").types
    assert not any("relax.exp" in each for each in whole.functions["relax.func"])
    module = parse_module("vm.func @f(%a: !vm.object) -> !vm.object { vm.ret %a }")
    assert list(stage_findings(module, "relax-legal", STAGES["relax-legal"]))
    assert not list(stage_findings(module, "relax-legal", whole))
