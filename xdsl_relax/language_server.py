"""The language server: the protocol of editors around `mlir_document.py`; it needs `pygls`."""

from __future__ import annotations

from importlib.metadata import version

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from xdsl_relax.mlir_document import Document, Range, Source

TRIGGERS = ("%", "@", ".")
"""The characters after which an editor asks for completions."""

SERVER = LanguageServer("relax-lsp-server", version("xdsl-relax"))

_documents: dict[str, tuple[int | None, Document]] = {}
"""The texts that were read last, by address, with their versions."""


def document_of(uri: str) -> Document:
    """What a text means, read once for each version of it."""
    text = SERVER.workspace.get_text_document(uri)
    kept = _documents.get(uri)
    if kept is None or kept[0] != text.version or kept[1].text != text.source:
        kept = _documents[uri] = text.version, Document(text.source, text.path)
    return kept[1]


def offset_of(text: types.TextDocumentIdentifier, position: types.Position) -> tuple[Document, int]:
    """What a text means, and the offset of a position in it."""
    document = document_of(text.uri)
    return document, document.offset(position.line, position.character)


def as_range(document: Document, at: Range) -> types.Range:
    """A range of offsets by lines and columns."""
    start, end = (types.Position(*document.position(offset)) for offset in at)
    return types.Range(start, end)


def as_location(source: Source) -> types.Location:
    """The beginning of Python code."""
    start = types.Position(source.line, 0)
    return types.Location(source.path.as_uri(), types.Range(start, start))


@SERVER.feature(types.TEXT_DOCUMENT_DID_OPEN)
@SERVER.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def publish(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
    """Sends the errors of a text."""
    uri = params.text_document.uri
    document = document_of(uri)
    found = [
        types.Diagnostic(
            as_range(document, error.range),
            error.message + (f"\nhint: {error.hint}" if error.hint else ""),
            severity=types.DiagnosticSeverity.Error,
            source="xdsl-relax",
        )
        for error in document.errors()
    ]
    SERVER.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(uri, found, SERVER.workspace.get_text_document(uri).version)
    )


@SERVER.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def close(params: types.DidCloseTextDocumentParams) -> None:
    """Forgets a text and its errors."""
    _documents.pop(params.text_document.uri, None)
    SERVER.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))


@SERVER.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover | None:
    """The type of a value, the signature of a function, the documentation of an op."""
    document, offset = offset_of(params.text_document, params.position)
    if (found := document.hover(offset)) is None:
        return None
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, found[1]), as_range(document, found[0]))


@SERVER.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> types.Location | None:
    """Where a value or a symbol is defined; the Python class of an op."""
    document, offset = offset_of(params.text_document, params.position)
    match document.definition(offset):
        case None:
            return None
        case Source() as source:
            return as_location(source)
        case at:
            return types.Location(params.text_document.uri, as_range(document, at))


@SERVER.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
def implementation(params: types.ImplementationParams) -> list[types.Location]:
    """How an op is lowered and how it is interpreted."""
    document, offset = offset_of(params.text_document, params.position)
    return [as_location(source) for source in document.implementations(offset)]


@SERVER.feature(types.TEXT_DOCUMENT_REFERENCES)
def references(params: types.ReferenceParams) -> list[types.Location]:
    """The uses of a value or symbol, and its definition."""
    document, offset = offset_of(params.text_document, params.position)
    return [types.Location(params.text_document.uri, as_range(document, at)) for at in document.references(offset)]


@SERVER.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS))
def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
    """Values, symbols or ops that begin like the word before the cursor."""
    document, offset = offset_of(params.text_document, params.position)
    start = document.word_start(offset)
    return [
        types.CompletionItem(
            name,
            detail=about,
            kind=_COMPLETION_KINDS.get(name[0], types.CompletionItemKind.Class),
            text_edit=types.TextEdit(as_range(document, (start, offset)), name),
        )
        for name, about in document.completions(offset)
    ]


_COMPLETION_KINDS = {"%": types.CompletionItemKind.Variable, "@": types.CompletionItemKind.Function}


@SERVER.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def document_symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """The functions of a text."""
    document = document_of(params.text_document.uri)
    return [
        types.DocumentSymbol(
            symbol.name,
            types.SymbolKind.Function,
            as_range(document, symbol.range),
            as_range(document, symbol.name_range),
            symbol.op.name,
        )
        for symbol in document.symbols()
    ]


@SERVER.feature(types.TEXT_DOCUMENT_RENAME)
def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
    """Gives a value or symbol another name, wherever it is."""
    document, offset = offset_of(params.text_document, params.position)
    try:
        renamed = document.renamed(offset, params.new_name)
    except ValueError as error:
        raise JsonRpcInvalidParams(str(error)) from error
    edits = [types.TextEdit(as_range(document, at), text) for at, text in renamed]
    return types.WorkspaceEdit({params.text_document.uri: edits}) if edits else None
