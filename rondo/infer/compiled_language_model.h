// A language model ready to write with: its weights packed once, in a format with as many bits as
// wanted. Immutable, and shared by any number of sessions in any number of threads; changes of the
// model's weights after this are not noticed.
#pragma once

#include "rondo/infer/step_sharing.h"
#include "rondo/model/language_model.h"

namespace rondo {

class CompiledLanguageModel {
 public:
  // Leaves the model in evaluation mode. Prompts are read by the model itself, in fp32.
  CompiledLanguageModel(std::shared_ptr<LanguageModel> model, kernels::PackedFormat format);
  CompiledLanguageModel(const CompiledLanguageModel&) = delete;
  CompiledLanguageModel& operator=(const CompiledLanguageModel&) = delete;

  const LanguageModelConfig& config() const { return model_->config(); }
  kernels::PackedFormat format() const { return packer_.format(); }
  // Of packed weights: what one step reads.
  size_t bytes() const { return packer_.bytes(); }

  // A document's past from its state (of one row; empty: a new document), and back.
  RowPast open(State state) const;
  State save(const RowPast& past) const;

  // What a step needs besides weights: each caller has one.
  struct Workspace {
    StepParts parts;
    nn::RowBuffer logits;  // [rows, V] after step()
    kernels::ThreadChoice threads;
  };
  // Reads tokens[i] into rows[i], all with one pass over the weights. `workspace.logits` is what
  // follows each. A row's numbers do not depend on the others'. No torch operation is run.
  void step(const StepRows& rows, const std::vector<int64_t>& tokens, kernels::Team& team,
            Workspace& workspace) const;
  // Reads `tokens` as training would: whole segments at once. → logits after the last [V].
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
