"""`relax-opt`: parse, rewrite by named passes, verify and print."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from lowering.compiler.debug import Debug, debug_level
from lowering.parsing import LocatedParser, Misbound
from xdsl_relax.cli.arguments import add_load_option, add_save_weights_option, add_shape_option, add_weights_option
from xdsl_relax.cli.failures import Failures, ToolError, bad_options, pass_failure, run_tool, unknown_pass
from xdsl_relax.cli.monitor import PassMonitor, print_module
from xdsl_relax.cli.pass_help import describe_pass, list_passes
from xdsl_relax.cli.programs import IMPORTERS, load_python_files, no_text

if TYPE_CHECKING:
    from lowering.compiler.validation import Validation
    from relax_dialect.frontend.onnx.parameters import GivenShapes

_REPRODUCER_HEADER = re.compile(r"// relax-opt -p (?P<pipeline>.*)")


class RelaxOptMain(xDSLOptMain):
    """`xdsl-opt` with locations, dominance checks, all errors at once, and messages in place of tracebacks.

    Our dialects and passes arrive through the universe entry point, as they do in `xdsl-opt`.
    """

    version_format = "relax-opt, built on xdsl {xdsl_version}"

    monitor: PassMonitor
    line_offset: int = 0
    """Lines of the file before the chunk that is being read."""

    def register_all_frontends(self) -> None:
        """MLIR text, whose ops get their line and column, and the models that can be imported."""

        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            parser = LocatedParser(self.ctx, stream.read(), self.get_input_name(), self.line_offset)
            return parser.parse_module(not self.args.no_implicit_module)

        def importing(read: Callable[[str, GivenShapes], ModuleOp]) -> Callable[[IO[bytes]], ModuleOp]:
            # Tensors in other files are found beside the model, so its path is wanted, not its bytes.
            return lambda stream: read(self.get_input_name(), dict(self.args.shapes))

        self.available_frontends["mlir"] = parse_mlir
        for suffix, read in IMPORTERS.items():
            self.available_frontends[suffix.removeprefix(".")] = importing(read)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """The arguments of `xdsl-opt`, and ours."""
        super().register_all_arguments(arg_parser)
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

    def run(self) -> None:
        """Reads, rewrites and prints, or explains passes."""
        if (name := self.args.explain_pass) is not None:
            print(describe_pass(name) if name else list_passes())
            return
        load_python_files(self.args.load)
        if self.args.split_input_file and self.args.view is not None:
            raise ToolError("--view draws one module; leave out --split-input-file")
        if self.args.split_input_file and self.args.save_weights is not None:
            raise ToolError("--save-weights writes the weights of one module; leave out --split-input-file")
        shows_errors_itself = self.args.verify_diagnostics or self.args.parsing_diagnostics or self.args.shrink
        if self.args.split_input_file and not shows_errors_itself:
            self._run_every_chunk()
        else:
            super().run()

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """The texts of the modules; `ToolError` for a file of another kind."""
        try:
            chunks, extension = super().prepare_input()
        except ValueError as error:
            known = ", ".join(f".{extension}" for extension in self.available_frontends)
            raise ToolError(f"expected a file that ends in one of {known}, got {self.args.input_file}") from error
        if self.args.shapes and f".{extension}" not in IMPORTERS:
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

    def setup_pipeline(self) -> None:
        """Reads the pipeline and puts the monitor around its passes."""
        self.monitor = PassMonitor(
            verify=not self.args.disable_verify,
            verify_each=self.args.verify_each,
            print_between=self.args.print_between_passes or debug_level() >= Debug.STAGES,
            keep_text=self.args.reproducer is not None,
            validation=self._validation(),
        )
        self.pipeline = self._parse_pipeline(self.args.passes)

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
            from lowering.relax.memory.report import memory_report

            print(memory_report(prog).as_text(), file=sys.stderr)
        before = prog.clone() if self.args.view is not None and self.pipeline.passes else None
        try:
            super().apply_passes(prog)
        except Exception as error:
            self._save_failure(prog)
            if isinstance(error, ToolError) or self.monitor.running is None:
                raise
            raise pass_failure(error, self.monitor.running.name) from error
        finally:
            if self.monitor.validation is not None:
                print(self.monitor.validation.report(), file=sys.stderr)
            if self.args.time_passes:
                print(self.monitor.timing_table(), file=sys.stderr)
        if self.args.report_communication:
            from lowering.distributed.report import communication_text
            from lowering.distributed.shard import shard

            print(communication_text(shard(prog)), file=sys.stderr)
        if self.args.view is not None:
            self._draw(prog, before)
        if self.args.save_weights is not None:
            from lowering.compiler.weight_files import save_weights

            save_weights(prog, self.args.save_weights)

    def _draw(self, module: ModuleOp, before: ModuleOp | None) -> None:
        from lowering.view.dot import CannotRender
        from lowering.view.page import write_view

        try:
            write_view(Path(self.args.view), module, before)
        except (CannotRender, ValueError) as error:
            raise ToolError(f"--view: {error}") from error

    def _parse_pipeline(self, text: str) -> PassPipeline:
        passes = [each for spec in parse_pipeline(text) for each in self._passes(spec)]
        return PassPipeline(tuple(passes), self.monitor)

    def _passes(self, spec: ArgSpec) -> Sequence[ModulePass]:
        """A pass with its options, or those of a pipeline."""
        from lowering.pipelines import expand

        if (factory := self.available_passes.get(spec.name)) is None:
            raise unknown_pass(spec.name, list(self.available_passes))
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


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""

    def optimize() -> None:
        RelaxOptMain("the optimizer driver of xdsl-relax", args=argv).run()

    return run_tool("relax-opt", optimize, own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
