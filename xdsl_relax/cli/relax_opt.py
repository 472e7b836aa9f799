"""`relax-opt`: parse, rewrite by named passes, verify and print."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass, PassPipeline
from xdsl.universe import XDSL_UNIVERSE
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline, parse_spec
from xdsl.utils.diagnostic import Diagnostic
from xdsl.utils.exceptions import ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from lowering.debug import Debug, debug_level
from lowering.parsing import LocatedParser, Misbound, make_context
from lowering.registry import (
    available_passes,
    find_pass_factory,
    installed_dialects,
    installed_universe,
    pass_factories,
)
from xdsl_relax.cli.diagnostics import Diagnostic as FoundDiagnostic
from xdsl_relax.cli.diagnostics import (
    Expectations,
    Failures,
    Report,
    ToolError,
    diagnostics_of,
    has_expectations,
    run_tool,
)
from xdsl_relax.cli.monitor import PassMonitor, PrintingOptions, print_module
from xdsl_relax.cli.parser import (
    ToolParser,
    add_load_option,
    add_save_weights_option,
    add_shape_option,
    add_weights_option,
    comma_separated,
    describe_pass,
    dialects,
    listing_text,
    other_passes,
    our_passes,
)
from xdsl_relax.cli.programs import load_python_files
from xdsl_relax.errors import PassError, RelaxError, bad_options, pass_failure, unknown_pass
from xdsl_relax.file_kinds import (
    KINDS,
    STDIN,
    Holds,
    ReadOptions,
    kind_of_contents,
    no_text,
    read_module,
    require_module,
    standard_input,
    suffixes,
)

if TYPE_CHECKING:
    from lowering.compiler.validation import Validation

_REPRODUCER_HEADER = re.compile(r"// relax-opt -p (?P<pipeline>.*)")
_ANCHORED = re.compile(r"\s*(?P<op>\w+(?:\.\w+)*)\s*\((?P<passes>.*)\)\s*", re.DOTALL)
PRINT_BEFORE, PRINT_AFTER = "mlir_print_ir_before", "mlir_print_ir_after"


class RelaxOptMain(xDSLOptMain):
    """`xdsl-opt` with locations, dominance checks, all errors at once, and messages in place of tracebacks."""

    monitor: PassMonitor
    line_offset: int = 0
    """Lines of the file before the chunk that is being read."""

    def __init__(self, description: str = "the optimizer driver of xdsl-relax", args: Sequence[str] | None = None):
        """As in the base class, with a parser and a context of ours, which look among installed extensions."""
        self.available_frontends = {}
        self.available_passes = {}
        self.available_targets = {}
        self.ctx = make_context()
        self.register_all_frontends()
        self.register_all_passes()
        self.register_all_targets()
        parser = ToolParser(
            "relax-opt", description, [our_passes, lambda: other_passes(available_passes(installed=True))]
        )
        self.register_all_arguments(parser)
        self.args = parser.read(args)
        if parse_spec(self.args.target).name not in self.available_targets:
            self.available_targets |= installed_universe().all_targets
        if (target := parse_spec(self.args.target).name) not in self.available_targets:
            parser.error(
                f"argument -t/--target: invalid choice: '{target}' (choose from {', '.join(self.available_targets)})"
            )
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        if self.args.disable_verify:
            Attribute.__post_init__ = lambda self: None
        if self.args.syntax_highlight:
            Diagnostic.colored = True
        self.setup_pipeline()

    def register_all_passes(self) -> None:
        """Passes of the command line alone; `find_pass_factory` has all others."""

    def register_all_targets(self) -> None:
        """Those of xDSL; others are looked for if one of these is not meant."""
        self.available_targets |= XDSL_UNIVERSE.all_targets

    def register_all_frontends(self) -> None:
        """MLIR text, whose ops get their line and column, and the models that can be imported."""

        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            parser = LocatedParser(self.ctx, stream.read(), self.get_input_name(), self.line_offset)
            return parser.parse_module(not self.args.no_implicit_module)

        def importing(suffix: str) -> Callable[[IO[bytes]], ModuleOp]:
            # Tensors in other files are found beside the model, so its path is wanted, not its bytes.
            return lambda stream: read_module(
                self.args.input_file or STDIN, ReadOptions(shapes=dict(self.args.shapes)), suffix
            )

        for suffix in suffixes(Holds.MODULE):
            self.available_frontends[suffix.removeprefix(".")] = importing(suffix)
        self.available_frontends["mlir"] = parse_mlir

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The file, or standard input for `-` or nothing, and how names of its kind end."""
        path = self.args.input_file or STDIN
        if path != STDIN:
            return open(path, "rb"), Path(path).suffix.removeprefix(".")
        data = standard_input()
        return BytesIO(data), kind_of_contents(data).suffix.removeprefix(".")

    def get_input_name(self) -> str:
        """The file, as messages and locations say it."""
        return "<stdin>" if self.args.input_file in (None, STDIN) else self.args.input_file

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """The arguments of `xdsl-opt`, and ours."""
        super().register_all_arguments(arg_parser)
        self._register_as_mlir(arg_parser)
        arg_parser.add_argument(
            "--verify-each",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="verify ops, dominance and symbols after each pass, not only at the ends",
        )
        arg_parser.add_argument(
            "--validate-each",
            action="store_true",
            help="run the public functions before and after each pass, on inputs drawn from their signatures, and name "
            "the first pass that changes what they compute",
        )
        arg_parser.add_argument(
            "--ir-after-failure", metavar="FILE", help="write what a failing pass left of the module ('-': stderr)"
        )
        arg_parser.add_argument(
            "--reproducer",
            metavar="FILE",
            help="if a pass fails, write the module before it and the rest of the pipeline",
        )
        arg_parser.add_argument(
            "--report-memory",
            action="store_true",
            help="say on stderr how much memory each function takes, planned and if nothing shared memory",
        )
        arg_parser.add_argument(
            "--report-communication",
            action="store_true",
            help="say on stderr what each worker of a sharded program sends: bytes and messages of a call",
        )
        arg_parser.add_argument(
            "--run-reproducer", action="store_true", help="take the pipeline from the first line of the input"
        )
        arg_parser.add_argument(
            "--view",
            metavar="FILE",
            help="draw the module after the passes: a page (.html), where the module before them is beside it, or the "
            "graph of its first function (.svg, .dot)",
        )
        add_load_option(arg_parser, "register tensor intrinsics for schedules")
        add_weights_option(arg_parser)
        add_shape_option(arg_parser)
        add_save_weights_option(arg_parser)
        arg_parser.add_argument(
            "--explain-pass",
            metavar="PASS",
            nargs="?",
            const="",
            help="say what a pass of ours does, or list them, and stop",
        )
        arg_parser.add_argument("--list-passes", action="store_true", help="list the passes, one a line, and stop")
        arg_parser.add_argument("--show-dialects", action="store_true", help="list the dialects, one a line, and stop")
        if isinstance(arg_parser, ToolParser):
            arg_parser.completers["passes"] = comma_separated(self._pass_names)
            arg_parser.completers["explain_pass"] = comma_separated(pass_factories)
            for option in PRINT_BEFORE, PRINT_AFTER:
                arg_parser.completers[option] = comma_separated(self._pass_names)

    def _register_as_mlir(self, arg_parser: argparse.ArgumentParser) -> None:
        """Options that `mlir-opt` has, too."""
        arg_parser.add_argument(
            "-p",
            "--passes",
            "--pass-pipeline",
            metavar="PASSES",
            default="",
            help="passes in order, with options: 'legalize-ops,schedule-cpu{target=x86-64-v3}', also within "
            "'builtin.module(..)'; they are listed below",
        )
        for when in ("before", "after"):
            arg_parser.add_argument(
                f"--mlir-print-ir-{when}",
                action="extend",
                default=[],
                type=lambda text: text.split(","),
                metavar="PASSES",
                help=f"print the module {when} these passes, on stderr",
            )
            arg_parser.add_argument(
                f"--mlir-print-ir-{when}-all", action="store_true", help=f"print the module {when} each pass"
            )
        arg_parser.add_argument(
            "--mlir-print-ir-after-change",
            action="store_true",
            help="after passes, print the module only if they have changed it; without any named, after all",
        )
        arg_parser.add_argument(
            "--mlir-print-ir-after-failure", action="store_true", help="print what a failing pass has left"
        )
        arg_parser.add_argument("--mlir-timing", dest="time_passes", action="store_true", help="as --time-passes")
        arg_parser.add_argument(
            "--mlir-print-op-generic", dest="print_op_generic", action="store_true", help="as --print-op-generic"
        )
        arg_parser.add_argument(
            "--mlir-print-debuginfo", dest="print_debuginfo", action="store_true", help="as --print-debuginfo"
        )
        arg_parser.add_argument(
            "--verify-diagnostics",
            action="store_true",
            help="check that the text causes the errors of its comments `expected-error {{..}}`, and no other; if it "
            "has no such comment, print errors of verifiers and passes and go on",
        )

    def run(self) -> None:
        """Reads, rewrites and prints, or explains passes."""
        if (name := self.args.explain_pass) is not None:
            print(describe_pass(name) if name else listing_text(("", our_passes()[1])).rstrip())
            return
        if self.args.list_passes or self.args.show_dialects:
            if self.args.list_passes:
                print(listing_text(our_passes()), listing_text(other_passes(self._pass_names())), sep="\n", end="")
            if self.args.show_dialects:
                names = [*XDSL_UNIVERSE.all_dialects, *installed_dialects()]
                print("\n".join(map(listing_text, dialects(dict.fromkeys(names)))), end="")
            return
        if self.args.split_input_file and self.args.view is not None:
            raise ToolError("--view draws one module; leave out --split-input-file")
        if self.args.split_input_file and self.args.save_weights is not None:
            raise ToolError("--save-weights writes the weights of one module; leave out --split-input-file")
        if self.args.verify_diagnostics and self._check_expectations():
            return
        shows_errors_itself = self.args.verify_diagnostics or self.args.parsing_diagnostics or self.args.shrink
        if self.args.split_input_file and not shows_errors_itself:
            self._run_every_chunk()
        else:
            super().run()

    def _pass_names(self) -> Sequence[str]:
        return list(self.available_passes | available_passes(installed=True))

    def _check_expectations(self) -> bool:
        """Whether the text says which errors it causes; `Report` if it causes others, or not all."""
        chunks, file_extension = self.prepare_input()
        texts: list[tuple[bytes, int]] = []
        for chunk, offset in chunks:
            with chunk:
                texts.append((chunk.read(), offset))
        if not any(has_expectations(text.decode(errors="replace")) for text, _ in texts):
            return False
        name = self.get_input_name()
        unmet: list[str] = []
        output = self.prepare_output()
        for number, (data, offset) in enumerate(texts):
            if number:
                output.write("// -----\n")
            expectations = Expectations.of(data.decode(errors="replace"), name, offset)
            found: list[FoundDiagnostic] = []
            try:
                output.write(self._rewritten(BytesIO(data), file_extension, offset))
            except Exception as error:
                found = diagnostics_of(error, offset)
            expectations.check(found)
            unmet += expectations.failures
        if output is not sys.stdout:
            output.close()
        if unmet:
            raise Report("\n".join(unmet))
        return True

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """The texts of the modules; `RelaxError` for a file of another kind."""
        if self.args.frontend is None:
            require_module(self.args.input_file or STDIN)
        chunks, extension = super().prepare_input()
        if self.args.shapes and KINDS[f".{extension}"].is_text:
            for chunk, _ in chunks:
                chunk.close()
            raise ToolError("--shape is for ONNX models; the text says its shapes")
        return chunks, extension

    def _run_every_chunk(self) -> None:
        """As `mlir-opt`: a module that is rejected keeps none of the others from being rewritten."""
        chunks, file_extension = self.prepare_input()
        failures: list[Exception] = []
        output = self.prepare_output()
        for number, (chunk, offset) in enumerate(chunks):
            if number:
                output.write("// -----\n")
            try:
                with chunk:
                    output.write(self._rewritten(chunk, file_extension, offset))
            except Exception as error:
                failures.append(error)
        if output is not sys.stdout:
            output.close()
        if failures:
            raise Failures(failures)

    def _rewritten(self, chunk: IO[bytes], file_extension: str, offset: int) -> str:
        try:
            module = self.parse_chunk(chunk, file_extension, offset)
        except ParseError as error:
            for each in error.errors if isinstance(error, Misbound) else (error,):
                each.span = replace(each.span, line_offset=offset)
            raise
        if module is None:
            return ""
        self.apply_passes(module)
        return self.output_resulting_program(module)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The text of the module for the target; `ToolError` if it is none for it, of which xDSL's writers say little,
        or nothing.
        """
        try:
            text = super().output_resulting_program(prog)
        except (AssertionError, NotImplementedError) as error:
            raise ToolError(self._other_target(prog)) from error
        if not text.strip() and not prog.body.block.is_empty:
            raise ToolError(self._other_target(prog))
        return text

    def _other_target(self, module: ModuleOp) -> str:
        ops = ", ".join(dict.fromkeys(op.name for op in module.ops))
        hint = "hint: relax-translate writes assembly, LLVM IR, objects and libraries of this module"
        return f"-t {self.args.target} writes modules of its own dialects, and cannot write {ops}\n{hint}"

    def setup_pipeline(self) -> None:
        """Loads what the passes may be of, reads the pipeline and puts the monitor around its passes."""
        load_python_files(self.args.load)
        self.monitor = PassMonitor(
            verify=not self.args.disable_verify,
            verify_each=self.args.verify_each,
            print_between=self.args.print_between_passes or debug_level() >= Debug.STAGES,
            printing=self._printing(),
            keep_text=self.args.reproducer is not None,
            validation=self._validation(),
        )
        self.pipeline = self._parse_pipeline(self.args.passes)
        self._require_printed()

    def _require_printed(self) -> None:
        """`ToolError` for a pass around which the module is to be printed, and which does not run."""
        if self.args.run_reproducer:  # whose pipeline is in the file
            return
        running = {each.name for each in self.pipeline.passes}
        for option in (PRINT_BEFORE, PRINT_AFTER):
            for name in getattr(self.args, option):
                factory = self._factory(name)
                if factory is not None and factory().name not in running:
                    raise ToolError(f"--{option.replace('_', '-')}={name}: -p has no such pass")

    def _printing(self) -> PrintingOptions:
        """What `--mlir-print-ir-..` says; `PassError` for a pass that there is not."""
        before, after = frozenset[str](self.args.mlir_print_ir_before), frozenset[str](self.args.mlir_print_ir_after)
        for name in before | after:
            if self._factory(name) is None:
                raise unknown_pass(name, list(self._pass_names()))
        changes = self.args.mlir_print_ir_after_change
        return PrintingOptions(
            before,
            after,
            self.args.mlir_print_ir_before_all,
            self.args.mlir_print_ir_after_all or (changes and not after),
            changes,
        )

    def _factory(self, name: str) -> Callable[[], type[ModulePass]] | None:
        return self.available_passes.get(name) or find_pass_factory(name)

    def _validation(self) -> Validation | None:
        if not self.args.validate_each:
            return None
        from lowering.compiler.build import build_uncached
        from lowering.compiler.validation import Validation

        return Validation(build_uncached)

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        """Reads one module, and with `--run-reproducer` the pipeline before it."""
        self.line_offset = start_offset
        if self.args.run_reproducer:
            header = chunk.readline().decode(errors="replace")
            if (match := _REPRODUCER_HEADER.fullmatch(header.strip())) is None:
                raise ToolError("a reproducer's first line is '// relax-opt -p <pipeline>'")
            self.line_offset += 1
            self.pipeline = self._parse_pipeline(match["pipeline"])
        try:
            module = super().parse_chunk(chunk, file_extension, start_offset)
        except UnicodeDecodeError as error:
            raise ToolError(no_text(self.args.input_file or "standard input", error)) from error
        if module is not None and self.args.weights is not None:
            from lowering.compiler.weight_files import load_weights

            load_weights(module, self.args.weights)
        return module

    def apply_passes(self, prog: ModuleOp) -> None:
        """Runs the pipeline; a failure is turned into text and, if asked for, into files."""
        if self.args.report_memory:
            from lowering.relax.memory.plan_memory import memory_report

            print(memory_report(prog).as_text(), file=sys.stderr)
        before = prog.clone() if self.args.view is not None and self.pipeline.passes else None
        try:
            super().apply_passes(prog)
        except Exception as error:
            self._save_failure(prog)
            if isinstance(error, RelaxError) or self.monitor.running is None:
                raise
            raise pass_failure(error, self.monitor.running.name) from error
        finally:
            if self.monitor.validation is not None:
                print(self.monitor.validation.report(), file=sys.stderr)
            if self.args.time_passes:
                print(self.monitor.timing_table(), file=sys.stderr)
        if self.args.report_communication:
            from lowering.distributed.program import shard
            from lowering.distributed.report import communication_text

            print(communication_text(shard(prog)), file=sys.stderr)
        if self.args.view is not None:
            self._draw(prog, before)
        if self.args.save_weights is not None:
            from lowering.compiler.weight_files import save_weights

            save_weights(prog, self.args.save_weights)
        elif not self.args.verify_diagnostics:
            self._tell_left_out(prog)

    def _tell_left_out(self, module: ModuleOp) -> None:
        """The text has the names of large constants only: says so, where their elements are lost with this process."""
        from tir_dialect.weights import WeightAttr

        values = [value for op in module.walk() for value in op.properties.values()]
        weights = [value for value in values if isinstance(value, WeightAttr) and value.array is not None]
        count = len({value.weight_name for value in weights})
        if count:
            print(
                f"relax-opt: note: the text only names {count} large constant{'s' * (count > 1)}; "
                "--save-weights FILE.safetensors keeps the elements",
                file=sys.stderr,
            )

    def _draw(self, module: ModuleOp, before: ModuleOp | None) -> None:
        from lowering.view.graph import CannotRender
        from lowering.view.page import write_view

        try:
            write_view(Path(self.args.view), module, before)
        except (CannotRender, ValueError) as error:
            raise ToolError(f"--view: {error}") from error

    def _parse_pipeline(self, text: str) -> PassPipeline:
        from xdsl_relax.passes import without_blanks

        passes = [each for spec in parse_pipeline(without_blanks(without_anchor(text))) for each in self._passes(spec)]
        return PassPipeline(tuple(passes), self.monitor)

    def _passes(self, spec: ArgSpec) -> Sequence[ModulePass]:
        """A pass with its options, or those of a pipeline."""
        from lowering.pipelines import expand

        if (factory := self._factory(spec.name)) is None:
            raise unknown_pass(spec.name, list(self._pass_names()))
        with warnings.catch_warnings(record=True) as notes:  # Python hides those that code outside of `__main__` causes
            warnings.simplefilter("always", DeprecationWarning)
            pass_class = factory()
        for note in notes:
            print(f"relax-opt: note: {note.message}", file=sys.stderr)
        try:
            return expand(pass_class.from_spec(spec))
        except ValueError as error:
            raise bad_options(error, pass_class) from error

    def _save_failure(self, module: ModuleOp) -> None:
        if (path := self.args.ir_after_failure) is not None:
            _write(path, print_module(module, generic=True))
        if self.args.mlir_print_ir_after_failure and self.monitor.running is not None:
            header = f"// -----// IR Dump After {self.monitor.running.name} Failed //----- //"
            print(header, print_module(module, generic=True), sep="\n", file=sys.stderr)
        if (path := self.args.reproducer) is not None and self.monitor.running is not None:
            rest = self.pipeline.passes[self.monitor.position :]
            pipeline = ",".join(str(each.spec()) for each in rest)
            _write(path, f"// relax-opt -p {pipeline}\n{self.monitor.before_text}")


def _write(path: str, text: str) -> None:
    if path == "-":
        print(text, file=sys.stderr)
        return
    with open(path, "w", encoding="utf-8") as file:
        print(text, file=file)


def without_anchor(text: str) -> str:
    """The passes of `builtin.module(a,b{c=d})`; `PassError` for passes on other ops than the module."""
    match = _ANCHORED.fullmatch(text)
    if match is None:
        return text
    if match["op"] not in ("builtin.module", "any"):
        raise PassError(f"passes run on modules, not on each {match['op']}: write builtin.module({match['passes']})")
    return without_anchor(match["passes"])


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""

    def optimize() -> None:
        RelaxOptMain(args=argv).run()

    return run_tool("relax-opt", optimize, own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
