// The last tokens of a document, which a repetition penalty looks back on. They are kept with the
// document's state, so that a text continued from a file is the one written without a break.
#pragma once

#include <deque>

#include "rondo/recurrence/state.h"

namespace rondo {

class RecentTokens {
 public:
  static constexpr const char* kName = "recent";  // of the tensor in a state, int64 [1, n]

  RecentTokens() = default;
  // Those kept with `state`.
  explicit RecentTokens(const State& state);

  // Forgets the oldest when there are more than kMaxRepetitionWindow.
  void add(int64_t token);
  void clear() { tokens_.clear(); }
  const std::deque<int64_t>& tokens() const { return tokens_; }  // the newest last
  void keep_in(State& state) const;

 private:
  std::deque<int64_t> tokens_;
};

}  // namespace rondo
