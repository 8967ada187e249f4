// Decoding against the forward pass of training: the same weights agree, different ones do not.
#include "rondo/infer/agreement.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

std::shared_ptr<EncoderDecoder> drawn_translator(uint64_t seed) {
  EncoderDecoderConfig c;
  c.source_vocabulary = c.target_vocabulary = 260;
  c.padding = 256;
  c.width = 32;
  c.hidden = 64;
  c.heads = 2;
  c.depth.scheme = "ring";
  c.depth.levels = 3;
  auto model = std::make_shared<EncoderDecoder>(c);
  nn::initialize(*model, seed);
  // Signals start at zero: make them non-zero.
  const at::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    if (item.key().find("signal") != std::string::npos) item.value().uniform_(-0.1, 0.1);
  }
  return model;
}

TEST(GreedyAgreement, HoldsForTheSameWeightsAlone) {
  const std::shared_ptr<const Tokenizer> bytes = make_tokenizer("bytes");
  const std::vector<std::string> lines = {"a theme",           "comes back", "",
                                          "each time changed", "a little",   "until it ends"};
  for (const nn::WeightFormat format : {nn::WeightFormat::fp32, nn::WeightFormat::bf16}) {
    for (const SignalMode signals : {SignalMode::folded, SignalMode::apart}) {
      at::manual_seed(3);
      const auto model = drawn_translator(1);
      at::manual_seed(3);
      const auto same = drawn_translator(1);
      TranslatorOptions options;
      options.beam.beam = 1;
      options.batch = 4;
      const Translator translator(
          std::make_shared<CompiledTranslationModel>(*model, format, signals), {bytes, bytes},
          options);
      const std::vector<Translation> written = translator.translate(lines);
      const bool bf16 = format == nn::WeightFormat::bf16;
      const Agreement found = greedy_agreement(translator, *same, bf16, lines, written);
      EXPECT_EQ(found.sentences, 5);
      if (!bf16) {  // rounding may break a tie of random weights
        EXPECT_EQ(found.same, 5);
      }

      const auto other = drawn_translator(2);
      EXPECT_LT(greedy_agreement(translator, *other, bf16, lines, written).same, 5);
    }
  }
}

}  // namespace
}  // namespace rondo
