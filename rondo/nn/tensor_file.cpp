// Loading and saving of tensors as safetensors files.
#include "rondo/nn/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>

#include "rondo/base/error.h"
#include "rondo/config/trained_files.h"

namespace rondo {
namespace {

struct TypePair {
  DType file;
  at::ScalarType torch;
};

constexpr TypePair kTypes[] = {
    {DType::f64, at::kDouble},    {DType::f32, at::kFloat}, {DType::f16, at::kHalf},
    {DType::bf16, at::kBFloat16}, {DType::i64, at::kLong},  {DType::i32, at::kInt},
    {DType::i16, at::kShort},     {DType::i8, at::kChar},   {DType::u8, at::kByte},
    {DType::boolean, at::kBool},
};

// Maximum number of problems listed in one message.
constexpr size_t kListed = 20;

constexpr std::string_view kWeightPrefix = "weight.";    // in checkpoints
constexpr std::string_view kAveragePrefix = "average.";  // of parameters; preferred where present

bool is_checkpoint_file(const SafetensorsFile& file) {
  const auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second == kCheckpointFormat;
}

// The network's name for the tensor; "" if it is not a weight.
std::string weight_name(const SafetensorsFile& file, const std::string& stored) {
  if (!is_checkpoint_file(file)) return stored;
  return stored.compare(0, kWeightPrefix.size(), kWeightPrefix) == 0
             ? stored.substr(kWeightPrefix.size())
             : "";
}

// Verifies the checksum and that all of `mine` are finite in the file. Both read the whole file, so
// they run concurrently and each byte comes from memory once.
void check_contents(const NamedTensors& mine, const SafetensorsFile& file, Verify verify) {
  std::future<void> verified;
  if (verify == Verify::checksum) {
    verified = std::async([&file] { file.verify(); });
  }
  const auto weights = [&](const std::string& name) {
    return tensor_view(file, *find_weight(file, name)).to(mine.at(name).scalar_type());
  };
  std::string wrong;  // the first that is not finite
  for (auto it = mine.begin(); it != mine.end() && wrong.empty(); ++it) {
    if (!non_finite_text(weights(it->first)).empty()) wrong = it->first;
  }
  if (verified.valid()) verified.get();  // a checksum mismatch is the better explanation
  if (!wrong.empty()) require_finite(weights(wrong), wrong, file.path());
}

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.file == dtype) return pair.torch;
  }
  throw Error(ExitCode::bad_input, fmt::format("unsupported tensor type {}", dtype_name(dtype)));
}

DType tensor_dtype(const Tensor& tensor) {
  for (const TypePair& pair : kTypes) {
    if (pair.torch == tensor.scalar_type()) return pair.file;
  }
  throw Error(ExitCode::bad_input, fmt::format("tensors of type {} cannot be saved",
                                               c10::toString(tensor.scalar_type())));
}

Tensor tensor_view(const SafetensorsFile& file, const TensorEntry& entry) {
  // The mapping is read-only; torch has no const tensors, so views are only ever copied from.
  auto* data = const_cast<uint8_t*>(file.bytes(entry));
  return torch::from_blob(data, entry.shape, at::TensorOptions(scalar_type(entry.dtype)));
}

Tensor tensor_copy(const SafetensorsFile& file, const TensorEntry& entry) {
  if (entry.dtype == DType::boolean) {
    const uint8_t* bytes = file.bytes(entry);
    const uint8_t* wrong =
        std::find_if(bytes, bytes + entry.elements(), [](uint8_t byte) { return byte > 1; });
    if (wrong != bytes + entry.elements()) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}: tensor '{}': expected 0 or 1, got {} at element {}", file.path(),
                              entry.name, *wrong, wrong - bytes));
    }
  }
  return tensor_view(file, entry).clone();
}

NamedTensors load_tensors(const std::string& path, Verify verify) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (verify == Verify::checksum) file.verify();
  NamedTensors tensors;
  for (const TensorEntry& entry : file.entries()) {
    tensors[entry.name] = tensor_copy(file, entry);
  }
  return tensors;
}

const TensorEntry* find_weight(const SafetensorsFile& file, const std::string& name) {
  if (!is_checkpoint_file(file)) return file.find(name);
  const TensorEntry* average = file.find(std::string(kAveragePrefix) + name);
  return average != nullptr ? average : file.find(std::string(kWeightPrefix) + name);
}

NamedTensors load_model_tensors(const std::string& path, Verify verify) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (verify == Verify::checksum) file.verify();
  NamedTensors tensors;
  for (const TensorEntry& entry : file.entries()) {
    const std::string name = weight_name(file, entry.name);
    if (!name.empty()) tensors[name] = tensor_copy(file, *find_weight(file, name));
  }
  return tensors;
}

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata, Checksum checksum) {
  std::vector<Tensor> kept;  // contiguous copies must outlive the write
  std::vector<TensorRef> refs;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().to(at::kCPU).contiguous());
    const Tensor& t = kept.back();
    refs.push_back({name, tensor_dtype(t), t.sizes().vec(), t.data_ptr()});
  }
  write_safetensors(path, refs, metadata, checksum);
}

std::string non_finite_text(const Tensor& tensor) {
  const Tensor t = tensor.detach().to(at::kCPU).contiguous();
  const auto index = first_non_finite(tensor_dtype(t), t.data_ptr(), t.numel());
  if (!index.has_value()) return {};
  return fmt::format("expected finite numbers, got {} at element {}",
                     t.view({-1})[*index].item<double>(), *index);
}

void require_finite(const Tensor& tensor, const std::string& name, const std::string& source) {
  const std::string problem = non_finite_text(tensor);
  if (problem.empty()) return;
  throw Error(ExitCode::bad_input, fmt::format("{}: tensor '{}': {}", source, name, problem),
              "training diverged or the file is damaged: use an earlier model or checkpoint");
}

std::string type_and_shape(const Tensor& tensor) {
  return fmt::format("{} [{}]", dtype_name(tensor_dtype(tensor)),
                     fmt::join(tensor.sizes().vec(), ", "));
}

std::string list_problems(const std::vector<std::string>& problems) {
  const std::vector<std::string> head(problems.begin(),
                                      problems.begin() + std::min(problems.size(), kListed));
  const std::string more = problems.size() > kListed
                               ? fmt::format("\n    … and {} more", problems.size() - kListed)
                               : "";
  return fmt::format("\n    {}{}", fmt::join(head, "\n    "), more);
}

NamedTensors named_tensors(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

void load_weights(torch::nn::Module& module, const SafetensorsFile& file, Verify verify) {
  const NamedTensors mine = named_tensors(module);
  std::vector<std::string> wrong;
  for (const auto& [name, tensor] : mine) {
    const TensorEntry* entry = find_weight(file, name);
    if (entry == nullptr) {
      wrong.push_back(fmt::format("missing: {} {}", name, tensor.sizes().vec()));
    } else if (entry->shape != tensor.sizes().vec()) {
      wrong.push_back(
          fmt::format("{}: expected shape {}, got {}", name, tensor.sizes().vec(), entry->shape));
    }
  }
  for (const TensorEntry& entry : file.entries()) {
    const std::string name = weight_name(file, entry.name);
    if (!name.empty() && mine.count(name) == 0) wrong.push_back("not in the model: " + name);
  }
  if (!wrong.empty()) {
    throw Error(
        ExitCode::bad_input,
        fmt::format("{}: weights do not match the model:{}", file.path(), list_problems(wrong)),
        "use the configuration the weights were trained with, or convert other programs' "
        "weights with 'rondo import'");
  }
  check_contents(mine, file, verify);
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : mine) {
    Tensor target = tensor;
    target.copy_(tensor_view(file, *find_weight(file, name)));
  }
}

}  // namespace rondo
