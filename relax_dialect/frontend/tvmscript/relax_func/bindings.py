"""Bindings of relax functions: names, annotations, declarations of dimensions."""

from __future__ import annotations

import ast

from xdsl.dialects.builtin import i1
from xdsl.ir import OpResult, SSAValue

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.calls import call_match_shape
from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader, ShapeDims
from relax_dialect.frontend.tvmscript.relax_func.placements import placed, sharding_in
from relax_dialect.frontend.tvmscript.text.declarations import declarations
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.scope import ModuleRef, Unbound
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import constant
from tir_dialect.name_hints import as_name_hint


class BindingReader(ExpressionReader):
    """Reads statements that give names a meaning."""

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            self.fail(node, "expected one target; write one binding for each name")
        target = node.targets[0]
        if found := declarations(self.aliases, target, node.value):
            for place, name, _ in found:
                self._declare(place, name)
            return
        if (names := self._match_shape_targets(target, node.value)) is not None:
            call_match_shape(self, node.value, names)
            return
        if self._is_module_alias(node.value):
            self._bind(target, ModuleRef())
            return
        if self._binds_some(target, node.value):
            return
        self._bind(target, self.value(node.value))

    def _binds_some(self, target: ast.expr, value: ast.expr) -> bool:
        """Binds `n, x = T.int64(), f(x)`: dimensions and values side by side; whether it was that."""
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
            return False
        pairs = list(zip(target.elts, value.elts, strict=False))
        declared = [declarations(self.aliases, *pair) for pair in pairs]
        if not any(declared) or len(target.elts) != len(value.elts):
            return False
        values = [None if found else self.value(each) for found, each in zip(declared, value.elts, strict=True)]
        for found, (place, _), each in zip(declared, pairs, values, strict=True):
            if found:
                self._declare(place, found[0][1])
            else:
                self._bind(place, each)
        return True

    def _condition(self, node: ast.expr) -> Expr:
        """A truth value; a tensor of one element, which is not 0, stands for that."""
        value = self.read(node)
        info = value.type
        if not isinstance(info, TensorType) or (info.known_dims == () and info.dtype == i1):
            return value
        if info.known_dims is not None and any(dim != constant(1) for dim in info.known_dims):
            return value
        if info.dtype not in (i1, None):
            zeros = self.emit(node, lambda: function_of(operator_classes()["relax.zeros_like"])(value))
            value = self.emit(node, lambda: function_of(operator_classes()["relax.not_equal"])(value, zeros))
        return self.emit(node, lambda: function_of(operator_classes()["relax.reshape"])(value, []))

    def _match_shape_targets(self, target: ast.expr, value: ast.expr) -> list[ast.expr] | None:
        """The names in `n, m = R.match_shape(x.shape)`, the form of the first texts; else `None`."""
        is_match = isinstance(value, ast.Call) and self.aliases.name_in("relax", value.func) == "match_shape"
        if not is_match or not isinstance(target, ast.Tuple) or not isinstance(value, ast.Call):
            return None
        return target.elts if len(value.args) == 1 and not value.keywords else None

    def _declare(self, node: ast.AST, name: str) -> None:
        if name not in self.scope or isinstance(self.scope.find(name), Expr | Unbound):
            self.declare(node, name)

    def _is_module_alias(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id not in self.scope and self.program.is_module(node.id)

    def _bind(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            fields = self.fields(target, self._unpacked(value))
            if len(fields) != len(target.elts):
                self.fail(target, f"expected {len(fields)} names, got {len(target.elts)}")
            for each, field in zip(target.elts, fields, strict=True):
                self._bind(each, field)
            return
        if not isinstance(target, ast.Name):
            self.fail(target, "expected a name to bind; values do not change")
        if isinstance(value, Expr):
            self._label(value.value, target.id)
        self.scope.bind(target.id, value)

    def _unpacked(self, value: object) -> object:
        if isinstance(value, Expr) and isinstance(value.type, ShapeType) and value.type.known_dims is not None:
            return value.type.known_dims
        return value

    def _label(self, value: SSAValue, name: str) -> None:
        is_new = isinstance(value, OpResult) and value.name_hint in (None, "gv", "lv")
        if is_new and name != "_":
            value.name_hint = as_name_hint(name) or value.name_hint

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "expected a name to bind")
        if node.value is None:
            if self.types.scalar(node.annotation) is None:
                self.fail(node, "expected a value; only dimensions are declared without one, as n: T.int64")
            self._declare(node.target, node.target.id)
            return
        if found := declarations(self.aliases, node.target, node.value):
            self._declare(node.target, found[0][1])
            return
        # a value may bind dimensions that the annotation only names
        with self.scope.inner():
            self.expected = self.types.read(node.annotation, implicit=True)
        try:
            value = self.value(node.value)
        finally:
            self.expected = None
        declared = self.types.read(node.annotation)
        found = self._conformed(node, value, declared)
        self._bind(node.target, placed(self, node, found, sharding_in(self, node.annotation)))

    def _conformed(self, node: ast.AnnAssign, value: object, declared: StructInfo) -> object:
        """The value, checked to be what the annotation says."""
        items = items_of(value)
        if items is not None and isinstance(declared, TupleType) and len(items) == len(declared.fields):
            pairs = zip(items, declared.fields, strict=True)
            return tuple(self._conformed(node, each, info) for each, info in pairs)
        if items is not None and isinstance(declared, ShapeType):
            shape = self.shape(node, value)
            value = shape if isinstance(shape, Expr) else ShapeDims(shape)
        if isinstance(value, bool | int | float) and isinstance(declared, TensorType | PrimType):
            number = value
            if isinstance(declared, TensorType):
                value = self.emit(node, lambda: self.builder.const(number, declared.dtype))
            else:
                value = self.emit(node, lambda: self.builder.prim(number, declared.dtype))
        if isinstance(value, str) and not isinstance(declared, ObjectType):
            self.fail(node.value or node, f'expected a value of type {declared}, got "{value}"')
        expr = self.expr(node, value)
        if isinstance(declared, PrimType) and expr.type == TensorType((), declared.dtype):
            return expr  # what a PrimFunc returns is an element
        return self.refine(node, expr, declared)
