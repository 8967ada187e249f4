// The zoo against the papers: every name exists, and has the parameters and multiply-adds printed.
#include "rondo/config/zoo.h"

#include <chrono>
#include <set>

#include "rondo/model/cost.h"
#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr double kMillion = 1e6;
constexpr double kPrinted = 0.01 * kMillion;  // two decimals, truncated or rounded

// Which of the two counts a row gives.
enum class Count { total, without_embeddings };

struct CountRow {
  const char* name;
  Count count;
  double parameters;
  double tolerance;   // 0: exactly
  int64_t image = 0;  // if not the model's own
};

constexpr CountRow total(const char* name, int64_t parameters, int64_t image = 0) {
  return {name, Count::total, static_cast<double>(parameters), 0.0, image};
}
constexpr CountRow total_millions(const char* name, double millions) {
  return {name, Count::total, millions * kMillion, kPrinted};
}
constexpr CountRow inner(const char* name, int64_t parameters) {
  return {name, Count::without_embeddings, static_cast<double>(parameters), 0.0};
}
constexpr CountRow inner_millions(const char* name, double millions, double tolerance = kPrinted) {
  return {name, Count::without_embeddings, millions * kMillion, tolerance};
}

const CountRow kRingFormerRows[] = {
    inner("ringformer/mt-base", 8943616),
    inner("ringformer/mt-base-vanilla", 44052480),
    inner("ringformer/mt-base-one-wide", 20984832),
    inner("ringformer/mt-base-universal", 7345152),
    inner("ringformer/mt-large", 35713024),
    inner_millions("ringformer/mt-large-vanilla", 176.18),
    inner_millions("ringformer/mt-large-one-wide", 83.91),
    inner("ringformer/mt-large-universal", 29370368),
    total("ringformer/mt-ablation", 20584736),
    total("ringformer/mt-ablation-static", 20480032),
    total_millions("ringformer/mt-ablation-no-attention-signal", 20.51),
    total_millions("ringformer/mt-ablation-no-ffn-signal", 20.56),
    total_millions("ringformer/mt-ablation-before-attention", 20.58),
    total("ringformer/mt-ablation-inter-ffn", 20590880),  // printed one row too high in Table 4
    total_millions("ringformer/mt-ablation-rank-32", 20.53),
    total_millions("ringformer/mt-ablation-rank-8", 20.68),
    total_millions("ringformer/mt-ablation-full-rank", 21.27),
    total("ringformer/image-small", 4395620),
    total("ringformer/image-small-vit", 19360868),
    total("ringformer/image-small-uit", 3598948),
    total("ringformer/image-small-owf", 8857188),
    total("ringformer/image-small-s", 8824348),
    total_millions("ringformer/image-small-uit-s", 8.84),
    total_millions("ringformer/image-small-uit-s", 8.83),
    total_millions("ringformer/image-small-vit-d", 8.94),
    total_millions("ringformer/image-small-owf-d", 4.51),
    total_millions("ringformer/image-small-owf-d", 4.50),
    total("ringformer/image-base", 12022504),
    total("ringformer/image-base-vit", 86416360),
    total("ringformer/image-base-owf", 34452712),
    total_millions("ringformer/image-base-uit", 8.45),
    total("ringformer/image-base-s", 31953324),
    total_millions("ringformer/image-base-uit-s", 31.99),
    total_millions("ringformer/image-base-uit-s", 31.98),
};

constexpr double kTenth = 0.05 * kMillion;  // one decimal
const CountRow kBlockRecurrentRows[] = {
    inner_millions("brt/xl-512", 151.0, kTenth), inner_millions("brt/xl-1024", 151.0, kTenth),
    inner_millions("brt/xl-2048", 151.0, kTenth), inner_millions("brt/slide-12l", 151.0, kTenth),
    inner_millions("brt/slide-13l", 163.6, kTenth),
    inner_millions("brt/rec-fixed-dual", 168.9, kTenth),
    inner_millions("brt/rec-fixed-single", 170.9, kTenth),
    inner_millions("brt/rec-fixed-skip", 160.5, kTenth),
    inner_millions("brt/rec-lstm-dual", 181.4, kTenth),
    inner_millions("brt/rec-lstm-single", 179.3, kTenth),
    inner_millions("brt/rec-lstm-skip", 164.7, kTenth),
    inner_millions("brt/feedback-fixed-skip", 183.5, kTenth),
    inner_millions("brt/feedback-lstm-single", 202.4, kTenth),
    inner("brt/memorizing-32k", 151023712 + 8),  // the window's, and a gate per head
    inner_millions("brt/slide-13l-large", 327, kMillion),
    inner_millions("brt/rec-lstm-single-large", 375, kMillion),
    inner_millions("brt/rec-fixed-skip-large", 320, kMillion),
    inner("brt/rec-fixed-skip-adjacent", 169902224),  // ours
    inner("brt/rec-fixed-skip-apart", 169902224),     // ours
    // With the 260 rows of the embedding, as the authors' own shapes give.
    total_millions("brt/slide-12l", 151.29), total_millions("brt/slide-13l", 163.88),
    total_millions("brt/rec-fixed-dual", 169.12), total_millions("brt/rec-fixed-single", 171.21),
    total_millions("brt/rec-fixed-skip", 160.73), total_millions("brt/rec-lstm-dual", 181.70),
    total_millions("brt/rec-lstm-single", 179.60), total_millions("brt/rec-lstm-skip", 164.92),
    total_millions("brt/feedback-fixed-skip", 183.80),
    total_millions("brt/feedback-lstm-single", 202.67), total("rondo/ring-brt", 40664616),  // ours
};

const CountRow kSretRows[] = {
    total("sret/t", 4755979),
    total("sret/t", 4853259, 384),
    total("sret/t-global", 4755979),
    total("sret/tl", 4988024),
    total("sret/tl", 5085304, 384),
    total("sret/tl-global", 4988024),
    total("sret/s", 20899692),
    total("sret/s", 21091212, 384),
    total("sret/s", 21317004, 512),
    total("sret/s-global", 20899692),
    {"sret/b", Count::total, 145.6 * kMillion, 0.05 * kMillion},
    {"sret/b-global", Count::total, 145.6 * kMillion, 0.05 * kMillion},
    {"sret/ext", Count::total, 4.0 * kMillion, 0.05 * kMillion},
    {"sret/ext-global", Count::total, 4.0 * kMillion, 0.05 * kMillion},
    total("sret/deit-t", 5717416),
    total("sret/deit-s", 22050664),
    total("sret/deit-t-loop2", 5717416),
    total("sret/deit-t-loop3", 5717416),
    total("sret/deit-t-loop4", 5717416),
    total("sret/deit-t-internal", 3942184),  // ours; the paper's 3.9M
    total("sret/deit-t-external", 3197224),  // ours; the paper's 3.2M
    total("sret/deit-t-24l", 11055784),
    total("sret/deit-t-36l", 16394152),
    total("sret/deit-t-48l", 21732520),
    total_millions("sret/pit-t", 4.85),
    total_millions("sret/pit-s", 23.46),
    {"sret/ladder-nll", Count::total, 5.0 * kMillion, 0.05 * kMillion},
    {"sret/ladder-no-class-token", Count::total, 5.0 * kMillion, 0.05 * kMillion},
    {"sret/ladder-stem", Count::total, 5.0 * kMillion, 0.05 * kMillion},
    {"sret/ladder-lrc", Count::total, 5.0 * kMillion, 0.05 * kMillion},
    total("sret/deit-108", 48424360),                                  // ours
    {"sret/deep-108", Count::total, 14.0 * kMillion, kMillion},        // 13 to 15
    {"sret/deep-108-mixed", Count::total, 14.0 * kMillion, kMillion},  // 13 to 15
    {"sret/deep-1000", Count::total, 14.0 * kMillion, kMillion},       // 13 to 15
    total("sret/mixer-b16", 59880472),
    total("sret/mixer-b16-recursive", 59880472),
    total("sret/mixer-b16-recursive-lrc", 59880472 + 12 * 4),
    total("sret/mt-iwslt", 84791296),                         // ours
    total("sret/mt-iwslt-recursive", 84791296),               // ours
    total("sret/mt-iwslt-recursive-lrc", 84791296 + 6 * 10),  // ours
    total("sret/mt-wmt", 97386496),                           // ours
    total("sret/mt-wmt-recursive", 97386496),                 // ours
    total("sret/mt-wmt-recursive-lrc", 97386496 + 6 * 10),    // ours
};

ModelConfig sized(const std::string& name, int64_t image) {
  ModelConfig config = find_model(name).config();
  SizeOverrides sizes;
  sizes.image = image;
  apply_sizes(config, sizes);
  return config;
}

void check_count(const CountRow& row) {
  const Cost cost = measure_cost(sized(row.name, row.image));
  const int64_t ours = row.count == Count::total ? cost.parameters : cost.without_embeddings;
  if (row.tolerance == 0.0) {
    EXPECT_EQ(ours, static_cast<int64_t>(row.parameters)) << row.name << " at " << row.image;
  } else {
    EXPECT_NEAR(static_cast<double>(ours), row.parameters, row.tolerance) << row.name;
  }
}

TEST(ZooParameters, RingFormer) {
  for (const CountRow& row : kRingFormerRows) check_count(row);
}
TEST(ZooParameters, BlockRecurrent) {
  for (const CountRow& row : kBlockRecurrentRows) check_count(row);
}
TEST(ZooParameters, SlicedRecursive) {
  for (const CountRow& row : kSretRows) check_count(row);
}

TEST(Zoo, HasExactlyTheNamesListed) {
  std::set<std::string> listed;
  for (const CountRow& row : kRingFormerRows) listed.insert(row.name);
  for (const CountRow& row : kBlockRecurrentRows) listed.insert(row.name);
  for (const CountRow& row : kSretRows) listed.insert(row.name);
  const std::vector<std::string> names = zoo_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), listed);
  EXPECT_EQ(names.size(), listed.size()) << "a name twice";
}

struct WorkRow {
  const char* name;
  int64_t image;
  bool with_norms;
  double billions;
  double tolerance;
};

TEST(ZooMultiplyAdds, AsThePapersPrint) {
  constexpr double kFourDigits = 0.5e-4;
  const WorkRow rows[] = {
      {"sret/t", 0, true, 1.1236, kFourDigits},
      {"sret/t-global", 0, true, 1.3768, kFourDigits},
      {"sret/t", 384, true, 4.2541, kFourDigits},
      {"sret/t-global", 384, true, 6.4412, kFourDigits},
      {"sret/tl", 0, true, 1.1756, kFourDigits},
      {"sret/tl-global", 0, true, 1.4289, kFourDigits},
      {"sret/tl", 384, true, 4.4070, kFourDigits},
      {"sret/tl-global", 384, true, 6.5941, kFourDigits},
      {"sret/s", 0, true, 4.1948, kFourDigits},
      {"sret/s-global", 0, true, 4.6934, kFourDigits},
      {"sret/s-global", 384, true, 18.5077, kFourDigits},
      {"sret/s-global", 512, true, 42.7865, kFourDigits},
      {"sret/deit-t", 0, true, 1.26, 0.005},
      {"sret/deit-s", 0, true, 4.61, 0.005},
      {"sret/ext", 0, true, 0.7, 0.05},
      {"sret/ext-global", 0, true, 0.7, 0.05},
      {"sret/pit-t", 0, false, 0.7, 0.05},
      {"sret/pit-s", 0, false, 2.9, 0.05},
      {"ringformer/image-base-vit", 0, false, 17.6, 0.05},
      {"ringformer/image-base", 0, false, 18.3, 0.05},
  };
  for (const WorkRow& row : rows) {
    const Cost cost = measure_cost(sized(row.name, row.image));
    const double ours = row.with_norms ? cost.with_norms() : cost.multiply_adds;
    EXPECT_NEAR(ours / 1e9, row.billions, row.tolerance) << row.name << " at " << row.image;
  }
}

TEST(ZooCost, EveryModelIsCountedInUnderTwoSeconds) {
  for (const ZooEntry& entry : zoo()) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_GT(measure_cost(entry.config()).parameters, 0);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(taken.count(), 2.0) << entry.name;
  }
}

}  // namespace
}  // namespace rondo::test
