"""What GPUs can do, by name: the vendors' numbers of dense products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.errors import NmtError
from nmt.schema import nearest
from nmt.train.config import Precision

UTILISATION: dict[Precision, float] = {"float32": 0.3, "bfloat16": 0.2}
"""Share of a GPU's peak that training is assumed to reach, as nmt.train.flops counts: in float32 about that of the
paper's own trainings on P100 GPUs, whose base model had 0.31 of 9.5 TFLOPS. In bfloat16 products are so fast that
all else takes a larger share of the time."""


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU, and its TFLOPS in float32 and in bfloat16 with float32 sums; None without instructions for it."""

    name: str
    float32: float
    bfloat16: float | None = None

    def arithmetic(self, precision: str) -> Precision:
        """What a recipe's train.precision means on it: float32 where it has nothing else."""
        return "bfloat16" if precision != "float32" and self.bfloat16 else "float32"

    def tflops(self, precision: Precision) -> float:
        """Its peak in this arithmetic."""
        return self.bfloat16 if precision == "bfloat16" and self.bfloat16 else self.float32


_KNOWN = (
    Gpu("K40", 3.7),  # these and the P100 as the paper takes them (Vaswani et al. 2017, §6.1)
    Gpu("K80", 2.8),
    Gpu("M40", 6.0),
    Gpu("P100", 9.5),
    Gpu("V100", 15.7),
    Gpu("T4", 8.1),
    Gpu("A10", 31.2, 125.0),
    Gpu("A40", 37.4, 149.7),
    Gpu("A100", 19.5, 312.0),
    Gpu("RTX 3090", 35.6, 71.0),
    Gpu("RTX 4090", 82.6, 165.2),
    Gpu("L4", 30.3, 121.0),
    Gpu("L40S", 91.6, 362.0),
    Gpu("H100 PCIe", 51.0, 756.0),
    Gpu("H100 NVL", 60.0, 835.0),
    Gpu("H100", 67.0, 989.0),
    Gpu("H200", 67.0, 989.0),
    Gpu("GH200", 67.0, 989.0),
    Gpu("B200", 75.0, 2250.0),
)


def _plain(name: str) -> str:
    return "".join(name.lower().split()).replace("-", "").replace("_", "")


GPUS = {_plain(gpu.name): gpu for gpu in _KNOWN}
"""By their names as one types them, such as rtx4090."""


def named(name: str) -> Gpu:
    """The GPU of this name, in any spelling. Raises NmtError for one that is not known."""
    found = GPUS.get(_plain(name))
    if found is None:
        guess = nearest(_plain(name), GPUS)
        raise NmtError(f"gpu = {name!r} is none of {', '.join(GPUS)}", f"did you mean {guess}?" if guess else "")
    return found


def of_device(told: str) -> Gpu | None:
    """The GPU that calls itself like NVIDIA H100 80GB HBM3: of all known names the longest that fits, or None."""
    words = f" {told.replace('-', ' ')} "
    fitting = [gpu for gpu in _KNOWN if f" {gpu.name} " in words]
    return max(fitting, key=lambda gpu: len(gpu.name)) if fitting else None
