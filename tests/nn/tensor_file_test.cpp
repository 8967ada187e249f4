// Tensors to files and back, and weights into modules.
#include "rondo/nn/tensor_file.h"

#include <fstream>

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

TEST(TensorFile, TruthIsZeroOrOne) {
  const TemporaryFile file(".safetensors");
  const std::vector<uint8_t> bytes = {0, 1, 2};
  write_safetensors(file.path(), {{"mask", DType::boolean, {3}, bytes.data()}});
  expect_error(ExitCode::bad_input, "tensor 'mask': expected 0 or 1, got 2 at element 2",
               [&] { load_tensors(file.path()); });
}

TEST(TensorFile, ADamagedFileIsRefused) {
  const TemporaryFile file(".safetensors");
  save_tensors(file.path(), {{"w", at::ones({4})}}, {}, Checksum::xxh3);
  std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-1, std::ios::end) << '\0';
  stream.close();
  expect_error(ExitCode::bad_input, file.path() + ": checksum mismatch",
               [&] { load_tensors(file.path()); });
  EXPECT_EQ(load_tensors(file.path(), Verify::nothing).size(), 1U);
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

TEST(LoadWeights, OnlyFiniteOnesAndOnlyAsWritten) {
  nn::Linear saved(3, 2, true), target(3, 2, true);
  nn::initialize(saved, 1);
  nn::initialize(target, 2);
  const Tensor before = target.named_parameters()["weight"].detach().clone();
  const TemporaryFile file(".safetensors");
  const auto load = [&](Verify verify) {
    load_weights(target, SafetensorsFile::open(file.path()), verify);
  };
  for (const double bad :
       {1e300, double(INFINITY), double(-INFINITY), double(NAN)}) {  // the first is not an fp32
    NamedTensors tensors = named_tensors(saved);
    tensors["weight"] = tensors["weight"].detach().to(at::kDouble);
    tensors["weight"][1][0] = bad;
    save_tensors(file.path(), tensors, {}, Checksum::xxh3);
    const std::string text = error_of([&] { load(Verify::nothing); }).what();
    EXPECT_NE(text.find(file.path() + ": tensor 'weight': expected finite numbers, got"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("at element 3"), std::string::npos) << text;
  }
  save_tensors(file.path(), named_tensors(saved), {}, Checksum::xxh3);
  std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-4, std::ios::end) << '\x01';  // a bit of a mantissa
  stream.close();
  expect_error(ExitCode::bad_input, "checksum mismatch", [&] { load(Verify::checksum); });
  expect_identical(target.named_parameters()["weight"].detach(), before, "nothing has changed");
  load(Verify::nothing);
}

}  // namespace
}  // namespace rondo::test
