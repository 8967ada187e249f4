// Beam search against two independent searches: an exhaustive one, and a plain one that runs the
// whole network again for every hypothesis. Also: the translations of a sentence do not depend on
// its neighbors, on folding or on the threads.
#include "rondo/infer/beam_search.h"

#include <cmath>

#include "rondo/infer/runtime.h"
#include "tests/support/expect.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr int64_t kPadding = 0;

EncoderDecoderConfig tiny_translator(const std::string& scheme, int64_t vocabulary) {
  EncoderDecoderConfig c;
  c.source_vocabulary = 11;
  c.target_vocabulary = vocabulary;
  c.padding = kPadding;
  c.width = 16;
  c.hidden = 24;
  c.heads = 2;
  c.depth.scheme = scheme;
  c.depth.levels = 2;
  return c;
}

std::shared_ptr<EncoderDecoder> made(const EncoderDecoderConfig& config, uint64_t seed) {
  auto model = std::make_shared<EncoderDecoder>(config);
  nn::initialize(*model, seed);
  const at::NoGradGuard no_grad;
  at::manual_seed(seed);
  // Signals start at zero: make them matter. Larger weights give sharper, more varied predictions.
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() == 2) item.value().add_(at::randn_like(item.value()) * 0.3);
  }
  model->eval();
  return model;
}

SearchTokens special_tokens_of(int64_t /*vocabulary*/) {
  SearchTokens special_tokens;
  special_tokens.begin = 1;
  special_tokens.end = 2;
  special_tokens.banned = {0, 1};
  return special_tokens;
}

auto search(const CompiledTranslationModel& model, const Tensor& source,
            const SearchTokens& special_tokens, const BeamOptions& options) {
  const Runtime::Turn turn(Runtime::get());
  return beam_search(model, source, special_tokens, options, turn.team());
}

auto search(const EncoderDecoder& model, const Tensor& source, const SearchTokens& special_tokens,
            const BeamOptions& options) {
  return search(CompiledTranslationModel(model), source, special_tokens, options);
}

// log p of the next token after `prefix` for one sentence, by the whole network. [V]
Tensor next_log_probabilities(EncoderDecoder& model, const Tensor& source,
                              const std::vector<int32_t>& prefix) {
  std::vector<int64_t> target = {1};
  target.insert(target.end(), prefix.begin(), prefix.end());
  const Tensor tokens = at::tensor(target, at::kLong).unsqueeze(0);
  State state;
  const Tensor logits =
      model.forward({{"source", source}, {"target", tokens}}, state, Scope()).at("logits");
  Tensor last = logits[0][-1].to(at::kDouble).clone();
  last[0] = last[1] = -INFINITY;
  return at::log_softmax(last, 0);
}

struct Path {
  std::vector<int32_t> tokens;
  double log_p = 0;
};

double rank_of(const Path& path, double penalty) {
  return path.log_p / std::pow(static_cast<double>(path.tokens.size() + 1), penalty);
}

// Every sequence of at most `most` tokens (the end included), its log p with the end.
void all_paths(EncoderDecoder& model, const Tensor& source, const Path& from, int64_t most,
               std::vector<Path>& out) {
  const Tensor next = next_log_probabilities(model, source, from.tokens);
  out.push_back({from.tokens, from.log_p + next[2].item<double>()});
  if (static_cast<int64_t>(from.tokens.size()) + 1 == most) return;
  for (int64_t token = 3; token < next.size(0); ++token) {
    Path longer = from;
    longer.tokens.push_back(static_cast<int32_t>(token));
    longer.log_p += next[token].item<double>();
    all_paths(model, source, longer, most, out);
  }
}

TEST(BeamSearch, AWideBeamFindsTheBestOfAllSequences) {
  const at::NoGradGuard no_grad;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto model = made(tiny_translator("ring", 6), seed);
    const Tensor source = at::tensor({3, 7, 5, 2}, at::kLong).unsqueeze(0);
    std::vector<Path> paths;
    all_paths(*model, source, {}, 4, paths);
    const auto best = std::max_element(
        paths.begin(), paths.end(),
        [](const Path& a, const Path& b) { return rank_of(a, 1.0) < rank_of(b, 1.0); });
    BeamOptions o;
    o.beam = 40;  // of 3 + 9 + 27 prefixes: nothing is ever dropped
    o.max_length = 4;
    const auto found = search(*model, source, special_tokens_of(6), o);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0][0].tokens, best->tokens);
    EXPECT_NEAR(found[0][0].log_probability, best->log_p, 1e-4);
    EXPECT_NEAR(found[0][0].score, rank_of(*best, 1.0), 1e-4);
  }
}

// Textbook beam search, with a whole forward pass per hypothesis and step.
std::vector<Path> plain_search(EncoderDecoder& model, const Tensor& source, int64_t beam,
                               int64_t most, double penalty) {
  std::vector<Path> live = {{}};
  std::vector<Path> done;
  for (int64_t length = 1; length <= most && !live.empty(); ++length) {
    struct Step {
      double log_p;
      size_t from;
      int32_t token;
    };
    std::vector<Step> steps;
    for (size_t i = 0; i < live.size(); ++i) {
      const Tensor next = next_log_probabilities(model, source, live[i].tokens);
      for (int64_t token = 2; token < next.size(0); ++token) {
        if (length == most && token != 2) continue;
        steps.push_back(
            {live[i].log_p + next[token].item<double>(), i, static_cast<int32_t>(token)});
      }
    }
    std::sort(steps.begin(), steps.end(),
              [](const Step& a, const Step& b) { return a.log_p > b.log_p; });
    std::vector<Path> next_live;
    for (size_t k = 0; k < steps.size() && static_cast<int64_t>(k) < 2 * beam; ++k) {
      Path path = live[steps[k].from];
      path.log_p = steps[k].log_p;
      if (steps[k].token == 2) {
        if (static_cast<int64_t>(k) < beam) done.push_back(path);
      } else if (static_cast<int64_t>(next_live.size()) < beam) {
        path.tokens.push_back(steps[k].token);
        next_live.push_back(path);
      }
    }
    live = static_cast<int64_t>(done.size()) >= beam ? std::vector<Path>{} : next_live;
  }
  std::stable_sort(done.begin(), done.end(), [&](const Path& a, const Path& b) {
    return rank_of(a, penalty) > rank_of(b, penalty);
  });
  return done;
}

class Schemes : public ::testing::TestWithParam<const char*> {};

TEST_P(Schemes, EqualsThePlainSearch) {
  const at::NoGradGuard no_grad;
  const auto model = made(tiny_translator(GetParam(), 9), 5);
  // Three sentences of different lengths in one batch.
  const std::vector<std::vector<int64_t>> sentences = {
      {3, 7, 5, 2}, {9, 2}, {4, 4, 8, 10, 6, 3, 2}};
  Tensor source = at::full({3, 7}, kPadding, at::kLong);
  for (int64_t r = 0; r < 3; ++r) {
    const auto& s = sentences[static_cast<size_t>(r)];
    source[r].narrow(0, 0, static_cast<int64_t>(s.size())).copy_(at::tensor(s, at::kLong));
  }
  for (const int64_t beam : {1, 2, 5}) {
    BeamOptions o;
    o.beam = beam;
    o.n_best = beam;
    o.length_penalty = 0.6;
    o.max_ratio = 1.0;
    o.max_extra = 2;
    const auto found = search(*model, source, special_tokens_of(9), o);
    for (size_t r = 0; r < 3; ++r) {
      const auto length = static_cast<int64_t>(sentences[r].size());
      const Tensor alone = at::tensor(sentences[r], at::kLong).unsqueeze(0);
      const std::vector<Path> plain = plain_search(*model, alone, beam, length + 2, 0.6);
      ASSERT_EQ(found[r].size(), std::min<size_t>(plain.size(), static_cast<size_t>(beam)));
      for (size_t k = 0; k < found[r].size(); ++k) {
        EXPECT_EQ(found[r][k].tokens, plain[k].tokens) << "beam " << beam << " row " << r;
        EXPECT_NEAR(found[r][k].log_probability, plain[k].log_p, 1e-4);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Schemes,
                         ::testing::Values("vanilla", "universal", "one-wide", "ring"));

// Rows of a search continue as copies of others, several times between two tokens: the result is as
// if each had been decoded alone.
TEST(CompiledTranslation, ContinuesTheRowsItNames) {
  const auto model = made(tiny_translator("ring", 9), 3);
  const at::NoGradGuard no_grad;
  const auto numbers = [](const std::vector<int64_t>& tokens) {
    return at::tensor(tokens, at::kLong);
  };
  const Tensor source = numbers({3, 4, 5, 6, 7, 8, kPadding, kPadding}).view({2, 4});
  const CompiledTranslationModel compiled(*model);
  CompiledTranslationModel::Workspace workspace;
  const Runtime::Turn turn(Runtime::get());
  std::vector<RowPast> rows = compiled.encode(source, turn.team(), workspace);
  const auto step = [&](const std::vector<int64_t>& tokens) {
    StepRows all;
    for (RowPast& row : rows) all.push_back(&row);
    compiled.step(all, tokens, turn.team(), workspace);
  };
  const auto follow = [&](const std::vector<size_t>& from) {
    std::vector<RowPast> next;
    for (const size_t row : from) next.push_back(rows[row].clone());
    rows = std::move(next);
  };
  step({1, 1});
  follow({0, 0, 1, 1});
  step({5, 7, 6, 3});
  follow({1, 0, 3, 2});
  follow({0, 0, 3, 2});
  step({4, 6, 8, 5});
  follow({2, 3});
  step({3, 6});
  const Tensor prefixes = numbers({1, 6, 8, 3, 1, 3, 5, 6}).view({2, 4});
  for (int64_t row = 0; row < 2; ++row) {
    State plain = model->encode(source.narrow(0, 1, 1), Scope());
    const Tensor want = model->decode(prefixes.narrow(0, row, 1), plain, Scope())[0][3];
    const nn::Rows logits = workspace.logits.rows(2);
    expect_near(at::from_blob(logits[row], {9}), want, 1e-5);
  }
}

// Whatever the format, reference kernels use the network's own modules, in encoder and decoder.
TEST(CompiledTranslation, ReferenceKernelsReachBothStacks) {
  const auto model = made(tiny_translator("ring", 9), 3);
  const at::NoGradGuard no_grad;
  const Tensor source =
      at::tensor(std::vector<int64_t>{3, 4, 5, 6, 7, 8, kPadding, kPadding}, at::kLong)
          .view({2, 4});
  const CompiledTranslationModel compiled(*model, nn::WeightFormat::int8);
  const auto difference = [&] {  // of the second token's logits computed by the network
    CompiledTranslationModel::Workspace workspace;
    const Runtime::Turn turn(Runtime::get());
    std::vector<RowPast> rows = compiled.encode(source, turn.team(), workspace);
    StepRows all = {&rows[0], &rows[1]};
    compiled.step(all, {1, 1}, turn.team(), workspace);
    compiled.step(all, {5, 6}, turn.team(), workspace);
    State state = model->encode(source, Scope());
    const Tensor target = at::tensor(std::vector<int64_t>{1, 5, 1, 6}, at::kLong).view({2, 2});
    const Tensor want = model->decode(target, state, Scope()).select(1, 1);  // [2, V]
    const nn::Rows logits = workspace.logits.rows(2);
    const Tensor got = at::from_blob(logits.data, {2, 9}, {logits.stride, 1}, at::kFloat);
    return (got - want).abs().max().item<double>();
  };
  EXPECT_GT(difference(), 1e-4) << "weights of 8 bits";
  const nn::Kernels before = nn::kernels_in_use();
  nn::use_kernels(nn::Kernels::reference);
  const double plain = difference();
  nn::use_kernels(before);
  EXPECT_LE(plain, 1e-5);
}

TEST(BeamSearch, StaysWithinItsLength) {
  const auto model = made(tiny_translator("ring", 9), 6);
  const Tensor source = at::tensor({3, 7, 5, 2}, at::kLong).unsqueeze(0);
  for (const int64_t most : {1, 2, 3}) {
    BeamOptions o;
    o.max_length = most;
    const auto found = search(*model, source, special_tokens_of(9), o);
    for (const Hypothesis& h : found[0]) {
      EXPECT_LT(static_cast<int64_t>(h.tokens.size()), most);
    }
  }
}

// Decoding with fewer bits still scores the best tokens with the original weights.
TEST(BeamSearch, ARoundedHeadKnowsItsExactLogits) {
  for (const char* style : {"ringformer", "fairseq"}) {
    for (const nn::WeightFormat format : {nn::WeightFormat::bf16, nn::WeightFormat::int8}) {
      SCOPED_TRACE(style);
      EncoderDecoderConfig c = tiny_translator("vanilla", 40);
      c.style = style;
      const at::NoGradGuard no_grad;
      const auto exact = made(c, 5);
      EXPECT_FALSE(CompiledTranslationModel(*exact).head_is_rounded());
      const CompiledTranslationModel rounded(*exact, format);
      ASSERT_TRUE(rounded.head_is_rounded());
      const Tensor rows = at::randn({7, c.width});
      const Tensor tokens = at::randint(40, {7, 3}, at::kLong);
      const Tensor want = exact->head(rows, Scope()).gather(1, tokens);
      const Tensor got = rounded.exact_logits({rows.data_ptr<float>(), 7, c.width}, tokens);
      EXPECT_LE((got - want).abs().max().item<double>(), 1e-5);
    }
  }
}

TEST(BeamSearch, BannedTokensAreNeverWritten) {
  const auto model = made(tiny_translator("ring", 9), 7);
  SearchTokens special_tokens = special_tokens_of(9);
  special_tokens.banned = {0, 1, 4, 5, 6, 7};
  BeamOptions o;
  o.n_best = 5;
  const Tensor source = at::tensor({3, 7, 5, 2}, at::kLong).unsqueeze(0);
  const auto found = search(*model, source, special_tokens, o);
  for (const Hypothesis& h : found[0]) {
    for (const int32_t token : h.tokens) EXPECT_TRUE(token == 3 || token == 8) << token;
  }
}

class Folded : public ::testing::TestWithParam<const char*> {};

// All ways of Table 4 to add a signal give the same network when folded into the weights.
TEST_P(Folded, SignalsComputeTheSame) {
  const at::NoGradGuard no_grad;
  EncoderDecoderConfig config = tiny_translator("ring", 9);
  const std::string name = GetParam();
  if (name == "no-attention") config.depth.ring.attention = "none";
  if (name == "no-feed-forward") config.depth.ring.feed_forward = "none";
  if (name == "before") config.depth.ring.attention = "before";
  if (name == "inter") config.depth.ring.feed_forward = "inter";
  if (name == "full") config.depth.ring.full_rank = true;
  const auto model = made(config, 8);
  const NamedTensors in = {{"source", at::randint(3, 11, {3, 6}, at::kLong)},
                           {"target", at::randint(3, 9, {3, 5}, at::kLong)}};
  State state;
  const Tensor apart = model->forward(in, state, Scope()).at("logits");
  const SearchTokens special_tokens = special_tokens_of(9);
  BeamOptions o;
  o.n_best = 5;
  const Tensor source = in.at("source");
  const auto folded = search(CompiledTranslationModel(*model), source, special_tokens, o);
  const auto kept =
      search(CompiledTranslationModel(*model, nn::WeightFormat::fp32, SignalMode::apart), source,
             special_tokens, o);
  ASSERT_EQ(folded.size(), kept.size());
  for (size_t i = 0; i < folded.size(); ++i) {
    ASSERT_EQ(folded[i].size(), kept[i].size());
    for (size_t k = 0; k < folded[i].size(); ++k) {
      EXPECT_EQ(folded[i][k].tokens, kept[i][k].tokens);
      EXPECT_NEAR(folded[i][k].score, kept[i][k].score, 1e-5);
    }
  }
  expect_identical(model->forward(in, state, Scope()).at("logits"), apart);  // unchanged
}

INSTANTIATE_TEST_SUITE_P(All, Folded,
                         ::testing::Values("ours", "no-attention", "no-feed-forward", "before",
                                           "inter", "full"));

}  // namespace
}  // namespace rondo::test
