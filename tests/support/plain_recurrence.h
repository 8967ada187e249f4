// A second implementation of everything that recurs over time, written to be obvious rather than
// fast: one row, one token, one key at a time, directly from the papers' equations. Tests compare
// rondo/recurrence with it.
#pragma once

#include <map>

#include "rondo/nn/tensor_file.h"
#include "rondo/recurrence/block_recurrent.h"

namespace rondo::test {

// One document from its beginning. All parameters by the module's own names.
class PlainDocument {
 public:
  PlainDocument(const torch::nn::Module& module, const WindowOptions& options);

  // Window attention of the tokens u [T, D] → [T, D].
  Tensor window(const Tensor& u);
  // The same with recurrent states: blocks of W tokens, states rewritten after each whole block.
  Tensor recurrent(const Tensor& u, const TimeConfig& time);
  // The same with a memory of pairs.
  Tensor memorizing(const Tensor& u, int64_t memory, int64_t neighbors);

  // After memorizing(): the entries nearest to a token, by position in the document, and the
  // attention to each.
  std::map<int64_t, double> nearest(int64_t head, int64_t token, int64_t memory,
                                    int64_t neighbors) const;
  // After recurrent(): the state vectors [S, D].
  const Tensor& state() const { return state_; }

 private:
  struct StateView {
    Tensor keys, values, queries, token_queries;  // [H, S, d]
  };
  Tensor heads(const Tensor& u, const std::string& map, bool normalized) const;  // [H, T, d]
  void project(const Tensor& u);
  Tensor key(int64_t head, int64_t position) const;    // zeros before the document
  Tensor value(int64_t head, int64_t position) const;  // zeros before the document
  Tensor see_window(int64_t head, int64_t token) const;
  Tensor recall(int64_t head, int64_t token, int64_t memory, int64_t neighbors) const;
  StateView view_state() const;
  void update_state(const StateView& view, int64_t block, const TimeConfig& time);
  Tensor gate(const std::string& name, const Tensor& c, const Tensor& z, const Tensor& h,
              const TimeConfig& time) const;
  Tensor parameter(const std::string& name) const;
  // Linear map without bias.
  Tensor map(const std::string& name, const Tensor& x) const;

  NamedTensors parameters_;
  WindowOptions options_;
  Tensor q_, k_, v_, state_q_;  // [H, T, d]
  Tensor state_;
};

// Runs `mixing` over u [B, T, D] in pieces of the given sizes, each call reading the state left by
// the one before. `state` (empty: a new document) is the state after the last call.
Tensor forward_in_pieces(TokenMixing& mixing, const Tensor& u, const std::vector<int64_t>& pieces,
                         State& state, const Scope& scope = Scope());

// Every document of the batch, one after another: the expected result of forward_in_pieces().
template <class PlayRow>
Tensor by_rows(const Tensor& u, PlayRow play) {
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < u.size(0); ++b) rows.push_back(play(u[b]));
  return at::stack(rows);
}

}  // namespace rondo::test
