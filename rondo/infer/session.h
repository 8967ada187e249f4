// Documents that are read and written at the same time by one model, each in a row of its own. Rows
// join, leave, are forked, saved and restored; a step reads the weights once for all rows it names.
// What a row computes does not depend on the others, to the last bit.
//
// One thread at a time may use a session. Sessions of one CompiledLanguageModel may be used by
// different threads at once: they take turns at the runtime's threads.
#pragma once

#include <map>

#include "rondo/infer/compiled_language_model.h"
#include "rondo/infer/runtime.h"

namespace rondo {

class Session {
 public:
  using RowId = int64_t;

  explicit Session(std::shared_ptr<const CompiledLanguageModel> model);

  // A new row that continues from `state` (of one row, as state() gives or
  // LanguageModel::load_state reads; empty: a new document).
  RowId add(const State& state = {});
  RowId fork(RowId row);
  void remove(RowId row);
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }

  // Reads tokens into one row, many at once.
  void read(RowId row, const std::vector<int32_t>& tokens);
  // Reads one token into each of some rows.
  struct Token {
    RowId row = 0;
    int64_t token = 0;
  };
  void step(const std::vector<Token>& tokens);

  // What follows the last token read [V]; empty in a new document.
  const std::vector<float>& logits(RowId row) const { return at(row).logits; }
  int64_t tokens_seen(RowId row) const;
  // Where the row stands, `logits` included.
  State state(RowId row) const;
  // Memory of all rows.
  int64_t bytes() const;

  const CompiledLanguageModel& model() const { return *model_; }

 private:
  // A row keeps its past as a State for reading many tokens, or as caches for single ones:
  // whichever was wanted last.
  struct Row {
    State state;
    std::unique_ptr<RowPast> past;
    std::vector<float> logits;
  };
  Row& at(RowId row);
  const Row& at(RowId row) const;
  State network_state(const Row& row) const;
  // Error for rows and tokens that there are not.
  void check(const std::vector<Token>& tokens) const;
  void check_token(RowId row, int64_t token) const;
  void step_plainly(const std::vector<Token>& tokens);

  std::shared_ptr<const CompiledLanguageModel> model_;
  std::map<RowId, Row> rows_;
  RowId next_ = 0;
  CompiledLanguageModel::Workspace workspace_;
};

}  // namespace rondo
