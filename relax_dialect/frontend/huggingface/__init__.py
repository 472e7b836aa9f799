"""Folders of Hugging Face: `config.json`, weights as safetensors, and the language models that they describe.

::

    from relax_dialect import nn
    from relax_dialect.frontend.huggingface import read_folder
    from relax_dialect.frontend.huggingface.models import model_of

    module = nn.DecoderProgram(model_of(read_folder("SmolLM2-135M"))).module()
"""

from relax_dialect.frontend.huggingface.folder import HuggingFaceImportError, ModelFolder, read_folder

__all__ = ["HuggingFaceImportError", "ModelFolder", "read_folder"]
