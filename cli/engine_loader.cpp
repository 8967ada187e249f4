// Finds and loads the engine next to the program.
#include "cli/engine_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/engine_interface.h"
#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/memory_limit.h"
#include "rondo/base/own_files.h"
#include "rondo/base/text.h"
#include "rondo/kernels/cpu.h"

namespace rondo::cli {
namespace {

constexpr const char* kEngineFile = "librondo_engine.so";

// The newest OpenBLAS kernels that this CPU can run; null: leave it to OpenBLAS.
const char* openblas_core() {
  const kernels::Cpu& cpu = kernels::cpu();
  if (cpu.avx512_bf16) return "COOPERLAKE";
  if (cpu.avx512) return "SKYLAKEX";
  return cpu.avx2 && cpu.fma ? "HASWELL" : nullptr;
}

// Must run before libgomp and libtorch are loaded; variables set by the user are kept.
void prepare_environment() {
  // Threads that wait for each other spin this many times (about a quarter of a millisecond) before
  // they sleep. Measured: without spinning, a training step with both cores to itself took 1.3 to
  // 1.9 times as long; with four times the count, one on a busy machine took several times as long.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "5000", /*overwrite=*/0);
  // OpenBLAS falls back to SSE3 on CPUs newer than itself: five times slower.
  if (const char* core = openblas_core(); core != nullptr) {
    setenv("OPENBLAS_CORETYPE", core, /*overwrite=*/0);
  }
  // ATen uses at most AVX2 by default.
  if (kernels::cpu().avx512) setenv("ATEN_CPU_CAPABILITY", "avx512", /*overwrite=*/0);
}

// OpenBLAS maps a buffer per thread when it is loaded and, if that fails, retries forever. Under
// ulimit -v or -d, start it with as many threads as fit. Throws Error if not even one does.
void keep_within_limits() {
  const char* given = std::getenv("OMP_NUM_THREADS");
  const int64_t asked = given != nullptr ? std::atoll(given) : 0;
  const int64_t wanted = asked > 0 ? std::min(asked, usable_cores()) : usable_cores();
  const int64_t fitting = std::max<int64_t>(1, threads_with_room(wanted));
  require_engine_room(fitting);
#if defined(__GLIBC__)
  // Avoids 64 MiB of address space for each thread that allocates.
  if (!named_limits().empty()) mallopt(M_ARENA_MAX, 1);
#endif
  if (fitting < wanted) {
    setenv("OMP_NUM_THREADS", std::to_string(fitting).c_str(), /*overwrite=*/1);
  }
}

// Whether the stand-ins were made for the libtorch that is installed now.
bool made_for_this_torch(const std::string& folder) {
  std::ifstream made_for(folder + "/made_for");
  int64_t bytes = 0;
  int64_t changed = 0;
  std::string path;
  if (!(made_for >> bytes >> changed) || !std::getline(made_for >> std::ws, path)) return false;
  struct stat now = {};
  return stat(path.c_str(), &now) == 0 && now.st_size == bytes && now.st_mtime == changed;
}

// Loads empty libraries in place of those that libtorch links but never calls (tools/stand_ins.py),
// if this build has any: the loader does not search for a library name that is already loaded. If
// one cannot be opened, the real library is used.
void open_stand_ins() {
  const std::string folder = module_path("stand_ins");
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return;
  if (!made_for_this_torch(folder)) {
    log_debug("{}: made for another libtorch, ignored; rebuild for a fast start", folder);
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename() != "made_for") dlopen(entry.path().c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
}

// Restores what the process does at signals. Libraries behind libtorch install handlers when they
// are loaded (Debian 13's links UCX, which handles SIGHUP and crashes), over ignored signals too.
class KeptSignals {
 public:
  KeptSignals() {
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
      struct sigaction before = {};
      if (sigaction(signal, nullptr, &before) == 0) before_[signal] = before;
    }
  }
  ~KeptSignals() {
    for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::map<int, struct sigaction> before_;
};

void* load_engine() {
  keep_within_limits();
  prepare_environment();
  const KeptSignals signals;
  open_stand_ins();
  const std::string path = module_path(kEngineFile);
  // Lazy binding: functions of the libraries behind it are resolved on first call.
  void* engine = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (engine == nullptr) {
    throw Error(ExitCode::failure, std::string("cannot load the engine: ") + dlerror(),
                "build it with ./demo, and keep librondo_engine.so next to librondo_base.so");
  }
  return engine;
}

// The functions of cli/engine_interface.h, from an engine of the same version.
struct Engine {
  decltype(&rondo_engine_run) run;
  decltype(&rondo_engine_error) error;
};

template <class Function>
Function* engine_function(void* engine, const char* name) {
  void* symbol = dlsym(engine, name);
  if (symbol == nullptr) {
    throw Error(ExitCode::failure,
                fmt::format("{}: has no function {}", module_path(kEngineFile), name),
                "it has another version than rondo: rebuild both");
  }
  return reinterpret_cast<Function*>(symbol);
}

Engine open_engine() {
  void* engine = load_engine();
  const std::string found =
      engine_function<decltype(rondo_engine_version)>(engine, "rondo_engine_version")();
  const std::string expected = fmt::format("{}, interface {}", kVersion, kEngineInterface);
  if (found != expected) {
    throw Error(ExitCode::failure,
                fmt::format("{}: expected engine version {}, got {}", module_path(kEngineFile),
                            expected, printable(found)),
                "build or install rondo and its engine together");
  }
  return {engine_function<decltype(rondo_engine_run)>(engine, "rondo_engine_run"),
          engine_function<decltype(rondo_engine_error)>(engine, "rondo_engine_error")};
}

}  // namespace

int run_engine_with(const std::string& verb, const std::string& options) {
  static const Engine engine = open_engine();
  const int code = engine.run(verb.c_str(), options.data(), options.size());
  const std::string error = engine.error();
  if (!error.empty()) throw Error(static_cast<ExitCode>(code), error);
  return code;
}

}  // namespace rondo::cli
