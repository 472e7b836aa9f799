"""What is wrong with a GGUF file."""


class GGUFImportError(ValueError):
    """The file is damaged, or has something that is not supported; the message says what, and where."""
