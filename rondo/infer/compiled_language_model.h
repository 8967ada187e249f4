// A language model compiled for generation: its weights are packed once, in the chosen format.
// Immutable and shared by any number of sessions in any number of threads; later changes to the
// model's weights have no effect.
#pragma once

#include "rondo/infer/step_sharing.h"
#include "rondo/model/language_model.h"

namespace rondo {

class CompiledLanguageModel {
 public:
  // Leaves the model in evaluation mode. Prompts are processed by the model itself, in fp32.
  CompiledLanguageModel(std::shared_ptr<LanguageModel> model, kernels::PackedFormat format);
  CompiledLanguageModel(const CompiledLanguageModel&) = delete;
  CompiledLanguageModel& operator=(const CompiledLanguageModel&) = delete;

  const LanguageModelConfig& config() const { return model_->config(); }
  kernels::PackedFormat format() const { return packer_.format(); }
  // Size of the packed weights, which every step reads.
  size_t bytes() const { return packer_.bytes(); }

  // Converts a document's state (of one row; empty: a new document) to caches, and back.
  RowPast open(State state) const;
  State save(const RowPast& past) const;

  // Buffers for steps; each caller has its own.
  struct Workspace {
    StepParts parts;
    nn::RowBuffer logits;  // [rows, V] after step()
    kernels::ThreadChoice threads;
  };
  // Feeds tokens[i] to rows[i], in one pass over the weights; `workspace.logits` receives the next
  // token's logits. A row's results do not depend on the others. Runs no torch operations.
  void step(const StepRows& rows, const std::vector<int64_t>& tokens, kernels::Team& team,
            Workspace& workspace) const;
  // Processes `tokens` in whole segments, as in training. → logits after the last [V].
  Tensor read(const std::vector<int32_t>& tokens, State& state) const;

 private:
  nn::WeightPacker packer_;
  std::shared_ptr<LanguageModel> model_;
  CompiledStack stack_;
  nn::CompiledNorm norm_;
  Tensor embedding_;  // [V, D]
  nn::CompiledLinear head_;
};

}  // namespace rondo
