"""Everything that has to hold of any module, and of one that is compiled: SSA dominance, the symbols that ops use and
witness, calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, ErasedSSAValue, Operation, OpResult, ParametrizedAttribute, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding, fail, refuse
from lowering.locations import source_position
from relax_dialect.inference import InfersResultTypes, unknown_results
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import prover_at, symbol_name, symbols_witnessed
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import FuncType, ObjectType, PartialShapeAttr, shape_symbols
from relax_dialect.traits import Violations
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import DimAttr

NO_SYMBOLS: frozenset[str] = frozenset()


def witnesses(position: Operation | Block) -> Mapping[str, SSAValue]:
    """The values that witness symbols: results of an op, arguments of a block."""
    func = position.parent_op() if isinstance(position, Block) else None
    if isinstance(func, PrimFuncOp):
        return dict(zip(func.symbol_names, func.symbol_args, strict=False))
    return symbols_witnessed(position)


def entry_witnesses(op: Operation) -> Mapping[str, SSAValue]:
    """The witnesses among the arguments of the entry blocks of `op`; its signature may use them."""
    found: dict[str, SSAValue] = {}
    for region in op.regions:
        if region.first_block is not None:
            found |= witnesses(region.first_block)
    return found


class SymbolsInAttributes:
    """The free symbols of attributes and types; each distinct object is looked into once."""

    def __init__(self) -> None:
        # By identity: attributes hash by content, which costs more than looking. The module keeps them alive.
        self._known: dict[int, frozenset[str]] = {}

    def attributes(self, op: Operation) -> Iterator[tuple[str, frozenset[str]]]:
        """Where the properties and attributes of `op` name symbols, and which."""
        for kind, attributes in (("property", op.properties), ("attribute", op.attributes)):
            for name, attribute in attributes.items():
                if used := self.of(attribute):
                    yield f"{kind} {name}", used

    def results(self, op: Operation) -> Iterator[tuple[str, frozenset[str]]]:
        """Where the types of the results of `op` name symbols, and which."""
        for index, result in enumerate(op.results):
            if used := self.of(result.type):
                yield f"type of result #{index}", used

    def arguments(self, block: Block) -> Iterator[tuple[str, frozenset[str]]]:
        """Where the types of a block's arguments name symbols, and which."""
        for index, argument in enumerate(block.args):
            if used := self.of(argument.type):
                yield f"type of argument #{index}", used

    def of(self, attribute: Attribute) -> frozenset[str]:
        """The free symbols of one attribute."""
        if (known := self._known.get(id(attribute))) is None:
            known = self._known[id(attribute)] = self._look_into(attribute)
        return known

    def _look_into(self, attribute: Attribute) -> frozenset[str]:
        match attribute:
            case DimAttr():
                return frozenset(attribute.data.symbols)
            case PartialShapeAttr():
                return frozenset(shape_symbols(attribute.data))
            case FuncType():  # binds symbols of its own
                return free_symbols(attribute)
            case DictionaryAttr():
                parts = tuple(attribute.data.values())
            case ArrayAttr():
                parts = attribute.data
            case ParametrizedAttribute():
                parts = attribute.parameters
            case _:
                return NO_SYMBOLS
        return NO_SYMBOLS.union(*map(self.of, parts))


def invisible_operand(op: Operation, index: int) -> Finding:
    """Operand `index` of `op`, which its definition does not dominate."""
    value = op.operands[index]
    return Finding.at(op, f"operand #{index} ({_name(value)}) {_why_invisible(op, value)}")


def unbound_symbol(op: Operation, symbol: str, where: str) -> Finding:
    """A symbol that the type or attribute `where` of `op` names and that no visible value witnesses."""
    witness = _witness_elsewhere(op, symbol)
    if witness is None:
        reason = "which nothing binds"
        hint = "bind it among the symbols of the function, or by a 'relax.match_cast' above"
        if op.name == "relax.match_cast":
            hint = f"name it in the cast, whose last results are the values of symbols: `binds [{symbol}]`"
    else:
        reason = f"whose witness {_name(witness)}{_at(witness)} does not dominate this use"
        hint = None
    return Finding.at(op, f"{where} uses symbol {symbol}, {reason}", hint)


def bound_twice(op: Operation, symbol: str, value: SSAValue, earlier: SSAValue) -> Finding:
    """A symbol that is witnessed although it is in scope."""
    return Finding.at(
        op,
        f"{_name(value)} binds symbol {symbol}, which {_name(earlier)}{_at(earlier)} has bound in the same scope",
        "choose another name, or use the symbol instead of binding it",
    )


def _why_invisible(op: Operation, value: SSAValue) -> str:
    if isinstance(value, ErasedSSAValue):
        return "was erased"
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    if home is None or home.parent is None:
        return "is defined by an op that is in no block"
    # `op`, its block, that block's op, and so on.
    ancestors: set[Operation | Block] = set()
    current: Operation | None = op
    while current is not None:
        ancestors.add(current)
        if current.parent is not None:
            ancestors.add(current.parent)
        current = current.parent_op()
    if home in ancestors:
        isolated = _isolation_between(op, home)
        if isolated is not None:
            return f"is defined outside of '{isolated.name}', which is isolated from above"
        if value.owner in ancestors:
            return "is used inside its own definition"
        return f"is used before it is defined{_at(value)}"
    if home.parent in {block.parent for block in ancestors if isinstance(block, Block)}:
        return f"is defined{_at(value)} in a block that does not dominate this use"
    owner = home.parent_op()
    inside = f" inside '{owner.name}'" if owner is not None else ""
    return f"is defined{inside}{_at(value)} and is not visible outside of it"


def _isolation_between(op: Operation, home: Block) -> Operation | None:
    """The op that is isolated from above and separates `op` from the block `home` around it."""
    while op.parent is not home and (parent := op.parent_op()) is not None:
        if parent.has_trait(IsolatedFromAbove):
            return parent
        op = parent
    return None


def _witness_elsewhere(op: Operation, symbol: str) -> SSAValue | None:
    """A witness of `symbol` in the function of `op` that is not in scope at `op`."""
    function = op
    while not function.has_trait(IsolatedFromAbove) and (parent := function.parent_op()) is not None:
        function = parent
    for other in function.walk():
        for owner in (other, *(block for region in other.regions for block in region.blocks)):
            if (witness := witnesses(owner).get(symbol)) is not None:
                return witness
    return None


def _name(value: SSAValue) -> str:
    if isinstance(value, ErasedSSAValue):
        return _name(value.old_value)
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if isinstance(value, OpResult):
        return f"result #{value.index} of '{value.op.name}'"
    return "an unnamed block argument"


def _at(value: SSAValue) -> str:
    """` at file:line:column` of the definition, if it is known."""
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    where = str(source_position(owner.location)) if owner is not None else ""
    return f" at {where}" if where else ""


@dataclass(frozen=True)
class BlockOrder:
    """The blocks of a region, so that what has been entered and not left dominates."""

    events: tuple[tuple[Block, bool], ...]
    """`(block, True)` on entering, `(block, False)` on leaving its subtree of the dominator tree."""
    unreachable: tuple[Block, ...]
    """Blocks that no path from the entry reaches."""


def block_order(region: Region) -> BlockOrder:
    """Walks the dominator tree of `region`; an only block needs no tree.

    Dominators by the iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001) over the
    reverse postorder: one round for reducible graphs.
    """
    first = region.first_block
    if first is None:
        return BlockOrder((), ())
    if first.next_block is None:
        return BlockOrder(((first, True), (first, False)), ())
    postorder: list[Block] = []
    seen = {first}
    stack = [(first, iter(_successors(first)))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(_successors(successor))))
                break
        else:
            stack.pop()
            postorder.append(block)
    order = postorder[::-1]
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for block, dominator in _immediate_dominators(order).items():
        if block is not first:
            children[dominator].append(block)
    return BlockOrder(
        tuple(_enter_and_leave(first, children)), tuple(block for block in region.blocks if block not in children)
    )


def _successors(block: Block) -> tuple[Block, ...]:
    return tuple(block.last_op.successors) if block.last_op is not None else ()


def _immediate_dominators(order: list[Block]) -> dict[Block, Block]:
    """The nearest dominator of each block of a reverse postorder; the entry is its own."""
    number = {block: at for at, block in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in order]
    for at, block in enumerate(order):
        for successor in _successors(block):
            predecessors[number[successor]].append(at)
    dominator: list[int | None] = [0, *(None for _ in order[1:])]

    def meet(left: int, right: int) -> int:
        while left != right:
            if left < right:
                left, right = right, left
            # Only blocks with a known dominator are met, and it always has a smaller number.
            left = dominator[left] or 0
        return left

    changed = True
    while changed:
        changed = False
        for at in range(1, len(order)):
            known = [before for before in predecessors[at] if dominator[before] is not None]
            nearest = known[0]
            for other in known[1:]:
                nearest = meet(nearest, other)
            if dominator[at] != nearest:
                dominator[at], changed = nearest, True
    return {block: order[dominator[at] or 0] for at, block in enumerate(order)}


def _enter_and_leave(root: Block, children: dict[Block, list[Block]]) -> Iterator[tuple[Block, bool]]:
    stack = [(root, True)]
    while stack:
        block, entering = stack.pop()
        yield block, entering
        if entering:
            stack.append((block, False))
            stack.extend((child, True) for child in reversed(children[block]))


def dominance_findings(op: Operation) -> list[Finding]:
    """Every operand that its definition does not dominate, and every breach of the symbol rule, in `op`.

    The symbol rule: a symbol named in a type or attribute is used only where a witness dominates, and is not witnessed
    again where it is in scope. A value or symbol is reported once per scope. Linear in the size of the op.
    """
    checker = _Checker()
    checker.check_op(op)
    return checker.findings


class _Scope:
    """What is visible at a point: a stack that is cut back on leaving a block."""

    def __init__(self) -> None:
        self.values: set[int] = set()
        """Identities of visible values; the module keeps the values alive."""
        self.symbols: dict[str, SSAValue | None] = {}
        """The witness of each visible symbol; `None` if its absence has been reported."""
        self._value_trail: list[int] = []
        self._symbol_trail: list[str] = []

    def add_values(self, values: Iterable[SSAValue]) -> None:
        """Makes values visible until the scope is cut back."""
        for value in values:
            self.values.add(id(value))
            self._value_trail.append(id(value))

    def add_symbol(self, name: str, witness: SSAValue | None) -> None:
        """Makes a symbol visible until the scope is cut back."""
        self.symbols[name] = witness
        self._symbol_trail.append(name)

    def mark(self) -> tuple[int, int]:
        """Where to cut back to."""
        return len(self._value_trail), len(self._symbol_trail)

    def cut_back(self, mark: tuple[int, int]) -> None:
        """Forgets what was added after `mark`."""
        self.values.difference_update(self._value_trail[mark[0] :])
        del self._value_trail[mark[0] :]
        for name in self._symbol_trail[mark[1] :]:
            self.symbols.pop(name, None)
        del self._symbol_trail[mark[1] :]


class _Checker:
    """The walk: an op's operands, its regions, then its results come into scope."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._scope = _Scope()
        self._symbols_in = SymbolsInAttributes()

    def check_op(self, op: Operation) -> None:
        """Checks `op` and everything in it against the current scope."""
        visible = self._scope.values
        for index, operand in enumerate(op.operands):
            if id(operand) not in visible:
                self.findings.append(invisible_operand(op, index))
                # Said once; later uses would only repeat it.
                self._scope.add_values((operand,))
        for where, used in self._symbols_in.attributes(op):
            self._check_symbols(op, where, used, entry_witnesses(op), witnesses(op))
        if op.regions:
            outer = self._scope
            if op.has_trait(IsolatedFromAbove):
                self._scope = _Scope()
            for region in op.regions:
                mark = self._scope.mark()
                self._check_region(op, region)
                self._scope.cut_back(mark)
            self._scope = outer
        self._bind(op, witnesses(op))
        for where, used in self._symbols_in.results(op):
            self._check_symbols(op, where, used)
        self._scope.add_values(op.results)

    def _check_symbols(
        self, op: Operation, where: str, used: Iterable[str], *witnessed: Mapping[str, SSAValue]
    ) -> None:
        """Symbols named on `op`; beside those in scope, `witnessed` may be used."""
        for name in used:
            if name not in self._scope.symbols and not any(name in mapping for mapping in witnessed):
                self.findings.append(unbound_symbol(op, name, where))
                self._scope.add_symbol(name, None)

    def _check_region(self, op: Operation, region: Region) -> None:
        order = block_order(region)
        marks: list[tuple[int, int]] = []
        for block, entering in order.events:
            if entering:
                marks.append(self._scope.mark())
                self._check_block(op, block)
            else:
                self._scope.cut_back(marks.pop())
        if order.unreachable:
            # Everything in the region dominates a block that is never reached.
            mark = self._scope.mark()
            for block in region.blocks:
                self._scope.add_values(block.args)
                for inner in block.ops:
                    self._scope.add_values(inner.results)
            for block in order.unreachable:
                self._check_block(op, block)
            self._scope.cut_back(mark)

    def _check_block(self, op: Operation, block: Block) -> None:
        self._bind(op, witnesses(block))
        for where, used in self._symbols_in.arguments(block):
            self._check_symbols(op, where, used)
        self._scope.add_values(block.args)
        for inner in block.ops:
            self.check_op(inner)

    def _bind(self, op: Operation, witnessed: Mapping[str, SSAValue]) -> None:
        for name, value in witnessed.items():
            if (earlier := self._scope.symbols.get(name)) is not None:
                self.findings.append(bound_twice(op, name, value, earlier))
            else:
                self._scope.add_symbol(name, value)


class VerifyDominancePass(ModulePass):
    """Rejects a module in which a use is not dominated by its definition; changes nothing.

    Values: the definition dominates the use, over blocks, nested regions and isolation. Symbols: a symbol named in a
    type or attribute is used only where a witness dominates, and no symbol is bound again where it is in scope.

    ```mlir
    %b = arith.addi %a, %a : i32     // error: 'arith.addi' op operand #0 (%a) is used before it is defined
    %a = arith.constant 1 : i32
    ```

    Expects ops whose own verifiers hold. Reports all independent errors at once, each at its op.
    """

    name = "verify-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        refuse(dominance_findings(op))


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

_SCALAR_OPERAND = re.compile(
    r"operand '(\w+)' at position (\d+) does not verify:\nExpected attribute (\S+) but got (.+)"
)
_UNKNOWN_PROPERTY = re.compile(r"property '(\w+)' is not defined by the operation")
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
    """What xDSL says of properties, operands and missing terminators, in the words of the other errors."""
    if (ending := _without_terminator(op, message)) is not None:
        return ending
    if (unknown := _UNKNOWN_PROPERTY.match(message)) is not None:
        names = op.get_irdl_definition().properties if isinstance(op, IRDLOperation) else ()
        close = "".join(f"; did you mean '{each}'?" for each in get_close_matches(unknown[1], list(names), n=1))
        return f"has no property '{unknown[1]}'{close or '; what is no property stands among its attributes'}"
    message = _SCALAR_OPERAND.sub(
        lambda found: f"operand #{found[2]} ({found[1]}) expected {found[3]}, got {found[4]}", message
    )
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


def verify_module(module: ModuleOp) -> None:
    """Raises `InvalidModule` with all errors: of ops, then of dominance and symbols; one for each op."""
    findings = operation_findings(module)
    if not findings:
        refuse(dominance_findings(module))
    wrong = {finding.op for finding in findings}
    refuse([*findings, *(finding for finding in _dominance_findings(module) if finding.op not in wrong)])


def _dominance_findings(module: ModuleOp) -> Iterator[Finding]:
    """What can be said about the functions of a module with wrong ops, whose parts need not fit together."""
    for func in module.ops:
        if func.has_trait(IsolatedFromAbove) and declaration_error(func) is None:
            try:
                yield from dominance_findings(func)
            except (VerifyException, ValueError):
                continue


def verify_program(module: ModuleOp) -> None:
    """`verify_module`, and an entry point: a function that is not private (specification, well-formedness 12)."""
    verify_module(module)
    functions = [op for op in module.ops if isinstance(op, FuncOp | PrimFuncOp)]
    if any(isinstance(func, FuncOp) for func in functions) and all(func.is_private for func in functions):
        fail(module, "expected a function that is not private, as entry point", "leave out 'private' of one")
