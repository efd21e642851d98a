"""The model and the data that every `gpt` workload shares: a byte-level GPT, and text that every Python has."""

from __future__ import annotations

import math
import sysconfig
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

CONTEXT = 64
CORPUS_BYTES = 2_000_000


class Corpus:
    """The standard library's sources as bytes, cut into sequences; every epoch has an order of its own, from the seed.

    A sample's id is epoch * len(self) + its number, unique within a run. A batch depends only on step, rank and world,
    so the data's position needs no state of its own.
    """

    def __init__(self, seed: int) -> None:
        folder = Path(sysconfig.get_paths()["stdlib"])
        text = bytearray()
        for path in sorted(folder.glob("*.py")):
            text += path.read_bytes()
            if len(text) >= CORPUS_BYTES:
                break
        self._bytes = torch.frombuffer(text[:CORPUS_BYTES], dtype=torch.uint8)
        self._seed = seed
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def __len__(self) -> int:
        """Sequences per epoch."""
        return (len(self._bytes) - 1) // CONTEXT

    def batch(self, step: int, rank: int, world: int, size: int) -> tuple[list[int], Tensor, Tensor]:
        """Return ids, inputs and targets, the latter two of shape (size, CONTEXT), dtype int64."""
        first = ((step - 1) * world + rank) * size
        ids = [self._id_at(position) for position in range(first, first + size)]
        starts = [sample % len(self) * CONTEXT for sample in ids]
        rows = torch.stack([self._bytes[start : start + CONTEXT + 1] for start in starts]).long()
        return ids, rows[:, :-1], rows[:, 1:]

    def _id_at(self, position: int) -> int:
        epoch, place = divmod(position, len(self))
        if self._order[0] != epoch:
            generator = torch.Generator().manual_seed(self._seed * 1009 + epoch)
            self._order = (epoch, torch.randperm(len(self), generator=generator))
        return epoch * len(self) + int(self._order[1][place])


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each with dropout."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self._heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.before_feed = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, time, width) to the same."""
        batch, time, width = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(batch, time, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.mix(mixed.transpose(1, 2).reshape(batch, time, width)))
        fed: Tensor = x + self.dropout(self.feed(self.before_feed(x)))
        return fed


class GPT(nn.Module):
    """About a million parameters: enough that state has a size, little enough for two cores."""

    def __init__(self, seed: int, width: int = 192, layers: int = 2, heads: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.token = nn.Embedding(256, width)
        self.position = nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape (batch, time) to logits (batch, time, 256)."""
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats per byte."""
        loss: Tensor = functional.cross_entropy(self(inputs).flatten(0, 1), targets.flatten())
        return loss


def warmup_then_cosine(optimizer: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LambdaLR:
    """Learning rate: linear for the first tenth, then half a cosine down to a tenth."""
    warmup = max(1, steps // 10)

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        return 0.55 + 0.45 * math.cos(math.pi * (step - warmup) / max(1, steps - warmup))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
