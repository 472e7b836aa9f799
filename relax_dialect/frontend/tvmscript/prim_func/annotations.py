"""What annotations of names in PrimFuncs say, checked against the values: `x: T.int32 = value`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.prim_func.addresses import ADDRESS, names_handle, to_address
from relax_dialect.frontend.tvmscript.prim_func.buffers import read_annotation
from relax_dialect.frontend.tvmscript.prim_func.parameters import read_scalar_type
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted
from relax_dialect.frontend.tvmscript.prim_func.values import Buffer, Handle, Pointer, Vector
from relax_dialect.frontend.tvmscript.text.static import describe, is_dtype_name
from tir_dialect.dims import Dim
from tir_dialect.dtypes import dtype_name, lookup
from tir_dialect.te.coerce import is_bool, is_float, is_integer
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.prim_func.statements import TirStatementReader

_EXPECTED = "expected a dtype such as T.int32, T.let, T.Buffer(...) or T.handle"


def annotated_value(reader: TirStatementReader, node: ast.AnnAssign, value: ast.expr, found: object) -> object:
    """What a name with an annotation is bound to: the value, a number or scalar as one of the dtype that is said.

    An error at the annotation if it is none, at the value if that is of another kind. Integers and floats become those
    of other widths, integers floats; nothing else is converted.
    """
    annotation = _meant(reader, node.annotation)
    if annotation is None:
        return found
    if (dtype := _dtype(reader, annotation)) is not None:
        return _scalar(reader, value, found, *dtype)
    declared = read_annotation(reader, annotation)
    if declared is not None:
        wanted = declared.type
        if not isinstance(found, Buffer) or (found.type.shape, found.type.dtype) != (wanted.shape, wanted.dtype):
            reader.fail(value, f"expected {wanted}, got {_described(found)}")
        return found
    head = annotation.func if isinstance(annotation, ast.Call) else annotation
    if reader.aliases.name_in("tir", head) not in ("handle", "Ptr"):
        reader.fail(annotation, _EXPECTED)
    if (isinstance(found, Scalar) and found.dtype == ADDRESS) or (isinstance(found, int) and found == 0):
        return to_address(reader, value, found)
    if not isinstance(found, Buffer | Pointer | Handle):
        reader.fail(value, f"expected a handle, got {_described(found)}")
    return found


def says_pointer(reader: TirStatementReader, annotation: ast.expr) -> bool:
    """Whether an annotation is `T.handle`, or `T.let` of it."""
    meant = _meant(reader, annotation)
    return meant is not None and names_handle(reader, meant)


def _meant(reader: TirStatementReader, annotation: ast.expr) -> ast.expr | None:
    """The annotation in `T.let[...]`; `None` for `T.let` alone, which says nothing."""
    if reader.aliases.name_in("tir", annotation) == "let":
        return None
    if isinstance(annotation, ast.Subscript) and reader.aliases.name_in("tir", annotation.value) == "let":
        return annotation.slice
    return annotation


def _dtype(reader: TirStatementReader, annotation: ast.expr) -> tuple[DType, int | None] | None:
    """The dtype, and the lanes of `T.int8x4`; `None` for an annotation that is no dtype."""
    head = annotation.func if isinstance(annotation, ast.Call) and not annotation.args else annotation
    lanes = re.fullmatch(r"(\w*\d)x(\d+)", reader.aliases.name_in("tir", head) or "")
    if lanes is not None and is_dtype_name(lanes[1]):
        return to_dtype(lanes[1]), int(lanes[2])
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return lookup(reader.dtype(annotation)).type, None
    found = read_scalar_type(reader, annotation)
    return None if found is None else (lookup(found).type, None)


def _scalar(reader: TirStatementReader, node: ast.expr, found: object, dtype: DType, lanes: int | None) -> object:
    wanted = dtype_name(dtype) if lanes is None else f"{lanes} lanes of {dtype_name(dtype)}"
    if isinstance(found, Vector) and (found.dtype, found.lanes) == (dtype, lanes):
        return found
    if lanes is not None or not isinstance(found, Scalar | Dim | bool | int | float):
        reader.fail(node, f"expected a value of {wanted}, got {_described(found)}")
    if not _fits(found, dtype):
        reader.fail(node, f"expected a value of {wanted}, got {_described(found)}; T.cast converts it")
    if isinstance(found, Dim) and is_integer(dtype):
        return found
    operand: Scalar | Dim | float = found
    return reader.emit(node, lambda: converted(operand, dtype))


def _fits(found: Scalar | Dim | float, dtype: DType) -> bool:
    """Whether nothing is lost but width: no fraction, and no number that stands for a truth value."""
    if isinstance(found, Scalar):
        kind = found.dtype
        given_float, given_bool = is_float(kind), is_bool(kind)
    else:
        given_float, given_bool = isinstance(found, float), isinstance(found, bool) or found in (0, 1)
    return given_bool if is_bool(dtype) else is_float(dtype) or not given_float


def _described(found: object) -> str:
    match found:
        case Vector():
            return f"{found.lanes} lanes of {found.dtype}"
        case Scalar():
            return f"one of {found.dtype}"
        case Buffer():
            return f"{found.type}"
        case _:
            return describe(found)
