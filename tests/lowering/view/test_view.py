"""Pictures of modules: what is drawn, and that Graphviz and HTML take it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

import xdsl_relax as xr
from lowering.context import make_context
from lowering.locations import named_location
from lowering.parsing import parse_module
from lowering.pipelines import expand
from lowering.registry import pass_factories
from lowering.view import graph
from lowering.view.graph import CannotRender, Graph, Kind, graph_of, to_dot, to_svg
from lowering.view.page import ASSUMED, Life, chart_of, lives_of, nest_of, page, write_view
from relax_dialect.ops.structure import FuncOp
from tests.support.corpus import texts, valid_module
from tir_dialect import te
from tir_dialect.schedule import Schedule
from xdsl_relax.cli.relax_opt import main

CHAIN = """
relax.func @main[%n](%x: !relax.tensor<[n, 64], f32>, %w: !relax.tensor<[64, 64], f32>) -> !relax.tensor<[n, 64], f32> {
  %z = relax.dataflow {
    %a = relax.matmul %x, %w
    %b = relax.matmul %a, %w
    %c = relax.nn.softmax %b
    relax.output %c
  }
  %d = relax.matmul %z, %w
  relax.return %d
}
"""


BRANCHES = """
relax.func @main(%c: !relax.tensor<[], i1>, %x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  %y = relax.if %c {
    %a = relax.exp %x
    relax.yield %a
  } else {
    %b = relax.negative %x
    relax.yield %b
  }
  %z = relax.sqrt %y
  relax.return %z
}
"""


def lowered(text: str, last: str) -> ModuleOp:
    """A module after the passes of the default pipeline up to one of them."""
    module = parse_module(text)
    (pipeline,) = PassPipeline.parse_spec(pass_factories(), "relax-to-vm").passes
    for step in expand(pipeline):
        step.apply(make_context(), module)
        if step.name == last:
            return module
    raise AssertionError(f"no pass {last}")


def arrows(graph: Graph) -> list[str]:
    labels = {node.id: node.label.replace("\n", " ") for node in graph.root.walk()}
    return [f"{labels[edge.source]} -> {labels[edge.target]}: {edge.label}" for edge in graph.edges]


def function(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


def test_values_go_from_op_to_op_also_out_of_regions():
    graph = graph_of(function(parse_module(CHAIN)))
    assert arrows(graph) == [
        "%x -> matmul: [n, 64] f32",
        "%w -> matmul: [64, 64] f32",
        "matmul -> matmul: [n, 64] f32",
        "%w -> matmul: [64, 64] f32",
        "matmul -> nn.softmax: [n, 64] f32",
        "nn.softmax -> matmul: [n, 64] f32",
        "%w -> matmul: [64, 64] f32",
        "matmul -> return: [n, 64] f32",
    ]
    assert [cluster.label for cluster in graph.root.clusters] == ["dataflow"]
    assert len(graph.root.clusters[0].nodes) == 3


def test_kernels_write_what_others_read():
    found = arrows(graph_of(function(lowered(CHAIN, "plan-memory"))))
    assert "call_kernel @matmul -> call_kernel @nn_softmax: [n, 64] f32" in found
    assert "call_kernel @matmul -> return: [n, 64] f32" in found


def test_both_branches_make_the_result():
    found = arrows(graph_of(function(parse_module(BRANCHES))))
    assert {"exp -> sqrt: [2] f32", "negative -> sqrt: [2] f32"} <= {*found}


def test_branches_of_bytecode_are_dashed():
    module = lowered(BRANCHES, "convert-relax-to-vm")
    graphs = [graph_of(op) for op in module.ops if op.name == "vm.func"]
    assert any(edge.is_control for graph in graphs for edge in graph.edges)
    assert "style=dashed" in "".join(map(to_dot, graphs))


def test_layers_of_the_source_stand_for_their_ops():
    module = parse_module(CHAIN)
    paths = iter(("/enc/a/mm", "/enc/a/mm2", "/enc/b/softmax"))
    func = function(module)
    for op in func.walk():
        if op.name in ("relax.matmul", "relax.nn.softmax") and (path := next(paths, None)) is not None:
            op.location = named_location(path)
    graph = graph_of(func)
    overview = graph.by_layer()
    assert [node.label for node in overview.root.walk() if node.kind is Kind.LAYER] == ["enc/a\n2 ops", "enc/b\n1 ops"]
    assert "enc/a 2 ops -> enc/b 1 ops: [n, 64] f32" in arrows(overview)
    inner = graph.layers()["enc/a"]
    assert [node.label for node in inner.root.clusters[0].nodes] == ["matmul", "matmul"]
    assert {node.label for node in inner.root.nodes} == {"%x", "%w", "nn.softmax"}


def test_nests_show_loops_kinds_and_blocks():
    module = parse_module(
        """
        tir.prim_func @f(%X: !tir.buffer<[8, 4], f32>, %Y: !tir.buffer<[8, 4], f32>) {
          %c8 = arith.constant 8 : index
          %c4 = arith.constant 4 : index
          tir.for parallel (%i) in (%c8) {
            tir.for (%j) in (%c4) {
              tir.block "copy" (%vi = spatial %i in %c8, %vj = spatial %j in %c4) {
                %v = tir.load %X[%vi, %vj]
                tir.store %v, %Y[%vi, %vj]
              }
            }
          }
        }
        """
    )
    text = nest_of(next(iter(module.ops)))
    assert '<div class="box loop parallel"><b>for %i in 8 parallel</b>' in text
    assert "block copy (spatial %vi = %i in 8, spatial %vj = %j in 4)" in text
    assert "<code>%v = tir.load %X[%vi, %vj]</code>" in text


def test_values_have_one_name_in_all_ops_of_a_graph():
    text = """
    relax.func @f(%x: !relax.tensor<[8], f32>) {
      %0 = relax.exp %x
      %1 = relax.add %0, %x
      %2 = relax.multiply %1, %0
      relax.return %2
    }
    """
    details = [node.details for node in graph_of(next(iter(parse_module(text).ops))).root.walk()]
    assert details == [
        "[8] f32",
        "%0 = relax.exp %x",
        "%1 = relax.add %0, %x",
        "%2 = relax.multiply %1, %0",
        "relax.return %2",
    ]


def test_values_have_one_name_in_all_lines_of_a_nest():
    """Two values of one name are told apart, as in the text; loops side by side may have the same variables."""
    text = nest_of(
        next(
            iter(
                parse_module(
                    """
        tir.prim_func @f(%X: !tir.buffer<[8], f32>) {
          tir.for (%i) in (8) {
            tir.block "b" (%v = spatial %i in 8) {
              %X_0 = tir.load %X[%v]
              %0 = arith.mulf %X_0, %X_0 : f32
              %1 = arith.addf %0, %X_0 : f32
              tir.store %1, %X[%v]
            }
          }
          tir.for (%i) in (8) {
            tir.block "b" (%v = spatial %i in 8) {
              %2 = arith.constant 0.0 : f32
              tir.store %2, %X[%v]
            }
          }
        }
        """
                ).ops
            )
        )
    )
    for line in (
        "%X_1 = tir.load %X[%v]",
        "%2 = arith.mulf %X_1, %X_1 : f32",
        "%3 = arith.addf %2, %X_1 : f32",
        "tir.store %3, %X[%v]",
    ):
        assert f"<code>{line}</code>" in text
    assert re.findall(r"<b>([^<]*)</b>", text) == ["for %i in 8", "block b (spatial %v = %i in 8)"] * 2


def test_loops_show_their_tiles():
    """What one round reads and writes, from the innermost loop to the outermost."""
    A, B = te.placeholder((32, 64), "f32", name="A"), te.placeholder((64, 16), "f32", name="B")
    k = te.reduce_axis((0, 64))
    C = te.compute((32, 16), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="C")
    func = te.create_prim_func([A, B, C], "matmul")
    schedule = Schedule(func)
    i, j, r = schedule.get_loops(schedule.get_block("C"))
    outer, inner = schedule.split(i, [None, 8])
    schedule.reorder(outer, j, inner, r)
    text = nest_of(schedule.func)
    found = re.findall(r"<b>for %(\w+) in [^<]*</b><details class=\"tile\"><summary>a round: ([^<]*)</summary>", text)
    shapes = [re.sub(r"%\w+ ", "", tile) for _, tile in found]
    assert shapes == [
        "8 x 16, 8 x 64, 64 x 16",
        "8 x 1, 8 x 64, 64 x 1",
        "1 x 1, 1 x 64, 64 x 1",
        "1 x 1, 1 x 1, 1 x 1",
    ]


def test_tensors_that_live_together_lie_apart():
    lives = lives_of(function(lowered(CHAIN, "plan-memory")), {"n": 3})
    assert len(lives) >= 2
    for at, one in enumerate(lives):
        assert one.size == 3 * 64 * 4
        for other in lives[at + 1 :]:
            together = one.start <= other.end and other.start <= one.end
            apart = one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
            assert apart or not together
    assert lives_of(function(lowered(CHAIN, "plan-memory")), {})[0].size == ASSUMED * 64 * 4


def test_a_chart_is_drawn_to_scale():
    text = chart_of([Life("%a", 1, 2, 0, 64), Life("%b<", 2, 3, 64, 192), Life("%none", 1, 1, 0, 0)])
    rects = ElementTree.fromstring(text).findall("{http://www.w3.org/2000/svg}rect")
    first, second = ({key: float(rect.attrib[key]) for key in ("x", "y", "width", "height")} for rect in rects)
    assert second["height"] == pytest.approx(3 * first["height"])
    assert first["width"] == pytest.approx(second["width"], abs=0.2)
    assert first["y"] == pytest.approx(second["y"] + second["height"], abs=0.2)
    assert "&lt;" in text
    assert chart_of([]) == ""


class _Tags(HTMLParser):
    """Counts tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.summaries = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "br", "rect", "polygon", "path", "ellipse", "polyline"):
            self.open.append(tag)
        self.summaries += tag == "summary"

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_a_page_has_both_sides_and_all_functions():
    after = lowered(CHAIN, "plan-memory")
    text = page(after, parse_module(CHAIN))
    tags = _Tags()
    tags.feed(text)
    assert tags.open == []
    assert ">before<" in text
    assert text.count("relax.func @main") == 2
    assert "memory" in text
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)  # nothing is loaded from elsewhere


def test_large_functions_are_drawn_by_layer():
    lines = "\n".join(f"  %{i + 1} = relax.exp %{i}" for i in range(70))
    module = parse_module(
        f"relax.func @main(%0: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {{\n{lines}\n  relax.return %70\n}}"
    )
    for number, op in enumerate(op for op in module.walk() if op.name == "relax.exp"):
        op.location = named_location(f"/layer.{number // 10}/exp_{number}")
    text = page(module)
    assert text.count("<summary>layer.") == 7
    assert "10 ops" in text


@pytest.mark.parametrize("text", ['a "quoted" \\N name', "x\ny", "é𝄞 <b>&amp;", "\0", "{|}"])
def test_any_label_is_drawn_as_it_is(text: str):
    module = parse_module("relax.func @f(%x: !relax.object) -> !relax.object { relax.return %x }")
    graph = graph_of(function(module))
    node = graph.root.nodes[0]
    graph.root.nodes[0] = type(node)(node.id, text, node.kind)
    drawn = "".join(ElementTree.fromstring(to_svg(to_dot(graph))).itertext())
    assert text.replace("\0", " ").replace("\n", "") in drawn.replace("\n", "").replace("\xa0", " ")


def test_modules_of_the_tree_are_drawn():
    """A sample of all levels."""
    for name, text in texts()[::25]:
        module = valid_module(name, text)
        for op in () if module is None else module.ops:
            if op.regions and op.regions[0].blocks:
                assert to_svg(to_dot(graph_of(op))).startswith("<svg"), name


def test_the_tool_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = tmp_path / "chain.mlir"
    source.write_text(CHAIN)
    for suffix, start in ((".html", "<!DOCTYPE html>"), (".svg", "<svg"), (".dot", "digraph")):
        target = tmp_path / f"view{suffix}"
        assert main([str(source), "-p", "legalize-ops", "--view", str(target)]) == 0
        assert target.read_text().startswith(start)
    capsys.readouterr()
    assert main([str(source), "--view", str(tmp_path / "view.png")]) == 1
    assert "expected a file that ends in one of .html, .svg, .dot, got" in capsys.readouterr().err
    source.write_text("")
    assert main([str(source), "--view", str(tmp_path / "view.svg")]) == 1
    assert "the module has no function to draw" in capsys.readouterr().err


def test_without_graphviz_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(graph, "find_spec", lambda name: None)
    monkeypatch.setattr(graph.shutil, "which", lambda name: None)
    module = parse_module(CHAIN)
    with pytest.raises(CannotRender, match=r"pip install 'xdsl-relax\[view\]'"):
        write_view(tmp_path / "view.svg", module)
    write_view(tmp_path / "view.dot", module)


def test_pictures_from_python(tmp_path: Path):
    """In notebooks a frame with the page; in files by suffix."""
    module = parse_module(CHAIN)
    picture = xr.view(module, "legalize-ops,to-non-dataflow,lower-call-tir,plan-memory", sizes={"n": 3})
    assert f"{3 * 64 * 4:,} bytes at " in picture.html()
    assert picture._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "<h2>before</h2>" in picture.html()
    assert "<h2>before</h2>" not in xr.view(module).html()
    for suffix in (".html", ".svg", ".dot"):
        picture.save(tmp_path / f"m{suffix}")
        assert (tmp_path / f"m{suffix}").stat().st_size > 500
    with pytest.raises(ValueError, match="expected a file that ends in one of"):
        picture.save(tmp_path / "m.png")


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    root = Path(__file__).parents[3]
    commands = re.findall(r"^relax-opt (.*)$", (root / "docs" / "howto" / "view.md").read_text(), re.MULTILINE)
    (tmp_path / "examples").symlink_to(root / "examples")
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert main(command.split()) == 0
        assert (tmp_path / command.split()[-1]).stat().st_size > 500
    assert len(commands) == 4
    assert capsys.readouterr().err == ""


def test_the_program_of_the_page_runs(tmp_path: Path):
    text = (Path(__file__).parents[3] / "docs" / "howto" / "view.md").read_text()
    program = "".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    program = program.replace("planned.html", str(tmp_path / "planned.html"))
    exec(compile(program, "view.md", "exec"), {})
    assert "<h2>after</h2>" in (tmp_path / "planned.html").read_text()
