// State is a value: everything a model carries from one call to the next (key/value windows,
// recurrent state vectors, decoder caches, positions) as named tensors, batch first. Copies share
// memory and are cheap; no operation modifies a tensor in place, so earlier copies stay valid. A
// state saved by one process resumes in another exactly where it stopped.
#pragma once

#include <map>

#include "rondo/nn/tensor_file.h"
#include "rondo/nn/torch.h"

namespace rondo {

class State {
 public:
  // No tensors: every row starts a new sequence.
  State() = default;

  bool empty() const { return tensors_.empty(); }
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  // Undefined if there is no tensor of that name.
  Tensor get(const std::string& name) const;
  void set(const std::string& name, Tensor value) { tensors_[name] = std::move(value); }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

  // Whether a tensor of this name stays on the CPU whatever device the network is on: it steers the
  // computation instead of entering it.
  static bool stays_on_cpu(const std::string& name) {
    return name == "position" || name == "fresh";
  }

  // Rows in the batch; 0 when empty.
  int64_t rows() const;
  // Total bytes of all tensors.
  int64_t bytes() const;

  // A copy detached from the autograd graph.
  State detach() const;
  // The rows `index` (int64 [n]), in that order: to reorder beams or drop finished rows.
  State select(const Tensor& index) const;
  // Rows where `rows` (bool [B]) is true start a new sequence at the next call.
  State reset(const Tensor& rows) const;

  // All but the tensor `name`.
  State without(const std::string& name) const;

  // Which rows start anew, bool [B]; undefined if none is marked.
  Tensor fresh() const { return get("fresh"); }

  // `fingerprint` identifies the model the state belongs to. load() throws Error{bad_input} for a
  // state of another model, a checksum mismatch, or a file that is not a state. It does not check
  // that the tensors fit the model; LanguageModel::load_state() does.
  void save(const std::string& path, const std::string& fingerprint) const;
  static State load(const std::string& path, const std::string& fingerprint,
                    Verify verify = Verify::checksum);
  // A state of any model; `fingerprint` receives that model's.
  static State load_any(const std::string& path, std::string& fingerprint,
                        Verify verify = Verify::checksum);

 private:
  std::map<std::string, Tensor> tensors_;
};

// `value` where rows [B] is false, `start` (broadcast over the batch) where it is true.
Tensor start_rows(const Tensor& rows, const Tensor& start, const Tensor& value);

}  // namespace rondo
