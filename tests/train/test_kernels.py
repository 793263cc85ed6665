"""The choice of attention kernels is torch's own again after training."""

from __future__ import annotations

import pytest
import torch

from nmt.train.kernels import attention_kernels


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("device", "within"), [("cpu", None), ("cuda", False)])
def test_cudnns_attention_is_left_out_on_a_gpu_while_it_trains(device: str, within: bool | None, before: bool) -> None:
    at_first = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(before)
        with pytest.raises(KeyError), attention_kernels(torch.device(device)):
            assert torch.backends.cuda.cudnn_sdp_enabled() is (before if within is None else within)
            raise KeyError
        assert torch.backends.cuda.cudnn_sdp_enabled() is before
    finally:
        torch.backends.cuda.enable_cudnn_sdp(at_first)
