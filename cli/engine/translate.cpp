// rondo translate: stdin to stdout, line by line, in constant memory.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/engine/decoding.h"
#include "cli/engine/engine_verbs.h"
#include "cli/engine/lines.h"
#include "cli/engine/session.h"
#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/progress.h"
#include "rondo/base/text.h"
#include "rondo/infer/load.h"

namespace rondo::cli {
namespace {

void print_translation(const TranslateOptions& options, int64_t number, const std::string& line,
                       const Translation& t) {
  if (options.json) {
    nlohmann::json candidates = nlohmann::json::array();
    for (const auto& c : t.candidates) {
      candidates.push_back({{"text", c.text},
                            {"score", c.score},
                            {"log_probability", c.log_probability},
                            {"tokens", c.tokens.size()}});
    }
    const nlohmann::json out = {{"source", line},
                                {"source_tokens", t.source_tokens},
                                {"unknown", t.unknown},
                                {"cut", t.cut},
                                {"translations", candidates}};
    fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (options.n_best > 1) {
    for (const auto& c : t.candidates) {
      fmt::print("{} ||| {} ||| logprob={:.6f} ||| {:.6f}\n", number, c.text, c.log_probability,
                 c.score);
    }
  } else {
    fmt::print("{}\n", t.candidates.empty() ? "" : t.candidates.front().text);
  }
}

// The reader may be waiting for each line.
void flush_or_fail() {
  if (std::fflush(stdout) != 0) {
    throw Error(ExitCode::io,
                fmt::format("standard output: cannot write: {}", std::strerror(errno)));
  }
}

}  // namespace

TranslatorOptions translator_options(const DecodingOptions& decoding, int64_t n_best) {
  TranslatorOptions o;
  o.beam.beam = std::max(decoding.beam, n_best);
  o.beam.n_best = n_best;
  o.beam.length_penalty = decoding.length_penalty;
  o.beam.max_length = decoding.max_length;
  o.batch = decoding.batch;
  return o;
}

std::shared_ptr<const CompiledTranslationModel> compile(const EncoderDecoder& model,
                                                        const DecodingOptions& decoding) {
  return std::make_shared<CompiledTranslationModel>(
      model, weight_format(decoding),
      decoding.signals == "apart" ? SignalMode::apart : SignalMode::folded);
}

nn::WeightFormat weight_format(const DecodingOptions& decoding) {
  if (decoding.precision == "bf16") return nn::WeightFormat::bf16;
  return decoding.precision == "int8" ? nn::WeightFormat::int8 : nn::WeightFormat::fp32;
}

void run_translate(const TranslateOptions& options) {
  start_engine(options.compute);
  const TrainedTranslator trained =
      load_translation_model(options.run, options.tokenizer, verify_as(options.load));
  const Translator translator(compile(*trained.model, options.decoding), trained.tokenizers,
                              translator_options(options.decoding, options.n_best));
  LineReader reader(options.input);
  Progress progress("translate", reader.total());
  int64_t done = 0;
  int64_t cut = 0;
  for (auto lines = reader.take(static_cast<size_t>(options.buffer)); !lines.empty();
       lines = reader.take(static_cast<size_t>(options.buffer))) {
    const std::vector<Translation> translations = translator.translate(lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      print_translation(options, done++, lines[i], translations[i]);
      if (translations[i].cut) ++cut;
    }
    flush_or_fail();
    progress.update(done);
  }
  progress.finish();
  if (cut + reader.overlong() > 0) {
    log_warn("{} longer than {} tokens: only the beginning was translated",
             counted(std::max(cut, reader.overlong()), "line was", "lines were"),
             TranslatorOptions().max_source_tokens);
  }
}

}  // namespace rondo::cli
