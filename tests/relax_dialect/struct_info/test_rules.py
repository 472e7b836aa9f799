"""Every numbered rule of structural information has a case in which it grants something and one where it does not."""

import re
from collections import defaultdict
from importlib import import_module
from inspect import getdoc, getmembers, isclass, isfunction
from pathlib import Path

import pytest

import relax_dialect.struct_info
from relax_dialect.struct_info.match import Verdict
from tests.relax_dialect.struct_info.test_erase import SCOPED, STATIC
from tests.relax_dialect.struct_info.test_join import JOINS, MEETS
from tests.relax_dialect.struct_info.test_match import MATCH_CAST_RULES
from tests.relax_dialect.struct_info.test_refine import REFINEMENTS
from tests.relax_dialect.struct_info.test_subtype import CASES

MODULES = sorted(path.stem for path in Path(next(iter(relax_dialect.struct_info.__path__))).glob("[!_]*.py"))


def rules() -> list[str]:
    """The labels at the start of lines in the docstrings of the package: `S1`, `MC2`, ..."""
    labels: dict[str, None] = {}
    for name in MODULES:
        module = import_module(f"relax_dialect.struct_info.{name}")
        members = [member for _, member in getmembers(module, lambda member: isclass(member) or isfunction(member))]
        methods = [method for member in members if isclass(member) for _, method in getmembers(member, isfunction)]
        for member in (*members, *methods):
            if member.__module__ == module.__name__:
                labels |= dict.fromkeys(re.findall(r"^([A-Z]+\d+): ", getdoc(member) or "", flags=re.MULTILINE))
    return sorted(labels, key=lambda label: (label.rstrip("0123456789"), int(label.lstrip("CEJMRS"))))


def outcomes() -> dict[str, set[bool]]:
    """By rule, whether its cases grant something: a subtype, a match, a fact that is kept or filled in."""
    found: defaultdict[str, set[bool]] = defaultdict(set)
    for rule, _, _, verdict in CASES:
        found[rule].add(verdict is Verdict.YES)
    for rule, _, _, verdict in MATCH_CAST_RULES:
        found[rule].add(verdict is Verdict.YES)
    for rule, left, _, joined in JOINS:
        found[rule].add(joined == left)
    for rule, _, _, met in MEETS:
        found[rule].add(met is not None)
    for rule, subject, erased in (*SCOPED, *STATIC):
        found[rule].add(subject == erased)
    for rule, declared, _, refined in REFINEMENTS:
        found[rule].add(refined != declared)
    return found


def test_rules_are_numbered_without_gaps():
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for label in rules():
        prefix = label.rstrip("0123456789")
        numbers[prefix].append(int(label.removeprefix(prefix)))
    assert {prefix: found for prefix, found in numbers.items() if found != list(range(1, len(found) + 1))} == {}
    assert {prefix: len(found) for prefix, found in numbers.items()} == {
        "E": 5,
        "J": 7,
        "M": 2,
        "MC": 6,
        "R": 5,
        "S": 11,
    }


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule != "J4"])
def test_rule_has_a_positive_and_a_negative_case(rule: str):
    """J4 only says that J5 to J7 are the rules of functions."""
    assert outcomes()[rule] == {True, False}
