// ImageLoader: the same batches for any number of threads and from every position, every image as
// often as configured, bad files skipped, and errors passed on from threads.
#include "rondo/image/pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "rondo/base/log.h"
#include "tests/image/image_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::made_up_image;

// Generated images; some of them cannot be read.
class MadeUpSet : public ImageSet {
 public:
  explicit MadeUpSet(int64_t count, std::vector<int64_t> bad = {}, int64_t broken = -1)
      : bad_(std::move(bad)), broken_(broken) {
    for (int64_t i = 0; i < count; ++i) {
      labels_.push_back(i % 5);
    }
    classes_ = {"a", "b", "c", "d", "e"};
    titles_ = classes_;
    seal({});
  }
  std::string name(int64_t i) const override { return "image " + std::to_string(i); }
  int64_t loads() const { return loads_; }

 protected:
  Image fetch(int64_t i, const EnoughSide& enough) const override {
    ++loads_;
    if (i == broken_) {
      throw std::runtime_error("the machine is on fire");
    }
    if (std::find(bad_.begin(), bad_.end(), i) != bad_.end()) {
      throw Error(ExitCode::bad_input, name(i) + ": damaged");
    }
    (void)enough({12, 10});
    return made_up_image(12, 10, static_cast<uint64_t>(i));
  }

 private:
  std::vector<int64_t> bad_;
  int64_t broken_;
  mutable std::atomic<int64_t> loads_{0};
};

AugmentConfig everything() {
  AugmentConfig config;
  config.auto_augment = "rand";
  config.color_jitter = 0.2;
  config.erase = 0.5;
  config.mixup = 0.8;
  config.cutmix = 1.0;
  return config;
}

LoaderOptions small_options(bool training, int64_t threads = 2) {
  LoaderOptions options;
  options.rows = 4;
  options.side = 8;
  options.seed = 7;
  options.training = training;
  options.threads = threads;
  return options;
}

void expect_equal_batches(const ImageBatch& a, const ImageBatch& b, const std::string& what) {
  ASSERT_EQ(a.rows, b.rows) << what;
  ASSERT_EQ(a.side, b.side) << what;
  ASSERT_EQ(a.index, b.index) << what;
  ASSERT_EQ(a.labels, b.labels) << what;
  ASSERT_EQ(a.epoch, b.epoch) << what;
  ASSERT_EQ(a.mix.lambda, b.mix.lambda) << what;
  ASSERT_EQ(a.mix.mixed, b.mix.mixed) << what;
  ASSERT_EQ(a.bad.size(), b.bad.size()) << what;
  ASSERT_EQ(a.pixels, b.pixels) << what;
}

std::vector<ImageBatch> read_batches(ImageLoader& loader, int count) {
  std::vector<ImageBatch> batches;
  ImageBatch batch;
  while (count-- > 0 && loader.next(batch)) {
    batches.push_back(batch);
  }
  return batches;
}

class Loader : public ::testing::Test {
 protected:
  void SetUp() override { init_log(-2); }
  void TearDown() override { init_log(0); }
};

TEST_F(Loader, ThreadsMakeNoDifference) {
  const MadeUpSet images(23, {4, 5, 17});
  for (const bool training : {true, false}) {
    std::vector<ImageBatch> expected;
    for (const int64_t threads : {1, 2, 3}) {
      for (const int64_t ahead : {1, 2, 5}) {
        LoaderOptions options = small_options(training, threads);
        options.ahead = ahead;
        ImageLoader loader(images, everything(), options);
        const std::vector<ImageBatch> got = read_batches(loader, 20);
        if (expected.empty()) {
          expected = got;
        }
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
          expect_equal_batches(got[i], expected[i], std::to_string(threads) + " threads");
        }
      }
    }
    EXPECT_EQ(expected.size(), training ? 20U : 6U);
  }
}

TEST_F(Loader, ContinuesExactlyFromEveryPosition) {
  const MadeUpSet images(11, {3});
  for (const bool training : {true, false}) {
    const LoaderOptions options = small_options(training);
    ImageLoader loader(images, everything(), options);
    std::vector<std::string> positions;
    std::vector<ImageBatch> batches;
    ImageBatch batch;
    for (int i = 0; i < 9; ++i) {
      positions.push_back(loader.position());
      if (!loader.next(batch)) {
        break;
      }
      batches.push_back(batch);
    }
    ImageLoader moved(images, everything(), options);
    for (size_t from = positions.size(); from-- > 0;) {
      moved.seek(positions[from]);
      EXPECT_EQ(moved.position(), positions[from]);
      for (size_t i = from; i < batches.size(); ++i) {
        ASSERT_TRUE(moved.next(batch));
        expect_equal_batches(batch, batches[i], "from " + std::to_string(from));
      }
      EXPECT_EQ(moved.next(batch), training);
    }
    EXPECT_LT(positions.back().size(), 200U);
  }
}

TEST_F(Loader, EpochsHoldEachImageAsOftenAsPromised) {
  const MadeUpSet images(30);
  for (const int64_t repeats : {1, 3}) {
    AugmentConfig config;
    config.repeats = repeats;
    ImageLoader loader(images, config, small_options(true));
    std::map<int64_t, std::map<int64_t, int64_t>> seen;  // epoch, image
    std::map<int64_t, std::vector<int64_t>> orders;
    ImageBatch batch;
    for (int i = 0; i < 30; ++i) {  // 120 rows: four epochs
      ASSERT_TRUE(loader.next(batch));
      ASSERT_EQ(batch.rows, 4);
      EXPECT_EQ(batch.epoch, i * 4 / 30);
      for (int64_t row = 0; row < 4; ++row) {
        const int64_t index = batch.index[static_cast<size_t>(row)];
        EXPECT_EQ(batch.labels[static_cast<size_t>(row)], index % 5);
        ++seen[(i * 4 + row) / 30][index];
        orders[(i * 4 + row) / 30].push_back(index);
      }
    }
    EXPECT_EQ(loader.epoch(), 4);
    ASSERT_EQ(seen.size(), 4U);
    for (const auto& [epoch, counts] : seen) {
      EXPECT_EQ(static_cast<int64_t>(counts.size()), 30 / repeats);
      for (const auto& [index, count] : counts) {
        EXPECT_EQ(count, repeats);
      }
    }
    EXPECT_NE(orders[0], orders[1]);
  }
}

// The copies of an image in one epoch are augmented differently.
TEST_F(Loader, RepeatsAreAugmentedAnew) {
  const MadeUpSet images(9);
  AugmentConfig config;
  config.repeats = 3;
  LoaderOptions options = small_options(true);
  options.rows = 3;
  ImageLoader loader(images, config, options);
  ImageBatch batch;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(loader.next(batch));
    EXPECT_EQ(batch.index[0], batch.index[2]);
    const size_t image = batch.pixels.size() / 3;
    EXPECT_FALSE(std::equal(batch.pixels.begin(), batch.pixels.begin() + static_cast<long>(image),
                            batch.pixels.begin() + static_cast<long>(image)));
  }
}

TEST_F(Loader, EvaluationTakesEachOnceInOrder) {
  const MadeUpSet images(10, {2, 8, 9});
  LoaderOptions options = small_options(false);
  ImageLoader loader(images, {}, options);
  EXPECT_EQ(loader.batches(), 3);
  const std::vector<ImageBatch> batches = read_batches(loader, 100);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].index, (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(batches[0].rows, 3);
  EXPECT_EQ(batches[0].pixels.size(), 3U * 3 * 64);
  EXPECT_EQ(batches[0].bad.size(), 1U);
  EXPECT_EQ(batches[1].index, (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(batches[2].rows, 0);
  ASSERT_EQ(batches[2].bad.size(), 2U);
  EXPECT_EQ(batches[2].bad[1].name, "image 9");
  EXPECT_EQ(batches[2].bad[1].reason, "image 9: damaged");
  EXPECT_EQ(loader.skipped(), 3);
  // The pixels are those of the image itself.
  std::vector<float> alone(3 * 64);
  loader.augmenter().evaluate(images.load(3), alone.data());
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), batches[0].pixels.begin() + 2 * 3 * 64));
}

TEST_F(Loader, BadImagesAreReplacedByTheNext) {
  const MadeUpSet images(8, {2, 3, 7});
  ImageLoader loader(images, {}, small_options(true));
  std::map<int64_t, int64_t> seen;
  ImageBatch batch;
  int64_t bad = 0;
  for (int i = 0; i < 4; ++i) {  // two epochs
    ASSERT_TRUE(loader.next(batch));
    ASSERT_EQ(batch.rows, 4);
    for (const int64_t index : batch.index) {
      ++seen[index];
    }
    bad += static_cast<int64_t>(batch.bad.size());
  }
  // 4 stands in for 2 and 3, 0 for 7.
  EXPECT_EQ(seen, (std::map<int64_t, int64_t>{{0, 4}, {1, 2}, {4, 6}, {5, 2}, {6, 2}}));
  EXPECT_EQ(bad, 8);  // 2 leads to 3, which also occurs by itself
  EXPECT_EQ(loader.skipped(), 3);
}

TEST_F(Loader, WarnsOnceForEachBadImage) {
  init_log(0);
  const MadeUpSet images(8, {2});
  ImageLoader loader(images, {}, small_options(true));
  ::testing::internal::CaptureStderr();
  (void)read_batches(loader, 10);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text, "warning: image 2: damaged (image skipped)\n");
}

TEST_F(Loader, StrictStopsAtABadImage) {
  const MadeUpSet images(20, {13});
  for (const bool training : {true, false}) {
    LoaderOptions options = small_options(training);
    options.strict = true;
    ImageLoader loader(images, {}, options);
    const std::string start = loader.position();
    const Error error = error_of([&] { (void)read_batches(loader, 100); });
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_EQ(error.message(), "image 13: damaged");
    loader.seek(start);  // and can be used again
    ImageBatch batch;
    EXPECT_TRUE(training || loader.next(batch));
  }
}

TEST_F(Loader, NothingReadableAtAll) {
  const MadeUpSet images(3, {0, 1, 2});
  ImageLoader loader(images, {}, small_options(true));
  ImageBatch batch;
  const Error error = error_of([&] { loader.next(batch); });
  EXPECT_NE(error.message().find("3 consecutive images cannot be read; the first: image"),
            std::string::npos);
  const MadeUpSet none(0);
  EXPECT_EQ(error_of([&] { ImageLoader(none, {}, small_options(true)); }).code(),
            ExitCode::bad_input);
}

TEST_F(Loader, OtherErrorsComeOutToo) {
  const MadeUpSet images(20, {}, 11);
  ImageLoader loader(images, {}, small_options(false, 3));
  EXPECT_THROW((void)read_batches(loader, 100), std::runtime_error);
}

TEST_F(Loader, WorksAheadButNotBeyond) {
  const MadeUpSet images(1000);
  LoaderOptions options = small_options(true, 3);
  options.ahead = 2;
  ImageLoader loader(images, {}, options);
  ImageBatch batch;
  EXPECT_EQ(images.loads(), 0);
  ASSERT_TRUE(loader.next(batch));
  for (int i = 0; i < 100 && images.loads() < 12; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(images.loads(), 12);  // the one taken and two more
}

TEST_F(Loader, EndsAtAnyMoment) {
  const MadeUpSet images(50);
  for (int batches = 0; batches < 12; ++batches) {
    ImageLoader loader(images, everything(), small_options(true, 3));
    (void)read_batches(loader, batches);
  }
}

TEST_F(Loader, BatchesLargerThanTheSet) {
  const MadeUpSet images(3);
  LoaderOptions options = small_options(true);
  options.rows = 10;
  ImageLoader loader(images, {}, options);
  ImageBatch batch;
  ASSERT_TRUE(loader.next(batch));
  std::map<int64_t, int64_t> seen;
  for (size_t row = 0; row < 9; ++row) {
    ++seen[batch.index[row]];
  }
  EXPECT_EQ(seen, (std::map<int64_t, int64_t>{{0, 3}, {1, 3}, {2, 3}}));
  EXPECT_EQ(loader.epoch(), 3);
}

TEST_F(Loader, MixedBatchesAgreeWithTheirTargets) {
  const MadeUpSet images(40);
  AugmentConfig config;
  config.mixup = 0.8;
  config.cutmix = 1.0;
  AugmentConfig plain;
  ImageLoader mixed(images, config, small_options(true));
  ImageLoader alone(images, plain, small_options(true));
  ImageBatch a;
  ImageBatch b;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(mixed.next(a) && alone.next(b));
    EXPECT_EQ(a.index, b.index);
    EXPECT_FALSE(b.mix.mixed);
    ASSERT_TRUE(a.mix.mixed);
    apply_mix(a.mix, b.pixels.data(), b.rows, b.side);
    EXPECT_EQ(a.pixels, b.pixels);
    const std::vector<float> targets = mixed_targets(a.labels, a.mix.lambda, 5, 0.1);
    for (size_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (size_t c = 0; c < 5; ++c) {
        sum += targets[row * 5 + c];
      }
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

TEST_F(Loader, RefusesForeignPositions) {
  const MadeUpSet images(20);
  const MadeUpSet other(21);
  const LoaderOptions options = small_options(true);
  ImageLoader loader(images, {}, options);
  ImageBatch batch;
  ASSERT_TRUE(loader.next(batch));
  const std::string position = loader.position();
  const auto refused = [&](ImageLoader& target, const std::string& text) {
    const std::string before = target.position();
    EXPECT_EQ(error_of([&] { target.seek(text); }).code(), ExitCode::bad_input) << text;
    EXPECT_EQ(target.position(), before);
  };
  ImageLoader elsewhere(other, {}, options);
  refused(elsewhere, position);
  for (int change = 0; change < 4; ++change) {
    LoaderOptions changed = options;
    AugmentConfig config;
    changed.rows += change == 0 ? 1 : 0;
    changed.seed += change == 1 ? 1 : 0;
    changed.training = change != 2;
    config.repeats = change == 3 ? 2 : 1;
    ImageLoader target(images, config, changed);
    refused(target, position);
  }
  LoaderOptions larger = options;
  larger.side = 16;
  ImageLoader fine(images, everything(), larger);
  fine.seek(position);
  for (const char* text : {"", "x", "[]", "{}", "null", "{\"batch\":1}"}) {
    refused(loader, text);
  }
  using Json = nlohmann::json;
  for (const Json& value : {Json(-1), Json(1.5), Json("1"), Json(UINT64_MAX), Json()}) {
    Json json = Json::parse(position);
    json["batch"] = value;
    refused(loader, json.dump());
  }
  loader.seek(position);
  ASSERT_TRUE(loader.next(batch));
}

}  // namespace
}  // namespace rondo
