#!/usr/bin/env bash
# Builds Rondo against libtorch 2.x from the PyPI wheel (CPU parts only) and runs the tests with it.
#
#   tools/torch2.sh                 create build/torch2/libtorch once, build, run base, engine and command tests
#   tools/torch2.sh --only-torch    only create build/torch2/libtorch, for  RONDO_TORCH=build/torch2/libtorch cmake …
#   tools/torch2.sh --only-build    build without running the tests
#   RONDO_TORCH_WHEEL=torch==2.15.0 tools/torch2.sh      use another version
#
# The wheel is built for CUDA: its CPU library links to two CUDA libraries, which are separate wheels; no GPU is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/common.sh

folder=$PWD/build/torch2
torch=$folder/libtorch

fetch() {
  local wheels=$folder/wheels unpacked=$folder/unpacked
  mkdir -p "$wheels" "$unpacked"
  python3 -m pip download -q --no-deps -d "$wheels" "${RONDO_TORCH_WHEEL:-torch}" || fail "pip could not download torch"
  python3 - "$wheels" "$unpacked" <<'PY'
import pathlib, subprocess, sys, zipfile
wheels, unpacked = map(pathlib.Path, sys.argv[1:])
def unpack(pattern, wanted):
    for wheel in wheels.glob(pattern):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if wanted(name):
                    archive.extract(name, unpacked)
needed = ("libtorch_cpu.so", "libc10.so", "libgomp", "libtorch.so", "libshm.so")
unpack("torch-*.whl", lambda n: n.startswith("torch/include/") or n == "torch/version.py" or
       n.startswith("torch/lib/") and pathlib.PurePath(n).name.startswith(needed))
# The CPU library's dependencies outside the wheel: the wheels of CUDA's runtime and profiler.
metadata = next(wheels.glob("torch-*.whl"))
with zipfile.ZipFile(metadata) as archive:
    name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    lines = archive.read(name).decode().splitlines()
def download(*words):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "-d", wheels, *words], check=True)
for line in lines:
    requirement = line.removeprefix("Requires-Dist: ").split(";")[0].strip()
    if requirement.startswith("cuda-toolkit["):  # since CUDA 13 a metapackage
        download("cuda-toolkit[cudart,cupti]" + requirement[requirement.index("]") + 1:])
    elif requirement.startswith(("nvidia-cuda-runtime", "nvidia-cuda-cupti")):
        download("--no-deps", requirement)
unpack("nvidia_cuda_*.whl", lambda n: ".so" in n)
PY
}

# Creates a libtorch with the usual layout: all libraries in one folder, headers except those of fmt and oneDNN (Debian's are
# used), and a CMake configuration without CUDA.
assemble() {
  rm -rf "$torch" && mkdir -p "$torch/lib" "$torch/include" "$torch/share/cmake/Torch"
  find "$folder/unpacked" -name '*.so*' -type f -exec ln -sf {} "$torch/lib/" \;
  local header
  for header in "$folder"/unpacked/torch/include/*; do
    case ${header##*/} in fmt | dnnl* | oneapi) ;; *) ln -s "$header" "$torch/include/" ;; esac
  done
  local version
  version=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$folder/unpacked/torch/version.py")
  cat > "$torch/share/cmake/Torch/TorchConfigVersion.cmake" <<CMAKE
set(PACKAGE_VERSION $version)
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
CMAKE
  cat > "$torch/share/cmake/Torch/TorchConfig.cmake" <<'CMAKE'
get_filename_component(_torch "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TORCH_LIBRARIES torch)
set(TORCH_INCLUDE_DIRS ${_torch}/include ${_torch}/include/torch/csrc/api/include)
set(TORCH_CXX_FLAGS "")
if(NOT TARGET torch)
  add_library(torch INTERFACE IMPORTED)
  target_link_libraries(torch INTERFACE ${_torch}/lib/libtorch_cpu.so ${_torch}/lib/libc10.so)
  target_link_options(torch INTERFACE -Wl,-rpath,${_torch}/lib -Wl,-rpath-link,${_torch}/lib)
endif()
CMAKE
  say "libtorch $version is in $torch"
}

build() {
  cmake -S . -B "$folder/build" -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O3 -DNDEBUG" \
        -DRONDO_UNITY=ON -DRONDO_TORCH="$torch" -DTorch_DIR="$torch/share/cmake/Torch"
  ninja -C "$folder/build" "$@"
}

main() {
  local only=${1:-}
  case $only in
    '' | --only-torch | --only-build) ;;
    -h | --help) print_header "$0" && exit 0 ;;
    *) fail "unknown option '$only' (see tools/torch2.sh --help)" ;;
  esac
  if [[ ! -e $torch/share/cmake/Torch/TorchConfig.cmake ]]; then
    fetch
    assemble
  fi
  [[ $only == --only-torch ]] && return 0
  if [[ $only == --only-build ]]; then
    build rondo
    return 0
  fi
  build
  # The build folder is too deep for the program to find recipes/ and tables/.
  RONDO_SHARE=$PWD ctest --test-dir "$folder/build" --output-on-failure -j 2 -LE 'slow|package'
}

main "$@"
