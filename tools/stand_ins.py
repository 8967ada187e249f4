#!/usr/bin/env python3
"""Makes empty libraries that stand in for those that libtorch names but never calls.

Debian's libtorch_cpu.so is linked to OpenCV and ffmpeg, which bring along some 220 libraries; not one of its symbols comes
from them. The system's loader does not look for a library whose name is there already, so rondo opens the stand-ins first
(cli/engine_loader.cpp): it starts sooner and takes less memory. With -DRONDO_FAST_START=ON the build calls

    tools/stand_ins.py ENGINE FOLDER     ENGINE: librondo_engine.so; FOLDER: where they go, made anew

A library is stood in for only if libtorch_cpu.so uses nothing of it (ldd -u) and no library that stays needs it. If the
engine would then miss a symbol (ldd -r), or anything is in the way, there are none: all works as before, more slowly.
FOLDER/made_for says which libtorch_cpu.so that was found with: its size in bytes, when it was changed (seconds since 1970), its
path. With another rondo does without.
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
    """Name → path of every library that comes with the engine, stand-ins first."""
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
    while True:  # until no library that stays needs one that does not
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
