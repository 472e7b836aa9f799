"""The verifier of every op, without stopping at the first error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding
from lowering.locations import source_position
from relax_dialect.interfaces import InfersResultTypes, unknown_results
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import ObjectType
from relax_dialect.symbols import symbol_name
from relax_dialect.verifiers import Violations


def operation_findings(module: ModuleOp) -> list[Finding]:
    """Every op whose own verifier rejects it; one pass over the module if all is well.

    Also catches the structural rules of xDSL: terminators, successors, parent links, erased values in use.
    """
    try:
        module.verify()
    except (VerifyException, ValueError) as error:
        return list(_collect(module)) or [Finding.at(module, str(error))]
    return []


def _collect(module: ModuleOp) -> Iterator[Finding]:
    """The errors, but not those of ops that use results of which nothing is known because their op is wrong."""
    again = list(_redefinitions(module))
    yield from again
    unknown: set[Operation] = set()
    undeclared: set[Operation] = set()
    for op in module.walk():
        if op is module and again:
            continue
        if op.parent_op() in undeclared:  # nobody can say what nested ops should be
            undeclared.add(op)
            continue
        if op.regions and (error := declaration_error(op)) is not None:
            undeclared.add(op)
            yield Finding.at(op, _reworded(op, str(error)))
            continue
        try:
            _verify_alone(op)
        except Violations as error:
            yield from (Finding(violation.op, violation.message) for violation in error.violations)
        except (VerifyException, ValueError) as error:
            if unknown.isdisjoint(operand.owner for operand in op.operands):
                yield Finding.at(op, _reworded(op, str(error)))
            if _says_nothing(op):
                unknown.add(op)


def declaration_error(op: Operation) -> VerifyException | None:
    """What is wrong with the parts of an op, of which each has to be of the kind that the op declares."""
    if isinstance(op, IRDLOperation):
        try:
            op.get_irdl_definition().verify(op)
        except VerifyException as error:
            return error
    return None


_OPERAND = re.compile(r"operand '(\w+)' at position (\d+) does not verify:\n(.+) should be of base attribute (\S+)")


_NO_TERMINATOR = re.compile(r"terminates block in single-block region but is not a terminator|contains empty block in")
_TERMINATORS = {"relax.func": "relax.return", "relax.closure": "relax.return", "relax.dataflow": "relax.output"}
"""How the regions of ops end."""


def _without_terminator(op: Operation, message: str) -> str | None:
    """What is said about a region that does not end with its terminator; `None` for another message of xDSL."""
    if _NO_TERMINATOR.search(message) is None:
        return None
    around = op if "contains empty block" in message else op.parent_op()
    terminator = None if around is None else _TERMINATORS.get(around.name)
    if around is None or terminator is None:
        return None
    name = symbol_name(around)
    what = f"the {around.name.partition('.')[2]}" if name is None else f"@{name}"
    advice = f"add `{terminator} %value`"
    if around is op:
        return f"has no ops, but {what} has to end with '{terminator}': {advice}"
    return f"is the last op of {what}, which has to end with '{terminator}': {advice}"


def _reworded(op: Operation, message: str) -> str:
    """What xDSL says of operands of a wrong kind and of missing terminators, in the words of the other errors."""
    if (ending := _without_terminator(op, message)) is not None:
        return ending
    return _OPERAND.sub(
        lambda found: f"'{op.name}' op operand #{found[2]} ({found[1]}) expected !{found[4]}, got {found[3]}", message
    )


def _says_nothing(op: Operation) -> bool:
    """Whether the results of an op are what a text gets whose op is wrong, or calls a function that is not there."""
    if isinstance(op, InfersResultTypes) and tuple(op.result_types) == unknown_results(type(op)):
        return True
    return all(isinstance(info, ObjectType) for info in op.result_types)


def _redefinitions(module: ModuleOp) -> Iterator[Finding]:
    """The functions that have the name of an earlier one."""
    first: dict[str, Operation] = {}
    for op in module.ops:
        if (name := symbol_name(op)) is not None and (known := first.setdefault(name, op)) is not op:
            where = str(source_position(known.location))
            yield Finding.at(op, f"@{name} is defined already{f' at {where}' if where else ''}; give it another name")


def _verify_alone(op: Operation) -> None:
    """The op's verifier, without those of nested ops."""
    # First what says most: inference names an operand that `verify_` only compares with its definition, and
    # `Operation.verify` would wrap the error of `verify_` with a print of the whole module.
    if isinstance(op, InfersResultTypes):
        op.infer_result_types(op.operand_types, op.properties, prover_at(op))
    op.verify_()
    op.verify(verify_nested_ops=False)
    for region in op.regions:
        for block in region.blocks:
            if not block.ops:
                block.verify()
