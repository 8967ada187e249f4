// The papers' figures quoted by the zoo: that the papers print them, and that our counts agree or
// are marked as different.
#include <algorithm>
#include <cmath>
#include <map>

#include "rondo/config/zoo.h"
#include "rondo/model/cost.h"
#include "tests/support/expect.h"

namespace rondo::test {
namespace {

// "8.94": the value, and one unit in its last digit.
struct Printed {
  explicit Printed(const std::string& text) : value(std::stod(text)) {
    const size_t point = text.find('.');
    if (point != std::string::npos) {
      unit = std::pow(10.0, -static_cast<double>(text.size() - point - 1));
    }
  }
  // Papers round, and sometimes truncate.
  bool is(double ours) const { return std::abs(ours - value) < unit; }
  double value, unit = 1.0;
};

// In millions, "13-15" from and to.
bool is_printed(const std::string& text, double ours) {
  const size_t dash = text.find('-');
  if (dash == std::string::npos) return Printed(text).is(ours);
  return ours >= std::stod(text.substr(0, dash)) && ours <= std::stod(text.substr(dash + 1));
}

// "8,943,616", exactly, or "160.73M".
bool is_counted(std::string text, int64_t ours) {
  if (text.back() == 'M') return is_printed(text.substr(0, text.size() - 1), ours / 1e6);
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return std::stoll(text) == ours;
}

TEST(Zoo, EveryPrintedFigureIsOursOrSaysThatItIsNot) {
  for (const ZooEntry& entry : zoo()) {
    const PaperFigures& f = entry.figures;
    EXPECT_FALSE(entry.row.empty()) << entry.name;
    const Cost cost = measure_cost(entry.config());
    const int64_t ours = f.without_embeddings ? cost.without_embeddings : cost.parameters;
    if (!f.parameters.empty()) {
      EXPECT_EQ(is_printed(f.parameters, ours / 1e6), !f.differs) << entry.name << " " << ours;
    }
    if (f.differs) {
      EXPECT_FALSE(f.note.empty()) << entry.name;
    }
    if (!f.authors_code.empty()) {
      EXPECT_TRUE(is_counted(f.authors_code, ours)) << entry.name << " " << ours;
    }
    if (!f.multiply_adds.empty()) {
      // "around 17.636 GFLOPs" refers to ViT, UiT and OWF together.
      const double digits = entry.name == "ringformer/image-base-uit" ? 2.0 : 1.0;
      const Printed paper(f.multiply_adds);
      const double ours_in_billions = cost.by(count_rule(f.count)) / 1e9;
      EXPECT_LT(std::abs(ours_in_billions - paper.value), digits * paper.unit) << entry.name;
    }
  }
}

// Parameters in millions as given in the papers' text, entered independently.
struct TextRow {
  const char* name;
  const char* figure;
};
const TextRow kTexts[] = {
    {"brt/xl-512", "151"},
    {"brt/xl-1024", "151"},
    {"brt/xl-2048", "151"},
    {"brt/slide-12l", "151"},
    {"brt/slide-13l", "164"},
    {"brt/slide-13l-large", "327"},
    {"brt/rec-lstm-single-large", "375"},
    {"brt/rec-fixed-skip-large", "320"},
    {"ringformer/mt-base", "8.94"},
    {"ringformer/mt-base-vanilla", "44.05"},
    {"ringformer/mt-base-one-wide", "20.98"},
    {"ringformer/mt-base-universal", "7.34"},
    {"ringformer/mt-large", "35.71"},
    {"ringformer/mt-large-vanilla", "176.18"},
    {"ringformer/mt-large-one-wide", "83.91"},
    {"ringformer/mt-large-universal", "29.37"},
    {"ringformer/mt-ablation", "20.58"},
    {"ringformer/mt-ablation-static", "20.48"},
    {"ringformer/mt-ablation-no-attention-signal", "20.51"},
    {"ringformer/mt-ablation-no-ffn-signal", "20.59"},
    {"ringformer/mt-ablation-before-attention", "20.58"},
    {"ringformer/mt-ablation-inter-ffn", "20.56"},
    {"ringformer/mt-ablation-rank-32", "20.53"},
    {"ringformer/mt-ablation-rank-8", "20.68"},
    {"ringformer/mt-ablation-full-rank", "21.27"},
    {"ringformer/image-small", "4.4"},
    {"ringformer/image-small-vit", "19.36"},
    {"ringformer/image-small-uit", "3.60"},
    {"ringformer/image-small-owf", "8.86"},
    {"ringformer/image-small-s", "8.82"},
    {"ringformer/image-small-uit-s", "8.84"},
    {"ringformer/image-small-vit-d", "8.94"},
    {"ringformer/image-small-owf-d", "4.51"},
    {"ringformer/image-base", "12.02"},
    {"ringformer/image-base-vit", "86.42"},
    {"ringformer/image-base-owf", "34.45"},
    {"ringformer/image-base-uit", "8.45"},
    {"ringformer/image-base-s", "31.95"},
    {"ringformer/image-base-uit-s", "31.99"},
    {"sret/t", "4.76"},
    {"sret/t-global", "4.76"},
    {"sret/tl", "4.99"},
    {"sret/tl-global", "4.99"},
    {"sret/s", "20.90"},
    {"sret/s-global", "20.90"},
    {"sret/b", "71.2"},
    {"sret/b-global", "71.2"},
    {"sret/ext", "4.0"},
    {"sret/ext-global", "4.0"},
    {"sret/deit-t", "5.7"},
    {"sret/deit-s", "22.1"},
    {"sret/deit-t-loop2", "5.7"},
    {"sret/deit-t-loop3", "5.7"},
    {"sret/deit-t-loop4", "5.7"},
    {"sret/deit-t-internal", "3.9"},
    {"sret/deit-t-external", "3.2"},
    {"sret/deit-t-36l", "16.39"},
    {"sret/deit-t-48l", "21.73"},
    {"sret/pit-t", "4.9"},
    {"sret/pit-s", "23.5"},
    {"sret/ladder-nll", "5.0"},
    {"sret/ladder-no-class-token", "5.0"},
    {"sret/ladder-stem", "5.0"},
    {"sret/ladder-lrc", "5.0"},
    {"sret/deep-108", "13-15"},
    {"sret/deep-108-mixed", "13-15"},
    {"sret/deep-1000", "13-15"},
};

// Multiply-adds in billions, likewise: SReT's Tables 2, 4 and 5, RingFormer's Section 4.2.
const TextRow kWorkTexts[] = {
    {"ringformer/image-base", "19.03"},
    {"ringformer/image-base-vit", "17.636"},
    {"ringformer/image-base-owf", "17.636"},
    {"ringformer/image-base-uit", "17.636"},
    {"sret/t", "1.12"},
    {"sret/t-global", "1.38"},
    {"sret/tl", "1.18"},
    {"sret/tl-global", "1.43"},
    {"sret/s", "4.2"},
    {"sret/s-global", "4.7"},
    {"sret/ext", "0.7"},
    {"sret/ext-global", "0.7"},
    {"sret/deit-t", "1.3"},
    {"sret/deit-s", "4.6"},
    {"sret/pit-t", "0.7"},
    {"sret/pit-s", "2.9"},
};

// No other number may be shown as the papers'.
TEST(Zoo, FiguresAreThoseOfThePapersText) {
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> works;
  for (const TextRow& row : kTexts) texts[row.name] = row.figure;
  for (const TextRow& row : kWorkTexts) works[row.name] = row.figure;
  for (const ZooEntry& entry : zoo()) {
    EXPECT_EQ(entry.figures.parameters, texts[entry.name]) << entry.name;
    EXPECT_EQ(entry.figures.multiply_adds, works[entry.name]) << entry.name;
  }
}

TEST(Zoo, DeepModelsAreAsThePaperDescribesThem) {
  const Cost deit = measure_cost(find_model("sret/deit-108").config());
  const Cost sret = measure_cost(find_model("sret/deep-108").config());
  // "our model size is only one-third of DeiT-108"
  EXPECT_NEAR(static_cast<double>(sret.parameters) / static_cast<double>(deit.parameters),
              1.0 / 3.0, 0.05);
  const VisionConfig deep = std::get<VisionConfig>(find_model("sret/deep-1000").config().network);
  EXPECT_GE(deep.depth.recursive.blocks_of(0) * deep.depth.recursive.loops_of(0), 1000);
}

// Table 5 of the SReT paper, row by row: 12 of 14 agree, two do not.
TEST(ZooMultiplyAdds, SretTable5) {
  using Groups = std::vector<std::vector<int64_t>>;
  struct Row {
    const char* name;
    const char* permutation;
    Groups groups;
    const char* paper;
    double ours;
    bool met;
  };
  const Groups sliced = {{8, 8}, {4, 4}, {1, 1}};
  const Row rows[] = {
      {"sret/tl", "P", sliced, "1.08", 1.0798, true},
      {"sret/tl", "P+I", sliced, "1.08", 1.0798, true},
      {"sret/tl", "P+I-L", sliced, "1.08", 1.0798, true},
      {"sret/t", "P+I-L", {{1, 1}, {1, 1}, {1, 1}}, "1.38", 1.3768, true},
      {"sret/t", "P+I-L", sliced, "1.03", 1.0277, true},
      {"sret/t", "P+I-L", {{16, 2}, {4, 2}, {1, 1}}, "1.01", 1.0892, false},
      {"sret/t", "P+I-L", {{8, 2}, {4, 1}, {1, 1}}, "1.12", 1.1236, true},
      {"sret/tl", "P+I-L", {{1, 1}, {1, 1}, {1, 1}}, "1.43", 1.4289, true},
      {"sret/tl", "P+I-L", sliced, "1.08", 1.0798, true},
      {"sret/tl", "P+I-L", {{8, 4}, {4, 2}, {1, 1}}, "1.14", 1.1117, false},
      {"sret/tl", "P+I-L", {{8, 2}, {4, 1}, {1, 1}}, "1.18", 1.1756, true},
      {"sret/tl", "P+I-L", {{8, 1}, {4, 1}, {1, 1}}, "1.25", 1.2543, true},
      {"sret/tl", "P+I-L", {{16, 1}, {14, 1}, {1, 1}}, "1.24", 1.2357, true},
      {"sret/tl", "P+I-L", {{49, 1}, {28, 1}, {1, 1}}, "1.23", 1.2273, true},
  };
  int64_t met = 0;
  for (const Row& row : rows) {
    ModelConfig config = find_model(row.name).config();
    RecursiveConfig& recursive = std::get<PyramidConfig>(config.network).depth.recursive;
    recursive.groups = row.groups;
    recursive.permutation = row.permutation;
    const double ours = measure_cost(config).with_norms() / 1e9;
    EXPECT_NEAR(ours, row.ours, 0.5e-4) << row.paper;
    EXPECT_EQ(Printed(row.paper).is(ours), row.met) << row.paper;
    met += row.met ? 1 : 0;
  }
  EXPECT_EQ(met, 12);
}

}  // namespace
}  // namespace rondo::test
