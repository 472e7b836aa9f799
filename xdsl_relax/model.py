"""`compile`: from a model to a callable; `interpret`: the same without a compiler.

Arrays of strings are arguments as the positions of the strings in a list of those that the model names.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np
import tvm_ffi

from vm_dialect.arguments import as_tuple
from vm_dialect.callee import Callee, in_order, named_arguments
from vm_dialect.executable import Executable
from vm_dialect.library import Library, load_library
from vm_dialect.machine import VirtualMachine
from vm_dialect.process import checked_threads
from vm_dialect.strings import StringArray
from vm_dialect.tensors import to_numpy
from xdsl_relax.loading import Source, is_executable, is_library, load, load_executable

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from lowering.compiler.build import Mode
    from relax_dialect.ops.structure import FuncOp
    from tir_dialect.target import Target
    from vm_dialect.profiler import Profile

NOTE = "strings"
"""Note of the metadata of an executable: these lists by function and parameter, as JSON."""

Lists: TypeAlias = Mapping[str, Sequence[str]]
"""By parameter the strings whose positions it takes; the position after the last one is that of all others."""


def lists_of(func: FuncOp) -> Lists:
    """The lists of the parameters of an imported function."""
    from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

    from relax_dialect.ops.structure import STRINGS

    said = func.attributes.get(STRINGS)
    if not isinstance(said, DictionaryAttr):
        return {}
    return {
        name: [each.data for each in cast("ArrayAttr[StringAttr]", said.data[name])]
        for name in func.param_names
        if name in said.data
    }


def with_lists(executable: Executable, module: ModuleOp) -> Executable:
    """An executable that also has the lists of the module from which it was built."""
    from relax_dialect.ops.structure import FuncOp

    found = {op.sym_name.data: lists for op in module.ops if isinstance(op, FuncOp) and (lists := lists_of(op))}
    if not found:
        return executable
    notes = {**executable.metadata.notes, NOTE: json.dumps(found)}
    return replace(executable, metadata=replace(executable.metadata, notes=notes))


def noted_lists(executable: Executable) -> Mapping[str, Lists]:
    """By function the lists that an executable has."""
    return cast("Mapping[str, Lists]", json.loads(executable.metadata.notes.get(NOTE, "{}")))


def encoded(arguments: Sequence[Any], parameters: Sequence[str], lists: Lists) -> list[Any]:
    """The arguments of a call, with positions instead of strings where there is a list."""
    return [
        _positions(argument, lists[name]) if name in lists else argument
        for name, argument in zip(parameters, arguments, strict=False)
    ] + list(arguments[len(parameters) :])


def _positions(argument: Any, names: Sequence[str]) -> Any:
    if not isinstance(argument, np.ndarray | list | str):
        return argument
    array = np.asarray(cast("Any", argument))
    if array.dtype.kind not in "OSTU":
        return cast("Any", argument)
    table = {name: position for position, name in enumerate(names)}
    found = [table.get(_text(each), len(names)) for each in array.reshape(-1).tolist()]
    return np.array(found, np.int64).reshape(array.shape)


def _text(item: Any) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def compile(
    source: Source | Executable,
    args: Sequence[Any] | None = None,
    *,
    entry: str | None = None,
    mode: Mode = "native",
    target: Target | str | Sequence[Target | str] | None = None,
    opt_level: int = 3,
    cache: bool = True,
    weights: Mapping[str, Any] | str | PathLike[str] | None = None,
    trust: bool = False,
    validate: bool = False,
    instrument: bool = False,
    num_threads: int | None = None,
    **loading: Any,
) -> Model:
    """Compiles a model, or loads an executable: a callable.

    `source` is what `load` takes, with its options (`args`, `shapes`, `dynamic_shapes`, ...), an executable, or the
    path of one, or of a shared library of `save`; the `weights` of these may be elsewhere. `entry` is the function that
    a call of the result means: `main`, or the only one, unless it is said.
    `weights` are arrays by name, or a file (.safetensors) of them. Calls take `num_threads` threads at most, from 1 to
    256, whatever the environment says. The others are as in `lowering.build`.
    """
    building = {"args": args, "target": target} | {name: True for name in loading}
    building |= {"mode": mode != "native", "opt_level": opt_level != 3, "cache": not cache}
    building |= {"validate": validate, "instrument": instrument}
    _check_options(
        source, loading, [name for name, given in building.items() if given is not None and given is not False]
    )
    if isinstance(source, Executable):
        if weights is not None or trust:
            raise TypeError("compile() takes no weights and no trust for an executable that is loaded already")
        return Model(source, entry, num_threads=num_threads)
    if is_library(source):
        return Model(load_library(cast("str", source), weights=weights, num_threads=num_threads), entry)
    if is_executable(source):
        loaded = load_executable(cast("str", source), trust=trust, weights=weights)
        return Model(loaded, entry, num_threads=num_threads)
    checked_threads(num_threads)
    from lowering import build

    module = load(source, args, weights=weights if isinstance(weights, str | PathLike) else None, **loading)
    given = None if isinstance(weights, str | PathLike) else weights
    executable = build(
        module,
        mode=mode,
        target=target,
        opt_level=opt_level,
        cache=cache,
        weights=given,
        validate=validate,
        instrument=instrument,
    )
    return Model(with_lists(executable, module), entry, num_threads=num_threads)


_LOADING = frozenset({"kwargs", "dynamic_shapes", "dynamic", "shapes"})
"""Options of `load` that `compile` takes."""


def _check_options(source: object, loading: Iterable[str], building: Sequence[str]) -> None:
    """`TypeError` for an option that there is not, or for one of loading and building where all of that is done."""
    for name in loading:
        if name not in _LOADING:
            from difflib import get_close_matches

            known = [each for each in inspect.signature(compile).parameters if each != "loading"]
            close = get_close_matches(name, [*known, *sorted(_LOADING)], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise TypeError(f"compile() got an unexpected keyword argument '{name}'{hint}")
    if building and (isinstance(source, Executable) or is_library(source) or is_executable(source)):
        what = "an executable" if isinstance(source, Executable) else str(source)
        raise TypeError(f"compile() takes no {' and no '.join(building)} for {what}, which is compiled already")


class Model:
    """A compiled model. A call takes arrays and gives arrays of the same kind: of NumPy, PyTorch, JAX, CuPy.

    Arguments are given in order, by keyword, or as one dictionary. Several results are an `Outputs`. Where the function
    takes the positions of strings in a list that the executable has, arrays of strings are taken, too.
    """

    def __init__(self, compiled: Executable | Library, entry: str | None = None, *, num_threads: int | None = None):
        """`ValueError` if `entry` is not said, and neither is there a function `main`, nor only one; or for
        `num_threads` of a library, which `load_library` takes.
        """
        self.executable = compiled if isinstance(compiled, Executable) else None
        """`None` for a shared library."""
        if isinstance(compiled, Executable):
            self.machine = VirtualMachine(compiled, num_threads=num_threads)
        elif num_threads is not None:
            raise ValueError("num_threads of a shared library are said when it is loaded: load_library(num_threads=..)")
        else:
            self.machine = compiled
        self.entry = default_entry(compiled.entries) if entry is None else entry
        self._function = self._callable(self.entry)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Another function of the model; `KeyError` lists those there are."""
        return self._callable(name)

    def _callable(self, name: str) -> Callable[..., Any]:
        function = self._encoding(name)
        names = cast("Callee", self.machine[name]).result_names

        def call(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            kind = kind_of_arrays(arguments)
            if kind == "numpy" and named:
                kind = kind_of_arrays(named.values())
            return as_kind(result, kind, names)

        return call

    def _encoding(self, name: str) -> Callable[..., Any]:
        """A function of the machine that takes arrays of strings, too, where there are lists of them."""
        function = self.machine[name]
        if self.executable is None or not (lists := noted_lists(self.executable).get(name)):
            return function
        callee = cast("Callee", function)

        def call(*arguments: Any, **named: Any) -> Any:
            return function(*encoded(callee.in_order(arguments, named), callee.parameters, lists))

        return call

    def by_name(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The results of a call by name, as the machine gives them: `output_0`, `output_1`, ... without names."""
        return self.function.by_name(self._encoding(self.entry)(**inputs))

    @property
    def function(self) -> Callee:
        """The function that a call means: its names and types."""
        return cast("Callee", self.machine[self.entry])

    def profile(self, /, *arguments: Any, **named: Any) -> Profile:
        """A call that tells where the time goes, and how much of what this machine can do is used.

        Native code has to be built for it: `compile(..., instrument=True)`. `ValueError` if it is not.
        """
        if not isinstance(self.machine, VirtualMachine):
            raise ValueError("the code of a shared library tells nobody of its calls: compile the model")
        from lowering.compiler.peaks import machine_peaks

        given = self.function.in_order(arguments, named)
        return self.machine.profile(self.entry, *given, peaks=machine_peaks())

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Writes an executable (.rvm) or a shared library (.so), with the options of `Executable.save` or of
        `Executable.export_library`; `ValueError` for another suffix, or from a library.
        """
        if self.executable is None:
            raise ValueError("save expected a model with an executable, this one is a shared library: copy the file")
        if fspath(path).endswith(".rvm"):
            self.executable.save(path, **options)
        elif fspath(path).endswith(".so"):
            self.executable.export_library(path, **options)
        else:
            raise ValueError(f"save expected a path that ends in .rvm or .so, got {fspath(path)}")

    def __repr__(self) -> str:
        mode = "library" if self.executable is None else self.executable.metadata.mode
        return f"<Model {self.function.__name__}{self.function.signature}, {mode}>"


def interpret(
    source: Source, *arguments: Any, entry: str | None = None, weights: Mapping[str, Any] | None = None, **named: Any
) -> Any:
    """Calls a function of a model with the reference semantics, in NumPy; nothing is compiled.

    Arguments are given as to a `Model`; results are arrays of NumPy, in an `Outputs` if there are several.
    """
    from relax_dialect.interpreter import run
    from relax_dialect.ops.structure import FuncOp
    from relax_dialect.struct_info.types import ObjectType

    module = load(source)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_private}
    name = default_entry(list(functions)) if entry is None else entry
    if name not in functions:
        raise KeyError(f"no function {name}, the module has: {', '.join(functions) or 'none'}")
    func = functions[name]
    kinds = ["object" if isinstance(each, ObjectType) else str(each) for each in func.function_type.params]
    by_position, by_name = named_arguments(func.param_names, kinds, arguments, named)
    values = in_order(name, func.param_names, by_position, by_name)
    values = encoded(values, func.param_names, lists_of(func))
    result = run(module, name, values, weights=weights)
    names = () if func.result_names is None else tuple(each.data for each in func.result_names)
    if isinstance(result, tuple):
        return Outputs(map(_with_strings, cast("tuple[Any, ...]", result)), names)
    return _with_strings(result)


def _with_strings(value: Any) -> Any:
    """A value, as NumPy's array if it is one of strings."""
    return value.array if isinstance(value, StringArray) else value


class Outputs(tuple[Any, ...]):
    """The results of a call: a tuple whose fields have the names that the model gives them, `outputs["logits"]`."""

    names: tuple[str, ...]

    def __new__(cls, values: Iterable[Any], names: Sequence[str] = ()) -> Self:
        """The names count if there is one for each value."""
        made = super().__new__(cls, values)
        made.names = tuple(names) if len(names) == len(made) else ()
        return made

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"no result '{key}', the results are {', '.join(self.names) or 'without names'}")
        return super().__getitem__(self.names.index(key))

    def as_dict(self) -> dict[str, Any]:
        """The values by name; `output_0`, `output_1`, ... without names."""
        return dict(zip(self._called, self, strict=True))

    @property
    def _called(self) -> Sequence[str]:
        return self.names or [f"output_{index}" for index in range(len(self))]

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{name}={value!r}' for name, value in zip(self._called, self, strict=True))})"


def default_entry(names: Sequence[str]) -> str:
    """The function that is meant if none is named; `ValueError` lists them where that is not clear."""
    if "main" in names or len(names) == 1:
        return "main" if "main" in names else names[0]
    if not names:
        raise ValueError("the module has no public function")
    raise ValueError(f"the module has several functions, say which: entry={' or '.join(map(repr, names))}")


_MAKERS: Mapping[str, Sequence[str]] = {
    "torch": ("from_dlpack",),
    "cupy": ("from_dlpack",),
    "jax": ("dlpack", "from_dlpack"),
    "jaxlib": ("dlpack", "from_dlpack"),
}
"""What makes an array of a package of one that speaks DLPack."""


def kind_of_arrays(arguments: Iterable[Any]) -> str:
    """The package whose arrays a call gives: that of the first array of another package than NumPy."""
    for argument in arguments:
        kind = _kind(cast("type[Any]", type(argument)))
        if kind == "fields":
            kind = kind_of_arrays(cast("Iterable[Any]", argument))
        elif kind == "items":
            kind = kind_of_arrays(cast("dict[Any, Any]", argument).values())
        if kind != "numpy":
            return kind
    return "numpy"


@cache
def _kind(cls: type[Any]) -> str:
    if issubclass(cls, tuple | list):
        return "fields"
    if issubclass(cls, dict):
        return "items"
    package = cls.__module__.partition(".")[0]
    return "tvm_ffi" if issubclass(cls, tvm_ffi.Tensor) else package if package in _MAKERS else "numpy"


def as_kind(result: Any, kind: str, names: Sequence[str] = ()) -> Any:
    """A result of the machine with arrays of a package; memory is shared."""
    if isinstance(result, tvm_ffi.Tensor):
        if kind == "numpy":
            return to_numpy(result)
        if kind == "tvm_ffi":
            return result
        made: Any = sys.modules["jax" if kind == "jaxlib" else kind]
        for attribute in _MAKERS[kind]:
            made = getattr(made, attribute)
        return made(result)
    if isinstance(result, StringArray):
        return result.array
    if (fields := as_tuple(result)) is not None:
        return Outputs((as_kind(field, kind) for field in fields), names)
    return result
