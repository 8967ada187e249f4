// Sliding-window attention in tiles equals full attention with the equivalent mask, whole or in
// pieces, with every option.
#include "rondo/recurrence/window.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/plain_recurrence.h"
#include "tests/support/reference.h"

namespace rondo::test {
namespace {

constexpr int64_t kStream = 6;

WindowOptions window_options(int64_t window, bool attend_self = false, bool mask_empty = false) {
  WindowOptions o;
  o.shape = {kStream, 2, 4, false, nn::torch_init(kStream), nn::torch_init(8)};
  o.window = window;
  o.attend_self = attend_self;
  o.mask_empty_cache = mask_empty;
  return o;
}

std::shared_ptr<WindowAttention> window_layer(const WindowOptions& o) {
  auto layer = std::make_shared<WindowAttention>(o);
  make_generic(*layer, 11);
  return layer;
}

struct WindowCase {
  int64_t window;
  bool attend_self;
  bool mask_empty_cache;
};

class WindowEqualsFull : public ::testing::TestWithParam<WindowCase> {};

TEST_P(WindowEqualsFull, ForEveryLengthWholeAndInPieces) {
  const at::NoGradGuard no_grad;
  const WindowCase c = GetParam();
  const WindowOptions o = window_options(c.window, c.attend_self, c.mask_empty_cache);
  const auto layer = window_layer(o);
  PlainDocument plain(*layer, o);
  for (const int64_t length : {1, 3, 4, 11, 21}) {
    const Tensor u = noise({2, length, kStream}, static_cast<uint64_t>(length));
    const Tensor want = by_rows(u, [&](const Tensor& row) { return plain.window(row); });
    for (const std::vector<int64_t>& pieces :
         std::vector<std::vector<int64_t>>{{length}, {1}, {3}, {4}, {9}, {2, 7, 1, 5, 6}}) {
      State state;
      expect_near(
          forward_in_pieces(*layer, u, pieces, state), want, 1e-12,
          "length " + std::to_string(length) + ", pieces of " + std::to_string(pieces.front()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Options, WindowEqualsFull,
                         ::testing::Values(WindowCase{4, false, false}, WindowCase{4, true, false},
                                           WindowCase{4, false, true}, WindowCase{4, true, true},
                                           WindowCase{1, false, false}, WindowCase{20, false, true},
                                           WindowCase{0, false, false}));

TEST(Window, FarDistancesUseTheLogarithmicBuckets) {
  const at::NoGradGuard no_grad;
  const WindowOptions o = window_options(70, false, true);
  const auto layer = window_layer(o);
  const Tensor u = noise({1, 150, kStream}, 2);
  State state;
  expect_near(forward_in_pieces(*layer, u, {64}, state),
              by_rows(u, [&](const Tensor& row) { return PlainDocument(*layer, o).window(row); }),
              1e-12);
}

// Keeps the attention probabilities.
class ProbabilityKeeper : public Observer {
 public:
  bool wants(const std::string& name) override { return name == "probabilities"; }
  void activation(const std::string& /*name*/, const Tensor& value) override { kept = value; }
  Tensor kept;
};

TEST(Window, MaskEqualsTheAuthors) {
  const at::NoGradGuard no_grad;
  const auto layer = window_layer(window_options(4));
  const Reference reference("t5_buckets");
  State state;
  state.set("level.0.keys", noise({1, 4, 2, 4}, 1));
  state.set("level.0.values", noise({1, 4, 2, 4}, 2));
  ForwardContext context;
  context.state = &state;
  context.positions = at::arange(4, at::kLong).unsqueeze(0);
  MixingInput in;
  in.u = in.x = noise({1, 4, kStream}, 3);
  ProbabilityKeeper keeper;
  layer->forward(in, context, Scope(&keeper));
  expect_identical(keeper.kept[0][0].gt(0), reference["mask_W4"]);
  expect_identical(keeper.kept[0][1].gt(0), reference["mask_W4"]);
}

TEST(Window, KeepsTheLastKeysNormalizedAndValuesAsTheyAre) {
  const at::NoGradGuard no_grad;
  const auto layer = window_layer(window_options(4));
  const Tensor u = noise({2, 10, kStream}, 4);
  State state;
  forward_in_pieces(*layer, u, {10}, state);
  const auto p = layer->named_parameters();
  const auto last = [&](const char* name) {
    return at::matmul(u.narrow(1, 6, 4), p[name].t()).view({2, 4, 2, 4});
  };
  expect_near(state.get("level.0.values"), last("projections.value.weight"), 1e-13);
  const Tensor keys = last("projections.key.weight");
  expect_near(state.get("level.0.keys"), keys / (keys.square().sum(-1, true) + 1e-6).sqrt(), 1e-13);
}

TEST(Window, RowsMayBeAtDifferentPlaces) {
  // Row 1 begins a new document where row 0 continues: zeros in its cache, position 0.
  const at::NoGradGuard no_grad;
  for (const bool mask_empty : {false, true}) {
    const WindowOptions o = window_options(4, false, mask_empty);
    const auto layer = window_layer(o);
    const Tensor u = noise({2, 14, kStream}, 5);
    State state;
    forward_in_pieces(*layer, u.narrow(1, 0, 5), {5}, state);
    const Tensor fresh = at::tensor({0, 1}, at::kInt).to(at::kBool);
    for (const char* name : {"position", "level.0.keys", "level.0.values"}) {
      const Tensor value = state.get(name);
      state.set(name, start_rows(fresh, at::zeros({}, value.options()), value));
    }
    const Tensor got = forward_in_pieces(*layer, u.narrow(1, 5, 9), {2, 7}, state);
    PlainDocument plain(*layer, o);
    expect_near(got[0], plain.window(u[0]).narrow(0, 5, 9), 1e-12, "goes on");
    expect_near(got[1], plain.window(u[1].narrow(0, 5, 9)), 1e-12, "begins");
  }
}

TEST(WindowGradients, WithAndWithoutACache) {
  for (const int64_t window : {3, 0}) {
    const auto layer = window_layer(window_options(window, false, true));
    const Tensor u = variable({2, 7, kStream}, 6);
    const Tensor past = noise({2, 5, kStream}, 7);
    State before;
    {
      const at::NoGradGuard no_grad;
      forward_in_pieces(*layer, past, {5}, before);
    }
    for (const State& start : {State(), before}) {
      gradcheck(
          [&] {
            State state = start;
            return forward_in_pieces(*layer, u, {7}, state);
          },
          with_parameters(*layer, {{"u", u}}));
    }
  }
}

TEST(Window, DropsInputsAndProbabilitiesInTrainingOnly) {
  const at::NoGradGuard no_grad;
  const Tensor u = noise({2, 9, kStream}, 8);
  const auto plain = window_layer(window_options(4));
  State state;
  const Tensor want = forward_in_pieces(*plain, u, {9}, state);
  for (const bool input : {true, false}) {
    WindowOptions o = window_options(4);
    (input ? o.input_dropout : o.attention_dropout) = 0.5;
    const auto layer = window_layer(o);
    layer->eval();
    State quiet, noisy;
    expect_identical(forward_in_pieces(*layer, u, {9}, quiet), want);
    layer->train();
    at::manual_seed(1);
    EXPECT_FALSE(forward_in_pieces(*layer, u, {9}, noisy).allclose(want));
  }
}

}  // namespace
}  // namespace rondo::test
