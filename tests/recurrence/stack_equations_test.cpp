// One level of a stack, written as in the papers' equations, for both placements of the norm, with
// signals, cross-attention, learnable coefficients and the projection after a loop.
#include "rondo/recurrence/stack.h"

#include <cmath>

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

constexpr int64_t kEqWidth = 6, kEqHidden = 5, kEqHeads = 2;
constexpr double kEqEpsilon = 1e-3;

StackOptions equation_options(NormPlacement placement) {
  StackOptions o;
  o.width = kEqWidth;
  o.placement = placement;
  o.norm_epsilon = kEqEpsilon;
  o.feed_forward.width = kEqWidth;
  o.feed_forward.hidden = kEqHidden;
  o.feed_forward_up = nn::torch_init(kEqWidth);
  o.feed_forward_down = nn::torch_init(kEqHidden);
  o.inner = kEqWidth;
  o.ring.rank = 2;
  o.recursive.residual = "both";
  o.recursive.projection = 1.0;
  return o;
}

// One level, and its weights by name for use in the equations.
class OneLevel {
 public:
  OneLevel(const std::string& scheme, NormPlacement placement, bool cross) {
    DepthConfig depth;
    depth.scheme = scheme;
    depth.levels = 1;
    const StackOptions options = equation_options(placement);
    depth.recursive = options.recursive;
    depth.recursive.blocks = depth.recursive.loops = {1};
    PlanShape shape;
    shape.cross = cross;
    SelfAttentionOptions attention;
    attention.shape = {kEqWidth,
                       kEqHeads,
                       kEqWidth / kEqHeads,
                       true,
                       nn::torch_init(kEqWidth),
                       nn::torch_init(kEqWidth)};
    stack_ = std::make_shared<Stack>(
        options, make_plan(depth, shape),
        [&](int64_t) { return std::make_shared<SelfAttention>(attention); }, attention.shape);
    make_generic(*stack_, 71);
  }

  Tensor applied(const Tensor& x, const Tensor& memory = {}) const {
    State state;
    ForwardContext context;
    context.memory = memory;
    if (memory.defined()) context.state = &state;
    return stack_->forward(x, context, Scope());
  }

  Tensor weight(const std::string& name) const { return stack_->named_parameters()[name].detach(); }
  Tensor map(const std::string& name, const Tensor& x) const {
    return at::matmul(x, weight(name + ".weight").t()) + weight(name + ".bias");
  }
  Tensor norm(int64_t index, const Tensor& x) const {
    const std::string name = "norm." + std::to_string(index);
    const Tensor centered = x - x.mean(-1, true);
    const Tensor variance = centered.square().mean(-1, true);
    return centered / (variance + kEqEpsilon).sqrt() * weight(name + ".weight") +
           weight(name + ".bias");
  }
  // g(x) = (x downᵀ) up
  Tensor signal(const std::string& part, const Tensor& x) const {
    const std::string name = "signal.0." + part;
    return at::matmul(at::matmul(x, weight(name + ".down").t()), weight(name + ".up"));
  }
  // Softmax attention of projected q, k, v, head by head, and its output projection.
  Tensor attention(const std::string& name, const Tensor& q, const Tensor& k,
                   const Tensor& v) const {
    std::vector<Tensor> heads;
    const int64_t d = kEqWidth / kEqHeads;
    for (int64_t h = 0; h < kEqHeads; ++h) {
      const auto of_head = [&](const Tensor& t) { return t.narrow(-1, h * d, d); };
      const Tensor scores = at::matmul(of_head(q), of_head(k).transpose(-2, -1));
      const Tensor p = at::softmax(scores / std::sqrt(static_cast<double>(d)), -1);
      heads.push_back(at::matmul(p, of_head(v)));
    }
    return map(name + ".projections.output", at::cat(heads, -1));
  }
  // Self-attention whose projections see u and whose signals see x.
  Tensor signaled_attention(const Tensor& u, const Tensor& x) const {
    const auto part = [&](const std::string& p) {
      return map("mixing.0.projections." + p, u) + signal(p, x);
    };
    return attention("mixing.0", part("query"), part("key"), part("value"));
  }
  Tensor plain_attention(const Tensor& u) const {
    const auto part = [&](const std::string& p) { return map("mixing.0.projections." + p, u); };
    return attention("mixing.0", part("query"), part("key"), part("value"));
  }
  Tensor cross_attention(const Tensor& u, const Tensor& memory) const {
    return attention("cross.0", map("cross.0.projections.query", u),
                     map("cross.0.projections.key", memory),
                     map("cross.0.projections.value", memory));
  }
  Tensor feed_forward(const Tensor& u) const {
    return map("feed_forward.0.down", at::gelu(map("feed_forward.0.up", u)));
  }

 private:
  std::shared_ptr<Stack> stack_;
};

const Shape kEqShape = {2, 4, kEqWidth};

TEST(LevelEquations, RingFormerVision) {
  // Projections see LN(x), signals the raw x; g_F is added before its norm; the residual excludes
  // it.
  const OneLevel level("ring", NormPlacement::pre, false);
  const Tensor x = noise(kEqShape, 1);
  const Tensor y = x + level.signaled_attention(level.norm(0, x), x);
  const Tensor u = y + level.signal("feed_forward", y);
  expect_near(level.applied(x), y + level.feed_forward(level.norm(1, u)), 1e-12);
}

TEST(LevelEquations, RingFormerEncoder) {
  const OneLevel level("ring", NormPlacement::post, false);
  const Tensor x = noise(kEqShape, 2);
  const Tensor y = level.norm(0, x + level.signaled_attention(x, x));
  const Tensor u = y + level.signal("feed_forward", y);
  expect_near(level.applied(x), level.norm(1, y + level.feed_forward(u)), 1e-12);
}

TEST(LevelEquations, RingFormerDecoder) {
  // Cross-attention has shared weights and no signals.
  const OneLevel level("ring", NormPlacement::post, true);
  const Tensor x = noise(kEqShape, 3);
  const Tensor memory = noise({2, 3, kEqWidth}, 4);
  const Tensor y = level.norm(0, x + level.signaled_attention(x, x));
  const Tensor z = level.norm(1, y + level.cross_attention(y, memory));
  const Tensor u = z + level.signal("feed_forward", z);
  expect_near(level.applied(x, memory), level.norm(2, z + level.feed_forward(u)), 1e-12);
}

TEST(LevelEquations, SlicedRecursive) {
  // x = β·x + α·Attn(LN x); x = δ·x + γ·FFN(LN x); x = θ·x + ζ·MLP(LN x).
  const OneLevel level("recursive", NormPlacement::pre, false);
  const Tensor x = noise(kEqShape, 5);
  const Tensor kept = level.weight("residual.0.identity");
  const Tensor added = level.weight("residual.0.branch");
  const Tensor y = x * kept[0] + level.plain_attention(level.norm(0, x)) * added[0];
  const Tensor z = y * kept[1] + level.feed_forward(level.norm(1, y)) * added[1];
  const Tensor u = at::layer_norm(z, {kEqWidth}, level.weight("projection.0.norm.weight"),
                                  level.weight("projection.0.norm.bias"), kEqEpsilon);
  const Tensor mlp = level.map("projection.0.feed_forward.down",
                               at::gelu(level.map("projection.0.feed_forward.up", u)));
  expect_near(level.applied(x),
              z * level.weight("projection.0.residual.identity")[0] +
                  mlp * level.weight("projection.0.residual.branch")[0],
              1e-12);
}

TEST(LevelEquations, VanillaDecoderPreNorm) {
  const OneLevel level("vanilla", NormPlacement::pre, true);
  const Tensor x = noise(kEqShape, 6);
  const Tensor memory = noise({2, 3, kEqWidth}, 7);
  const Tensor y = x + level.plain_attention(level.norm(0, x));
  const Tensor z = y + level.cross_attention(level.norm(1, y), memory);
  expect_near(level.applied(x, memory), z + level.feed_forward(level.norm(2, z)), 1e-12);
}

TEST(LevelEquations, OneWideEncoderAndDecoder) {
  // The shared feed-forward has norm 0; a decoder level has one norm for both attentions and no
  // feed-forward.
  const OneLevel encoder("one-wide", NormPlacement::post, false);
  const Tensor x = noise(kEqShape, 8);
  const Tensor y = encoder.norm(1, x + encoder.plain_attention(x));
  expect_near(encoder.applied(x), encoder.norm(0, y + encoder.feed_forward(y)), 1e-12);
  const OneLevel decoder("one-wide", NormPlacement::post, true);
  const Tensor memory = noise({2, 3, kEqWidth}, 9);
  const Tensor z = decoder.norm(0, x + decoder.plain_attention(x));
  expect_near(decoder.applied(x, memory), decoder.norm(0, z + decoder.cross_attention(z, memory)),
              1e-12);
}

}  // namespace
}  // namespace rondo::test
