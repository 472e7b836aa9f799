"""Recurrent layers: LSTM, GRU and the simple cell, as ONNX defines them, over sequences of different lengths."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, Float64Type, FloatAttr, StringAttr, UnitAttr, f32, f64, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, var_operand_def, var_result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, number, numbers
from relax_dialect.ops.layouts import require_rank
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.vectors import ui8

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
"""How many directions there are."""

ACTIVATIONS: dict[str, tuple[float, float]] = {
    "sigmoid": (0.0, 0.0),
    "tanh": (0.0, 0.0),
    "relu": (0.0, 0.0),
    "affine": (1.0, 0.0),
    "leaky_relu": (0.01, 0.0),
    "thresholded_relu": (1.0, 0.0),
    "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
    "softsign": (0.0, 0.0),
    "softplus": (0.0, 0.0),
}
"""Functions of gates, and the `alpha` and `beta` that they have if nothing is said."""

CELLS: dict[str, tuple[int, str, int]] = {
    "rnn": (1, "tanh", 1),
    "gru": (3, "sigmoid tanh", 1),
    "lstm": (4, "sigmoid tanh tanh", 3),
}
"""Of each cell: how many gates, their functions, and how many operands follow the lengths."""


HIGHEST = 255.0
"""The greatest integer of states that are quantised."""


class RecurrentOp(Operator, ABC):
    """What layers and their recurrences have in common.

    `direction` is `forward`, `reverse` or `bidirectional`; a sequence shorter than the longest ends with its length,
    where a reverse one begins, and gives zeros after it. `activations` names the functions of the gates, for each
    direction in turn, separated by blanks; `alphas` and `betas` have one number for each of them. `clip` bounds what
    goes into them, but not the cell state that an LSTM's last function takes, as ONNX Runtime has it. `input_forget`
    makes the forget gate of an LSTM the complement of the input gate; with `linear_before_reset` the reset gate of a
    GRU multiplies the product with the recurrence weights.

    C1: the dtypes are equal and floating-point; lengths are integers.
    C2: the direction is one of the three.
    C3: the activations are known ones, as many as the cell has in each direction, with a number for each.
    C4: a clip is positive.
    C5: ranks and dimensions of weights, lengths and states fit.
    C6: there are as many states as the cell has.
    """

    direction = prop_def(StringAttr, default_value=StringAttr("forward"))
    activations = opt_prop_def(StringAttr)
    alphas = opt_prop_def(DenseArrayBase.constr(f64))
    betas = opt_prop_def(DenseArrayBase.constr(f64))
    clip = opt_prop_def(FloatAttr[Float64Type])
    input_forget = opt_prop_def(UnitAttr)
    linear_before_reset = opt_prop_def(UnitAttr)

    @property
    def directions(self) -> tuple[bool, ...]:
        """For each direction whether it is the reverse one."""
        return {"forward": (False,), "reverse": (True,)}.get(self.direction.data, (False, True))

    def functions(self, kind: str) -> list[tuple[str, float, float, float | None]]:
        """The functions of the gates for all directions in turn: name, numbers, and the bound of arguments."""
        default = " ".join([CELLS[kind][1]] * len(self.directions))
        names = (default if self.activations is None else self.activations.data).split()
        plain = [ACTIVATIONS[name] for name in names]
        alphas = [pair[0] for pair in plain] if self.alphas is None else self.alphas.get_values()
        betas = [pair[1] for pair in plain] if self.betas is None else self.betas.get_values()
        gates, clip = len(CELLS[kind][1].split()), None if self.clip is None else self.clip.value.data
        clips = [None if kind == "lstm" and at % gates == 2 else clip for at in range(len(names))]
        return list(zip(names, alphas, betas, clips, strict=True))

    @classmethod
    def require_functions(cls, inference: Inference, kind: str) -> int:
        """The number of directions; fails if properties make no sense."""
        direction = inference.string("direction")
        if direction not in DIRECTIONS:
            inference.fail(f"direction expected one of {', '.join(DIRECTIONS)}, got {direction}")  # C2
        count = DIRECTIONS[direction]
        expected = count * len(CELLS[kind][1].split())
        given = inference.optional_string("activations")
        names = [] if given is None else given.split()
        for name in names:
            if name not in ACTIVATIONS:
                inference.fail(f"activations expected some of {', '.join(ACTIVATIONS)}, got {name}")  # C3
        lengths = {len(names)} if given is not None else set[int]()
        for name in ("alphas", "betas"):
            found = inference.get(name, DenseArrayBase)
            lengths |= set() if found is None else {len(found)}
        if lengths - {expected}:
            inference.fail(f"expected {expected} activations, got {min(lengths - {expected})}")  # C3
        clip = inference.get("clip", FloatAttr)
        if clip is not None and not clip.value.data > 0:
            inference.fail(f"expected a clip greater than 0, got {clip.value.data}")  # C4
        return count

    @classmethod
    def require_shape(cls, inference: Inference, index: int, expected: Sequence[Dim | None]) -> None:
        """Fails unless operand `index` has these dimensions."""
        shape = require_rank(inference, index, len(expected))
        for axis, pair in enumerate(zip(shape, expected, strict=True)):
            inference.require_equal(*pair, f"operand #{index} dimension {axis} to fit the layer")

    @classmethod
    def require_states(
        cls,
        inference: Inference,
        kind: str,
        first: int,
        batch: Dim | None,
        units: Dim | None,
        batch_first: bool,
        alike: Sequence[int] | None = None,
    ) -> None:
        """Fails unless lengths and states, from operand `first` on, fit and dtypes are right.

        The operands `alike` have one dtype: all but the lengths unless told.
        """
        count, directions = CELLS[kind][2], constant(DIRECTIONS[inference.string("direction")])
        if len(inference.operand_types) != first + 1 + count:
            inference.fail(f"expected {first + 1 + count} operands, got {len(inference.operand_types)}")  # C6
        floats = [index for index in range(first + 1 + count) if index != first] if alike is None else alike
        inference.common_dtype(floats)  # C1
        inference.require_domain(0, Domain.FLOAT)  # C1
        inference.require_domain(first, Domain.INTEGER)  # C1
        cls.require_shape(inference, first, (batch,))  # C5
        state = (batch, directions, units) if batch_first else (directions, batch, units)
        for index in range(first + 1, first + 1 + min(count, 2)):
            cls.require_shape(inference, index, state)  # C5
        if count == 3:
            cls.require_shape(inference, first + 3, (directions, None if units is None else 3 * units))  # C5


def _results(
    inference: Inference, kind: str, length: Dim | None, batch: Dim | None, units: Dim | None, batch_first: bool
) -> tuple[TensorType, ...]:
    """The outputs of all steps, and the last states."""
    x, directions = inference.tensor(0), constant(DIRECTIONS[inference.string("direction")])
    steps = (batch, length, directions, units) if batch_first else (length, directions, batch, units)
    last = (batch, directions, units) if batch_first else (directions, batch, units)
    states = [x.with_shape(last)] * (2 if kind == "lstm" else 1)
    return (x.with_shape(steps), *states)


def _properties(
    direction: str,
    activations: str | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    clip: float | None,
    input_forget: bool,
    linear_before_reset: bool,
) -> dict[str, Attribute | None]:
    return {
        "direction": StringAttr(direction),
        "activations": None if activations is None else StringAttr(activations),
        "alphas": None if alphas is None else numbers(alphas),
        "betas": None if betas is None else numbers(betas),
        "clip": None if clip is None else number(clip),
        "input_forget": flag(input_forget),
        "linear_before_reset": flag(linear_before_reset),
    }


class RecurrentLayerOp(RecurrentOp, ABC):
    """A recurrent layer: `%y, %h = relax.nn.gru %x, %w, %r, %b, %lengths, %h0`.

    The data has the dimensions time, batch, feature; weights `w` direction, gate times unit, feature; recurrence
    weights `r` direction, gate times unit, unit; the bias `b` direction, twice gate times unit: of `w`, then of `r`.
    Gates stand in the order of ONNX. Results are the outputs by time, direction, batch and unit, and the last states
    by direction, batch and unit. With `batch_first` batch comes first in data, states and results.
    """

    CELL: ClassVar[str]
    """The name of the cell in `CELLS`."""

    batch_first = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    w = operand_def(TensorType)
    r = operand_def(TensorType)
    b = operand_def(TensorType)
    lengths = operand_def(TensorType)
    states = var_operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        r: SSAValue | Operation,
        b: SSAValue | Operation,
        lengths: SSAValue | Operation,
        states: Sequence[SSAValue | Operation],
        *,
        direction: str = "forward",
        activations: str | None = None,
        alphas: Sequence[float] | None = None,
        betas: Sequence[float] | None = None,
        clip: float | None = None,
        input_forget: bool = False,
        linear_before_reset: bool = False,
        batch_first: bool = False,
    ):
        properties = _properties(direction, activations, alphas, betas, clip, input_forget, linear_before_reset)
        super().__init__([x, w, r, b, lengths, *states], {**properties, "batch_first": flag(batch_first)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        directions = constant(cls.require_functions(inference, cls.CELL))
        batch_first, gates = inference.flag("batch_first"), CELLS[cls.CELL][0]
        first, second, features = require_rank(inference, 0, 3)
        length, batch = (second, first) if batch_first else (first, second)
        units = require_rank(inference, 2, 3)[2]
        width = None if units is None else gates * units
        cls.require_shape(inference, 1, (directions, width, features))  # C5
        cls.require_shape(inference, 2, (directions, width, units))  # C5
        cls.require_shape(inference, 3, (directions, None if width is None else 2 * width))  # C5
        cls.require_states(inference, cls.CELL, 4, batch, units, batch_first)  # C1, C5, C6
        return _results(inference, cls.CELL, length, batch, units, batch_first)


@op_definition
class RNNOp(RecurrentLayerOp):
    """`h = f(x @ w + h @ r + b)`. Mirrors ONNX `RNN`.

    ```mlir
    %y, %h = relax.nn.rnn %x, %w, %r, %b, %lengths, %h0 activations = "relu"
    ```
    """

    name = "relax.nn.rnn"
    CELL: ClassVar[str] = "rnn"


@op_definition
class GRUOp(RecurrentLayerOp):
    """Gated recurrent units. Mirrors ONNX `GRU`; gates in the order update, reset, hidden.

    ```mlir
    %y, %h = relax.nn.gru %x, %w, %r, %b, %lengths, %h0 linear_before_reset
    ```
    """

    name = "relax.nn.gru"
    CELL: ClassVar[str] = "gru"


@op_definition
class LSTMOp(RecurrentLayerOp):
    """Long short-term memory. Mirrors ONNX `LSTM`; gates in the order input, output, forget, cell.

    ```mlir
    %y, %h, %c = relax.nn.lstm %x, %w, %r, %b, %lengths, %h0, %c0, %p direction = "bidirectional"
    ```

    The states are `h0`, `c0` and the peephole weights `p` by direction and `3 * units`: of the gates input, output
    and forget.
    """

    name = "relax.nn.lstm"
    CELL: ClassVar[str] = "lstm"


@op_definition
class RecurrenceOp(RecurrentOp):
    """The recurrence of a layer alone: what is left when the products of the data are made.

    ```mlir
    %y, %h = relax.nn.recurrence %gates, %r, %b, %lengths, %h0 cell = "gru"
    ```

    `gates` has the dimensions time, batch, and direction times gate times unit; `r` is transposed: direction, unit,
    gate times unit; `b` is the bias of `r`, by direction and gate times unit.

    C1: the cell is `rnn`, `gru` or `lstm`.
    """

    name = "relax.nn.recurrence"

    cell = prop_def(StringAttr)
    x = operand_def(TensorType)
    r = operand_def(TensorType)
    b = operand_def(TensorType)
    lengths = operand_def(TensorType)
    states = var_operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        r: SSAValue | Operation,
        b: SSAValue | Operation,
        lengths: SSAValue | Operation,
        states: Sequence[SSAValue | Operation],
        cell: str,
        properties: Mapping[str, Attribute] | None = None,
    ):
        """With the properties of a layer."""
        shared = {name: value for name, value in (properties or {}).items() if name != "batch_first"}
        super().__init__([x, r, b, lengths, *states], {**shared, "cell": StringAttr(cell)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        kind = inference.string("cell")
        if kind not in CELLS:
            inference.fail(f"cell expected one of {', '.join(CELLS)}, got {kind}")  # C1
        directions, gates = constant(cls.require_functions(inference, kind)), CELLS[kind][0]
        length, batch, _ = require_rank(inference, 0, 3)
        units = require_rank(inference, 1, 3)[1]
        width = None if units is None else gates * units
        cls.require_shape(inference, 0, (length, batch, None if width is None else directions * width))
        cls.require_shape(inference, 1, (directions, units, width))
        cls.require_shape(inference, 2, (directions, width))
        cls.require_states(inference, kind, 3, batch, units, False)
        return _results(inference, kind, length, batch, units, False)


@op_definition
class QuantizedRecurrenceOp(RecurrentOp):
    """A recurrence whose weights are bytes, and whose states are quantised before each product.

    ```mlir
    %y, %h, %c = relax.nn.quantized_recurrence %x, %r, %scale, %zero, %sums, %b, %lengths, %h0, %c0, %p cell = "lstm"
    ```

    The operands are those of `relax.nn.recurrence`, where the weights are `scale * (r - zero)`; scale and zero point
    are by direction and gate times unit, and so are `sums`, the sums of `r - zero` over the units. In each step of a
    direction the states `h` of all of the batch become integers from 0 to 255, as `DynamicQuantizeLinear` of ONNX does
    it: `point` is the integer that stands for 0, and `step` the distance of two of them. Products are summed as `i32`
    and multiplied by `step * scale`. Mirrors `DynamicQuantizeLSTM` of ONNX Runtime.

    C1: the cell is `rnn`, `lstm`, or `gru` with `linear_before_reset`.
    C2: the weights are `i8` or `ui8`, their zero points and sums `i32`, all else `f32`.
    """

    name = "relax.nn.quantized_recurrence"

    cell = prop_def(StringAttr)
    x = operand_def(TensorType)
    r = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = operand_def(TensorType)
    sums = operand_def(TensorType)
    b = operand_def(TensorType)
    lengths = operand_def(TensorType)
    states = var_operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        r: SSAValue | Operation,
        scale: SSAValue | Operation,
        zero: SSAValue | Operation,
        sums: SSAValue | Operation,
        b: SSAValue | Operation,
        lengths: SSAValue | Operation,
        states: Sequence[SSAValue | Operation],
        cell: str,
        *,
        direction: str = "forward",
        activations: str | None = None,
        alphas: Sequence[float] | None = None,
        betas: Sequence[float] | None = None,
        clip: float | None = None,
        input_forget: bool = False,
        linear_before_reset: bool = False,
    ):
        properties = _properties(direction, activations, alphas, betas, clip, input_forget, linear_before_reset)
        operands = [x, r, scale, zero, sums, b, lengths, *states]
        super().__init__(operands, {**properties, "cell": StringAttr(cell)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        kind = inference.string("cell")
        if kind not in CELLS or (kind == "gru" and not inference.flag("linear_before_reset")):
            inference.fail(f"cell expected one of rnn, lstm, gru with linear_before_reset, got {kind}")  # C1
        directions, gates = constant(cls.require_functions(inference, kind)), CELLS[kind][0]
        length, batch, _ = require_rank(inference, 0, 3)
        units = require_rank(inference, 1, 3)[1]
        width = None if units is None else gates * units
        cls.require_shape(inference, 0, (length, batch, None if width is None else directions * width))
        cls.require_shape(inference, 1, (directions, units, width))
        for index in range(2, 6):
            cls.require_shape(inference, index, (directions, width))
        if inference.tensor(1).dtype not in (None, i8, ui8):
            inference.fail(f"expected weights of i8 or ui8, got {inference.tensor(1).dtype}")  # C2
        for index, expected in ((0, f32), (2, f32), (3, i32), (4, i32)):
            if inference.tensor(index).dtype not in (None, expected):
                inference.fail(f"operand #{index} expected {expected}, got {inference.tensor(index).dtype}")  # C2
        others = [0, 5, *range(7, len(inference.operand_types))]
        cls.require_states(inference, kind, 6, batch, units, False, others)
        return _results(inference, kind, length, batch, units, False)
