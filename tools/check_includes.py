#!/usr/bin/env python3
"""Checks source rules that compilers do not.

  - Includes go one way: a file in rondo/X may include rondo/Y only if Y is X or comes before X in rondo/folders.txt.
    Files in rondo/ spell their own includes from the root ("rondo/..."), so that no path evades this rule.
  - The torch-free parts (the folders of rondo/ that rondo/folders.txt assigns to another library than torch, the tests of
    those of base, cli/*, tests/{cli,faults,fuzz}) include no torch header, not even through other headers of ours.
  - Each file opens with a comment that says what it is for.
  - Files have at most 400 lines, function bodies at most 60.

Usage: tools/check_includes.py [ROOT]      one line per violation, "file:line: message"; exit code 1 if any
       tools/check_includes.py --self-test checks on a synthetic tree that each rule is enforced
"""

import pathlib
import re
import sys
import tempfile



def read_folders():
    """The folders of rondo/ in include order, each with the library it belongs to."""
    path = pathlib.Path(__file__).resolve().parent.parent / "rondo" / "folders.txt"
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: library for name, library in lines}


LIBRARIES = read_folders()
FOLDERS = list(LIBRARIES)
ROOTS = ["rondo", "cli", "tests", "examples", "bench"]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
NO_TORCH = "|".join(name for name in FOLDERS if LIBRARIES[name] != "torch")
BASE = "|".join(name for name in FOLDERS if LIBRARIES[name] == "base")
TORCH_FREE = re.compile(rf"^(rondo/({NO_TORCH})/|cli/[^/]*$|tests/({BASE}|cli|faults|fuzz)/)")


class Source:
    """One file: its path from the root, its lines, and its includes as (line, kind, path)."""

    def __init__(self, root, path):
        self.path = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        self.includes = []
        for number, line in enumerate(self.lines, 1):
            match = INCLUDE.match(line)
            if match:
                self.includes.append((number, match.group(1), match.group(2)))


def read_sources(root):
    sources = {}
    for folder in ROOTS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp") and path.is_file():
                source = Source(root, path)
                sources[source.path] = source
    return sources


def check_opening_comment(source):
    for number, line in enumerate(source.lines, 1):
        if line.strip():
            if not line.lstrip().startswith(("//", "/*")):
                yield number, "the file must open with a comment that says what it is for"
            return
    yield 1, "the file is empty"


def check_file_size(source):
    if len(source.lines) > MAX_FILE_LINES:
        yield MAX_FILE_LINES + 1, f"the file has {len(source.lines)} lines; expected at most {MAX_FILE_LINES}"


def check_direction(source):
    parts = source.path.split("/")
    if parts[0] != "rondo" or len(parts) < 3:
        return
    folder = parts[1]
    if folder not in FOLDERS:
        yield 1, f"rondo/{folder} is not in the include order (rondo/folders.txt)"
        return
    for number, kind, path in source.includes:
        target = path.split("/")
        if target[0] == "rondo" and len(target) > 2:
            if target[1] not in FOLDERS:
                yield number, f"includes {path}, but rondo/{target[1]} is not in the include order"
            elif FOLDERS.index(target[1]) > FOLDERS.index(folder):
                yield number, f"rondo/{folder} must not include rondo/{target[1]}, which comes after it ({path})"
        elif target[0] in ROOTS and target[0] != "rondo":
            yield number, f"the library must not include {path}"
        elif kind == '"':
            yield number, f'includes "{path}": spell our own headers from the root ("rondo/...") and others with <>'


def torch_chain(path, sources, seen):
    """The chain of includes from path to a torch header, or None."""
    seen.add(path)
    for _, _, included in sources[path].includes:
        if TORCH_HEADER.match(included):
            return [included]
        if included in sources and included not in seen:
            chain = torch_chain(included, sources, seen)
            if chain:
                return [included] + chain
    return None


def check_torch_free(source, sources):
    if not TORCH_FREE.match(source.path):
        return
    for number, _, included in source.includes:
        if TORCH_HEADER.match(included):
            yield number, f"a torch-free file must not include {included}"
        elif included in sources:
            chain = torch_chain(included, sources, {source.path})
            if chain:
                yield number, "a torch-free file reaches torch: " + " -> ".join([included] + chain)


def blank(match):
    """Keeps the line breaks of a match, so that line numbers do not change."""
    return re.sub(r"[^\n]", " ", match.group(0))


def strip_code(text):
    """The text without comments, strings, character literals and preprocessor lines, with the same line numbers."""
    text = re.sub(
        r'R"([^\s()\\]{0,16})\(.*?\)\1"'  # raw strings
        r'|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"  # not digit separators as in 1'000
        r"|//[^\n]*|/\*.*?\*/",
        blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def opens_function(head):
    """Whether the text before a brace, outside any function, starts a function rather than a scope or a value."""
    head = re.sub(r"\boperator\s*[^\s\w(]+", "operator_", head)
    while True:
        shorter = re.sub(r"<[^<>]*>", "", re.sub(r"\([^()]*\)", "()", head.replace("(())", "()")))
        if shorter == head:
            break
        head = shorter
    if re.search(r"(^|\s)(namespace|class|struct|union|enum|concept)\s", " " + head) and not head.rstrip().endswith(")"):
        return False
    return "()" in head and "=" not in head


def check_function_sizes(source):
    code = strip_code(source.text)
    line, head_start, depth = 1, 0, 0
    start_line, start_depth = 0, None
    for index, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            if start_depth is None and opens_function(code[head_start:index]):
                start_line, start_depth = line, depth
            depth += 1
            head_start = index + 1
        elif char == "}":
            depth -= 1
            head_start = index + 1
            if start_depth is not None and depth <= start_depth:
                if line - start_line > MAX_FUNCTION_LINES:
                    length = line - start_line
                    yield start_line, f"the function body has {length} lines; expected at most {MAX_FUNCTION_LINES}"
                start_depth = None
        elif char == ";":
            head_start = index + 1


def check_tree(root):
    """All violations under root as sorted lines, and the number of files."""
    sources = read_sources(root)
    found = []
    for source in sources.values():
        for rule in (check_opening_comment, check_file_size, check_direction, check_function_sizes):
            found += [(source.path, number, message) for number, message in rule(source)]
        found += [(source.path, number, message) for number, message in check_torch_free(source, sources)]
    return [f"{path}:{number}: {message}" for path, number, message in sorted(found)], len(sources)


LONG_BODY = "  x();\n" * 61
SELF_TEST = {  # path: (text, expected message, or None for a file that must pass)
    "rondo/base/ok.h": ("// Fine.\n#pragma once\n#include <string>\n", None),
    "rondo/base/up.cpp": ('// Up.\n#include "rondo/nn/good.h"\n', "rondo/base must not include rondo/nn"),
    "rondo/nn/good.h": ('// Fine.\n#include <torch/torch.h>\n#include "rondo/base/ok.h"\n', None),
    "rondo/nn/up.h": ('// Up.\n#include "rondo/model/plain.h"\n', "rondo/nn must not include rondo/model"),
    "rondo/nn/relative.h": ('// Hidden.\n#include "../model/plain.h"\n', "from the root"),
    "rondo/nn/cli.h": ('// Down.\n#include "cli/main.h"\n', "the library must not include cli/main.h"),
    "rondo/other/lost.h": ("// Lost.\n", "not in the include order"),
    "rondo/model/plain.h": ("// Fine.\n", None),
    "rondo/model/host.h": ('// Fine.\n#include "rondo/nn/good.h"\n', None),
    "rondo/base/data.h": ('// Up.\n#include "rondo/data/ok.h"\n', "rondo/base must not include rondo/data"),
    "rondo/data/ok.h": ('// Fine.\n#include "rondo/base/ok.h"\n', None),
    "rondo/data/torch.cpp": ("// Torch.\n#include <torch/torch.h>\n", "must not include torch/torch.h"),
    "rondo/data/nn.cpp": ('// Up.\n#include "rondo/nn/pure.h"\n', "rondo/data must not include rondo/nn"),
    "tests/data/chain_test.cpp": ('// Chain.\n#include "rondo/nn/good.h"\n', "reaches torch"),
    "rondo/base/torch.cpp": ("// Torch.\n#include <ATen/ATen.h>\n", "must not include ATen/ATen.h"),
    "rondo/config/zoo_x.cpp": ("// Torch.\n#include <c10/core/Device.h>\n", "must not include c10/"),
    "rondo/config/zoo.cpp": ('// Up.\n#include "rondo/model/host.h"\n', "rondo/config must not include rondo/model"),
    "rondo/kernels/gemm.cpp": ("// Torch.\n#include <ATen/ATen.h>\n", "must not include ATen/ATen.h"),
    "cli/models.cpp": ('// Chain.\n#include "rondo/model/host.h"\n',
                       "rondo/model/host.h -> rondo/nn/good.h -> torch/torch.h"),
    "tests/metrics/bleu_test.cpp": ('// Chain.\n#include "rondo/model/host.h"\n', "reaches torch"),
    "rondo/train/task.h": ('// Fine.\n#include "rondo/model/host.h"\n', None),
    "rondo/nn/pure.h": ("// Fine.\n", None),
    "cli/main.cpp": ('// Chain.\n#include "rondo/nn/good.h"\n', "reaches torch"),
    "cli/engine/run.cpp": ('// Fine.\n#include "rondo/nn/good.h"\n', None),
    "tests/nn/good_test.cpp": ('// Fine.\n#include "rondo/model/host.h"\n', None),
    "rondo/nn/silent.h": ("#pragma once\n// Late.\n", "must open with a comment"),
    "rondo/nn/long.h": ("// Long.\n" + "int x;\n" * 400, "the file has 401 lines"),
    "rondo/nn/edge.h": ("// Fine.\n" + "int x;\n" * 399, None),
    "rondo/nn/function.cpp": ("// F.\nnamespace a {\nint f(int b = 2) {\n" + LONG_BODY + "}\n}\n", "body has 62 lines"),
    "rondo/nn/method.cpp": ("// F.\nclass A : public B<int> {\n A(int b) : b_{b}, c_(1) {\n" + LONG_BODY + " }\n};\n",
                            "body has 62 lines"),
    "rondo/nn/assign.cpp": ("// F.\nA& A::operator=(const A& b) noexcept {\n" + LONG_BODY + "}\n", "body has 62 lines"),
    "rondo/nn/struct.cpp": ("// F.\nstruct A {\n" + "  int x;\n" * 70 + "};\n", None),
    "rondo/nn/table.cpp": ("// F.\nconst std::vector<int> table = make({\n" + "  1,\n" * 70 + "});\n", None),
    "rondo/nn/strings.cpp": ("// F.\nvoid f() { g('{', \"{\", R\"({{)\", 1'000); /* { */ }  // {\n"
                             "#define A(x) \\\n  { x\n" + "int x;\n" * 70 + "void g() {}\n", None),
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, (text, _) in SELF_TEST.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        lines, _ = check_tree(root)
    wrong = []
    for path, (_, expected) in SELF_TEST.items():
        found = [line for line in lines if line.startswith(path + ":")]
        if expected is None and found:
            wrong.append(f"{path}: expected no violation, got {found}")
        elif expected is not None and not any(expected in line for line in found):
            wrong.append(f"{path}: expected '{expected}', got {found}")
    for line in wrong:
        print("self-test: " + line)
    print(f"  self-test: {len(SELF_TEST) - len(wrong)} of {len(SELF_TEST)} cases passed")
    return 1 if wrong else 0


def main(arguments):
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    lines, count = check_tree(root)
    for line in lines:
        print(line)
    print(f"  {count} files, {len(lines)} violations")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
