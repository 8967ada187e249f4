// State is a value: whatever a model carries from one call to the next (key/value windows,
// recurrent state vectors, decoder caches, positions) as named tensors with the batch first.
// Copying shares memory and is cheap; no operation changes a tensor in place, so a copy taken
// earlier stays as it was. A state saved by one process continues in another exactly where it
// stopped.
#pragma once

#include <map>

#include "rondo/nn/tensor_file.h"
#include "rondo/nn/torch.h"

namespace rondo {

class State {
 public:
  // No tensors: every row begins a new sequence.
  State() = default;

  bool empty() const { return tensors_.empty(); }
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  // Undefined tensor if there is none of that name.
  Tensor get(const std::string& name) const;
  void set(const std::string& name, Tensor value) { tensors_[name] = std::move(value); }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

  // Rows in the batch; 0 when empty.
  int64_t rows() const;
  // Total bytes of all tensors.
  int64_t bytes() const;

  // Cut off from the autograd graph.
  State detach() const;
  // The rows `index` (int64 [n]), in that order: beams reordered, finished rows dropped.
  State select(const Tensor& index) const;
  // Rows where `rows` (bool [B]) is true begin a new sequence at the next call.
  State reset(const Tensor& rows) const;

  // All but the tensor `name`.
  State without(const std::string& name) const;

  // Which rows begin anew, bool [B]; undefined when none is marked.
  Tensor fresh() const { return get("fresh"); }

  // `fingerprint` names the model the state belongs to; load refuses a file of another one, one
  // whose checksum does not match and one that is not a state, with Error{bad_input}. Whether the
  // tensors are those the model needs, only the model can say: LanguageModel::load_state().
  void save(const std::string& path, const std::string& fingerprint) const;
  static State load(const std::string& path, const std::string& fingerprint,
                    Verify verify = Verify::checksum);
  // Whoever it belongs to; `fingerprint` receives its owner.
  static State load_any(const std::string& path, std::string& fingerprint,
                        Verify verify = Verify::checksum);

 private:
  std::map<std::string, Tensor> tensors_;
};

// `value` where rows [B] is false, `start` (broadcast over the batch) where it is true.
Tensor start_rows(const Tensor& rows, const Tensor& start, const Tensor& value);

}  // namespace rondo
