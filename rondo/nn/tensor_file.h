// Loads and saves tensors as safetensors files. Loading copies straight from the mapped file into
// place; saving streams each tensor from its own memory.
#pragma once

#include <map>

#include "rondo/base/safetensors.h"
#include "rondo/nn/torch.h"

namespace rondo {

using NamedTensors = std::map<std::string, Tensor>;

at::ScalarType scalar_type(DType dtype);
// Throws Error{bad_input} for types the format does not support.
DType tensor_dtype(const Tensor& tensor);

// A view into the mapping, valid while `file` exists: copy it to keep it.
Tensor tensor_view(const SafetensorsFile& file, const TensorEntry& entry);

// An owned copy. Throws Error{bad_input} for a BOOL that is neither 0 nor 1.
Tensor tensor_copy(const SafetensorsFile& file, const TensorEntry& entry);

// Whether a file's checksum, if present, is verified.
enum class Verify { checksum, nothing };

// All tensors of a file, owned.
NamedTensors load_tensors(const std::string& path, Verify verify = Verify::checksum);

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  Checksum checksum = Checksum::none);

// "expected finite numbers, got nan at element 3", or "" if all are finite.
std::string non_finite_text(const Tensor& tensor);
// Throws Error{bad_input} naming `source` and the tensor if a value is infinite or NaN.
void require_finite(const Tensor& tensor, const std::string& name, const std::string& source);

// Formats a tensor for messages: "F32 [2, 3]".
std::string type_and_shape(const Tensor& tensor);
// Problems with a file, one per line, to append to a message; truncated if there are many.
std::string list_problems(const std::vector<std::string>& problems);

// The weights in a model file or a checkpoint, by the network's names; the running average where a
// checkpoint has one.
NamedTensors load_model_tensors(const std::string& path, Verify verify = Verify::checksum);
// One of them; null if missing.
const TensorEntry* find_weight(const SafetensorsFile& file, const std::string& name);

// Parameters and buffers of `module` by dotted name.
NamedTensors named_tensors(const torch::nn::Module& module);

// Fills every parameter and buffer of `module` from a model file or a checkpoint. Throws
// Error{bad_input} naming every tensor that is missing, unexpected, of another shape or not finite,
// or if the file's checksum does not match; `module` is then unchanged.
void load_weights(torch::nn::Module& module, const SafetensorsFile& file,
                  Verify verify = Verify::checksum);

}  // namespace rondo
