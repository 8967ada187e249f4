// The language model, one token at a time.
#include "rondo/base/error.h"
#include "rondo/model/language_model.h"
#include "rondo/recurrence/block_recurrent.h"

namespace rondo {

bool LanguageModel::can_step() const {
  return config_.time.kind != "none" && config_.time.kind != "memorizing";
}

const WindowAttention& LanguageModel::window_attention(int64_t level) const {
  return dynamic_cast<const WindowAttention&>(
      stack_->mixing(plan_.levels[static_cast<size_t>(level)].mixing));
}

int64_t LanguageModel::feedback_level() const {
  int64_t source = kNone;
  for (int64_t i = 0; i < plan_.size() && config_.time.kind == "feedback"; ++i) {
    if (config_.time.recurrent_at(i)) source = i;
  }
  return source;
}

StepCaches LanguageModel::open_steps(State state, int64_t rows) const {
  RONDO_ASSERT(can_step());
  const at::NoGradGuard no_grad;
  StepCaches caches;
  const Tensor position = begin(state, rows);
  caches.position = position.squeeze(1).clone();
  caches.phase = behind(position) % config_.time.window;
  caches.levels.resize(static_cast<size_t>(plan_.size()));
  for (int64_t i = 0; i < plan_.size(); ++i) {
    window_attention(i).open_cache(state, i, rows, caches.phase,
                                   caches.levels[static_cast<size_t>(i)]);
  }
  return caches;
}

Tensor LanguageModel::step(const Tensor& tokens, StepCaches& caches) {
  const at::NoGradGuard no_grad;
  Call call;
  call.steps = &caches;
  call.positions = caches.position.unsqueeze(1);  // [B, 1]
  if (const int64_t source = feedback_level(); source != kNone) {
    call.state_keys = caches.levels[static_cast<size_t>(source)].state_keys;
    call.state_values = caches.levels[static_cast<size_t>(source)].state_values;
  }
  const Tensor x = nn::embed(embedding_, tokens.unsqueeze(1));  // [B, 1, D]
  const Tensor logits = finish(stack_->forward(x, call, Scope()), Scope()).squeeze(1);
  end_step(caches);
  return logits;  // [B, V]
}

void LanguageModel::end_step(StepCaches& caches) const {
  // A torch operation takes microseconds when a token's weights have just gone through the caches.
  auto* position = caches.position.data_ptr<int64_t>();
  for (int64_t row = 0; row < caches.position.numel(); ++row) ++position[row];
  if (++caches.phase == config_.time.window) {
    const at::NoGradGuard no_grad;
    for (int64_t i = 0; i < plan_.size(); ++i) {
      window_attention(i).end_block(caches.levels[static_cast<size_t>(i)]);
    }
    caches.phase = 0;
  }
}

State LanguageModel::close_steps(const StepCaches& caches) const {
  const at::NoGradGuard no_grad;
  State state;
  for (int64_t i = 0; i < plan_.size(); ++i) {
    window_attention(i).close_cache(caches.levels[static_cast<size_t>(i)], i, caches.phase, state);
  }
  state.set("position", caches.position.clone());
  state.set("fresh", at::zeros({caches.position.size(0)}, at::kBool));
  return state;
}

}  // namespace rondo
