"""Executables for several targets: machine code for each, of which a machine runs the first that it can run.

Most constants are the same for all targets. One that is not, such as weights in the order in which kernels read them,
is there for each target, under a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from vm_dialect.executable.constants import Constant, same_constant
from vm_dialect.executable.contents import ContentsT, ExecutableContents

_OWN = "\0for "
"""Between the name of a constant and the target that has one of its own; no text of a program has a zero byte."""


def merged(executables: Sequence[ContentsT]) -> ContentsT:
    """One executable for the targets of several, which have the same native functions; the first is preferred.

    `ValueError` for bytecode, whose instructions differ between targets.
    """
    first = executables[0]
    if any(each.metadata.mode != "native" for each in executables):
        raise ValueError("code for several targets expected mode native, got bytecode, which is for one")
    tables = [each.functions for each in executables]
    if any(table != first.functions for table in tables):
        raise ValueError("code for several targets expected the same functions for each")
    targets = ", ".join(each.metadata.target for each in executables)
    return replace(
        first,
        constants=tuple(_constants(executables)),
        code=(),
        native=tuple(item for each in executables for item in each.native),
        metadata=replace(first.metadata, target=targets),
        locations={},
        is_foreign=any(each.is_foreign for each in executables),
    )


def _constants(executables: Sequence[ExecutableContents]) -> Iterable[Constant]:
    common: dict[str, Constant] = {}
    for executable in executables:
        for constant in executable.constants:
            known = common.setdefault(constant.name, constant)
            if known is constant:
                yield constant
            elif not same_constant(known, constant):
                yield replace(constant, name=f"{constant.name}{_OWN}{executable.metadata.target}")


def constants_for(constants: Iterable[Constant], target: str) -> Mapping[str, Constant]:
    """The constants with names that code for a target uses, by the names that it uses."""
    found: dict[str, Constant] = {}
    own: dict[str, Constant] = {}
    for constant in constants:
        name, is_own, whose = constant.name.partition(_OWN)
        if not is_own and name:
            found[name] = constant
        elif whose == target:
            own[name] = constant
    return {**found, **own}


def objects_by_target(executable: ExecutableContents) -> Mapping[str, Sequence[bytes]]:
    """The machine code for each target, in the order of preference."""
    found: dict[str, list[bytes]] = {}
    for item in executable.native:
        found.setdefault(item.target, []).append(item.code)
    return found
