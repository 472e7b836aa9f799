"""Pipelines of passes on modules, with options and instruments."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TextIO, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from lowering.context import make_context
from lowering.parsing import require_module
from lowering.pass_context import PassContext
from lowering.pipelines import expand, for_target
from lowering.registry import available_passes, find_pass_factory, pass_factories
from lowering.verify import verify_module
from tir_dialect.garbage import few_collections
from xdsl_relax.errors import bad_options, pass_failure, unknown_pass


@dataclass
class PassTiming:
    """How long each pass takes."""

    seconds: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """Name and time of each, in order."""
    _started: float = field(default=0.0, repr=False)

    def before_pass(self, name: str, module: ModuleOp) -> None:
        """Starts the clock."""
        self._started = time.perf_counter()

    def after_pass(self, name: str, module: ModuleOp) -> None:
        """Stops it."""
        self.seconds.append((name, time.perf_counter() - self._started))

    def as_text(self) -> str:
        """One line per pass, and the total; milliseconds."""
        rows = [*self.seconds, ("total", sum(seconds for _, seconds in self.seconds))]
        return "\n".join(f"{1000 * seconds:10.2f} ms  {name}" for name, seconds in rows)


@dataclass
class PrintIR:
    """Prints the module after each pass, or after those named."""

    only: Sequence[str] | None = None
    file: TextIO | None = None
    """Where to; stderr if it is not said."""

    def before_pass(self, name: str, module: ModuleOp) -> None:
        """Nothing."""

    def after_pass(self, name: str, module: ModuleOp) -> None:
        """Prints."""
        if self.only is None or name in self.only:
            print(f"// -----// IR after {name} //----- //", module, sep="\n", file=self.file or sys.stderr)


def run_passes(module: ModuleOp, passes: str | Iterable[str | ModulePass]) -> ModuleOp:
    """What a pipeline makes of a module, which is left as it is.

    `passes` is what `relax-opt -p` takes, `"legalize-ops,schedule-cpu{target=x86-64-v3}"`, or a list of such texts and
    of passes. `PassError` names the pass that fails, or an unknown one with those of similar names.
    """
    require_module("run_passes", module)
    context = PassContext.current()
    steps = [each for each in parsed_passes(passes) if each.name not in context.disabled]
    if context.verify:
        verify_module(module)
    target, result, xdsl_context = context.machine, module.clone(), make_context()
    with few_collections():
        for each in steps:
            context.before(each.name, result)
            try:
                (each if target is None else for_target(each, target)).apply(xdsl_context, result)
                if context.verify:
                    verify_module(result)
            except Exception as error:
                raise pass_failure(error, each.name) from error
            context.after(each.name, result)
    return result


def parsed_passes(passes: str | Iterable[str | ModulePass]) -> list[ModulePass]:
    """The passes that are named, those of pipelines one by one."""
    if not isinstance(cast("object", passes), str | Iterable):
        raise TypeError(f"passes expected their names, such as 'legalize-ops,dce', got {type(passes).__name__}")
    found: list[ModulePass] = []
    for each in [passes] if isinstance(passes, str) else passes:
        if isinstance(each, ModulePass):
            found += expand(each)
        else:
            found += [one for spec in _specs(each) for one in expand(_parsed(spec))]
    return found


def without_blanks(text: str) -> str:
    """A pipeline without the blanks around commas, which xDSL does not read; texts in quotes keep theirs."""
    return re.sub(r'("[^"]*")|\s*,\s*', lambda match: match[1] or ",", text.strip())


_OF_TVM = re.compile(r"(?<![\w.-])(?:tvm\.)?(?:relax|tirx?|s_tir)\.transform\.(?=[A-Z])")
"""What TVM writes before the names of its passes."""


def _specs(text: str) -> Sequence[ArgSpec]:
    try:
        return list(parse_pipeline(_OF_TVM.sub("", without_blanks(text))))
    except ArgSpecParseError as error:
        if text.strip().endswith((".html", ".svg", ".dot", ".mlir", ".py")):
            raise ValueError(
                f"expected passes, got a path, {text!r}: `str(module)` is the text of a module, "
                "`view(module).save(path)` draws one"
            ) from None
        raise ValueError(f"cannot read the pipeline {text!r}: {error}") from error


def _parsed(spec: ArgSpec) -> ModulePass:
    if (factory := find_pass_factory(spec.name)) is None:
        raise unknown_pass(spec.name, list(available_passes()))
    pass_class = factory()
    try:
        return pass_class.from_spec(spec)
    except ValueError as error:
        raise bad_options(error, pass_class) from error


def list_passes() -> list[str]:
    """The names of our passes, and of those of loaded extensions."""
    return sorted(pass_factories(former=False))
