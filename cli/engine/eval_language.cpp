// rondo eval of a language model: bits per token and byte, word perplexity, and the loss by
// position in the document.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/eval_tasks.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/infer/load.h"
#include "rondo/train/language_score.h"

namespace rondo::cli {
namespace {

struct Range {
  int64_t first;
  int64_t last;
};

Range bucket_range(size_t k) { return {k == 0 ? 0 : int64_t{1} << k, (int64_t{1} << (k + 1)) - 1}; }

struct LanguageTest {
  LanguageScore score;
  int64_t documents = 0;
  TestItems items;
};

void print_score_json(const LanguageTest& test) {
  const LanguageScore& s = test.score;
  nlohmann::json curve = nlohmann::json::array();
  for (size_t k = 0; k < s.by_position.size(); ++k) {
    const auto& b = s.by_position[k];
    if (b.tokens == 0) continue;
    const Range range = bucket_range(k);
    curve.push_back({{"first", range.first},
                     {"last", range.last},
                     {"tokens", b.tokens},
                     {"bits_per_token", b.nats / M_LN2 / static_cast<double>(b.tokens)}});
  }
  const nlohmann::json out = {{"documents", test.documents},
                              {"tokens", s.tokens},
                              {"bits_per_token", s.bits_per_token()},
                              {"bits_per_byte", s.bits_per_byte()},
                              {"word_perplexity", s.word_perplexity()},
                              {"tokens_per_second", static_cast<double>(s.tokens) / s.seconds},
                              {"metrics", metrics_json(test.items)},
                              {"by_position", curve}};
  fmt::print("{}\n", out.dump(2));
}

void print_score(const LanguageTest& test) {
  const LanguageScore& s = test.score;
  fmt::print("documents         {}\n", test.documents);
  fmt::print("tokens scored     {}\n", with_commas(s.tokens));
  fmt::print("bits per token    {:.4f}{}\n", s.bits_per_token(),
             interval_text("bits_per_token", test.items));
  fmt::print("bits per byte     {:.4f}{}\n", s.bits_per_byte(),
             interval_text("bits_per_byte", test.items));
  fmt::print("word perplexity   {:.2f}{}\n", s.word_perplexity(),
             interval_text("word_perplexity", test.items));
  fmt::print("tokens per second {:.0f}\n\n", static_cast<double>(s.tokens) / s.seconds);
  fmt::print("{:>23} {:>12} {:>15}\n", "position in document", "tokens", "bits per token");
  for (size_t k = 0; k < s.by_position.size(); ++k) {
    const auto& b = s.by_position[k];
    if (b.tokens == 0) continue;
    const Range range = bucket_range(k);
    fmt::print("{:>11}-{:<11} {:>12} {:>15.4f}\n", range.first, range.last, with_commas(b.tokens),
               b.nats / M_LN2 / static_cast<double>(b.tokens));
  }
}

LanguageTest test_language(const EvalOptions& options) {
  const Verify verify = verify_as(options.load);
  const TrainedLanguageModel trained = load_language_model(options.run, options.tokenizer, verify);
  if (options.without_state && !trained.model->stack().has_states()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: --without-state needs a model with recurrent states", options.run),
                "omit --without-state");
  }
  const bool uses_state = !options.state_in.empty() || !options.state_out.empty();
  State state;
  if (!options.state_in.empty()) {
    state = trained.model->load_state(options.state_in, trained.fingerprint(), 1, verify);
  }
  Documents documents =
      Documents::open({test_source(options), cache_folder(options.cache)}, *trained.tokenizer);
  if (options.tokens > 0) documents.shorten(options.tokens);
  rondo::ScoreOptions how;
  how.rows = uses_state ? 1 : std::min(options.rows, documents.count());
  how.length = trained.model->config().time.segment;
  how.progress = true;
  how.zero_states = options.without_state;
  LanguageTest test;
  how.items = &test.items;
  test.score = score_documents(*trained.model, documents, how, uses_state ? &state : nullptr);
  test.documents = documents.count();
  if (!options.state_out.empty()) state.save(options.state_out, trained.fingerprint());
  return test;
}

}  // namespace

TestItems evaluate_language(const EvalOptions& options) {
  LanguageTest test = test_language(options);
  options.json ? print_score_json(test) : print_score(test);
  return std::move(test.items);
}

TestItems language_items(const EvalOptions& options) { return test_language(options).items; }

}  // namespace rondo::cli
