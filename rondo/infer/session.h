// Several documents processed by one model at the same time, each in its own row. Rows can be
// added, removed, forked, saved and restored; a step reads the weights once for all its rows. The
// results of a row are bit-identical whatever the other rows are.
//
// Only one thread at a time may use a session. Sessions of one CompiledLanguageModel may be used by
// different threads concurrently: they take turns at the runtime's threads.
#pragma once

#include <map>

#include "rondo/infer/compiled_language_model.h"
#include "rondo/infer/runtime.h"

namespace rondo {

class Session {
 public:
  using RowId = int64_t;

  explicit Session(std::shared_ptr<const CompiledLanguageModel> model);

  // A new row that continues from `state` (of one row, from state() or LanguageModel::load_state();
  // empty: a new document).
  RowId add(const State& state = {});
  RowId fork(RowId row);
  void remove(RowId row);
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }

  // Feeds tokens to one row, many at once.
  void read(RowId row, const std::vector<int32_t>& tokens);
  // Feeds one token to each of the given rows.
  struct Token {
    RowId row = 0;
    int64_t token = 0;
  };
  void step(const std::vector<Token>& tokens);

  // Logits after the last token [V]; empty in a new document.
  const std::vector<float>& logits(RowId row) const { return at(row).logits; }
  int64_t tokens_seen(RowId row) const;
  // The state of the row, including `logits`.
  State state(RowId row) const;
  // Memory of all rows.
  int64_t bytes() const;

  const CompiledLanguageModel& model() const { return *model_; }

 private:
  // A row keeps its history as a State (for read()) or as caches (for step()), whichever was used
  // last.
  struct Row {
    State state;
    std::unique_ptr<RowPast> past;
    std::vector<float> logits;
  };
  Row& at(RowId row);
  const Row& at(RowId row) const;
  State network_state(const Row& row) const;
  // Throws Error for unknown or repeated rows and invalid tokens.
  void check(const std::vector<Token>& tokens) const;
  void check_token(RowId row, int64_t token) const;
  void step_plainly(const std::vector<Token>& tokens);

  std::shared_ptr<const CompiledLanguageModel> model_;
  std::map<RowId, Row> rows_;
  RowId next_ = 0;
  CompiledLanguageModel::Workspace workspace_;
};

}  // namespace rondo
