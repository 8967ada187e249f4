// The nearest-neighbor memory against brute force.
#include "rondo/recurrence/memorizing.h"

#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/plain_recurrence.h"

namespace rondo::test {
namespace {

constexpr int64_t kMemoWidth = 6, kMemoWindow = 4;

WindowOptions memory_options() {
  WindowOptions o;
  o.shape = {kMemoWidth, 2, 4, false, nn::torch_init(kMemoWidth), nn::torch_init(8)};
  o.window = kMemoWindow;
  return o;
}

std::shared_ptr<MemorizingAttention> memory_layer(int64_t memory, int64_t neighbors) {
  auto layer = std::make_shared<MemorizingAttention>(memory_options(), memory, neighbors);
  make_generic(*layer, 41);
  return layer;
}

struct MemoryCase {
  int64_t memory;
  int64_t neighbors;
};

class MemoryLayer : public ::testing::TestWithParam<MemoryCase> {};

TEST_P(MemoryLayer, EqualsBruteForceWholeAndInPieces) {
  const at::NoGradGuard no_grad;
  const auto [memory, neighbors] = GetParam();
  const auto layer = memory_layer(memory, neighbors);
  for (const int64_t length : {3, 8, 27}) {
    const Tensor u = noise({2, length, kMemoWidth}, static_cast<uint64_t>(length));
    const Tensor want = by_rows(u, [&, m = memory, n = neighbors](const Tensor& row) {
      return PlainDocument(*layer, memory_options()).memorizing(row, m, n);
    });
    for (const int64_t piece : {length, int64_t{1}, int64_t{3}, int64_t{4}, int64_t{9}}) {
      State state;
      expect_near(forward_in_pieces(*layer, u, {piece}, state), want, 1e-12,
                  "length " + std::to_string(length) + ", pieces of " + std::to_string(piece));
      EXPECT_LE(state.get("level.0.memory.keys").size(1), memory);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MemoryLayer,
                         ::testing::Values(MemoryCase{1000, 3},  // never full
                                           MemoryCase{10, 3},  // drops entries, also within a block
                                           MemoryCase{8, 100},  // all of it is within reach
                                           MemoryCase{2, 1}));  // less than a block

TEST(Memory, OfOneRowMayBeShorterThanAnothers) {
  // Row 1 begins a new document after two blocks: its memory is empty, row 0's is not.
  const at::NoGradGuard no_grad;
  const auto layer = memory_layer(100, 3);
  const Tensor u = noise({2, 20, kMemoWidth}, 1);
  State state;
  forward_in_pieces(*layer, u.narrow(1, 0, 8), {8}, state);
  const Tensor fresh = at::tensor({0, 1}, at::kInt).to(at::kBool);
  const State before = state;
  for (const auto& [name, value] : before.tensors()) {
    state.set(name, start_rows(fresh, at::zeros({}, value.options()), value));
  }
  const Tensor got = forward_in_pieces(*layer, u.narrow(1, 8, 12), {5, 7}, state);
  PlainDocument plain(*layer, memory_options());
  expect_near(got[0], plain.memorizing(u[0], 100, 3).narrow(0, 8, 12), 1e-12, "goes on");
  expect_near(got[1], plain.memorizing(u[1].narrow(0, 8, 12), 100, 3), 1e-12, "begins");
}

// Keeps what a memory offers, over all pieces.
class MemoryRecords : public Observer {
 public:
  bool wants(const std::string& name) override { return name.rfind("memory", 0) == 0; }
  void activation(const std::string& name, const Tensor& value) override {
    all[name].push_back(value);
  }
  std::map<std::string, std::vector<Tensor>> all;
};

TEST(Memory, OffersItsEntriesAndTheirDistances) {
  const at::NoGradGuard no_grad;
  const int64_t memory = 10, neighbors = 3, length = 27;
  const auto layer = memory_layer(memory, neighbors);
  const Tensor u = noise({1, length, kMemoWidth}, 9);
  PlainDocument plain(*layer, memory_options());
  plain.memorizing(u[0], memory, neighbors);
  for (const int64_t piece : {length, int64_t{3}, int64_t{9}}) {
    MemoryRecords seen;
    State state;
    forward_in_pieces(*layer, u, {piece}, state, Scope(&seen));
    const auto& shares = seen.all.at("memory.probabilities");
    const auto& distances = seen.all.at("memory.distances");
    ASSERT_EQ(shares.size(), distances.size());
    int64_t token = 0;  // those of the first block have no entries
    for (size_t i = 0; i < shares.size(); ++i) {
      for (int64_t t = 0; t < shares[i].size(2); ++t, ++token) {
        for (int64_t h = 0; h < 2; ++h) {
          std::map<int64_t, double> got;
          for (int64_t k = 0; k < shares[i].size(3); ++k) {
            got[token - distances[i][0][h][t][k].item<int64_t>()] =
                shares[i][0][h][t][k].item<double>();
          }
          const auto want = plain.nearest(h, token, memory, neighbors);
          ASSERT_EQ(got.size(), want.size());
          for (const auto& [place, share] : want) {
            ASSERT_EQ(got.count(place), 1U) << "token " << token << ", entry " << place;
            EXPECT_NEAR(got.at(place), share, 1e-12);
          }
        }
      }
    }
    EXPECT_EQ(token, length);
    expect_near(seen.all.at("memory_gate").front().flatten(),
                at::sigmoid(layer->named_parameters()["gate"]), 1e-12);
  }
}

TEST(MemoryGradients, WithAMemoryThatStandsOutsideTheGradient) {
  const auto layer = memory_layer(100, 3);
  State past;
  {
    const at::NoGradGuard no_grad;
    forward_in_pieces(*layer, noise({2, 12, kMemoWidth}, 2), {12}, past);
  }
  // One block: what it stores is found only by later ones.
  const Tensor u = variable({2, kMemoWindow, kMemoWidth}, 3);
  gradcheck(
      [&] {
        State state = past;
        return forward_in_pieces(*layer, u, {kMemoWindow}, state);
      },
      with_parameters(*layer, {{"u", u}}));
}

TEST(Memory, PassesNoGradientToWhatItStored) {
  const auto layer = memory_layer(100, 3);
  const Tensor u = variable({1, 5 * kMemoWindow, kMemoWidth}, 4);
  State state;
  const Tensor y = forward_in_pieces(*layer, u, {u.size(1)}, state);
  EXPECT_FALSE(state.get("level.0.memory.keys").requires_grad());
  // The last token's window reaches back kMemoWindow tokens; the memory reaches further, but
  // gradients do not.
  y[0][-1].sum().backward();
  const Tensor reached = u.grad()[0].abs().amax(-1).gt(0);
  EXPECT_FALSE(reached.narrow(0, 0, u.size(1) - kMemoWindow - 1).any().item<bool>());
  EXPECT_TRUE(reached[u.size(1) - 2].item<bool>());
}

}  // namespace
}  // namespace rondo::test
