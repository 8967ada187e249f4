// Saving and loading checkpoints.
#include "rondo/train/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr const char* kCheckpointFormat = "rondo-checkpoint-1";
constexpr const char* kChecksumKey = "checksum";

// Over everything in the file but the checksum itself: no byte of it may change unnoticed.
std::string checkpoint_checksum(const Checkpoint& checkpoint) {
  uint64_t hash = 0;
  const auto add = [&](const void* data, size_t size) {
    hash = XXH3_64bits_withSeed(data, size, hash);
  };
  for (const auto& [key, value] : checkpoint.facts) {
    if (key == kChecksumKey) continue;
    add(key.data(), key.size());
    add(value.data(), value.size());
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const Tensor t = tensor.detach().contiguous();
    const std::string head =
        fmt::format("{} {} [{}]", name, dtype_name(tensor_dtype(t)), fmt::join(t.sizes(), ","));
    add(head.data(), head.size());
    add(t.data_ptr(), t.nbytes());
  }
  return fmt::format("{:016x}", hash);
}

int64_t tensor_bytes(const NamedTensors& tensors) {
  size_t total = 0;
  for (const auto& [name, tensor] : tensors) total += tensor.nbytes();
  return static_cast<int64_t>(total);
}

// Writes `checkpoint`; what the system refuses is said with the room that is needed.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  try {
    save_tensors(path, checkpoint.tensors, checkpoint.facts);
  } catch (const Error& error) {
    if (error.code() != ExitCode::io) throw;
    throw Error(ExitCode::io,
                fmt::format("{}; the checkpoint takes {} bytes, those before it are untouched",
                            error.message(), with_commas(tensor_bytes(checkpoint.tensors))),
                error.advice());
  }
}

}  // namespace

NamedTensors Checkpoint::below(const std::string& prefix) const {
  NamedTensors out;
  for (auto it = tensors.lower_bound(prefix); it != tensors.end(); ++it) {
    if (it->first.compare(0, prefix.size(), prefix) != 0) break;
    out[it->first.substr(prefix.size())] = it->second;
  }
  return out;
}

void Checkpoint::add(const std::string& prefix, const NamedTensors& more) {
  for (const auto& [name, tensor] : more) tensors[prefix + name] = tensor;
}

std::string CheckpointFolder::path(int64_t step) const {
  return fmt::format("{}/{:08}.safetensors", folder_, step);
}

void CheckpointFolder::save(int64_t step, const Checkpoint& checkpoint, int64_t keep) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot make the folder: {}", folder_, error.message()));
  }
  Checkpoint whole = checkpoint;  // shares the tensors
  whole.facts["format"] = kCheckpointFormat;
  whole.facts[kChecksumKey] = checkpoint_checksum(whole);
  write_checkpoint(path(step), whole);
  // Later ones can only be damaged (else the run had gone on from them): they are not counted.
  std::vector<int64_t> all = steps();
  all.erase(std::upper_bound(all.begin(), all.end(), step), all.end());
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    std::error_code ignored;
    std::filesystem::remove(path(all[i]), ignored);
  }
}

std::vector<int64_t> CheckpointFolder::steps() const {
  std::vector<int64_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string stem = entry.path().stem().string();
    const bool number = !stem.empty() && stem.size() < 19 &&
                        stem.find_first_not_of("0123456789") == std::string::npos;
    if (number && entry.path().extension() == ".safetensors") found.push_back(std::stoll(stem));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest() const {
  std::vector<int64_t> all = steps();
  std::reverse(all.begin(), all.end());
  for (const int64_t step : all) {
    try {
      return Found{step, load_checkpoint(path(step))};
    } catch (const Error& error) {
      log_warn("{}; using the checkpoint before it", error.message());
    }
  }
  return std::nullopt;
}

Checkpoint load_checkpoint(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  Checkpoint checkpoint;
  checkpoint.facts = file.metadata();
  if (checkpoint.facts["format"] != kCheckpointFormat) {
    throw Error(ExitCode::bad_input, fmt::format("{}: not a checkpoint", path),
                "checkpoints are written by 'rondo train'");
  }
  for (const TensorEntry& entry : file.entries()) {
    checkpoint.tensors[entry.name] = tensor_view(file, entry);
  }
  if (checkpoint_checksum(checkpoint) != checkpoint.facts[kChecksumKey]) {
    throw Error(ExitCode::bad_input, fmt::format("{}: damaged, its checksum does not match", path));
  }
  for (auto& [name, tensor] : checkpoint.tensors) tensor = tensor.clone();
  return checkpoint;
}

}  // namespace rondo
