// Parses the environments of launchers.
#include "rondo/train/group_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/launcher.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr int64_t kMostProcesses = 1 << 16;
constexpr int64_t kMaxSecretBytes = 4096;
constexpr size_t kLeastSecretBytes = 16;

[[noreturn]] void refuse_place(const std::string& message, const std::string& advice) {
  throw Error(ExitCode::usage, message, advice);
}

// The value of an integer environment variable.
int64_t number_of(const Environment& environment, const char* name, int64_t low, int64_t high) {
  const std::string text = environment(name).value_or("");
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (errno != 0 || text.empty() || *end != '\0' || value < low || value > high) {
    refuse_place(
        fmt::format("environment variable {}: expected a whole number between {} and {}, got '{}'",
                    name, low, high, printable(text)),
        "launchers set it (torchrun, srun, mpirun); unset it to train with one process");
  }
  return value;
}

// Slurm sets a list ("4(x2),3"); its first entry is enough to divide the cores.
int64_t local_size_of(const Environment& environment, const Launcher& launcher, int64_t size) {
  const std::string text = environment(launcher.local_size).value_or("");
  if (text.empty()) return size;
  const int64_t found = std::atoll(text.c_str());
  return found >= 1 && found <= size ? found : size;
}

std::string read_secret(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0 && (found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: the secret is accessible to users other than its owner", path),
                fmt::format("chmod 600 {}", path));
  }
  const std::string text = read_text_file(path, kMaxSecretBytes);
  const std::string secret = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() < kLeastSecretBytes) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: expected a secret of at least {} characters, got {}", path,
                            kLeastSecretBytes, secret.size()),
                "make one with: head -c 32 /dev/urandom | base64");
  }
  return secret;
}

// Uses MASTER_ADDR and MASTER_PORT, or Slurm's node list.
void find_master(const Environment& environment, const Launcher& launcher, GroupPlace& place) {
  if (environment("MASTER_ADDR") && environment("MASTER_PORT")) {
    place.address = *environment("MASTER_ADDR");
    place.port = number_of(environment, "MASTER_PORT", 1, 65535);
    // torchrun itself listens on that port.
    if (environment("TORCHELASTIC_RUN_ID")) place.port = place.port < 65535 ? place.port + 1 : 1024;
    return;
  }
  const std::string name = launcher.name;
  if (name == "Slurm" && environment("SLURM_STEP_NODELIST")) {
    place.address = first_slurm_node(*environment("SLURM_STEP_NODELIST"));
    const int64_t job =
        environment("SLURM_JOB_ID") ? std::atoll(environment("SLURM_JOB_ID")->c_str()) : 0;
    const int64_t step =
        environment("SLURM_STEP_ID") ? std::atoll(environment("SLURM_STEP_ID")->c_str()) : 0;
    place.port = 20000 + (job * 16 + step % 16) % 20000;
    return;
  }
  if (name == "Open MPI" && place.local_size == place.shard.size && environment("PMIX_NAMESPACE")) {
    place.address = "127.0.0.1";
    std::string job = *environment("PMIX_NAMESPACE");
    for (char& c : job) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
    place.file =
        fmt::format("{}/rondo-{}-{}", environment("TMPDIR").value_or("/tmp"), getuid(), job);
    return;
  }
  refuse_place(
      fmt::format("rank {} of {} according to {}'s environment, but no meeting address is set",
                  place.shard.rank, place.shard.size, launcher.name),
      "set MASTER_ADDR and MASTER_PORT, or pass --group-file FILE in a folder that all share");
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::string first_slurm_node(const std::string& list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of("-,]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

std::optional<GroupPlace> find_group(const GroupOptions& options, const Environment& environment) {
  const Launcher* launcher = find_launcher(environment);
  if (launcher == nullptr) {
    if (options.file.empty()) return std::nullopt;
    refuse_place("--group-file: the environment does not say which process of the group this is",
                 "set RANK and WORLD_SIZE, or use --workers N instead");
  }
  GroupPlace place;
  place.launcher = launcher->name;
  place.shard.size = number_of(environment, launcher->size, 1, kMostProcesses);
  place.shard.rank = number_of(environment, launcher->rank, 0, kMostProcesses);
  if (place.shard.rank >= place.shard.size) {
    refuse_place(fmt::format("environment variable {}: expected a rank below {} ({}), got {}",
                             launcher->rank, place.shard.size, launcher->size, place.shard.rank),
                 "ranks count from 0");
  }
  if (place.shard.size == 1) return std::nullopt;
  place.timeout = options.timeout;
  place.local_size = local_size_of(environment, *launcher, place.shard.size);
  if (!options.secret_file.empty()) place.secret = read_secret(options.secret_file);
  const std::string file =
      options.file.empty() ? environment(kGroupFileVariable).value_or("") : options.file;
  if (file.empty()) {
    find_master(environment, *launcher, place);
  } else {
    place.file = file;
    place.address = options.address.empty() ? "127.0.0.1" : options.address;
  }
  return place;
}

}  // namespace rondo
