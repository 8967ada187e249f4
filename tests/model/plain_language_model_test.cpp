// Whole language models against a second implementation: embedding, RMSNorm, every level's window,
// states or memory one pair of vectors at a time (tests/support/plain_recurrence.h), feed-forward,
// tied head. Also with the switches for the failures that Section 3.3 of the Block-Recurrent paper
// warns of.
#include <cmath>

#include "rondo/model/language_model.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/plain_networks.h"
#include "tests/support/plain_recurrence.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr int64_t kPlainTokens = 19;  // several blocks and a part of one

struct LanguageCase {
  const char* name;
  const char* model;
  bool state_ids = true;
  bool normalize = true;
};

LanguageModelConfig language_config(const LanguageCase& given) {
  auto c = std::get<LanguageModelConfig>(shrink(find_model(given.model).config()).network);
  c.depth.levels = 3;
  c.time.recurrent_layers = {2};
  c.time.memory_layer = 2;
  c.time.state_ids = given.state_ids;
  c.time.normalize = given.normalize;
  return c;
}

bool is_recurrent(const LanguageModelConfig& c, int64_t level) {
  return c.time.kind == "block-recurrent" && c.time.recurrent_layers.front() == level + 1;
}

WindowOptions options_of(const LanguageModelConfig& c, int64_t level) {
  WindowOptions o;
  o.shape.heads = c.heads;
  o.window = c.time.window;
  o.normalize = c.time.normalize;
  o.reads_states = is_recurrent(c, level);
  return o;
}

// One document [T] from its beginning → logits [T, V].
Tensor plain_logits(const LanguageModel& model, const Tensor& tokens) {
  const LanguageModelConfig& c = model.config();
  const PlainParts parts(model, 0.0);
  const auto rms = [&](const std::string& name, const Tensor& x) {
    return x / (x.square().mean(-1, true) + 1e-6).sqrt() * parts.weight(name + ".weight");
  };
  const auto modules = model.named_modules("", /*include_self=*/false);
  const Tensor table = parts.weight("embedding");
  Tensor x = table.index_select(0, tokens);
  for (int64_t i = 0; i < c.depth.levels; ++i) {
    const std::string mixing = "stack." + numbered("mixing", i);
    PlainDocument document(*modules[mixing], options_of(c, i));
    const Tensor u = rms("stack." + numbered("norm", 2 * i), x);
    if (c.time.kind == "memorizing" && c.time.memory_layer == i + 1) {
      x = x + document.memorizing(u, c.time.memory_size, c.time.neighbors);
    } else {
      x = x + (is_recurrent(c, i) ? document.recurrent(u, c.time) : document.window(u));
    }
    const std::string feed = "stack." + numbered("feed_forward", i);
    const Tensor h = parts.map(feed + ".up", rms("stack." + numbered("norm", 2 * i + 1), x));
    x = x + parts.map(feed + ".down", h * h.gt(0));  // relu
  }
  return at::matmul(rms("norm", x), table.t()) / std::sqrt(static_cast<double>(c.vocabulary));
}

class PlainLanguageModel : public ::testing::TestWithParam<LanguageCase> {};

TEST_P(PlainLanguageModel, GivesTheSameLogitsWholeAndInPieces) {
  const at::NoGradGuard no_grad;
  const LanguageModelConfig config = language_config(GetParam());
  LanguageModel model(config);
  make_generic(model, 3, 0.1);
  model.eval();
  const bool ids = model.named_parameters().contains("stack.mixing.1.cell.identity");
  EXPECT_EQ(ids, config.time.kind == "block-recurrent" && GetParam().state_ids);
  const Tensor tokens =
      tiny_inputs(ModelConfig{config}, 2, 4, kPlainTokens).at("tokens");  // [2, T]
  const Tensor want = by_rows(tokens, [&](const Tensor& row) { return plain_logits(model, row); });
  for (const int64_t piece : {kPlainTokens, int64_t{1}, int64_t{5}}) {
    State state;
    std::vector<Tensor> parts;
    for (int64_t done = 0; done < kPlainTokens; done += piece) {
      const int64_t count = std::min(piece, kPlainTokens - done);
      parts.push_back(model.forward_tokens(tokens.narrow(1, done, count), state, Scope()));
    }
    expect_near(at::cat(parts, 1), want, 1e-11, "pieces of " + std::to_string(piece));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PlainLanguageModel,
    ::testing::Values(LanguageCase{"memorizing", "brt/memorizing-32k"},
                      LanguageCase{"memorizing_not_normalized", "brt/memorizing-32k", true, false},
                      LanguageCase{"slide", "brt/slide-12l"},
                      LanguageCase{"slide_not_normalized", "brt/slide-12l", true, false},
                      LanguageCase{"fixed_skip", "brt/rec-fixed-skip"},
                      LanguageCase{"fixed_skip_no_ids", "brt/rec-fixed-skip", false, true},
                      LanguageCase{"fixed_skip_not_normalized", "brt/rec-fixed-skip", true, false},
                      LanguageCase{"fixed_skip_neither", "brt/rec-fixed-skip", false, false},
                      LanguageCase{"lstm_dual_neither", "brt/rec-lstm-dual", false, false}),
    [](const auto& given) { return std::string(given.param.name); });

// The failure of Section 3.3: without IDs equal states stay equal forever, with them they diverge.
TEST(StateIds, TellEqualStatesApart) {
  const at::NoGradGuard no_grad;
  for (const bool ids : {true, false}) {
    LanguageModel model(language_config({"", "brt/rec-fixed-skip", ids, true}));
    nn::initialize(model, 1);
    model.eval();
    for (auto& item : model.named_parameters()) {
      if (item.key() == "stack.mixing.1.initial") {
        item.value().copy_(item.value().narrow(0, 0, 1).expand_as(item.value()));
      }
    }
    const Tensor tokens =
        tiny_inputs(ModelConfig{model.config()}, 1, 4, 8 * model.config().time.window).at("tokens");
    State state;
    model.forward_tokens(tokens, state, Scope());
    const Tensor states = state.get("level.1.state")[0];  // [S, D]
    const double apart = (states - states.narrow(0, 0, 1)).abs().max().item<double>();
    if (ids) {
      EXPECT_GT(apart, 1e-2);
    } else {
      EXPECT_LT(apart, 1e-5);
    }
  }
}

}  // namespace
}  // namespace rondo::test
