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
#include "rondo/config/trained_files.h"

namespace rondo {
namespace {

// Checkpoints written before they had the checksum of all files (kFileChecksumKey) have one of
// their own, of everything in the file except itself.
constexpr const char* kEarlierChecksumKey = "checksum";

std::string earlier_checksum(const Checkpoint& checkpoint) {
  uint64_t hash = 0;
  const auto add = [&](const void* data, size_t size) {
    hash = XXH3_64bits_withSeed(data, size, hash);
  };
  for (const auto& [key, value] : checkpoint.metadata) {
    if (key == kEarlierChecksumKey) continue;
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

// Writes `checkpoint`; I/O errors include the space needed.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  try {
    save_tensors(path, checkpoint.tensors, checkpoint.metadata, Checksum::xxh3);
  } catch (const Error& error) {
    if (error.code() != ExitCode::io) throw;
    throw Error(ExitCode::io,
                fmt::format("{}; the checkpoint needs {} bytes; earlier ones are untouched",
                            error.message(), with_commas(tensor_bytes(checkpoint.tensors))),
                error.advice());
  }
}

// Existing checkpoints are unusable: the run must not start over and overwrite them.
[[noreturn]] void refuse_checkpoints(const std::string& folder,
                                     const std::vector<std::string>& reasons, bool unreadable) {
  const std::string message =
      fmt::format("{}: {}; nothing was changed\n  {}", folder,
                  unreadable ? "cannot read a checkpoint" : "no checkpoint is intact",
                  fmt::join(reasons, "\n  "));
  if (unreadable) {
    throw Error(ExitCode::io, message, "make the files readable, then run the same command again");
  }
  throw Error(ExitCode::bad_input, message,
              "restore a copy of one, or choose another folder with -o to start over");
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

std::string Checkpoint::entry(const std::string& key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

std::string CheckpointFolder::path(int64_t step) const {
  return fmt::format("{}/{:08}.safetensors", folder_, step);
}

void CheckpointFolder::save(int64_t step, const Checkpoint& checkpoint, int64_t keep) const {
  std::error_code error;
  std::filesystem::create_directory(folder_, error);  // not its parents: they may have been moved
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot create the folder: {}", folder_, error.message()));
  }
  Checkpoint whole = checkpoint;  // shares the tensors
  whole.metadata["format"] = kCheckpointFormat;
  write_checkpoint(path(step), whole);
  // Later ones must be damaged (otherwise the run would have resumed from them): not counted.
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
  // A dangling link (to a disk that is not mounted) does not mean that there is no folder.
  if (std::filesystem::symlink_status(folder_, error).type() ==
      std::filesystem::file_type::not_found) {
    return found;
  }
  std::filesystem::directory_iterator entry(folder_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& file = entry->path();
    const std::string stem = file.stem().string();
    const bool number = !stem.empty() && stem.size() < 19 &&
                        stem.find_first_not_of("0123456789") == std::string::npos;
    if (number && file.extension() == ".safetensors") found.push_back(std::stoll(stem));
  }
  if (error) {
    throw Error(ExitCode::io,
                fmt::format("{}: cannot read the folder: {}", folder_, error.message()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest() const {
  std::vector<int64_t> all = steps();
  std::reverse(all.begin(), all.end());
  std::vector<std::string> reasons;
  bool unreadable = false;
  std::optional<Found> found;
  for (const int64_t step : all) {
    try {
      found = Found{step, load_checkpoint(path(step))};
      break;
    } catch (const Error& error) {
      unreadable = unreadable || error.code() == ExitCode::io;
      reasons.push_back(error.message());
    }
  }
  if (all.empty()) return std::nullopt;
  if (!found.has_value() || unreadable) refuse_checkpoints(folder_, reasons, unreadable);
  for (const std::string& reason : reasons) {
    log_warn("{}; skipped in favor of the checkpoint of step {}", reason, found->step);
  }
  return found;
}

Checkpoint load_checkpoint(const std::string& path) {
  return load_checkpoint(path, Verify::checksum);
}

Checkpoint load_checkpoint(const std::string& path, Verify verify) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (verify == Verify::checksum) file.verify();
  Checkpoint checkpoint;
  checkpoint.metadata = file.metadata();
  if (checkpoint.metadata["format"] != kCheckpointFormat) {
    throw Error(ExitCode::bad_input, fmt::format("{}: not a checkpoint", path),
                "checkpoints are written by 'rondo train'");
  }
  for (const TensorEntry& entry : file.entries()) {
    checkpoint.tensors[entry.name] = tensor_view(file, entry);
  }
  if (verify == Verify::checksum && checkpoint.metadata.count(kFileChecksumKey) == 0 &&
      earlier_checksum(checkpoint) != checkpoint.entry(kEarlierChecksumKey)) {
    throw Error(ExitCode::bad_input, fmt::format("{}: damaged, its checksum does not match", path));
  }
  for (auto& [name, tensor] : checkpoint.tensors) tensor = tensor.clone();
  return checkpoint;
}

}  // namespace rondo
