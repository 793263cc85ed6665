"""Start the processes of one training on this machine, and watch over them: when one is lost, the others end too.

Nothing here loads torch. Each process finds its place in the environment variables that torchrun sets as well.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from nmt.errors import TrainingError

LOST = 3  # exit status of a process that has lost contact with another: it isn't at fault
FINE = (0, 128 + signal.SIGINT, 128 + signal.SIGTERM)
GRACE = 10.0  # seconds that the others have to end by themselves
POLL = 0.05  # seconds between looks
MEETING = "NMT_MEETING"
WHERE = signal.SIGUSR1  # asks a process that hangs where it is
ANSWER = 0.3  # seconds for telling it


@dataclass(frozen=True)
class Seat:
    """A process's place among those that were started together."""

    rank: int
    size: int
    local: int = 0
    """Its number on its machine: the GPU that it takes."""
    here: int = 1
    """How many of them are on its machine."""
    meeting: str = "env://"
    """Where they find each other, as torch.distributed names it."""

    @property
    def watched(self) -> bool:
        """Whether `launch` has started it, and holds the other end of its standard input."""
        return self.meeting.startswith("file:")

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Seat | None:
        """The place that torchrun, `launch`, or whoever sets the same variables gave; None for a process alone.

        Raises TrainingError for variables that make no sense.
        """
        try:
            rank, size = (int(environment.get(name) or 0) for name in ("RANK", "WORLD_SIZE"))
            local, here = int(environment.get("LOCAL_RANK") or rank), int(environment.get("LOCAL_WORLD_SIZE") or 1)
        except ValueError as error:
            raise TrainingError(f"RANK, WORLD_SIZE, LOCAL_RANK or LOCAL_WORLD_SIZE is no number: {error}") from error
        if size < 2:
            return None
        if not 0 <= rank < size:
            raise TrainingError(f"RANK={rank} with WORLD_SIZE={size}: ranks go from 0 to {size - 1}", "use torchrun")
        return cls(rank, size, local, here, environment.get(MEETING, "env://"))


def launch(command: Sequence[str], processes: int, environment: Mapping[str, str], grace: float = GRACE) -> int:
    """Run `command` so often on this machine, as the ranks of one group; returns the exit status of rank 0.

    Rank 0 has this process's output; what the others write is kept for the message, should one of them fail first.
    SIGINT and SIGTERM are passed on. Once rank 0 has ended or any other has failed, the rest get `grace` seconds; who
    hangs is asked where, and killed. Raises TrainingError naming the rank that failed, unless rank 0 has itself told
    why it ended.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nmt-")))
        ranks: list[subprocess.Popen[bytes]] = []
        signals = stack.enter_context(_signals_passed_to(ranks))
        for rank in range(processes):
            seat = Seat(rank, processes, rank, processes, f"file://{folder / 'meeting'}")
            ranks.append(stack.enter_context(_started(command, seat, folder, environment)))
        ended, killed = _watch(ranks, signals, grace)
        return _verdict(ended, killed, folder)


def heed_launcher(pipe: int, grace: float = 6 * GRACE) -> None:
    """Let this process not outlive the one that holds the other end of `pipe`: it is asked to end, then killed.

    It also tells where it is, on its standard error, when it gets WHERE.
    """
    faulthandler.register(WHERE, all_threads=False)

    def wait() -> None:
        with suppress(OSError):
            while os.read(pipe, 1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def _variables(seat: Seat, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a rank; what passes between the processes stays on this machine."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    sockets = {"GLOO_SOCKET_IFNAME": loopback, "NCCL_SOCKET_IFNAME": loopback} if loopback else {}
    return {
        **sockets,
        **environment,
        "RANK": str(seat.rank),
        "WORLD_SIZE": str(seat.size),
        "LOCAL_RANK": str(seat.local),
        "LOCAL_WORLD_SIZE": str(seat.here),
        MEETING: seat.meeting,
    }


@contextmanager
def _started(
    command: Sequence[str], seat: Seat, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """One rank, in a session of its own, so that a terminal's Ctrl-C reaches it once; gone at the end of the block."""
    with _said(folder, seat.rank).open("wb") as said:
        process = subprocess.Popen(
            command,
            env=_variables(seat, environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if seat.rank else None,
            stderr=said if seat.rank else None,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _kill(process)
        process.wait()
        if process.stdin:
            process.stdin.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The process and what it has started."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _signals_passed_to(ranks: Sequence[subprocess.Popen[bytes]]) -> Iterator[list[int]]:
    """Within the block, SIGINT and SIGTERM go to the ranks; yields those that came. Not outside the main thread."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def pass_on(number: int, frame: FrameType | None) -> None:
        came.append(number)
        for process in ranks:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _watch(
    ranks: Sequence[subprocess.Popen[bytes]], signals: Sequence[int], grace: float
) -> tuple[dict[int, int], list[int]]:
    """Wait for all; each rank's exit status, in the order in which they ended, and who had to be killed."""
    ended: dict[int, int] = {}
    killed: list[int] = []
    deadline = float("inf")
    while len(ended) < len(ranks):
        for rank, process in enumerate(ranks):
            if rank not in ended and (status := process.poll()) is not None:
                ended[rank] = status
        if 0 in ended or len(signals) > 1 or any(status not in FINE for status in ended.values()):
            deadline = min(deadline, time.monotonic() + grace)
        if time.monotonic() > deadline and not killed:
            killed = [rank for rank in range(len(ranks)) if rank not in ended]
            _end([ranks[rank] for rank in killed])
        time.sleep(POLL)
    return ended, killed


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let them tell where they are, and kill them."""
    for process in processes:
        process.send_signal(WHERE)
    if processes:
        time.sleep(ANSWER)
    for process in processes:
        _kill(process)


def _verdict(ended: Mapping[int, int], killed: Sequence[int], folder: Path) -> int:
    """Rank 0's exit status where that says what happened. Raises TrainingError naming the rank that failed first."""
    if ended[0] >= 0 and ended[0] != LOST:
        return ended[0]
    failed = next((rank for rank, status in ended.items() if status not in (0, LOST) and rank not in killed), None)
    failed = next(iter(killed), None) if failed is None else failed
    hint = "the same command goes on from the newest checkpoint"
    if failed is None:
        raise TrainingError(f"the {len(ended)} processes have lost contact with each other", hint)
    status = ended[failed]
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    how = "hung, and was killed" if failed in killed else how
    # What rank 0 said was seen already; what others say of its loss was not.
    speaker = failed or next((rank for rank, status in ended.items() if rank and status == LOST), 0)
    said = _last_words(folder, speaker, lost=speaker != failed) if speaker else []
    whose = ", and said:" if speaker == failed else f"; rank {speaker} said:"
    raise TrainingError("\n".join([f"rank {failed} of {len(ended)} {how}" + (whose if said else ""), *said]), hint)


def _last_words(folder: Path, rank: int, lost: bool) -> list[str]:
    """The end of what `rank` said, as lines of an error; one that is `lost` has no hint of its own."""
    lines = _said(folder, rank).read_text("utf-8", "replace").splitlines()[-30:]
    return [line.removeprefix("error: ") for line in lines if not (lost and line.startswith("hint: "))]


def _said(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}"
