"""What the language server knows of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpus import texts, valid_module
from xdsl_relax.mlir_document import Document, Source

TEXT = """\
tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i0) in (%n) {
    tir.block "exp" (%i = spatial %i0 in %n) {
      %x = tir.load %X[%i]
      %y = math.exp %x : f32
      tir.store %y, %Y[%i]
    }
  }
}

relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[n * m], f32> {
  %0 = relax.flatten %x  // é𝄞 are one and two code units
  %1 = relax.call_tir @exp(%0) : !relax.tensor<[n * m], f32>
  relax.return %1
}
"""


def at(text: str, after: str = "") -> int:
    """The offset of a text, looked for after another one."""
    return TEXT.index(text, TEXT.index(after))


def shown(document: Document, offset: int) -> str:
    found = document.hover(offset)
    assert found is not None
    return found[1]


def written(document: Document, ranges: list[tuple[int, int]]) -> list[str]:
    return [document.text[start:end] for start, end in ranges]


def test_a_value_has_its_inferred_type_and_its_op():
    text = shown(Document(TEXT), at("%0)", "call_tir"))
    assert "%0 : !relax.tensor<[m * n], f32>" in text
    assert "%0 = relax.flatten %x" in text


def test_a_dimension_leads_to_the_value_of_its_symbol():
    document = Document(TEXT)
    use = at("n * m], f32>\n", "call_tir")
    assert shown(document, use) == "```mlir\n%n : !relax.prim<i64, n>\n```\n"
    assert document.definition(use) == (at("%n", "@main"), at("%n", "@main") + 2)
    in_kernel = at("n]", "%Y: ")
    assert document.definition(in_kernel) == (at("%n", "@exp"), at("%n", "@exp") + 2)


def test_a_symbol_and_its_value_are_renamed_together():
    document = Document(TEXT)
    edits = document.renamed(at("%n", "@main"), "rows")
    assert [new for _, new in edits] == ["%rows", "rows", "rows", "rows"]
    text = TEXT
    for (start, end), new in reversed(edits):
        text = text[:start] + new + text[end:]
    assert Document(text).errors() == []
    assert "[%rows, %m](%x: !relax.tensor<[rows, m], f32>) -> !relax.tensor<[rows * m], f32>" in text
    assert text.startswith("tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>")
    assert document.renamed(at("n * m]"), "rows") == edits


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a b", "'a b' is no name: letters, digits and _ make one"),
        ("", "'' is no name: letters, digits and _ make one"),
        ("%1", "the name 1 is taken"),
    ],
)
def test_names_that_would_break_the_text(name: str, message: str):
    with pytest.raises(ValueError, match=f"^{message}$"):
        Document(TEXT).renamed(at("%0", "call_tir"), name)


def test_values_of_two_functions_with_one_name_are_two():
    document = Document(TEXT)
    in_kernel, in_graph = document.references(at("%x", "tir.load")), document.references(at("%x", "flatten"))
    assert written(document, in_kernel) == ["%x", "%x"] == written(document, in_graph)
    assert not {*in_kernel} & {*in_graph}
    definition = document.definition(at("%x", "relax.flatten"))
    assert definition == (at("%x", "@main"), at("%x", "@main") + 2)


def test_indices_and_symbols_are_values():
    document = Document(TEXT)
    assert len(document.references(at("%i]", "tir.load"))) == 3
    assert "relax.prim<i64, m>" in shown(document, at("%m"))


def test_a_symbol_has_its_signature():
    document = Document(TEXT)
    call = at("@exp", "call_tir")
    assert "tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>)" in shown(document, call)
    assert document.definition(call) == (at("@exp"), at("@exp") + 4)
    assert document.references(call) == [(at("@exp"), at("@exp") + 4), (call, call + 4)]


def test_an_op_has_its_documentation_its_class_and_its_rules():
    document = Document(TEXT)
    name = at("flatten")
    assert "row-major order" in shown(document, name)
    definition = document.definition(name)
    assert isinstance(definition, Source)
    assert definition.path.name == "manipulation.py"
    lines = definition.path.read_text().splitlines()[definition.line :]
    assert next(line for line in lines if line.startswith("class")) == "class FlattenOp(ViewOp):"
    assert [source.path.parent.name for source in document.implementations(name)] == ["interpreter"]
    assert len(Document(TEXT.replace("relax.flatten", "relax.exp")).implementations(name)) == 2


def test_completions_are_what_is_there():
    document = Document(TEXT)
    assert dict(document.completions(at("flatten") + 4))["relax.flatten"].startswith("The elements in row-major")
    assert [name for name, _ in document.completions(at("@exp", "call_tir") + 1)] == ["@exp", "@main"]
    values = [name for name, _ in document.completions(at("%1", "relax.return") + 1)]
    assert values == ["%0", "%1", "%m", "%n", "%x"]
    assert ("tir.", "dialect") in document.completions(at("tir.store") + 1)


def test_functions_are_listed():
    document = Document(TEXT)
    assert [(symbol.name, symbol.op.name) for symbol in document.symbols()] == [
        ("exp", "tir.prim_func"),
        ("main", "relax.func"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "marked", "message"),
    [
        ("%0)", "%z)", "%z", "%z is not defined"),
        ("relax.flatten", "relax.flaten", "relax.flaten", "did you mean 'relax.flatten'"),
        ("[n * m], f32> {", "[n, m], f32> {", "relax.return %1", "expected"),
    ],
)
def test_errors_lie_where_they_are(old: str, new: str, marked: str, message: str):
    document = Document(TEXT.replace(old, new))
    assert document.errors()
    assert message in document.errors()[0].message
    assert marked in written(document, [document.errors()[0].range])[0]


def test_all_modules_of_a_text_are_read():
    document = Document(f"{TEXT}// -----\n{TEXT.replace('%0)', '%z)')}// -----\n{TEXT}")
    (error,) = document.errors()
    assert written(document, [error.range]) == ["%z"]
    last = len(document.text) - len(TEXT)
    assert document.definition(last + at("%0)", "call_tir")) == (last + at("%0"), last + at("%0") + 2)


def test_what_stands_before_an_error_is_still_there():
    document = Document(TEXT.replace("relax.return %1", "relax.return %"))
    assert document.errors()
    assert "relax.tensor<[m * n], f32>" in shown(document, at("%0)", "call_tir"))


def test_columns_are_code_units():
    document = Document(TEXT)
    line, column = document.position(at(" are one"))
    assert TEXT.splitlines()[line][: column - 1].endswith("é𝄞")
    assert document.offset(line, column) == at(" are one")
    assert document.offset(10_000, 0) == len(TEXT)
    assert document.offset(0, 10_000) == TEXT.index("\n")


@pytest.mark.parametrize("text", ["", "%", "@", "//", "\n" * 3, "relax.func @f(", '"', "// -----", "é𝄞\x00"])
def test_any_text_is_read(text: str):
    document = Document(text)
    for offset in range(len(text) + 1):
        document.hover(offset)
        document.definition(offset)
        document.references(offset)
        document.implementations(offset)
        document.completions(offset)
        assert document.offset(*document.position(offset)) == offset
    document.symbols()


def test_modules_have_errors_where_they_are_not_valid():
    """A sample of the texts of the tree."""
    for name, text in texts()[::12]:
        document = Document(text, name)
        assert (document.errors() == []) == (valid_module(name, text) is not None), name
        for error in document.errors():
            assert error.message
            assert 0 <= error.range[0] < max(error.range[1], 1) <= len(text) + 1


def test_examples_are_without_errors():
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.mlir")):
        assert Document(path.read_text(), str(path)).errors() == []
