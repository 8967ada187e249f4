// Tensors to files and back, and weights into modules.
#include "rondo/nn/tensor_file.h"

#include "rondo/nn/layers.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"

namespace rondo::test {
namespace {

TEST(TensorFile, EveryTypeReturnsBitForBit) {
  NamedTensors saved;
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                          at::kShort, at::kChar, at::kByte, at::kBool}) {
    saved[c10::toString(type)] = (noise({3, 5}, 1) * 3).abs().to(type);
  }
  saved["scalar"] = at::scalar_tensor(2.5);
  saved["empty"] = at::zeros({0, 4});
  saved["strided"] = noise({4, 6}, 2).t();
  const TemporaryFile file(".safetensors");
  save_tensors(file.path(), saved, {{"author", "test"}});
  const NamedTensors loaded = load_tensors(file.path());
  ASSERT_EQ(loaded.size(), saved.size());
  for (const auto& [name, tensor] : saved) expect_identical(loaded.at(name), tensor, name);
  EXPECT_EQ(SafetensorsFile::open(file.path()).metadata().at("author"), "test");
}

TEST(TensorFile, TypesTheFormatLacksAreRefused) {
  expect_error(ExitCode::bad_input, "cannot be saved",
               [] { tensor_dtype(at::zeros({1}, at::kComplexFloat)); });
}

TEST(LoadWeights, FillsEverythingOrChangesNothing) {
  nn::Linear saved(3, 2, true), target(3, 2, true);
  nn::initialize(saved, 1);
  nn::initialize(target, 2);
  const TemporaryFile file(".safetensors");
  const auto load = [&](const NamedTensors& tensors) {
    save_tensors(file.path(), tensors);
    load_weights(target, SafetensorsFile::open(file.path()));
  };
  const Tensor before = target.named_parameters()["weight"].detach().clone();
  NamedTensors wrong = named_tensors(saved);
  wrong.erase("bias");
  wrong["weight"] = at::zeros({2, 4});
  wrong["extra.thing"] = at::zeros({1});
  const std::string text = error_of([&] { load(wrong); }).what();
  for (const char* part : {"missing: bias [2]", "weight: expected shape [2, 3], got [2, 4]",
                           "not in the model: extra.thing"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  expect_identical(target.named_parameters()["weight"].detach(), before, "nothing has changed");
  load(named_tensors(saved));
  for (const auto& [name, tensor] : named_tensors(saved)) {
    expect_identical(named_tensors(target).at(name), tensor, name);
  }
}

}  // namespace
}  // namespace rondo::test
