// Reading and writing token by token.
#include "rondo/decode/generate.h"

#include "rondo/base/error.h"
#include "rondo/nn/kernel_choice.h"

namespace rondo {
namespace {

std::vector<float> to_vector(const Tensor& logits) {
  const Tensor row = logits.reshape({-1}).to(at::kFloat).contiguous();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

}  // namespace

Writer::Writer(std::shared_ptr<LanguageModel> model, State state,
               std::shared_ptr<const StepWeights> weights)
    : model_(std::move(model)),
      weights_(std::move(weights)),
      state_(std::move(state)),
      recent_(state_) {
  model_->eval();
  if (state_.has("position")) position_ = state_.get("position")[0].item<int64_t>();
  // The logits after the last token read are part of where a document stands.
  if (state_.has("logits")) {
    logits_ = to_vector(state_.get("logits"));
    state_ = state_.without("logits");
    RONDO_ASSERT(static_cast<int64_t>(logits_.size()) == model_->config().vocabulary);
  }
  state_ = state_.without(RecentTokens::kName);
}

void Writer::to_steps() {
  if (stepping_) return;
  caches_ = model_->open_steps(state_, 1);
  stepping_ = true;
  if (loop_ != nullptr) loop_->caches_changed();
  if (loop_ != nullptr || nn::kernels_in_use() != nn::Kernels::fused) return;
  if (weights_ == nullptr) {
    weights_ = std::make_shared<StepWeights>(*model_, kernels::PackedFormat::fp32);
  }
  loop_ = std::make_unique<StepLoop>(weights_, at::get_num_threads());
}

void Writer::to_state() {
  if (!stepping_) return;
  state_ = model_->close_steps(caches_);
  stepping_ = false;
}

void Writer::read(const std::vector<int32_t>& tokens) {
  if (tokens.empty()) return;
  if (pending_ >= 0) feed(std::exchange(pending_, -1));
  to_state();
  const at::NoGradGuard no_grad;
  const int64_t segment = model_->config().time.segment;
  const auto total = static_cast<int64_t>(tokens.size());
  for (int64_t done = 0; done < total;) {
    const int64_t count = std::min(segment, total - done);
    const Tensor piece = at::empty({1, count}, at::kLong);
    std::copy_n(tokens.begin() + done, count, piece.data_ptr<int64_t>());
    const Tensor logits = model_->forward_tokens(piece, state_, Scope());
    done += count;
    if (done == total) logits_ = to_vector(logits.select(1, count - 1));
  }
  position_ += total;
  for (const int32_t token : tokens) recent_.add(token);
}

void Writer::feed(int64_t token) {
  const at::NoGradGuard no_grad;
  if (model_->can_step()) {
    to_steps();
    if (loop_ != nullptr) {
      const float* logits = loop_->step(token, caches_);
      logits_.assign(logits, logits + model_->config().vocabulary);
      model_->end_step(caches_);
    } else {
      logits_ = to_vector(model_->step(at::full({1}, token, at::kLong), caches_));
    }
  } else {
    logits_ =
        to_vector(model_->forward_tokens(at::full({1, 1}, token, at::kLong), state_, Scope()));
  }
  ++position_;
}

int64_t Writer::write(Sampler& sampler, int64_t start) {
  if (pending_ >= 0) feed(std::exchange(pending_, -1));
  if (logits_.empty()) feed(start);
  pending_ = sampler.sample(logits_, static_cast<uint64_t>(position_));
  recent_.add(pending_);
  return pending_;
}

State Writer::state() {
  if (pending_ >= 0) feed(std::exchange(pending_, -1));
  to_state();
  State whole = state_;
  if (!logits_.empty()) {
    whole.set("logits", at::tensor(logits_).unsqueeze(0));  // [1, V]
  }
  recent_.keep_in(whole);
  return whole;
}

}  // namespace rondo
