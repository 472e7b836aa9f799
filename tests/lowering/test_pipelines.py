from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.printer import Printer

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.pipelines import PipelinePass, expand
from lowering.registry import PASSES, load_pass
from lowering.verify import verify_module
from tests.support.programs import run_pipeline

EXAMPLES = sorted(
    path for path in (Path(__file__).parents[2] / "examples").glob("*.mlir") if path.stem != "tensor_parallel"
)
"""Programs for one worker; `tests/lowering/distributed` has those for several."""

PIPELINES = [cls for name in PASSES if issubclass(cls := load_pass(name), PipelinePass)]
each_pipeline = pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda cls: cls.name)

TEXT = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""


@each_pipeline
def test_every_step_is_a_pass(pipeline: type[PipelinePass]):
    passes = pipeline.passes()
    assert len(passes) >= len(pipeline.steps)
    assert not any(isinstance(each, PipelinePass) for each in passes)
    assert expand(pipeline()) == passes


@pytest.mark.parametrize("name", ["relax-to-vm", "relax-to-llvm"])
def test_a_pipeline_for_all_of_a_module_checks_where_it_arrives(name: str):
    pipeline = load_pass(name)
    assert issubclass(pipeline, PipelinePass)
    assert pipeline.passes()[-1].name == "verify-stage"


def test_as_one_pass_and_step_by_step_are_the_same():
    whole, stepwise = parse_module(TEXT), parse_module(TEXT)
    pipeline = load_pass("relax-to-vm")
    assert issubclass(pipeline, PipelinePass)
    pipeline().apply(make_context(), whole)
    run_pipeline(stepwise, ",".join(pipeline.steps))
    assert str(whole) == str(stepwise)


def test_debug_level_shows_each_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("RELAX_DEBUG", "1")
    load_pass("relax-to-vm")().apply(make_context(), parse_module(TEXT))
    err = capsys.readouterr().err
    assert "IR after legalize-ops" in err
    assert "IR after convert-relax-to-vm" in err


LONG = pytest.mark.slow
"""For examples that take longer than the others together."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=LONG if path.stem in ("user_facing", "cross_level") else ())
        for path in EXAMPLES
    ],
)
def test_each_pass_changes_nothing_the_second_time(path: Path):
    pipeline = load_pass("relax-to-llvm")
    assert issubclass(pipeline, PipelinePass)
    module, ctx = parse_module(path.read_text(), path.name), make_context()
    for each in pipeline.passes():
        each.apply(ctx, module)
        verify_module(module)
        once = str(module)
        each.apply(ctx, module)
        assert str(module) == once, each.name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_op_knows_where_it_comes_from_up_to_llvm(path: Path):
    pipeline = load_pass("relax-to-llvm")
    assert issubclass(pipeline, PipelinePass)
    module, ctx = parse_module(path.read_text(), path.name), make_context()
    for each in pipeline.passes():
        if each.name == "convert-tir-to-llvm":  # from here on there are declarations, which come from nowhere
            break
        each.apply(ctx, module)
        lost = [op.name for op in module.walk() if op is not module and op.location == UNKNOWN_LOC]
        assert not lost, each.name


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_stage_is_read_back_from_its_text(path: Path):
    pipeline = load_pass("relax-to-llvm")
    assert issubclass(pipeline, PipelinePass)
    module, ctx = parse_module(path.read_text(), path.name), make_context()
    before = ""
    for each in pipeline.passes():
        if each.name == "schedule-cpu" and path.stem != "mvp":  # thousands of ops from here on
            break
        each.apply(ctx, module)
        if (shown := _printed(module, False)) == before:
            continue
        before = shown
        for generic in (False, True):
            text = _printed(module, generic)
            assert _printed(parse_module(text), generic) == text, each.name


def _printed(module: ModuleOp, generic: bool) -> str:
    text = StringIO()
    Printer(stream=text, print_generic_format=generic).print_op(module)
    return text.getvalue()
