// What a state must hold so that a network can continue from it. The parts that keep tensors in a
// state describe them (WindowAttention::describe_state), and a state is compared with the
// description before anything reads it: a file may hold anything.
#pragma once

#include <limits>

#include "rondo/recurrence/state.h"

namespace rondo {

// One extent of a shape.
struct Extent {
  Extent(int64_t exactly) : least(exactly), most(exactly) {}  // NOLINT(google-explicit-constructor)
  Extent(int64_t low, int64_t high) : least(low), most(high) {}
  int64_t least;
  int64_t most;
};

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

struct StateEntry {
  at::ScalarType type = at::kFloat;
  std::vector<Extent> shape;  // batch first
  std::string like = {};      // the shape is also exactly that of this tensor; "": of none
  // Of whole numbers: where they lie, and what they are if that is known.
  int64_t least = 0;
  int64_t most = kUnlimited;
  Tensor values = {};
  bool optional = false;
};

// How far each row of a state is.
struct StatePlace {
  at::ScalarType type = at::kFloat;  // of the network's numbers
  Tensor position;                   // tokens behind each row, int64 [B]

  int64_t rows() const { return position.size(0); }
  int64_t longest() const { return position.max().item<int64_t>(); }
};

class StateLayout {
 public:
  void add(const std::string& name, StateEntry entry) { entries_[name] = std::move(entry); }

  // Error{bad_input} that names `source` (a file) and every tensor that is missing, unknown, or of
  // another shape. `types`: or of another type. Mixed precision keeps keys and values in bf16.
  enum class Types { any_float, exact };
  void check_shapes(const State& state, const std::string& source, Types types) const;
  // Error{bad_input} for a number that is not finite or out of range. After check_shapes().
  void check_values(const State& state, const std::string& source) const;

 private:
  std::string problem(const Tensor& tensor, const StateEntry& entry, const State& state,
                      Types types) const;

  std::map<std::string, StateEntry> entries_;
};

}  // namespace rondo
