"""The language server as an editor has it: a process that is spoken to through pipes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from xdsl_relax.cli.relax_lsp_server import main

URI = "file:///module.mlir"
TEXT = "relax.func @f(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {\n  relax.return %x\n}\n"


def conversation(talk: Callable[[LanguageClient, list[types.Diagnostic]], Awaitable[None]]) -> None:
    """Opens `TEXT` in a server of its own; what is published last is in the list."""
    published: list[types.Diagnostic] = []

    async def run() -> None:
        client = LanguageClient("test", "0")

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: types.PublishDiagnosticsParams) -> None:
            published[:] = params.diagnostics

        await client.start_io(sys.executable, "-m", "xdsl_relax.cli.relax_lsp_server", "--stdio")
        await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, "mlir", 1, TEXT)))
        await talk(client, published)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_an_editor_is_answered():
    where = types.TextDocumentIdentifier(URI)
    use = types.Position(1, 16)

    async def talk(client: LanguageClient, published: list[types.Diagnostic]) -> None:
        shown = await client.text_document_hover_async(types.HoverParams(where, use))
        assert shown is not None
        assert isinstance(shown.contents, types.MarkupContent)
        assert "%x : !relax.tensor<[2], f32>" in shown.contents.value
        assert published == []

        found = await client.text_document_definition_async(types.DefinitionParams(where, use))
        assert found == types.Location(URI, types.Range(types.Position(0, 14), types.Position(0, 16)))
        context = types.ReferenceContext(include_declaration=True)
        uses = await client.text_document_references_async(types.ReferenceParams(context, where, use))
        assert [each.range.start.line for each in uses or ()] == [0, 1]
        source = await client.text_document_definition_async(types.DefinitionParams(where, types.Position(1, 8)))
        assert isinstance(source, types.Location)
        assert source.uri.endswith("relax_dialect/ops/structure.py")
        rules = await client.text_document_implementation_async(types.ImplementationParams(where, types.Position(1, 8)))
        assert rules is not None

        symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(where))
        assert [symbol.name for symbol in symbols or ()] == ["f"]
        items = await client.text_document_completion_async(types.CompletionParams(where, use))
        assert isinstance(items, list)
        assert [item.label for item in items] == ["%x"]
        edit = await client.text_document_rename_async(types.RenameParams(where, use, "data"))
        assert edit is not None
        assert [each.new_text for each in (edit.changes or {})[URI]] == ["%data", "%data"]

        wrong = types.TextDocumentContentChangeWholeDocument(TEXT.replace("return %x", "return %y"))
        changed = types.VersionedTextDocumentIdentifier(version=2, uri=URI)
        client.text_document_did_change(types.DidChangeTextDocumentParams(changed, [wrong]))
        assert await client.text_document_hover_async(types.HoverParams(where, use)) is None
        (error,) = published
        assert "%y is not defined" in error.message
        assert error.range.start.line == 1

    conversation(talk)


def test_arguments_are_those_of_the_other_tools(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main(["--port"])
    assert "relax-lsp-server: error: unrecognized arguments: --port" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "--stdio" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "xdsl_relax.language_server", None)
    assert main([]) == 1
    assert "the server needs more: pip install xdsl-relax[lsp]" in capsys.readouterr().err


def test_the_extension_starts_the_server():
    folder = Path(__file__).parents[2] / "editors" / "vscode"
    manifest = json.loads((folder / "package.json").read_text())
    assert manifest["contributes"]["configuration"]["properties"]["xdsl-relax.server"]["default"] == "relax-lsp-server"
    contributed = manifest["contributes"]
    named = [contributed["languages"][0]["configuration"], contributed["grammars"][0]["path"], manifest["main"]]
    assert all((folder / each).is_file() for each in named)
    assert json.loads((folder / named[1]).read_text())["scopeName"] == contributed["grammars"][0]["scopeName"]
