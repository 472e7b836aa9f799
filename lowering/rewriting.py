"""The driver of rewrite patterns: how a pass applies a set of `RewritePattern`s to a module.

Patterns are xDSL's (`xdsl.pattern_rewriter.RewritePattern`), so each of them also runs under xDSL's
`PatternRewriteWalker`. This driver differs in cost and in what it guarantees:

* Patterns are indexed by the op class that they match. An op that no pattern is about costs one lookup in a dictionary,
  where xDSL's walker calls every pattern.
* Ops are visited in program order, or in reverse: a pattern of a whole graph is to see its last op first.
* After a rewrite only the ops that it touched are visited again; there is no second walk over the module.
* New ops have the location of the op that they replace (`lowering.locations`).
* Ops that lose their last use by a rewrite are erased if they have no effects.
* Patterns that undo each other are reported instead of running forever.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import islice
from typing import Protocol, TypeAlias, TypeVar, cast, get_args, get_type_hints

from typing_extensions import override
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener, RewritePattern
from xdsl.rewriter import InsertPoint

from lowering.diagnostics import fail
from lowering.locations import keep_locations
from tir_dialect.fast_ops import erase_dead, walked


class ConversionRewriter(PatternRewriter):
    """The rewriter of a conversion, with the patterns that it applies."""

    def __init__(self, patterns: PatternIndex, block: Block):
        """`block` is the first one of the new function."""
        super().__init__(InsertPoint.at_end(block))
        self.patterns = patterns

    def apply_pattern(self, op: Operation) -> bool:
        """Converts one op by the first pattern that is about it; whether there is one."""
        rewrite = self.patterns.rewrite_of(type(op))
        if rewrite is None:
            return False
        rewrite(op, self)
        return True


PatternT = TypeVar("PatternT", bound=RewritePattern)
OperationT = TypeVar("OperationT", bound=Operation)
RewriterT = TypeVar("RewriterT", bound=PatternRewriter)

Rewrite: TypeAlias = Callable[[Operation, PatternRewriter], None]
"""`match_and_rewrite` of a pattern."""

MAX_REWRITES_PER_OP = 64
"""Rewrites of a module per op that it began with, above which its patterns are taken to undo each other."""

MAX_OPERANDS = 8
"""Uses of a value that are looked at to find out whether they are of one op."""

_annotated: dict[object, object] = {}
"""From `match_and_rewrite` of a pattern to the function whose annotation says which ops it matches."""


def op_rewrite_pattern(
    rewrite: Callable[[PatternT, OperationT, RewriterT], None],
) -> Callable[[PatternT, Operation, PatternRewriter], None]:
    """Restricts `match_and_rewrite` to ops of the class, or the union of classes, that annotates its second parameter.

    It does what xDSL's `op_type_rewrite_pattern` does, and lets `apply_patterns` know which ops these are. The
    annotation is evaluated when the pattern is used first. A pattern of a conversion annotates its rewriter, too
    (`lowering.rewriting`).
    """
    matches: dict[type[Operation], bool] = {}

    def match_and_rewrite(self: PatternT, op: Operation, rewriter: PatternRewriter) -> None:
        cls = type(op)
        if cls not in matches:
            matches[cls] = issubclass(cls, _annotation(rewrite))
        if matches[cls]:
            rewrite(self, cast("OperationT", op), cast("RewriterT", rewriter))

    _annotated[match_and_rewrite] = rewrite
    return match_and_rewrite


@cache
def _annotation(rewrite: object) -> tuple[type[Operation], ...]:
    """The op classes that annotate the second parameter of a `match_and_rewrite`."""
    hints = get_type_hints(rewrite)
    found = hints[next(name for name in hints if name not in ("rewriter", "return"))]
    return get_args(found) or (found,)


class IndexedPattern(RewritePattern, ABC):
    """A pattern that finds out when it is made which ops it matches; others say it by `op_rewrite_pattern`."""

    @abstractmethod
    def may_match(self, op_class: type[Operation]) -> bool:
        """Whether an op of this class may match."""


def may_match(pattern: RewritePattern, op_class: type[Operation]) -> bool:
    """Whether a pattern is about ops of a class; one that does not say is about all."""
    if isinstance(pattern, IndexedPattern):
        return pattern.may_match(op_class)
    annotated = _annotated.get(type(pattern).match_and_rewrite)
    return annotated is None or issubclass(op_class, _annotation(annotated))


class Canonicalize(IndexedPattern):
    """Ops of some classes in their canonical form, as in the pass `canonicalize`: `reshape(x, shape_of(x))  ->  x`."""

    def __init__(self, *classes: type[Operation]):
        self.classes = classes

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return issubclass(op_class, self.classes)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Folds an op, or else applies the patterns that it names."""
        if not isinstance(op, self.classes):
            return
        if isinstance(op, HasFolderInterface) and (values := op.fold()) is not None:
            known = [value for value in values if isinstance(value, SSAValue)]
            if len(known) == len(values):
                rewriter.replace(op, [], known)
                return
        if isinstance(op, HasCanonicalizationPatternsInterface):
            for pattern in op.get_canonicalization_patterns():
                pattern.match_and_rewrite(op, rewriter)
                if rewriter.has_done_action:
                    return


class PatternIndex:
    """Patterns by the class of the op that they match, in the order in which they are tried."""

    def __init__(self, patterns: Iterable[RewritePattern]):
        self._patterns = tuple(patterns)
        self._by_class: dict[type[Operation], tuple[RewritePattern, ...]] = {}
        self._rewrites: dict[type[Operation], Rewrite | None] = {}

    def of(self, op: Operation) -> tuple[RewritePattern, ...]:
        """The patterns that may match an op."""
        found = self._by_class.get(type(op))
        return self.of_class(type(op)) if found is None else found

    def of_class(self, op_class: type[Operation]) -> tuple[RewritePattern, ...]:
        """The patterns that may match an op of this class."""
        found = tuple(pattern for pattern in self._patterns if may_match(pattern, op_class))
        self._by_class[op_class] = found
        return found

    def rewrite_of(self, op_class: type[Operation]) -> Rewrite | None:
        """What the first pattern that is about a class of ops does with one, which it need not check again."""
        if op_class not in self._rewrites:
            first = next(iter(self.of_class(op_class)), None)
            self._rewrites[op_class] = None if first is None else _unchecked(first)
        return self._rewrites[op_class]


def _unchecked(pattern: RewritePattern) -> Rewrite:
    rewrite = _annotated.get(type(pattern).match_and_rewrite)
    return pattern.match_and_rewrite if rewrite is None else partial(cast("Callable[..., None]", rewrite), pattern)


class _Worklist:
    """Ops to visit, the one pushed last first, each at most once."""

    def __init__(self) -> None:
        self._stack: list[Operation] = []
        self._waiting: set[Operation] = set()

    def push(self, op: Operation) -> None:
        if op not in self._waiting:
            self._waiting.add(op)
            self._stack.append(op)

    def discard(self, op: Operation) -> None:
        self._waiting.discard(op)

    def pop(self) -> Operation | None:
        while self._stack:
            op = self._stack.pop()
            if op in self._waiting:
                self._waiting.remove(op)
                return op
        return None


class Record(Protocol):
    """What is remembered of a rewrite, and done after it."""

    def listener(self) -> PatternRewriterListener:
        """What the rewriter tells what it does."""
        ...

    def settle(self, rewriter: PatternRewriter) -> None:
        """Ends a rewrite."""
        ...


def apply_patterns(
    scope: Operation,
    patterns: Sequence[RewritePattern] | PatternIndex,
    *,
    reverse: bool = False,
    record: Record | None = None,
) -> bool:
    """Applies patterns to the ops nested in `scope`, in program order, until none matches. Whether anything changed.

    Of the patterns that are about an op, those that come first in the sequence are tried first. Visited next is what a
    pattern inserts or modifies, in program order, then what uses a value that it replaces, and what is the only one
    left to use a value. With `reverse`, all of that is visited in the reverse order: an op before its operands. Each
    pattern has to make the program smaller by some measure; patterns that do not are reported as an error at `scope`.
    A `record` is told of each rewrite, and ends it.
    """
    index = patterns if isinstance(patterns, PatternIndex) else PatternIndex(patterns)
    worklist = _Worklist()
    ops = [op for op in walked(scope) if op is not scope and index.of(op)]
    if not ops:
        return False
    for op in ops if reverse else reversed(ops):
        worklist.push(op)
    touched = _Touched(worklist, index, reverse)
    rewriter = PatternRewriter(ops[0])
    rewriter.extend_from_listener(keep_locations())
    records: Sequence[Record] = [touched] if record is None else [touched, record, touched]
    for each in records[:2]:
        rewriter.extend_from_listener(each.listener())
    rewrites, most = 0, MAX_REWRITES_PER_OP * (len(ops) + MAX_REWRITES_PER_OP)
    while (op := worklist.pop()) is not None:
        rewriter.insertion_point = InsertPoint.before(op)
        for pattern in index.of(op):
            rewriter.has_done_action = False
            rewriter.name_hint = None
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                rewrites += 1
                if rewrites > most:
                    fail(scope, f"expected patterns that end, but {type(pattern).__name__} still matches '{op.name}'")
                for each in records:
                    each.settle(rewriter)
                if op.parent is not None:
                    worklist.push(op)
                break
    return rewrites > 0


class _Touched:
    """What a rewrite has touched: it is visited again, or erased if nothing uses it any more."""

    def __init__(self, worklist: _Worklist, index: PatternIndex, reverse: bool):
        self._worklist = worklist
        self._index = index
        self._reverse = reverse
        self._fresh: list[Operation] = []
        self._unused: list[Operation] = []

    def listener(self) -> PatternRewriterListener:
        return PatternRewriterListener(
            operation_insertion_handler=[self._visit_nested],
            operation_modification_handler=[self._visit],
            operation_replacement_handler=[self._replaced],
            operation_removal_handler=[self._removed],
        )

    def settle(self, rewriter: PatternRewriter) -> None:
        """Erases the ops that a rewrite left without a use, then what only they used, and so on; visits others."""
        if self._unused:
            erase_dead(list(self._unused), erase=rewriter.erase)
            for op in reversed(self._unused):
                if op.parent is not None:
                    self._visit(op)
                    self._visit_only_user(op)
            self._unused.clear()
        for op in self._fresh if self._reverse else reversed(self._fresh):
            if op.parent is not None:
                self._worklist.push(op)
        self._fresh.clear()

    def _visit(self, op: Operation) -> None:
        if self._index.of(op):
            self._fresh.append(op)

    def _visit_nested(self, op: Operation) -> None:
        for inner in _with_nested(op):
            self._visit(inner)

    def _visit_only_user(self, op: Operation) -> None:
        """Visits what is alone now in using an op: many patterns match only values that nothing else uses."""
        for result in op.results:
            use = result.first_use
            if use is None:
                continue
            user = use.operation
            if all(other.operation is user for other in islice(result.uses, MAX_OPERANDS)):
                self._visit(user)

    def _replaced(self, op: Operation, results: Sequence[SSAValue | None]) -> None:
        for result in op.results:
            for use in result.uses:
                self._visit(use.operation)

    def _removed(self, op: Operation) -> None:
        for inner in _with_nested(op):
            self._worklist.discard(inner)
            self._unused += [value.owner for value in inner.operands if isinstance(value.owner, Operation)]


def _with_nested(op: Operation) -> Iterable[Operation]:
    """An op, and what its regions hold."""
    return op.walk() if op.regions else (op,)
