// From images to classes: the softmax of the network's logits, sorted; each row independently.
#include "rondo/infer/classifier.h"

#include "rondo/image/contact_sheet.h"
#include "tests/base/base_test_util.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

// A shrunk DeiT of 16 px and 7 classes.
ImageModel small_image_model() {
  const TinyModel tiny(shrink(find_model("sret/deit-t").config()));
  ImageModel model;
  model.network = tiny.network;
  model.config = tiny.config;
  return model;
}

TEST(Classify, GivesTheSoftmaxOfTheLogitsSorted) {
  const at::NoGradGuard no_grad;
  const ImageModel model = small_image_model();
  Classifier classifier(model);
  EXPECT_EQ(classifier.side(), 16);
  const Tensor images = noise({4, 3, 16, 16}, 3, at::kFloat);
  const Tensor shares =
      image_logits(*model.network, images).to(at::kDouble).softmax(1);  // [4, classes]
  const auto [values, places] = shares.sort(1, /*descending=*/true);
  const std::vector<Prediction> all = classifier.classify(images.data_ptr<float>(), 4, 100);
  ASSERT_EQ(all.size(), 4u);
  for (int64_t r = 0; r < 4; ++r) {
    const Prediction& row = all[static_cast<size_t>(r)];
    ASSERT_EQ(row.size(), 7u) << "as many as there are classes";
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(row[static_cast<size_t>(i)].number, places[r][i].item<int64_t>());
      EXPECT_NEAR(row[static_cast<size_t>(i)].probability, values[r][i].item<double>(), 1e-6);
    }
  }
  const std::vector<Prediction> few = classifier.classify(images.data_ptr<float>(), 1, 2);
  ASSERT_EQ(few.size(), 1u);
  ASSERT_EQ(few[0].size(), 2u);
  EXPECT_EQ(few[0][0].number, all[0][0].number);
  EXPECT_NEAR(few[0][0].probability, all[0][0].probability, 1e-6) << "whatever the batch";
}

TEST(Classify, TakesTheBytesOfAFile) {
  const at::NoGradGuard no_grad;
  const Classifier classifier(small_image_model());
  Image image;
  image.width = 20;
  image.height = 18;
  for (int64_t i = 0; i < 3 * 20 * 18; ++i) image.pixels.push_back(static_cast<uint8_t>(i * 7));
  const std::string file = encode_png(image);
  const Prediction got = classifier.classify_image(file, 7);
  std::vector<float> pixels(3 * 16 * 16);  // as in evaluation, by hand
  Augmenter(AugmentConfig(), 16).evaluate(image, pixels.data());
  EXPECT_EQ(classifier.prepare(file), pixels);
  const Prediction want = classifier.classify(pixels.data(), 1, 7).front();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].number, want[i].number);
    EXPECT_EQ(got[i].probability, want[i].probability);
  }
  expect_error(ExitCode::bad_input, "photo",
               [&] { classifier.classify_image("no image", 1, "photo"); });
}

TEST(Classify, OfEqualsTheLowerNumberComesFirst) {
  const at::NoGradGuard no_grad;
  const ImageModel model = small_image_model();
  for (auto& item : model.network->named_parameters()) {
    if (item.key().rfind("head.", 0) == 0) item.value().zero_();
  }
  const Tensor images = noise({1, 3, 16, 16}, 3, at::kFloat);
  const Prediction row = Classifier(model).classify(images.data_ptr<float>(), 1, 5).front();
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(row[i].number, static_cast<int64_t>(i));
    EXPECT_NEAR(row[i].probability, 1.0 / 7, 1e-12);
  }
}

TEST(Classify, RefusesAnAnswerThatIsNoNumber) {
  const at::NoGradGuard no_grad;
  const ImageModel model = small_image_model();
  for (auto& item : model.network->named_parameters()) {
    if (item.key() == "head.bias") item.value()[3] = NAN;
  }
  const Tensor images = noise({1, 3, 16, 16}, 3, at::kFloat);
  expect_error(ExitCode::bad_input, "output is not finite",
               [&] { Classifier(model).classify(images.data_ptr<float>(), 1, 5); });
}

TEST(Classify, NamesMustBeAsManyAsClasses) {
  const testing::TempDir folder;
  const std::string path = folder.file("names");
  testing::spill(path, "a\nb\nc\n");
  const ModelConfig seven = shrink(find_model("sret/deit-t").config());
  expect_error(ExitCode::bad_input, "expected 7 classes, as in the network, got 3",
               [&] { read_names_for(seven, path); });
  expect_error(ExitCode::usage, "--classes does not apply",
               [&] { read_names_for(find_model("brt/xl-512").config(), path); });
  testing::spill(path, "a\nb\nc\nd\ne\nf\ng\n");
  EXPECT_EQ(read_names_for(seven, path).ids.back(), "g");
}

}  // namespace
}  // namespace rondo::test
