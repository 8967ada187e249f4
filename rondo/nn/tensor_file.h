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

// A copy that is one's own. Error{bad_input} for a BOOL that is neither 0 nor 1.
Tensor tensor_copy(const SafetensorsFile& file, const TensorEntry& entry);

// Whether a file's checksum, if it has one, is compared with its contents.
enum class Verify { checksum, nothing };

// All tensors of a file, owned.
NamedTensors load_tensors(const std::string& path, Verify verify = Verify::checksum);

void save_tensors(const std::string& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  Checksum checksum = Checksum::none);

// "expected finite numbers, got nan at element 3", or "" where all are.
std::string non_finite_text(const Tensor& tensor);
// Error{bad_input} naming `source` and the tensor if a number is infinite or none.
void require_finite(const Tensor& tensor, const std::string& name, const std::string& source);

// "F32 [2, 3]", as messages show a tensor.
std::string type_and_shape(const Tensor& tensor);
// Problems with a file, one a line, below a message; not all if they are many.
std::string list_problems(const std::vector<std::string>& problems);

// The weights in a model file or a checkpoint by the names that the network has for them; of a
// checkpoint the running average where it has one.
NamedTensors load_model_tensors(const std::string& path, Verify verify = Verify::checksum);
// One of them; null if it is not there.
const TensorEntry* find_weight(const SafetensorsFile& file, const std::string& name);

// Parameters and buffers of `module` by dotted name.
NamedTensors named_tensors(const torch::nn::Module& module);

// Fills every parameter and buffer of `module` from the file, a model file or a checkpoint.
// Error{bad_input} naming every tensor that is missing, left over, of another shape, or not finite,
// and if the file's checksum does not match; nothing is changed then.
void load_weights(torch::nn::Module& module, const SafetensorsFile& file,
                  Verify verify = Verify::checksum);

}  // namespace rondo
