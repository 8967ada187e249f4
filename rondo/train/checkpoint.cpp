// Saving and loading checkpoints.
#include "rondo/train/checkpoint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/log.h"

namespace rondo {
namespace {

constexpr const char* kCheckpointFormat = "rondo-checkpoint-1";

std::string tensors_checksum(const NamedTensors& tensors) {
  uint64_t hash = 0;
  for (const auto& [name, tensor] : tensors) {
    const Tensor t = tensor.detach().contiguous();
    hash = XXH3_64bits_withSeed(name.data(), name.size(), hash);
    hash = XXH3_64bits_withSeed(t.data_ptr(), t.nbytes(), hash);
  }
  return fmt::format("{:016x}", hash);
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
  std::filesystem::create_directories(folder_);
  auto metadata = checkpoint.facts;
  metadata["format"] = kCheckpointFormat;
  metadata["checksum"] = tensors_checksum(checkpoint.tensors);
  save_tensors(path(step), checkpoint.tensors, metadata);
  std::vector<int64_t> all = steps();
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
    const bool number = !stem.empty() && stem.find_first_not_of("0123456789") == std::string::npos;
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
    checkpoint.tensors[entry.name] = tensor_view(file, entry).clone();
  }
  if (tensors_checksum(checkpoint.tensors) != checkpoint.facts["checksum"]) {
    throw Error(ExitCode::bad_input, fmt::format("{}: damaged, its checksum does not match", path));
  }
  return checkpoint;
}

}  // namespace rondo
