// Packing a translation model.
#include "rondo/infer/compiled_translation_model.h"

namespace rondo {
namespace {

// A network of its own with the same tensors.
std::shared_ptr<EncoderDecoder> sharing_copy(const EncoderDecoder& model) {
  auto copy = std::make_shared<EncoderDecoder>(model.config());
  const auto theirs = model.named_parameters();
  for (auto& item : copy->named_parameters()) item.value().set_data(theirs[item.key()].detach());
  copy->eval();
  return copy;
}

}  // namespace

CompiledTranslationModel::CompiledTranslationModel(const EncoderDecoder& model,
                                                   nn::WeightFormat format, SignalMode signals)
    : format_(format), copy_(sharing_copy(model)) {
  const at::NoGradGuard no_grad;
  if (signals == SignalMode::folded) copy_->fold_signals();
  copy_->convert(format);
}

}  // namespace rondo
