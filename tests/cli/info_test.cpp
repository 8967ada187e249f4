// rondo info: counts of named models, configurations and model files, as text and as JSON.
#include "tests/cli/authors.h"

namespace rondo::testing {
namespace {

int64_t parameters(const Arguments& arguments) {
  Arguments all = {"info", "--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Result result = rondo_ok(all);
  return result.code == 0 ? result.json().at("parameters").get<int64_t>() : -1;
}

class InfoOfKind : public ::testing::TestWithParam<const char*> {};

TEST_P(InfoOfKind, JsonHasEveryKeyAndPartsAddUp) {
  const nlohmann::json info = rondo_ok({"info", GetParam(), "--json"}).json();
  EXPECT_EQ(info.at("name"), GetParam());
  for (const char* key :
       {"parameters", "parameters_without_embeddings", "macs", "macs_with_norms"}) {
    ASSERT_TRUE(info.at(key).is_number()) << key;
    EXPECT_GT(info.at(key).get<double>(), 0) << key;
  }
  EXPECT_TRUE(info.at("paper").is_object());
  EXPECT_LT(info.at("parameters_without_embeddings"), info.at("parameters"));
  EXPECT_GT(info.at("macs_with_norms"), info.at("macs"));
  int64_t count = 0;
  double macs = 0;
  for (const auto& part : info.at("parts")) {
    EXPECT_FALSE(part.at("name").get<std::string>().empty());
    EXPECT_LE(part.at("shared"), part.at("parameters"));
    count += part.at("parameters").get<int64_t>();
    macs += part.at("macs").get<double>();
  }
  EXPECT_EQ(count, info.at("parameters"));
  EXPECT_NEAR(macs, info.at("macs").get<double>(), 1e-6 * macs);
}

INSTANTIATE_TEST_SUITE_P(OneOfEach, InfoOfKind,
                         ::testing::Values("ringformer/mt-base", "ringformer/image-small", "sret/t",
                                           "brt/rec-fixed-skip"));

TEST(Info, PutsThePapersFigureBesideOurs) {
  const std::string text = rondo_ok({"info", "ringformer/mt-base"}).out;
  EXPECT_EQ(lines_of(text).front(), "ringformer/mt-base");
  EXPECT_TRUE(contains(text, "without embeddings and head            8,943,616\n")) << text;
  EXPECT_TRUE(contains(text, "  paper: parameters without embeddings 8.94M\n")) << text;
  EXPECT_TRUE(contains(text, "  authors' code: parameters without embeddings 8,943,616\n")) << text;
  const nlohmann::json info = rondo_ok({"info", "ringformer/mt-base", "--json"}).json();
  const nlohmann::json& paper = info.at("paper");
  EXPECT_EQ(paper.at("parameters_without_embeddings"), "8.94M");
  EXPECT_EQ(paper.at("authors_code").at("parameters_without_embeddings"), "8,943,616");
  EXPECT_EQ(paper.at("changed"), false);
  EXPECT_EQ(info.at("parameters_without_embeddings"), 8943616);
}

TEST(Info, SaysNothingThatThePaperDoesNotPrint) {
  // The paper gives no count for Rec:fixed:skip, and none for any Mixer.
  const std::string skip = rondo_ok({"info", "brt/rec-fixed-skip"}).out;
  EXPECT_FALSE(contains(skip, "paper:")) << skip;
  EXPECT_TRUE(contains(skip, "authors' code: parameters 160.73M\n")) << skip;
  EXPECT_FALSE(contains(rondo_ok({"info", "sret/mixer-b16"}).out, "paper:"));
  const std::string uit = rondo_ok({"info", "ringformer/image-small-uit-s"}).out;
  EXPECT_TRUE(contains(uit, "  paper: parameters 8.84M\n")) << uit;
  EXPECT_FALSE(contains(uit, "8.83")) << uit;
}

TEST(Info, FiguresAreOfTheUnchangedModelAlone) {
  for (const Arguments& change :
       {Arguments{"--set", "model.dropout=0.2"}, Arguments{"--classes", "10"}}) {
    Arguments words = {"info", "sret/t"};
    words.insert(words.end(), change.begin(), change.end());
    const std::string text = rondo_ok(words).out;
    EXPECT_FALSE(contains(text, "paper: ")) << text;
    EXPECT_TRUE(contains(text, "changed: the paper's figures are for the unmodified model"));
    words.push_back("--json");
    const nlohmann::json paper = rondo_ok(words).json().at("paper");
    EXPECT_EQ(paper.at("changed"), true);
    for (const char* key : {"parameters", "operations", "authors_code", "exact"}) {
      EXPECT_EQ(paper.count(key), 0U) << key;
    }
  }
  // Setting a key to its current value changes nothing.
  const nlohmann::json same =
      rondo_ok({"info", "sret/t", "--set", "model.classes=1000", "--json"}).json();
  EXPECT_EQ(same.at("paper").at("parameters"), "4.76M");
}

TEST(Info, CountsAsTheAuthorsDo) {
  const auto billions = [](const std::string& model, const std::string& rule) {
    const nlohmann::json info = rondo_ok({"info", model, "--count", rule, "--json"}).json();
    EXPECT_EQ(info.at("count"), rule);
    double parts = 0;
    for (const auto& part : info.at("parts")) parts += part.at("operations").get<double>();
    EXPECT_NEAR(parts, info.at("operations").get<double>(), 1e-6 * parts);
    return info.at("operations").get<double>() / 1e9;
  };
  EXPECT_NEAR(billions("ringformer/image-base-vit", "authors"), 17.636, 0.0005);
  EXPECT_NEAR(billions("ringformer/image-base-owf", "authors"), 17.636, 0.0005);
  EXPECT_NEAR(billions("ringformer/image-base-uit", "authors"), 17.636, 0.002);
  EXPECT_NEAR(billions("ringformer/image-base", "authors"), 19.03, 0.005);
  EXPECT_NEAR(billions("ringformer/image-base", "macs"), 18.261, 0.0005);
  EXPECT_NEAR(billions("sret/t", "norms"), 1.1236, 0.00005);
  const std::string text = rondo_ok({"info", "ringformer/image-base", "--count", "authors"}).out;
  EXPECT_TRUE(contains(text, "operations by the authors' rule          19.0302 G\n")) << text;
  EXPECT_TRUE(contains(text, "  paper: operations 19.03 G (--count authors)\n")) << text;
  const std::string help = rondo_ok({"info", "--help"}).out;
  for (const char* word : {"--count", "macs", "norms", "authors"}) {
    EXPECT_TRUE(contains(help, word)) << word;
  }
  expect_refusal(rondo({"info", "brt/xl-512", "--count", "authors"}), ExitCode::usage,
                 "--count authors does not apply");
  expect_refusal(rondo({"info", "sret/t", "--count", "flops"}), ExitCode::usage, "--count");
}

TEST(Info, StateIdsMayBeLeftOut) {
  EXPECT_EQ(parameters({"brt/rec-fixed-skip"}) -
                parameters({"brt/rec-fixed-skip", "--set", "model.time.state_ids=false"}),
            512 * 1024);
  EXPECT_EQ(parameters({"brt/rec-fixed-skip", "--set", "model.time.normalize=false"}),
            parameters({"brt/rec-fixed-skip"}));
}

TEST(Info, SharedWeightsCountOnceButMultiplyEveryTime) {
  const nlohmann::json distinct = rondo_ok({"info", "ringformer/image-small-vit", "--json"}).json();
  const nlohmann::json shared = rondo_ok({"info", "ringformer/image-small-uit", "--json"}).json();
  EXPECT_EQ(distinct.at("macs"), shared.at("macs"));
  EXPECT_GT(distinct.at("parameters"), 5 * shared.at("parameters").get<int64_t>());
  EXPECT_EQ(distinct.at("parameters_shared"), 0);
  EXPECT_GT(shared.at("parameters_shared"), 0);
}

TEST(Info, SizesFromTheCommandLine) {
  EXPECT_EQ(parameters({"sret/t"}), 4755979);
  EXPECT_EQ(parameters({"sret/t", "--image", "384"}), 4853259);
  EXPECT_EQ(parameters({"sret/t", "--classes", "10"}), 4755979 - 990 * (256 + 1));
  // Two embeddings of 128 and a head of 128 and a bias, for 51,000 tokens fewer.
  EXPECT_EQ(parameters({"ringformer/mt-ablation", "--vocab", "1000"}),
            20584736 - 51000 * (3 * 128 + 1));
  EXPECT_EQ(parameters({"brt/slide-12l", "--vocab", "32000"}) - parameters({"brt/slide-12l"}),
            (32000 - 260) * 1024);
}

TEST(Info, TokensChangeOnlyTheMultiplyAdds) {
  const nlohmann::json few = rondo_ok({"info", "brt/xl-512", "--json", "--tokens", "512"}).json();
  const nlohmann::json many = rondo_ok({"info", "brt/xl-512", "--json", "--tokens", "1024"}).json();
  EXPECT_EQ(few.at("parameters"), many.at("parameters"));
  EXPECT_DOUBLE_EQ(2 * few.at("macs").get<double>(), many.at("macs").get<double>());
}

TEST(Info, SizesThatDoNotApplyAreRefused) {
  expect_refusal(rondo({"info", "sret/t", "--vocab", "9"}), ExitCode::usage,
                 "--vocab does not apply");
  expect_refusal(rondo({"info", "sret/t", "--tokens", "9"}), ExitCode::usage,
                 "--tokens does not apply");
  expect_refusal(rondo({"info", "brt/xl-512", "--image", "9"}), ExitCode::usage,
                 "--image does not apply");
  expect_refusal(rondo({"info", "brt/xl-512", "--classes", "9"}), ExitCode::usage,
                 "--classes does not apply");
}

// Counting needs no weights in memory.
TEST(Info, LargestEntriesAnswerQuickly) {
#ifdef NDEBUG
  const double limit = 2.0;
#else
  const double limit = 4.0;
#endif
  for (const char* name : {"brt/rec-lstm-single-large", "sret/deep-1000", "sret/b"}) {
    EXPECT_LT(quickest(2, {"info", name}), limit) << name;
  }
}

TEST(Info, ReadsATomlConfiguration) {
  const TempDir folder;
  const std::string path = folder.file("mine.toml");
  spill(path, "[model]\nbase = \"ringformer/image-small\"\nclasses = 10\n");
  const nlohmann::json info = rondo_ok({"info", path, "--json"}).json();
  EXPECT_EQ(info.at("name"), path);
  EXPECT_EQ(info.at("parameters"), 4395620 - 90 * (512 + 1));
  EXPECT_TRUE(info.at("paper").is_null());
}

TEST(Info, SetChangesAKeyOfNamesAndFiles) {
  const Arguments ring = {"--set", "model.depth.scheme=ring", "--set",
                          "model.one_norm_per_level=false"};
  Arguments named = {"ringformer/mt-base-vanilla"};
  named.insert(named.end(), ring.begin(), ring.end());
  EXPECT_EQ(parameters(named), parameters({"ringformer/mt-base"}));
  EXPECT_EQ(parameters({fixture("ringformer_vision.toml"), "--set", "model.classes=11"}),
            parameters({fixture("ringformer_vision.toml")}) + 49);
}

TEST(Info, ReadsAModelFile) {
  const Authors vision("ringformer_vision", "ringformer");
  EXPECT_EQ(parameters({vision.model()}), parameters({vision.config()}));
}

}  // namespace
}  // namespace rondo::testing
