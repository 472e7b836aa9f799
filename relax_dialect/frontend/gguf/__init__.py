"""GGUF files: metadata and tensors of one file, and the language models that they describe.

::

    from relax_dialect import nn
    from relax_dialect.frontend.gguf import read_file
    from relax_dialect.frontend.gguf.models import model_of

    module = nn.DecoderProgram(model_of(read_file("model.gguf"))).module()
"""

from relax_dialect.frontend.gguf.file import GGUFFile, GGUFImportError, read_file

__all__ = ["GGUFFile", "GGUFImportError", "read_file"]
