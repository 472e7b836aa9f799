"""Steps of random programs: layers on images and sequences, and what rearranges tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lowering.distributed.programs import Program, Shape


def sampled(program: Program, name: str, shape: Shape) -> None:
    """Images at positions that a tensor says, at other sizes, and in regions; all of one channel."""
    if len(shape) != 3 or not set(shape[1:]) <= {"4", "5", "6"}:
        return
    image, count = program.fresh(), shape[0]
    program.lines.append(f"{image} = relax.expand_dims {name} axes = [1]")
    kind = program.pick(("grid", "resize", "regions"))
    if kind == "grid":
        program.params.append((count, "3", "2", "2"))
        program.emit(f"relax.image.grid_sample {image}, %p{len(program.params) - 1}", (count, "1", "3", "2"))
    elif kind == "resize":
        size = program.fresh()
        program.lines.append(f"{size} = relax.shape [3, 7]")
        program.emit(f"relax.image.resize2d {image}, {size}", (count, "1", "3", "7"))
    else:
        program.params.append(("m", "4"))
        rows, numbers = program.fresh(), program.fresh()
        program.lines += [f"{rows} = relax.shape [m]", f"{numbers} = relax.zeros {rows} dtype = i64"]
        text = f"{image}, %p{len(program.params) - 1}, {numbers} height = 2 width = 2"
        if count not in ("n", "m"):  # so there is an image of the number 0
            program.emit(f"relax.vision.roi_align {text}", ("m", "1", "2", "2"))


def recurrent(program: Program, name: str, shape: Shape) -> None:
    """A recurrent layer over the first dimension, with a batch in the second one."""
    if len(shape) != 3 or shape[2] not in ("4", "5", "6") or "*" in shape[1]:
        return
    kind, gates = program.pick((("rnn", 1), ("gru", 3), ("lstm", 4)))
    program.params += [("1", str(2 * gates), shape[2]), ("1", str(2 * gates), "2"), ("1", str(4 * gates))]
    weights = ", ".join(f"%p{at}" for at in range(len(program.params) - 3, len(program.params)))
    states = [program.fresh() for _ in range(2 if kind == "lstm" else 1)]
    program.params += [("1", shape[1], "2")] * len(states)
    if kind == "lstm":
        program.params.append(("1", "6"))  # what gates see of the cell
    first = len(program.params) - len(states) - (kind == "lstm")
    initial = ", ".join(f"%p{at}" for at in range(first, len(program.params)))
    found, batch, lengths = program.fresh(), program.fresh(), program.fresh()
    program.lines += [
        f"{batch} = relax.shape [{shape[1]}]",
        f"{lengths} = relax.ones {batch} dtype = i64",
        f"{found}, {', '.join(states)} = relax.nn.{kind} {name}, {weights}, {lengths}, {initial}",
    ]
    program.emit(f"relax.squeeze {found} axes = [1]", (shape[0], shape[1], "2"))
    program.emit(f"relax.squeeze {states[-1]} axes = [0]", (shape[1], "2"))


def rearranged(program: Program, name: str, shape: Shape) -> None:
    """Sequences in reverse order, grids of vectors, slices that are written, and copies with other sizes."""
    kind = program.pick(("reverse", "meshgrid", "scatter", "broadcast", "variance"))
    if kind == "reverse" and len(shape) >= 2 and shape[0] in ("n", "m") and "*" not in shape[1]:
        rows, lengths = program.fresh(), program.fresh()
        program.lines += [f"{rows} = relax.shape [{shape[1]}]", f"{lengths} = relax.ones {rows} dtype = i64"]
        program.emit(f"relax.reverse_sequence {name}, {lengths} seq_axis = 0 batch_axis = 1", shape)
    elif kind == "meshgrid" and len(shape) == 1:
        first, second = program.fresh(), program.fresh()
        program.lines.append(f'{first}, {second} = relax.meshgrid {name}, {name} indexing = "xy"')
        program.emit(f"relax.subtract {first}, {second}", (shape[0], shape[0]))
    elif kind == "scatter" and shape and shape[0] in ("4", "5", "6"):
        rows = program.fresh()
        program.lines.append(f"{rows} = relax.strided_slice {name} axes = [0] begin = [1] end = [3]")
        program.emit(f"relax.slice_scatter {name}, {rows} start = 0 end = 2", shape)
    elif kind == "broadcast" and len(shape) < 3:
        wider, size = ("3", *shape), program.fresh()
        program.lines.append(f"{size} = relax.shape [{', '.join(wider)}]")
        program.emit(f"relax.broadcast_to {name}, {size}", wider)
    elif kind == "variance" and shape:
        program.emit(f"relax.variance {name} axes = [-1]", shape[:-1])
