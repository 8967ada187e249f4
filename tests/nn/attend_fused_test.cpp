// nn::attend() by kernels and by plain operations: the same result, the same dropped positions, the
// same counts for observers; mixed precision, masks of all shapes, recomputation.
#include "rondo/nn/attend_fused.h"

#include <torch/csrc/autograd/autograd.h>

#include "rondo/nn/kernel_choice.h"
#include "rondo/nn/precision.h"
#include "rondo/nn/recompute.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

// Switches kernels for a while.
class KernelsFor {
 public:
  explicit KernelsFor(nn::Kernels kernels) { nn::use_kernels(kernels); }
  ~KernelsFor() { nn::use_kernels(before_); }
  KernelsFor(const KernelsFor&) = delete;
  KernelsFor& operator=(const KernelsFor&) = delete;

 private:
  nn::Kernels before_ = nn::kernels_in_use();
};

constexpr int64_t kB = 3, kH = 2, kTq = 40, kTk = 70, kD = 16;

struct BothWays {
  Tensor q = noise({kB, kH, kTq, kD}, 1, at::kFloat).requires_grad_();
  Tensor k = noise({kB, kH, kTk, kD}, 2, at::kFloat).requires_grad_();
  Tensor v = noise({kB, kH, kTk, kD}, 3, at::kFloat).requires_grad_();
  nn::AttendOptions how;

  // The output and the gradients of learned tensors.
  std::vector<Tensor> run(nn::Kernels kernels, const Scope& scope = Scope()) const {
    const KernelsFor use(kernels);
    at::manual_seed(11);
    const Tensor y = nn::attend(q, k, v, how, /*training=*/true, scope);
    std::vector<Tensor> leaves = {q, k, v};
    for (const Tensor& learned : {how.scale, how.bias}) {
      if (learned.defined()) leaves.push_back(learned);
    }
    const Tensor direction = noise({kB, kH, kTq, kD}, 4, at::kFloat).to(y.scalar_type());
    std::vector<Tensor> found = torch::autograd::grad({y}, leaves, {direction});
    found.insert(found.begin(), y);
    return found;
  }

  void expect_alike(double tolerance) const {
    const std::vector<Tensor> fused = run(nn::Kernels::fused);
    const std::vector<Tensor> plain = run(nn::Kernels::reference);
    ASSERT_EQ(fused.size(), plain.size());
    for (size_t i = 0; i < fused.size(); ++i) {
      const double scale = 1.0 + plain[i].abs().max().item<double>();
      EXPECT_EQ(fused[i].scalar_type(), plain[i].scalar_type()) << i;
      expect_near(fused[i], plain[i], tolerance * scale, std::to_string(i));
    }
  }
};

TEST(AttendFused, EqualsPlainOperationsAndDropsTheSamePlaces) {
  for (const double rate : {0.0, 0.4}) {
    BothWays both;
    both.how.factor = 0.3;
    both.how.scale = noise({kH}, 5, at::kFloat).requires_grad_();
    both.how.bias = noise({kH, kTq, kTk}, 6, at::kFloat).requires_grad_();
    both.how.mask = noise({kB, 1, kTq, kTk}, 7).gt(0.0);
    both.how.dropout = rate;
    both.expect_alike(1e-5);
  }
}

TEST(AttendFused, TakesMasksOfAllShapes) {
  BothWays both;
  const Tensor whole = noise({kB, kH, kTq, kTk}, 8).gt(-0.5);
  const Tensor masks[] = {
      whole[0][0],                                      // [Tq, Tk]
      whole[0][0].slice(0, 0, 1),                       // [1, Tk]
      whole.narrow(1, 0, 1),                            // [B, 1, Tq, Tk]
      whole.narrow(1, 0, 1).narrow(2, 0, 1),            // [B, 1, 1, Tk]
      whole.narrow(1, 0, 1).narrow(3, 0, 1),            // [B, 1, Tq, 1]
      whole[0].narrow(0, 0, 1),                         // [1, Tq, Tk]
      whole[0][0].expand({kB, 1, kTq, kTk}),            // a batch of one mask
      whole[0][0].t().contiguous().t(),                 // keys far apart
      whole,                                            // separate for each head
      at::ones({kTq, kTk}, at::kBool).tril(kTk - kTq),  // causal
      at::zeros({kTq, kTk}, at::kBool),                 // no query sees any key
  };
  for (const Tensor& mask : masks) {
    SCOPED_TRACE(::testing::PrintToString(mask.sizes().vec()));
    both.how.mask = mask;
    both.expect_alike(1e-5);
  }
}

TEST(AttendFused, UnderMixedPrecisionIsAsCloseAsPlainOperations) {
  BothWays both;
  both.how.factor = 0.25;
  both.how.scale = noise({kH}, 5, at::kFloat).requires_grad_();
  both.how.bias = noise({kH, kTq, kTk}, 6, at::kFloat).requires_grad_();
  const std::vector<Tensor> exact = both.run(nn::Kernels::reference);
  const nn::MixedPrecision mixed(true);
  const std::vector<Tensor> fused = both.run(nn::Kernels::fused);
  const std::vector<Tensor> plain = both.run(nn::Kernels::reference);
  EXPECT_EQ(fused[0].scalar_type(), at::kBFloat16);
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto error = [&](const Tensor& x) {
      return (x.to(at::kFloat) - exact[i]).norm().item<double>() / exact[i].norm().item<double>();
    };
    EXPECT_LE(error(fused[i]), 1.5 * error(plain[i]) + 1e-3) << i;
  }
}

TEST(AttendFused, LeavesOtherTypesAndStrangeShapesToPlainOperations) {
  const Tensor q = noise({kB, kH, kTq, kD}, 1);
  const nn::AttendOptions how;
  EXPECT_FALSE(nn::fused_attention_fits(q, q, q, how)) << "double";
  const Tensor narrow = q.to(at::kFloat);
  EXPECT_TRUE(nn::fused_attention_fits(narrow, narrow, narrow, how));
  EXPECT_FALSE(
      nn::fused_attention_fits(narrow, narrow.narrow(0, 0, 1), narrow.narrow(0, 0, 1), how))
      << "keys for one row, queries for several";
  const Tensor none = narrow.narrow(2, 0, 0);
  EXPECT_FALSE(nn::fused_attention_fits(none, narrow, narrow, how));
  EXPECT_FALSE(nn::fused_attention_fits(narrow.to(at::kMeta), narrow, narrow, how));
}

TEST(AttendFused, WithoutAGraphGivesTheSameAndLiesReadyForMerging) {
  const BothWays both;
  const Tensor with_graph = both.run(nn::Kernels::fused)[0];
  const at::NoGradGuard no_grad;
  const Tensor y = nn::attend(both.q, both.k, both.v, both.how, true, Scope());
  EXPECT_FALSE(y.requires_grad());
  expect_identical(y, with_graph);
  EXPECT_EQ(nn::merge_heads(y).data_ptr(), y.data_ptr()) << "no copy";
}

// What observers receive; probabilities only on request.
class WorkListener : public Observer {
 public:
  explicit WorkListener(bool probabilities) : probabilities_(probabilities) {}
  bool wants(const std::string& /*name*/) override { return probabilities_; }
  void activation(const std::string& name, const Tensor& value) override { seen[name] = value; }
  void multiply_adds(const std::string& name, double count) override { work[name] += count; }

  std::map<std::string, double> work;
  NamedTensors seen;

 private:
  bool probabilities_;
};

TEST(AttendFused, ObserversHearTheSame) {
  const BothWays both;
  for (const bool probabilities : {false, true}) {
    WorkListener fused(probabilities);
    WorkListener plain(probabilities);
    both.run(nn::Kernels::fused, Scope(&fused));
    both.run(nn::Kernels::reference, Scope(&plain));
    EXPECT_EQ(fused.work, plain.work);
    EXPECT_EQ(fused.work.count("scores"), 1U);
    EXPECT_EQ(fused.seen.size(), probabilities ? 1U : 0U);
  }
}

TEST(AttendFused, RecomputationDropsTheSamePlaces) {
  const BothWays both;
  const auto gradient = [&](bool again) {
    at::manual_seed(21);
    const Tensor x = both.q.detach().requires_grad_();
    const nn::Piece piece = [&](const Tensor& q) {
      nn::AttendOptions how;
      how.dropout = 0.3;
      return nn::attend(q, both.k, both.v, how, /*training=*/true, Scope());
    };
    const Tensor y = again ? nn::recompute_in_backward(x, piece, piece) : piece(x);
    return torch::autograd::grad({y.square().sum()}, {x})[0];
  };
  expect_identical(gradient(true), gradient(false));
}

}  // namespace
}  // namespace rondo::test
