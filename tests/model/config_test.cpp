// Model configurations: invalid ones are rejected with the reason, and written ones read back the
// same.
#include "rondo/config/model_config.h"

#include "tests/support/expect.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

ModelConfig read_text(const std::string& text) {
  return read_model_config(ConfigTable::from_string(text, "model.toml"));
}

struct BadModel {
  const char* name;
  const char* text;  // the file
  const char* says;  // part of the error
};

const BadModel kBadModels[] = {
    {"ImageNotAMultipleOfThePatch", "[model]\nkind = 'vision'\nimage = 225\n",
     "model.image: expected a multiple of the patch 16, got 225"},
    {"PyramidImageNotAMultipleOfEight", "[model]\nkind = 'pyramid'\nimage = 220\n",
     "model.image: expected a multiple of 8"},
    {"PyramidImageBelowThePatch", "[model]\nkind = 'pyramid'\nstem = 'patch'\nimage = 8\n",
     "model.image: expected at least the patch 16, got 8"},
    {"MoreTokensThanAnybodyAttendsTo", "[model]\nkind = 'vision'\nimage = 65536\npatch = 1\n",
     "model.image: expected an image of at most 1048576 tokens, got 65536 x 65536"},
    {"MoreTokensOfAPyramid", "[model]\nkind = 'pyramid'\nimage = 65536\n",
     "model.image: expected an image of at most 1048576 tokens, got 8192 x 8192"},
    {"TooManyLevels", "[model]\nkind = 'vision'\n[model.depth]\nlevels = 10001\n",
     "model.depth.levels: expected a whole number between 1 and 10000, got 10001"},
    {"TooManyBlocksAndLoops",
     "[model]\nkind = 'pyramid'\n[model.depth]\nscheme = 'recursive'\n[model.depth.recursive]\n"
     "blocks = [100, 100]\nloops = [50, 50, 51]\n",
     "blocks times loops over all stages: expected at most 10000 levels, got 15100"},
    {"GroupsDoNotDivideTokens",
     "[model]\nkind = 'vision'\n[model.depth]\nscheme = 'recursive'\n[model.depth.recursive]\n"
     "groups = [[4]]\n",
     "model.depth.recursive.groups: 197 tokens cannot be cut into 4 equal groups"},
    {"GroupsDoNotDivideTokensOfALaterStage",
     "[model]\nkind = 'pyramid'\n[model.depth]\nscheme = 'recursive'\n[model.depth.recursive]\n"
     "loops = [2]\ngroups = [[8, 2], [4, 3], [1, 1]]\n",
     "stage 2, loop 2: 196 tokens cannot be cut into 3 equal groups"},
    {"GroupsOfSentences",
     "[model]\nkind = 'encoder-decoder'\n[model.depth]\nscheme = 'recursive'\n"
     "[model.depth.recursive]\ngroups = [[2]]\n",
     "sliced attention is not supported for sentences"},
    {"GroupsOfALanguageModel",
     "[model]\nkind = 'language-model'\n[model.depth]\nscheme = 'recursive'\n"
     "[model.depth.recursive]\ngroups = [[2]]\n",
     "would let tokens see the future"},
    {"RecurrenceOnALayerThatDoesNotExist",
     "[model]\nkind = 'language-model'\n[model.depth]\nlevels = 8\n[model.time]\n"
     "kind = 'block-recurrent'\nrecurrent_layers = [3, 9]\n",
     "model.time.recurrent_layers: expected a layer from 1 to 8, got 9"},
    {"RecurrenceBelowTheFirstLayer",
     "[model]\nkind = 'language-model'\n[model.time]\nrecurrent_layers = [0]\n",
     "model.time.recurrent_layers"},
    {"RecurrenceOnNoLayer",
     "[model]\nkind = 'language-model'\n[model.time]\nkind = 'feedback'\nrecurrent_layers = []\n",
     "model.time.recurrent_layers: expected at least one layer"},
    {"RecurrenceBeyondTheLoops",
     "[model]\nkind = 'language-model'\n[model.depth]\nscheme = 'recursive'\n"
     "[model.depth.recursive]\nblocks = [3]\nloops = [2]\n[model.time]\nkind = 'feedback'\n"
     "recurrent_layers = [7]\n",
     "expected a layer from 1 to 6, got 7"},
    {"MemoryOnALayerThatDoesNotExist",
     "[model]\nkind = 'language-model'\n[model.depth]\nlevels = 4\n[model.time]\n"
     "kind = 'memorizing'\nmemory_layer = 5\n",
     "model.time.memory_layer: expected a layer from 1 to 4, got 5"},
    {"SegmentNotAMultipleOfTheWindow",
     "[model]\nkind = 'language-model'\n[model.time]\nwindow = 512\nsegment = 1000\n",
     "model.time.segment: expected a multiple of the window 512, got 1000"},
    {"HeadsDoNotDivideTranslation", "[model]\nkind = 'encoder-decoder'\nheads = 7\n",
     "model.heads: expected a divisor of the width 512, got 7"},
    {"HeadsDoNotDivideVision", "[model]\nkind = 'vision'\nwidth = 100\nheads = 8\n",
     "model.heads: expected a divisor of the width 100, got 8"},
    {"HeadsDoNotDividePyramid", "[model]\nkind = 'pyramid'\nheads = [2, 3, 8]\n",
     "model.heads: expected a divisor of the width 128, got 3"},
    {"HeadsOfOtherStages", "[model]\nkind = 'pyramid'\nheads = [2, 4]\n",
     "expected one entry per stage, 3 as in widths, got 2"},
    {"WidthsThatDoNotDivide", "[model]\nkind = 'pyramid'\nwidths = [64, 96, 192]\n",
     "model.widths: expected a multiple of 64 in stage 1, got 96"},
    {"UniversalWithPositions", "[model]\nkind = 'vision'\n[model.depth]\nscheme = 'universal'\n",
     "model.positions: universal levels add their own position encoding"},
    {"RingInAPyramid", "[model]\nkind = 'pyramid'\n[model.depth]\nscheme = 'ring'\n",
     "'ring' is not supported in a pyramid"},
    {"RingInAMixer",
     "[model]\nkind = 'vision'\nmixing = 'feed-forward'\npool = 'mean'\n[model.depth]\n"
     "scheme = 'ring'\n",
     "'ring' is not supported with model.mixing = feed-forward"},
    {"MixerWithAClassToken", "[model]\nkind = 'vision'\nmixing = 'feed-forward'\n",
     "model.pool: a token feed-forward mixes patches only"},
    {"MixedDepthWithoutLoops", "[model]\nkind = 'vision'\nmixed_depth = true\n",
     "model.mixed_depth: is not supported with scheme 'vanilla'"},
    {"OddFairseqWidth",
     "[model]\nkind = 'encoder-decoder'\nstyle = 'fairseq'\nwidth = 9\nheads = 3\n",
     "fairseq positions need an even width"},
    {"PaddingOutsideTheVocabulary",
     "[model]\nkind = 'encoder-decoder'\ntarget_vocabulary = 10\npadding = 10\n",
     "model.padding: expected a token below 10, got 10"},
    {"BaseOfAnotherKind", "[model]\nkind = 'vision'\nbase = 'brt/slide-12l'\n",
     "expected \"language-model\", the kind of brt/slide-12l, got \"vision\""},
    {"UnknownKind", "[model]\nkind = 'visoin'\n", "unknown kind of network 'visoin'"},
    {"NoKind", "[model]\nwidth = 5\n", "model.kind: missing"},
    {"UnknownScheme", "[model]\nkind = 'vision'\n[model.depth]\nscheme = 'rings'\n",
     "model.depth.scheme"},
    {"UnknownKey", "[model]\nkind = 'vision'\nwdith = 5\n", "wdith"},
    {"EmptyBlocks",
     "[model]\nkind = 'vision'\n[model.depth]\nscheme = 'recursive'\n[model.depth.recursive]\n"
     "blocks = []\n",
     "blocks and loops need at least one entry"},
};

void PrintTo(const BadModel& model, std::ostream* out) { *out << model.name; }

class ImpossibleModel : public ::testing::TestWithParam<BadModel> {};

TEST_P(ImpossibleModel, IsRefusedWithItsReason) {
  const Error error = error_of([] { read_text(GetParam().text); });
  EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::bad_input));
  const std::string text = error.what();
  EXPECT_NE(text.find(GetParam().says), std::string::npos) << text;
  EXPECT_NE(text.find("model.toml"), std::string::npos) << "names its file: " << text;
}

INSTANTIATE_TEST_SUITE_P(Config, ImpossibleModel, ::testing::ValuesIn(kBadModels),
                         [](const auto& given) { return std::string(given.param.name); });

class ZooConfig : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooConfig, DumpsAndReadsBackTheSame) {
  const ModelConfig config = find_model(GetParam()).config();
  const std::string text = dump_model_config(config);
  const ModelConfig again = read_text(text);
  EXPECT_EQ(dump_model_config(again), text);
  EXPECT_STREQ(again.kind(), config.kind());
  EXPECT_EQ(dump_model_config(resolve_model(GetParam(), {}).config), text);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooConfig, ::testing::ValuesIn(zoo_names()), NameOfModel());

TEST(ModelConfig, MayStartFromANamedModel) {
  const ModelConfig config = read_text(
      "[model]\nbase = 'ringformer/image-small'\nwidth = 256\n[model.depth]\nlevels = 3\n");
  const auto& vision = std::get<VisionConfig>(config.network);
  EXPECT_EQ(vision.width, 256);
  EXPECT_EQ(vision.depth.levels, 3);
  EXPECT_EQ(vision.depth.scheme, "ring");
  EXPECT_EQ(vision.classes, 100);
}

TEST(ModelConfig, TasksAndKindsGoTogether) {
  EXPECT_STREQ(find_model("sret/t").config().kind(), "pyramid");
  EXPECT_STREQ(find_model("sret/t").config().task(), "image");
  EXPECT_STREQ(find_model("sret/mt-wmt").config().task(), "translation");
  EXPECT_STREQ(find_model("brt/xl-512").config().task(), "lm");
}

TEST(FindModel, SuggestsTheNearestName) {
  const auto suggests = [](const std::string& typed, const std::string& meant) {
    const Error error = error_of([&] { find_model(typed); });
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::usage));
    EXPECT_NE(std::string(error.what()).find(meant), std::string::npos) << error.what();
  };
  suggests("ringformer/mt-bse", "ringformer/mt-base");
  suggests("sret/tt", "sret/t");
  suggests("brt/rec-fixed-skp", "brt/rec-fixed-skip");
  suggests("something else entirely", "rondo models");
}

TEST(ResolveModel, TakesNamesFilesAndAssignments) {
  const ResolvedModel named = resolve_model("brt/slide-12l", {"model.time.window=128"});
  EXPECT_EQ(std::get<LanguageModelConfig>(named.config.network).time.window, 128);
  EXPECT_TRUE(named.weights.empty());
  const ResolvedModel file = resolve_model(fixture("brt_slide.toml"), {});
  EXPECT_EQ(std::get<LanguageModelConfig>(file.config.network).width, 32);
  expect_error(ExitCode::bad_input, "model.image: expected a multiple of the patch",
               [] { resolve_model("ringformer/image-small", {"model.image=230"}); });
  expect_error(ExitCode::bad_input, "contains weights but no configuration",
               [] { resolve_model(fixture("brt_slide.safetensors"), {}); });
  expect_error(ExitCode::io, "nowhere.toml", [] { resolve_model("nowhere.toml", {}); });
}

TEST(ApplySizes, ChangesWhatTheModelHasAndRefusesTheRest) {
  ModelConfig image = find_model("sret/t").config();
  apply_sizes(image, {384, 10, 0});
  EXPECT_EQ(std::get<PyramidConfig>(image.network).image, 384);
  EXPECT_EQ(std::get<PyramidConfig>(image.network).classes, 10);
  ModelConfig text = find_model("ringformer/mt-base").config();
  apply_sizes(text, {0, 0, 1234});
  EXPECT_EQ(std::get<EncoderDecoderConfig>(text.network).source_vocabulary, 1234);
  EXPECT_EQ(std::get<EncoderDecoderConfig>(text.network).target_vocabulary, 1234);
  expect_error(ExitCode::usage, "--vocab does not apply", [&] { apply_sizes(image, {0, 0, 5}); });
  expect_error(ExitCode::usage, "--image does not apply", [&] { apply_sizes(text, {224, 0, 0}); });
  expect_error(ExitCode::usage, "--classes does not apply", [&] { apply_sizes(text, {0, 5, 0}); });
  expect_error(ExitCode::bad_input, "cannot be cut into", [&] { apply_sizes(image, {232, 0, 0}); });
}

}  // namespace
}  // namespace rondo::test
