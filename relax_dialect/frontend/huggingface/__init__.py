"""Folders of Hugging Face: `config.json`, weights as safetensors, and the language models that they describe.

::

    from relax_dialect.frontend.huggingface import model_of, read_folder

    module = model_of(read_folder("SmolLM2-135M")).program(2048)  # `main(ids, past, keys0, values0, ...)`
"""

from relax_dialect.frontend.huggingface.folder import HuggingFaceImportError, ModelFolder, read_folder
from relax_dialect.frontend.huggingface.models import model_of

__all__ = ["HuggingFaceImportError", "ModelFolder", "model_of", "read_folder"]
