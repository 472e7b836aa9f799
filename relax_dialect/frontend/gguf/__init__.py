"""GGUF files: metadata and tensors of one file, and the language models that they describe.

::

    from relax_dialect.frontend.gguf import read_file
    from relax_dialect.frontend.gguf.models import model_of

    module = model_of(read_file("model.gguf")).program(2048)  # `main(ids, past, keys0, values0, ...)`
"""

from relax_dialect.frontend.gguf.errors import GGUFImportError
from relax_dialect.frontend.gguf.file import GGUFFile, read_file

__all__ = ["GGUFFile", "GGUFImportError", "read_file"]
