#!/usr/bin/env python3
"""The forward pass of image.py in an inference engine: ONNX Runtime or OpenVINO (--engine). image.py exports the network
as ONNX. Optional: needs the packages onnxruntime or openvino, and torch and onnx for the export, in the Python that runs
this. Without them it prints a one-line message.

  python3 -m venv FOLDER && FOLDER/bin/pip install torch onnx onnxruntime openvino
  rondo bench image-one --python FOLDER/bin/python
"""

import importlib
import os
import subprocess
import sys
import tempfile

from protocol import answer, arguments, leave, write_safetensors

options = arguments(__doc__, what="forward", engine="onnxruntime", image=224, classes=1000, widths="64,128,256",
                    heads="2,4,8", hidden_ratio=3.6, projection=1.0, rows=32)


def export(folder):
    """Exports the network with image.py and our options; returns the path."""
    path = os.path.join(folder, "image.onnx")
    words = sys.argv[1:]
    if "--engine" in words:
        at = words.index("--engine")
        del words[at:at + 2]
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "image.py")
    made = subprocess.run([sys.executable, script, *words, "--onnx", path], stdout=subprocess.PIPE, text=True)
    if not os.path.exists(path):
        lines = made.stdout.strip().splitlines()
        leave(lines[-1] if lines else "image.py wrote no ONNX file")
    return path


def by_onnxruntime(path):
    import onnxruntime
    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads = options.threads
    how.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])
    return lambda images: session.run(None, {"images": images})[0], "onnxruntime " + onnxruntime.__version__


def by_openvino(path):
    import openvino
    # Latency: all threads on one request, as in ours. fp32 even if the CPU has bf16.
    how = {"INFERENCE_NUM_THREADS": options.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", how).create_infer_request()

    def run(images):
        request.infer({0: images}, share_inputs=True)
        return request.get_output_tensor(0).data

    return run, "openvino " + openvino.__version__


def leave_logits(numpy, run):
    """Replaces PyTorch's logits, which image.py wrote next to weights and inputs (agree.py)."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples"))
    from tensors import read
    _, shape, data = read(os.path.join(options.agree, "inputs.safetensors"))["images"]
    logits = run(numpy.frombuffer(data, numpy.float32).reshape(shape))
    write_safetensors(os.path.join(options.agree, "theirs.safetensors"), {"logits": numpy.array(logits)})


def main():
    engines = {"onnxruntime": by_onnxruntime, "openvino": by_openvino}
    try:
        importlib.import_module(options.engine)
        import numpy
    except ImportError:
        leave(options.engine + " is not installed")
    with tempfile.TemporaryDirectory() as folder:
        run, name = engines[options.engine](export(folder))
    if options.agree:
        return leave_logits(numpy, run)
    images = numpy.random.default_rng(1).standard_normal((options.rows, 3, options.image, options.image), numpy.float32)
    run(images)
    answer({"runtime": name, "threads": options.threads}, lambda: run(images), options)


main()
