#!/usr/bin/env python3
"""SReT in plain PyTorch: three strided convolutions, then stages of blocks applied twice, each time followed by its own
small feed-forward; attention in groups of tokens, permuted in the second loop; learned residual coefficients.

--onnx FILE exports the forward pass as ONNX instead (for image_runtime.py), with the permutations as constants.
"""

import json
import sys

from protocol import agree, arguments, autocast, load_torch, serve, shake, training_step

options = arguments(__doc__, what="forward", image=224, classes=1000, widths="64,128,256", heads="2,4,8",
                    hidden_ratio=3.6, projection=1.0, blocks="2,5,3", loops=2, groups="[[8,2],[4,1],[1,1]]", rows=32, onnx="")
torch = load_torch(options)
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

EPSILON = 1e-6
drawn = []  # permutations and their inverses, in order of use
again = None  # an iterator over these, to reuse them as constants of an exported network


def draw(tokens):
    permutation = torch.randperm(tokens)
    order = (permutation, permutation.argsort())
    if options.agree or options.onnx:
        drawn.append(order)
    return order


class Join(nn.Module):
    """identity * x + branch * y."""

    def __init__(self):
        super().__init__()
        self.identity = nn.Parameter(torch.ones(1))
        self.branch = nn.Parameter(torch.ones(1))

    def forward(self, x, y):
        return x * self.identity + y * self.branch


class FeedForward(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, groups):
        batch, count, width = x.shape
        sliced = x.reshape(batch * groups, count // groups, width)
        q, k, v = self.qkv(sliced).view(*sliced.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        y = torch.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, count, width))


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.attention = Attention(width, heads)
        self.feed_forward = FeedForward(width, hidden)
        self.join1, self.join2 = Join(), Join()

    def forward(self, x, groups, order=None):
        u = self.norm1(x)
        if order is None:
            y = self.attention(u, groups)
        else:
            y = self.attention(u[:, order[0]], groups)[:, order[1]]
        x = self.join1(x, y)
        return self.join2(x, self.feed_forward(self.norm2(x)))


class Projection(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width, EPSILON)
        self.feed_forward = FeedForward(width, hidden)
        self.join = Join()

    def forward(self, x):
        return self.join(x, self.feed_forward(self.norm(x)))


class Stage(nn.Module):
    def __init__(self, width, heads, blocks, groups, o):
        super().__init__()
        self.groups = groups
        self.blocks = nn.ModuleList([Block(width, heads, int(width * o.hidden_ratio)) for _ in range(blocks)])
        self.projections = nn.ModuleList(
            [Projection(width, int(width * o.projection)) for _ in range(blocks * o.loops)])
        self.loops = o.loops

    def forward(self, x):
        for i, projection in enumerate(self.projections):
            block, loop = self.blocks[i // self.loops], i % self.loops
            order = None
            if loop > 0 and self.groups[loop] > 1:
                order = next(again) if again is not None else draw(x.shape[1])
            x = projection(block(x, self.groups[loop], order))
        return x


class SReT(nn.Module):
    def __init__(self, o):
        super().__init__()
        widths, heads, blocks = ([int(n) for n in text.split(",")] for text in (o.widths, o.heads, o.blocks))
        first, stem = widths[0], []
        for before, after in ((3, first // 2), (first // 2, first), (first, first)):
            stem += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
        self.stem = nn.Sequential(*stem)
        self.positions = nn.Parameter(torch.randn(1, first, o.image // 8, o.image // 8) * 0.02)
        self.stages = nn.ModuleList(
            [Stage(w, h, b, g, o) for w, h, b, g in zip(widths, heads, blocks, json.loads(o.groups))])
        self.pools = nn.ModuleList(
            [nn.Conv2d(a, b, 3, 2, 1, groups=a) for a, b in zip(widths, widths[1:])])
        self.norm = nn.LayerNorm(widths[-1], EPSILON)
        self.head = nn.Linear(widths[-1], o.classes)

    def forward(self, images):
        x = self.stem(images) + self.positions
        for i, stage in enumerate(self.stages):
            shape = x.shape
            x = stage(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(shape)
            if i < len(self.pools):
                x = self.pools[i](x).float()  # autocast convolves in bf16, norms need fp32
        return self.head(self.norm(x.mean((2, 3))))


def affine(name, part):
    return {f"{name}.weight": part.weight, f"{name}.bias": part.bias}


def stage_weights(name, stage):
    """The weights of a stage under our names."""
    weights = {}
    for k, block in enumerate(stage.blocks):
        mixing = f"{name}.mixing.{k}.projections"
        parts = zip(("query", "key", "value"), block.attention.qkv.weight.chunk(3), block.attention.qkv.bias.chunk(3))
        for part, weight, bias in parts:
            weights.update({f"{mixing}.{part}.weight": weight, f"{mixing}.{part}.bias": bias})
        weights.update(affine(f"{mixing}.output", block.attention.out))
        weights.update(affine(f"{name}.feed_forward.{k}.up", block.feed_forward[0]))
        weights.update(affine(f"{name}.feed_forward.{k}.down", block.feed_forward[2]))
        weights.update(affine(f"{name}.norm.{2 * k}", block.norm1))
        weights.update(affine(f"{name}.norm.{2 * k + 1}", block.norm2))
        for part in ("identity", "branch"):
            both = [getattr(block.join1, part), getattr(block.join2, part)]
            weights[f"{name}.residual.{k}.{part}"] = torch.cat(both)
    for j, projection in enumerate(stage.projections):
        weights.update(affine(f"{name}.projection.{j}.norm", projection.norm))
        weights.update(affine(f"{name}.projection.{j}.feed_forward.up", projection.feed_forward[0]))
        weights.update(affine(f"{name}.projection.{j}.feed_forward.down", projection.feed_forward[2]))
        weights[f"{name}.projection.{j}.residual.identity"] = projection.join.identity
        weights[f"{name}.projection.{j}.residual.branch"] = projection.join.branch
    return weights


def export(model, images, path):
    """Exports the forward pass as ONNX, with the permutations of the last one."""
    global again
    again = iter(list(drawn))
    torch.onnx.export(model, images, path, opset_version=16, input_names=["images"], output_names=["logits"])


def compare(model, o):
    """Writes the same network under our names."""
    shake(torch, model)
    model.eval()
    toml = f"""[model]
base = "sret/t"
image = {o.image}
classes = {o.classes}
widths = [{o.widths}]
heads = [{o.heads}]
hidden_ratio = {o.hidden_ratio}
[model.depth.recursive]
projection = {o.projection}
"""
    weights = {"positions": model.positions, **affine("norm", model.norm), **affine("head", model.head)}
    for i in range(3):
        norm = model.stem[3 * i + 1]
        weights.update(affine(f"stem.convolution{i}", model.stem[3 * i]))
        weights.update(affine(f"stem.norm{i}", norm))
        for part in ("running_mean", "running_var", "num_batches_tracked"):
            weights[f"stem.norm{i}.{part}"] = getattr(norm, part)
    for s, stage in enumerate(model.stages):
        weights.update(stage_weights(f"stage.{s}", stage))
    for s, pool in enumerate(model.pools):
        weights.update(affine(f"pool.{s}", pool))
    images = torch.randn(o.rows, 3, o.image, o.image)
    logits = model(images)
    inputs = {"images": images, **{f"permutation.{i}": p for i, (p, _) in enumerate(drawn)}}
    if o.onnx:
        export(model, images, o.onnx)
    agree(o.agree, toml, weights, inputs, logits)


model = SReT(options)
if options.agree:
    compare(model, options)
images = torch.randn(options.rows, 3, options.image, options.image)
if options.onnx:
    with torch.no_grad():
        model.eval()(images)
    export(model, images, options.onnx)
    sys.exit(0)
labels = torch.randint(options.classes, (options.rows,))


def loss():
    return F.cross_entropy(model(images).float(), labels)


def forward():
    with torch.inference_mode(), autocast(torch, options):
        model(images)


work = training_step(torch, model.train(), loss, options) if options.what == "train" else forward
if options.what != "train":
    model.eval()
serve(torch, model, work, options)
