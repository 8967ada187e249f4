// Recent tokens and their tensor in a state.
#include "rondo/model/recent_tokens.h"

#include "rondo/base/limits.h"

namespace rondo {

RecentTokens::RecentTokens(const State& state) {
  const Tensor kept = state.get(kName);
  if (!kept.defined()) return;
  const Tensor row = kept.reshape({-1}).contiguous();
  tokens_.assign(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel());
}

void RecentTokens::add(int64_t token) {
  tokens_.push_back(token);
  if (static_cast<int64_t>(tokens_.size()) > kMaxRepetitionWindow) tokens_.pop_front();
}

void RecentTokens::keep_in(State& state) const {
  if (tokens_.empty()) return;
  const std::vector<int64_t> row(tokens_.begin(), tokens_.end());
  state.set(kName, at::tensor(row, at::kLong).unsqueeze(0));  // [1, n]
}

}  // namespace rondo
