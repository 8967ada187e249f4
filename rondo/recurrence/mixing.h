// How tokens exchange information at a level. A stack holds a bank of these and knows only this
// interface; attention over a whole sequence, sliced attention, sliding windows, recurrent states
// and the Mixer's transposed feed-forward are all implementations of it.
#pragma once

#include <map>

#include "rondo/nn/attention.h"
#include "rondo/recurrence/compiled_sequence.h"
#include "rondo/recurrence/sliced.h"
#include "rondo/recurrence/state.h"
#include "rondo/recurrence/state_layout.h"

namespace rondo {

// What the levels of a stack share during one forward pass. Members left empty are not used.
struct ForwardContext {
  // Who may be seen: bool, broadcastable to [B, H, Tq, Tk]; undefined = everyone.
  Tensor mask;
  // 0-based position of every token, [B or 1, T]: for static signals.
  Tensor positions;
  // What cross-attention reads, [B, S, D], and which of it may be seen.
  Tensor memory;
  Tensor memory_mask;
  // What is carried between calls; read and replaced tensor by tensor. Null: nothing is.
  State* state = nullptr;
  // Tokens each row has behind it, the same for all rows up to whole blocks.
  int64_t tokens_seen = 0;
  // Where permutations for sliced attention come from.
  Permutations* permutations = nullptr;
  // Tokens read zeros in place of every recurrent state: what would the model do without it?
  bool zero_states = false;
  // Keys and values of recurrent states that every level may read (feedback), [B, H, S, d].
  Tensor state_keys;
  Tensor state_values;
  // Biases of levels' attention, scaled, made once: with feedback a level is applied for every
  // block.
  std::map<int64_t, Tensor> biases;
};

// What one level hands to its token mixing.
struct MixingInput {
  Tensor u;                   // what projections see [B, T, D]
  Tensor x;                   // the raw stream, what hooks may read too [B, T, D]
  nn::ProjectionHooks hooks;  // how the level changes the projections it borrows
  int64_t level = 0;          // number of the level: caches are its own even where weights are not
  int64_t loop = 0;
  int64_t groups = 1;
};

// Recurrent states as tokens read them. [B, H, S, d]
struct StateKeys {
  Tensor keys, values;
};

// Who reads the recurrent states that a mixing keeps: it keeps none, its own level, every level.
enum class StateReaders { none, level, all };

class TokenMixing : public nn::Module {
 public:
  virtual Tensor forward(const MixingInput& in, ForwardContext& context, const Scope& scope) = 0;

  // ---- the state of a language model; all of a level's tensors are under level_key(level, …)

  // What forward() at `level` leaves in it, when rows are as far as `place` says. States from files
  // are compared with it.
  virtual void describe_state(int64_t /*level*/, const StatePlace& /*place*/,
                              StateLayout& /*layout*/) const {}
  // Rows where `fresh` (bool [B]) is true begin a new document. The default: with zeros.
  virtual void reset_state(int64_t level, const Tensor& fresh, State& state) const;
  // Tokens of a block, at whose end something happens for all rows together, so that all must be at
  // the same place of theirs; 0: rows may be anywhere.
  virtual int64_t block() const { return 0; }
  virtual StateReaders state_readers() const { return StateReaders::none; }
  // The states of `rows` rows before the next token; only where there are readers.
  virtual StateKeys read_states(int64_t level, int64_t rows, const ForwardContext& context,
                                const Scope& scope) const;

  // For decoding token by token. The default: Error{bad_input}, this mixing needs whole sequences.
  virtual std::shared_ptr<const CompiledMixing> compile(nn::WeightPacker& packer) const;
  // For whole sequences without a past. The default: Error{bad_input}, this mixing has one.
  virtual std::shared_ptr<const SequenceMixing> compile_sequences(nn::WeightPacker& packer) const;
  // The maps that signals may be folded into; null where there are none.
  virtual const nn::Projections* projections() const { return nullptr; }
};

// "level.3.keys"
std::string level_key(int64_t level, const char* name);

}  // namespace rondo
