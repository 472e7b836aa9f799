"""The data of a shared library, as assembler text: the bytes of constants are copied by the assembler, not by us.

The symbol `TABLE`, after the prefix of each target, is the address of an array of pairs, a name and a
`DLManagedTensorVersioned` (dlpack.h) that nobody frees, which a null name ends. Native code finds its constants there
when nobody hands them over. The symbol `SIGNATURES` is a C string, for `vm_dialect.load_library`.

The elements are in the library, or in a file beside it (`vm_dialect.executable.weight_file`): then `ROWS` is an array
of names, tensors and positions in the file, and `vm_dialect/executable/weights.c` puts addresses into the tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tvm_ffi

from vm_dialect.executable.constants import Constant
from vm_dialect.executable.variants import constants_for
from vm_dialect.executable.weight_file import WeightFile
from vm_dialect.tensors import ALIGNMENT, tensor_element, to_numpy

TABLE = "relax_library_constants"
"""Name of the symbol."""

SIGNATURES = "relax_library_signatures"
"""Name of the symbol of the text that says how functions are called."""

SET_WEIGHT, WEIGHTS_FROM = "relax_set_weight", "relax_weights_from"
"""Functions of libraries whose weights are elsewhere: one weight by name, and the path of the file with the others."""

ROWS, FILE = "relax_weight_rows", "relax_weight_file"
"""Names of the symbols about elements that are in a file: the rows, and its size and identity."""


def library_name(name: str) -> str:
    """The name of a constant as a C string, which ends at a zero byte: other names have other strings."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def write_constants(
    constants: Sequence[Constant], folder: Path, prefixes: Mapping[str, str], file: WeightFile | None = None
) -> Path | None:
    """Writes an assembler file, and beside it the data that it includes, for the named tensors among `constants`.

    There is a table for each target, whose symbol has its prefix. With a `file`, the elements are in that. `None` if
    there is nothing to say.
    """
    tensors = {each.name: each.value for each in constants if each.name and isinstance(each.value, tvm_ffi.Tensor)}
    if not tensors and file is None:
        return None
    index = {name: number for number, name in enumerate(tensors)}
    lines = [".data"]
    for name, tensor in tensors.items():
        if file is None:
            data = folder / f"constant{index[name]}.bin"
            to_numpy(tensor).tofile(data)
            lines += [f".balign {ALIGNMENT}", f'relax_data{index[name]}: .incbin "{_escaped(str(data))}"']
        lines += _tensor(index[name], tensor, "0" if file is not None else f"relax_data{index[name]}")
    for target, prefix in prefixes.items():
        used = [(name, each) for name, each in constants_for(constants, target).items() if each.name in tensors]
        lines += _table(prefix, [(name, index[each.name]) for name, each in used])
    if file is not None:
        lines += _rows(file, index)
    return _written(folder / "constants.s", lines)


def _table(prefix: str, rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    """The constants of one target: names and tensors."""
    yield f'.globl "{prefix}{TABLE}"'
    yield f'.balign 8\n"{prefix}{TABLE}": .quad "{prefix}relax_constant_table"\n"{prefix}relax_constant_table":'
    yield from (f'.quad "{prefix}relax_name{number}", relax_tensor{tensor}' for number, (_, tensor) in enumerate(rows))
    yield ".quad 0, 0"
    for number, (name, _) in enumerate(rows):
        yield f'"{prefix}relax_name{number}": .byte {_bytes(library_name(name).encode())}'


def _rows(file: WeightFile, index: Mapping[str, int]) -> Iterator[str]:
    yield f".globl {ROWS}, {FILE}\n.balign 8\n{ROWS}:"
    yield from (
        f".quad relax_row{number}, relax_tensor{number}, {file.offsets[name]}" for name, number in index.items()
    )
    yield f".quad 0, 0, 0\n{FILE}: .quad {file.size}\n.byte {', '.join(map(str, file.identity))}"
    yield from (f"relax_row{number}: .byte {_bytes(library_name(name).encode())}" for name, number in index.items())


def write_text(symbol: str, text: str, folder: Path) -> Path:
    """Writes an assembler file with a C string that has a name."""
    return _written(folder / f"{symbol}.s", [".data", f".globl {symbol}", f"{symbol}: .byte {_bytes(text.encode())}"])


def write_aliases(symbols: Mapping[str, str], folder: Path) -> Path:
    """Writes an assembler file with pointers that have names, to symbols of other files."""
    lines = [".data", ".balign 8"]
    for name, target in symbols.items():
        lines += [f'.globl "{name}"', f'"{name}": .quad "{target}"']
    return _written(folder / "aliases.s", lines)


def _written(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""]))
    return path


def _tensor(index: int, tensor: tvm_ffi.Tensor, data: str) -> Iterator[str]:
    """Shape and strides, and the DLPack record of version 1.3, of elements at `data`."""
    element = tensor_element(tensor)
    rank = len(tensor.shape)
    yield ".balign 8"
    yield f"relax_shape{index}: .quad {', '.join(map(str, (*tensor.shape, *tensor.strides, 0)))}"
    yield f"relax_tensor{index}: .long 1, 3"
    yield ".quad 0, 0, 0"
    yield f".quad {data}"
    yield f".long 1, 0, {rank}"
    yield f".byte {element.code}, {element.bits}, 1, 0"
    yield f".quad relax_shape{index}, relax_shape{index} + {8 * rank}, 0"


def _bytes(text: bytes) -> str:
    return ", ".join(map(str, text + b"\0"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
