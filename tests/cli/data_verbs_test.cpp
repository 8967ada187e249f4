// rondo data: broken images are found and named; the contact sheet shows the network's inputs.
#include "rondo/image/augment.h"
#include "rondo/image/decode.h"
#include "tests/cli/pictures.h"

namespace rondo::testing {
namespace {

Image read_picture(const std::string& path) { return decode_image(slurp(path), path); }

// The image in one cell of a sheet of 16 px images.
Image sheet_cell(const Image& sheet, int64_t row, int64_t column) {
  return crop(sheet, 2 + column * 18, 2 + row * 18, 16, 16);
}

TEST(DataCheck, CountsImagesAndClasses) {
  const Pictures pictures;
  const Result result = rondo_ok({"data", "check", pictures.file("train")});
  EXPECT_EQ(result.out, "images   24\nclasses  6, of 4 images each\nbroken   0\n");
  const auto json = rondo_ok({"data", "check", pictures.file("train#:2/class"), "--json"}).json();
  EXPECT_EQ(json.at("images"), 12);
  EXPECT_EQ(json.at("broken").size(), 0u);
  ASSERT_EQ(json.at("classes").size(), 6u);
  EXPECT_EQ(json.at("classes")[1].at("title"), "shade 1");
  EXPECT_EQ(json.at("classes")[1].at("images"), 2);
}

TEST(DataCheck, ListsBrokenImages) {
  const Pictures pictures;
  pictures.put("train/c1/2.png", "no image");
  pictures.put("train/c4/0.png", slurp(pictures.file("train/c4/0.png")).substr(0, 70));
  const std::string set = pictures.file("train");
  for (const char* threads : {"0", "1", "7"}) {
    const Result result = rondo({"data", "check", set, "--threads", threads});
    EXPECT_EQ(result.code, 3);
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 5u) << result.out;
    EXPECT_EQ(lines[2], "broken   2");
    EXPECT_EQ(lines[3].rfind(set + "/c1/2.png: ", 0), 0u) << lines[3];
    EXPECT_EQ(lines[4].rfind(set + "/c4/0.png: ", 0), 0u) << lines[4];
    EXPECT_TRUE(contains(result.err, "rondo: " + set + ": 2 of 24 images cannot be read"))
        << result.err;
  }
  const Result result = rondo({"data", "check", set, "--json"});
  EXPECT_EQ(result.code, 3);
  const auto broken = result.json().at("broken");
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].at("name"), set + "/c1/2.png");
  EXPECT_EQ(broken[0].at("index"), 6);
  EXPECT_FALSE(broken[1].at("reason").get<std::string>().empty());
}

TEST(DataCheck, RefusesWhatIsNoSet) {
  const TempDir folder;
  expect_refusal(rondo({"data", "check", folder.file("nowhere")}), ExitCode::io, "nowhere");
  expect_refusal(rondo({"data", "check", folder.path()}), ExitCode::bad_input,
                 "neither text nor images");
  expect_refusal(rondo({"data"}), ExitCode::usage, "data: no verb given");
  expect_refusal(rondo({"data", "chekc"}), ExitCode::usage, "did you mean 'check'?");
}

class DataPreview : public ::testing::Test {
 protected:
  Arguments words(const std::string& sheet, const Arguments& more = {}) const {
    Arguments all = {"data", "preview", pictures_.file("tiny.toml"), "-o", pictures_.file(sheet)};
    all.insert(all.end(), {"--set", "data.train=" + pictures_.file("train")});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Image preview(const std::string& sheet, const Arguments& more = {}) const {
    const Result result = rondo_ok(words(sheet, more));
    EXPECT_EQ(result.out.rfind(pictures_.file(sheet) + ": ", 0), 0u) << result.out;
    return read_picture(pictures_.file(sheet));
  }
  const Pictures pictures_;
};

TEST_F(DataPreview, ShowsSoManyRowsAndColumns) {
  const Image usual = preview("a.png");
  EXPECT_EQ(usual.width, 8 * 18 + 2);
  EXPECT_EQ(usual.height, 6 * 18 + 2);
  const Image small = preview("b.png", {"--rows", "2", "--columns", "3"});
  EXPECT_EQ(small.width, 3 * 18 + 2);
  EXPECT_EQ(small.height, 2 * 18 + 2);
  EXPECT_EQ(slurp(pictures_.file("a.png")).empty(), false);
  preview("again.png");
  EXPECT_EQ(slurp(pictures_.file("a.png")), slurp(pictures_.file("again.png")));
  preview("seed.png", {"--set", "train.seed=2"});
  EXPECT_NE(slurp(pictures_.file("a.png")), slurp(pictures_.file("seed.png")));
}

TEST_F(DataPreview, EvaluationShowsTheMiddleInOrder) {
  const Result result = rondo_ok(
      words("v.png", {"--set", "data.valid=" + pictures_.file("test"), "--split", "valid", "--rows",
                      "9", "--columns", "5", "--set", "augment.crop=random-resized"}));
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 6u) << result.out;  // 24 images in rows of 5
  EXPECT_TRUE(contains(lines[0], "24 images of " + pictures_.file("test") + ", 16 px"));
  EXPECT_TRUE(contains(lines[0], "in evaluation"));
  EXPECT_EQ(lines[1], "row 1: shade 0 | shade 0 | shade 0 | shade 0 | shade 1");
  const Image sheet = read_picture(pictures_.file("v.png"));
  const Augmenter augmenter(AugmentConfig(), 16);
  for (int64_t i = 0; i < 24; ++i) {
    const std::string path = pictures_.file(Pictures::fmt_path("test", i / 4, i % 4));
    const Image expected = augmenter.evaluate_image(read_picture(path));
    EXPECT_EQ(sheet_cell(sheet, i / 5, i % 5).pixels, expected.pixels) << path;
  }
}

TEST_F(DataPreview, OriginalsStandAboveWhatIsMadeOfThem) {
  const Image sheet = preview("o.png", {"--original", "--rows", "2", "--set", "augment.flip=1"});
  EXPECT_EQ(sheet.height, 4 * 18 + 2);
  for (int64_t column = 0; column < 8; ++column) {
    const Image above = sheet_cell(sheet, 0, column);
    const Image below = sheet_cell(sheet, 1, column);
    for (int64_t y = 0; y < 16; ++y) {
      for (int64_t x = 0; x < 16; ++x) {  // mirrored
        ASSERT_EQ(above.row(y)[x * 3], below.row(y)[(15 - x) * 3]) << column;
      }
    }
  }
}

TEST_F(DataPreview, MixesEveryRowByItself) {
  const Result result = rondo_ok(words(
      "m.png", {"--set", "augment.mixup=0.8", "--set", "augment.cutmix=1.0", "--rows", "12"}));
  EXPECT_TRUE(contains(result.out, "(mixup: ")) << result.out;
  EXPECT_TRUE(contains(result.out, "(cutmix: ")) << result.out;
}

TEST_F(DataPreview, PassesBrokenImagesOver) {
  pictures_.put("test/c0/1.png", "no image");
  const Result result = rondo_ok(words(
      "p.png", {"--set", "data.test=" + pictures_.file("test"), "--split", "test", "--rows", "1"}));
  EXPECT_TRUE(contains(result.err, "test/c0/1.png")) << result.err;
  EXPECT_TRUE(contains(result.out, ": 7 images of")) << result.out;
}

TEST_F(DataPreview, RefusesWhatCannotBeShown) {
  const std::string config = pictures_.file("tiny.toml");
  const std::string out = pictures_.file("x.png");
  expect_refusal(rondo({"data", "preview", config, "-o", out}), ExitCode::bad_input,
                 "data.train: missing");
  expect_refusal(rondo(words("x.png", {"--split", "test"})), ExitCode::bad_input,
                 "data.test: missing");
  expect_refusal(rondo({"data", "preview", config}), ExitCode::usage, "--output is required");
  expect_refusal(rondo(words("x.png", {"--rows", "1000", "--columns", "1000"})), ExitCode::usage,
                 "the sheet would have 16000 x 16000 pixels");
  expect_refusal(rondo(words("x.png", {"--set", "augment.flop=1"})), ExitCode::bad_input,
                 "did you mean 'flip'?");
  expect_refusal(rondo(words("no/such/folder.png")), ExitCode::io, "no/such/folder.png");
  const Trainee language;
  expect_refusal(rondo({"data", "preview", language.config(), "-o", out}), ExitCode::bad_input,
                 "expected an image experiment, got a model of kind language-model");
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace rondo::testing
