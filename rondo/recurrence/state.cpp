// State: named tensors and the state file.
#include "rondo/recurrence/state.h"

#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr const char* kFormat = "rondo-state-1";

// All tensors must have the same number of rows, and `position` one integer per row.
void check_rows(const SafetensorsFile& file) {
  const auto refuse = [&](const TensorEntry& entry, const std::string& expected) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: tensor '{}': expected {}, got {} [{}]", file.path(), printable(entry.name),
                    expected, dtype_name(entry.dtype), fmt::join(entry.shape, ", ")));
  };
  int64_t rows = 0;
  for (const TensorEntry& entry : file.entries()) {
    if (entry.shape.empty() || entry.shape[0] < 1) refuse(entry, "at least one row");
    if (rows == 0) rows = entry.shape[0];
    if (entry.shape[0] != rows) refuse(entry, fmt::format("{} rows, as in other tensors", rows));
    if (entry.name == "position" && (entry.dtype != DType::i64 || entry.shape.size() != 1)) {
      refuse(entry, fmt::format("I64 [{}]", rows));
    }
  }
}

}  // namespace

Tensor State::get(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? Tensor() : found->second;
}

int64_t State::rows() const { return tensors_.empty() ? 0 : tensors_.begin()->second.size(0); }

int64_t State::bytes() const {
  int64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += static_cast<int64_t>(tensor.nbytes());
  return total;
}

State State::detach() const {
  State copy;
  for (const auto& [name, tensor] : tensors_) copy.set(name, tensor.detach());
  return copy;
}

State State::select(const Tensor& index) const {
  State copy;
  for (const auto& [name, tensor] : tensors_)
    copy.set(name, tensor.index_select(0, index.to(tensor.device())));
  return copy;
}

State State::reset(const Tensor& rows) const {
  if (empty()) return *this;
  State copy = *this;
  const Tensor marked = fresh();
  copy.set("fresh", marked.defined() ? marked.logical_or(rows) : rows.clone());
  return copy;
}

void State::save(const std::string& path, const std::string& fingerprint) const {
  save_tensors(path, tensors_, {{"format", kFormat}, {"fingerprint", fingerprint}}, Checksum::xxh3);
}

State State::without(const std::string& name) const {
  State copy = *this;
  copy.tensors_.erase(name);
  return copy;
}

State State::load_any(const std::string& path, std::string& fingerprint, Verify verify) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto read = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (read("format") != kFormat) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: not a state file (no format mark '{}')", path, kFormat),
                "states are written by --state-out and by 'rondo state read'");
  }
  if (verify == Verify::checksum) file.verify();
  check_rows(file);
  fingerprint = read("fingerprint");
  State state;
  for (const TensorEntry& entry : file.entries()) {
    state.set(entry.name, tensor_copy(file, entry));
  }
  return state;
}

State State::load(const std::string& path, const std::string& fingerprint, Verify verify) {
  std::string owner;
  State state = load_any(path, owner, verify);
  if (owner != fingerprint) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: the state belongs to another model: expected {}, got {}", path,
                            fingerprint, printable(owner)),
                "use the model, weights and tokenizer that wrote it");
  }
  return state;
}

Tensor start_rows(const Tensor& rows, const Tensor& start, const Tensor& value) {
  if (!rows.defined() || value.is_meta()) return value;
  Shape shape(static_cast<size_t>(value.dim()), 1);
  shape[0] = rows.size(0);
  return at::where(rows.to(value.device()).view(shape), start.to(value.options()), value);
}

}  // namespace rondo
