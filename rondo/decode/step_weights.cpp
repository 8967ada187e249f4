// From a model's parameters, by name, to packed weights.
#include "rondo/decode/step_weights.h"

#include <cmath>

#include "rondo/base/error.h"

namespace rondo {

// Looks parameters up by the names they have in a model file.
class StepWeights::Packer {
 public:
  Packer(StepWeights& to, const LanguageModel& model, kernels::PackedFormat format)
      : to_(to), parameters_(model.named_parameters()), format_(format) {}

  bool has(const std::string& name) const { return parameters_.find(name) != nullptr; }

  const float* vector(const std::string& name) {
    if (!has(name)) return nullptr;
    to_.kept_.push_back(parameters_[name].detach().to(at::kFloat).contiguous());
    return to_.kept_.back().data_ptr<float>();
  }

  kernels::PackedMatrix matrix(const Tensor& w) {
    const Tensor rows = w.detach().to(at::kFloat).contiguous();  // [out, in]
    return kernels::pack(rows.data_ptr<float>(), rows.size(0), rows.size(1), format_, to_.arena_);
  }
  kernels::PackedMatrix matrix(const std::string& name) {
    return has(name) ? matrix(parameters_[name]) : kernels::PackedMatrix();
  }

  StepNorm norm(const std::string& name) {
    return {vector(name + ".weight"), vector(name + ".bias"),
            static_cast<float>(LanguageModel::kNormEpsilon)};
  }

  StepJoin join(const std::string& name, int64_t sublayer) {
    const auto value = [&](const std::string& part) {
      return has(name + part) ? parameters_[name + part][sublayer].item<float>() : 1.0F;
    };
    return {value(".identity"), value(".branch")};
  }

  StepSignal signal(const std::string& name) {
    StepSignal s;
    if (has(name + ".full")) {
      s.up = matrix(parameters_[name + ".full"].t());
    } else if (has(name + ".down")) {
      s.down = matrix(name + ".down");
      s.up = matrix(parameters_[name + ".up"].t());  // kept as [r, out]
    }
    return s;
  }

  std::unique_ptr<StepMixing> mixing(const std::string& name) {
    auto m = std::make_unique<StepMixing>();
    m->query = matrix(name + ".projections.query.weight");
    m->key = matrix(name + ".projections.key.weight");
    m->value = matrix(name + ".projections.value.weight");
    m->output = matrix(name + ".projections.output.weight");
    m->state_query = matrix(name + ".state_query.weight");
    m->scale = vector(name + ".scale");
    m->state_scale = vector(name + ".state_scale");
    return m;
  }

  std::unique_ptr<StepFeed> feed(const std::string& name, bool gelu) {
    auto f = std::make_unique<StepFeed>();
    f->up = matrix(name + ".up.weight");
    f->down = matrix(name + ".down.weight");
    f->up_bias = vector(name + ".up.bias");
    f->down_bias = vector(name + ".down.bias");
    f->gelu = gelu;
    return f;
  }

 private:
  StepWeights& to_;
  torch::OrderedDict<std::string, Tensor> parameters_;
  kernels::PackedFormat format_;
};

StepWeights::StepWeights(const LanguageModel& model, kernels::PackedFormat format)
    : config_(model.config()), feedback_level_(model.feedback_level()) {
  RONDO_ASSERT(model.can_step());
  const at::NoGradGuard no_grad;
  Packer packer(*this, model, format);
  const auto of = [](const char* bank, int64_t index) {
    return std::string("stack.") + bank + "." + std::to_string(index);
  };
  const DepthPlan& plan = model.plan();
  for (int64_t i = 0; i < plan.mixings(); ++i) mixings_.push_back(packer.mixing(of("mixing", i)));
  for (int64_t i = 0; i < plan.feed_forwards(); ++i) {
    feeds_.push_back(packer.feed(of("feed_forward", i), /*gelu=*/false));
  }
  const int64_t width = config_.width;
  for (const Level& level : plan.levels) {
    StepLevel l;
    l.mixing = mixings_[static_cast<size_t>(level.mixing)].get();
    l.norm = packer.norm(of("norm", level.mixing_norm));
    l.join = packer.join(of("residual", level.residual), 0);
    l.feed.feed = feeds_[static_cast<size_t>(level.feed_forward)].get();
    l.feed.norm = packer.norm(of("norm", level.feed_forward_norm));
    l.feed.join = packer.join(of("residual", level.residual), 1);
    if (level.signal != kNone) {
      const std::string signal = of("signal", level.signal);
      l.signals[0] = packer.signal(signal + ".query");
      l.signals[1] = packer.signal(signal + ".key");
      l.signals[2] = packer.signal(signal + ".value");
      l.signals_before = config_.depth.ring.attention == "before";
      l.feed.signal = packer.signal(signal + ".feed_forward");
      l.feed.inner_signal = config_.depth.ring.feed_forward == "inter";
    }
    if (level.projection != kNone) {
      const std::string projection = of("projection", level.projection);
      feeds_.push_back(packer.feed(projection + ".feed_forward", /*gelu=*/true));
      l.projection.feed = feeds_.back().get();
      l.projection.norm = packer.norm(projection + ".norm");
      l.projection.join = packer.join(projection + ".residual", 0);
    }
    if (level.static_signal != kNone) {
      for (int64_t k = 1; k <= width; ++k) {  // as in recurrence/universal.cpp
        const double rate =
            std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(width));
        const double angle = static_cast<double>(level.static_signal) * rate;
        l.level_code.push_back(k % 2 == 0 ? std::sin(angle) : std::cos(angle));
        if (levels_.empty()) rates_.push_back(rate);
      }
    }
    levels_.push_back(std::move(l));
  }
  norm_ = packer.norm("norm");
  embedding_ = model.embedding().detach().to(at::kFloat).contiguous();
  head_ = packer.matrix(embedding_);
}

const float* StepWeights::embedding(int64_t token) const {
  return embedding_.data_ptr<float>() + token * config_.width;
}

}  // namespace rondo
