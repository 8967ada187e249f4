// Non-intrusive observation: an Observer is offered every named activation, attention map and
// multiply-add count of a forward pass. Without an observer nothing is built, copied or formatted.
//
//   Scope level = scope / "level" / 3;
//   level.record("attention.probabilities", p);   // "encoder.level.3.attention.probabilities"
#pragma once

#include <string>
#include <utility>

#include "rondo/nn/torch.h"

namespace rondo {

struct LowRankWork {
  double rows = 0, in = 0, rank = 0, out = 0;
};

// Receives the events of a forward pass. All names are dotted paths from the model's root.
class Observer {
 public:
  virtual ~Observer() = default;
  // Asked before computing a tensor that only the observer needs (attention probabilities).
  virtual bool wants(const std::string& name) = 0;
  virtual void activation(const std::string& name, const Tensor& value) = 0;
  // `count` multiply-adds done by operation `name`.
  virtual void multiply_adds(const std::string& /*name*/, double /*count*/) {}
  // `elements` values passed through a normalization.
  virtual void normalized(const std::string& /*name*/, double /*elements*/) {}
  // `elements` values passed through a GELU.
  virtual void gelu(const std::string& /*name*/, double /*elements*/) {}
  // `elements` values were added to others, or scaled like attention scores.
  virtual void elementwise(const std::string& /*name*/, double /*elements*/) {}
  // A map of rank `rank` from `in` to `out` values was applied to `rows` rows as two thin matmuls.
  virtual void low_rank(const std::string& /*name*/, const LowRankWork& /*work*/) {}
};

// The current position in the network. Cheap to pass by value without an observer.
class Scope {
 public:
  Scope() = default;
  explicit Scope(Observer* observer) : observer_(observer) {}

  Scope operator/(const char* name) const { return child(name); }
  Scope operator/(const std::string& name) const { return child(name.c_str()); }
  Scope operator/(int64_t index) const {
    return observer_ == nullptr ? Scope() : child(std::to_string(index).c_str());
  }

  bool watched() const { return observer_ != nullptr; }
  bool wants(const char* name) const { return watched() && observer_->wants(join(name)); }
  void record(const char* name, const Tensor& value) const {
    if (wants(name)) observer_->activation(join(name), value);
  }
  void multiply_adds(double count) const {
    if (watched()) observer_->multiply_adds(path_, count);
  }
  void normalized(double elements) const {
    if (watched()) observer_->normalized(path_, elements);
  }
  void gelu(double elements) const {
    if (watched()) observer_->gelu(path_, elements);
  }
  void elementwise(const Tensor& x) const { elementwise(static_cast<double>(x.numel())); }
  void elementwise(double elements) const {
    if (watched()) observer_->elementwise(path_, elements);
  }
  void low_rank(const LowRankWork& work) const {
    if (watched()) observer_->low_rank(path_, work);
  }

 private:
  Scope(Observer* observer, std::string path) : observer_(observer), path_(std::move(path)) {}
  Scope child(const char* name) const {
    return observer_ == nullptr ? Scope() : Scope(observer_, join(name));
  }
  std::string join(const char* name) const { return path_.empty() ? name : path_ + "." + name; }

  Observer* observer_ = nullptr;
  std::string path_;
};

}  // namespace rondo
