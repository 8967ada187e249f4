// Beam search.
#include "rondo/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rondo {
namespace {

// One sentence that is being translated. Its rows in the batch hold `live` hypotheses.
struct Sentence {
  int64_t number = 0;  // row of the source
  int64_t limit = 0;   // tokens at most, the end mark included
  std::vector<std::vector<int32_t>> live;
  std::vector<Hypothesis> finished;
};

// The best continuations of every row: `width` of them [rows, width], and the end mark's own score.
struct Continuations {
  Tensor scores;  // log p of the whole hypothesis, double
  Tensor tokens;
  Tensor end;  // [rows]
};

class Search {
 public:
  Search(EncoderDecoder& model, const BeamMarks& marks, const BeamOptions& options)
      : model_(model), marks_(marks), options_(options) {
    if (!marks.banned.empty()) banned_ = at::tensor(marks.banned, at::kLong);
  }

  std::vector<std::vector<Hypothesis>> run(const Tensor& source) {
    const c10::InferenceMode no_gradients;
    const int64_t rows = source.size(0);
    std::vector<std::vector<Hypothesis>> results(static_cast<size_t>(rows));
    start(source);
    for (int64_t length = 1; !sentences_.empty(); ++length) {
      const Continuations next = continuations();
      advance(next, length);
      collect(results);
    }
    return results;
  }

 private:
  void start(const Tensor& source) {
    state_ = model_.encode(source, Scope());
    const Tensor lengths = source.ne(model_.config().padding).sum(1);  // [B]
    for (int64_t i = 0; i < source.size(0); ++i) {
      Sentence s;
      s.number = i;
      s.limit = most_tokens(options_, lengths[i].item<int64_t>());
      s.live.resize(static_cast<size_t>(options_.beam));
      sentences_.push_back(std::move(s));
    }
    // All beams begin alike: only the first counts.
    scores_.assign(static_cast<size_t>(source.size(0) * options_.beam), -INFINITY);
    for (int64_t i = 0; i < source.size(0); ++i)
      scores_[static_cast<size_t>(i * options_.beam)] = 0;
    tokens_.assign(scores_.size(), marks_.begin);
  }

  Continuations continuations() {
    const auto rows = static_cast<int64_t>(tokens_.size());
    const Tensor tokens = at::tensor(tokens_, at::kLong).unsqueeze(1);             // [B·n, 1]
    const Tensor hidden = model_.decode_rows(tokens, state_, Scope()).squeeze(1);  // [B·n, D]
    const Tensor logits = model_.head(hidden, Scope());                            // [B·n, V]
    if (banned_.defined()) logits.index_fill_(1, banned_, -INFINITY);
    const auto [values, indices] = best_tokens(hidden, logits);
    const Tensor before = at::tensor(scores_, at::kDouble);   // [B·n]
    const Tensor norm = logits.logsumexp(1).to(at::kDouble);  // [B·n]
    const Tensor shift = (before - norm).view({rows, 1});
    const Tensor end = logits.select(1, marks_.end).to(at::kDouble) + shift.squeeze(1);
    return {(values.to(at::kDouble) + shift).contiguous(), indices.contiguous(), end.contiguous()};
  }

  // Logits and numbers of the best tokens of every row: twice the beam, so that however many of
  // them end, enough go on. Where the head is rounded a few more are looked at exactly.
  std::pair<Tensor, Tensor> best_tokens(const Tensor& hidden, const Tensor& logits) const {
    constexpr int64_t kMore = 4;
    const bool rounded = model_.head_is_rounded();
    const int64_t width = std::min<int64_t>(2 * options_.beam, logits.size(1));
    const int64_t looked_at = std::min(width + (rounded ? kMore : 0), logits.size(1));
    const auto [values, indices] = logits.topk(looked_at, 1);
    if (!rounded) return {values, indices};
    const Tensor exact =
        model_.exact_logits(hidden, indices).masked_fill(values.isinf(), -INFINITY);
    const auto [best, places] = exact.topk(width, 1);
    return {best, indices.gather(1, places)};
  }

  // A step of every sentence; what goes on becomes scores_, tokens_ and state_.
  void advance(const Continuations& next, int64_t length) {
    std::vector<double> scores;
    std::vector<int64_t> tokens;
    std::vector<int64_t> rows;
    std::vector<int64_t> kept;
    for (size_t i = 0; i < sentences_.size(); ++i) {
      const auto first = static_cast<int64_t>(i) * options_.beam;
      step(sentences_[i], next, first, length, scores, tokens, rows);
      if (!sentences_[i].live.empty()) kept.push_back(static_cast<int64_t>(i));
    }
    scores_ = std::move(scores);
    tokens_ = std::move(tokens);
    if (kept.empty()) return;
    const bool all = kept.size() == sentences_.size();
    state_ = EncoderDecoder::reorder(state_, at::tensor(rows, at::kLong),
                                     all ? Tensor() : at::tensor(kept, at::kLong));
  }

  struct Candidate {
    double score;
    int64_t row;  // of the batch
    int64_t token;
  };

  // The 2·beam best continuations of a sentence, best first; equals by row and token.
  std::vector<Candidate> best_of(const Continuations& next, int64_t first, int64_t count) const {
    const int64_t width = next.scores.size(1);
    const double* scores = next.scores.data_ptr<double>();
    const int64_t* tokens = next.tokens.data_ptr<int64_t>();
    std::vector<Candidate> all;
    for (int64_t r = first; r < first + count; ++r) {
      for (int64_t k = 0; k < width; ++k) {
        const double score = scores[r * width + k];
        if (std::isfinite(score)) all.push_back({score, r, tokens[r * width + k]});
      }
    }
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.row != b.row ? a.row < b.row : a.token < b.token;
    });
    if (static_cast<int64_t>(all.size()) > 2 * options_.beam) {
      all.resize(static_cast<size_t>(2 * options_.beam));
    }
    return all;
  }

  void step(Sentence& s, const Continuations& next, int64_t first, int64_t length,
            std::vector<double>& scores, std::vector<int64_t>& tokens, std::vector<int64_t>& rows) {
    const int64_t beam = options_.beam;
    if (length == s.limit) {  // no room for anything but the end
      const double* end = next.end.data_ptr<double>();
      for (int64_t r = first; r < first + beam; ++r) {
        if (std::isfinite(end[r]))
          finish(s, s.live[static_cast<size_t>(r - first)], end[r], length);
      }
      s.live.clear();
      return;
    }
    std::vector<std::vector<int32_t>> live;
    const size_t at = tokens.size();
    int64_t rank = 0;
    for (const Candidate& c : best_of(next, first, beam)) {
      const auto& prefix = s.live[static_cast<size_t>(c.row - first)];
      if (c.token == marks_.end) {
        // An end far down the list is worse than `beam` hypotheses that go on.
        if (rank < beam) finish(s, prefix, c.score, length);
      } else if (static_cast<int64_t>(live.size()) < beam) {
        live.push_back(prefix);
        live.back().push_back(static_cast<int32_t>(c.token));
        scores.push_back(c.score);
        tokens.push_back(c.token);
        rows.push_back(c.row);
      }
      ++rank;
    }
    const bool over = static_cast<int64_t>(s.finished.size()) >= beam || live.empty();
    if (over) {
      scores.resize(at);
      tokens.resize(at);
      rows.resize(at);
      live.clear();
    }
    while (!over && static_cast<int64_t>(live.size()) < beam) {  // a tiny vocabulary
      live.emplace_back();
      scores.push_back(-INFINITY);
      tokens.push_back(marks_.end);
      rows.push_back(first);
    }
    s.live = std::move(live);
  }

  void finish(Sentence& s, const std::vector<int32_t>& tokens, double log_probability,
              int64_t length) const {
    Hypothesis h;
    h.tokens = tokens;
    h.log_probability = log_probability;
    h.score = log_probability / std::pow(static_cast<double>(length), options_.length_penalty);
    s.finished.push_back(std::move(h));
  }

  // Moves sentences that are over to the results.
  void collect(std::vector<std::vector<Hypothesis>>& results) {
    for (Sentence& s : sentences_) {
      if (!s.live.empty()) continue;
      std::stable_sort(s.finished.begin(), s.finished.end(),
                       [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      const auto count = static_cast<size_t>(std::min(options_.n_best, options_.beam));
      if (s.finished.size() > count) s.finished.resize(count);
      results[static_cast<size_t>(s.number)] = std::move(s.finished);
    }
    sentences_.erase(std::remove_if(sentences_.begin(), sentences_.end(),
                                    [](const Sentence& s) { return s.live.empty(); }),
                     sentences_.end());
  }

  EncoderDecoder& model_;
  const BeamMarks& marks_;
  const BeamOptions& options_;
  Tensor banned_;
  State state_;
  std::vector<Sentence> sentences_;  // `beam` rows each, in order
  std::vector<double> scores_;       // [rows] log p of each row's hypothesis
  std::vector<int64_t> tokens_;      // [rows] its newest token
};

}  // namespace

int64_t most_tokens(const BeamOptions& options, int64_t source_tokens) {
  const double room = options.max_ratio * static_cast<double>(source_tokens) +
                      static_cast<double>(options.max_extra);
  return std::clamp<int64_t>(static_cast<int64_t>(room), 1, options.max_length);
}

std::vector<std::vector<Hypothesis>> beam_search(EncoderDecoder& model, const Tensor& source,
                                                 const BeamMarks& marks,
                                                 const BeamOptions& options) {
  return Search(model, marks, options).run(source);
}

}  // namespace rondo
