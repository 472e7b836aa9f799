"""Programs on several processes of MPI, more than the machine may have processors; each run ends within a time."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType

from lowering.generation.language_model import LanguageModel
from tests.support import decoders
from xdsl_relax.cli.relax_run import main

ROOT = Path(__file__).parents[2]
SECONDS = 240
"""What no run takes: after it the processes are killed."""


def mpiexec(workers: int, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command on so many workers."""
    found = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    assert found is not None, "the extra test has mpich"
    return subprocess.run(
        [found, "-n", str(workers), sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=ROOT,
        env={
            "PYTHONPATH": str(ROOT),
            "RELAX_NUM_THREADS": "1",
            "HOME": str(Path.home()),
            "PATH": "/usr/bin:/bin",
            **environment,
        },
    )


EXCHANGES = "large+sums+messages+begun+mixed+other_calls"
WELL = [
    (f"collectives+{EXCHANGES}", 3),
    pytest.param("collectives", 4, marks=pytest.mark.slow),
    (
        "large+sums+messages+begun+nothing_between+other_calls+sharded+kernels+heads+several_meshes+named_weights+pipeline",
        2,
    ),  # starting ranks takes longer than what they do
    *(pytest.param("models", workers, marks=pytest.mark.slow) for workers in (1, 2, 4)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("case", "workers"), WELL)
def test_all_ranks_end_well(case: str, workers: int):
    done = mpiexec(workers, "-m", "tests.mpi.checks", case)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is done") == workers


def test_a_small_model():
    done = mpiexec(2, "-m", "tests.mpi.checks", "small_model")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is done") == 2


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("disagree", "RuntimeError: workers disagree: rank 0 is at allreduce by sum of float32[1, 6], rank 1 at"),
        ("other_program", "RuntimeError: workers disagree: rank 0 is at the program "),
        ("other_mesh", "ValueError: the mesh [x = 3] has 3 workers, but MPI has started 2"),
        (
            "meshes_differ",
            "RuntimeError: workers disagree: rank 0 is at the mesh [x = 2], rank 1 at the mesh [x = 2, y = 1]",
        ),
        ("other_weights", "RuntimeError: workers disagree: rank 0 is at the weights "),
        ("one_fails", "rank 1: ValueError: no memory for the weights"),
        ("killed", "signal 9"),
        ("leaves_before", "RuntimeError: rank 1 has ended before it joined the mesh"),
        ("fails_before", "RuntimeError: rank 1 has ended before it joined the mesh"),
        ("leaves", "rank 1: the process has ended, and others wait for it in an exchange"),
        ("leaves_collectives", "RuntimeError: rank 1 has ended, and will not come to allreduce by sum of float32[3]"),
        ("leaves_messages", "rank 1: the process has ended, and others wait for it in an exchange"),
        ("late", "rank 0: TimeoutError: other workers did not come to allreduce by sum of float32[3, 6] within 1 sec"),
    ],
)
def test_a_fault_of_one_rank_ends_all(case: str, message: str):
    done = mpiexec(2, "-m", "tests.mpi.checks", case)
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
    assert "is done" not in done.stdout


PROGRAM = ["-m", "xdsl_relax.cli.relax_run", "examples/tensor_parallel.mlir"]
INPUTS = ["--random", "f32[4,64]", "f32[64,256]", "f32[256,64]"]


def test_relax_run():
    """Only rank 0 prints, and it prints the same whatever the number of workers."""
    done = [mpiexec(workers, *PROGRAM, "--mesh", str(workers), *INPUTS) for workers in (1, 2)]
    assert [each.returncode for each in done] == [0, 0], done[1].stderr
    outputs = [line for each in done for line in each.stdout.splitlines() if line.startswith("  output")]
    assert len(outputs) == 2
    assert outputs[0][:30] == outputs[1][:30]


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["llama", "qwen2moe"])
def test_a_language_model(tmp_path: Path, architecture: str):
    """Two ranks write the text that one process writes; rank 0 prints it."""
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path, architecture, GGMLQuantizationType.Q8_0)
    alone = LanguageModel.load(path).generate("abc", max_tokens=6)
    done = mpiexec(2, *PROGRAM[:2], str(path), "--mesh", "2", "--prompt", "abc", "--max-tokens", "6")
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone.text + "\n"
    assert all(f"rank {rank}: prompt: 1 tokens" in done.stderr for rank in (0, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mesh", "x=2,y=2", "--prompt", "a"), "--mesh of a language model expected a number of workers, got x=2,y"),
        (("--mesh", "2", "--chat"), "--mesh of a language model goes with --prompt and --ask only"),
        (("--timeout", "2", "--prompt", "a"), "--timeout says how long the workers of --mesh wait"),
    ],
)
def test_a_language_model_refuses(
    tmp_path: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path)
    assert main([str(path), *options]) == 1
    assert message in capsys.readouterr().err


def test_relax_run_refuses_another_mesh():
    done = mpiexec(2, *PROGRAM, "--mesh", "y=2", *INPUTS)
    assert done.returncode != 0
    assert "--mesh expected sizes for the axes x, got y=2" in done.stderr


@pytest.mark.slow
def test_relax_run_tunes_on_ranks(tmp_path: Path):
    """Rank 1 searches, rank 0 keeps what it has found; an error of rank 0 ends both."""
    program = [*PROGRAM[:2], "examples/mvp.mlir"]
    environment = {"RELAX_TUNING_FILE": str(tmp_path / "tuning.json")}
    done = mpiexec(2, *program, "--random", "--tune", "1", "--tune-on-ranks", **environment)
    assert done.returncode == 0, done.stderr
    assert "tried" in done.stdout
    assert (tmp_path / "tuning.json").exists()
    done = mpiexec(2, *program, "--random", "f32[1,2,3]", "--tune", "1", "--tune-on-ranks", **environment)
    assert done.returncode != 0
    assert "rank 0: " in done.stderr
