// Initial weights from a file, and image networks with other loops than they were trained with.
#include <gtest/gtest.h>

#include "rondo/train/start.h"
#include "tests/train/image_task_util.h"

namespace rondo {
namespace {

using test::ImageShop;
using test::tiny_image_run;
using test::tiny_pyramid;
using test::tiny_vision;
using test::trained_images;

TEST(ResizePositions, LeavesWhatFits) {
  const Tensor p = at::randn({1, 5, 3});
  EXPECT_TRUE(resize_positions(p, {1, 5, 3}, 1).is_same(p));
}

TEST(ResizePositions, KeepsClassTokensAndConstants) {
  Tensor p = at::full({1, 1 + 16, 3}, 2.5);
  p[0][0].fill_(-7.0);
  const Tensor q = resize_positions(p, {1, 1 + 36, 3}, 1);
  ASSERT_EQ(q.sizes().vec(), (Shape{1, 37, 3}));
  test::expect_identical(q[0][0], p[0][0], "class token");
  test::expect_near(q.narrow(1, 1, 36), at::full({1, 36, 3}, 2.5), 5e-6, "grid");
}

// Cubic convolution (a = -0.75) along one line of pixel centers, edges repeated.
std::vector<double> plain_cubic(const std::vector<double>& line, int64_t wanted) {
  const auto weight = [](double t) {
    const double a = -0.75;
    t = std::abs(t);
    if (t <= 1.0) return ((a + 2) * t - (a + 3)) * t * t + 1.0;
    if (t < 2.0) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
    return 0.0;
  };
  std::vector<double> out;
  const auto n = static_cast<int64_t>(line.size());
  for (int64_t i = 0; i < wanted; ++i) {
    const double at =
        (static_cast<double>(i) + 0.5) * static_cast<double>(n) / static_cast<double>(wanted) - 0.5;
    const auto first = static_cast<int64_t>(std::floor(at)) - 1;
    double sum = 0;
    for (int64_t j = first; j < first + 4; ++j) {
      const int64_t k = std::min(std::max<int64_t>(j, 0), n - 1);
      sum += weight(at - static_cast<double>(j)) * line[static_cast<size_t>(k)];
    }
    out.push_back(sum);
  }
  return out;
}

TEST(ResizePositions, IsBicubic) {
  const std::vector<double> line = {0.3, -1.0, 2.0, 0.7};
  // The same in every row, so that resizing along the other axis changes nothing.
  const Tensor map = at::tensor(line).to(at::kFloat).view({1, 1, 1, 4}).expand({1, 1, 4, 4});
  const Tensor wide = resize_positions(map, {1, 1, 7, 7}, 0);
  const std::vector<double> expected = plain_cubic(line, 7);
  for (int64_t y = 0; y < 7; ++y) {
    for (int64_t x = 0; x < 7; ++x) {
      EXPECT_NEAR(wide[0][0][y][x].item<double>(), expected[static_cast<size_t>(x)], 1e-5);
    }
  }
}

TEST(StartWeights, TakesOverAllWeights) {
  const ImageShop shop;
  const RunConfig config = tiny_image_run(shop, tiny_pyramid());
  trained_images(config, shop.run("first"));
  RunConfig again = config;
  again.train.start = shop.run("first");
  ImageTask task(again);
  test::expect_identical_tensors(named_tensors(task.network()),
                                 load_tensors(best_model_path(shop.run("first"))));
}

TEST(StartWeights, FineTunesAtAnotherResolutionWithOtherClasses) {
  const ImageShop shop;
  trained_images(tiny_image_run(shop, tiny_pyramid()), shop.run("first"));
  const NamedTensors before = load_tensors(best_model_path(shop.run("first")));
  PyramidConfig larger = tiny_pyramid();
  larger.image = 64;
  larger.classes = 11;
  RunConfig config = tiny_image_run(shop, larger);
  config.train.start = shop.run("first");
  ImageTask task(config);
  const NamedTensors now = named_tensors(task.network());
  EXPECT_EQ(now.at("positions").sizes().vec(), (Shape{1, 8, 8, 8}));
  test::expect_near(now.at("positions").mean(), before.at("positions").mean(), 0.02, "positions");
  test::expect_identical(now.at("stem.convolution0.weight"), before.at("stem.convolution0.weight"),
                         "stem");
  EXPECT_EQ(now.at("head.weight").size(0), 11);
  EXPECT_TRUE(std::isfinite(task.next_loss().sum.item<double>()));
}

TEST(StartWeights, NamesEveryDifference) {
  const ImageShop shop;
  trained_images(tiny_image_run(shop, tiny_vision()), shop.run("first"));
  VisionConfig wider = tiny_vision();
  wider.hidden = 48;
  RunConfig config = tiny_image_run(shop, wider);
  config.train.start = shop.run("first");
  test::expect_error(ExitCode::bad_input, "expected [48, 16]", [&] { ImageTask task(config); });
  config.train.start = shop.run("nowhere");
  test::expect_error(ExitCode::bad_input, "no such run", [&] { ImageTask task(config); });
}

// A network of `loops` loops with the weights of one with more, block by block and by hand.
Tensor logits_by_hand(const std::string& run, int64_t loops, int64_t trained, const Tensor& x) {
  PyramidConfig fewer = tiny_pyramid();
  fewer.depth.recursive.loops = {loops};
  const auto network = build_network(ModelConfig{fewer});
  const NamedTensors all = load_tensors(best_model_path(run));
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : named_tensors(*network)) {
    std::string theirs = name;
    // One block per stage: the first projections are kept, with the same numbers.
    for (int64_t k = loops; k < trained; ++k) {
      EXPECT_EQ(name.find("projection." + std::to_string(k)), std::string::npos);
    }
    Tensor target = tensor;
    target.copy_(all.at(theirs));
  }
  network->eval();
  return image_logits(*network, x);
}

TEST(Loops, FewerTakeTheFirstOnesWeights) {
  const ImageShop shop;
  trained_images(tiny_image_run(shop, tiny_pyramid()), shop.run("run"));
  const Tensor x = at::randn({2, 3, 32, 32}, nn::counter_generator(4, "images"));
  const ImageModel one = load_image_model(shop.run("run"), 1);
  test::expect_identical(image_logits(*one.network, x), logits_by_hand(shop.run("run"), 1, 2, x),
                         "one loop");
}

TEST(Loops, ProjectionsOfLaterBlocksKeepTheirBlock) {
  const ImageShop shop;
  VisionConfig c = tiny_vision("recursive");
  c.depth.recursive.blocks = {2};
  c.depth.recursive.loops = {3};
  c.depth.recursive.projection = 1.0;
  trained_images(tiny_image_run(shop, c), shop.run("run"));
  const NamedTensors all = load_tensors(best_model_path(shop.run("run")));
  const ImageModel two = load_image_model(shop.run("run"), 2);
  const NamedTensors now = named_tensors(*two.network);
  // Projections 0 1 2 | 3 4 5 of three loops; of two they are 0 1 | 3 4.
  const std::vector<std::pair<int, int>> pairs = {{0, 0}, {1, 1}, {2, 3}, {3, 4}};
  for (const auto& [mine, theirs] : pairs) {
    const std::string leaf = ".feed_forward.up.weight";
    test::expect_identical(now.at("stack.projection." + std::to_string(mine) + leaf),
                           all.at("stack.projection." + std::to_string(theirs) + leaf), leaf);
  }
}

TEST(Loops, MoreThanThereAreWeightsForIsRefused) {
  const ImageShop shop;
  trained_images(tiny_image_run(shop, tiny_pyramid()), shop.run("nll"));
  test::expect_error(ExitCode::bad_input, "cannot apply 3 loops",
                     [&] { load_image_model(shop.run("nll"), 3); });
  trained_images(tiny_image_run(shop, tiny_vision("vanilla")), shop.run("vanilla"));
  test::expect_error(ExitCode::usage, "has no loops",
                     [&] { load_image_model(shop.run("vanilla"), 3); });
  trained_images(tiny_image_run(shop, tiny_vision("universal")), shop.run("universal"));
  EXPECT_NO_THROW(load_image_model(shop.run("universal"), 5));
}

}  // namespace
}  // namespace rondo
