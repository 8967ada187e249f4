// Runs a translation through the network again and observes its cross-attention.
#include "rondo/study/cross_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/error.h"
#include "rondo/base/require.h"
#include "rondo/base/text.h"

namespace rondo::study {
namespace {

class CrossObserver : public Observer {
 public:
  bool wants(const std::string& name) override {
    return name.find(".cross.probabilities") != std::string::npos;
  }
  void activation(const std::string& /*name*/, const Tensor& value) override {
    levels.push_back(value[0].to(at::kDouble).mean(0));  // [T, S]
  }
  std::vector<Tensor> levels;  // in order of depth
};

std::string token_text(const Tokenizer& tokenizer, int32_t token) {
  const std::string text = tokenizer.decode({token});
  if (text.empty()) return "</s>";
  return text == " " ? "␣" : printable(text);
}

Tensor row_of(const std::vector<int32_t>& tokens) {
  const std::vector<int64_t> wide(tokens.begin(), tokens.end());
  return at::tensor(wide, at::kLong).unsqueeze(0);  // [1, T]
}

}  // namespace

SentenceAttention sentence_attention(EncoderDecoder& model, const Translator& translator,
                                     const std::string& line) {
  if (is_blank(line)) {
    throw Error(ExitCode::bad_input, "activations: expected a sentence, got an empty line",
                "pass it as --input \"…\"");
  }
  const Translation::Candidate best = translator.translate({line}).front().candidates.front();
  const PairTokenizers& tokenizers = translator.tokenizers();
  SentenceAttention found;
  found.source = line;
  found.target = best.text;
  std::vector<int32_t> source = tokenizers.source->encode(line);
  const int32_t end = tokenizers.source->special_tokens().end;
  if (end >= 0) source.push_back(end);
  // Position t of the decoder consumes token t - 1 and generates token t.
  std::vector<int32_t> read = {tokenizers.target->special_tokens().begin};
  read.insert(read.end(), best.tokens.begin(), best.tokens.end());
  for (const int32_t t : source) found.source_tokens.push_back(token_text(*tokenizers.source, t));
  for (const int32_t t : best.tokens) {
    found.target_tokens.push_back(token_text(*tokenizers.target, t));
  }
  found.target_tokens.emplace_back("</s>");
  const at::NoGradGuard no_grad;
  CrossObserver observer;
  State state = model.encode(row_of(source), Scope());
  model.decode(row_of(read), state, Scope(&observer));
  found.levels = observer.levels;
  return found;
}

StudyReport cross_attention_report(const std::vector<SentenceAttention>& found) {
  StudyReport report("Cross-attention of translations");
  report.page.paragraph(
      "Cross-attention of each decoder level, averaged over heads: rows are the generated tokens, "
      "columns those of the source. All levels of a sentence share one color scale.");
  for (const SentenceAttention& sentence : found) {
    report.page.heading(printable(sentence.source));
    report.page.paragraph("Translated: " + printable(sentence.target));
    nlohmann::json numbers = {{"source", sentence.source},
                              {"target", sentence.target},
                              {"source_tokens", sentence.source_tokens},
                              {"target_tokens", sentence.target_tokens}};
    double highest = 0;
    for (const Tensor& level : sentence.levels) {
      highest = std::max(highest, level.max().item<double>());
    }
    for (size_t i = sentence.levels.size(); i-- > 0;) {  // the last level first
      HeatMap map;
      map.title = fmt::format("Cross-attention of decoder level {}", i + 1);
      map.x_label = "source";
      map.y_label = "";
      map.legend = "share";
      map.rows = sentence.target_tokens;
      map.columns = sentence.source_tokens;
      map.values = grid_of(sentence.levels[i]);
      map.low = 0;
      map.high = highest;
      report.page.figure(heat_map(map), map.title + ".");
      numbers["levels"].push_back({{"level", i + 1}, {"attention", json_of(sentence.levels[i])}});
    }
    report.numbers["sentences"].push_back(numbers);
    report.summary += fmt::format("{} → {}\n", sentence.source, sentence.target);
  }
  return report;
}

}  // namespace rondo::study
