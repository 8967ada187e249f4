// The layout that a language model requires of a state, for example one from a file.
#include <fmt/format.h>

#include "rondo/base/error.h"
#include "rondo/base/limits.h"
#include "rondo/model/language_model.h"
#include "rondo/model/recent_tokens.h"

namespace rondo {
namespace {

// Longer than any document, yet nothing added to a position overflows.
constexpr int64_t kMaxPosition = int64_t{1} << 50;

[[noreturn]] void refuse_place(const std::string& source, const std::string& what) {
  throw Error(ExitCode::bad_input, fmt::format("{}: {}", source, what),
              "use a state of this model and batch");
}

}  // namespace

StateLayout LanguageModel::state_layout(const State& state, int64_t rows,
                                        const std::string& source) const {
  if (rows > 0 && state.rows() != rows) {
    refuse_place(source,
                 fmt::format("expected {} rows, as in the tokens, got {}", rows, state.rows()));
  }
  StatePlace place;
  place.type = embedding_.scalar_type();
  place.position = state.get("position");
  if (!place.position.defined()) refuse_place(source, "tensor 'position' is missing");
  StateEntry position;
  position.type = at::kLong;
  position.shape = {state.rows()};
  position.most = kMaxPosition;
  StateLayout first;
  first.add("position", position);
  State alone;
  alone.set("position", place.position);
  first.check_shapes(alone, source, StateLayout::Types::exact);
  first.check_values(alone, source);

  const int64_t block = stack_->block();
  const Tensor phase = place.position.remainder(std::max<int64_t>(1, block));
  if (phase.ne(phase[0]).any().item<bool>()) {
    refuse_place(source, fmt::format("tensor 'position': expected all rows at the same offset in "
                                     "their blocks of {} tokens, got {} and {}",
                                     block, place.position.min().item<int64_t>(),
                                     place.position.max().item<int64_t>()));
  }
  StateLayout layout = first;
  StateEntry fresh;
  fresh.type = at::kBool;
  fresh.shape = position.shape;
  layout.add("fresh", fresh);
  stack_->describe_state(place, layout);
  return layout;
}

State LanguageModel::load_state(const std::string& path, const std::string& fingerprint,
                                int64_t rows, Verify verify) const {
  const State state = State::load(path, fingerprint, verify);
  if (state.empty()) return state;  // a new document
  StateLayout layout = state_layout(state, rows, path);
  StateEntry logits;
  logits.shape = {state.rows(), config_.vocabulary};
  logits.optional = true;
  layout.add("logits", logits);
  StateEntry recent;
  recent.type = at::kLong;
  recent.shape = {state.rows(), {1, kMaxRepetitionWindow}};
  recent.most = config_.vocabulary - 1;
  recent.optional = true;
  layout.add(RecentTokens::kName, recent);
  layout.check_shapes(state, path, StateLayout::Types::exact);
  layout.check_values(state, path);
  return state;
}

}  // namespace rondo
