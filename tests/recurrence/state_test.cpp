// State as a value: selecting and resetting rows, detaching, saving and loading.
#include "rondo/recurrence/state.h"

#include <fstream>

#include "rondo/nn/tensor_file.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"

namespace rondo::test {
namespace {

State some_state() {
  State state;
  state.set("position", at::tensor({4, 9, 2}, at::kLong));
  state.set("level.0.keys", noise({3, 5, 2, 4}, 1, at::kFloat));
  state.set("level.0.values", noise({3, 5, 2, 4}, 2, at::kFloat));
  state.set("level.1.state", noise({3, 2, 8}, 3, at::kDouble));
  return state;
}

void expect_same_state(const State& a, const State& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) expect_identical(tensor, b.get(name), name);
}

TEST(State, EmptyHasNothing) {
  const State state;
  EXPECT_TRUE(state.empty());
  EXPECT_EQ(state.rows(), 0);
  EXPECT_EQ(state.bytes(), 0);
  EXPECT_FALSE(state.get("position").defined());
  EXPECT_TRUE(state.reset(at::ones({3}, at::kBool)).empty());
}

TEST(State, KnowsItsRowsAndBytes) {
  EXPECT_EQ(some_state().rows(), 3);
  EXPECT_EQ(some_state().bytes(), 3 * 8 + 2 * 3 * 5 * 2 * 4 * 4 + 3 * 2 * 8 * 8);
  EXPECT_TRUE(some_state().has("level.1.state"));
  EXPECT_FALSE(some_state().has("level.2.state"));
}

TEST(State, SelectReordersRepeatsAndDropsRows) {
  const State state = some_state();
  const State chosen = state.select(at::tensor({2, 0, 2, 2}, at::kLong));
  EXPECT_EQ(chosen.rows(), 4);
  for (const auto& [name, tensor] : state.tensors()) {
    expect_identical(chosen.get(name)[0], tensor[2], name);
    expect_identical(chosen.get(name)[1], tensor[0], name);
    expect_identical(chosen.get(name)[3], tensor[2], name);
  }
  EXPECT_EQ(state.rows(), 3) << "the original stays";
}

TEST(State, CopiesAreIndependent) {
  const State original = some_state();
  State copy = original;
  copy.set("position", at::zeros({3}, at::kLong));
  EXPECT_EQ(original.get("position")[1].item<int64_t>(), 9);
}

TEST(State, ResetMarksRowsAndAddsUp) {
  const State once = some_state().reset(at::tensor({1, 0, 0}, at::kInt).to(at::kBool));
  expect_identical(once.fresh(), at::tensor({1, 0, 0}, at::kInt).to(at::kBool));
  const State twice = once.reset(at::tensor({0, 0, 1}, at::kInt).to(at::kBool));
  expect_identical(twice.fresh(), at::tensor({1, 0, 1}, at::kInt).to(at::kBool));
  expect_identical(once.fresh(), at::tensor({1, 0, 0}, at::kInt).to(at::kBool));
  EXPECT_FALSE(some_state().fresh().defined());
}

TEST(State, StartRowsReplacesMarkedRows) {
  const Tensor value = noise({3, 2, 2}, 1);
  const Tensor rows = at::tensor({0, 1, 0}, at::kInt).to(at::kBool);
  const Tensor start = at::full({2, 2}, 5.0, at::kDouble);
  const Tensor result = start_rows(rows, start, value);
  expect_identical(result[0], value[0]);
  expect_identical(result[1], start);
  expect_identical(result[2], value[2]);
  expect_identical(start_rows(Tensor(), start, value), value);
}

TEST(State, DetachCutsTheGraph) {
  State state = some_state();
  state.set("grown", variable({3, 2}, 4) * 2.0);
  EXPECT_TRUE(state.get("grown").requires_grad());
  EXPECT_FALSE(state.detach().get("grown").requires_grad());
  expect_same_state(state.detach(), state);
}

TEST(StateFile, ReturnsBitForBit) {
  State state = some_state().reset(at::tensor({0, 1, 0}, at::kInt).to(at::kBool));
  state.set("view", noise({3, 4, 5}, 6).transpose(1, 2));  // not contiguous
  const TemporaryFile file(".state");
  state.save(file.path(), "model-1");
  expect_same_state(State::load(file.path(), "model-1"), state);
}

TEST(StateFile, OfAnotherModelIsRefused) {
  const TemporaryFile file(".state");
  some_state().save(file.path(), "model-1");
  expect_error(ExitCode::bad_input, "belongs to another model: expected model-2, got model-1",
               [&] { State::load(file.path(), "model-2"); });
}

TEST(StateFile, OtherFilesAreRefused) {
  const TemporaryFile weights(".safetensors");
  save_tensors(weights.path(), {{"w", at::zeros({2})}});
  expect_error(ExitCode::bad_input, "not a state file",
               [&] { State::load(weights.path(), "model-1"); });
  const TemporaryFile text(".state");
  std::ofstream(text.path()) << "certainly not a state";
  expect_error(ExitCode::bad_input, text.path(), [&] { State::load(text.path(), "model-1"); });
  expect_error(ExitCode::io, "/nowhere", [] { State::load("/nowhere/state", "model-1"); });
}

TEST(StateFile, CutShortAnywhereIsAnErrorNotACrash) {
  const TemporaryFile file(".state");
  some_state().save(file.path(), "model-1");
  std::ifstream in(file.path(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  ASSERT_GT(whole.size(), 500U);
  const TemporaryFile cut(".state");
  for (size_t size = 0; size < whole.size(); size += 61) {
    std::ofstream(cut.path(), std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    expect_error(ExitCode::bad_input, cut.path(), [&] { State::load(cut.path(), "model-1"); });
  }
}

}  // namespace
}  // namespace rondo::test
