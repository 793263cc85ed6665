"""How much arithmetic training takes at least, and how much a device can do."""

from __future__ import annotations

import time

import torch

from nmt.batches.batch import Batch
from nmt.model.config import TransformerConfig

FORMULA = (
    "6 x sum over sentences of [encoder layers x (S(4D^2 + 2DF) + 2S^2 D) + decoder layers x (T(4D^2 + 2DF) + T^2 D + "
    "2(S + T)D^2 + 2STD) + TVD], with S and T real tokens of source and target, D width, F feed-forward, V vocabulary: "
    "a product with a weight takes 2 FLOPs forwards and 4 backwards. Padding, softmax, norms, dropout, embeddings and "
    "the optimizer count as time, not as work."
)

PEAKS = {  # bfloat16 matrix products with float32 sums, not sparse, in TFLOPS as the vendors give them
    "H200": 989.0,
    "GH200": 989.0,
    "H100 PCIe": 756.0,
    "H100 NVL": 835.0,
    "H100": 989.0,
    "B200": 2250.0,
    "A100": 312.0,
    "A40": 149.7,
    "A10": 125.0,
    "L40S": 362.0,
    "L4": 121.0,
    "RTX 3090": 71.0,
    "RTX 4090": 165.2,
}


def training_flops(config: TransformerConfig, vocabulary: int, batch: Batch, pad: int) -> float:
    """What an update of `batch` takes at least: see FORMULA."""
    source = batch.keep_BS.sum(1).double()
    target = (batch.out_BT != pad).sum(1).double()
    width, inner = config.width, config.feedforward
    square, ahead = width * width, 2 * width * inner
    encoder = config.encoder_layers * (source * (4 * square + ahead) + 2 * source**2 * width)
    cross = 2 * (source + target) * square + 2 * source * target * width
    own = target * (4 * square + ahead) + target**2 * width  # nothing is read from the future: half the square
    decoder = config.decoder_layers * (own + cross) + target * vocabulary * width
    return 6 * float((encoder + decoder).sum())


def peak(device: torch.device, precision: str, given: float | None) -> tuple[float, str]:
    """FLOPs a second that the device can do, and where that comes from: given, the vendor, or measured."""
    if given is not None:
        return given * 1e12, "given"
    if device.type == "cuda" and precision == "bfloat16":
        known = known_peak(torch.cuda.get_device_name(device))
        if known is not None:
            return known * 1e12, "vendor"
    return matrix_product_speed(device, precision), "measured"


def known_peak(name: str) -> float | None:
    """TFLOPS of a GPU by its name, such as NVIDIA H100 80GB HBM3: of all names in the table the longest that fits."""
    words = f" {name.replace('-', ' ')} "
    fitting = [known for known in PEAKS if f" {known} " in words]
    return PEAKS[max(fitting, key=len)] if fitting else None


def matrix_product_speed(device: torch.device, precision: str) -> float:
    """Operations a second of a large matrix product, the best of several: what can be reached here at most."""
    size = 8192 if device.type == "cuda" else 2048
    x = torch.randn(size, size, device=device, dtype=torch.bfloat16 if precision == "bfloat16" else torch.float32)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        (x @ x)[0, 0].item()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
