// Shared by the tests of image training: an easy CIFAR file and a tiny experiment.
#pragma once

#include "rondo/train/image_task.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {

// A folder with `count` images of 10 classes as CIFAR binaries: the class is the brightness of the
// upper half.
class ImageShop {
 public:
  explicit ImageShop(int64_t count = 40) { testing::spill(file(), records(count)); }
  std::string file() const { return folder_.file("data_batch_1.bin"); }
  std::string run(const std::string& name) const { return folder_.file(name); }

 private:
  static std::string records(int64_t count) {
    CounterRandom random(5, "image shop");
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) {
      const auto label = i % 10;
      bytes += static_cast<char>(label);
      for (int64_t p = 0; p < 3 * 1024; ++p) {
        const bool upper = p % 1024 < 512;
        const auto noise = static_cast<int64_t>(random.below(20));
        bytes += static_cast<char>(upper ? 20 * label + noise : 100 + noise);
      }
    }
    return bytes;
  }

  testing::TempDir folder_;
  QuietLog quiet_;
};

// A small SReT with batch norms: 32 px, maps of 4, 2 and 1.
inline PyramidConfig tiny_pyramid() {
  PyramidConfig c;
  c.image = 32;
  c.classes = 10;
  c.widths = {8, 16, 32};
  c.heads = {1, 2, 2};
  c.drop_path = 0.0;
  c.depth.scheme = "recursive";
  c.depth.recursive.blocks = {1, 1, 1};
  c.depth.recursive.loops = {2};
  c.depth.recursive.residual = "both";
  c.depth.recursive.projection = 1.0;
  c.depth.recursive.groups = {{4, 2}, {1}, {1}};
  return c;
}

inline VisionConfig tiny_vision(const std::string& scheme = "ring") {
  VisionConfig c;
  c.image = 32;
  c.patch = 8;
  c.classes = 10;
  c.width = 16;
  c.hidden = 32;
  c.heads = 2;
  c.dropout = 0.0;
  c.depth.scheme = scheme;
  c.depth.levels = 2;
  if (scheme == "universal") c.positions = "none";  // its levels add more
  return c;
}

template <class Config>
RunConfig tiny_image_run(const ImageShop& shop, const Config& model) {
  RunConfig c;
  c.model = ModelConfig{model};
  c.images.train = shop.file();
  c.augment.crop = "none";
  c.augment.flip = 0.0;
  c.train.steps = 6;
  c.train.batch = 8;
  c.train.log_every = 1;
  c.train.eval_every = 0;
  c.train.save_every = 1000;
  c.schedule.kind = "constant";
  c.schedule.rate = 0.003;
  return c;
}

inline Checkpoint trained_images(const RunConfig& config, const std::string& run) {
  ImageTask task(config);
  RunFolder folder(run, config);
  EXPECT_EQ(train(task, config, folder), 0);
  return newest_checkpoint(run);
}

}  // namespace rondo::test
