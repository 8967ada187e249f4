// rondo doctor: what this machine offers, what is slow or missing, and how to fix it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <ATen/Version.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "cli/engine/engine_verbs.h"
#include "cli/engine/session.h"
#include "rondo/base/text.h"
#include "rondo/base/version.h"
#include "rondo/kernels/amx.h"
#include "rondo/kernels/cpu.h"
#include "rondo/nn/torch.h"

namespace rondo::cli {
namespace {

struct Finding {
  std::string what;
  std::string value;
  std::string fix;  // how to fix it; empty: fine
};

// The BLAS that is actually loaded, according to the files mapped into this process.
std::string loaded_blas() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::string found;
  while (std::getline(maps, line)) {
    const auto slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    if (path.find("openblas") != std::string::npos || path.find("mkl_rt") != std::string::npos ||
        path.find("libblis") != std::string::npos) {
      return path;
    }
    if (path.find("libblas.so") != std::string::npos) found = path;
  }
  return found;
}

Finding blas_finding() {
  const std::string blas = loaded_blas();
  const bool fast = blas.find("libblas.so") == std::string::npos && !blas.empty();
  return {"BLAS", blas.empty() ? "none found" : blas,
          fast
              ? ""
              : "the reference BLAS is 17 to 50 times slower: apt-get install libopenblas0-openmp"};
}

// The kernels OpenBLAS selected, named after a CPU generation.
Finding openblas_finding() {
  using CoreName = char* (*)();
  const auto core = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core == nullptr) return {"BLAS kernels", "unknown", ""};
  const std::string name = core();
  const bool old = name == "Prescott" || name == "Core2" || name == "Penryn";
  return {"BLAS kernels", name,
          old && kernels::cpu().avx2
              ? "OpenBLAS does not know this CPU and uses SSE3, five times slower: export "
                "OPENBLAS_CORETYPE=HASWELL (or SKYLAKEX with AVX-512)"
              : ""};
}

std::string instruction_sets() {
  std::string names;
  const kernels::Cpu& cpu = kernels::cpu();
  const auto add = [&](bool has, const char* name) {
    if (has) names += names.empty() ? name : std::string(" ") + name;
  };
  add(cpu.avx2, "AVX2");
  add(cpu.fma, "FMA");
  add(cpu.avx512, "AVX-512");
  add(cpu.avx512_vnni, "AVX-512-VNNI");
  add(cpu.avx512_bf16, "AVX-512-BF16");
  add(kernels::cpu_has_tiles(), "AMX");
  return names.empty() ? "none of AVX2, AVX-512" : names;
}

Finding instruction_finding() {
  const std::string sets = instruction_sets();
  const bool vector = sets.find("AVX2") != std::string::npos;
  return {"instruction sets", sets,
          vector ? "" : "without AVX2 everything is several times slower: use a newer CPU"};
}

// From "CPU capability usage: AVX512" in libtorch's description, the same in 1.13 and 2.x.
std::string aten_capability() {
  const std::string config = at::show_config();
  const std::string mark = "CPU capability usage: ";
  const auto at = config.find(mark);
  if (at == std::string::npos) return "unknown";
  const auto end = config.find('\n', at);
  return config.substr(at + mark.size(), end - at - mark.size());
}

// Libraries mapped into this process, and how many of them are stand-ins for libraries that
// libtorch links but never calls (tools/stand_ins.py), which only some builds have.
Finding library_finding() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> all;
  int64_t stand_ins = 0;
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash == std::string::npos || line.find(".so") == std::string::npos) continue;
    const bool fresh = all.insert(line.substr(slash)).second;
    if (fresh && line.find("/stand_ins/") != std::string::npos) ++stand_ins;
  }
  const std::string loaded = fmt::format("{} loaded", static_cast<int64_t>(all.size()) - stand_ins);
  if (stand_ins > 0) {
    return {"libraries", fmt::format("{}, {} unused ones skipped", loaded, stand_ins), ""};
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  if (std::filesystem::exists(program.parent_path() / "stand_ins")) {
    return {"libraries", loaded + ", stand-ins are for another libtorch and ignored",
            "rebuild: startup would take a third less time"};
  }
  return {"libraries", loaded + " (no fast start: built without RONDO_FAST_START)", ""};
}

Finding thread_finding() {
  const int threads = at::get_num_threads();
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return {
      "threads", fmt::format("{} of {} cores", threads, cores),
      threads < cores ? "OMP_NUM_THREADS limits torch to fewer threads than cores: unset it" : ""};
}

Finding memory_finding() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  int64_t kilobytes = 0;
  int64_t total = 0;
  int64_t available = 0;
  while (info >> key >> kilobytes >> unit) {
    if (key == "MemTotal:") total = kilobytes * 1024;
    if (key == "MemAvailable:") available = kilobytes * 1024;
  }
  const bool low = available < (int64_t{2} << 30);
  return {"memory", fmt::format("{} free of {}", human_bytes(available), human_bytes(total)),
          low ? "less than 2 GiB free: training needs more" : ""};
}

std::vector<Finding> examine() {
  return {
      {"rondo", kVersion, ""},
      {"libtorch", TORCH_VERSION, ""},
      blas_finding(),
      openblas_finding(),
      {"oneDNN", at::hasMKLDNN() ? "yes" : "no",
       at::hasMKLDNN() ? "" : "this libtorch has no oneDNN: bf16 is no faster than fp32"},
      instruction_finding(),
      {"ATen kernels", aten_capability(), ""},
      library_finding(),
      thread_finding(),
      memory_finding(),
  };
}

}  // namespace

void run_doctor(const DoctorOptions& options) {
  start_engine();
  at::matmul(at::ones({8, 8}), at::ones({8, 8}));  // loads the BLAS
  const std::vector<Finding> findings = examine();
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& f : findings) {
      out.push_back({{"what", f.what}, {"value", f.value}, {"fix", f.fix}});
    }
    fmt::print("{}\n", out.dump(2));
    return;
  }
  int problems = 0;
  for (const auto& f : findings) {
    fmt::print("{:<5} {:<17} {}\n", f.fix.empty() ? "ok" : "slow", f.what, f.value);
    if (!f.fix.empty()) fmt::print("      → {}\n", f.fix);
    problems += f.fix.empty() ? 0 : 1;
  }
  fmt::print("{}\n", problems == 0 ? "nothing to fix" : fmt::format("{} to fix", problems));
}

}  // namespace rondo::cli
