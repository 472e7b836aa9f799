"""`R.call_tir` and its kin, in the order of arguments of any version."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.types import InfoLike
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.scope import FunctionRef
from relax_dialect.frontend.tvmscript.text.static import describe
from relax_dialect.frontend.tvmscript.text.types import TYPE_OF
from relax_dialect.ops.calls import ExternFuncOp
from relax_dialect.ops.prim_func import explicit_symbols
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

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
        given = Arguments(reader.source, node, what, parameters, _OUT)
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
        self.out = self._results(out_node)

    def _callee(self, node: ast.expr) -> str | FunctionRef | None:
        if isinstance(node, ast.Tuple | ast.List):
            return None
        value = self.reader.value(node)
        if isinstance(value, Expr) and isinstance(owner := value.value.owner, ExternFuncOp):
            return owner.symbol.data
        return value if isinstance(value, str | FunctionRef) else None

    def _is_swapped(self, value: object, out_node: ast.expr) -> bool:
        """Whether shape and tensor stand in each other's place, as the design notes print them."""
        only = value if isinstance(value, Expr) else next(iter(items_of(value) or ()), None)
        if not isinstance(out_node, ast.Name) or not isinstance(only, Expr) or not isinstance(only.type, ShapeType):
            return False
        other = self.reader.value(out_node)
        return isinstance(other, Expr) and isinstance(other.type, TensorType)

    # Results

    def _results(self, node: ast.expr) -> list[TensorType]:
        if self._is_type(node):
            infos = self.reader.types.several(node)
            self.several = isinstance(node, ast.List) and len(infos) != 1
            return [self._tensor(node, info) for info in infos]
        if isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Tuple | ast.List):
            self.several = True
            dtypes = self._dtypes(len(node.elts))
            return [self._shaped(each, dtype) for each, dtype in zip(node.elts, dtypes, strict=True)]
        return [self._shaped(node, self._dtypes(1)[0])]

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
    """`R.call_tir(f, args, out_ty=...)`; with a string, a packed function in the place of `f`."""
    return call_kernel_into(DestinationCall(reader, node, "R.call_tir"))


def call_tir_with_grad(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.call_tir_with_grad(f, args, out_ty, te_grad_name, te_grad_kwargs)`; nothing here asks for the gradient."""
    return call_kernel_into(DestinationCall(reader, node, "R.call_tir_with_grad", _WITH_GRADIENT))


def call_kernel_into(call: DestinationCall) -> object:
    """The results of a PrimFunc, or of a packed function in the place of one."""
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
    places = reader.value(call.given.require("inplace_indices"))
    indices = [each for each in (items_of(places) or (places,)) if isinstance(each, int)]
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
