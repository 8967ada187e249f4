// The last tokens of a document, for the repetition penalty. They are kept with the document's
// state, so that a text resumed from a file is the same as one generated without interruption.
#pragma once

#include <deque>

#include "rondo/recurrence/state.h"

namespace rondo {

class RecentTokens {
 public:
  static constexpr const char* kName = "recent";  // tensor name in a state, int64 [1, n]

  RecentTokens() = default;
  // Those kept with `state`.
  explicit RecentTokens(const State& state);

  // Drops the oldest beyond kMaxRepetitionWindow.
  void add(int64_t token);
  void clear() { tokens_.clear(); }
  const std::deque<int64_t>& tokens() const { return tokens_; }  // newest last
  void keep_in(State& state) const;

 private:
  std::deque<int64_t> tokens_;
};

}  // namespace rondo
