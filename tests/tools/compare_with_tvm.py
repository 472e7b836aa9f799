"""Values of programs that are written as TVMScript, in TVM and here.

    python -m tests.tools.compare_with_tvm FOLDER [--random N]     # with this project: texts, inputs, results
    python tests/tools/compare_with_tvm.py FOLDER --run            # with TVM 0.27: reads, compiles, compares

The programs are the public functions of the modules of the test tree that have a text, and random ones.
"""

import argparse
import importlib.util
import json
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

SECONDS = 5
"""For a call here."""

TOLERANCE = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 1e-4, "float64": 1e-9}


def write(folder: Path, random: int) -> None:
    """Texts with inputs and results, one folder each."""
    from relax_dialect.tvmscript import ScriptError, as_tvmscript
    from tests.support.corpus import texts, valid_module

    signal.signal(signal.SIGALRM, lambda *_: _too_long())
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: Counter[str] = Counter()
    modules = [(name, module) for name, text in texts() if (module := valid_module(name, text)) is not None]
    for name, module in [*modules, *_random_programs(random)]:
        if "_invalid" in name:  # also kernels that leave their results as they are
            continue
        try:
            text = as_tvmscript(module)
        except (ScriptError, ValueError):
            outcomes["no text"] += 1
            continue
        for entry, arguments, result in _calls(module):
            where = folder / f"{sum(outcomes.values()):04}"
            where.mkdir(exist_ok=True)
            (where / "program.py").write_text(text)
            np.savez(where / "values.npz", **_numbered("argument", arguments), **_numbered("result", result))
            (where / "facts.json").write_text(
                json.dumps({"name": name, "entry": entry, "arguments": [_kind(each) for each in arguments]})
            )
            outcomes["programs"] += 1
    print(dict(outcomes))


def _too_long() -> None:
    raise TimeoutError


def _calls(module):
    """A call of each public function whose arguments can be drawn, with what the interpreter gives."""

    from lowering.compiler.validation import CannotDraw, Draw, symbol_values
    from relax_dialect.interpreter import run
    from relax_dialect.ops.structure import FuncOp
    from vm_dialect.tensors import from_numpy, to_numpy

    for func in module.ops:
        if not isinstance(func, FuncOp) or func.is_private:
            continue
        kind = func.function_type
        draw = Draw(np.random.default_rng(0), symbol_values(kind.symbols, (3, 5, 2, 4)), 3, (0, 3))
        try:
            arguments = [draw.value(each) for each in kind.params]
            values = [from_numpy(each.copy()) if isinstance(each, np.ndarray) else each for each in arguments]
            signal.alarm(SECONDS)
            with np.errstate(all="ignore"):
                result = run(module, func.sym_name.data, values)
        except (CannotDraw, Exception):  # packed functions that are nowhere, what a call refuses, loops without an end
            continue
        finally:
            signal.alarm(0)
        results = [*result] if isinstance(result, tuple) else [result]
        plain = [
            to_numpy(each) if hasattr(each, "dtype") and not isinstance(each, np.ndarray) else each for each in results
        ]
        if all(isinstance(each, np.ndarray | int | float) for each in plain) and not any(
            isinstance(each, tuple) for each in arguments
        ):
            yield func.sym_name.data, arguments, plain


def _random_programs(count: int):
    from hypothesis import HealthCheck, given, settings

    from tests.strategies.relax_programs import programs
    from tests.strategies.relax_regions import Features

    found = []

    @settings(
        max_examples=count, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(programs(Features(), statements=4))
    def collect(program) -> None:
        found.append((f"random {len(found)}", program.module))

    if count:
        collect()
    return found


def _numbered(kind: str, values) -> dict[str, np.ndarray]:
    return {f"{kind}_{index}": np.asarray(value) for index, value in enumerate(values)}


def _kind(value) -> str:
    return "array" if isinstance(value, np.ndarray) else "shape" if not isinstance(value, int | float) else "number"


def run(folder: Path) -> int:
    """Compares TVM's results; 1 if a value is another one."""
    outcomes: Counter[str] = Counter()
    for where in sorted(path for path in folder.iterdir() if path.is_dir()):
        facts = json.loads((where / "facts.json").read_text())
        outcome = _outcome(where, facts)
        outcomes[outcome.split(":")[0]] += 1
        if outcome != "equal":
            print(f"{where.name} {facts['name']} @{facts['entry']}: {outcome}")
    print(dict(outcomes))
    return int(outcomes["another value"] > 0)


def _outcome(where: Path, facts) -> str:
    import tvm
    from tvm import relax

    with np.load(where / "values.npz") as stored:
        values = dict(stored)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = _imported(where / "program.py")
    except Exception as error:
        return f"not read: {_line(error)}"
    given = [values[f"argument_{index}"] for index in range(len(facts["arguments"]))]
    try:
        lifted = relax.transform.LambdaLift()(module)  # functions inside of functions, which a build does not take
        machine = relax.VirtualMachine(tvm.compile(lifted, target="llvm"), tvm.cpu())
    except Exception as error:
        return f"not compiled: {_line(error)}"
    try:
        result = machine[facts["entry"]](
            *(_value(tvm, kind, each) for kind, each in zip(facts["arguments"], given, strict=True))
        )
    except Exception as error:
        return f"not run: {_line(error)}"
    found = list(result) if type(result).__name__ in ("Array", "tuple", "list") else [result]
    found = [np.array(list(each)) if "Shape" in type(each).__name__ else each for each in found]
    expected = [values[key] for key in sorted(values) if key.startswith("result_")]
    expected = [values[f"result_{index}"] for index in range(len(expected))]
    if len(found) != len(expected):
        return f"another value: {len(found)} results, expected {len(expected)}"
    for index, (ours, theirs) in enumerate(zip(expected, found, strict=True)):
        got = theirs.numpy() if hasattr(theirs, "numpy") else np.asarray(theirs)
        if got.shape != ours.shape:
            return f"another value: result {index} has shape {got.shape}, expected {ours.shape}"
        a, b = got.astype(np.float64), ours.astype(np.float64)
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= TOLERANCE.get(ours.dtype.name, 0) * scale)
        if not same.all():
            return f"another value: result {index} has {got.ravel()[:4]}, expected {ours.ravel()[:4]}"
    return "equal"


def _value(tvm, kind: str, value: np.ndarray):
    if kind == "array":
        return tvm.runtime.tensor(value)
    if kind == "shape":
        return tvm.runtime.ShapeTuple([int(each) for each in value])
    return value.item()


def _imported(path: Path):
    name = f"program_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.Module


def _line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {(lines or [''])[0][:160]}"


def main() -> int:
    """One of the two halves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--random", type=int, default=600)
    args = parser.parse_args()
    if args.run:
        return run(args.folder)
    write(args.folder, args.random)
    return 0


if __name__ == "__main__":
    sys.exit(main())
