"""The text of annotations on loops, blocks and allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import AttributeVariable, ParsingState, PrintingState
from xdsl.parser import Parser
from xdsl.printer import Printer

from tir_dialect.ops.assembly_format import Directive

Note: TypeAlias = "bool | float | str | Sequence[Note] | Mapping[str, Note]"
"""What an annotation says."""


def note_attr(value: object) -> Attribute:
    """The attribute of a `Note`; TypeError for anything else."""
    match value:
        case bool():
            return BoolAttr.from_bool(value)
        case Integral():
            return IntegerAttr(int(value), i64)
        case Real():
            return FloatAttr(float(value), f64)
        case str():
            return StringAttr(value)
        case list() | tuple():
            return ArrayAttr([note_attr(each) for each in cast("Sequence[object]", value)])
        case dict():
            entries = cast("dict[object, object]", value)
            return DictionaryAttr({str(key): note_attr(each) for key, each in entries.items()})
        case _:
            raise TypeError(f"expected truth values, numbers or strings, got {type(value).__name__}")


def note_of(attribute: Attribute) -> Note:
    """The `Note` of an attribute made by `note_attr`; TypeError for any other attribute."""
    match attribute:
        case IntegerAttr():
            is_truth = isinstance(attribute.type, IntegerType) and attribute.type.width.data == 1
            return bool(attribute.value.data) if is_truth else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [note_of(each) for each in attribute]
        case DictionaryAttr():
            return {key: note_of(each) for key, each in attribute.data.items()}
        case _:
            raise TypeError(f"expected truth values, numbers or strings, got {attribute}")


def annotations_attr(annotations: Mapping[str, Attribute] | None) -> DictionaryAttr | None:
    """The property that holds `annotations`: absent if there are none."""
    return DictionaryAttr(dict(annotations)) if annotations else None


class Annotations(Directive):
    """The annotations, if there are some: `annotations {key = value}`."""

    annotations: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if (annotations := parse_annotations(parser)) is not None:
            self.annotations.set(state, annotations)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        print_annotations(printer, cast("DictionaryAttr | None", self.annotations.get(op)))


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
