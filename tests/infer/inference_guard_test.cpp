// `generate` and `translate` run the network that was trained: for every depth scheme, every
// placement of signals and every kind of time that a configuration can express. The lists are taken
// from the configuration itself, so a new scheme or kind is covered as soon as it is added.
#include <set>

#include "rondo/infer/agreement.h"
#include "tests/support/guarded_model.h"

namespace rondo::test {
namespace {

// The choices of a key, as `rondo config` prints them: one of "a", "b".
std::vector<std::string> choices_of(const std::string& kind, const std::string& key) {
  for (const FieldHelp& field : model_config_help(kind)) {
    if (field.key != key) continue;
    std::vector<std::string> choices;
    for (size_t at = field.allowed.find('"'); at != std::string::npos;) {
      const size_t end = field.allowed.find('"', at + 1);
      choices.push_back(field.allowed.substr(at + 1, end - at - 1));
      at = field.allowed.find('"', end + 1);
    }
    return choices;
  }
  ADD_FAILURE() << kind << " has no key " << key;
  return {};
}

// Every way to share weights over depth in this kind of network, at three levels.
std::vector<DepthConfig> every_depth(const std::string& kind) {
  std::vector<DepthConfig> all;
  for (const std::string& scheme : choices_of(kind, "depth.scheme")) {
    DepthConfig depth;
    depth.scheme = scheme;
    depth.levels = 3;
    depth.recursive.blocks = {2};
    depth.recursive.loops = {2};
    if (scheme == "ring") {
      for (const std::string& attention : choices_of(kind, "depth.ring.attention")) {
        for (const std::string& inside : choices_of(kind, "depth.ring.feed_forward")) {
          depth.ring.attention = attention;
          depth.ring.feed_forward = inside;
          all.push_back(depth);
        }
      }
      depth.ring = {};
      depth.ring.full_rank = true;
    } else if (scheme == "recursive") {
      for (const std::string& residual : choices_of(kind, "depth.recursive.residual")) {
        for (const std::string& order : choices_of(kind, "depth.recursive.order")) {
          depth.recursive.residual = residual;
          depth.recursive.order = order;
          all.push_back(depth);
        }
      }
      depth.recursive.projection = 1.0;
    }
    all.push_back(depth);
  }
  return all;
}

std::string named(const DepthConfig& d) {
  if (d.scheme == "ring") {
    return "ring, " + d.ring.attention + ", " + d.ring.feed_forward +
           (d.ring.full_rank ? ", full rank" : "");
  }
  if (d.scheme != "recursive") return d.scheme;
  return "recursive, " + d.recursive.residual + ", " + d.recursive.order +
         (d.recursive.projection > 0 ? ", projection" : "");
}

bool has_meaning(const ModelConfig& config) {
  try {
    check_model_config(config, "guard");
    return true;
  } catch (const Error&) {
    return false;
  }
}

// ---- language models

LanguageModelConfig guarded_base() {
  LanguageModelConfig base;
  base.time.recurrent_layers = {2};
  base.time.memory_layer = 2;
  base.depth.levels = 3;
  return std::get<LanguageModelConfig>(shrink(ModelConfig{base}).network);
}

class GenerateGuard : public ::testing::TestWithParam<std::string> {};

TEST_P(GenerateGuard, WritesWhatTheTrainedNetworkWould) {
  size_t models = 0;
  for (const DepthConfig& depth : every_depth("language-model")) {
    LanguageModelConfig config = guarded_base();
    config.depth = depth;
    config.time.kind = GetParam();
    if (!has_meaning(ModelConfig{config})) continue;
    SCOPED_TRACE(named(depth));
    const GuardedModel model(config);
    for (const int64_t rows : {1, 3, 8}) model.check(rows);
    ++models;
  }
  EXPECT_GE(models, 5U);
}

INSTANTIATE_TEST_SUITE_P(Times, GenerateGuard,
                         ::testing::ValuesIn(choices_of("language-model", "time.kind")),
                         NameOfModel());

// Every recurrent cell: gates, configurations, switches; blocks end in the middle of the generated
// text and in different steps.
class CellGuard : public ::testing::TestWithParam<std::string> {};

TEST_P(CellGuard, WritesWhatTheTrainedNetworkWould) {
  for (const std::string& gate : choices_of("language-model", "time.gate")) {
    for (const std::string& squash : choices_of("language-model", "time.gate_tanh")) {
      for (const bool plain : {false, true}) {
        LanguageModelConfig config = guarded_base();
        config.time.configuration = GetParam();
        config.time.gate = gate;
        config.time.gate_tanh = squash;
        config.time.state_ids = config.time.normalize = !plain;
        for (const char* kind : {"block-recurrent", "feedback"}) {
          config.time.kind = kind;
          SCOPED_TRACE(gate + ", " + squash + ", " + kind + (plain ? ", plain" : ""));
          const GuardedModel model(config);
          for (const int64_t rows : {1, 8}) model.check(rows);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configurations, CellGuard,
                         ::testing::ValuesIn(choices_of("language-model", "time.configuration")),
                         NameOfModel());

// ---- translation

std::shared_ptr<EncoderDecoder> guarded_translator(const DepthConfig& depth) {
  EncoderDecoderConfig c;
  c.source_vocabulary = c.target_vocabulary = kByteVocabulary;
  c.padding = kBytePadding;
  c.width = 16;
  c.hidden = 24;
  c.heads = 2;
  c.depth = depth;
  auto model = std::make_shared<EncoderDecoder>(c);
  nn::initialize(*model, 1);
  at::manual_seed(5);
  const at::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters()) {
    item.value().add_(at::randn_like(item.value()) * 0.1);  // signals, which start at zero, too
  }
  model->eval();
  return model;
}

TEST(TranslateGuard, TranslatesAsTheTrainedNetworkWould) {
  const std::shared_ptr<const Tokenizer> bytes = make_tokenizer("bytes");
  const std::vector<std::string> lines = {
      "a theme", "comes", "back each time", "changed", "a", "little, until", "it", "ends"};
  std::set<std::string> texts;
  for (const DepthConfig& depth : every_depth("encoder-decoder")) {
    SCOPED_TRACE(named(depth));
    for (const SignalMode signals : {SignalMode::folded, SignalMode::apart}) {
      for (const size_t rows : {1, 3, 8}) {
        TranslatorOptions options;
        options.beam.beam = 1;
        options.beam.max_length = 12;
        const auto as_trained = guarded_translator(depth);
        const Translator translator(std::make_shared<CompiledTranslationModel>(
                                        *as_trained, nn::WeightFormat::fp32, signals),
                                    {bytes, bytes}, options);
        const std::vector<std::string> part(lines.begin(),
                                            lines.begin() + static_cast<int64_t>(rows));
        const std::vector<Translation> written = translator.translate(part);
        const Agreement found = greedy_agreement(translator, *as_trained, false, part, written);
        EXPECT_EQ(found.sentences, static_cast<int64_t>(rows));
        EXPECT_EQ(found.same, found.sentences);
        for (const Translation& t : written) texts.insert(t.candidates.front().text);
      }
    }
  }
  EXPECT_GT(texts.size(), lines.size()) << "the networks write nothing of interest";
}

}  // namespace
}  // namespace rondo::test
