// Beam search.
#include "rondo/infer/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rondo/base/require.h"
#include "rondo/kernels/best_of_row.h"

namespace rondo {
namespace {

// A sentence being translated. Its rows in the batch are the `live` hypotheses, initially only the
// empty one.
struct Sentence {
  int64_t number = 0;  // row of the source
  int64_t limit = 0;   // maximum number of tokens, including the end token
  std::vector<std::vector<int32_t>> live;
  std::vector<Hypothesis> finished;
};

// The best `width` continuations of every row [rows, width], and the score of the end token.
struct Continuations {
  Tensor scores;  // log p of the whole hypothesis, double
  Tensor tokens;
  Tensor end;  // [rows]
};

class Search {
 public:
  Search(const CompiledTranslationModel& model, const SearchTokens& special_tokens,
         const BeamOptions& options, kernels::Team& team)
      : model_(model), special_tokens_(special_tokens), options_(options), team_(team) {}

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
    rows_ = model_.encode(source, team_, workspace_);
    const Tensor lengths = source.ne(model_.config().padding).sum(1);  // [B]
    for (int64_t i = 0; i < source.size(0); ++i) {
      Sentence s;
      s.number = i;
      s.limit = most_tokens(options_, lengths[i].item<int64_t>());
      s.live.resize(1);
      sentences_.push_back(std::move(s));
    }
    scores_.assign(static_cast<size_t>(source.size(0)), 0.0);
    tokens_.assign(scores_.size(), special_tokens_.begin);
  }

  Continuations continuations() {
    StepRows rows;
    for (RowPast& row : rows_) rows.push_back(&row);
    model_.step(rows, tokens_, team_, workspace_);
    const auto count = static_cast<int64_t>(rows_.size());
    const nn::Rows logits = workspace_.logits.rows(count);
    const Tensor end = at::empty({count}, at::kDouble);
    for (int64_t r = 0; r < count; ++r) end.data_ptr<double>()[r] = logits[r][special_tokens_.end];
    auto [values, indices, norm] = best_tokens(logits);
    const Tensor shift = (at::tensor(scores_, at::kDouble) - norm).view({count, 1});
    if (model_.head_is_rounded()) std::tie(values, indices) = refined(values, indices);
    return {(values.to(at::kDouble) + shift).contiguous(), indices.contiguous(),
            (end + shift.squeeze(1)).contiguous()};
  }

  // Twice the beam: even if `beam` of them end, enough continue.
  int64_t candidates(int64_t vocabulary) const { return std::min(2 * options_.beam, vocabulary); }

  struct Best {
    Tensor logits, tokens;  // [R, K], best first
    Tensor norm;            // log Σ exp of all [R], double
  };

  // Of every row, with banned tokens at -∞. If the head is rounded, a few more are taken, to be
  // rescored exactly.
  Best best_tokens(const nn::Rows& logits) const {
    constexpr int64_t kMore = 4;
    const int64_t rows = logits.count;
    const int64_t vocabulary = model_.config().target_vocabulary;
    const int64_t width =
        std::min(candidates(vocabulary) + (model_.head_is_rounded() ? kMore : 0), vocabulary);
    const Best best = {at::empty({rows, width}), at::empty({rows, width}, at::kLong),
                       at::empty({rows}, at::kDouble)};
    constexpr int64_t kWorthThreads = 1 << 13;  // logits
    at::parallel_for(0, rows, kWorthThreads / vocabulary + 1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        float* row = logits[r];
        for (const int64_t token : special_tokens_.banned) row[token] = -INFINITY;
        kernels::best_of_row(row, vocabulary, width, best.logits.data_ptr<float>() + r * width,
                             best.tokens.data_ptr<int64_t>() + r * width);
        best.norm.data_ptr<double>()[r] = kernels::log_sum_exp(row, vocabulary);
      }
    });
    return best;
  }

  // The best of those by the head's exact weights.
  std::pair<Tensor, Tensor> refined(const Tensor& values, const Tensor& indices) {
    const nn::Rows output = workspace_.output.rows(values.size(0));
    const Tensor exact =
        model_.exact_logits(output, indices).masked_fill(values.isinf(), -INFINITY);
    const auto [best, places] = exact.topk(candidates(model_.config().target_vocabulary), 1);
    return {best, indices.gather(1, places)};
  }

  // One step of every sentence; surviving hypotheses become scores_, tokens_ and rows_.
  void advance(const Continuations& next, int64_t length) {
    std::vector<double> scores;
    std::vector<int64_t> tokens;
    std::vector<int64_t> rows;
    int64_t first = 0;
    for (size_t i = 0; i < sentences_.size(); ++i) {
      const auto count = static_cast<int64_t>(sentences_[i].live.size());
      step(sentences_[i], next, first, length, scores, tokens, rows);
      first += count;
    }
    scores_ = std::move(scores);
    tokens_ = std::move(tokens);
    follow(rows);
  }

  // Row i continues the previous row from[i].
  void follow(const std::vector<int64_t>& from) {
    std::vector<int64_t> last(rows_.size(), -1);  // the last user, which may move from it
    for (size_t i = 0; i < from.size(); ++i) {
      last[static_cast<size_t>(from[i])] = static_cast<int64_t>(i);
    }
    std::vector<RowPast> next;
    next.reserve(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      RowPast& row = rows_[static_cast<size_t>(from[i])];
      const bool takes = last[static_cast<size_t>(from[i])] == static_cast<int64_t>(i);
      next.push_back(takes ? std::move(row) : row.clone());
    }
    rows_ = std::move(next);
  }

  struct Candidate {
    double score;
    int64_t row;  // of the batch
    int64_t token;
  };

  // The 2·beam best continuations of a sentence, best first; ties by row and token.
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
    const auto count = static_cast<int64_t>(s.live.size());
    if (length == s.limit) {  // only the end token is allowed
      const double* end = next.end.data_ptr<double>();
      for (int64_t r = first; r < first + count; ++r) {
        if (std::isfinite(end[r]))
          finish(s, s.live[static_cast<size_t>(r - first)], end[r], length);
      }
      s.live.clear();
      return;
    }
    std::vector<std::vector<int32_t>> live;
    const size_t at = tokens.size();
    int64_t rank = 0;
    for (const Candidate& c : best_of(next, first, count)) {
      const auto& prefix = s.live[static_cast<size_t>(c.row - first)];
      if (c.token == special_tokens_.end) {
        // An end token below rank `beam` is worse than `beam` other continuations.
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
      tokens.push_back(special_tokens_.end);
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

  // Moves finished sentences to the results.
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

  const CompiledTranslationModel& model_;
  const SearchTokens& special_tokens_;
  const BeamOptions& options_;
  kernels::Team& team_;
  CompiledTranslationModel::Workspace workspace_;
  std::vector<RowPast> rows_;
  std::vector<Sentence> sentences_;  // their rows are consecutive
  std::vector<double> scores_;       // [rows] log p of each row's hypothesis
  std::vector<int64_t> tokens_;      // [rows] its newest token
};

void check_marks(const SearchTokens& special_tokens, int64_t vocabulary) {
  std::vector<int64_t> all = special_tokens.banned;
  all.insert(all.end(), {special_tokens.begin, special_tokens.end});
  for (const int64_t mark : all) {
    require(mark >= 0 && mark < vocabulary,
            "beam search: expected special tokens from 0 to {}, got {}", vocabulary - 1, mark);
  }
}

}  // namespace

void check_beam_options(const BeamOptions& o) {
  require(o.beam >= 1 && o.n_best >= 1,
          "beam search: expected 1 or more hypotheses, got a beam of {} and {} best", o.beam,
          o.n_best);
  require(o.max_length >= 1, "beam search: expected a maximum length of 1 or more, got {}",
          o.max_length);
  require(o.max_ratio >= 0 && o.max_extra >= 0 && std::isfinite(o.max_ratio),
          "beam search: expected max ratio and max extra of 0 or more, got {} and {}", o.max_ratio,
          o.max_extra);
  require(std::isfinite(o.length_penalty), "beam search: expected a finite length penalty, got {}",
          o.length_penalty);
}

int64_t most_tokens(const BeamOptions& options, int64_t source_tokens) {
  const double room = options.max_ratio * static_cast<double>(source_tokens) +
                      static_cast<double>(options.max_extra);
  return std::clamp<int64_t>(static_cast<int64_t>(room), 1, options.max_length);
}

std::vector<std::vector<Hypothesis>> beam_search(const CompiledTranslationModel& model,
                                                 const Tensor& source,
                                                 const SearchTokens& special_tokens,
                                                 const BeamOptions& options, kernels::Team& team) {
  check_beam_options(options);
  check_marks(special_tokens, model.config().target_vocabulary);
  return Search(model, special_tokens, options, team).run(source);
}

}  // namespace rondo
