// Tensors in and out of safetensors files. Loading copies straight from the mapped file into place;
// saving streams each tensor from its own memory.
#pragma once

#include <map>

#include "rondo/base/safetensors.h"
#include "rondo/nn/torch.h"

namespace rondo {

using NamedTensors = std::map<std::string, Tensor>;

at::ScalarType scalar_type(DType dtype);
// Error{bad_input} for types the format does not have.
DType tensor_dtype(const Tensor& tensor);

// A view into the mapping, valid while `file` lives: copy it to keep it.
Tensor tensor_view(const SafetensorsFile& file, const TensorEntry& entry);

// All tensors of a file, owned.
NamedTensors load_tensors(const std::string& path);

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata = {});

// Parameters and buffers of `module` by dotted name.
NamedTensors named_tensors(const torch::nn::Module& module);

// Fills every parameter and buffer of `module` from the file. Error{bad_input} naming every tensor
// that is missing, left over or of another shape; nothing is changed then.
void load_weights(torch::nn::Module& module, const SafetensorsFile& file);

}  // namespace rondo
