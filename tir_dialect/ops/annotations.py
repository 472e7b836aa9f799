"""The text of annotations on loops, blocks and allocations."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer


def annotations_attr(annotations: Mapping[str, Attribute] | None) -> DictionaryAttr | None:
    """The property that holds `annotations`: absent if there are none."""
    return DictionaryAttr(dict(annotations)) if annotations else None


def parse_annotations(parser: Parser) -> DictionaryAttr | None:
    """Parses `annotations {key = value}` if present."""
    if parser.parse_optional_keyword("annotations") is None:
        return None
    return annotations_attr(parser.parse_optional_dictionary_attr_dict())


def print_annotations(printer: Printer, annotations: DictionaryAttr | None) -> None:
    """Prints ` annotations {key = value}` if there are some."""
    if annotations is not None:
        printer.print_string(" annotations ")
        printer.print_attr_dict(annotations.data)
