import pytest

from lowering.parsing import make_context, parse_module
from lowering.pipelines import PipelinePass, expand
from lowering.registry import PASSES, load_pass
from tests.support.programs import run_pipeline

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
