// Mistakes of a caller of the library give an Error that explains them, never an abort or a wild
// read: missing models, closed rows, tokens out of range, shapes that do not fit.
#include <functional>

#include "rondo/infer/classifier.h"
#include "rondo/infer/generator.h"
#include "rondo/infer/translator.h"
#include "rondo/model/cost.h"
#include "rondo/nn/attention.h"
#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

std::shared_ptr<LanguageModel> language_model() {
  const TinyModel tiny(shrink(find_model("brt/rec-fixed-skip").config()));
  return std::dynamic_pointer_cast<LanguageModel>(tiny.network);
}

std::shared_ptr<const CompiledLanguageModel> compiled_language() {
  static const auto compiled =
      std::make_shared<CompiledLanguageModel>(language_model(), kernels::PackedFormat::fp32);
  return compiled;
}

std::shared_ptr<EncoderDecoder> translation_model() {
  const TinyModel tiny(shrink(find_model("ringformer/mt-base").config()));
  return std::dynamic_pointer_cast<EncoderDecoder>(tiny.network);
}

std::shared_ptr<const CompiledTranslationModel> compiled_translation() {
  static const auto compiled = std::make_shared<CompiledTranslationModel>(*translation_model());
  return compiled;
}

ImageModel image_model() {
  const TinyModel tiny(shrink(find_model("sret/deit-t").config()));
  ImageModel model;
  model.network = tiny.network;
  model.config = tiny.config;
  return model;
}

Tensor tokens_of(int64_t token) { return at::full({1, 3}, token, at::kLong); }

void search(const Tensor& source, const BeamOptions& options = {},
            const SearchTokens& special_tokens = {}) {
  const Runtime::Turn turn(Runtime::get());
  beam_search(*compiled_translation(), source, special_tokens, options, turn.team());
}

void step_with(const StepRows& rows, const std::vector<int64_t>& tokens) {
  CompiledLanguageModel::Workspace workspace;
  const Runtime::Turn turn(Runtime::get());
  compiled_language()->step(rows, tokens, turn.team(), workspace);
}

SamplerOptions sampler_of(const std::function<void(SamplerOptions&)>& change) {
  SamplerOptions options;
  change(options);
  return options;
}

BeamOptions beam_of(const std::function<void(BeamOptions&)>& change) {
  BeamOptions options;
  change(options);
  return options;
}

struct Mistake {
  const char* name;
  const char* message;
  std::function<void()> make;
};

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreErrors) {
  const Error error = error_of(GetParam().make);
  EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
}

const std::vector<Mistake> kSessions = {
    {"NoCompiledModel", "session: no model given", [] { Session(nullptr); }},
    {"NoModelToCompile", "language model: no model given",
     [] { CompiledLanguageModel(nullptr, kernels::PackedFormat::fp32); }},
    {"NoGeneratorModel", "no model given", [] { Generator(nullptr); }},
    {"ClosedRow", "row 0 does not exist",
     [] {
       Session session(compiled_language());
       session.remove(session.add());
       session.step({{0, 1}});
     }},
    {"StateOfTwoRows", "expected a state of 1 row, got 2",
     [] {
       State state;
       state.set("position", at::zeros({2}, at::kLong));
       Session(compiled_language()).add(state);
     }},
    {"StateOfAnotherModel", "state",
     [] {
       State state;
       state.set("position", at::full({1}, 3, at::kLong));
       Session session(compiled_language());
       const Session::RowId row = session.add(state);
       session.step({{row, 1}});
     }},
    {"TokenBeyondVocabulary", "is not in a vocabulary of",
     [] {
       Session session(compiled_language());
       session.read(session.add(), {1, 1 << 20});
     }},
    {"RowNamedTwice", "occurs twice",
     [] {
       Session session(compiled_language());
       const Session::RowId row = session.add();
       session.step({{row, 1}, {row, 2}});
     }},
    {"StartTokenOfAGenerator", "is not in a vocabulary of",
     [] {
       Sampler sampler({});
       Generator(compiled_language()).write(sampler, -1);
     }},
    {"StepWithoutRows", "got 0 tokens for 0 rows", [] { step_with({}, {}); }},
    {"StepWithTooFewTokens", "got 1 tokens for 2 rows",
     [] {
       step_with({nullptr, nullptr}, {1});
     }},
    {"StepOfNoRow", "expected a row opened by this model", [] { step_with({nullptr}, {1}); }},
    {"StepOfAForeignRow", "expected a row opened by this model",
     [] {
       RowPast past;
       step_with({&past}, {1});
     }},
    {"StepOfAWrongToken", "row 0: expected a token from 0 to",
     [] {
       RowPast past = compiled_language()->open({});
       step_with({&past}, {-1});
     }},
    {"NoThreads", "expected 1 or more threads, got 0", [] { Runtime::get().use_threads(0); }},
};

const std::vector<Mistake> kSamplers = {
    {"NoLogits", "no logits given", [] { Sampler({}).sample({}, 0); }},
    {"NegativeTemperature", "expected a temperature of 0 or more, got -1",
     [] { Sampler(sampler_of([](auto& o) { o.temperature = -1; })); }},
    {"TemperatureOfNaN", "expected a temperature",
     [] { Sampler(sampler_of([](auto& o) { o.temperature = NAN; })); }},
    {"NegativeTopK", "top-k", [] { Sampler(sampler_of([](auto& o) { o.top_k = -2; })); }},
    {"TopPAboveOne", "top-p from 0 to 1, got 1.5",
     [] { Sampler(sampler_of([](auto& o) { o.top_p = 1.5; })); }},
    {"NoPenalty", "penalty above 0, got 0",
     [] { Sampler(sampler_of([](auto& o) { o.repetition_penalty = 0; })); }},
    {"NegativeWindow", "window of 0 or more, got -1",
     [] { Sampler(sampler_of([](auto& o) { o.repetition_window = -1; })); }},
    {"RememberedTokenBeyondLogits", "expected tokens from 0 to 2, got 3",
     [] {
       Sampler sampler(sampler_of([](auto& o) { o.repetition_penalty = 2; }));
       sampler.remember(3);
       sampler.sample({0, 1, 2}, 0);
     }},
};

const std::vector<Mistake> kTranslators = {
    {"NoModel", "translator: no model given",
     [] {
       Translator(nullptr, {make_tokenizer("bytes"), make_tokenizer("bytes")}, {});
     }},
    {"NoTokenizer", "no source tokenizer given",
     [] { Translator(compiled_translation(), {}, {}); }},
    {"TokenizerLargerThanTheModel", "source tokenizer: expected at most",
     [] {
       Translator(compiled_translation(), {make_tokenizer("bytes"), make_tokenizer("bytes")}, {});
     }},
    {"SourceBeyondVocabulary", "source: expected tokens from 0 to",
     [] { search(tokens_of(1 << 20)); }},
    {"NegativeSource", "got -1", [] { search(tokens_of(-1)); }},
    {"SourceOfOneDimension", "source: expected Long with 2 dimensions",
     [] { search(at::ones({3}, at::kLong)); }},
    {"SourceOfFloats", "source: expected Long",
     [] {
       search(at::ones({1, 3}));
     }},
    {"NoSource", "source: expected Long", [] { search(Tensor()); }},
    {"EmptySource", "source: expected 1 or more tokens",
     [] {
       search(at::ones({0, 3}, at::kLong));
     }},
    {"NoBeam", "got a beam of 0",
     [] { search(tokens_of(3), beam_of([](auto& o) { o.beam = 0; })); }},
    {"NoLength", "maximum length of 1 or more, got 0",
     [] { search(tokens_of(3), beam_of([](auto& o) { o.max_length = 0; })); }},
    {"NoRatio", "ratio", [] { search(tokens_of(3), beam_of([](auto& o) { o.max_ratio = NAN; })); }},
    {"MarkBeyondVocabulary", "expected special tokens from 0 to",
     [] {
       SearchTokens special_tokens;
       special_tokens.banned = {1 << 20};
       search(tokens_of(3), {}, special_tokens);
     }},
    {"DecodingWithoutEncoding", "expected a state created by encode()",
     [] {
       State state;
       translation_model()->decode(tokens_of(3), state, Scope());
     }},
    {"DecodingOtherRows", "target: expected 1 rows, as in source, got 2",
     [] {
       const auto model = translation_model();
       State state = model->encode(tokens_of(3), Scope());
       model->decode(at::ones({2, 3}, at::kLong), state, Scope());
     }},
};

const std::vector<Mistake> kNetworks = {
    {"NoNetwork", "images: no network given",
     [] {
       ImageModel model = image_model();
       model.network = nullptr;
       const std::vector<float> pixels(3 * 16 * 16);
       Classifier(model).classify(pixels.data(), 1, 1);
     }},
    {"NoPixels", "got 0 images", [] { Classifier(image_model()).classify(nullptr, 1, 1); }},
    {"NoClasses", "and 0 classes",
     [] {
       const std::vector<float> pixels(3 * 16 * 16);
       Classifier(image_model()).classify(pixels.data(), 1, 0);
     }},
    {"ImagesOfAnotherSize", "images: expected [B, 3, 16, 16]",
     [] {
       image_logits(*image_model().network, at::zeros({1, 3, 8, 8}));
     }},
    {"TokensOfAModel", "tokens: expected tokens from 0 to",
     [] {
       State state;
       language_model()->forward_tokens(tokens_of(1 << 20), state, Scope());
     }},
    {"LabelsOfAnotherShape", "labels: expected [1, 3]",
     [] {
       State state;
       language_model()->loss_of_tokens(tokens_of(1), at::ones({1, 2}, at::kLong), state, 0);
     }},
    {"RuleForCounting", "macs, norms or authors, got 'flops'", [] { count_rule("flops"); }},
    {"LinearOfAnotherWidth", "linear map: expected rows of 8 numbers, got 7",
     [] {
       nn::linear(at::ones({2, 7}), at::ones({3, 8}), Tensor(), Scope());
     }},
    {"ProductOfAnotherWidth", "product: expected rows of 8 numbers, got 7",
     [] {
       nn::matmul(at::ones({2, 7}), at::ones({8, 3}), Scope());
     }},
    {"BiasOfAnotherWidth", "activation: expected rows of 5 numbers, got 4",
     [] {
       nn::activate(at::ones({2, 4}), nn::Activation::gelu, at::ones({5}));
     }},
    {"AttentionOfAnotherWidth", "attention: expected queries",
     [] {
       nn::attend(at::ones({1, 2, 3, 4}), at::ones({1, 2, 3, 5}), at::ones({1, 2, 3, 5}), {}, false,
                  Scope());
     }},
};

const auto kName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Session, Mistakes, ::testing::ValuesIn(kSessions), kName);
INSTANTIATE_TEST_SUITE_P(Sampler, Mistakes, ::testing::ValuesIn(kSamplers), kName);
INSTANTIATE_TEST_SUITE_P(Translator, Mistakes, ::testing::ValuesIn(kTranslators), kName);
INSTANTIATE_TEST_SUITE_P(Network, Mistakes, ::testing::ValuesIn(kNetworks), kName);

// A step rejected because of a wrong state leaves its row unchanged.
TEST(Mistakes, LeaveTheRowAsItWas) {
  State state;
  state.set("position", at::full({1}, 3, at::kLong));
  Session session(compiled_language());
  const Session::RowId row = session.add(state);
  EXPECT_THROW(session.step({{row, 1}}), Error);
  EXPECT_EQ(session.tokens_seen(row), 3);
}

}  // namespace
}  // namespace rondo::test
