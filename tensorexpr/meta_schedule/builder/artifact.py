"""The files that `LocalBuilder` makes: object code with what it takes to call it, and the program that it was made of."""

from __future__ import annotations

import os
from pathlib import Path

from ...dataclass import dataclass
from ...errors import TuningError
from ...tune.measure.compiled import CompiledCandidate
from ...tune.measure.protocol import Frame, FrameDecoder, encode

_TYPE = "artifact"
_MAX_BYTES = 512 << 20


@dataclass(frozen=True)
class Artifact:
    """What is in a file.

    Args:
        compiled: object code, the arrays that it takes, and messages of its errors.
        module: the program, as `tir.serialize.module_graph` writes it.
        target: what it is for.
    """

    compiled: CompiledCandidate
    module: str
    target: str


def write_artifact(folder: Path, number: int, artifact: Artifact) -> str:
    """Write a file to a folder of its own in a folder; its path."""
    # a folder for each, as `remove_build_dir` removes both
    path = folder / f"program{number}" / "program.bin"
    path.parent.mkdir()
    header = {"type": _TYPE, "module": artifact.module, "target": artifact.target, **artifact.compiled.header()}
    path.write_bytes(encode(Frame(header, (artifact.compiled.object_code,))))
    return str(path)


def read_artifact(path: str) -> Artifact:
    """What is in a file.

    Raises:
        TuningError: if it is no such file.
    """
    try:
        # asked before it is read: the file may be anyone's
        if os.path.getsize(path) > _MAX_BYTES:
            raise TuningError(f"{path} has more than {_MAX_BYTES} bytes")
        frames = list(FrameDecoder().feed(Path(path).read_bytes()))
        frame = frames[0] if len(frames) == 1 else None
        if frame is None or frame.type != _TYPE or len(frame.blobs) != 1:
            raise TuningError("it holds no single program")
        return Artifact(CompiledCandidate.from_frame(frame), frame.header["module"], frame.header["target"])
    except (OSError, TuningError, KeyError, TypeError, ValueError) as error:
        raise TuningError(
            f"{path} is no program that LocalBuilder built: {str(error)[:200]}. Programs that a builder of yours built are measured by a "
            "runner of yours, or by LocalRunner(f_run_evaluator=...)"
        ) from error
