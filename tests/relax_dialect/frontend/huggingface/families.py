"""Every family of language models with small random weights, as a folder, against `transformers`.

::

    pip install torch transformers safetensors
    python -m tests.relax_dialect.frontend.huggingface.families [NAME ...]

Prints the largest error of the logits, relative to the largest logit. `transformers` is not installed for the tests.
"""

import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from lowering import build
from relax_dialect.frontend.huggingface import read_folder
from relax_dialect.frontend.huggingface.models import model_of
from relax_dialect.nn import DecoderProgram
from tests.support.decoders import Caches
from vm_dialect import VirtualMachine

SIZES: Mapping[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.3,
}
LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 1000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 16}
LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 1000.0,
    "short_factor": [1.0, 1.25, 1.5, 2.0, 2.0, 2.5, 3.0, 3.5],
    "long_factor": [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 16.0, 16.0],
}
FALCON = {"alibi": False, "bias": False}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 48}
CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama 3": ("Llama", {"rope_parameters": LLAMA_3, "head_dim": 24, "tie_word_embeddings": True}),
    "llama, linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0}}),
    "llama, a part that is not rotated": (
        "Llama",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.25}},
    ),
    "mistral": ("Mistral", {"sliding_window": 5}),
    "mixtral": ("Mixtral", {"num_local_experts": 5, "num_experts_per_tok": 2}),
    "qwen2": ("Qwen2", {"rope_parameters": YARN}),
    "qwen2, magnitudes": ("Qwen2", {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3}}),
    "qwen2, dynamic": ("Qwen2", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1000.0, "factor": 4.0}}),
    "qwen2, windows": ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2}),
    "qwen2_moe": ("Qwen2Moe", {**EXPERTS, "shared_expert_intermediate_size": 32, "decoder_sparse_step": 2}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen3_moe": ("Qwen3Moe", {**EXPERTS, "head_dim": 16, "norm_topk_prob": True, "mlp_only_layers": [1]}),
    "qwen3_moe, windows": (
        "Qwen3Moe",
        {**EXPERTS, "head_dim": 16, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2},
    ),
    "gpt_oss": (
        "GptOss",
        {
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "sliding_window": 4,
            "head_dim": 16,
            "rope_parameters": {**YARN, "truncate": False},
        },
    ),
    "smollm3": ("SmolLM3", {}),
    "granite": (
        "Granite",
        {
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.2,
            "logits_scaling": 4.0,
        },
    ),
    "granitemoe": ("GraniteMoe", {"num_local_experts": 5, "num_experts_per_tok": 2, "logits_scaling": 4.0}),
    "granitemoeshared": (
        "GraniteMoeShared",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "shared_intermediate_size": 32},
    ),
    "olmo2": ("Olmo2", {}),
    "olmoe": ("Olmoe", EXPERTS),
    "olmoe, clipped": ("Olmoe", {**EXPERTS, "clip_qkv": 0.5}),
    "phi3": ("Phi3", {"sliding_window": 6}),
    "phi3, longrope": ("Phi3", {"rope_parameters": LONG_ROPE, "original_max_position_embeddings": 32}),
    "phi3, longrope, long": ("Phi3", {"rope_parameters": LONG_ROPE, "original_max_position_embeddings": 8}),
    "gemma": ("Gemma", {"head_dim": 16}),
    "gemma, gelu": ("Gemma", {"head_dim": 16, "hidden_act": "gelu"}),
    "gemma2": ("Gemma2", {"head_dim": 16, "sliding_window": 4, "query_pre_attn_scalar": 20}),
    "gemma3_text": ("Gemma3", {"head_dim": 16, "sliding_window": 4, "query_pre_attn_scalar": 20}),
    "stablelm": ("StableLm", {"use_qkv_bias": True, "partial_rotary_factor": 0.5}),
    "stablelm, parallel": ("StableLm", {"use_parallel_residual": True}),
    "stablelm, norms of heads": ("StableLm", {"qk_layernorm": True, "partial_rotary_factor": 0.5}),
    "phi": ("Phi", {"partial_rotary_factor": 0.5}),
    "phi, norms of heads": ("Phi", {"qk_layernorm": True}),
    "phi, tied": ("Phi", {"tie_word_embeddings": True}),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 64}),
    "falcon": ("Falcon", {"multi_query": True, "new_decoder_architecture": False, "alibi": False, "bias": False}),
    "falcon, heads of their own": ("Falcon", {**FALCON, "multi_query": False, "bias": True}),
    "falcon, one after the other": ("Falcon", {**FALCON, "parallel_attn": False}),
    "falcon, new": ("Falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon, new with one norm": (
        "Falcon",
        {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
    ),
}


def error_of(case: str) -> float:
    """The largest error of the logits of a sequence that is given in two steps, relative to the largest logit."""
    torch, transformers = import_module("torch"), import_module("transformers")
    name, options = CASES[case]
    is_text = "TextConfig" if name == "Gemma3" else "Config"
    config = getattr(transformers, f"{name}{is_text}")(**{**SIZES, **options})
    torch.manual_seed(0)
    suffix = "LMHeadModel" if name == "GPT2" else "ForCausalLM"
    model = getattr(transformers, f"{name}{suffix}")(config).eval().float()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) / 8)
            elif "embed" not in parameter_name:
                parameter.copy_(torch.randn_like(parameter) * 1.5 / parameter.shape[-1] ** 0.5)
        ids = torch.arange(11) * 7 % 128
        expected = model(ids[None]).logits[0].double().numpy()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        ours = model_of(read_folder(folder), context=16)
        program = DecoderProgram(ours, functions=("every",))
        every, caches = VirtualMachine(build(program.module()))["every"], Caches(program, 16, fill=np.nan)
        steps = [np.from_dlpack(every(ids[a:b].numpy(), *caches.arguments(a))) for a, b in ((0, 7), (7, 11))]
    found = np.concatenate(steps)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    for each in sys.argv[1:] or CASES:
        print(f"{each:20} {error_of(each):.1e}", flush=True)
