#!/usr/bin/env python3
"""The language model of `rondo bench` in plain PyTorch: RMS norms before attention and feed-forward, queries and keys of
unit length, T5's relative bias, one learned scale per head, no biases, ReLU, output tied to the embedding."""

import math
import sys

from protocol import agree, arguments, autocast, load_torch, serve, shake, training_step

options = arguments(__doc__, what="train", vocabulary=4096, width=256, hidden=1024, heads=4, levels=6, rows=16, tokens=256, onnx="")
torch = load_torch(options)
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

BUCKETS = 32


def buckets(distance):
    """T5's buckets of the distance to a key in the past: exact up to 15, then logarithmic up to 128."""
    far = BUCKETS // 2 + (torch.log(distance.clamp(min=16).float() / 16) * 16 / math.log(128 / 16)).long()
    return torch.where(distance < 16, distance.clamp(min=0), far.clamp(max=BUCKETS - 1))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.scale = nn.Parameter(torch.ones(heads))
        self.table = nn.Parameter(torch.randn(heads, BUCKETS) / math.sqrt(BUCKETS))

    def bias(self, distance):
        """Added to the scores [H, Tq, Tk]; future keys are masked."""
        bias = self.table[:, buckets(distance)] * self.scale.view(-1, 1, 1)
        return bias.masked_fill(distance < 0, -1e30)

    def forward(self, x, bias, cache=None):
        batch, count, width = x.shape
        q, k, v = self.qkv(x).view(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # [B, H, T, d]
        q = F.normalize(q, dim=-1) * self.scale.view(1, -1, 1, 1)
        k = F.normalize(k, dim=-1)
        if cache is not None:  # the window: oldest out, newest in
            cache[0] = k = torch.cat([cache[0][:, :, 1:], k], 2)
            cache[1] = v = torch.cat([cache[1][:, :, 1:], v], 2)
        scores = q @ k.transpose(-2, -1) + bias
        y = torch.softmax(scores, -1).to(v.dtype) @ v
        return self.out(y.transpose(1, 2).reshape(batch, count, width))


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.attention = Attention(width, heads)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, bias, cache=None):
        x = x + self.attention(self.norm1(x), bias, cache)
        return x + self.down(F.relu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.embedding = nn.Embedding(o.vocabulary, o.width)
        self.blocks = nn.ModuleList([Block(o.width, o.heads, o.hidden) for _ in range(o.levels)])
        self.norm = RMSNorm(o.width)

    def biases(self, distance):
        return [block.attention.bias(distance) for block in self.blocks]

    def forward(self, tokens, biases, caches=None):
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, biases[i], None if caches is None else caches[i])
        return F.linear(self.norm(x), self.embedding.weight) / math.sqrt(self.embedding.num_embeddings)


def whole_text(model, o):
    """Training step or forward pass over [rows, tokens]."""
    tokens = torch.randint(o.vocabulary, (o.rows, o.tokens))
    labels = torch.randint(o.vocabulary, (o.rows, o.tokens))
    place = torch.arange(o.tokens)
    distance = place.unsqueeze(1) - place.unsqueeze(0)

    def loss():
        return F.cross_entropy(model(tokens, model.biases(distance)).flatten(0, 1).float(), labels.flatten())

    def forward():
        with torch.inference_mode(), autocast(torch, o):
            model(tokens, model.biases(distance))

    return training_step(torch, model.train(), loss, o) if o.what == "train" else forward


def one_by_one(model, o):
    """Greedy decoding: each token generated is the next input."""
    model.eval()
    shape = (1, o.heads, o.tokens + 1, o.width // o.heads)
    caches = [[torch.zeros(shape), torch.zeros(shape)] for _ in model.blocks]
    with torch.inference_mode():
        biases = model.biases(torch.arange(o.tokens, -1, -1).unsqueeze(0))  # the same for every token
    last = [torch.zeros(1, 1, dtype=torch.long)]

    def write():
        with torch.inference_mode(), autocast(torch, o):
            last[0] = model(last[0], biases, caches).argmax(-1)

    return write


def compare(model, o):
    """Writes the same network under our names."""
    shake(torch, model)
    toml = f"""[model]
kind = "language-model"
vocabulary = {o.vocabulary}
width = {o.width}
hidden = {o.hidden}
heads = {o.heads}
head_width = {o.width // o.heads}
[model.depth]
levels = {o.levels}
[model.time]
kind = "none"
"""
    weights = {"embedding": model.embedding.weight, "norm.weight": model.norm.weight}
    for i, block in enumerate(model.blocks):
        for name, part in zip(("query", "key", "value"), block.attention.qkv.weight.chunk(3)):
            weights[f"stack.mixing.{i}.projections.{name}.weight"] = part
        weights[f"stack.mixing.{i}.projections.output.weight"] = block.attention.out.weight
        weights[f"stack.mixing.{i}.relative.table"] = block.attention.table
        weights[f"stack.mixing.{i}.scale"] = block.attention.scale
        weights[f"stack.feed_forward.{i}.up.weight"] = block.up.weight
        weights[f"stack.feed_forward.{i}.down.weight"] = block.down.weight
        weights[f"stack.norm.{2 * i}.weight"] = block.norm1.weight
        weights[f"stack.norm.{2 * i + 1}.weight"] = block.norm2.weight
    tokens = torch.randint(o.vocabulary, (o.rows, o.tokens))
    place = torch.arange(o.tokens)
    logits = model(tokens, model.biases(place.unsqueeze(1) - place.unsqueeze(0)))
    agree(o.agree, toml, weights, {"tokens": tokens}, logits)


class WholeText(nn.Module):
    """The forward pass alone, for export: everything independent of the tokens is computed once."""

    def __init__(self, model, o):
        super().__init__()
        self.model = model
        place = torch.arange(o.tokens)
        with torch.no_grad():
            self.biases = model.biases(place.unsqueeze(1) - place.unsqueeze(0))

    def forward(self, tokens):
        return self.model(tokens, self.biases)


def export(model, o):
    tokens = torch.randint(o.vocabulary, (o.rows, o.tokens))
    torch.onnx.export(WholeText(model.eval(), o), tokens, o.onnx, opset_version=16, input_names=["tokens"],
                      output_names=["logits"])
    sys.exit(0)


model = LanguageModel(options)
if options.agree:
    compare(model, options)
if options.onnx:
    export(model, options)
serve(torch, model, one_by_one(model, options) if options.what == "decode" else whole_text(model, options), options)
