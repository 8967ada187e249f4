// Compiled image networks give the results of the training network in evaluation mode: every image
// model of the zoo at small size, alone and in batches, with one thread and with several.
#include "rondo/model/compiled_image.h"

#include <thread>

#include "rondo/infer/classifier.h"
#include "rondo/infer/runtime.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

// With running averages of batch norms unlike those of a new network.
TinyModel trained_model(const std::string& name) {
  TinyModel model(shrink(find_model(name).config()));
  uint64_t seed = 5;
  for (auto& item : model.network->named_buffers()) {
    const at::NoGradGuard no_grad;
    const std::string& key = item.key();
    const Tensor drawn = noise(item.value().sizes().vec(), ++seed, at::kFloat);
    if (key.find("running_mean") != std::string::npos) item.value().copy_(drawn * 0.3);
    if (key.find("running_var") != std::string::npos) item.value().copy_(drawn.abs() + 0.2);
  }
  return model;
}

Tensor compiled_logits(const CompiledImageNetwork& network, const Tensor& images, int threads,
                       ImageWorkspace& workspace) {
  kernels::Team team(threads);
  const Tensor logits = at::empty({images.size(0), network.classes()});
  network.forward(images.data_ptr<float>(), images.size(0), logits.data_ptr<float>(), team,
                  workspace);
  return logits;
}

class CompiledImages : public ::testing::TestWithParam<std::string> {};

TEST_P(CompiledImages, EqualTheNetworkInEvaluation) {
  const at::NoGradGuard no_grad;
  const TinyModel model = trained_model(GetParam());
  const auto compiled = compile_image_network(*model.network);
  const int64_t side = image_side(model.config);
  ASSERT_EQ(compiled->side(), side);
  const Tensor images = noise({5, 3, side, side}, 3, at::kFloat);
  at::manual_seed(7);  // for networks that draw their permutations anew
  const Tensor want = image_logits(*model.network, images);
  ImageWorkspace workspace;
  at::manual_seed(7);
  const Tensor got = compiled_logits(*compiled, images, 1, workspace);
  EXPECT_LE(apart(got, want), 1e-5);
  for (const int threads : {2, 3}) {  // each thread's own images, and the remaining ones together
    at::manual_seed(7);
    expect_identical(compiled_logits(*compiled, images, threads, workspace), got);
  }
  at::manual_seed(7);
  expect_identical(compiled_logits(*compiled, images.narrow(0, 3, 1).contiguous(), 2, workspace),
                   got.narrow(0, 3, 1));
}

INSTANTIATE_TEST_SUITE_P(Zoo, CompiledImages, ::testing::ValuesIn(zoo_names("image")),
                         NameOfModel());

// SReT-T's attention, groups and convolutions at their original size, with fewer blocks.
TEST(CompiledImage, EqualsTheNetworkAtFullWidth) {
  const at::NoGradGuard no_grad;
  auto config = std::get<PyramidConfig>(find_model("sret/t").config().network);
  config.image = 128;
  const TinyModel model(ModelConfig{config});
  const auto compiled = compile_image_network(*model.network);
  const Tensor images = noise({1, 3, 128, 128}, 3, at::kFloat);
  ImageWorkspace workspace;
  EXPECT_LE(
      apart(compiled_logits(*compiled, images, 2, workspace), image_logits(*model.network, images)),
      1e-5);
}

// Two threads sharing a classifier, and two networks with separate workspaces.
TEST(CompiledImage, ServesSeveralThreads) {
  const at::NoGradGuard no_grad;
  const TinyModel model = trained_model("sret/t");
  const int64_t side = image_side(model.config);
  const Tensor images = noise({4, 3, side, side}, 3, at::kFloat);
  ImageModel loaded;
  loaded.network = model.network;
  loaded.config = model.config;
  const Classifier classifier(loaded);
  const auto compiled = compile_image_network(*model.network);
  ImageWorkspace first;
  const Tensor want = compiled_logits(*compiled, images, 1, first);
  const auto wanted = classifier.classify(images.data_ptr<float>(), 4, 7);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      ImageWorkspace own;
      for (int i = 0; i < 5; ++i) {
        if (!compiled_logits(*compiled, images, 1, own).equal(want)) ++wrong;
        const auto got = classifier.classify(images.data_ptr<float>(), 4, 7);
        for (size_t r = 0; r < 4; ++r) {
          if (got[r][0].probability != wanted[r][0].probability) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CompiledImage, ReferenceKernelsAreTheNetworksOwn) {
  const at::NoGradGuard no_grad;
  const TinyModel model = trained_model("sret/t");
  const int64_t side = image_side(model.config);
  const Tensor images = noise({2, 3, side, side}, 3, at::kFloat);
  ImageModel loaded;
  loaded.network = model.network;
  loaded.config = model.config;
  const Classifier classifier(loaded);
  for (auto& item : model.network->named_parameters()) {
    if (item.key() == "head.bias") item.value().add_(3.0 * at::arange(7, at::kFloat));
  }
  const auto compiled = classifier.classify(images.data_ptr<float>(), 2, 1);
  const PlainKernels plain;
  const auto own = classifier.classify(images.data_ptr<float>(), 2, 1);
  EXPECT_EQ(own[0][0].number, 6) << "the network as it is now";
  EXPECT_GT(std::abs(own[0][0].probability - compiled[0][0].probability), 1e-3)
      << "compiled weights are those of before";
}

}  // namespace
}  // namespace rondo::test
