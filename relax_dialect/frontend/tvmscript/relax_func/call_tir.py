"""`R.call_tir` and its kin, in the order of arguments of any version, and tensors that workers share."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, OpResult

from relax_dialect.builder.emitter import InfoLike
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader, Form
from relax_dialect.frontend.tvmscript.relax_func.operators import relax_op
from relax_dialect.frontend.tvmscript.relax_func.values import constant
from relax_dialect.frontend.tvmscript.scopes import FunctionRef, describe
from relax_dialect.frontend.tvmscript.types import DTENSOR, TYPE_OF, Mesh, is_dtensor, read_mesh
from relax_dialect.ops.callees import explicit_symbols
from relax_dialect.ops.calls import ExternFuncOp
from relax_dialect.ops.distributed import LocalViewOp, PlacementOp
from relax_dialect.struct_info.types import PrimType, ShapeType, StructInfo, TensorType
from tir_dialect.dims import Dim
from tir_dialect.types import BufferType

_OUT = {
    "out_ty": "out",
    "ty_args": "out",
    "sinfo_args": "out",
    "out_sinfo": "out",
    "output_shape": "out",
    "output_dtype": "dtype",
    "gvar": "func",
}

_PARAMETERS = "func args out tir_vars dtype"

_WITH_GRADIENT = "func args out te_grad_name te_grad_kwargs tir_vars"


class DestinationCall:
    """A call into new tensors: what is called, with what, and what comes out."""

    def __init__(self, reader: ExpressionReader, node: ast.Call, what: str, parameters: str = _PARAMETERS):
        self.reader = reader
        self.node = node
        given = reader.arguments(node, what, parameters, _OUT)
        callee_node, args_node, out_node = given.require("func"), given.require("args"), given.require("out")
        callee = self._callee(callee_node)
        if callee is None:
            # the oldest order: the shape, the function, the arguments
            callee_node, args_node, out_node = args_node, out_node, callee_node
            callee = self._callee(callee_node)
        if callee is None:
            reader.fail(callee_node, f"{what} expected a PrimFunc of the module or the name of a packed function")
        self.callee = callee
        self.given = given
        value = reader.value(args_node)
        if self._is_swapped(value, out_node):
            args_node, out_node = out_node, args_node
            value = reader.value(args_node)
        self.arguments = list(reader.fields(args_node, value))
        self._args_node = args_node
        self.shape: Expr | None = None
        self.several = False
        if self._is_type(out_node):
            infos = self.reader.types.several(out_node)
            self.several = isinstance(out_node, ast.List) and len(infos) != 1
            self.out = [self._tensor(out_node, info) for info in infos]
        elif (
            isinstance(out_node, ast.List | ast.Tuple)
            and out_node.elts
            and isinstance(out_node.elts[0], ast.Tuple | ast.List)
        ):
            self.several = True
            dtypes = self._dtypes(len(out_node.elts))
            self.out = [self._shaped(each, dtype) for each, dtype in zip(out_node.elts, dtypes, strict=True)]
        else:
            self.out = [self._shaped(out_node, self._dtypes(1)[0])]

    def _callee(self, node: ast.expr) -> str | FunctionRef | None:
        if isinstance(node, ast.Tuple | ast.List):
            return None
        value = self.reader.value(node)
        if isinstance(value, Expr) and isinstance(owner := value.value.owner, ExternFuncOp):
            return owner.symbol.data
        return value if isinstance(value, str | FunctionRef) else None

    def _is_swapped(self, value: object, out_node: ast.expr) -> bool:
        """Whether shape and tensor stand in each other's position, as the design notes print them."""
        only = value if isinstance(value, Expr) else next(iter(items_of(value) or ()), None)
        if not isinstance(out_node, ast.Name) or not isinstance(only, Expr) or not isinstance(only.type, ShapeType):
            return False
        other = self.reader.value(out_node)
        return isinstance(other, Expr) and isinstance(other.type, TensorType)

    # Results

    def _is_type(self, node: ast.expr) -> bool:
        first = node.elts[0] if isinstance(node, ast.List | ast.Tuple) and node.elts else node
        if isinstance(first, ast.Attribute) and first.attr in TYPE_OF:
            return True
        head = first.func if isinstance(first, ast.Call) else first.value if isinstance(first, ast.Subscript) else first
        return self.reader.types.kind(head) in ("Tensor", "DTensor", "dist.DTensor", "DynTensor")

    def _tensor(self, node: ast.expr, info: StructInfo) -> TensorType:
        if not isinstance(info, TensorType):
            self.reader.fail(node, f"expected tensors as results, got {info}")
        return info

    def _shaped(self, node: ast.expr, dtype: Attribute) -> TensorType:
        if isinstance(node, ast.List) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Name):
            # brackets around one shape value
            found = self.reader.value(node.elts[0])
            node = node.elts[0] if isinstance(found, Expr) and isinstance(found.type, ShapeType) else node
        value = self.reader.value(node)
        shape = self.reader.shape(node, value)
        if not isinstance(shape, Expr):
            return TensorType(shape, dtype)
        dims = shape.type.known_dims if isinstance(shape.type, ShapeType) else None
        if dims is not None:
            return TensorType(dims, dtype)
        self.shape = shape
        return TensorType(shape.shape, dtype)

    def _dtypes(self, count: int) -> list[Attribute]:
        node = self.given.get("dtype")
        if node is not None:
            nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else [node] * count
            if len(nodes) != count:
                self.reader.fail(node, f"expected {count} dtypes, got {len(nodes)}")
            return [self.reader.dtype(each) for each in nodes]
        expected = self.reader.expected
        if isinstance(expected, TensorType) and expected.dtype is not None:
            return [expected.dtype] * count
        return self._dtypes_of_callee(count) or [self._dtype_of_arguments()] * count

    def _dtypes_of_callee(self, count: int) -> list[Attribute] | None:
        func = self.reader.program.prim_func(self.callee.name) if isinstance(self.callee, FunctionRef) else None
        if func is None:
            return None
        found = [param.type.dtype for param in func.op.buffer_params]
        return found[-count:] if len(found) >= count else None

    def _dtype_of_arguments(self) -> Attribute:
        tensors = [each.type for each in self.arguments if isinstance(each, Expr)]
        return next((info.dtype for info in tensors if isinstance(info, TensorType) and info.dtype is not None), f32)

    @property
    def result_types(self) -> InfoLike | list[InfoLike]:
        """One type, or a list if there are several."""
        return list[InfoLike](self.out) if self.several else self.out[0]

    def values(self, nodes: Sequence[object]) -> list[Expr]:
        """Arguments as values of the program."""
        return [self.reader.expr(self._args_node, each) for each in nodes]


def call_tir(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_tir(f, args, out_ty=...)`; with a string, a packed function instead of `f`."""
    return call_kernel_into(DestinationCall(reader, node, "R.call_tir"))


def call_tir_with_grad(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_tir_with_grad(f, args, out_ty, te_grad_name, te_grad_kwargs)`; nothing here asks for the gradient."""
    return call_kernel_into(DestinationCall(reader, node, "R.call_tir_with_grad", _WITH_GRADIENT))


def call_kernel_into(call: DestinationCall) -> object:
    """The results of a PrimFunc, or of a packed function instead of one."""
    reader, node = call.reader, call.node
    if isinstance(call.callee, str):
        return _packed(call, call.callee)
    arguments, tir_vars = _prim_arguments(call, call.callee)
    name, out = call.callee.name, call.result_types
    if isinstance(out, list):
        return reader.emit(node, lambda: reader.builder.call_tir(name, arguments, out, tir_vars=tir_vars))
    return reader.emit(node, lambda: reader.builder.call_tir(name, arguments, out, shape=call.shape, tir_vars=tir_vars))


def call_tir_inplace(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_tir_inplace(f, args, inplace_indices, out_ty)`."""
    names = "func args inplace_indices out tir_vars dtype"
    call = DestinationCall(reader, node, "R.call_tir_inplace", names)
    if isinstance(call.callee, str):
        reader.fail(node, "R.call_tir_inplace expected a PrimFunc of the module; use R.call_inplace_packed")
    arguments, tir_vars = _prim_arguments(call, call.callee)
    positions = reader.value(call.given.require("inplace_indices"))
    indices = [each for each in (items_of(positions) or (positions,)) if isinstance(each, int)]
    name, out = call.callee.name, list[InfoLike](call.out)
    results = reader.emit(node, lambda: reader.builder.call_tir_inplace(name, arguments, indices, out, tir_vars))
    return results if call.several else results[0]


def call_dps_packed(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_dps_packed("name", args, out_ty=...)`."""
    call = DestinationCall(reader, node, "R.call_dps_packed")
    if not isinstance(call.callee, str):
        return call_tir(reader, node)
    return _packed(call, call.callee)


def _packed(call: DestinationCall, name: str) -> object:
    arguments, out = call.values(call.arguments), call.result_types
    builder = call.reader.builder
    if isinstance(out, list):
        return call.reader.emit(call.node, lambda: builder.call_dps_packed(name, arguments, out))
    return call.reader.emit(call.node, lambda: builder.call_dps_packed(name, arguments, out, shape=call.shape))


def _prim_arguments(call: DestinationCall, callee: FunctionRef) -> tuple[list[Expr], dict[str, Dim]]:
    """The tensors and scalars, and the values of symbols that are given."""
    reader, node = call.reader, call.node
    func = reader.program.kernel(callee.name)
    if func is None:
        reader.fail(node, f"expected a PrimFunc, but {callee.name} is a relax function; call it as {callee.name}(...)")
    symbols: dict[str, Dim] = {}
    arguments: list[object] = []
    for index, value in enumerate(call.arguments):
        name = func.symbol_at(index)
        if name is not None:
            symbols[name] = reader.to_dim(node, value)
        elif not func.is_unused(index):
            arguments.append(value)
    explicit = explicit_symbols(func.op)
    if (extra := call.given.get("tir_vars")) is not None:
        values = reader.fields(extra, reader.value(extra))
        missing = [name for name in dict.fromkeys((*func.symbol_params, *explicit)) if name not in symbols]
        if len(missing) != len(values):
            reader.fail(extra, f"{callee.name} expected {len(missing)} tir_vars, got {len(values)}")
        symbols |= {name: reader.to_dim(extra, value) for name, value in zip(missing, values, strict=True)}
    for name in explicit:
        if name not in symbols:
            what = f"{callee.name} expected a value for {name}, which no tensor's shape determines"
            reader.fail(node, f"{what}; give it by tir_vars=({name},)")
    values = [_fitting(call, value, index, func.op.params) for index, value in enumerate(call.values(arguments))]
    return values, symbols


def _fitting(call: DestinationCall, value: Expr, index: int, params: Sequence[object]) -> Expr:
    """An argument of which too little is known, checked to be what the parameter wants."""
    kind = getattr(params[index], "type", None) if index < len(params) else None
    if isinstance(kind, BufferType):
        if not isinstance(value.type, TensorType) or value.type.dtype is None or value.type.rank is None:
            return call.reader.refine(call.node, value, TensorType((None,) * kind.rank, kind.dtype))
    elif not isinstance(value.type, PrimType):
        call.reader.fail(call.node, f"expected a scalar for argument {index}, got {describe(value)} {value.type}")
    return value


@dataclass(frozen=True)
class Sharding:
    """A mesh of workers and a placement on it."""

    mesh: Mesh
    placement: str

    def emit(self, reader: ExpressionReader, node: ast.AST, op: str, value: Expr) -> Expr:
        """What `relax.dist.<op>` gives of a value."""
        make = relax_op(f"dist.{op}")
        return reader.emit(node, lambda: make(value, self.mesh.shape, self.placement))


def sharding_in(reader: ExpressionReader, node: ast.expr | None) -> Sharding | None:
    """What an annotation says of the workers, if it is an `R.DTensor`."""
    node = reader.meant(node) if isinstance(node, ast.Name) else node
    if not isinstance(node, ast.Call) or not is_dtensor(reader.types.kind(node.func)):
        return None
    given = reader.arguments(node, "R.DTensor", DTENSOR)
    return sharding_of(reader, given.get("device_mesh"), given.get("placement"))


def sharding_of(reader: ExpressionReader, mesh: ast.expr | None, placement: ast.expr | None) -> Sharding:
    """A mesh, by its name `"mesh[0]"` or written out, and a placement; without them, one worker has all."""
    return Sharding(
        Mesh((), ()) if mesh is None else named_mesh(reader, mesh), "" if placement is None else reader.text(placement)
    )


def named_mesh(reader: ExpressionReader, node: ast.expr) -> Mesh:
    """The mesh that `"mesh[0]"` names among the module's, or that a call makes."""
    if isinstance(node, ast.Call) and (found := read_mesh(reader, node)) is not None:
        return found
    text, known = reader.text(node), reader.program.meshes
    match = re.fullmatch(r"(\w+)\[(\d+)\]", text)
    meshes = known.get(match[1], ()) if match else ()
    if match is None or int(match[2]) >= len(meshes):
        names = ", ".join([f"{name}[{index}]" for name, each in known.items() for index in range(len(each))]) or "none"
        reader.fail(node, f'expected a mesh of I.module_global_infos, got "{text}"; it has {names}')
    return meshes[int(match[2])]


def placed(reader: ExpressionReader, node: ast.AST, value: object, sharding: Sharding | None) -> object:
    """A value with its sharding said, unless it is already."""
    if sharding is None or not isinstance(value, Expr) or sharding_of_value(value) == sharding:
        return value
    return sharding.emit(reader, node, "annotate_sharding", value)


def placed_as(reader: ExpressionReader, node: ast.AST, value: object, annotation: ast.expr | None) -> object:
    """A value with the shardings said that its annotation has, also in tuples."""
    fields = _tuple_fields(reader, annotation)
    if fields is None:
        return placed(reader, node, value, sharding_in(reader, annotation))
    items = items_of(value)
    if items is None and isinstance(value, Expr) and any(_is_sharded(reader, each) for each in fields):
        items = tuple(reader.emit(node, partial(value.__getitem__, at)) for at in range(len(fields)))
    if items is None or len(items) != len(fields):
        return value
    return tuple(placed_as(reader, node, *pair) for pair in zip(items, fields, strict=True))


def _is_sharded(reader: ExpressionReader, annotation: ast.expr) -> bool:
    fields = _tuple_fields(reader, annotation)
    if fields is None:
        return sharding_in(reader, annotation) is not None
    return any(_is_sharded(reader, each) for each in fields)


def _tuple_fields(reader: ExpressionReader, annotation: ast.expr | None) -> Sequence[ast.expr] | None:
    """The types in an `R.Tuple`."""
    node = reader.meant(annotation) if isinstance(annotation, ast.Name) else annotation
    if not isinstance(node, ast.Call) or reader.types.kind(node.func) != "Tuple":
        return None
    fields = reader.arguments(node, "R.Tuple", "*fields").rest
    return fields[0].elts if len(fields) == 1 and isinstance(fields[0], ast.List | ast.Tuple) else fields


def sharding_of_value(value: Expr) -> Sharding | None:
    """How a value is shared, if the op that makes it says so."""
    op = value.value.owner if isinstance(value.value, OpResult) else None
    if not isinstance(op, PlacementOp) or isinstance(op, LocalViewOp):
        return None
    sizes = [axis.size.constant_value for axis in op.sharding.mesh]
    return Sharding(Mesh(tuple(size for size in sizes if size is not None), ()), op.placement.data)


def _redistributed(reader: ExpressionReader, node: ast.Call, name: str) -> Expr:
    given = reader.arguments(node, f"R.dist.{name}", "value device_mesh placement", {"input": "value"})
    value = reader.read(given.require("value"))
    sharding = sharding_of(reader, given.require("device_mesh"), given.require("placement"))
    return sharding.emit(reader, node, name, value)


def _replica_to_shard(reader: ExpressionReader, node: ast.Call) -> object:
    """The worker's part of a tensor; of an `R.DTensor`, which is the whole, another placement."""
    given = reader.arguments(node, "R.dist.redistribute_replica_to_shard", "input num_workers axis")
    value = reader.read(given.require("input"))
    workers, axis = (reader.integer(given.require(name)) for name in ("num_workers", "axis"))
    sharding = sharding_of_value(value)
    if sharding is None:
        make = relax_op("dist.redistribute_replica_to_shard")
        return reader.emit(node, lambda: make(value, workers, axis))
    if sharding.mesh.shape != (workers,):
        reader.fail(node, f"expected a mesh of {workers} workers along one axis, got {sharding.mesh.shape}")
    return Sharding(sharding.mesh, f"S[{axis}]").emit(reader, node, "redistribute", value)


def _const(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.dist.const(1.0, R.DTensor((), "float32", "mesh[0]", "R, R"))`."""
    given = reader.arguments(node, "R.dist.const", "value ty")
    declared = reader.types.read(given.require("ty"))
    dtype = declared.dtype if isinstance(declared, TensorType) else None
    value = constant(reader, given.require("value"), dtype)
    return placed(reader, node, reader.refine(node, value, declared), sharding_in(reader, given.require("ty")))


# Calls of PrimFuncs


def _call_tir(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.dist.call_tir(f, args, out_ty)`: on tensors as a whole."""
    call = DestinationCall(reader, node, "R.dist.call_tir")
    shardings = _shardings(reader, call)
    return _each(call_kernel_into(call), lambda value, at: placed(reader, node, value, shardings[at]))


def _call_tir_local_view(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.dist.call_tir_local_view(f, args, out_ty)`: on the worker's parts, which give parts of the results."""
    call = DestinationCall(reader, node, "R.dist.call_tir_local_view")
    shardings = _shardings(reader, call)
    call.arguments = [_local(reader, node, each) for each in call.arguments]
    call.out = [_local_type(reader, node, *pair) for pair in zip(call.out, shardings, strict=True)]

    def whole(value: Expr, at: int) -> object:
        sharding = shardings[at]
        return value if sharding is None else sharding.emit(reader, node, "global_view", value)

    return _each(call_kernel_into(call), whole)


def _shardings(reader: ExpressionReader, call: DestinationCall) -> Sequence[Sharding | None]:
    node = call.given.require("out")
    nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return [sharding_in(reader, each) for each in nodes]


def _local(reader: ExpressionReader, node: ast.AST, value: object) -> object:
    if not isinstance(value, Expr) or (sharding := sharding_of_value(value)) is None:
        return value
    return sharding.emit(reader, node, "local_view", value)


def _local_type(reader: ExpressionReader, node: ast.AST, info: TensorType, sharding: Sharding | None) -> TensorType:
    if sharding is None:
        return info
    properties = LocalViewOp.placement_properties(sharding.mesh.shape, sharding.placement)
    (found,) = reader.emit(node, lambda: LocalViewOp.infer_result_types([info], properties))
    return found if isinstance(found, TensorType) else info


def _each(result: object, make: Callable[[Expr, int], object]) -> object:
    """What `make` gives of a result, or of each of several."""
    if isinstance(result, Expr):
        return make(result, 0)
    return tuple(make(each, at) for at, each in enumerate(items_of(result) or ()) if isinstance(each, Expr))


TIR_FORMS: Mapping[str, Form] = {
    "call_tir": call_tir,
    "call_tir_inplace": call_tir_inplace,
    "call_tir_with_grad": call_tir_with_grad,
    "call_tir_dyn": call_tir,
    "call_dps_packed": call_dps_packed,
    "dist.annotate_sharding": lambda reader, node: _redistributed(reader, node, "annotate_sharding"),
    "dist.redistribute": lambda reader, node: _redistributed(reader, node, "redistribute"),
    "dist.redistribute_replica_to_shard": _replica_to_shard,
    "dist.const": _const,
    "dist.call_tir": _call_tir,
    "dist.call_tir_local_view": _call_tir_local_view,
}
"""Calls of PrimFuncs, and of what workers share."""
