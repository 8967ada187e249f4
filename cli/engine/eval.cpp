// rondo eval of a language model: bits per token and byte, word perplexity, and the loss by
// position in the document. (Translation models: eval_translation.cpp; images: eval_image.cpp.)
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/eval_image.h"
#include "cli/engine/eval_translation.h"
#include "cli/engine/session.h"
#include "cli/verbs.h"
#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/eval/trained.h"
#include "rondo/train/language_score.h"

namespace rondo::cli {
namespace {

std::string source_of(const EvalOptions& options, const TextConfig& data) {
  if (!options.data.empty()) return options.data;
  const std::string source = options.split == "train"   ? data.train
                             : options.split == "valid" ? data.valid
                                                        : data.test;
  if (source.empty()) {
    throw Error(ExitCode::usage, fmt::format("{}: names no {} data", options.run, options.split),
                "say which documents: --data FOLDER");
  }
  return source;
}

struct Range {
  int64_t first;
  int64_t last;
};

Range bucket_range(size_t k) { return {k == 0 ? 0 : int64_t{1} << k, (int64_t{1} << (k + 1)) - 1}; }

void print_score_json(const LanguageScore& s, const Documents& documents) {
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
  const nlohmann::json out = {{"documents", documents.count()},
                              {"tokens", s.tokens},
                              {"bits_per_token", s.bits_per_token()},
                              {"bits_per_byte", s.bits_per_byte()},
                              {"word_perplexity", s.word_perplexity()},
                              {"tokens_per_second", static_cast<double>(s.tokens) / s.seconds},
                              {"by_position", curve}};
  fmt::print("{}\n", out.dump(2));
}

void print_score(const LanguageScore& s, const Documents& documents) {
  fmt::print("documents         {}\n", documents.count());
  fmt::print("tokens scored     {}\n", with_commas(s.tokens));
  fmt::print("bits per token    {:.4f}\n", s.bits_per_token());
  fmt::print("bits per byte     {:.4f}\n", s.bits_per_byte());
  fmt::print("word perplexity   {:.2f}\n", s.word_perplexity());
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

void evaluate_language(const EvalOptions& options) {
  const TrainedLanguageModel trained = load_language_model(options.run, options.tokenizer);
  if (options.without_state && !trained.model->config().time.recurrent()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: has no recurrent states to do without", options.run),
                "leave --without-state out");
  }
  const Documents documents = Documents::open(
      {source_of(options, trained.data), cache_folder(options.cache)}, *trained.tokenizer);
  const bool uses_state = !options.state_in.empty() || !options.state_out.empty();
  State state;
  if (!options.state_in.empty()) {
    state = State::load(options.state_in, trained.fingerprint()).without("logits");
  }
  rondo::ScoreOptions how;
  how.rows = uses_state ? 1 : std::min(options.rows, documents.count());
  how.length = trained.model->config().time.segment;
  how.max_tokens = options.tokens;
  how.progress = true;
  how.zero_states = options.without_state;
  const LanguageScore score =
      score_documents(*trained.model, documents, how, uses_state ? &state : nullptr);
  if (!options.state_out.empty()) state.save(options.state_out, trained.fingerprint());
  options.json ? print_score_json(score, documents) : print_score(score, documents);
}

}  // namespace
}  // namespace rondo::cli

void rondo_engine_eval(const rondo::cli::EvalOptions& options) {
  using namespace rondo::cli;
  start_engine(options.compute);
  const std::string task = rondo::find_trained(options.run).model.task();
  if (task == "image") return evaluate_images(options);
  task == "translation" ? evaluate_translation(options) : evaluate_language(options);
}
