"""Values on the command line: arrays from files, random arrays, literals, and results written to files; and what is
known about functions before they are called: `--signature`, and arguments that are made up from it.
"""

from __future__ import annotations

import argparse
import ast
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard, cast

import numpy as np
import numpy.typing as npt
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from lowering.compiler.validation import CannotDraw, Draw
from lowering.relax_to_vm.checks import parse_type, type_text
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import StructInfo
from vm_dialect.callee import Callee
from vm_dialect.dtypes import BY_FFI_NAME, element_type
from vm_dialect.executable.model import FunctionInfo, FunctionKind, SignatureTypes
from vm_dialect.files import open_regular
from vm_dialect.tensors import array_element, from_numpy, numpy_dtype, to_numpy
from xdsl_relax.cli.diagnostics import ToolError
from xdsl_relax.file_kinds import STDIN, standard_input

Array = npt.NDArray[Any]

_RANDOM = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d\s,]*)\](?:<(?P<limit>\d+))?")
DEFAULT_LIMIT = 10
"""Random integers are below this unless the specification says otherwise."""


@dataclass(frozen=True)
class NamedValue:
    """An argument or result, with its description in the summary."""

    source: str
    """The source of an argument, or the position in the result."""
    value: object
    parameter: str | None = None
    """The parameter that an argument is for, if it is given by name."""


_FILE = re.compile(r"(?P<path>.*\.npy)(?::(?P<dtype>\w+))?", re.DOTALL)
_ARCHIVE = re.compile(r"(?P<path>.*\.npz):(?P<key>[^:]+)(?::(?P<dtype>\w+))?", re.DOTALL)
_UNNAMED = re.compile(r"arr_\d+")
"""What NumPy calls arrays of an archive that were saved without names."""


def named(text: str) -> tuple[str | None, str]:
    """The parameter of `x=x.npy`, `x=f32[3]` or `x=3`, and the rest; no parameter for what is a value itself.

    The name ends where a file, a specification or a value begins; else at the first `=`.
    """
    if Path(text).exists() or text.startswith(("'", '"', "(", "[")) or "=" not in text:
        return None, text
    splits = [(text[: match.start()], text[match.end() :]) for match in re.finditer("=", text)]
    return next((split for split in splits if _is_argument(split[1])), splits[0])


def _is_argument(text: str) -> bool:
    match = _FILE.fullmatch(text) or _ARCHIVE.fullmatch(text)
    if _RANDOM.fullmatch(text) is not None or Path(text if match is None else match["path"]).is_file():
        return True
    try:
        literal(text)
    except ToolError:
        return False
    return True


def in_order(
    arguments: Sequence[NamedValue], parameters: Sequence[str] | None, function: str
) -> tuple[NamedValue, ...]:
    """The arguments in the order of the parameters: first those without a name; `ToolError` for an unknown name."""
    by_name = {each.parameter: each for each in arguments if each.parameter is not None}
    if not by_name:
        return tuple(arguments)
    if parameters is None:
        raise ToolError(f"@{function} is called with arguments in order; leave out {', '.join(by_name)}=")
    given = [each for each in arguments if each.parameter is None]
    if len(given) + len(by_name) != len(arguments):
        raise ToolError(f"@{function}: an argument is given twice")
    from vm_dialect.callee import in_order as ordered

    try:
        return tuple(ordered(function, parameters, given, by_name))
    except TypeError as error:
        raise ToolError(str(error)) from None


def read_array(text: str) -> Array:
    """The array in the file `x.npy`, or its bytes as elements of another type, `x.npy:f8E4M3FN`; `x.npz:key` is one of
    an archive.

    `.npy` files cannot name `bfloat16` and the types of at most a byte. Elements of two bytes without a type are taken
    for `bfloat16`. Nothing in the file is ever executed. `ToolError` if there is no such file, the type has another
    size, or the elements have none, or one that programs do not have.
    """
    if (match := _ARCHIVE.fullmatch(text)) is not None:
        arrays = _archive(match["path"])
        if match["key"] not in arrays:
            raise ToolError(f"{match['path']} has no array {match['key']}, it has {', '.join(arrays) or 'none'}")
        return _typed(arrays[match["key"]], f"{match['path']}:{match['key']}", match["dtype"])
    match = _FILE.fullmatch(text)
    path, name = (match["path"], match["dtype"]) if match is not None else (text, None)
    try:
        if path == STDIN:
            array = _elements(BytesIO(standard_input()))
        else:
            with open_regular(path) as file:
                array = _elements(file)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ToolError(f"cannot read {path}: {error}") from error
    return _typed(array, path, name)


def read_archive(path: str) -> list[NamedValue]:
    """The arrays of a file `x.npz`, by their names; those without a name come first, in order."""
    arrays = {key: _typed(array, f"{path}:{key}", None) for key, array in _archive(path).items()}
    values = [
        NamedValue(f"{path}:{key}", array, None if _UNNAMED.fullmatch(key) else key) for key, array in arrays.items()
    ]
    return sorted(values, key=lambda value: value.parameter is not None)


def _archive(path: str) -> dict[str, Array]:
    """The arrays of a file, whose elements may not have their type yet."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return {
                name.removesuffix(".npy"): _elements(BytesIO(archive.read(name)))
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise ToolError(f"cannot read {path}: {error}") from error


def _typed(array: Array, path: str, name: str | None) -> Array:
    """An array whose elements have the type that is said, or that they have."""
    if name is None and array.dtype == np.dtype("V1"):
        raise ToolError(f"{path} has elements of one byte without a type: say which, as in {path}:f8E4M3FN")
    if name is None and array.dtype != np.dtype("V2"):
        if array_element(array.dtype) is None:
            raise ToolError(f"{path} has elements of {array.dtype}, expected integers, floats or truth values")
        return array
    dtype = numpy_dtype(element_type(name or "bf16"))
    is_raw = array.dtype.kind in "Vu" and array.dtype.itemsize == dtype.itemsize
    if not is_raw and array.dtype != dtype:
        raise ToolError(f"cannot take elements of {path}, which are {array.dtype}, as {name}")
    return array.view(dtype)


def _elements(file: BinaryIO) -> Array:
    try:
        return np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        if "'<f1'" not in str(error):
            raise
    # what NumPy writes for float8_e5m2, and cannot read
    file.seek(0)
    data = BytesIO(file.read().replace(b"'<f1'", b"'|V1'", 1))
    return np.lib.format.read_array(data, allow_pickle=False).view(numpy_dtype(element_type("f8E5M2")))


def random_array(specification: str, rng: np.random.Generator) -> Array:
    """A random array for `f32[3,4]`: normally distributed floats; for `i64[8]<100`, integers from 0 to 99."""
    match = _RANDOM.fullmatch(specification.strip())
    if match is None:
        raise ToolError(f"expected a specification like f32[3,4] or i64[8]<100, got {specification}")
    dtype = numpy_dtype(element_type(match["dtype"]))
    shape = tuple(int(dim) for dim in match["shape"].split(",") if dim.strip())
    try:
        limit = int(match["limit"] or DEFAULT_LIMIT)
        if dtype.kind in "iub":
            return rng.integers(0, 2 if dtype.kind == "b" else limit, shape).astype(dtype)
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    except (MemoryError, ValueError) as error:
        raise ToolError(f"cannot make {specification}: {error}") from error


_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def literal(text: str) -> object:
    """A value written out: an integer, a float, a string, `True`, `None`, a tuple of these, or `[2, 3]` for a shape.

    `true`, `false` and `null` alone are as in the text of programs.
    """
    if text in _WORDS:
        return _WORDS[text]
    try:
        return _as_argument(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError) as error:
        message = f'expected a value like 3, 2.5, true, (1, 2), [4, 8] (a shape) or "text", got {text}'
        if text.isidentifier():  # the shell has taken the quotes
            message += f"\nhint: a text has quotes of its own: '\"{text}\"'"
        raise ToolError(message) from error


def _as_argument(value: object) -> object:
    match value:
        case bool() | int() | float() | str() | None:
            return value
        case tuple():
            return tuple(map(_as_argument, cast("tuple[object, ...]", value)))
        case list():
            return tvm_ffi.Shape(tuple(cast("list[int]", value)))
        case _:
            raise ValueError(f"not a value of the language: {value}")


def is_array(value: object) -> TypeGuard[Array]:
    """Whether `value` is a NumPy array, of whatever dtype."""
    return isinstance(value, np.ndarray)


def as_argument(value: object) -> object:
    """What a compiled function takes for `value`: a tensor for an array."""
    return from_numpy(value) if is_array(value) else value


class Arrays:
    """The arrays among the arguments of a call, to detect which of them it modifies."""

    def __init__(self, arguments: Sequence[object]):
        self._arrays = [(index, value, value.copy()) for index, value in enumerate(arguments) if is_array(value)]

    def written(self) -> list[NamedValue]:
        """The modified arrays; their source is `argument_2` for the third argument."""
        return [
            NamedValue(f"argument_{index}", now)
            for index, now, before in self._arrays
            if now.tobytes() != before.tobytes()
        ]


def leaves(result: object, names: Sequence[str] = (), position: tuple[int | str, ...] = ()) -> Iterator[NamedValue]:
    """The values in a result, which may be a tuple of tuples; tensors as arrays on their memory.

    The source of each is `output`, or `output_0_1` for the second field of the first field of a tuple. With `names`,
    the result, or each field of the tuple, is called so.
    """
    if isinstance(result, tuple | list | tvm_ffi.Array) and not isinstance(result, tvm_ffi.Shape):
        fields = list(cast("Sequence[object]", result))
        for index, field in enumerate(fields):
            inner = (names[index],) if len(names) == len(fields) != 1 else (*(position or names or ("output",)), index)
            yield from leaves(field, (), inner)
        return
    name = "_".join(map(str, position or names or ("output",)))
    yield NamedValue(name, to_numpy(result) if isinstance(result, tvm_ffi.Tensor) else result)


def describe(value: object) -> str:
    """`f32[3, 4]` and its range for an array, else the value."""
    if not is_array(value):
        return f"{type(value).__name__} {value}"
    element = BY_FFI_NAME.get(value.dtype.name)
    kind = f"{element.name if element is not None else value.dtype}{list(value.shape)}"
    if value.size == 0 or value.dtype.kind == "b":
        return kind
    numbers = value.astype(np.float64)
    return f"{kind}  min {numbers.min():.6g}  max {numbers.max():.6g}  mean {numbers.mean():.6g}"


def value_text(value: object) -> str:
    """The elements of an array, those in the middle left out if it is large; else the value."""
    return np.array2string(value, separator=", ") if is_array(value) else str(value)


def results_folder(directory: str) -> Path:
    """The folder for results, which is made if need be; OSError where that is not possible."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_results(results: Sequence[NamedValue], folder: Path) -> list[Path]:
    """Writes each array to `<folder>/<name>.npy`; other values are not written."""
    written: list[Path] = []
    for result in results:
        if is_array(result.value):
            path = folder / f"{_file_name(result.source)}.npy"
            if path in written:
                path = folder / f"{path.stem}_{len(written)}.npy"
            np.save(path, result.value, allow_pickle=False)
            written.append(path)
    return written


def write_output(results: Sequence[NamedValue], path: str) -> str:
    """Writes the arrays by name to a file `x.npz`, or the only one to another one, `x.npy`, and gives the path;
    `ToolError` if there is another number of them.
    """
    arrays = [(result.source, result.value) for result in results if is_array(result.value)]
    if path.endswith(".npz"):
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        return path
    if len(arrays) != 1:
        raise ToolError(f"{path} holds one array, and there are {len(arrays)}: write them to a file .npz")
    np.save(path, arrays[0][1], allow_pickle=False)
    return path


def _file_name(name: str) -> str:
    """A name of a model as that of a file in a folder."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "output"


USUAL_SIZE = 4
"""What a symbol is in arguments that are made up, unless `--dim` says it, or its bounds exclude it."""

Bounds = tuple[int, int | None]


@dataclass(frozen=True)
class Signature:
    """The parameters and results of a public function."""

    name: str
    parameters: tuple[str, ...]
    types: tuple[Attribute, ...]
    """Those of the parameters."""
    result: str = ""
    result_names: tuple[str, ...] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict[str, Bounds])
    """The least and greatest values of symbols that have some."""

    @staticmethod
    def of_func(func: FuncOp) -> Signature:
        """That of a function of a module."""
        kind = func.function_type
        names = () if func.result_names is None else tuple(name.data for name in func.result_names)
        bounds = {each.symbol.data: each.interval for each in kind.symbols}
        return Signature(
            func.sym_name.data, tuple(func.param_names), tuple(kind.params), type_text(kind.ret), names, bounds
        )

    @staticmethod
    def of_compiled(function: Callee) -> Signature:
        """That of a function of an executable or a library, as far as it says it."""
        types = function.types.parameters or ("object",) * len(function.parameters)
        parsed = tuple(map(parse_type, types))
        return Signature(
            function.__name__, function.parameters, parsed, function.types.result, tuple(function.result_names)
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the parameters, in order."""
        found = (name for kind in self.types if isinstance(kind, StructInfo) for name in sorted(free_symbols(kind)))
        return tuple(dict.fromkeys((*self.bounds, *found)))

    def text(self) -> str:
        """`main(x: f32[n, 4]) -> f32[n], where 1 <= n <= 128; results: y`."""
        types = SignatureTypes(tuple(map(type_text, self.types)), self.result)
        info = FunctionInfo(FunctionKind.BYTECODE, self.name, self.parameters, types=types)
        limits = [
            f"{lower} <= {name}{'' if upper is None else f' <= {upper}'}"
            for name, (lower, upper) in self.bounds.items()
            if lower > 0 or upper is not None
        ]
        where = f", where {', '.join(limits)}" if limits else ""
        names = f"; results: {', '.join(self.result_names)}" if self.result_names else ""
        return f"{self.name}{info.signature}{where}{names}"

    def sizes(self, given: Mapping[str, int]) -> dict[str, int]:
        """The values of the symbols; `ToolError` for one that there is not, or outside of its bounds."""
        given = {self._symbol(name): size for name, size in given.items()}
        found: dict[str, int] = {}
        for name in self.symbols:
            lower, upper = self.bounds.get(name, (0, None))
            usual = max(USUAL_SIZE, lower)
            found[name] = given.get(name, usual if upper is None else min(usual, upper))
            if found[name] < lower or (upper is not None and found[name] > upper):
                limit = f"at least {lower}" if found[name] < lower else f"at most {upper}"
                raise ToolError(f"--dim {name}={found[name]}: @{self.name} expected {limit}")
        return found

    def _symbol(self, name: str) -> str:
        """The symbol of a name, which a model may write with other characters: `batch.size` is `batch_size`."""
        clean = re.sub(r"\W", "_", name, flags=re.ASCII)
        if name not in self.symbols and any(re.fullmatch(rf"{clean}_\d+", each) for each in self.symbols):
            clean = name  # several names have become alike
        for symbol in (name, clean, f"n_{clean}"):
            if symbol in self.symbols:
                return symbol
        known = ", ".join(self.symbols) or "none"
        raise ToolError(f"--dim {name}: @{self.name} has no such symbol, it has {known}")

    def completed(
        self, given: Sequence[NamedValue], dims: Mapping[str, int], rng: np.random.Generator
    ) -> list[NamedValue]:
        """The arguments that are given, and random ones for the parameters without; `ToolError` where none can be made
        of the type.
        """
        sizes = self.sizes(dims)
        draw = Draw(rng, sizes, USUAL_SIZE, (0, DEFAULT_LIMIT))
        unnamed = sum(value.parameter is None for value in given)
        named = {value.parameter for value in given}
        made = list(given)
        for name, kind in list(zip(self.parameters, self.types, strict=True))[unnamed:]:
            if name in named:
                continue
            try:
                made.append(NamedValue("made up", draw.value(kind), name))
            except MemoryError as error:
                raise ToolError(f"no value can be made up for {name} of @{self.name}: {error}") from error
            except CannotDraw:
                what = f"{name}: {type_text(kind)} of @{self.name}"
                raise ToolError(f"no value can be made up for {what}: give one, --input {name}=..") from None
        return made


def signatures_in(module: ModuleOp) -> list[Signature]:
    """Those of the public functions of the graph level, or of the kernels of a module without any."""
    from xdsl.context import Context

    from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass

    exposed = module.clone()
    ExposePrimFuncsPass().apply(Context(), exposed)
    return [Signature.of_func(op) for op in exposed.ops if isinstance(op, FuncOp) and not op.is_private]


def signature_of(module: ModuleOp, entry: str) -> Signature | None:
    """That of one of these functions."""
    return next((each for each in signatures_in(module) if each.name == entry), None)


def given_dims(text: str) -> list[tuple[str, int]]:
    """The symbols, or the names that a model has for them, and the sizes of `batch=4,length=7`."""
    found: list[tuple[str, int]] = []
    for each in text.split(","):
        name, _, size = each.partition("=")
        if not (name and size.isdecimal()):
            raise argparse.ArgumentTypeError(f"expected symbols and sizes like batch=4,length=7, got {text}")
        found.append((name, int(size)))
    return found
