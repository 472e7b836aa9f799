"""Annotations of relax functions, `R.Tensor((n, m), dtype="float32")`, with devices and meshes; heads of functions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, StringAttr, f64, i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.scopes import as_attribute
from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.scopes import declarations, describe, is_dtype_name
from relax_dialect.frontend.tvmscript.source import Aliases, Arguments, Source, is_none, parse_expression, suggestion
from relax_dialect.frontend.tvmscript.static import StaticReader
from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
)
from tir_dialect.dims import Dim
from tir_dialect.dtypes import parse_dtype
from tir_dialect.types import Interval

DEVICES = "I.module_global_infos"
"""What a scope calls the devices of the module; no name of a text can be that."""

CPU_KINDS = frozenset({"llvm", "c", "cpu", "ext_dev"})
"""What the machine that programs are compiled for is called."""


def read_device(reader: StaticReader, node: ast.expr) -> str:
    """A device as its kind, and its number among those of the kind: `cuda:1`."""
    if isinstance(node, ast.Call) and reader.aliases.name_in("ir", node.func) == "vdevice":
        kind, number = read_vdevice(reader, node)
        return f"{kind}:{number}"
    text = reader.text(node)
    kind, _, number = text.partition(":")
    known = items_of(reader.scope.find(DEVICES)) or ()
    if kind != "vdevice" or not number.isdigit():
        return text if number else f"{kind}:0"
    if int(number) >= len(known):
        reader.fail(node, f'expected a device of I.module_global_infos, got "{text}"; it has {len(known)}')
    return str(known[int(number)])


def read_vdevice(reader: StaticReader, node: ast.Call) -> tuple[str, int]:
    """The kind and number of `I.vdevice(target, number, memory_scope)`."""
    names = {"index": "vdevice_id"}
    given = reader.arguments(node, "I.vdevice", "target vdevice_id memory_scope", names)
    target, number = reader.value(given.require("target")), given.get("vdevice_id")
    kind = cast("dict[str, object]", target).get("kind") if isinstance(target, dict) else target
    if not isinstance(kind, str):
        reader.fail(node, "I.vdevice expected a target: its kind, or a dictionary that has it")
    return kind.split()[0], 0 if number is None else reader.integer(number)


def device_names(reader: StaticReader, nodes: Sequence[ast.expr]) -> tuple[str, ...]:
    """The names of a module's devices: those of a kind are counted."""
    counts: Counter[str] = Counter()
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Call) and reader.aliases.name_in("ir", node.func) == "vdevice":
            kind, _ = read_vdevice(reader, node)
            found.append(f"{kind}:{counts[kind]}")
            counts[kind] += 1
    return tuple(found)


DTENSOR = "shape dtype device_mesh placement ndim"
"""The parameters of `R.DTensor`."""


@dataclass(frozen=True)
class Mesh:
    """How many workers stand along each axis, and which devices they are, row by row."""

    shape: tuple[int, ...]
    devices: tuple[int, ...] = field(compare=False)


def is_dtensor(kind: str | None) -> bool:
    """Whether a name of `R` is that of distributed tensors."""
    return kind in ("DTensor", "dist.DTensor")


def read_mesh(reader: StaticReader, node: ast.Call) -> Mesh | None:
    """The mesh of a call of `R.device_mesh`; `None` for another call."""
    if reader.aliases.name_in("relax", node.func) not in ("device_mesh", "dist.device_mesh"):
        return None
    given = reader.arguments(node, "R.device_mesh", "shape device_ids")
    shape, devices = given.require("shape"), given.require("device_ids")
    sizes, ids = _integers(reader, shape), _devices(reader, devices)
    if prod(sizes) != len(ids):
        reader.fail(devices, f"expected {prod(sizes)} devices for a mesh of {sizes}, got {len(ids)}")
    return Mesh(sizes, ids)


def _devices(reader: StaticReader, node: ast.expr) -> tuple[int, ...]:
    if isinstance(node, ast.Call) and reader.aliases.name_in("ir", node.func) == "Range":
        given = reader.arguments(node, "I.Range", "begin end")
        first, last = given.require("begin"), given.get("end")
        start = reader.integer(first)
        return tuple(range(start)) if last is None else tuple(range(start, reader.integer(last)))
    return _integers(reader, node)


def _integers(reader: StaticReader, node: ast.expr) -> tuple[int, ...]:
    items = items_of(reader.value(node))
    found = tuple(each for each in items or () if isinstance(each, int) and not isinstance(each, bool))
    if items is None or len(found) != len(items):
        reader.fail(node, "expected a list of integers")
    return found


def read_global_infos(reader: StaticReader, call: ast.Call) -> tuple[dict[str, list[Mesh]], tuple[str, ...]]:
    """The meshes in the dictionary of `I.module_global_infos`, by name, and the names of its devices."""
    node = reader.arguments(call, "I.module_global_infos", "global_infos").require("global_infos")
    if not isinstance(node, ast.Dict):
        reader.fail(node, "I.module_global_infos expected a dictionary")
    found: dict[str, list[Mesh]] = {}
    devices: tuple[str, ...] = ()
    for key, value in zip(node.keys, node.values, strict=True):
        entries = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
        meshes = [read_mesh(reader, each) for each in entries if isinstance(each, ast.Call)]
        if key is not None and (known := [mesh for mesh in meshes if mesh is not None]):
            found[reader.text(key)] = known
        devices += device_names(reader, entries)
    return found, devices


def mesh_attribute(meshes: dict[str, list[Mesh]]) -> dict[str, object]:
    """The meshes as an attribute of the module."""
    return {
        name: tuple({"shape": mesh.shape, "devices": mesh.devices} for mesh in each) for name, each in meshes.items()
    }


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
                if (dtype := self.scalar(node.func)) is not None and not node.args and not node.keywords:
                    return PrimType(dtype)
                kind = self.kind(node.func)
                if kind in ("Object", "Any"):
                    return ObjectType()
                found = self._kinds.get(kind or "")
                return self._unknown(node.func) if found is None else found(node)
            case ast.Subscript():
                return self._subscripted(node)
            case ast.Name() if (meant := self._reader.meant(node)) is not node:
                return self._read(meant)
            case _:
                return self._named(node)

    def _quoted(self, node: ast.AST, text: str) -> ast.expr:
        try:
            return parse_expression(text, node)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._reader.fail(node, f'expected a type, got the string "{text}"')

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
        if self._reader.aliases.resolve(node) in (("tir", "handle"), ("ir", "StringType")):
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
        if len(parts) == 2 and not self._is_blank(parts[1]):
            with self._reader.implicit(False):
                dtype = self._reader.dtype(parts[1])
        return TensorType(self._shape_of(parts[0]), dtype)

    def _is_plain_shape(self, parts: Sequence[ast.expr]) -> bool:
        """Whether the parts are the dimensions themselves: `R.Tensor[n, m]` is `R.Tensor[(n, m)]`."""
        first, last = parts[0] if parts else None, parts[-1] if parts else None
        if isinstance(first, ast.Tuple | ast.List) or self._is_blank(first):
            return False
        is_dtype = isinstance(last, ast.Constant) and isinstance(last.value, str)
        return not is_dtype and not (
            isinstance(first, ast.Name) and isinstance(self._reader.scope.find(first.id), Expr)
        )

    # Kinds

    def _tensor(self, node: ast.Call) -> StructInfo:
        names = "shape dtype vdevice ndim"
        given = self._reader.arguments(node, "R.Tensor", names, {"device": "vdevice"})
        device = None if (where := given.get("vdevice")) is None else self._device(where)
        return self._shaped(given, device)

    def _distributed(self, node: ast.Call) -> StructInfo:
        """The tensor as a whole; `placements` has how workers share it."""
        return self._shaped(self._reader.arguments(node, "R.DTensor", DTENSOR))

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
        if self._is_blank(node) or (isinstance(node, ast.Constant) and node.value is None):
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
        return tuple(None if self._is_blank(each) else self._reader.dim(each) for each in nodes)

    def _is_blank(self, node: ast.expr | None) -> bool:
        """Whether a dimension is left open as `_`, which may also be the name of one: TVM prints unnamed ones so."""
        return isinstance(node, ast.Name) and node.id == "_" and not isinstance(self._reader.scope.find("_"), Dim)

    def _shape(self, node: ast.Call) -> StructInfo:
        given = self._reader.arguments(node, "R.Shape", "values ndim")
        if (values := given.get("values")) is not None:
            return ShapeType(self._shape_of(values))
        ndim = given.get("ndim")
        return ShapeType(None if ndim is None else self._unknown_dims(ndim))

    def _tuple(self, node: ast.Call) -> StructInfo:
        fields = self._reader.arguments(node, "R.Tuple", "*fields").rest
        if len(fields) == 1 and isinstance(fields[0], ast.List | ast.Tuple):
            fields = list(fields[0].elts)
        return TupleType([self._read(field) for field in fields])

    def _prim(self, node: ast.Call) -> StructInfo:
        given = self._reader.arguments(node, "R.Prim", "dtype value")
        value, dtype = given.get("value"), given.get("dtype")
        if value is not None:
            return PrimType(i64, self._reader.dim(value))
        with self._reader.implicit(False):
            return PrimType(i64 if dtype is None else self._reader.dtype(dtype))

    def _callable(self, node: ast.Call) -> StructInfo:
        names = {"ret_ty": "ret", "return_type": "ret", "pure": "purity"}
        given = self._reader.arguments(node, "R.Callable", "params ret purity derive_func", names)
        outer = set(self._reader.scope.names())
        params_node = given.get("params")
        with self._reader.scope.inner():
            params = None if params_node is None or is_none(params_node) else self._params(params_node)
            ret = None if (ret_node := given.get("ret")) is None else self._read(ret_node)
        purity = given.get("purity")
        pure = None if purity is None or is_none(purity) else bool(self._reader.value(purity))
        if params is None:
            derive = given.get("derive_func")
            return FuncType(None, ret, pure=pure, derive=None if derive is None else self._reader.text(derive))
        own = dict.fromkeys(name for info in params for name in iter_symbols(info) if name not in outer)
        return FuncType(params, ret, pure=pure, symbols=own)

    def _params(self, node: ast.expr) -> list[StructInfo]:
        nodes = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        return [self._read(each) for each in nodes]


_OPTIONS = ("private", "pure", "check_well_formed", "s_tir", "persistent")

FORCE_PURE = ("relax.force_pure", "force_pure")

_BOUNDS = ("tir_var_upper_bound", "tir_var_lower_bound")


@dataclass
class Signature:
    """What the head of a function says."""

    params: dict[str, StructInfo]
    ret: StructInfo | None
    bounds: dict[str, Interval] = field(default_factory=dict[str, Interval])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    force_pure: bool = False


def type_param_names(text: str) -> list[str]:
    """The names in `[n: T.int64, m]` after the name of a function."""
    return [name for part in text.split(",") if (name := part.partition(":")[0].strip(" *\n\t"))]


def parameters(source: Source, node: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a function, which have to be plain."""
    args = node.args
    for star in (args.vararg, args.kwarg):
        if star is not None:
            source.fail(star, f"{node.name} expected parameters one by one, got *{star.arg}")
    for default in (*args.defaults, *args.kw_defaults):
        if default is not None:
            source.fail(default, f"{node.name}: a parameter has no default value")
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def read_signature(reader: StaticReader, node: ast.FunctionDef, type_params: Sequence[str]) -> Signature:
    """The types of parameters and result; the dimensions that they name become visible."""
    types = TypeReader(reader)
    for name in (*type_params, *_hiding(reader, node)):
        reader.declare(node, name)
    arguments = parameters(reader.source, node)
    scalars = {argument.arg for argument in arguments if _is_size(types, argument)}
    for name in scalars:
        reader.declare(node, name)
    infos = {each.arg: types.optional(each.annotation) or ObjectType() for each in arguments}
    if len(infos) != len(arguments):
        reader.fail(node, f"{node.name} has two parameters of one name")
    ret = types.optional(node.returns)
    used = {name for name, info in infos.items() if name not in scalars for name in iter_symbols(info)}
    used |= set() if ret is None else set(iter_symbols(ret))
    for name in scalars & used:
        infos[name] = PrimType(i64, name)
    signature = Signature(infos, ret)
    for statement in node.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and reader.aliases.name_in("relax", call.func) == "func_attr":
            attributes = read_dictionary(reader, call, "R.func_attr", "attrs")
            upper, lower = (_integer_bounds(reader, call, attributes.get(name, {})) for name in _BOUNDS)
            signature.bounds = {name: (lower.get(name, 0), upper.get(name)) for name in (*upper, *lower)}
            signature.force_pure = any(bool(attributes.pop(name, False)) for name in FORCE_PURE)
            signature.attributes |= as_attributes(
                reader.source, call, {name: each for name, each in attributes.items() if name not in _BOUNDS}
            )
    return signature


def _hiding(reader: StaticReader, node: ast.FunctionDef) -> list[str]:
    """The dimensions that the body declares, `n = T.int64()`, where the name is that of a value around the function."""
    pairs = [(each.targets[0], each.value) for each in node.body if isinstance(each, ast.Assign)]
    names = [name for pair in pairs for _, name, _ in declarations(reader.aliases, *pair)]
    return [name for name in names if name in reader.scope and not isinstance(reader.scope.find(name), Dim)]


def _is_size(types: TypeReader, argument: ast.arg) -> bool:
    """Whether a parameter is an integer, which other parameters may use as a dimension."""
    node = argument.annotation
    if isinstance(node, ast.Call) and not node.keywords and types.kind(node.func) == "Prim":
        return len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == "int64"
    if isinstance(node, ast.Call):
        node = node.func if not node.args and not node.keywords else None
    return node is not None and types.scalar(node) == i64


def read_dictionary(reader: StaticReader, call: ast.Call, what: str, parameter: str) -> dict[str, object]:
    """The dictionary that a call is given."""
    argument = reader.arguments(call, what, parameter).require(parameter)
    found = reader.value(argument)
    if not isinstance(found, dict):
        reader.fail(argument, f"{what} expected a dictionary")
    return cast("dict[str, object]", found)


def _integer_bounds(reader: StaticReader, node: ast.AST, found: object) -> dict[str, int]:
    if not isinstance(found, dict):
        reader.fail(node, "expected the bounds of dimensions as a dictionary")
    pairs = cast("dict[str, object]", found)
    bounds = {name: value for name, value in pairs.items() if isinstance(value, int)}
    if len(bounds) != len(pairs):
        reader.fail(node, "expected integers as bounds of dimensions")
    return bounds


def as_attributes(source: Source, node: ast.AST, values: Mapping[str, object]) -> dict[str, Attribute]:
    """Python values as attributes."""
    return {name: to_attribute(source, node, value) for name, value in values.items() if value is not None}


def to_attribute(source: Source, node: ast.AST, value: object) -> Attribute:
    """One Python value as an attribute; integers are `i64`, floats `f64`."""
    match value:
        case Attribute():
            return value
        case float():
            return FloatAttr(value, f64)
        case bool() | str():
            return as_attribute(value)
        case int() if -(1 << 63) <= value < 1 << 63:
            return as_attribute(value)
        case tuple():
            items = cast("tuple[object, ...]", value)
            return ArrayAttr([to_attribute(source, node, each) for each in items])
        case dict():
            pairs = cast("dict[str, object]", value)
            return DictionaryAttr(as_attributes(source, node, pairs))
        case None:
            return StringAttr("")
        case _:
            source.fail(node, "expected a number, a string, or a list or dictionary of those as an attribute")


def decorator_options(source: Source, aliases: Aliases, node: ast.expr) -> dict[str, bool]:
    """The truth values that a decorator is given: `@R.function(private=True)`."""
    if not isinstance(node, ast.Call):
        return {}
    found: dict[str, bool] = {}
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg is None or value not in (True, False, None):
            source.fail(keyword.value, "expected True or False")
        if keyword.arg not in _OPTIONS:
            source.fail(keyword, f"a decorator has no option {keyword.arg}{suggestion(keyword.arg, _OPTIONS)}")
        found[keyword.arg] = bool(value)
    if node.args:
        source.fail(node.args[0], "a decorator takes no positional arguments")
    return found
