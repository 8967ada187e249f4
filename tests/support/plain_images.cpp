// Image networks, one image and one equation at a time.
#include "tests/support/plain_networks.h"

namespace rondo::test {
namespace {

// Patches of side p taken at steps of s, each times the filters: [tokens, D], row by row.
Tensor patches(const PlainParts& parts, const std::string& name, const Tensor& image, int64_t p,
               int64_t s) {
  const Tensor filters = parts.weight(name + ".weight").flatten(1);  // [D, 3·p·p]
  std::vector<Tensor> rows;
  for (int64_t y = 0; y + p <= image.size(1); y += s) {
    for (int64_t x = 0; x + p <= image.size(2); x += s) {
      const Tensor patch = image.narrow(1, y, p).narrow(2, x, p).flatten();
      rows.push_back(at::matmul(filters, patch) + parts.weight(name + ".bias"));
    }
  }
  return at::stack(rows);
}

// One pre-norm block: x + Attn(LN x), then x + FFN(LN x).
Tensor pre_norm_block(const PlainParts& parts, const std::string& stack, int64_t k, Tensor x,
                      int64_t heads) {
  const auto named = [&](const char* bank, int64_t n) { return stack + "." + numbered(bank, n); };
  const Tensor u = parts.norm(named("norm", 2 * k), x);
  x = x + parts.attention(named("mixing", k), u, u, heads, Tensor());
  const Tensor h = parts.norm(named("norm", 2 * k + 1), x);
  return x + parts.map(named("feed_forward", k) + ".down",
                       plain_gelu(parts.map(named("feed_forward", k) + ".up", h)));
}

// The flat image networks, pre-norm.
class PlainVision {
 public:
  PlainVision(const Network& network, const VisionConfig& config, double epsilon)
      : parts_(network, epsilon), last_(network, 1e-6), c_(config) {}

  Tensor logits(const Tensor& image) const {
    Tensor x = patches(parts_, "patches", image, c_.patch, c_.patch);
    if (c_.pool == "class") x = at::cat({parts_.weight("class_token")[0], x}, 0);
    if (c_.positions == "sinusoidal") x = x + sinusoids(x.size(0), c_.width);
    if (c_.positions == "learned") x = x + parts_.weight("positions")[0];
    if (c_.mixing == "feed-forward") {
      for (int64_t k = 0; k < c_.depth.recursive.blocks[0]; ++k) {
        for (int64_t loop = 0; loop < c_.depth.recursive.loops[0]; ++loop) x = mixer_block(k, x);
      }
    } else {
      for (int64_t i = 0; i < c_.depth.levels; ++i) x = level(i, x);
    }
    x = last_.norm("norm", x);
    return parts_.map("head", c_.pool == "class" ? x[0] : x.mean(0));
  }

 private:
  // Eq. 7, with coefficients if there are any.
  Tensor mixer_block(int64_t k, const Tensor& x) const {
    const auto scaled = [&](const char* which, int64_t n, const Tensor& t) {
      const std::string name = "stack." + numbered("residual", k) + "." + which;
      return parts_.has(name) ? t * parts_.weight(name)[n] : t;
    };
    const auto mlp = [&](const std::string& name, const Tensor& t) {
      return parts_.map(name + ".down", plain_gelu(parts_.map(name + ".up", t)));
    };
    const Tensor u = parts_.norm("stack." + numbered("norm", 2 * k), x);
    const Tensor tokens = mlp("stack." + numbered("mixing", k) + ".feed_forward", u.t()).t();
    const Tensor y = scaled("identity", 0, x) + scaled("branch", 0, tokens);
    const Tensor channels = mlp("stack." + numbered("feed_forward", k),
                                parts_.norm("stack." + numbered("norm", 2 * k + 1), y));
    return scaled("identity", 1, y) + scaled("branch", 1, channels);
  }

  Tensor level(int64_t i, Tensor x) const {
    const std::string& scheme = c_.depth.scheme;
    if (scheme == "vanilla") return pre_norm_block(parts_, "stack", i, x, c_.heads);
    if (scheme == "universal") {
      return pre_norm_block(parts_, "stack", 0, x + universal_code(x.size(0), i + 1, c_.width),
                            c_.heads);
    }
    const auto feed = [&](const Tensor& u) {
      return parts_.map("stack.feed_forward.0.down",
                        plain_gelu(parts_.map("stack.feed_forward.0.up", u)));
    };
    if (scheme == "one-wide") {
      const Tensor u = parts_.norm("stack." + numbered("norm", i + 1), x);
      x = x + parts_.attention("stack." + numbered("mixing", i), u, u, c_.heads, Tensor());
      return x + feed(parts_.norm("stack.norm.0", x));
    }
    const std::string own = "stack." + numbered("signal", i);
    const Tensor u = parts_.norm("stack." + numbered("norm", 2 * i), x);
    const auto part = [&](const std::string& name) {  // the signal sees the raw stream
      return parts_.map("stack.mixing.0.projections." + name, u) +
             parts_.signal(own + "." + name, x);
    };
    x = x + parts_.attention("stack.mixing.0", part("query"), part("key"), part("value"), c_.heads,
                             Tensor());
    const Tensor signaled = x + parts_.signal(own + ".feed_forward", x);
    return x + feed(parts_.norm("stack." + numbered("norm", 2 * i + 1), signaled));
  }

  PlainParts parts_, last_;
  VisionConfig c_;
};

// PiT between stages: every channel has its own filters of 3 × 3 at steps of 2; [C, h, w].
Tensor depthwise_pool(const PlainParts& parts, const std::string& name, const Tensor& map) {
  const Tensor filters = parts.weight(name + ".weight");  // [out, 1, 3, 3]
  const int64_t out = filters.size(0), each = out / map.size(0);
  const int64_t side = (map.size(1) + 2 - 3) / 2 + 1;
  const Tensor padded = at::zeros({map.size(0), map.size(1) + 2, map.size(2) + 2}, at::kDouble);
  padded.narrow(1, 1, map.size(1)).narrow(2, 1, map.size(2)).copy_(map);
  const Tensor result = at::zeros({out, side, side}, at::kDouble);
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        const Tensor window = padded[o / each].narrow(0, 2 * y, 3).narrow(1, 2 * x, 3);
        result[o][y][x] = (window * filters[o][0]).sum() + parts.weight(name + ".bias")[o];
      }
    }
  }
  return result;
}

}  // namespace

Tensor plain_vision(const Network& network, const VisionConfig& config, const NamedTensors& inputs,
                    double epsilon) {
  const PlainVision plain(network, config, epsilon);
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < inputs.at("images").size(0); ++b) {
    rows.push_back(plain.logits(inputs.at("images")[b]));
  }
  return at::stack(rows);
}

Tensor plain_pit(const Network& network, const PyramidConfig& c, const NamedTensors& inputs) {
  const PlainParts parts(network, 1e-6);
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < inputs.at("images").size(0); ++b) {
    Tensor tokens =
        patches(parts, "stem.convolution", inputs.at("images")[b], c.patch, c.stride);  // [N, C]
    const int64_t side = (c.image - c.patch) / c.stride + 1;
    Tensor map = tokens.t().view({-1, side, side}) + parts.weight("positions")[0];
    Tensor class_token = parts.weight("class_token")[0];  // [1, C]
    for (int64_t s = 0; s < c.stages(); ++s) {
      const std::string stage = numbered("stage", s);
      const int64_t here = map.size(1);
      Tensor x = at::cat({class_token, map.flatten(1).t()}, 0);
      for (int64_t k = 0; k < c.depth.recursive.blocks[static_cast<size_t>(s)]; ++k) {
        x = pre_norm_block(parts, stage, k, x, c.heads[static_cast<size_t>(s)]);
      }
      class_token = x.narrow(0, 0, 1);
      map = x.narrow(0, 1, x.size(0) - 1).t().reshape({-1, here, here});
      if (s + 1 == c.stages()) break;
      map = depthwise_pool(parts, numbered("pool", s), map);
      class_token = parts.map(numbered("token_pool", s), class_token);
    }
    rows.push_back(parts.map("head", parts.norm("norm", class_token[0])));
  }
  return at::stack(rows);
}

}  // namespace rondo::test
