// How the tokens of a level exchange information. A stack holds a bank of these and knows only this
// interface; full and sliced attention, sliding windows, recurrent states and the Mixer's
// transposed feed-forward are all implementations of it.
#pragma once

#include <map>

#include "rondo/nn/attention.h"
#include "rondo/recurrence/compiled_sequence.h"
#include "rondo/recurrence/sliced.h"
#include "rondo/recurrence/state.h"
#include "rondo/recurrence/state_layout.h"

namespace rondo {

// Shared by the levels of a stack during one forward pass. Empty members are not used.
struct ForwardContext {
  // Visible keys: bool, broadcastable to [B, H, Tq, Tk]; undefined = all.
  Tensor mask;
  // 0-based position of every token, [B or 1, T]: for static signals.
  Tensor positions;
  // Input of cross-attention, [B, S, D], and its mask.
  Tensor memory;
  Tensor memory_mask;
  // Carried between calls; read and replaced tensor by tensor. Null: nothing is carried.
  State* state = nullptr;
  // Tokens each row has processed; rows differ only by whole blocks.
  int64_t tokens_seen = 0;
  // Source of the permutations for sliced attention.
  Permutations* permutations = nullptr;
  // Tokens read zeros instead of the recurrent states, to measure the states' contribution.
  bool zero_states = false;
  // Feedback: keys and values of recurrent states that every level may read, [B, H, S, d].
  Tensor state_keys;
  Tensor state_values;
  // Scaled attention bias by level, computed once: with feedback a level is applied once per block.
  std::map<int64_t, Tensor> biases;
};

// Input of a level's token mixing.
struct MixingInput {
  Tensor u;                   // input of the projections [B, T, D]
  Tensor x;                   // the raw residual stream, also visible to hooks [B, T, D]
  nn::ProjectionHooks hooks;  // how the level modifies the shared projections
  int64_t level = 0;          // level index: caches are per level even where weights are shared
  int64_t loop = 0;
  int64_t groups = 1;
};

// Recurrent states as tokens attend to them. [B, H, S, d]
struct StateKeys {
  Tensor keys, values;
};

// Which levels read a mixing's recurrent states: none (it has no states), its own level, or all.
enum class StateReaders { none, level, all };

class TokenMixing : public nn::Module {
 public:
  virtual Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) = 0;

  // ---- the state of a language model; all tensors of a level are under level_key(level, …)

  // The tensors that forward() at `level` leaves in the state when rows are at `place`. States
  // loaded from files are checked against it.
  virtual void describe_state(int64_t /*level*/, const StatePlace& /*place*/,
                              StateLayout& /*layout*/) const {}
  // Starts a new document in rows where `fresh` (bool [B]) is true. The default fills with zeros.
  virtual void reset_state(int64_t level, const Tensor& fresh, State& state) const;
  // Tokens per block if all rows must be at the same position within their blocks, because they
  // are updated together at its end; 0: no such constraint.
  virtual int64_t block() const { return 0; }
  virtual StateReaders state_readers() const { return StateReaders::none; }
  // The states of `rows` rows before the next token; called only if state_readers() is not none.
  virtual StateKeys read_states(int64_t level, int64_t rows, const ForwardContext& context,
                                const Scope& scope) const;

  // For decoding token by token. The default throws Error{bad_input}: needs whole sequences.
  virtual std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const;
  // For whole sequences without cached tokens. The default throws Error{bad_input}: has a cache.
  virtual std::shared_ptr<const SequenceMixing> compile_sequences(nn::WeightPacker& packer) const;
  // The projections that signals may be folded into; null if there are none.
  virtual const nn::Projections* projections() const { return nullptr; }
};

// "level.3.keys"
std::string level_key(int64_t level, const char* name);

}  // namespace rondo
