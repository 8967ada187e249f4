#!/usr/bin/env python3
"""A vanilla Transformer for translation in CTranslate2, in fp32 or with int8 weights (--compute): beam search in which
hypotheses cannot end, so that every search takes as many steps as ours. The network is that of our configuration
(no biases, GELU, post-norm, one norm for all sub-layers of a level), with random weights. Optional: needs the packages
ctranslate2 and numpy in the Python that runs this. Without them it prints a one-line message.

  python3 -m venv FOLDER && FOLDER/bin/pip install ctranslate2 numpy
  rondo bench translate-vanilla --python FOLDER/bin/python

--agree FOLDER writes weights under our names, and log p of every target token from CTranslate2.
"""

import math
import os
import sys
import tempfile

from protocol import answer, arguments, leave, write_safetensors

options = arguments(__doc__, what="translate", compute="float32", vocabulary=4096, width=512, hidden=2048, heads=8,
                    levels=6, rows=32, tokens=32, beam=5)
os.environ["CT2_VERBOSE"] = "-1"
try:
    import ctranslate2
    import numpy
except ImportError:
    leave("ctranslate2 is not installed")

PADDING, BEGIN, END = "<blank>", "<s>", "</s>"
EPSILON = 1e-5


def make_weights(o):
    """Random weights under our names, distributed as in torch."""
    draw = numpy.random.default_rng(1)

    def matrix(rows, columns):
        return draw.uniform(-1, 1, (rows, columns)).astype(numpy.float32) / math.sqrt(columns)

    def vector(size, middle):
        return (middle + 0.05 * draw.standard_normal(size)).astype(numpy.float32)

    weights = {f"{side}_embedding": draw.standard_normal((o.vocabulary, o.width), numpy.float32)
               for side in ("source", "target")}
    for table in list(weights.values()):
        table[0] = 0
    weights["head.weight"], weights["head.bias"] = matrix(o.vocabulary, o.width), vector(o.vocabulary, 0)
    for stack, banks in (("encoder", ["mixing"]), ("decoder", ["mixing", "cross"])):
        for i in range(o.levels):
            for bank in banks:
                for part in ("query", "key", "value", "output"):
                    weights[f"{stack}.{bank}.{i}.projections.{part}.weight"] = matrix(o.width, o.width)
            weights[f"{stack}.feed_forward.{i}.up.weight"] = matrix(o.hidden, o.width)
            weights[f"{stack}.feed_forward.{i}.down.weight"] = matrix(o.width, o.hidden)
            weights[f"{stack}.norm.{i}.weight"] = vector(o.width, 1)
            weights[f"{stack}.norm.{i}.bias"] = vector(o.width, 0)
    return weights


def positions(count, width):
    angle = numpy.arange(count)[:, None] / 10000 ** (numpy.arange(0, width, 2) / width)
    return numpy.stack([numpy.sin(angle), numpy.cos(angle)], -1).reshape(count, width).astype(numpy.float32)


def fill_attention(spec, weights, name, norm, cross=False):
    part = {p: weights[f"{name}.projections.{p}.weight"] for p in ("query", "key", "value", "output")}
    groups = [["query"], ["key", "value"], ["output"]] if cross else [["query", "key", "value"], ["output"]]
    for linear, names in zip(spec.linear, groups, strict=True):
        linear.weight = numpy.concatenate([part[n] for n in names])
    spec.layer_norm.gamma, spec.layer_norm.beta = norm


def fill_stack(spec, weights, name, o):
    for i, layer in enumerate(spec.layer):
        norm = (weights[f"{name}.norm.{i}.weight"], weights[f"{name}.norm.{i}.bias"])
        fill_attention(layer.self_attention, weights, f"{name}.mixing.{i}", norm)
        if name == "decoder":
            fill_attention(layer.attention, weights, f"{name}.cross.{i}", norm, cross=True)
        layer.ffn.linear_0.weight = weights[f"{name}.feed_forward.{i}.up.weight"]
        layer.ffn.linear_1.weight = weights[f"{name}.feed_forward.{i}.down.weight"]
        layer.ffn.layer_norm.gamma, layer.ffn.layer_norm.beta = norm
    spec.scale_embeddings = False
    spec.position_encodings.encodings = positions(4 * o.tokens, o.width)


def make_translator(weights, o):
    spec = ctranslate2.specs.TransformerSpec.from_config(
        o.levels, o.heads, pre_norm=False, activation=ctranslate2.specs.common_spec.Activation.GELU)
    fill_stack(spec.encoder, weights, "encoder", o)
    fill_stack(spec.decoder, weights, "decoder", o)
    spec.encoder.embeddings[0].weight = weights["source_embedding"]
    spec.decoder.embeddings.weight = weights["target_embedding"]
    spec.decoder.projection.weight, spec.decoder.projection.bias = weights["head.weight"], weights["head.bias"]
    tokens = [PADDING, BEGIN, END] + [str(i) for i in range(3, o.vocabulary)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token = PADDING
    spec.config.layer_norm_epsilon = EPSILON
    spec.validate()
    spec.optimize()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return ctranslate2.Translator(folder, device="cpu", compute_type=o.compute, inter_threads=1,
                                      intra_threads=o.threads)


def words(numbers):
    return [[str(n) for n in row] for row in numbers]


def agree(weights, translator, o):
    toml = f"""[model]
kind = "encoder-decoder"
source_vocabulary = {o.vocabulary}
target_vocabulary = {o.vocabulary}
width = {o.width}
hidden = {o.hidden}
heads = {o.heads}
norm_epsilon = {EPSILON}
one_norm_per_level = true
[model.depth]
scheme = "vanilla"
levels = {o.levels}
"""
    with open(os.path.join(o.agree, "model.toml"), "w") as file:
        file.write(toml)
    draw = numpy.random.default_rng(2)
    source, labels = (draw.integers(3, o.vocabulary, (o.rows, o.tokens)) for _ in range(2))
    scored = translator.score_batch(words(source), words(labels))
    begin, end = numpy.full((o.rows, 1), 1), numpy.full((o.rows, 1), 2)
    inputs = {"source": source, "target": numpy.concatenate([begin, labels], 1)}
    write_safetensors(os.path.join(o.agree, "weights.safetensors"), weights)
    write_safetensors(os.path.join(o.agree, "inputs.safetensors"), inputs)
    write_safetensors(os.path.join(o.agree, "theirs.safetensors"), {
        "log_probabilities": numpy.array([s.log_probs for s in scored], numpy.float32),
        "labels": numpy.concatenate([labels, end], 1)})


def main(o):
    weights = make_weights(o)
    translator = make_translator(weights, o)
    if o.agree:
        return agree(weights, translator, o)
    source = words(numpy.random.default_rng(3).integers(3, o.vocabulary, (o.rows, o.tokens)))

    def translate():
        return translator.translate_batch(
            source, beam_size=o.beam, max_decoding_length=o.tokens, min_decoding_length=o.tokens,
            suppress_sequences=[[PADDING], [BEGIN]])

    assert all(len(result.hypotheses[0]) == o.tokens for result in translate())
    facts = {"parameters": sum(w.size for w in weights.values()), "runtime": "ctranslate2 " + ctranslate2.__version__,
             "compute": translator.compute_type, "threads": o.threads}
    answer(facts, translate, o)


sys.exit(main(options))
