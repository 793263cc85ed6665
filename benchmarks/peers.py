"""Training updates of other toolkits on the very same batches, for those that are installed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from nmt.batches.batch import Batch
from nmt.model.config import TransformerConfig

Update = Callable[[Sequence[Batch]], None]


def transformers(config: TransformerConfig, vocabulary: int, pad: int, bos: int, eos: int) -> Update:
    """A plain loop around the Marian model of Hugging Face transformers, in float32: forward, loss, backward, Adam."""
    from transformers import MarianConfig, MarianMTModel

    sizes: dict[str, Any] = {}
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        sizes |= {
            f"{side}_layers": layers,
            f"{side}_attention_heads": config.attention.heads,
            f"{side}_ffn_dim": config.feedforward,
        }
    model = MarianMTModel(
        MarianConfig(
            vocab_size=vocabulary,
            d_model=config.width,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation_dropout=config.activation_dropout,
            activation_function=config.activation,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            tie_word_embeddings=True,
            pad_token_id=pad,
            eos_token_id=eos,
            bos_token_id=bos,
            decoder_start_token_id=bos,
            forced_eos_token_id=None,
            max_position_embeddings=512,
            **sizes,
        )
    ).train()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-4, betas=(0.9, 0.98))

    def update(batches: Sequence[Batch]) -> None:
        for batch in batches:
            logits_BTV = model(
                input_ids=batch.src_BS, attention_mask=batch.keep_BS, decoder_input_ids=batch.tgt_BT
            ).logits
            loss = nn.functional.cross_entropy(
                logits_BTV.flatten(0, 1), batch.out_BT.flatten(), ignore_index=pad, label_smoothing=0.1
            )
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    return update


PEERS = {"transformers": transformers}
