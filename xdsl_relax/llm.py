"""Language models from files: `xr.llm.load("model.gguf").generate("Once upon")`."""

from lowering.generation.language_model import Generation, LanguageModel
from lowering.generation.sampling import Sampling

__all__ = ["Generation", "LanguageModel", "Sampling", "load"]

load = LanguageModel.load
"""The model of a GGUF file, whose weights stay in the file, or of a folder of Hugging Face, compiled."""
