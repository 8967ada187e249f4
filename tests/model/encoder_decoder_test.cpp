// Translation models of the zoo: the decoder does not see later tokens, results do not depend on
// how the target is split, and padding has no effect.
#include "rondo/model/encoder_decoder.h"

#include "tests/support/expect.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr int64_t kTarget = 9;

class TranslatorConformance : public ::testing::TestWithParam<std::string> {
 protected:
  EncoderDecoder& network() const { return dynamic_cast<EncoderDecoder&>(*m_.network); }
  const EncoderDecoderConfig& config() const {
    return std::get<EncoderDecoderConfig>(m_.config.network);
  }
  Tensor decode_in_pieces(const Tensor& source, const Tensor& target, int64_t piece) const {
    State state = network().encode(source, Scope());
    std::vector<Tensor> parts;
    for (int64_t done = 0; done < target.size(1); done += piece) {
      const int64_t count = std::min(piece, target.size(1) - done);
      parts.push_back(network().decode(target.narrow(1, done, count), state, Scope()));
    }
    return at::cat(parts, 1);
  }

  at::NoGradGuard no_grad_;
  TinyModel m_ = TinyModel(shrink(find_model(GetParam()).config()));
  NamedTensors in_ = tiny_inputs(m_.config, 3, 2, kTarget);
};

TEST_P(TranslatorConformance, WholeEqualsPiecesEqualsTokenByToken) {
  const Tensor whole = m_.logits(in_);
  for (const int64_t piece : {1, 3, 4, 9}) {
    expect_near(decode_in_pieces(in_.at("source"), in_.at("target"), piece), whole, 1e-5,
                "pieces of " + std::to_string(piece));
  }
}

TEST_P(TranslatorConformance, NoTargetTokenSeesTheFuture) {
  const Tensor before = m_.logits(in_);
  for (const int64_t at : {1, 4, 6}) {
    NamedTensors changed = in_;
    changed["target"] = in_.at("target").clone();
    changed["target"].select(1, at).fill_(5).select(0, 1).fill_(6);
    const Tensor difference = (m_.logits(changed) - before).abs().amax(-1);  // [B, T]
    EXPECT_EQ(difference.narrow(1, 0, at).max().item<double>(), 0.0) << at;
    EXPECT_GT(difference.narrow(1, at, kTarget - at).max().item<double>(), 0.0) << at;
  }
}

TEST_P(TranslatorConformance, EveryTargetTokenSeesTheWholeSource) {
  NamedTensors changed = in_;
  changed["source"] = in_.at("source").clone();
  // The last word of the second row, which has no padding.
  changed["source"][1][-1] = changed["source"][1][-1].item<int64_t>() == 5 ? 6 : 5;
  const Tensor difference = (m_.logits(changed) - m_.logits(in_)).abs().amax(-1);
  EXPECT_GT(difference[1].min().item<double>(), 0.0);
  EXPECT_EQ(difference[0].max().item<double>(), 0.0) << "other rows do not change";
}

TEST_P(TranslatorConformance, MorePaddingChangesNothing) {
  const Tensor padding = at::full({3, 2}, config().padding, at::kLong);
  NamedTensors longer = in_;
  longer["source"] = at::cat({in_.at("source"), padding}, 1);
  longer["target"] = at::cat({in_.at("target"), padding}, 1);
  expect_near(m_.logits(longer).narrow(1, 0, kTarget), m_.logits(in_), 1e-5);
}

TEST_P(TranslatorConformance, AStateKeptInAFileGoesOnExactly) {
  const Tensor target = in_.at("target");
  State state = network().encode(in_.at("source"), Scope());
  network().decode(target.narrow(1, 0, 4), state, Scope());
  const TemporaryFile file(".state");
  state.save(file.path(), "a model");
  const Tensor rest = target.narrow(1, 4, kTarget - 4);
  const Tensor uninterrupted = network().decode(rest, state, Scope());
  State loaded = State::load(file.path(), "a model");
  expect_identical(network().decode(rest, loaded, Scope()), uninterrupted);
}

TEST_P(TranslatorConformance, BeamsMayBeReorderedAndDropped) {
  const Tensor source = in_.at("source");
  const Tensor target = in_.at("target");
  const Tensor order = at::tensor({1, 1, 2, 0}, at::kLong);
  State state = network().encode(source, Scope());
  network().decode(target.narrow(1, 0, 3), state, Scope());
  State beams = state.select(order);
  const Tensor next = target.narrow(1, 3, 2);
  expect_near(network().decode(next.index_select(0, order), beams, Scope()),
              network().decode(next, state, Scope()).index_select(0, order), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Zoo, TranslatorConformance, ::testing::ValuesIn(zoo_names("translation")),
                         NameOfModel());

TEST(Translation, UniversalLevelsAddTheOnlyPositionCode) {
  // fairseq numbers positions from the padding token on; without padding its number does not
  // matter.
  const at::NoGradGuard no_grad;
  const Tensor source = at::tensor({5, 9, 9, 20}, at::kLong).view({1, 4});
  const auto encoded = [&](const std::string& scheme, int64_t padding) {
    ModelConfig config = shrink(find_model("sret/mt-wmt").config());
    auto& c = std::get<EncoderDecoderConfig>(config.network);
    c.depth.scheme = scheme;
    c.padding = padding;
    const TinyModel m(config);
    return dynamic_cast<EncoderDecoder&>(*m.network).encode(source, Scope()).get("memory");
  };
  expect_identical(encoded("universal", 3), encoded("universal", 1));
  EXPECT_FALSE(encoded("vanilla", 3).allclose(encoded("vanilla", 1)));
}

TEST(Translation, LossIgnoresPaddingAndNegativeLabels) {
  const TinyModel m(shrink(find_model("ringformer/mt-base").config()));
  NamedTensors in = tiny_inputs(m.config, 2, 1, 5);
  const NamedTensors out = {{"logits", m.logits(in)}};
  const Tensor labels = at::tensor({3, 7, 0, -1, 0, 9, 0, 0, 1, 2}, at::kLong).view({2, 5});
  in["labels"] = labels;
  const Tensor log_p = at::log_softmax(out.at("logits"), -1);
  double sum = 0.0;
  for (const auto& [b, t] :
       std::vector<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 3}, {1, 4}}) {
    sum -= log_p[b][t][labels[b][t].item<int64_t>()].item<double>();
  }
  EXPECT_NEAR(m.network->loss(in, out).item<double>(), sum / 5.0, 1e-5);
  in["labels"] = at::zeros({2, 5}, at::kLong);
  EXPECT_EQ(m.network->loss(in, out).item<double>(), 0.0) << "nothing is scored";
  in["labels"] = at::full({2, 5}, 41, at::kLong);
  expect_error(ExitCode::bad_input, "expected values below 41, got 41",
               [&] { m.network->loss(in, out); });
}

TEST(Translation, InputsThatDoNotFitAreNamed) {
  const TinyModel m(shrink(find_model("ringformer/mt-base").config()));
  const NamedTensors in = tiny_inputs(m.config, 2, 1, 5);
  expect_error(ExitCode::bad_input, "expected 2 rows, as in source, got 1", [&] {
    m.logits({{"source", in.at("source")}, {"target", in.at("target").narrow(0, 0, 1)}});
  });
  expect_error(ExitCode::bad_input, "'target' is missing", [&] {
    m.logits({{"source", in.at("source")}});
  });
  expect_error(ExitCode::bad_input, "source: expected tokens from 0 to 36, got 37", [&] {
    m.logits({{"source", at::full({2, 3}, 37, at::kLong)}, {"target", in.at("target")}});
  });
}

}  // namespace
}  // namespace rondo::test
