// Checking translations against the forward pass.
#include "rondo/infer/agreement.h"

#include "rondo/nn/precision.h"

namespace rondo {
namespace {

constexpr size_t kSentencesAtOnce = 32;

// Padded rows of tokens. [B, T]
Tensor padded_rows(const std::vector<std::vector<int64_t>>& rows, int64_t padding) {
  size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const Tensor table = at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)},
                                padding, at::kLong);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].begin(), rows[r].end(), table.data_ptr<int64_t>() + r * longest);
  }
  return table;
}

struct Reread {
  std::vector<std::vector<int64_t>> sources;  // with the end token
  std::vector<std::vector<int64_t>> inputs;   // begin token, then the translation
  std::vector<std::vector<int64_t>> labels;   // the translation, then the end token if not forced
};

int64_t count_same(EncoderDecoder& model, const SearchTokens& special_tokens,
                   const Reread& sentences) {
  const int64_t padding = model.config().padding;
  const Tensor inputs = padded_rows(sentences.inputs, padding);  // [B, T]
  Tensor labels = padded_rows(sentences.labels, padding);
  labels = at::constant_pad_nd(labels, {0, inputs.size(1) - labels.size(1)}, padding);
  State state = model.encode(padded_rows(sentences.sources, padding), Scope());
  const Tensor logits = model.decode(inputs, state, Scope());
  const Tensor allowed =
      logits.index_fill(2, at::tensor(special_tokens.banned, at::kLong), -INFINITY);  // [B, T, V]
  const Tensor same = allowed.argmax(2).eq(labels).logical_or(labels.eq(padding));
  return same.all(1).sum().item<int64_t>();
}

}  // namespace

Agreement greedy_agreement(const Translator& translator, EncoderDecoder& as_trained, bool bf16,
                           const std::vector<std::string>& lines,
                           const std::vector<Translation>& written) {
  const at::NoGradGuard no_grad;
  const nn::MixedPrecision mixed(bf16);
  as_trained.eval();
  const SearchTokens& special_tokens = translator.special_tokens();
  Agreement agreement;
  Reread batch;
  const auto read = [&] {
    if (batch.sources.empty()) return;
    agreement.sentences += static_cast<int64_t>(batch.sources.size());
    agreement.same += count_same(as_trained, special_tokens, batch);
    batch = {};
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    if (written[i].source_tokens == 0 || written[i].cut) continue;
    const std::vector<int32_t> source = translator.tokenizers().source->encode(lines[i]);
    const std::vector<int32_t>& target = written[i].candidates.front().tokens;
    batch.sources.emplace_back(source.begin(), source.end());
    batch.sources.back().push_back(translator.tokenizers().source->special_tokens().end);
    batch.inputs.push_back({special_tokens.begin});
    batch.inputs.back().insert(batch.inputs.back().end(), target.begin(), target.end());
    batch.labels.emplace_back(target.begin(), target.end());
    const auto length = static_cast<int64_t>(batch.sources.back().size());
    const bool had_to_end = static_cast<int64_t>(batch.inputs.back().size()) ==
                            most_tokens(translator.options().beam, length);
    if (!had_to_end) batch.labels.back().push_back(special_tokens.end);
    if (batch.sources.size() == kSentencesAtOnce) read();
  }
  read();
  return agreement;
}

}  // namespace rondo
