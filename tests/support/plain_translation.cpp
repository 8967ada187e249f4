// Translation networks, one sentence and one equation at a time.
#include <cmath>

#include "tests/support/plain_networks.h"

namespace rondo::test {
namespace {

// fairseq's: sines in the first half, cosines in the second; real tokens are numbered from
// padding + 1, padding has the zero vector.
Tensor fairseq_sinusoids(const Tensor& tokens, int64_t padding, int64_t width) {
  const int64_t half = width / 2;
  const Tensor table = at::zeros({tokens.size(0), width}, at::kDouble);
  int64_t number = padding;
  for (int64_t t = 0; t < tokens.size(0); ++t) {
    if (tokens[t].item<int64_t>() == padding) continue;
    ++number;
    for (int64_t i = 0; i < half; ++i) {
      const double rate =
          std::exp(-std::log(10000.0) * static_cast<double>(i) / static_cast<double>(half - 1));
      table[t][i] = std::sin(static_cast<double>(number) * rate);
      table[t][half + i] = std::cos(static_cast<double>(number) * rate);
    }
  }
  return table;
}

// The keys that may be seen: no padding, and for a decoder none after the query.
Tensor visible_keys(const Tensor& keys, int64_t queries, int64_t padding, bool causal) {
  const Tensor seen = at::zeros({queries, keys.size(0)}, at::kBool);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys.size(0); ++j) {
      seen[i][j] = keys[j].item<int64_t>() != padding && (!causal || j <= i);
    }
  }
  return seen;
}

// The translation networks, post-norm.
class PlainTranslation {
 public:
  PlainTranslation(const Network& network, const EncoderDecoderConfig& config, double epsilon)
      : parts_(network, epsilon), c_(config), fairseq_(config.style == "fairseq") {}

  Tensor logits(const Tensor& source, const Tensor& target) {
    const int64_t s = source.size(0), t = target.size(0);
    memory_mask_ = visible_keys(source, t, c_.padding, false);
    Tensor x = embedded("source_embedding", source);
    x = levels("encoder", x, visible_keys(source, s, c_.padding, false));
    memory_ = x;
    Tensor y = embedded("target_embedding", target);
    y = levels("decoder", y, visible_keys(target, t, c_.padding, true));
    if (fairseq_) return at::matmul(y, parts_.weight("target_embedding").t());
    return parts_.map("head", y);
  }

 private:
  Tensor embedded(const std::string& table, const Tensor& tokens) const {
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < tokens.size(0); ++t) {
      rows.push_back(parts_.weight(table)[tokens[t].item<int64_t>()]);
    }
    const Tensor x = at::stack(rows);
    if (fairseq_) {
      return x * std::sqrt(static_cast<double>(c_.width)) +
             fairseq_sinusoids(tokens, c_.padding, c_.width);
    }
    if (c_.depth.scheme == "universal") return x;
    return x + sinusoids(tokens.size(0), c_.width);
  }

  Tensor levels(const std::string& stack, Tensor x, const Tensor& mask) const {
    if (fairseq_) {
      for (int64_t block = 0; block < c_.depth.recursive.blocks[0]; ++block) {
        for (int64_t loop = 0; loop < c_.depth.recursive.loops[0]; ++loop) {
          x = fairseq_level(stack, block, x, mask);
        }
      }
      return x;
    }
    for (int64_t i = 0; i < c_.depth.levels; ++i) x = level(stack, i, x, mask);
    return x;
  }

  // coefficient · x; 1 if there is no coefficient.
  Tensor scaled(const std::string& name, int64_t sublayer, const Tensor& x) const {
    return parts_.has(name) ? x * parts_.weight(name)[sublayer] : x;
  }

  Tensor fairseq_level(const std::string& stack, int64_t block, Tensor x,
                       const Tensor& mask) const {
    const bool decoder = stack == "decoder";
    const int64_t sublayers = decoder ? 3 : 2;
    const auto named = [&](const char* bank) { return stack + "." + numbered(bank, block); };
    for (int64_t n = 0; n < sublayers; ++n) {
      Tensor y;
      if (n == 0) {
        y = parts_.attention(named("mixing"), x, x, c_.heads, mask);
      } else if (decoder && n == 1) {
        y = parts_.attention(named("cross"), x, memory_, c_.heads, memory_mask_);
      } else {
        const Tensor h = parts_.map(named("feed_forward") + ".up", x);
        y = parts_.map(named("feed_forward") + ".down", h * h.gt(0));  // relu
      }
      const Tensor sum = scaled(named("residual") + ".identity", n, x) +
                         scaled(named("residual") + ".branch", n, y);
      x = parts_.norm(stack + "." + numbered("norm", block * sublayers + n), sum);
    }
    return x;
  }

  Tensor feed_forward(const std::string& stack, int64_t index, const Tensor& x) const {
    const std::string name = stack + "." + numbered("feed_forward", index);
    return parts_.map(name + ".down", plain_gelu(parts_.map(name + ".up", x)));
  }

  Tensor level(const std::string& stack, int64_t i, Tensor x, const Tensor& mask) const {
    const std::string& scheme = c_.depth.scheme;
    const bool decoder = stack == "decoder";
    const auto norm = [&](int64_t n, const Tensor& y) {
      return parts_.norm(stack + "." + numbered("norm", n), y);
    };
    const auto read = [&](int64_t index, const Tensor& y) {
      return parts_.attention(stack + "." + numbered("cross", index), y, memory_, c_.heads,
                              memory_mask_);
    };
    const auto attend = [&](int64_t index, const Tensor& y) {
      return parts_.attention(stack + "." + numbered("mixing", index), y, y, c_.heads, mask);
    };
    if (scheme == "vanilla") {  // one norm module after all sub-layers of a layer
      x = norm(i, x + attend(i, x));
      if (decoder) x = norm(i, x + read(i, x));
      return norm(i, x + feed_forward(stack, i, x));
    }
    if (scheme == "one-wide") {
      if (decoder) {
        x = norm(i, x + attend(i, x));
        return norm(i, x + read(i, x));
      }
      x = norm(i + 1, x + attend(i, x));
      return norm(0, x + feed_forward(stack, 0, x));
    }
    if (scheme == "universal") {
      x = x + universal_code(x.size(0), i + 1, c_.width);
      x = norm(0, x + attend(0, x));
      if (decoder) x = norm(1, x + read(0, x));
      return norm(decoder ? 2 : 1, x + feed_forward(stack, 0, x));
    }
    return ring_level(stack, i, x, mask);
  }

  Tensor ring_level(const std::string& stack, int64_t i, Tensor x, const Tensor& mask) const {
    const bool decoder = stack == "decoder";
    const int64_t first = i * (decoder ? 3 : 2);
    const std::string shared = stack + ".mixing.0";
    const std::string own = stack + "." + numbered("signal", i);
    const auto part = [&](const std::string& name) {
      return parts_.map(shared + ".projections." + name, x) + parts_.signal(own + "." + name, x);
    };
    const Tensor y =
        parts_.attention(shared, part("query"), part("key"), part("value"), c_.heads, mask);
    const auto norm = [&](int64_t n, const Tensor& z) {
      return parts_.norm(stack + "." + numbered("norm", first + n), z);
    };
    x = norm(0, x + y);
    if (decoder) {
      x = norm(1, x + parts_.attention(stack + ".cross.0", x, memory_, c_.heads, memory_mask_));
    }
    const Tensor signaled = x + parts_.signal(own + ".feed_forward", x);
    return norm(decoder ? 2 : 1, x + feed_forward(stack, 0, signaled));
  }

  PlainParts parts_;
  EncoderDecoderConfig c_;
  bool fairseq_;
  Tensor memory_, memory_mask_;
};

}  // namespace

Tensor plain_translation(const Network& network, const EncoderDecoderConfig& config,
                         const NamedTensors& inputs, double epsilon) {
  PlainTranslation plain(network, config, epsilon);
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < inputs.at("source").size(0); ++b) {
    rows.push_back(plain.logits(inputs.at("source")[b], inputs.at("target")[b]));
  }
  return at::stack(rows);
}

}  // namespace rondo::test
