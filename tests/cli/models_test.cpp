// rondo models: the list of models is complete, as text and as JSON.
#include <set>

#include "rondo/base/text.h"
#include "rondo/config/zoo.h"
#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

// Every name that users and scripts may rely on.
constexpr const char* kNames = R"(
ringformer/mt-base ringformer/mt-base-vanilla ringformer/mt-base-one-wide ringformer/mt-base-universal
ringformer/mt-large ringformer/mt-large-vanilla ringformer/mt-large-one-wide ringformer/mt-large-universal
ringformer/mt-ablation ringformer/mt-ablation-static ringformer/mt-ablation-no-attention-signal
ringformer/mt-ablation-no-ffn-signal ringformer/mt-ablation-before-attention ringformer/mt-ablation-inter-ffn
ringformer/mt-ablation-rank-32 ringformer/mt-ablation-rank-8 ringformer/mt-ablation-full-rank
ringformer/image-small ringformer/image-small-vit ringformer/image-small-uit ringformer/image-small-owf
ringformer/image-small-s ringformer/image-small-uit-s ringformer/image-small-vit-d ringformer/image-small-owf-d
ringformer/image-base ringformer/image-base-vit ringformer/image-base-owf ringformer/image-base-uit
ringformer/image-base-s ringformer/image-base-uit-s
brt/xl-512 brt/xl-1024 brt/xl-2048 brt/slide-12l brt/slide-13l brt/rec-fixed-dual brt/rec-fixed-single
brt/rec-fixed-skip brt/rec-lstm-dual brt/rec-lstm-single brt/rec-lstm-skip brt/feedback-fixed-skip
brt/feedback-lstm-single brt/memorizing-32k brt/slide-13l-large brt/rec-lstm-single-large
brt/rec-fixed-skip-large brt/rec-fixed-skip-adjacent brt/rec-fixed-skip-apart
sret/t sret/t-global sret/tl sret/tl-global sret/s sret/s-global sret/b sret/b-global sret/ext sret/ext-global
sret/deit-t sret/deit-s sret/deit-t-loop2 sret/deit-t-loop3 sret/deit-t-loop4 sret/deit-t-internal
sret/deit-t-external sret/deit-t-24l sret/deit-t-36l sret/deit-t-48l sret/pit-t sret/pit-s
sret/ladder-nll sret/ladder-no-class-token sret/ladder-stem sret/ladder-lrc
sret/deit-108 sret/deep-108 sret/deep-108-mixed sret/deep-1000
sret/mixer-b16 sret/mixer-b16-recursive sret/mixer-b16-recursive-lrc
sret/mt-iwslt sret/mt-iwslt-recursive sret/mt-iwslt-recursive-lrc
sret/mt-wmt sret/mt-wmt-recursive sret/mt-wmt-recursive-lrc
rondo/ring-brt
)";

std::set<std::string> expected_names() {
  std::string text = kNames;
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::set<std::string> names;
  for (const std::string& name : split(text, ' ')) {
    if (!name.empty()) names.insert(name);
  }
  return names;
}

std::string first_word(const std::string& line) { return line.substr(0, line.find(' ')); }

TEST(Models, OneLineEach) {
  const std::vector<std::string> lines = lines_of(rondo_ok({"models"}).out);
  ASSERT_EQ(lines.size(), zoo().size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const ZooEntry& entry = zoo()[i];
    EXPECT_EQ(first_word(lines[i]), entry.name);
    EXPECT_TRUE(contains(lines[i], entry.paper + ": " + entry.row)) << lines[i];
    EXPECT_TRUE(contains(lines[i], entry.config().task())) << lines[i];
  }
}

TEST(Models, EveryPromisedNameIsThere) {
  std::set<std::string> listed;
  for (const std::string& line : lines_of(rondo_ok({"models"}).out)) {
    EXPECT_TRUE(listed.insert(first_word(line)).second) << "twice: " << line;
  }
  for (const std::string& name : expected_names()) EXPECT_EQ(listed.count(name), 1u) << name;
}

TEST(Models, TasksDivideTheZoo) {
  size_t sum = 0;
  for (const std::string task : {"translation", "image", "lm"}) {
    const std::vector<std::string> lines = lines_of(rondo_ok({"models", "--task", task}).out);
    EXPECT_FALSE(lines.empty()) << task;
    for (const std::string& line : lines) EXPECT_TRUE(contains(line, "  " + task + " ")) << line;
    sum += lines.size();
  }
  EXPECT_EQ(sum, zoo().size());
}

TEST(Models, JsonHoldsTheSame) {
  const nlohmann::json rows = rondo_ok({"models", "--json"}).json();
  ASSERT_EQ(rows.size(), zoo().size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("name"), zoo()[i].name);
    EXPECT_EQ(rows[i].at("paper"), zoo()[i].paper);
    EXPECT_EQ(rows[i].at("row"), zoo()[i].row);
    EXPECT_EQ(rows[i].at("task"), zoo()[i].config().task());
  }
  const nlohmann::json some = rondo_ok({"models", "--json", "--task", "lm"}).json();
  for (const auto& row : some) EXPECT_EQ(row.at("task"), "lm");
  EXPECT_LT(some.size(), rows.size());
}

TEST(Models, RefusesAnotherTask) {
  expect_refusal(rondo({"models", "--task", "poetry"}), ExitCode::usage, "translation,image,lm");
}

TEST(Models, EveryConfigurationReadsBack) {
  const TempDir folder;
  for (const ZooEntry& entry : zoo()) {
    const std::string text = rondo_ok({"info", entry.name, "--toml"}).out;
    spill(folder.file("model.toml"), text);
    EXPECT_EQ(rondo_ok({"info", folder.file("model.toml"), "--toml"}).out, text) << entry.name;
  }
}

}  // namespace
}  // namespace rondo::testing
