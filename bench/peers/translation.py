#!/usr/bin/env python3
"""RingFormer for translation in plain PyTorch: one encoder and one decoder block applied at every level, with per-level
norms and low-rank signals. Signals are applied in one of these ways:

  formed    as in the paper: M = A B, a d x d matrix formed for every level and map, applied as a second matmul and added
  low-rank  two thin matmuls, never formed
  merged    W + M formed once before decoding, when weights no longer change

--what train: a step on [rows, tokens]; --what translate: beam search with caches to a fixed length."""

import math

from protocol import agree, arguments, autocast, load_torch, serve, shake, training_step

options = arguments(__doc__, what="train", signals="formed", vocabulary=4096, width=512, hidden=2048, heads=8, levels=6,
                    rows=32, tokens=32, beam=5)
torch = load_torch(options)
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

PADDING, BEGIN, END = 0, 1, 2


class Signal(nn.Module):
    """g(x) = (x downT) up."""

    def __init__(self, width):
        super().__init__()
        rank = max(1, width // 16)
        self.down = nn.Parameter(torch.randn(rank, width) * 1e-6)
        self.up = nn.Parameter(torch.zeros(rank, width))

    def matrix(self):
        return self.down.t() @ self.up

    def forward(self, x):
        return x @ self.matrix() if options.signals == "formed" else x @ self.down.t() @ self.up


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def attend(self, q, k, v, hidden=None):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        y = torch.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Level(nn.Module):
    """Parameters owned by one level."""

    def __init__(self, width, norms):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(norms)])
        self.q, self.k, self.v, self.ff = (Signal(width) for _ in range(4))
        self.merged = None

    def merge(self, attention, up):
        """Replaces shared weights and signals by weights of the level's own."""
        self.merged = [m.weight + s.matrix().t() for m, s in zip((attention.q, attention.k, attention.v), (self.q, self.k, self.v))]
        self.merged.append(up.weight + up.weight @ self.ff.matrix().t())

    def project(self, attention, x):
        if self.merged is not None:
            return [attention.split(F.linear(x, w)) for w in self.merged[:3]]
        return [attention.split(m(x) + s(x)) for m, s in zip((attention.q, attention.k, attention.v), (self.q, self.k, self.v))]

    def feed(self, block, x):
        h = F.linear(x, self.merged[3]) if self.merged is not None else block.up(x + self.ff(x))
        return block.down(F.gelu(h))


class Block(nn.Module):
    """Parameters shared by all levels."""

    def __init__(self, width, hidden, heads, decoder):
        super().__init__()
        self.attention = Attention(width, heads)
        self.cross = Attention(width, heads) if decoder else None
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)


def positions(count, width):
    angle = torch.arange(count).unsqueeze(1) / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


class Translation(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.source = nn.Embedding(o.vocabulary, o.width, padding_idx=PADDING)
        self.target = nn.Embedding(o.vocabulary, o.width, padding_idx=PADDING)
        self.encoder = Block(o.width, o.hidden, o.heads, False)
        self.decoder = Block(o.width, o.hidden, o.heads, True)
        self.encoder_levels = nn.ModuleList([Level(o.width, 2) for _ in range(o.levels)])
        self.decoder_levels = nn.ModuleList([Level(o.width, 3) for _ in range(o.levels)])
        self.head = nn.Linear(o.width, o.vocabulary)
        self.register_buffer("table", positions(4 * o.tokens, o.width))

    def merge(self):
        for block, levels in ((self.encoder, self.encoder_levels), (self.decoder, self.decoder_levels)):
            for level in levels:
                level.merge(block.attention, block.up)

    def encode(self, source):
        x = self.source(source) + self.table[: source.shape[1]]
        for level in self.encoder_levels:
            q, k, v = level.project(self.encoder.attention, x)
            x = level.norms[0](x + self.encoder.attention.attend(q, k, v))
            x = level.norms[1](x + level.feed(self.encoder, x))
        return x

    def memory(self, encoded):
        cross = self.decoder.cross
        return cross.split(cross.k(encoded)), cross.split(cross.v(encoded))

    def decode(self, target, memory, first=0, caches=None):
        block, count = self.decoder, target.shape[1]
        x = self.target(target) + self.table[first : first + count]
        hidden = None if count == 1 else torch.ones(count, count, dtype=torch.bool).triu(1)
        for i, level in enumerate(self.decoder_levels):
            q, k, v = level.project(block.attention, x)
            if caches is not None:
                if caches[i] is not None:
                    k, v = torch.cat([caches[i][0], k], 2), torch.cat([caches[i][1], v], 2)
                caches[i] = (k, v)
            x = level.norms[0](x + block.attention.attend(q, k, v, hidden))
            x = level.norms[1](x + block.cross.attend(block.cross.split(block.cross.q(x)), *memory))
            x = level.norms[2](x + level.feed(block, x))
        return self.head(x)


def training(model, o):
    source, target, labels = (torch.randint(3, o.vocabulary, (o.rows, o.tokens)) for _ in range(3))

    def loss():
        logits = model.decode(target, model.memory(model.encode(source)))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    return training_step(torch, model.train(), loss, o)


def translating(model, o):
    """Beam search in which hypotheses cannot end: every sentence takes as many steps as it has tokens."""
    model.eval()
    with torch.inference_mode():
        model.merge()
    source = torch.randint(3, o.vocabulary, (o.rows, o.tokens))
    banned = torch.tensor([PADDING, BEGIN, END])
    rows = o.rows * o.beam
    first_of = torch.arange(o.rows).unsqueeze(1) * o.beam

    def translate():
        with torch.inference_mode(), autocast(torch, o):
            memory = [m.repeat_interleave(o.beam, 0) for m in model.memory(model.encode(source))]
            caches = [None] * o.levels
            scores = torch.full((o.rows, o.beam), float("-inf"))
            scores[:, 0] = 0
            tokens = torch.full((rows, 1), BEGIN)
            texts = torch.empty(rows, 0, dtype=torch.long)
            for step in range(o.tokens):
                logits = model.decode(tokens, memory, step, caches)[:, -1].float()
                logits[:, banned] = float("-inf")
                values, indices = logits.log_softmax(-1).topk(2 * o.beam)
                total = (values.view(o.rows, o.beam, -1) + scores.unsqueeze(2)).flatten(1)
                scores, best = total.topk(o.beam)
                parents = (first_of + best // (2 * o.beam)).flatten()
                tokens = indices.view(o.rows, -1).gather(1, best).view(rows, 1)
                texts = torch.cat([texts[parents], tokens], 1)
                caches = [(k[parents], v[parents]) for k, v in caches]
            return texts

    return translate


def stack_weights(name, block, levels, norms):
    """The weights of an encoder or decoder under our names."""
    weights = {f"{name}.feed_forward.0.up.weight": block.up.weight, f"{name}.feed_forward.0.down.weight": block.down.weight}
    for bank, attention in (("mixing", block.attention), ("cross", block.cross)):
        if attention is not None:
            parts = {"query": attention.q, "key": attention.k, "value": attention.v, "output": attention.out}
            for part, linear in parts.items():
                weights[f"{name}.{bank}.0.projections.{part}.weight"] = linear.weight
    for i, level in enumerate(levels):
        for j, norm in enumerate(level.norms):
            weights[f"{name}.norm.{norms * i + j}.weight"] = norm.weight
            weights[f"{name}.norm.{norms * i + j}.bias"] = norm.bias
        for part, signal in {"query": level.q, "key": level.k, "value": level.v, "feed_forward": level.ff}.items():
            weights[f"{name}.signal.{i}.{part}.down"] = signal.down
            weights[f"{name}.signal.{i}.{part}.up"] = signal.up
    return weights


def compare(model, o):
    """Writes the same network under our names."""
    shake(torch, model)
    toml = f"""[model]
kind = "encoder-decoder"
source_vocabulary = {o.vocabulary}
target_vocabulary = {o.vocabulary}
width = {o.width}
hidden = {o.hidden}
heads = {o.heads}
[model.depth]
scheme = "ring"
levels = {o.levels}
"""
    weights = {"source_embedding": model.source.weight, "target_embedding": model.target.weight}
    weights.update({"head.weight": model.head.weight, "head.bias": model.head.bias})
    weights.update(stack_weights("encoder", model.encoder, model.encoder_levels, 2))
    weights.update(stack_weights("decoder", model.decoder, model.decoder_levels, 3))
    source, target = (torch.randint(3, o.vocabulary, (o.rows, o.tokens)) for _ in range(2))
    if o.signals == "merged":
        model.merge()
    logits = model.decode(target, model.memory(model.encode(source)))
    agree(o.agree, toml, weights, {"source": source, "target": target}, logits)


model = Translation(options)
if options.agree:
    compare(model, options)
serve(torch, model, training(model, options) if options.what == "train" else translating(model, options), options)
