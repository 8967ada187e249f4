// Generating one document.
#include "rondo/infer/generator.h"

#include <utility>

namespace rondo {

Generator::Generator(std::shared_ptr<const CompiledLanguageModel> model, const State& state)
    : session_(std::move(model)),
      row_(session_.add(state.without(RecentTokens::kName))),
      position_(session_.tokens_seen(row_)),
      recent_(state) {}

void Generator::settle() {
  if (pending_ < 0) return;
  session_.step({{row_, std::exchange(pending_, -1)}});
  ++position_;
}

void Generator::read(const std::vector<int32_t>& tokens) {
  if (tokens.empty()) return;
  settle();
  session_.read(row_, tokens);
  position_ += static_cast<int64_t>(tokens.size());
  for (const int32_t token : tokens) recent_.add(token);
}

int64_t Generator::write(Sampler& sampler, int64_t start) {
  settle();
  if (session_.logits(row_).empty()) {
    session_.step({{row_, start}});
    ++position_;
  }
  pending_ = sampler.sample(session_.logits(row_), static_cast<uint64_t>(position_));
  recent_.add(pending_);
  return pending_;
}

State Generator::state() {
  settle();
  State whole = session_.state(row_);
  recent_.keep_in(whole);
  return whole;
}

}  // namespace rondo
