// The attention kernels against the definition in double precision: odd shapes, masks, biases,
// dropout, strides, fp32 and bf16, with every instruction set of this CPU; identical bits when
// repeated, and with any number of threads.
#include "rondo/kernels/attention.h"

#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <random>
#include <set>

#include "rondo/kernels/dropout.h"
#include "rondo/nn/attend_fused.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

enum class MaskKind { none, causal, window, random, padding };

struct AttentionCase {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, width = 1;
  MaskKind mask = MaskKind::none;
  bool bias = false;
  bool scale = false;
  bool tokens_first = false;  // q, k, v are stored as [B, T, H, d]
  double dropout = 0.0;
  uint64_t seed = 0;
};

std::ostream& operator<<(std::ostream& out, const AttentionCase& c) {
  return out << c.batch << "x" << c.heads << " " << c.queries << "x" << c.keys << " d" << c.width
             << " mask " << static_cast<int>(c.mask) << " bias " << c.bias << " scale " << c.scale
             << " tokens first " << c.tokens_first << " dropout " << c.dropout;
}

AttentionCase odd_case(uint64_t seed) {
  constexpr int64_t lengths[] = {1, 7, 20, 63, 64, 65, 130, 200};
  constexpr int64_t widths[] = {4, 8, 20, 32, 33, 64, 96, 128};
  std::mt19937_64 random(seed);
  AttentionCase c;
  c.seed = seed;
  c.batch = 1 + static_cast<int64_t>(random() % 3);
  c.heads = 1 + static_cast<int64_t>(random() % 3);
  c.queries = lengths[random() % 8];
  c.keys = lengths[random() % 8];
  c.width = widths[seed % 8];
  c.mask = static_cast<MaskKind>(random() % 5);
  c.bias = random() % 2 == 0;
  c.scale = random() % 2 == 0;
  c.tokens_first = random() % 2 == 0;
  c.dropout = random() % 3 == 0 ? 0.3 : 0.0;
  return c;
}

Tensor mask_of(const AttentionCase& c) {
  const Tensor distance = (at::arange(c.queries) + (c.keys - c.queries)).unsqueeze(1) -
                          at::arange(c.keys).unsqueeze(0);  // [Tq, Tk]
  if (c.mask == MaskKind::causal) return distance.ge(0);
  if (c.mask == MaskKind::window) return distance.ge(0).logical_and(distance.le(c.keys / 2));
  if (c.mask == MaskKind::random) {  // with queries that see no key
    Tensor seen = noise({c.batch, 1, c.queries, c.keys}, c.seed + 9).gt(-0.3);
    seen.select(2, c.queries / 2).fill_(false);
    return seen;
  }
  const Tensor lengths = (c.keys - 3 * at::arange(c.batch)).clamp_min(1);
  return at::arange(c.keys).lt(lengths.unsqueeze(1)).view({c.batch, 1, 1, c.keys});
}

// The leaves and the options of a call.
struct AttentionSample {
  NamedTensors leaves;  // q, k, v, optionally scale and bias
  nn::AttendOptions options;
  Tensor gradient;  // of the output
  uint64_t seed = 0;
};

AttentionSample sample_of(const AttentionCase& c, at::ScalarType type) {
  AttentionSample s;
  const auto heads = [&](int64_t tokens, uint64_t seed) {
    const Tensor x = noise({c.batch, tokens, c.heads, c.width}, seed + 10 * c.seed).to(type);
    return c.tokens_first ? x.transpose(1, 2) : x.transpose(1, 2).contiguous();
  };
  s.leaves = {{"q", heads(c.queries, 1)}, {"k", heads(c.keys, 2)}, {"v", heads(c.keys, 3)}};
  if (c.scale) s.leaves["scale"] = (1 + 0.4 * noise({c.heads}, 4 + c.seed)).to(at::kFloat);
  if (c.bias) s.leaves["bias"] = noise({c.heads, c.queries, c.keys}, 5 + c.seed).to(at::kFloat);
  s.options.factor = 1.0 / std::sqrt(static_cast<double>(c.width));
  if (c.mask != MaskKind::none) s.options.mask = mask_of(c);
  s.options.dropout = c.dropout;
  s.gradient = heads(c.queries, 6);
  s.seed = c.seed;
  return s;
}

// The output and the gradients of all leaves.
template <class Attention>
NamedTensors differentiate(const AttentionSample& sample, at::ScalarType type,
                           const Attention& attention) {
  NamedTensors leaves;
  std::vector<Tensor> list;
  for (const auto& [name, value] : sample.leaves) {
    const auto wanted = type == at::kDouble ? at::kDouble : value.scalar_type();
    leaves[name] = value.detach().to(wanted).requires_grad_();
    list.push_back(leaves[name]);
  }
  nn::AttendOptions options = sample.options;
  if (leaves.count("scale") != 0) options.scale = leaves["scale"];
  if (leaves.count("bias") != 0) options.bias = leaves["bias"];
  at::manual_seed(sample.seed);
  NamedTensors result;
  result["out"] = attention(leaves["q"], leaves["k"], leaves["v"], options);
  const auto found = torch::autograd::grad({result["out"]}, list, {sample.gradient.to(type)});
  size_t i = 0;
  for (const auto& [name, value] : leaves) result["d" + name] = found[i++];
  return result;
}

Tensor kept_places(const Shape& shape, double rate) {
  const int64_t seed =
      at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
  const Tensor ones = at::ones(shape);
  Tensor kept = at::empty(shape);
  kernels::dropout(ones.data_ptr<float>(), kept.data_ptr<float>(), 0, ones.numel(), rate,
                   static_cast<uint64_t>(seed));
  return kept.to(at::kDouble);
}

// The definition in double precision.
Tensor by_definition(const Tensor& q, const Tensor& k, const Tensor& v,
                     const nn::AttendOptions& how) {
  Tensor scores = at::matmul(q, k.transpose(-2, -1)) * how.factor;
  if (how.bias.defined()) scores = scores + how.bias;
  if (how.scale.defined()) scores = scores * how.scale.view({-1, 1, 1});
  if (how.mask.defined()) scores = scores.masked_fill(how.mask.logical_not(), -1e300);
  Tensor p = at::softmax(scores, -1);
  if (how.mask.defined()) p = p.masked_fill(how.mask.logical_not(), 0.0);
  if (how.dropout > 0.0) p = p * kept_places(p.sizes().vec(), how.dropout);
  return at::matmul(p, v);
}

Tensor fused(const Tensor& q, const Tensor& k, const Tensor& v, const nn::AttendOptions& how) {
  return nn::attend_fused(q, k, v, how, /*training=*/true);
}

// Relative to the largest entry. Gradients that pass through the softmax are also compared relative
// to the terms that cancel: sums over d, of which nothing remains if there is only one key.
void expect_close(const NamedTensors& got, const NamedTensors& wanted, double tolerance,
                  const AttentionCase& c) {
  const double cancels = 0.5 * std::sqrt(static_cast<double>(c.batch * c.width));
  for (const auto& [name, value] : wanted) {
    double scale = value.abs().max().item<double>() + 0.1;
    if (name != "out" && name != "dv") scale += cancels;
    if (name == "dscale") scale *= 5;
    expect_near(got.at(name), value, tolerance * scale, name);
  }
}

// For every instruction set in turn; finally the best again.
template <class Test>
void on_every_target(const Test& test) {
  for (const std::string& target : kernels::attention_targets()) {
    SCOPED_TRACE(target);
    kernels::use_attention_target(target);
    test();
  }
  kernels::use_attention_target("");
}

TEST(AttentionKernels, EqualTheDefinitionInFp32) {
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const AttentionCase c = odd_case(seed);
    const AttentionSample sample = sample_of(c, at::kFloat);
    const NamedTensors wanted = differentiate(sample, at::kDouble, by_definition);
    on_every_target([&] {
      SCOPED_TRACE(::testing::PrintToString(c));
      expect_close(differentiate(sample, at::kFloat, fused), wanted, 2e-5, c);
    });
    if (::testing::Test::HasFailure()) {
      break;
    }
  }
}

TEST(AttentionKernels, EqualTheDefinitionInBf16) {
  for (uint64_t seed = 100; seed < 164; ++seed) {
    const AttentionCase c = odd_case(seed);
    const AttentionSample sample = sample_of(c, at::kBFloat16);
    const NamedTensors wanted = differentiate(sample, at::kDouble, by_definition);
    on_every_target([&] {
      SCOPED_TRACE(::testing::PrintToString(c));
      expect_close(differentiate(sample, at::kBFloat16, fused), wanted, 2e-2, c);
    });
    if (::testing::Test::HasFailure()) {
      break;
    }
  }
}

TEST(AttentionKernels, FollowFiniteDifferences) {
  const Tensor q = variable({2, 2, 5, 4}, 1);
  const Tensor k = variable({2, 2, 7, 4}, 2);
  const Tensor v = variable({2, 2, 7, 4}, 3);
  nn::AttendOptions how;
  how.factor = 0.5;
  how.scale = variable({2}, 4);
  how.bias = variable({2, 5, 7}, 5);
  how.mask = noise({2, 1, 5, 7}, 6).gt(-0.7);
  how.dropout = 0.2;
  const NamedTensors all = {{"q", q}, {"k", k}, {"v", v}, {"scale", how.scale}, {"bias", how.bias}};
  GradcheckOptions options;
  options.step = 1e-2;  // the kernels round to fp32
  options.tolerance = 2e-3;
  on_every_target([&] {
    gradcheck(
        [&] {
          at::manual_seed(3);
          const auto narrow = [](const Tensor& x) { return x.to(at::kFloat); };
          return fused(narrow(q), narrow(k), narrow(v), how).to(at::kDouble);
        },
        all, options);
  });
}

TEST(AttentionKernels, TheSameBitsAgainAndWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  for (const int64_t batch : {1, 5}) {
    AttentionCase c;
    c.batch = batch;
    c.heads = 2;
    c.queries = 150;
    c.keys = 300;
    c.width = 32;
    c.mask = MaskKind::window;
    c.bias = c.scale = true;
    c.dropout = 0.1;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const AttentionSample sample = sample_of(c, type);
      at::set_num_threads(1);
      const NamedTensors one = differentiate(sample, type, fused);
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const NamedTensors again = differentiate(sample, type, fused);
        for (const auto& [name, value] : one) expect_identical(again.at(name), value, name);
      }
    }
  }
  at::set_num_threads(before);
}

TEST(AttentionKernels, ManyKeysAndLargeScores) {
  AttentionCase c;
  c.queries = 3;
  c.keys = 5000;
  c.width = 16;
  AttentionSample sample = sample_of(c, at::kFloat);
  sample.options.factor = 20.0;  // scores of some hundreds: e^score overflows
  const NamedTensors wanted = differentiate(sample, at::kDouble, by_definition);
  on_every_target([&] { expect_close(differentiate(sample, at::kFloat, fused), wanted, 1e-4, c); });
}

TEST(AttentionKernels, AQueryThatSeesNothingGivesZerosAndNaNStaysNaN) {
  AttentionCase c;
  c.batch = 2;
  c.heads = 2;
  c.queries = c.keys = 70;
  c.width = 8;
  c.mask = MaskKind::random;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    AttentionSample sample = sample_of(c, type);
    on_every_target([&] {
      const NamedTensors found = differentiate(sample, type, fused);
      for (const char* name : {"out", "dq"}) {
        EXPECT_EQ(found.at(name).select(2, 35).abs().max().item<double>(), 0.0) << name;
      }
      sample.options.mask.fill_(false);
      for (const auto& [name, value] : differentiate(sample, type, fused)) {
        EXPECT_EQ(value.abs().max().item<double>(), 0.0) << name;
      }
      sample.options.mask = mask_of(c);
    });
    sample.options.mask = Tensor();
    sample.leaves["k"] = sample.leaves["k"].clone();
    sample.leaves["k"][0][0][3][1] = std::numeric_limits<float>::quiet_NaN();
    on_every_target([&] {
      const NamedTensors spoiled = differentiate(sample, type, fused);
      EXPECT_TRUE(spoiled.at("out")[0][0].isnan().all().item<bool>());
      EXPECT_FALSE(spoiled.at("out")[0][1].isnan().any().item<bool>());
      EXPECT_TRUE(spoiled.at("dq")[0][0].isnan().all().item<bool>());
    });
  }
}

TEST(AttentionKernels, TargetsAreThoseOfTheCpuAndTheBestComesFirst) {
  const std::vector<std::string> targets = kernels::attention_targets();
  ASSERT_FALSE(targets.empty());
  // The lowest target is available on every CPU of the architecture.
  const std::set<std::string> least = {"SCALAR", "EMU128", "SSE2"};
  EXPECT_EQ(least.count(targets.back()), 1U) << targets.back();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) {
    EXPECT_NE(targets.front().find("AVX3_"), std::string::npos) << targets.front();
  }
#endif
}

}  // namespace
}  // namespace rondo::test
