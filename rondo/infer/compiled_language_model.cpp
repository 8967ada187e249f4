// Packing a language model, and decoding steps.
#include "rondo/infer/compiled_language_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "rondo/base/require.h"

namespace rondo {

CompiledLanguageModel::CompiledLanguageModel(std::shared_ptr<LanguageModel> model,
                                             kernels::PackedFormat format)
    : packer_(format), model_(std::move(model)) {
  require(model_ != nullptr, "language model: no model given");
  const at::NoGradGuard no_grad;
  model_->eval();
  stack_ = model_->stack().compile(packer_, {});
  norm_ = model_->output_norm().compile(packer_);
  embedding_ = model_->embedding().detach().to(at::kFloat).contiguous();
  head_.w = packer_.matrix(embedding_);
}

RowPast CompiledLanguageModel::open(State state) const {
  const at::NoGradGuard no_grad;
  const int64_t position = model_->begin(state, 1)[0].item<int64_t>();
  return stack_.open(state, position);
}

State CompiledLanguageModel::save(const RowPast& past) const {
  const at::NoGradGuard no_grad;
  State state;
  stack_.save(past, state);
  state.set("position", at::full({1}, past.tokens_seen, at::kLong));
  state.set("fresh", at::zeros({1}, at::kBool));
  return state;
}

void CompiledLanguageModel::step(const StepRows& rows, const std::vector<int64_t>& tokens,
                                 kernels::Team& team, Workspace& w) const {
  const auto n = static_cast<int64_t>(rows.size());
  check_step(rows, tokens, stack_.size(), head_.w.out);
  w.threads.allow(team.size());
  const int members = w.threads.threads();
  w.parts.begin(stack_, rows, members, [&](const StepParts::Part& part, const nn::Rows& x) {
    for (int64_t r = 0; r < part.count(); ++r) {
      const int64_t token = tokens[static_cast<size_t>(part.first + r)];
      std::copy_n(embedding_.data_ptr<float>() + token * stack_.width(), stack_.width(), x[r]);
    }
  });
  w.logits.resize(n, head_.w.out);
  const float root = std::sqrt(static_cast<float>(head_.w.out));
  const auto before = std::chrono::steady_clock::now();
  w.parts.run(team, members, [&](StepParts::Part& part, const kernels::Member& member) {
    const nn::Rows y = stack_.forward(part.rows, part.stack, member);
    const nn::Rows u = part.stack.spare(member, part.count());
    norm_.forward(y, u);
    const nn::Rows logits = part.of(w.logits.rows(n));
    head_.forward(u, logits, member);
    const auto [first, last] = head_.columns(member);
    for (int64_t r = 0; r < part.count(); ++r) {
      for (int64_t o = first; o < last; ++o) logits[r][o] /= root;
    }
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  w.threads.took(took.count());
  stack_.end(rows);
}

Tensor CompiledLanguageModel::read(const std::vector<int32_t>& tokens, State& state) const {
  const at::NoGradGuard no_grad;
  const int64_t segment = config().time.segment;
  const auto total = static_cast<int64_t>(tokens.size());
  Tensor logits;
  for (int64_t done = 0; done < total;) {
    const int64_t count = std::min(segment, total - done);
    const Tensor piece = at::empty({1, count}, at::kLong);
    std::copy_n(tokens.begin() + done, count, piece.data_ptr<int64_t>());
    done += count;
    const Tensor all = model_->forward_tokens(piece, state, Scope());  // [1, count, V]
    if (done == total) logits = all[0][count - 1].to(at::kFloat).contiguous();
  }
  return logits;
}

}  // namespace rondo
