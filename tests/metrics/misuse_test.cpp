// Mistakes of a caller of the torch-free library give an Error that explains them, never an abort.
#include <cmath>
#include <functional>

#include "rondo/data/segments.h"
#include "rondo/data/text_source.h"
#include "rondo/data/tokenizer.h"
#include "rondo/image/augment.h"
#include "rondo/image/contact_sheet.h"
#include "rondo/image/read_ahead.h"
#include "rondo/image/resize.h"
#include "rondo/metrics/bleu.h"
#include "rondo/metrics/bootstrap.h"
#include "rondo/metrics/chrf.h"
#include "rondo/metrics/statistics.h"
#include "rondo/metrics/test_items.h"
#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

struct Misuse {
  const char* name;
  const char* message;
  std::function<void()> make;
};

class Misuses : public ::testing::TestWithParam<Misuse> {};

TEST_P(Misuses, AreErrors) {
  const Error error = testing::error_of(GetParam().make);
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
}

TestItems image_items() {
  TestItems items;
  items.task = "image";
  items.add_image(true, true, 0.5);
  return items;
}

const std::vector<Misuse> kMisuses = {
    {"BleuWithoutReferences", "BLEU: no references", [] { bleu_statistics("a", {}, {}); }},
    {"BleuOfALongLine", "BLEU: expected lines of at most",
     [] { bleu_statistics(std::string((size_t{16} << 20) + 1, 'a'), {"a"}, {}); }},
    {"ChrfWithoutReferences", "chrF: no references", [] { chrf_statistics("a", {}, {}); }},
    {"ChrfOfManyWords", "word order from 0 to 2, got 3",
     [] {
       ChrfOptions options;
       options.word_order = 3;
       chrf_statistics("a", {"a"}, options);
     }},
    {"ChrfOfNoCharacters", "character order from 1 to 6, got 0",
     [] {
       ChrfOptions options;
       options.character_order = 0;
       chrf_statistics("a", {"a"}, options);
     }},
    {"BootstrapOfNothing", "got 0", [] { BootstrapDraws(0, 1); }},
    {"IntervalOfNothing", "no scores given", [] { interval_of({}); }},
    {"PairsOfOtherSizes", "got 2 and 1",
     [] {
       paired_p_value({1, 2}, {1}, 0);
     }},
    {"QuantileOfOne", "probability between 0 and 1", [] { student_quantile(1, 3); }},
    {"PairedTestOfOtherSizes", "got 1 and 2",
     [] {
       paired_t_test({1}, {1, 2});
     }},
    {"MetricOfAnotherTask", "expected one of the metrics accuracy, top_five, loss, got 'bleu'",
     [] { test_score("bleu", image_items()); }},
    {"IntervalOfAnotherTask", "got 'bits_per_token'",
     [] { score_interval("bits_per_token", image_items()); }},
    {"SideOfImages", "expected a side of at least 1 pixel, got 0",
     [] { Augmenter(AugmentConfig(), 0); }},
    {"MeansOfImages", "expected 3 means and 3 standard deviations, got 1 and 3",
     [] {
       AugmentConfig config;
       config.mean = {0.5};
       Augmenter(config, 8);
     }},
    {"EmptyPng", "PNG: expected at least 1 x 1 pixels, got 0 x 0", [] { encode_png(Image()); }},
    {"EmptySheet", "contact sheet", [] { contact_sheet({}, 2); }},
    {"SheetWithoutColumns", "contact sheet", [] { contact_sheet({Image(2, 2)}, 0); }},
    {"CropBeyondTheImage", "expected a region within 4 x 4 pixels, got 3 x 3 at 2, 2",
     [] { crop(Image(4, 4), 2, 2, 3, 3); }},
    {"CropOfEverything", "expected a region within 4 x 4 pixels",
     [] { crop(Image(4, 4), INT64_MAX, 0, 2, 2); }},
    {"ResizeToNothing", "at least 1 x 1 pixels, got 0 x 4",
     [] { resize(Image(4, 4), 0, 4, Filter::bilinear); }},
    {"ResizeOfABoxOutside", "a box within 4 x 4 pixels",
     [] {
       resize(Image(4, 4), 2, 2, Filter::bilinear, {0, 0, 5, 4});
     }},
    {"TakingWhatWasNotAsked", "no image was requested",
     [] {
       const Augmenter augmenter(AugmentConfig(), 8);
       ImageReadAhead images(augmenter, 1, 1);
       PreparedImage image;
       images.take(image);
     }},
    {"ReadingNothingAhead", "got 0 and 1",
     [] { ImageReadAhead(Augmenter(AugmentConfig(), 8), 1, 0); }},
    {"NoTokenizer", "expected a tokenizer, got none", [] { StreamDecoder(nullptr); }},
    {"NegativeLimit", "0 or more bytes, got -1", [] { read_source("/dev/null", -1); }},
};
INSTANTIATE_TEST_SUITE_P(Library, Misuses, ::testing::ValuesIn(kMisuses),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace rondo
