"""The encoder-decoder Transformer and its parts; every architecture meets the contract of seq2seq.py."""
