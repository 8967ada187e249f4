// Slicing a sequence into groups, permuting it between loops, and undoing both.
#include "rondo/recurrence/sliced.h"

#include "rondo/recurrence/self_attention.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

constexpr int64_t kTokens = 12, kWidth = 6;

// A self-attention and one call of it.
struct SlicedCase {
  explicit SlicedCase(const std::string& mode, bool causal = false) {
    SelfAttentionOptions options;
    options.shape = {kWidth, 2, 3, true, nn::torch_init(kWidth), nn::torch_init(kWidth)};
    options.permutation = mode;
    options.causal = causal;
    attention = std::make_shared<SelfAttention>(options);
    make_generic(*attention, 1);
  }
  Tensor run(const Tensor& x, int64_t groups, int64_t loop, const Tensor& permutation = {}) const {
    Permutations permutations(Permutations::Draw::fixed);
    if (permutation.defined()) permutations = Permutations(std::vector<Tensor>{permutation});
    ForwardContext context;
    context.permutations = &permutations;
    MixingInput in;
    in.u = in.x = x;
    in.groups = groups;
    in.loop = loop;
    return attention->forward(in, context, Scope());
  }
  std::shared_ptr<SelfAttention> attention;
};

Tensor some_permutation() {
  return at::randperm(kTokens, nn::counter_generator(9, "sliced test"), at::kLong);
}

// Which outputs change when token `at` of the first row does.
std::vector<int64_t> affected(const SlicedCase& c, int64_t at, int64_t groups, int64_t loop,
                              const Tensor& permutation = {}) {
  const at::NoGradGuard no_grad;
  const Tensor x = noise({2, kTokens, kWidth}, 3);
  const Tensor before = c.run(x, groups, loop, permutation);
  x[0][at].add_(1.0);
  const Tensor moved = (c.run(x, groups, loop, permutation) - before).abs().amax(-1).gt(0);
  EXPECT_FALSE(moved[1].any().item<bool>()) << "another row of the batch changed";
  std::vector<int64_t> tokens;
  for (int64_t t = 0; t < kTokens; ++t) {
    if (moved[0][t].item<bool>()) tokens.push_back(t);
  }
  return tokens;
}

TEST(Sliced, OneGroupIsGlobalAttention) {
  const SlicedCase c("P+I-L");
  const Tensor x = noise({2, kTokens, kWidth}, 2);
  const Tensor global = c.run(x, 1, 0);
  expect_identical(c.run(x, 1, 1, some_permutation()), global, "P+I-L leaves one group alone");
  // P+I permutes even one group; attention does not depend on the order, and it is undone.
  const SlicedCase always("P+I");
  expect_near(always.run(x, 1, 1, some_permutation()), global, 1e-12);
  EXPECT_FALSE(c.run(x, 3, 0).allclose(global)) << "three groups must differ";
}

TEST(Sliced, GroupsAttendOnlyInside) {
  const SlicedCase c("P+I-L");
  EXPECT_EQ(affected(c, 5, 3, 0), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(affected(c, 11, 2, 0), (std::vector<int64_t>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(affected(c, 0, 12, 0), (std::vector<int64_t>{0}));
  EXPECT_EQ(affected(c, 3, 1, 0).size(), static_cast<size_t>(kTokens));
}

TEST(Sliced, LaterLoopsAttendAmongPermutedNeighbors) {
  const SlicedCase c("P+I-L");
  const Tensor p = some_permutation();
  // Token p[i] is at position i, in group i / 4; results return to their tokens.
  std::vector<int64_t> group;
  for (int64_t i = 4; i < 8; ++i) group.push_back(p[i].item<int64_t>());
  std::sort(group.begin(), group.end());
  EXPECT_EQ(affected(c, p[6].item<int64_t>(), 3, 1, p), group);
}

TEST(Sliced, EqualsAttentionOfEachGroupAlone) {
  const SlicedCase c("P+I-L");
  const Tensor x = noise({2, kTokens, kWidth}, 4);
  const Tensor p = some_permutation();
  const Tensor shuffled = x.index_select(1, p);
  std::vector<Tensor> parts;
  for (int64_t g = 0; g < 3; ++g) parts.push_back(c.run(shuffled.narrow(1, 4 * g, 4), 1, 0));
  const Tensor joined = at::cat(parts, 1);
  expect_near(c.run(x, 3, 1, p), joined.index_select(1, invert(p)), 1e-12, "P+I-L");
  expect_near(SlicedCase("P+I").run(x, 3, 1, p), joined.index_select(1, invert(p)), 1e-12, "P+I");
  expect_near(SlicedCase("P").run(x, 3, 1, p), joined, 1e-12, "P never undoes");
}

TEST(Sliced, ModesSayWhenToPermuteAndUndo) {
  struct Row {
    const char* mode;
    int64_t loop, groups;
    bool permute, invert;
  };
  const Row rows[] = {
      {"P", 0, 4, false, false},     {"P", 1, 4, true, false},    {"P", 1, 1, true, false},
      {"P+I", 0, 4, false, false},   {"P+I", 1, 4, true, true},   {"P+I", 1, 1, true, true},
      {"P+I-L", 0, 4, false, false}, {"P+I-L", 2, 4, true, true}, {"P+I-L", 2, 1, false, false},
  };
  for (const Row& row : rows) {
    const SlicePlan plan = slice_plan(row.mode, row.loop, row.groups);
    EXPECT_EQ(plan.permute, row.permute) << row.mode << " " << row.loop << " " << row.groups;
    EXPECT_EQ(plan.invert, row.invert) << row.mode << " " << row.loop << " " << row.groups;
  }
}

TEST(Sliced, InverseIsExact) {
  const Tensor p = at::randperm(1000, nn::counter_generator(1, "inverse"), at::kLong);
  const Tensor x = noise({1000}, 1);
  expect_identical(x.index_select(0, p).index_select(0, invert(p)), x);
  expect_identical(x.index_select(0, invert(p)).index_select(0, p), x);
  const Tensor y = noise({2, 3, kTokens, 4}, 2);
  for (const int64_t groups : {1, 2, 3, 12}) {
    const Tensor cut = slice_groups(y, groups);
    EXPECT_EQ(cut.sizes().vec(), (Shape{2 * groups, 3, kTokens / groups, 4}));
    expect_identical(join_groups(cut, groups), y);
  }
}

TEST(Sliced, GroupsThatDoNotDivideAreAnError) {
  expect_error(ExitCode::bad_input, "12 tokens cannot be cut into 5 equal groups", [] {
    slice_groups(noise({1, 1, kTokens, 2}, 1), 5);
  });
}

TEST(Permutations, FixedOnesRepeatAndRandomOnesFollowTheSeed) {
  Permutations first(Permutations::Draw::fixed), second(Permutations::Draw::fixed);
  const Tensor a0 = first.next(50), a1 = first.next(50);
  expect_identical(second.next(50), a0);
  expect_identical(second.next(50), a1);
  EXPECT_FALSE(a0.equal(a1)) << "every use has its own";
  Permutations random(Permutations::Draw::random);
  at::manual_seed(3);
  const Tensor r0 = random.next(50);
  EXPECT_FALSE(r0.equal(random.next(50)));
  at::manual_seed(3);
  expect_identical(random.next(50), r0);
  expect_identical(std::get<0>(r0.sort()), at::arange(50, at::kLong));
}

TEST(Permutations, GivenOnesAreCheckedAndUsedInOrder) {
  const Tensor p = some_permutation();
  const Tensor q = invert(p);
  Permutations given(std::vector<Tensor>{p, q});
  expect_identical(given.next(kTokens), p);
  expect_identical(given.next(kTokens), q);
  expect_error(ExitCode::bad_input, "permutation.2: missing; 2 were given",
               [&] { given.next(kTokens); });
  expect_error(ExitCode::bad_input, "expected a permutation of 10 tokens",
               [&] { Permutations(std::vector<Tensor>{p}).next(10); });
  expect_error(ExitCode::bad_input, "repeated or missing numbers",
               [] { Permutations(std::vector<Tensor>{at::zeros({4}, at::kLong)}).next(4); });
  expect_error(ExitCode::bad_input, "expected a permutation of 4 tokens",
               [] { Permutations(std::vector<Tensor>{at::arange(4, at::kFloat)}).next(4); });
}

TEST(SelfAttentionGradients, SlicedAndPermuted) {
  for (const char* mode : {"P", "P+I", "P+I-L"}) {
    const SlicedCase c(mode);
    const Tensor x = variable({2, kTokens, kWidth}, 5);
    for (const int64_t groups : {1, 3}) {
      gradcheck([&] { return c.run(x, groups, 1, some_permutation()); },
                with_parameters(*c.attention, {{"x", x}}));
    }
  }
}

TEST(SelfAttentionGradients, Causal) {
  const SlicedCase c("P+I-L", /*causal=*/true);
  const Tensor x = variable({2, 5, kWidth}, 6);
  gradcheck([&] { return c.run(x, 1, 0); }, with_parameters(*c.attention, {{"x", x}}));
}

TEST(SelfAttention, CausalTokensSeeOnlyThePast) {
  const SlicedCase c("P+I-L", /*causal=*/true);
  EXPECT_EQ(affected(c, 9, 1, 0), (std::vector<int64_t>{9, 10, 11}));
}

}  // namespace
}  // namespace rondo::test
