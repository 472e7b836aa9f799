"""Ensembles of decision trees: one kernel, whose operands are the tables of all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.ml_linear import NO_TRANSFORM, Classes, coefficients, columns, data, transformed
from relax_dialect.frontend.onnx.model import ML
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import Refusal, Value
from tir_dialect import te

LESS, EQUAL, GREATER, NAN = 1, 2, 4, 8
"""How a feature may compare with the number of a node; a node has the sum of those for which its branch is taken."""

MODES = {
    "BRANCH_LEQ": LESS | EQUAL,
    "BRANCH_LT": LESS,
    "BRANCH_GTE": GREATER | EQUAL,
    "BRANCH_GT": GREATER,
    "BRANCH_EQ": EQUAL,
    "BRANCH_NEQ": LESS | GREATER,
}
_MODES_BY_NUMBER = (LESS | EQUAL, LESS, GREATER | EQUAL, GREATER, EQUAL, LESS | GREATER)
_MEMBER = 6
_POSTS_BY_NUMBER = (NO_TRANSFORM, "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_AGGREGATES_BY_NUMBER = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass
class Forest:
    """The nodes of all trees, by number. A leaf leads to itself, and has targets with weights."""

    features: list[int] = field(default_factory=list[int])
    splits: list[float] = field(default_factory=list[float])
    taken: list[int] = field(default_factory=list[int])
    """For which comparisons the first branch is taken."""
    branches: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    weights: list[list[tuple[int, float]]] = field(default_factory=list[list[tuple[int, float]]])
    roots: list[int] = field(default_factory=list[int])

    def add(self, feature: int = 0, split: float = 0.0, taken: int = 0) -> int:
        """A node that leads to itself; gives its number."""
        number = len(self.features)
        self.features.append(feature)
        self.splits.append(split)
        self.taken.append(taken)
        self.branches.append((number, number))
        self.weights.append([])
        return number

    def leaf(self, target: int, weight: float) -> int:
        """A leaf."""
        number = self.add()
        self.weights[number].append((target, weight))
        return number

    def check(self, features: int, targets: int) -> None:
        """`Refusal` for features and targets that there are not, and for nodes that lead back to each other."""
        if any(not 0 <= each < max(features, 1) for each in self.features):
            raise Refusal(f"a tree asks for a feature that the {features} of the operand do not have")
        if any(not 0 <= target < targets for each in self.weights for target, _ in each):
            raise Refusal(f"a leaf has a target that the {targets} of the model do not have")
        if not self.roots:
            raise Refusal("there are no trees")
        done, open_ = set[int](), set[int]()
        pending = [(root, False) for root in self.roots]
        while pending:
            number, is_left = pending.pop()
            if is_left:
                open_.discard(number)
                done.add(number)
            elif number in open_:
                raise Refusal("the nodes of a tree lead back to each other")
            elif number not in done:
                open_.add(number)
                pending += [(number, True), *((each, False) for each in self.branches[number] if each != number)]


def _as_numbers(node: Node, name: str) -> np.ndarray:
    """Numbers as a list, or as a tensor under the name with the suffix `_as_tensor`."""
    tensor = node.attribute(f"{name}_as_tensor")
    return coefficients(node, name) if tensor is None else np.asarray(tensor)


def _of_lists(node: Node, kind: str) -> Forest:
    """The trees of `TreeEnsembleClassifier` and `TreeEnsembleRegressor`: targets are those of a `kind`."""
    trees, ids = node.integers("nodes_treeids") or (), node.integers("nodes_nodeids") or ()
    modes = node.strings("nodes_modes")
    splits = _as_numbers(node, "nodes_values")
    tracks = node.integers("nodes_missing_value_tracks_true") or (0,) * len(ids)
    lists = [node.integers(f"nodes_{name}") or () for name in ("featureids", "truenodeids", "falsenodeids")]
    if {len(each) for each in (trees, ids, modes, splits, tracks, *lists)} != {len(ids)}:
        raise Refusal("the attributes of nodes have several lengths")
    forest, numbers = Forest(), dict[tuple[int, int], int]()
    for tree, ident, mode, split, track, feature in zip(trees, ids, modes, splits, tracks, lists[0], strict=True):
        if mode != "LEAF" and mode not in MODES:
            raise Refusal(f"the mode {mode} of a node does not exist")
        if (tree, ident) in numbers:
            raise Refusal(f"node {ident} of tree {tree} is there twice")
        is_leaf = mode == "LEAF"
        taken = 0 if is_leaf else MODES[mode] | (NAN if track else 0)
        numbers[tree, ident] = forest.add(0 if is_leaf else feature, 0.0 if is_leaf else float(split), taken)
    for tree, ident, mode, yes, no in zip(trees, ids, modes, *lists[1:], strict=True):
        number = numbers[tree, ident]
        if mode != "LEAF":
            forest.branches[number] = _found(numbers, tree, yes), _found(numbers, tree, no)
    for tree in sorted(set(trees)):
        forest.roots.append(next(number for (each, _), number in numbers.items() if each == tree))
    weights = _as_numbers(node, f"{kind}_weights")
    owners = [node.integers(f"{kind}_{name}") or () for name in ("treeids", "nodeids", "ids")]
    for tree, ident, target, weight in zip(*owners, weights, strict=True):
        forest.weights[_found(numbers, tree, ident)].append((target, float(weight)))
    return forest


def _found(numbers: Mapping[tuple[int, int], int], tree: int, ident: int) -> int:
    if (tree, ident) not in numbers:
        raise Refusal(f"tree {tree} has no node {ident}")
    return numbers[tree, ident]


def _of_tables(node: Node) -> Forest:
    """The trees of `TreeEnsemble`, whose nodes and leaves are numbered on their own."""
    lists = {
        name: node.integers(name) or ()
        for name in (
            "nodes_featureids",
            "nodes_truenodeids",
            "nodes_falsenodeids",
            "nodes_trueleafs",
            "nodes_falseleafs",
            "leaf_targetids",
            "tree_roots",
        )
    }
    splits, modes = np.asarray(node.attribute("nodes_splits")), np.asarray(node.attribute("nodes_modes"))
    weights = np.asarray(node.attribute("leaf_weights"))
    features = lists["nodes_featureids"]
    tracks = node.integers("nodes_missing_value_tracks_true") or (0,) * len(features)
    members = _member_sets(node)
    forest, made = Forest(), dict[tuple[int, bool], int]()
    for root in lists["tree_roots"]:
        pending = [(root, _is_lone_leaf(lists, root))]
        order: list[tuple[int, bool]] = []
        while pending:
            each = pending.pop()
            if each in made:
                continue
            order.append(each)
            at, is_leaf = each
            if is_leaf:
                made[each] = forest.leaf(lists["leaf_targetids"][at], float(weights[at]))
                continue
            made[each] = forest.add(features[at], float(splits[at]))
            pending += [_branch(lists, at, "false"), _branch(lists, at, "true")]
        for at, is_leaf in order:
            if not is_leaf:
                yes, no = made[_branch(lists, at, "true")], made[_branch(lists, at, "false")]
                nan = NAN if tracks[at] else 0
                _compare(forest, made[at, False], int(modes[at]), nan, (yes, no), members)
        forest.roots.append(made[root, _is_lone_leaf(lists, root)])
    return forest


def _branch(lists: Mapping[str, Sequence[int]], at: int, which: str) -> tuple[int, bool]:
    return lists[f"nodes_{which}nodeids"][at], bool(lists[f"nodes_{which}leafs"][at])


def _is_lone_leaf(lists: Mapping[str, Sequence[int]], root: int) -> bool:
    yes, no = _branch(lists, root, "true"), _branch(lists, root, "false")
    return yes == no and yes[1]


def _member_sets(node: Node) -> Iterable[list[float]]:
    """The sets of `membership_values`, which end at a NaN each, in the order of the nodes that ask for them."""
    values = node.attribute("membership_values")
    members: list[float] = []
    listed: list[float] = [] if values is None else np.asarray(values).tolist()
    for value in listed:
        if isnan(value):
            yield members
            members = []
        else:
            members.append(value)


def _compare(
    forest: Forest, number: int, mode: int, nan: int, branches: tuple[int, int], members: Iterable[list[float]]
) -> None:
    """Makes a node compare; a set is a chain of nodes, one for each of its numbers."""
    if mode != _MEMBER:
        if not 0 <= mode < len(_MODES_BY_NUMBER):
            raise Refusal(f"the mode {mode} of a node does not exist")
        # A comparison with NaN does not hold, but for "not equal".
        holds = _MODES_BY_NUMBER[mode]
        forest.taken[number] = holds | nan | (NAN if holds == LESS | GREATER else 0)
        forest.branches[number] = branches
        return
    yes, no = branches
    chosen = next(iter(members), None)
    if chosen is None:
        raise Refusal("a node asks for a set of membership_values, of which there are too few")
    for at, value in enumerate(chosen):
        forest.splits[number], forest.taken[number] = value, EQUAL | nan
        following = no if at == len(chosen) - 1 else forest.add(forest.features[number])
        forest.branches[number] = yes, following
        number = following
    if not chosen:
        forest.taken[number], forest.branches[number] = nan, branches


def _sums(node: Node, x: Expr, forest: Forest, targets: int, aggregate: str, dtype: type[np.floating]) -> Expr:
    """What the leaves that each sample reaches have for each target, put together; `[samples, targets]`."""
    forest.check(columns(node), targets)
    if aggregate not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise Refusal(f"the aggregate_function {aggregate} does not exist")
    limits = np.finfo(dtype)
    start = {"MIN": float(limits.max), "MAX": float(limits.min)}.get(aggregate, 0.0)
    widest = max(map(len, forest.weights)) or 1
    filled = [[*each, *[(each[0][0] if each else 0, start)] * (widest - len(each))] for each in forest.weights]
    result = f64 if dtype is np.float64 else f32
    tables = [
        node.const(np.array(forest.roots), i32),
        node.const(np.array(forest.features), i32),
        node.const(np.array(forest.splits, np.float64), x.dtype or f32),
        node.const(np.array(forest.taken), i32),
        node.const(np.array(forest.branches), i32),
        node.const(np.array([[target for target, _ in each] for each in filled]), i32),
        node.const(np.array([[weight for _, weight in each] for each in filled]), result),
    ]
    made = node.te(lambda *given: _walk(given, targets, aggregate, start), x, *tables, name="tree_ensemble")
    return op.divide(made, op.full_like(made, len(forest.roots))) if aggregate == "AVERAGE" else made


def _walk(tensors: Sequence[te.Tensor], targets: int, aggregate: str, start: float) -> te.Tensor:
    """Goes down each tree for each sample, and puts the weights of the leaves together."""
    x, roots, features, splits, taken, branches, ids, weights = tensors
    dtype = weights.dtype

    def together(old: te.Expr, new: te.Expr) -> te.Expr:
        if aggregate == "MIN":
            return te.minimum(old, new)
        return te.maximum(old, new) if aggregate == "MAX" else old + new

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        made = outs[0]
        with b.block("trees", ("spatial", x.shape[0], "n")) as (n,):
            with b.for_range(0, targets, "c") as c:
                b.store(made, (n, c), te.const(start, dtype))
            at, following = b.alloc((), "i32", "at"), b.alloc((), "i32", "following")
            with b.for_range(0, roots.shape[0], "t") as t:
                b.store(at, (), te.const(-1, "i32"))
                b.store(following, (), roots[t])
                with b.while_(at[()] != following[()]):
                    b.store(at, (), following[()])
                    here = te.cast(at[()], "index")
                    value, split = x[n, te.cast(features[here], "index")], splits[here]
                    order = te.select(value < split, LESS, te.select(value > split, GREATER, EQUAL))
                    order = te.select(te.isnan(value), NAN, order)
                    holds = (taken[here] & te.cast(order, "i32")) != 0
                    b.store(following, (), te.select(holds, branches[here, 0], branches[here, 1]))
                leaf = te.cast(at[()], "index")
                with b.for_range(0, ids.shape[1], "k") as k:
                    target = te.cast(ids[leaf, k], "index")
                    b.store(made, (n, target), together(made[n, target], weights[leaf, k]))

    return te.extern([((x.shape[0], targets), dtype)], [*tensors], body, name="tree_ensemble")[0]


@converts("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(node: Node) -> Result:
    """The weights of the leaves that a sample reaches, put together for each target."""
    targets = node.integer("n_targets", 1)
    aggregate = node.text("aggregate_function", "SUM")
    scores = _sums(node, data(node), _of_lists(node, "target"), targets, aggregate, np.float32)
    scores = _with_base(node, scores)
    return transformed(scores, node.text("post_transform", NO_TRANSFORM))


def _with_base(node: Node, scores: Expr) -> Expr:
    base = _as_numbers(node, "base_values")
    return op.add(scores, node.const(base.reshape(1, -1), f32)) if base.size else scores


@converts("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(node: Node) -> Result:
    """The label of the class with the greatest score, and the scores, which the leaves sum up to.

    Where all leaves have weights of one of two classes, they say how likely that one is.
    """
    classes, forest = Classes(node, "classlabels_int64s"), _of_lists(node, "class")
    transform = node.text("post_transform", NO_TRANSFORM)
    ids = {target for each in forest.weights for target, _ in each}
    scores = _with_base(node, _sums(node, data(node), forest, max(classes.count, 1), "SUM", np.float32))
    if len(ids) == 1 and classes.count <= 2:
        yes = op.strided_slice(scores, [1], [ids.copy().pop()], [ids.copy().pop() + 1])
        no = op.negative(yes) if transform not in (NO_TRANSFORM, "PROBIT") else op.subtract(op.full_like(yes, 1), yes)
        scores = op.concat([no, yes], 1)
    scores = transformed(scores, transform)
    numbers = op.argmax(scores, 1)
    if classes.count == 1 and len(ids) == 1:
        if classes.integers != (1,):
            raise Refusal("one label, which is not 1, has no counterpart")
        return [Value(numbers), Value(scores)]
    return [classes.labels(numbers), Value(scores)]


@converts("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(node: Node) -> Result:
    """The weights of the leaves that a sample reaches, put together for each target."""
    x = data(node)
    dtype = np.float64 if x.dtype == f64 else np.float32
    aggregate = _AGGREGATES_BY_NUMBER[node.integer("aggregate_function", 1)]
    scores = _sums(node, x, _of_tables(node), node.integer("n_targets", 1), aggregate, dtype)
    transform = node.integer("post_transform")
    if not 0 <= transform < len(_POSTS_BY_NUMBER):
        raise Refusal(f"the post_transform {transform} does not exist")
    return transformed(scores, _POSTS_BY_NUMBER[transform])
