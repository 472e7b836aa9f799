"""The metadata of the model in a GGUF file, by keys after the name of its architecture, and which of them were read.

What is not read and would change the logits is refused (`Options.check`), so that no file is computed otherwise than it
says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relax_dialect.frontend.gguf.file import GGUFFile, GGUFImportError, Value
from relax_dialect.nn.config import ExpertsConfig

_NEUTRAL: Mapping[str, Sequence[object]] = {
    "attention.causal": (True,),
    "attention.max_alibi_bias": (0,),
    "attention.kv_lora_rank": (0,),
    "attention.output_scale": (0, 1),
    "attention.q_lora_rank": (0,),
    "attention.shared_kv_layers": (0,),
    "attention.sliding_window": (0,),
    "attention.temperature_length": (0,),
    "attention.temperature_scale": (0,),
    "expert_chunk_feed_forward_length": (0,),
    "expert_gating_func": (0, 1),
    "expert_group_count": (0, 1),
    "expert_weights_scale": (0, 1),
    "logit_scale": (0, 1),
    "moe_latent_size": (0,),
    "nextn_predict_layers": (0,),
    "rope.scale_linear": (0, 1),
    "rope.scaling.alpha": (0, 1),
    "rope.scaling.attn_factor": (1,),
    "rope.scaling.factor": (0, 1),
    "rope.scaling.yarn_attn_factor": (1,),
    "rope.scaling.yarn_ext_factor": (-1, 1),
    "rope.scaling.yarn_log_multiplier": (0,),
    "router_logit_softcapping": (0,),
    "swiglu_clamp_exp": (0,),
    "swiglu_clamp_shexp": (0,),
    "swin_norm": (False,),
}
"""Options of some architectures, with the values with which they change nothing."""

_OF_WINDOWS: Mapping[str, str] = {
    "attention.key_length_swa": "attention.key_length",
    "attention.value_length_swa": "attention.value_length",
    "rope.dimension_count_swa": "rope.dimension_count",
    "rope.freq_base_swa": "rope.freq_base",
}
"""What layers with a window may have of their own, by what the others have."""


class Options:
    """The metadata of a model."""

    def __init__(self, file: GGUFFile):
        self.file, self.name = file, file.text("general.architecture")
        self._read: set[str] = set()

    def error(self, message: str) -> GGUFImportError:
        """What is wrong in this file."""
        return GGUFImportError(f"{self.file.path}: {message}")

    def key(self, key: str) -> str:
        """The whole key; it counts as read."""
        self._read.add(key)
        return f"{self.name}.{key}"

    def has(self, tensor: str) -> bool:
        """Whether the file has a tensor; in the first layer if its name begins with a point."""
        return (f"blk.0{tensor}" if tensor.startswith(".") else tensor) in self.file.tensors

    def rows(self, tensor: str) -> int | None:
        """The rows of the matrices of a tensor in the first layer, if it is there."""
        found = self.file.tensors.get(f"blk.0{tensor}")
        return None if found is None or len(found.shape) < 2 else found.shape[-2]

    def size(self, key: str, otherwise: int | None = None, most: int = 1 << 24, least: int = 1) -> int:
        """A positive integer; one for each layer is read if all are equal."""
        name = self.key(key)
        value = self.file.metadata.get(name)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
            if (value != value.flat[0]).any():
                raise self.error(f"the metadata {name} has several values: layers of different sizes are not supported")
            if least <= value.flat[0] <= most:
                return int(value.flat[0])
        return self.file.integer(name, otherwise, least, most)

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A positive number."""
        value = self.file.number(self.key(key), otherwise)
        if value <= 0:
            raise self.error(f"the metadata {self.name}.{key} expected a positive number, got {value}")
        return value

    def optional(self, key: str, otherwise: float = 0.0) -> float | None:
        """A number, if it is there and not zero."""
        return self.file.number(self.key(key), otherwise) or None

    def flag(self, key: str, otherwise: bool) -> bool:
        """Whether something is so."""
        value = self.file.metadata.get(self.key(key), otherwise)
        if not isinstance(value, bool):
            raise self.error(f"the metadata {self.name}.{key} expected true or false, got {value!r:.60}")
        return value

    @property
    def hidden(self) -> int:
        """The features between layers."""
        return self.size("embedding_length")

    @property
    def layers(self) -> int:
        """The number of layers."""
        return self.size("block_count", most=1 << 10)

    def inner(self) -> int:
        """The inner features of feed-forward layers."""
        return self.size("feed_forward_length")

    def experts(self, *, norm: bool = True, shared: int = 0, has_gate: bool = False) -> ExpertsConfig | None:
        """What feed-forward layers are, if they are experts.

        `norm` says whether the probabilities of the chosen ones are scaled, unless the file does. `shared` are the
        inner features of an expert that all tokens have, which may have a gate.
        """
        count = self.size("expert_count", 0, 1 << 12, 0)
        if not count:
            return None
        used = self.size("expert_used_count", None, count)
        # Old files do not say the inner features of experts.
        inner = self.size("expert_feed_forward_length", self.rows(".ffn_up_exps.weight"))
        return ExpertsConfig(count, used, inner, self.flag("expert_weights_norm", norm), shared, has_gate)

    def windows(self, usual: Callable[[int], bool], otherwise: int = 0) -> tuple[int | None, ...]:
        """How many positions each layer sees, if not all: those with a window, unless the file says which have one.

        `sliding_window_pattern` is a truth value for each layer, or a number of layers of which the last has no window.
        """
        window = self.size("attention.sliding_window", otherwise, 1 << 31, 0)
        pattern = self.file.metadata.get(self.key("attention.sliding_window_pattern"))
        if not window:
            return ()
        if isinstance(pattern, np.ndarray) and pattern.dtype.kind in "biu" and pattern.size >= self.layers:
            has_window = [bool(each) for each in pattern.ravel()]
        elif pattern is None:
            has_window = [usual(layer) for layer in range(self.layers)]
        else:
            every = self.size("attention.sliding_window_pattern", least=0)
            has_window = [not every or layer % every < every - 1 for layer in range(self.layers)]
        return tuple(window if each else None for each in has_window[: self.layers])

    def check(self) -> None:
        """`GGUFImportError` for options that were not read and are not neutral."""
        for key, neutral in _NEUTRAL.items():
            value = self.file.metadata.get(f"{self.name}.{key}")
            if key in self._read or value is None or _all_in(value, neutral):
                continue
            if key == "attention.sliding_window" and isinstance(value, int) and value >= self.size("context_length"):
                continue
            raise self.error(
                f"the metadata {self.name}.{key} = {value!r:.60} is not supported for the architecture {self.name!r}"
            )
        for key, usual in _OF_WINDOWS.items():
            value, other = (self.file.metadata.get(f"{self.name}.{each}") for each in (key, usual))
            if key not in self._read and value is not None and other is not None and value != other:
                raise self.error(f"the metadata {self.name}.{key} = {value!r:.60} is not supported, other than {usual}")


def _all_in(value: Value, neutral: Sequence[object]) -> bool:
    values: list[object] = value.ravel().tolist() if isinstance(value, np.ndarray) else [value]
    return all(each in neutral for each in values)
