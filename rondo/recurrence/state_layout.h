// What a state must contain for a network to continue from it. Modules that keep tensors in a state
// describe them (WindowAttention::describe_state), and a state is validated against the description
// before it is used: a file may contain anything.
#pragma once

#include <limits>

#include "rondo/recurrence/state.h"

namespace rondo {

// Allowed sizes of one dimension.
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
  std::string like = {};      // must also have exactly the shape of this tensor; "": of none
  // Integer tensors: allowed range, and the exact values if known.
  int64_t least = 0;
  int64_t most = kUnlimited;
  Tensor values = {};
  bool optional = false;
};

// The position of each row of a state.
struct StatePlace {
  at::ScalarType type = at::kFloat;  // of the network's weights
  Tensor position;                   // tokens each row has processed, int64 [B]

  int64_t rows() const { return position.size(0); }
  int64_t longest() const { return position.max().item<int64_t>(); }
};

class StateLayout {
 public:
  void add(const std::string& name, StateEntry entry) { entries_[name] = std::move(entry); }

  // Throws Error{bad_input} naming `source` (a file) and every tensor that is missing, unknown, or
  // has the wrong shape or, by `types`, type. Mixed precision keeps keys and values in bf16.
  enum class Types { any_float, exact };
  void check_shapes(const State& state, const std::string& source, Types types) const;
  // Throws Error{bad_input} for non-finite or out-of-range values. Call after check_shapes().
  void check_values(const State& state, const std::string& source) const;

 private:
  std::string problem(const Tensor& tensor, const StateEntry& entry, const State& state,
                      Types types) const;

  std::map<std::string, StateEntry> entries_;
};

}  // namespace rondo
