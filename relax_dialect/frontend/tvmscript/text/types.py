"""Annotations: `R.Tensor((n, m), dtype="float32")`, `R.Tensor[(n, m), "f32"]`, and the other kinds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.devices import read_device
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.meshes import DTENSOR
from relax_dialect.frontend.tvmscript.text.source import parse_expression
from relax_dialect.frontend.tvmscript.text.static import StaticReader, describe, is_dtype_name
from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import parse_dtype

_BARE = frozenset({"Tensor", "DynTensor", "Shape", "Tuple", "Callable", "Object", "Any", "Prim"})
"""Names of types that are taken without `R.`, as the oldest texts write them."""


TYPE_OF = frozenset({"ty", "struct_info", "sinfo"})
"""What the type of a value is called: `x.ty`."""


class TypeReader:
    """Reads annotations with the names that are visible to a `StaticReader`."""

    def __init__(self, reader: StaticReader):
        self._reader = reader
        self._kinds: Mapping[str, Callable[[ast.Call], StructInfo]] = {
            "Tensor": self._tensor,
            "DynTensor": self._tensor,
            "DTensor": self._distributed,
            "dist.DTensor": self._distributed,
            "Shape": self._shape,
            "Tuple": self._tuple,
            "Callable": self._callable,
            "Prim": self._prim,
        }

    def read(self, node: ast.expr, *, implicit: bool = False) -> StructInfo:
        """The type that an annotation names; with `implicit`, names that are new become dimensions."""
        with self._reader.implicit(implicit):
            try:
                return self._read(node)
            except VerifyException as error:
                self._reader.fail(node, str(error))

    def optional(self, node: ast.expr | None) -> StructInfo | None:
        """The type, if there is an annotation."""
        return None if node is None else self.read(node)

    def several(self, node: ast.expr) -> tuple[StructInfo, ...]:
        """One type or a list of types, as the results of a call are given."""
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self.read(each) for each in node.elts)
        return (self.read(node),)

    def _read(self, node: ast.expr) -> StructInfo:
        match node:
            case ast.Constant(value=None):
                return TupleType(())
            case ast.Constant(value=str() as text):
                return self._read(self._quoted(node, text))
            case ast.Call():
                return self._called(node)
            case ast.Subscript():
                return self._subscripted(node)
            case ast.Name() if (meant := self._reader.meant(node)) is not node:
                return self._read(meant)
            case _:
                return self._named(node)

    def _quoted(self, node: ast.AST, text: str) -> ast.expr:
        try:
            tree = parse_expression(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._reader.fail(node, f'expected a type, got the string "{text}"')
        for each in ast.walk(tree):
            ast.copy_location(each, node)
        return tree

    def kind(self, node: ast.expr) -> str | None:
        """The name of the kind, such as `Tensor`; `None` if the expression names no relax type."""
        if isinstance(node, ast.Name) and node.id in _BARE and node.id not in self._reader.scope:
            return node.id
        return self._reader.aliases.name_in("relax", node)

    def scalar(self, node: ast.expr) -> Attribute | None:
        """The dtype that `T.int64` names."""
        name = self._reader.aliases.name_in("tir", node)
        return parse_dtype(name) if name is not None and is_dtype_name(name) else None

    def _named(self, node: ast.expr) -> StructInfo:
        if (dtype := self.scalar(node)) is not None:
            return PrimType(dtype)
        match self.kind(node):
            case "Tensor" | "DynTensor":
                return TensorType(None, None)
            case "Shape":
                return ShapeType(None)
            case "Object" | "Any" | "Tuple":
                return ObjectType()
            case "Callable":
                return FuncType(None)
            case "Prim":
                return PrimType(i64)
            case _:
                return self._unknown(node)

    def _unknown(self, node: ast.expr) -> StructInfo:
        if self._reader.aliases.resolve(node) == ("tir", "handle"):
            return ObjectType()
        if isinstance(node, ast.Name) and node.id == "object":
            return ObjectType()
        if isinstance(node, ast.Attribute) and node.attr in TYPE_OF:
            value = self._reader.value(node.value)
            if isinstance(value, Expr):
                return value.type
        self._reader.fail(
            node, "expected a type: R.Tensor, R.Shape, R.Tuple, R.Callable, R.Prim, R.Any, or a dtype such as T.int64"
        )

    def _called(self, node: ast.Call) -> StructInfo:
        if (dtype := self.scalar(node.func)) is not None and not node.args and not node.keywords:
            return PrimType(dtype)
        kind = self.kind(node.func)
        if kind in ("Object", "Any"):
            return ObjectType()
        found = self._kinds.get(kind or "")
        return self._unknown(node.func) if found is None else found(node)

    def _subscripted(self, node: ast.Subscript) -> StructInfo:
        """The form with brackets, in which names of dimensions need no declaration."""
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        with self._reader.implicit():
            match self.kind(node.value):
                case "Tensor" | "DynTensor":
                    return self._bracketed_tensor(node, parts)
                case "Shape":
                    dims = parts[0].elts if len(parts) == 1 and isinstance(parts[0], ast.Tuple | ast.List) else parts
                    return ShapeType(self._dims(dims))
                case "Tuple":
                    return TupleType([self._read(part) for part in parts])
                case _:
                    return self._unknown(node.value)

    def _bracketed_tensor(self, node: ast.Subscript, parts: Sequence[ast.expr]) -> StructInfo:
        if isinstance(node.slice, ast.Tuple) and self._is_plain_shape(parts):
            return TensorType(self._dims(parts), None)
        if len(parts) > 2:
            self._reader.fail(node, f"expected R.Tensor[shape, dtype], got {len(parts)} parts")
        dtype = None
        if len(parts) == 2 and not _is_blank(parts[1]):
            with self._reader.implicit(False):
                dtype = self._reader.dtype(parts[1])
        return TensorType(self._shape_of(parts[0]), dtype)

    def _is_plain_shape(self, parts: Sequence[ast.expr]) -> bool:
        """Whether the parts are the dimensions themselves: `R.Tensor[n, m]` is `R.Tensor[(n, m)]`."""
        first, last = parts[0] if parts else None, parts[-1] if parts else None
        if isinstance(first, ast.Tuple | ast.List) or _is_blank(first):
            return False
        is_dtype = isinstance(last, ast.Constant) and isinstance(last.value, str)
        return not is_dtype and not (
            isinstance(first, ast.Name) and isinstance(self._reader.scope.find(first.id), Expr)
        )

    # Kinds

    def _tensor(self, node: ast.Call) -> StructInfo:
        names = "shape dtype vdevice ndim"
        given = Arguments(self._reader.source, node, "R.Tensor", names, {"device": "vdevice"})
        device = None if (where := given.get("vdevice")) is None else self._device(where)
        return self._shaped(given, device)

    def _distributed(self, node: ast.Call) -> StructInfo:
        """The tensor as a whole; `placements` has how workers share it."""
        return self._shaped(Arguments(self._reader.source, node, "R.DTensor", DTENSOR))

    def _shaped(self, given: Arguments, device: str | None = None) -> TensorType:
        shape_node, dtype_node = given.get("shape"), given.get("dtype")
        if dtype_node is None and isinstance(shape_node, ast.Constant) and isinstance(shape_node.value, str):
            shape_node, dtype_node = None, shape_node
        shape = None if shape_node is None else self._shape_of(shape_node)
        if shape is None and (ndim := given.get("ndim")) is not None:
            shape = self._unknown_dims(ndim)
        return TensorType(shape, self._optional_dtype(dtype_node), device)

    def _optional_dtype(self, node: ast.expr | None) -> Attribute | None:
        if node is None or (isinstance(node, ast.Constant) and node.value in (None, "", "void")):
            return None
        with self._reader.implicit(False):
            is_none = isinstance(node, ast.Name) and node.id in self._reader.scope and self._reader.value(node) is None
            return None if is_none else self._reader.dtype(node)

    def _device(self, node: ast.expr) -> str:
        with self._reader.implicit(False):
            return read_device(self._reader, node)

    def _unknown_dims(self, node: ast.expr) -> Shape:
        rank = self._reader.integer(node)
        if rank > 64:
            self._reader.fail(node, f"expected a rank of at most 64, got {rank}")
        return None if rank < 0 else (None,) * rank

    def _shape_of(self, node: ast.expr) -> Shape:
        if isinstance(node, ast.Tuple | ast.List):
            return self._dims(node.elts)
        if _is_blank(node) or (isinstance(node, ast.Constant) and node.value is None):
            return None
        value = self._reader.value(node)
        if value is None:
            return None
        if isinstance(value, Expr) and isinstance(value.type, ShapeType | TensorType):
            return value.shape
        if (items := items_of(value)) is not None:
            return tuple(self._reader.to_dim(node, each) for each in items)
        if isinstance(value, Dim | int) and not isinstance(value, bool):
            return (self._reader.to_dim(node, value),)
        self._reader.fail(node, f"expected a shape such as (n, 4), got {describe(value)}")

    def _dims(self, nodes: Sequence[ast.expr]) -> tuple[Dim | None, ...]:
        return tuple(None if _is_blank(each) else self._reader.dim(each) for each in nodes)

    def _shape(self, node: ast.Call) -> StructInfo:
        given = Arguments(self._reader.source, node, "R.Shape", "values ndim")
        if (values := given.get("values")) is not None:
            return ShapeType(self._shape_of(values))
        ndim = given.get("ndim")
        return ShapeType(None if ndim is None else self._unknown_dims(ndim))

    def _tuple(self, node: ast.Call) -> StructInfo:
        fields = Arguments(self._reader.source, node, "R.Tuple", "*fields").rest
        if len(fields) == 1 and isinstance(fields[0], ast.List | ast.Tuple):
            fields = list(fields[0].elts)
        return TupleType([self._read(field) for field in fields])

    def _prim(self, node: ast.Call) -> StructInfo:
        given = Arguments(self._reader.source, node, "R.Prim", "dtype value")
        value, dtype = given.get("value"), given.get("dtype")
        if value is not None:
            return PrimType(i64, self._reader.dim(value))
        with self._reader.implicit(False):
            return PrimType(i64 if dtype is None else self._reader.dtype(dtype))

    def _callable(self, node: ast.Call) -> StructInfo:
        names = {"ret_ty": "ret", "return_type": "ret", "pure": "purity"}
        given = Arguments(self._reader.source, node, "R.Callable", "params ret purity derive_func", names)
        outer = set(self._reader.scope.names())
        params_node = given.get("params")
        with self._reader.scope.inner():
            params = None if params_node is None or _is_none(params_node) else self._params(params_node)
            ret = None if (ret_node := given.get("ret")) is None else self._read(ret_node)
        purity = given.get("purity")
        pure = None if purity is None or _is_none(purity) else bool(self._reader.value(purity))
        if params is None:
            derive = given.get("derive_func")
            return FuncType(None, ret, pure=pure, derive=None if derive is None else self._reader.text(derive))
        own = dict.fromkeys(name for info in params for name in iter_symbols(info) if name not in outer)
        return FuncType(params, ret, pure=pure, symbols=own)

    def _params(self, node: ast.expr) -> list[StructInfo]:
        nodes = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        return [self._read(each) for each in nodes]


def _is_blank(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name) and node.id == "_"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
