// The recurrent layer against a second implementation, in all gate configurations, and its
// gradients.
#include "rondo/recurrence/block_recurrent.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/plain_recurrence.h"

namespace rondo::test {
namespace {

constexpr int64_t kBrtWidth = 6, kBrtHidden = 5, kBrtWindow = 4, kBrtStates = 3;

struct RecurrentCase {
  const char* gate;
  const char* configuration;
  const char* gate_tanh;
};

std::string case_name(const ::testing::TestParamInfo<RecurrentCase>& info) {
  return std::string(info.param.gate) + "_" + info.param.configuration + "_" + info.param.gate_tanh;
}

TimeConfig recurrent_time(const RecurrentCase& c) {
  TimeConfig time;
  time.kind = "block-recurrent";
  time.window = kBrtWindow;
  time.states = kBrtStates;
  time.gate = c.gate;
  time.configuration = c.configuration;
  time.gate_tanh = c.gate_tanh;
  return time;
}

WindowOptions recurrent_options() {
  WindowOptions o;
  o.shape = {kBrtWidth, 2, 4, false, nn::torch_init(kBrtWidth), nn::torch_init(16)};
  o.window = kBrtWindow;
  o.reads_states = true;
  return o;
}

std::shared_ptr<BlockRecurrentAttention> recurrent_layer(const TimeConfig& time) {
  auto layer = std::make_shared<BlockRecurrentAttention>(recurrent_options(), time, kBrtHidden);
  make_generic(*layer, 21);
  return layer;
}

class BlockRecurrentLayer : public ::testing::TestWithParam<RecurrentCase> {};

TEST_P(BlockRecurrentLayer, EqualsThePlainOneWholeAndInPieces) {
  const at::NoGradGuard no_grad;
  const TimeConfig time = recurrent_time(GetParam());
  const auto layer = recurrent_layer(time);
  for (const int64_t length : {3, 8, 19}) {
    const Tensor u = noise({2, length, kBrtWidth}, static_cast<uint64_t>(length));
    std::vector<Tensor> states;
    const Tensor want = by_rows(u, [&](const Tensor& row) {
      PlainDocument plain(*layer, recurrent_options());
      const Tensor y = plain.recurrent(row, time);
      states.push_back(plain.state());
      return y;
    });
    for (const std::vector<int64_t>& pieces :
         std::vector<std::vector<int64_t>>{{length}, {1}, {3}, {4}, {9}, {2, 7, 1, 5, 6}}) {
      State state;
      const std::string what =
          "length " + std::to_string(length) + ", pieces of " + std::to_string(pieces.front());
      expect_near(forward_in_pieces(*layer, u, pieces, state), want, 1e-12, what);
      expect_near(state.get("level.0.state"), at::stack(states), 1e-12, what);
    }
  }
}

TEST_P(BlockRecurrentLayer, Gradients) {
  const auto layer = recurrent_layer(recurrent_time(GetParam()));
  const Tensor u = variable({2, 9, kBrtWidth}, 31);
  const NamedTensors variables = with_parameters(*layer, {{"u", u}});
  gradcheck(
      [&] {
        State state;
        const Tensor y = forward_in_pieces(*layer, u, {9}, state);
        return at::cat({y.flatten(), state.get("level.0.state").flatten()});
      },
      variables);
}

INSTANTIATE_TEST_SUITE_P(
    Gates, BlockRecurrentLayer,
    ::testing::Values(
        RecurrentCase{"fixed", "dual", "reference"}, RecurrentCase{"fixed", "single", "reference"},
        RecurrentCase{"fixed", "skip", "reference"}, RecurrentCase{"lstm", "dual", "reference"},
        RecurrentCase{"lstm", "single", "reference"}, RecurrentCase{"lstm", "skip", "reference"},
        RecurrentCase{"fixed", "dual", "paper"}, RecurrentCase{"fixed", "single", "paper"},
        RecurrentCase{"fixed", "skip", "paper"}, RecurrentCase{"lstm", "dual", "paper"},
        RecurrentCase{"lstm", "single", "paper"}, RecurrentCase{"lstm", "skip", "paper"}),
    case_name);

TEST(BlockRecurrent, GradientsWithoutIdsAndNormalizedQueriesAndKeys) {
  TimeConfig time = recurrent_time({"lstm", "dual", "reference"});
  time.state_ids = time.normalize = false;
  WindowOptions options = recurrent_options();
  options.normalize = false;
  const auto layer = std::make_shared<BlockRecurrentAttention>(options, time, kBrtHidden);
  make_generic(*layer, 22);
  const Tensor u = variable({2, 9, kBrtWidth}, 32);
  gradcheck(
      [&] {
        State state;
        const Tensor y = forward_in_pieces(*layer, u, {9}, state);
        return at::cat({y.flatten(), state.get("level.0.state").flatten()});
      },
      with_parameters(*layer, {{"u", u}}));
}

TEST(BlockRecurrent, TanhModesDifferWhereTheyShould) {
  const at::NoGradGuard no_grad;
  const Tensor u = noise({1, 8, kBrtWidth}, 5);
  const auto final_state = [&](const char* gate, const char* configuration, const char* mode) {
    const auto layer = recurrent_layer(recurrent_time({gate, configuration, mode}));
    State state;
    forward_in_pieces(*layer, u, {8}, state);
    return state.get("level.0.state");
  };
  // The same in both readings: lstm single (tanh), fixed dual and skip (none).
  EXPECT_TRUE(
      final_state("lstm", "single", "paper").equal(final_state("lstm", "single", "reference")));
  for (const char* configuration : {"dual", "skip"}) {
    EXPECT_TRUE(final_state("fixed", configuration, "paper")
                    .equal(final_state("fixed", configuration, "reference")));
    EXPECT_FALSE(final_state("lstm", configuration, "paper")
                     .allclose(final_state("lstm", configuration, "reference")));
  }
  EXPECT_FALSE(final_state("fixed", "single", "paper")
                   .allclose(final_state("fixed", "single", "reference")));
}

TEST(BlockRecurrent, TokensReadTheStateFromBeforeTheirBlock) {
  // Changing the last token of a block changes no output of that block but its own; the next
  // block's tokens see it, and through the state so does one far beyond every window.
  const at::NoGradGuard no_grad;
  const auto layer = recurrent_layer(recurrent_time({"fixed", "skip", "reference"}));
  const Tensor u = noise({1, 4 * kBrtWindow, kBrtWidth}, 6);
  State first, second;
  const Tensor before = forward_in_pieces(*layer, u, {u.size(1)}, first);
  u[0][kBrtWindow - 1].add_(1.0);
  const Tensor after = forward_in_pieces(*layer, u, {u.size(1)}, second);
  const Tensor changed = (after - before).abs().amax(-1)[0].gt(0);
  EXPECT_FALSE(changed.narrow(0, 0, kBrtWindow - 1).any().item<bool>());
  EXPECT_TRUE(changed[kBrtWindow].item<bool>());
  EXPECT_TRUE(changed.narrow(0, 3 * kBrtWindow, kBrtWindow).all().item<bool>())
      << "the state carries further than the window";
}

TEST(BlockRecurrent, BeginsWithTheLearnedState) {
  const at::NoGradGuard no_grad;
  const auto layer = recurrent_layer(recurrent_time({"fixed", "skip", "reference"}));
  const Tensor initial = layer->named_parameters()["initial"];
  const Tensor carried = noise({2, kBrtStates, kBrtWidth}, 1);
  const Tensor keys = noise({2, kBrtWindow, 1, 1}, 2);
  State state;
  for (const char* name : {"level.0.keys", "level.1.keys"}) state.set(name, keys);
  state.set("level.0.state", carried);
  layer->reset_state(0, at::tensor(std::vector<int64_t>{0, 1}).to(at::kBool), state);
  expect_identical(state.get("level.0.state")[0], carried[0]);
  expect_identical(state.get("level.0.state")[1], initial);
  expect_identical(state.get("level.0.keys")[0], keys[0]);
  expect_identical(state.get("level.0.keys")[1], at::zeros_like(keys[1]));
  expect_identical(state.get("level.1.keys"), keys, "another level's");

  State empty;
  ForwardContext begun, reset;
  begun.state = &empty;
  reset.state = &state;
  expect_identical(layer->read_states(0, 2, begun, Scope()).keys[1],
                   layer->read_states(0, 2, reset, Scope()).keys[1]);
}

}  // namespace
}  // namespace rondo::test
