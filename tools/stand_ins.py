#!/usr/bin/env python3
"""Creates empty stand-ins for libraries that libtorch links but never calls.

Debian's libtorch_cpu.so is linked to OpenCV and ffmpeg, which pull in some 220 libraries; none of its symbols come from
them. The dynamic loader does not search for a library whose name is already loaded, so rondo loads the stand-ins first
(cli/engine_loader.cpp): it starts faster and takes less memory. With -DRONDO_FAST_START=ON the build calls

    tools/stand_ins.py ENGINE FOLDER     ENGINE: librondo_engine.so; FOLDER: for the stand-ins, recreated

A library is replaced only if libtorch_cpu.so uses nothing from it (ldd -u) and no remaining library needs it. If the engine
would then lack a symbol (ldd -r), or on any other failure, no stand-ins are created: everything works, but starts more slowly.
FOLDER/made_for identifies the libtorch_cpu.so they were made for: size in bytes, modification time (seconds since 1970) and
path. With any other libtorch, rondo ignores them.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TORCH = "libtorch_cpu.so"


def output(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C", **environment}, check=False)
    return done.stdout + done.stderr


def loaded_with(engine, folder):
    """Name → path of every library loaded with the engine, preferring stand-ins."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", engine, LD_LIBRARY_PATH=str(folder)), re.MULTILINE))


def needed_by(library):
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "--dynamic", "--wide", library)))


def stand_in(name, folder):
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", folder / name, "-x", "c", os.devnull], check=True)


def make(engine, folder):
    torch = next((path for name, path in loaded_with(engine, folder).items() if name.startswith(TORCH)), None)
    if torch is None:
        return
    for path in re.findall(r"^\s+(/\S+)$", output("ldd", "-u", torch), re.MULTILINE):
        stand_in(Path(path).name, folder)
    facts = os.stat(torch)
    while True:  # until no remaining library needs a replaced one
        standing = {path.name for path in folder.iterdir()}
        staying = {name: path for name, path in loaded_with(engine, folder).items() if name not in standing}
        others = [path for name, path in staying.items() if not name.startswith(TORCH)] + [engine]
        missed = standing & set().union(*map(needed_by, others))
        if not missed:
            break
        for name in missed:
            (folder / name).unlink()
    if "undefined symbol" in output("ldd", "-r", engine, LD_LIBRARY_PATH=str(folder)):
        shutil.rmtree(folder)
        return
    (folder / "made_for").write_text(f"{facts.st_size} {int(facts.st_mtime)} {torch}\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    engine, folder = sys.argv[1], Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        make(engine, folder)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no stand-ins for unused libraries, rondo will start more slowly: {error}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)


main()
