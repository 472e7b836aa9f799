"""Modules: trees of layers whose leaves are parameters, weights with names.

The layers of this file have no other state: matrix products with weights, look-up, normalisation, feed-forward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.builder import BlockBuilder, BuilderError, Expr, op, tensor
from relax_dialect.builder.calls import CallEmitter
from relax_dialect.builder.emitter import Emitter, InfoLike
from relax_dialect.ops.datatype import DequantizeBlocksOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.block_arrays import ENCODERS, BlockArray, encode_rows
from tir_dialect.block_formats import FORMATS
from tir_dialect.dims import Dim
from tir_dialect.dtypes import from_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Elements: TypeAlias = "NDArray[Any] | BlockArray"


class StateError(ValueError):
    """Weights do not fit the parameters of a module; the message says which."""


class Parameter:
    """A weight: a shape, and elements once they are loaded.

    Elements are arrays, or blocks (`BlockArray`), which stay packed in the program.
    """

    def __init__(self, shape: Sequence[int]):
        self.shape = tuple(shape)
        self.name = ""
        """Its name in the model, `"layers.0.mlp.up_proj.weight"`, if `Module.name_parameters` has named it."""
        self.elements: Elements | None = None
        self._bound: Expr | None = None

    def __repr__(self) -> str:
        return f"Parameter({list(self.shape)})"

    def load(self, elements: Elements) -> None:
        """Gives it elements of its shape; `StateError` for others. What is not contiguous is copied."""
        if tuple(elements.shape) != self.shape:
            raise StateError(f"'{self.name}' expected the shape {list(self.shape)}, got {list(elements.shape)}")
        if isinstance(elements, BlockArray):
            self.elements = BlockArray(np.ascontiguousarray(elements.packed), elements.block_format)
        else:
            self.elements = np.ascontiguousarray(elements)

    def stored(self) -> Expr:
        """The constant in the function that is open: bytes if it is packed, else numbers.

        A parameter without elements is a weight that is kept outside of the module, of `f32`.
        """
        if self._bound is not None:
            return self._bound
        builder = current_builder()
        if self.elements is None:
            return builder.weight(self.name or "weight", tensor(self.shape))
        array = self.elements.packed if isinstance(self.elements, BlockArray) else self.elements
        return builder.const(array, from_numpy(array.dtype), self.name or None)

    @property
    def type(self) -> TensorType:
        """The type of what is stored."""
        if self.elements is None:
            return tensor(self.shape)
        array = self.elements.packed if isinstance(self.elements, BlockArray) else self.elements
        return TensorType(array.shape, from_numpy(array.dtype))

    @property
    def signature(self) -> tuple[TensorType, str]:
        """The same for parameters whose numbers are computed in the same way."""
        return self.type, self.elements.block_format.name if isinstance(self.elements, BlockArray) else ""

    @contextmanager
    def bound(self, value: Expr) -> Generator[None]:
        """Meanwhile `value` is what is stored, such as a parameter of a function."""
        self._bound = value
        try:
            yield
        finally:
            self._bound = None

    def value(self) -> Expr:
        """The numbers in `f32`, in the function that is open."""
        return self.decoded(self.stored())

    def decoded(self, stored: Expr) -> Expr:
        """The numbers of `stored`, or of some rows of it."""
        if isinstance(self.elements, BlockArray):
            decode = DequantizeBlocksOp(stored.value, self.elements.block_format.name)
            return current_builder().emit(decode)
        return stored if str(stored.dtype) == "f32" else stored.astype("f32")


def current_builder() -> CallEmitter:
    """The builder whose function is open."""
    builder = Emitter.current()
    if not isinstance(builder, CallEmitter):
        raise BuilderError("expected a builder of functions")
    return builder


def known_shape(x: Expr) -> tuple[Dim, ...]:
    """The dimensions of a tensor; `BuilderError` if not all are known."""
    info = x.type
    if not isinstance(info, TensorType) or info.known_dims is None:
        raise BuilderError(f"expected a tensor of known dimensions, got {info}")
    return info.known_dims


class Module(ABC):
    """A layer. Attributes that are parameters or modules are its parts, and their names those of the attributes."""

    @abstractmethod
    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Emits the layer into the function that is open."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Emits the layer into the function that is open."""
        return self.forward(*inputs, **options)

    def children(self) -> Iterator[tuple[str, Module | Parameter]]:
        """Its parts by name, in the order in which they were set."""
        for name, value in vars(self).items():
            if isinstance(value, Module | Parameter):
                yield name, value

    def __repr__(self) -> str:
        parts = [f"  {name}: {each!r}".replace("\n", "\n  ") for name, each in self.children()]
        return "\n".join([f"{type(self).__name__}(", *parts, ")"]) if parts else f"{type(self).__name__}()"

    def variant(self) -> Hashable:
        """What it computes besides its weights: equal for modules that can be one function (`Functions`)."""
        return None

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Its parameters and those of its parts; one that several have is there under its first name."""
        seen = set[int]()
        yield from self._parameters(prefix, seen)

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """The modules that it consists of, with their parts, by the names of their parameters without the last one."""
        for name, child in self.children():
            if isinstance(child, Module):
                yield f"{prefix}{name}", child
                yield from child.named_modules(f"{prefix}{name}.")

    def _parameters(self, prefix: str, seen: set[int]) -> Iterator[tuple[str, Parameter]]:
        for name, child in self.children():
            if id(child) in seen:
                continue
            seen.add(id(child))
            if isinstance(child, Module):
                yield from child._parameters(f"{prefix}{name}.", seen)
            else:
                yield f"{prefix}{name}", child

    def name_parameters(self) -> None:
        """Names the weights of a program: by their positions in this module, which is the whole model."""
        for name, parameter in self.named_parameters():
            parameter.name = name

    def load_state_dict(self, state: Mapping[str, Elements], *, strict: bool = True) -> None:
        """Gives all parameters elements, which are not copied.

        `StateError` for names that are missing, for those that are too many (if `strict`), and for wrong shapes.
        """
        self.name_parameters()
        parameters = dict(self.named_parameters())
        missing, unknown = _missing(parameters, state), _missing(state, parameters) if strict else []
        if missing or unknown:
            raise StateError("; ".join([*_listed("missing", missing), *_listed("unknown", unknown)]))
        for name, parameter in parameters.items():
            parameter.load(state[name])

    def quantize(
        self, name: str, *, leave_out: Sequence[str] = (), min_elements: int = 4096, max_error: float = 0.5
    ) -> dict[str, float]:
        """Packs loaded matrices, and stacks of them, into blocks along their rows; gives the relative error of each.

        `name` is that of the format. Left as they are: what a pattern of `leave_out` matches, as a shell would; fewer
        elements than `min_elements`; rows that are no whole blocks; numbers that are not finite or have a greater error
        than `max_error`; and what is packed already. The error is the root of the mean squared one, relative to that of
        the elements. `ValueError` for a format that has no encoder.
        """
        if name not in ENCODERS:
            raise ValueError(f"there is no encoder of {name!r}, only of {', '.join(ENCODERS)}")
        errors: dict[str, float] = {}
        for path, parameter in self.named_parameters():
            elements = parameter.elements
            if not isinstance(elements, np.ndarray) or any(fnmatchcase(path, pattern) for pattern in leave_out):
                continue
            if elements.ndim < 2 or elements.size < min_elements or elements.shape[-1] % FORMATS[name].elements:
                continue
            if np.isfinite(elements).all():
                blocks, error = encode_rows(elements, FORMATS[name])
                if error <= max_error:
                    parameter.load(blocks)
                    errors[path] = error
        return errors


def _missing(wanted: Iterable[str], there: Mapping[str, Any]) -> list[str]:
    return [name for name in wanted if name not in there]


def _listed(what: str, names: Sequence[str]) -> list[str]:
    """The first few names."""
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"{what}: {shown}"] if names else []


ModuleT = TypeVar("ModuleT", bound=Module)


class ModuleList(Module, Generic[ModuleT]):
    """Modules one after the other, named by their numbers; `forward` passes a value through all of them."""

    def __init__(self, modules: Iterable[ModuleT]):
        self.modules = list(modules)

    def children(self) -> Iterator[tuple[str, Module | Parameter]]:
        return ((str(number), module) for number, module in enumerate(self.modules))

    def __iter__(self) -> Iterator[ModuleT]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def forward(self, x: Any, **options: Any) -> Any:
        """The value after the last one."""
        for module in self.modules:
            x = module(x, **options)
        return x


class Functions:
    """Functions of a program, one for modules that differ in their weights only: a model with many equal layers is
    compiled as one layer that is called many times.
    """

    def __init__(self, builder: BlockBuilder):
        self._builder = builder
        self._names: dict[Hashable, str] = {}

    def define(self, module: Module, params: Mapping[str, InfoLike], name: str, *, pure: bool = True) -> None:
        """Adds the function of a module, unless there is one: of the module's inputs, then of its weights."""
        key = self._key(module)
        if key in self._names:
            return
        unique = self._builder.get_unique_name(name)
        weights = dict(module.named_parameters())
        types = {f"w{number}": each.type for number, each in enumerate(weights.values())}
        scope = self._builder.function(unique, {**params, **types}, private=True, pure=pure)
        with scope as function, ExitStack() as stack:
            inputs = function.params[: len(params)]
            for parameter, value in zip(weights.values(), function.params[len(params) :], strict=True):
                stack.enter_context(parameter.bound(value))
            self._builder.emit_func_output(module(*inputs))
        self._names[key] = unique

    def call(self, module: Module, *inputs: Expr) -> Expr:
        """Calls the function of a module with its weights."""
        weights = [parameter.stored() for _, parameter in module.named_parameters()]
        return self._builder.call(self._names[self._key(module)], *inputs, *weights)

    def _key(self, module: Module) -> Hashable:
        return type(module), module.variant(), tuple((name, each.signature) for name, each in module.named_parameters())


def export(
    module: Module | Callable[..., Any], params: Mapping[str, InfoLike], name: str = "main", *, pure: bool = True
) -> ModuleOp:
    """A program of one function that applies a module to parameters of these types; dimensions may be symbols.

    A module that writes into a parameter, as a cache is written, is not `pure`.
    """
    if isinstance(module, Module):
        module.name_parameters()
    builder = BlockBuilder()
    with builder.function(name, params, pure=pure) as function:
        builder.emit_func_output(module(*function.params))
    return builder.get()


ACTIVATIONS: Mapping[str, Callable[[Expr], Expr]] = {
    "silu": op.nn.silu,
    "gelu": op.nn.gelu,
    "gelu_new": op.nn.gelu_tanh,
    "gelu_pytorch_tanh": op.nn.gelu_tanh,
    "relu": op.nn.relu,
}
"""Activations by the names that `config.json` of Hugging Face has."""


class Linear(Module):
    """`x W^T + b`: weights are `(outputs, inputs)`, as in checkpoints."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = False):
        self.weight = Parameter((outputs, inputs))
        self.bias = Parameter((outputs,)) if bias else None
        self.input_order: Parameter | None = None
        """The input that each column of the weights multiplies, if it is not that of the same number."""

    def forward(self, x: Expr) -> Expr:
        """The product with each row of the weights."""
        if self.input_order is not None:
            x = op.take(x, self.input_order.stored(), axis=-1)
        return applied(self.weight, x, self.bias)


def applied(weight: Parameter, x: Expr, bias: Parameter | None = None) -> Expr:
    """`x W^T + b`."""
    y = x @ op.permute_dims(weight.value())
    return y if bias is None else y + bias.value()


class Embedding(Module):
    """Rows of a table at indices; packed rows are taken before they are decoded."""

    def __init__(self, count: int, features: int):
        self.weight = Parameter((count, features))

    def forward(self, indices: Expr) -> Expr:
        """The rows."""
        return self.weight.decoded(op.take(self.weight.stored(), indices, axis=0))

    def logits(self, x: Expr) -> Expr:
        """Products with all rows: the output head of a model that shares its table."""
        return applied(self.weight, x)


class RMSNorm(Module):
    """Division by the root of the mean square, then weights (Zhang and Sennrich, 2019)."""

    def __init__(self, features: int, epsilon: float = 1e-5):
        self.weight = Parameter((features,))
        self._epsilon = epsilon

    def forward(self, x: Expr) -> Expr:
        """The last axis normalised."""
        return op.nn.rms_norm(x, self.weight.value(), axes=[-1], epsilon=self._epsilon)


class LayerNorm(Module):
    """Division of what deviates from the mean by the standard deviation, then weights and bias (Ba et al., 2016)."""

    def __init__(self, features: int, epsilon: float = 1e-5, *, bias: bool = True):
        self.weight = Parameter((features,))
        self.bias = Parameter((features,)) if bias else None
        self._features, self._epsilon = features, epsilon

    def forward(self, x: Expr) -> Expr:
        """The last axis normalised."""
        bias = op.zeros((self._features,), "f32") if self.bias is None else self.bias.value()
        return op.nn.layer_norm(x, self.weight.value(), bias, axes=[-1], epsilon=self._epsilon)


class HeadLayerNorm(Module):
    """The layer norm of each head, with weights of its own and no bias; of `(tokens, heads, features)`."""

    def __init__(self, heads: int, features: int, epsilon: float = 1e-5):
        self.weight = Parameter((heads, features))
        self._features, self._epsilon = features, epsilon

    def forward(self, x: Expr) -> Expr:
        """The last axis normalised."""
        one, zero = op.ones((self._features,), "f32"), op.zeros((self._features,), "f32")
        return op.nn.layer_norm(x, one, zero, axes=[-1], epsilon=self._epsilon) * self.weight.value()


class MLP(Module):
    """`down(activation(up(x)))`."""

    def __init__(
        self, features: int, inner: int, activation: Callable[[Expr], Expr] = op.nn.gelu, *, bias: bool = True
    ):
        self.up_proj, self.down_proj = Linear(features, inner, bias=bias), Linear(inner, features, bias=bias)
        self._activation = activation

    def forward(self, x: Expr) -> Expr:
        """The same shape."""
        return self.down_proj(self._activation(self.up_proj(x)))


class GatedMLP(Module):
    """`down(activation(gate(x)) * up(x))` (Shazeer, 2020)."""

    def __init__(
        self, features: int, inner: int, activation: Callable[[Expr], Expr] = op.nn.silu, *, bias: bool = False
    ):
        self.gate_proj, self.up_proj = (Linear(features, inner, bias=bias) for _ in range(2))
        self.down_proj = Linear(inner, features, bias=bias)
        self._activation = activation

    def forward(self, x: Expr) -> Expr:
        """The same shape."""
        return self.down_proj(self._activation(self.gate_proj(x)) * self.up_proj(x))
