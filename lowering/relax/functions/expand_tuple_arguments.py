"""`expand-tuple-arguments`: tuples become parameters of their own, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.relax.call_graph import CallSite, call_sites
from lowering.relax.functions.update_param_struct_info import field_of, given_values, replace_values
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import TupleType
from tir_dialect.new_ops import erase_dead

_Fields: TypeAlias = "tuple[_Fields, ...] | None"
"""How far a parameter is taken apart: `None` not at all, else its fields, each as far."""


class ExpandTupleArgumentsPass(ModulePass):
    """Replaces tuple parameters of private functions by one parameter per field, recursively.

    Before:

    ```mlir
    relax.func private @first(%t: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
      %0 = relax.tuple_get %t[0]
      relax.return %0
    }
    relax.func @main(%x: !relax.object, %y: !relax.object) -> !relax.object {
      %0 = relax.tuple(%x, %y)
      %1 = relax.call @first(%0) : !relax.object
      relax.return %1
    }
    ```

    After:

    ```mlir
    relax.func private @first(%t: !relax.object, %t_1: !relax.object) -> !relax.object {
      relax.return %t
    }
    relax.func @main(%x: !relax.object, %y: !relax.object) -> !relax.object {
      %0 = relax.call @first(%x, %y) : !relax.object
      relax.return %0
    }
    ```

    Recursive calls are rewritten like others, and so are captured values of `relax.make_closure`. A parameter that a
    function value still takes stays as it is, and so does a tuple of which a call does not know the fields. Idempotent;
    refuses nothing.
    `remove-unused-parameters` then drops the fields that are not used.
    """

    name = "expand-tuple-arguments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """The calls of a function, then its entry."""
        for func, sites in call_sites(op).items():
            plan = _plan(func, sites)
            if any(fields is not None for fields in plan):
                for site in sites:
                    given = given_values(site)
                    values = [
                        leaf
                        for value, fields in zip(given, plan, strict=False)
                        for leaf in _taken_apart(value, fields, site)
                    ]
                    owners = [value.owner for value in given]
                    replace_values(site, values)
                    erase_dead(owner for owner in owners if isinstance(owner, Operation))
                _expand_entry(func, plan)


def _plan(func: FuncOp, sites: Sequence[CallSite]) -> list[_Fields]:
    """How far each parameter is taken apart: as far as everything that gives it a value knows its fields."""
    given = [as_struct_infos(value.type for value in given_values(site)) for site in sites]
    params = func.function_type.params
    always = min(map(len, given), default=len(params))
    plan = [_common(param, [infos[index] for infos in given]) for index, param in enumerate(params[:always])]
    return [*plan, *(None for _ in params[always:])]


def _common(declared: StructInfo, given: Sequence[StructInfo]) -> _Fields:
    if not isinstance(declared, TupleType):
        return None
    tuples = [info for info in given if isinstance(info, TupleType)]
    if len(tuples) < len(given):
        return None
    return tuple(_common(field, [info.fields[i] for info in tuples]) for i, field in enumerate(declared.fields))


def _leaves(info: StructInfo, fields: _Fields) -> Iterator[StructInfo]:
    """The types of the parameters that replace one."""
    if fields is None or not isinstance(info, TupleType):
        yield info
        return
    for inner, deeper in zip(info.fields, fields, strict=True):
        yield from _leaves(inner, deeper)


def _taken_apart(value: SSAValue, fields: _Fields, site: CallSite) -> Iterator[SSAValue]:
    if fields is None:
        yield value
        return
    for index, deeper in enumerate(fields):
        yield from _taken_apart(field_of(value, index, site), deeper, site)


def _expand_entry(func: FuncOp, plan: Sequence[_Fields]) -> None:
    """Gives the function its new parameters, of which the old ones are made where they are still used."""
    old, names = func.function_type, _names(func, plan)
    block, position = func.body.block, len(func.symbols)
    made: list[TupleOp] = []
    for param, info, fields in zip(func.params, old.params, plan, strict=True):
        leaves = list(_leaves(info, fields))
        if fields is None:
            position += 1
            continue
        new = [_insert_param(block, leaf, position + index, param) for index, leaf in enumerate(leaves)]
        whole = _put_together(iter(new), fields, func, made)
        param.replace_all_uses_with(whole)
        block.erase_arg(param)
        position += len(new)
    params = [leaf for info, fields in zip(old.params, plan, strict=True) for leaf in _leaves(info, fields)]
    func.function_type = FuncType(params, old.ret, pure=old.pure, symbols=old.symbols)
    func.name_params(names)
    Rewriter.insert_op(made, InsertPoint.at_start(block))
    _read_directly(made)


def _names(func: FuncOp, plan: Sequence[_Fields]) -> list[str]:
    """The names of the new parameters: fields are called like the tuple, with numbers."""
    names: list[str] = []
    taken = {name for name, fields in zip(func.param_names, plan, strict=True) if fields is None}
    for name, info, fields in zip(func.param_names, func.function_type.params, plan, strict=True):
        for _ in _leaves(info, fields):
            names.append(name if fields is None else fresh_name(name, taken))
            taken.add(names[-1])
    return names


def _insert_param(block: Block, info: StructInfo, index: int, old: BlockArgument) -> BlockArgument:
    new = block.insert_arg(info, index)
    new.name_hint = old.name_hint
    return new


def _put_together(leaves: Iterator[SSAValue], fields: _Fields, func: FuncOp, made: list[TupleOp]) -> SSAValue:
    """The value that a parameter was; the tuples on the way are added to `made`, inner ones first."""
    if fields is None:
        return next(leaves)
    op = TupleOp(*[_put_together(leaves, deeper, func, made) for deeper in fields])
    inherit_location(func, op)
    made.append(op)
    return op.result


def _read_directly(made: Sequence[TupleOp]) -> None:
    """Reads of the tuples become their fields; tuples without other uses go. Outer ones come first."""
    for op in reversed(made):
        for use in list(op.result.uses):
            if isinstance(use.operation, TupleGetOp):
                field = op.fields[use.operation.index.value.data]
                if field.type == use.operation.result.type:
                    Rewriter.replace_op(use.operation, [], [field])
        erase_dead((op,))
