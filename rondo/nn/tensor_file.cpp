// Tensors in and out of safetensors files.
#include "rondo/nn/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rondo/base/error.h"

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

// At most this many names are listed in one message.
constexpr size_t kListed = 20;

std::string list_names(const std::vector<std::string>& names) {
  const std::vector<std::string> head(names.begin(),
                                      names.begin() + std::min(names.size(), kListed));
  const std::string more =
      names.size() > kListed ? fmt::format("\n    … and {} more", names.size() - kListed) : "";
  return fmt::format("\n    {}{}", fmt::join(head, "\n    "), more);
}

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.file == dtype) return pair.torch;
  }
  throw Error(ExitCode::bad_input, fmt::format("no tensor type for {}", dtype_name(dtype)));
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

NamedTensors load_tensors(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  NamedTensors tensors;
  for (const TensorEntry& entry : file.entries()) {
    tensors[entry.name] = tensor_view(file, entry).clone();
  }
  return tensors;
}

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<Tensor> kept;  // contiguous copies must outlive the writing
  std::vector<TensorRef> refs;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().contiguous());
    const Tensor& t = kept.back();
    refs.push_back({name, tensor_dtype(t), t.sizes().vec(), t.data_ptr()});
  }
  write_safetensors(path, refs, metadata);
}

NamedTensors named_tensors(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

void load_weights(torch::nn::Module& module, const SafetensorsFile& file) {
  const NamedTensors mine = named_tensors(module);
  std::vector<std::string> wrong;
  for (const auto& [name, tensor] : mine) {
    const TensorEntry* entry = file.find(name);
    if (entry == nullptr) {
      wrong.push_back(fmt::format("missing: {} {}", name, tensor.sizes().vec()));
    } else if (entry->shape != tensor.sizes().vec()) {
      wrong.push_back(
          fmt::format("{}: expected shape {}, got {}", name, tensor.sizes().vec(), entry->shape));
    }
  }
  for (const TensorEntry& entry : file.entries()) {
    if (mine.count(entry.name) == 0) wrong.push_back("not in the model: " + entry.name);
  }
  if (!wrong.empty()) {
    throw Error(ExitCode::bad_input,
                fmt::format("{}: weights do not fit the model:{}", file.path(), list_names(wrong)),
                "give the configuration the weights were made for, or convert other programs' "
                "weights with 'rondo import'");
  }
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : mine) {
    Tensor target = tensor;
    target.copy_(tensor_view(file, *file.find(name)));
  }
}

}  // namespace rondo
