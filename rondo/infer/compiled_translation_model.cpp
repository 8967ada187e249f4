// Packing a translation model, encoding, and decoding steps.
#include "rondo/infer/compiled_translation_model.h"

#include <algorithm>

#include "rondo/nn/kernel_choice.h"

namespace rondo {
namespace {

// A separate network that shares the tensors.
std::shared_ptr<EncoderDecoder> sharing_copy(const EncoderDecoder& model) {
  auto copy = std::make_shared<EncoderDecoder>(model.config());
  const auto theirs = model.named_parameters();
  for (auto& item : copy->named_parameters()) item.value().set_data(theirs[item.key()].detach());
  copy->eval();
  return copy;
}

kernels::PackedFormat packed_as(nn::WeightFormat format) {
  return format == nn::WeightFormat::bf16 ? kernels::PackedFormat::bf16
                                          : kernels::PackedFormat::fp32;
}

}  // namespace

CompiledTranslationModel::CompiledTranslationModel(const EncoderDecoder& model,
                                                   nn::WeightFormat format, SignalMode signals)
    : rounded_(format != nn::WeightFormat::fp32),
      copy_(sharing_copy(model)),
      packer_(packed_as(format), /*int8_inputs=*/format == nn::WeightFormat::int8) {
  const at::NoGradGuard no_grad;
  Stack::CompileOptions options;
  options.fold_signals = signals == SignalMode::folded;
  decoder_ = copy_->decoder().compile(packer_, options);
  const nn::LinearMap head = copy_->head_map();
  head_ = packer_.linear(head.weight, head.bias);
  encoder_ = copy_->encoder().compile_sequences(packer_, options.fold_signals);
}

// → [B, S, D]
Tensor CompiledTranslationModel::encode_memory(const Tensor& source, kernels::Team& team,
                                               Workspace& w) const {
  const int64_t width = encoder_.width();
  const Tensor real = source.ne(config().padding).contiguous();  // [B, S]
  SequenceShape shape;
  shape.sequences = source.size(0);
  shape.tokens = source.size(1);
  if (!real.all().item<bool>()) {
    shape.mask = reinterpret_cast<const uint8_t*>(real.data_ptr<bool>());
  }
  const Tensor memory = copy_->embed_source(source).to(at::kFloat).contiguous();
  const nn::Rows x = encoder_.begin(shape, team.size(), w.encoder);
  const Tensor rows = at::from_blob(x.data, {x.count, width}, {x.stride, 1}, at::kFloat);
  rows.copy_(memory.view({x.count, width}));
  const int members = team.size();
  team.run(members, [&](int index) {
    encoder_.forward(shape, /*orders=*/nullptr, w.encoder, {&team, index, members});
  });
  memory.view({x.count, width}).copy_(rows);
  return memory;
}

std::vector<RowPast> CompiledTranslationModel::encode_plainly(const Tensor& source) const {
  const State all = copy_->encode(source, Scope());
  std::vector<RowPast> rows(static_cast<size_t>(source.size(0)));
  for (size_t b = 0; b < rows.size(); ++b) {
    rows[b].plain = all.select(at::tensor({static_cast<int64_t>(b)}, at::kLong));
  }
  return rows;
}

std::vector<RowPast> CompiledTranslationModel::encode(const Tensor& source, kernels::Team& team,
                                                      Workspace& w) const {
  const c10::InferenceMode no_gradients;
  check_tokens(source, "source", config().source_vocabulary);
  if (nn::kernels_in_use() != nn::Kernels::fused) return encode_plainly(source);
  const Tensor memory = encode_memory(source, team, w);
  const Tensor real = source.ne(config().padding).sum(1);  // [B]
  std::vector<int64_t> lengths(real.data_ptr<int64_t>(), real.data_ptr<int64_t>() + real.numel());
  std::vector<RowPast> rows;
  for (size_t b = 0; b < lengths.size(); ++b) rows.push_back(decoder_.open({}, 0));
  const auto& crosses = copy_->decoder().crosses();
  for (int64_t i = 0; i < crosses.size(); ++i) {
    const auto made = crosses[i].memories(memory, lengths);
    for (size_t b = 0; b < rows.size(); ++b) rows[b].memories.push_back(made[b]);
  }
  return rows;
}

// With reference kernels: row by row.
void CompiledTranslationModel::step_plainly(const StepRows& rows,
                                            const std::vector<int64_t>& tokens,
                                            Workspace& w) const {
  const auto n = static_cast<int64_t>(rows.size());
  w.output.resize(n, decoder_.width());
  w.logits.resize(n, head_.w.out);
  for (int64_t r = 0; r < n; ++r) {
    RowPast& row = *rows[static_cast<size_t>(r)];
    const Tensor token = at::tensor({tokens[static_cast<size_t>(r)]}, at::kLong).view({1, 1});
    const Tensor y = copy_->decode_rows(token, row.plain, Scope());  // [1, 1, D]
    const Tensor logits = copy_->head(y, Scope());                   // [1, 1, V]
    const auto put = [r](const Tensor& from, nn::RowBuffer& to) {
      const Tensor flat = from.to(at::kFloat).contiguous();
      std::copy_n(flat.data_ptr<float>(), flat.numel(), to.rows(r + 1)[r]);
    };
    put(y, w.output);
    put(logits, w.logits);
    ++row.tokens_seen;
  }
}

void CompiledTranslationModel::step(const StepRows& rows, const std::vector<int64_t>& tokens,
                                    kernels::Team& team, Workspace& w) const {
  const c10::InferenceMode no_gradients;
  if (nn::kernels_in_use() != nn::Kernels::fused) return step_plainly(rows, tokens, w);
  const auto n = static_cast<int64_t>(rows.size());
  const int64_t width = decoder_.width();
  check_step(rows, tokens, decoder_.size(), head_.w.out);
  const Tensor embedded =
      copy_->embed_target(at::tensor(tokens, at::kLong).unsqueeze(1), rows.front()->tokens_seen)
          .to(at::kFloat)
          .contiguous();            // [n, 1, D]
  const int members = team.size();  // a search is too short for tuning the number of threads
  w.parts.begin(decoder_, rows, members, [&](const StepParts::Part& part, const nn::Rows& x) {
    for (int64_t r = 0; r < part.count(); ++r) {
      std::copy_n(embedded.data_ptr<float>() + (part.first + r) * width, width, x[r]);
    }
  });
  w.output.resize(n, width);
  w.logits.resize(n, head_.w.out);
  w.parts.run(team, members, [&](StepParts::Part& part, const kernels::Member& member) {
    const nn::Rows y = decoder_.forward(part.rows, part.stack, member);
    head_.forward(y, part.of(w.logits.rows(n)), member);
    if (member.index > 0) return;
    const nn::Rows output = part.of(w.output.rows(n));
    for (int64_t r = 0; r < part.count(); ++r) std::copy_n(y[r], width, output[r]);
  });
  decoder_.end(rows);
}

Tensor CompiledTranslationModel::exact_logits(const nn::Rows& output, const Tensor& tokens) const {
  const nn::LinearMap head = copy_->head_map();
  const int64_t width = decoder_.width();
  const Tensor rows = at::from_blob(output.data, {output.count, width}, {output.stride, 1});
  const Tensor flat = tokens.reshape({-1});
  const Tensor weights =
      head.weight.index_select(0, flat).view({tokens.size(0), tokens.size(1), width});  // [R, K, D]
  const Tensor logits = at::bmm(weights, rows.unsqueeze(2)).squeeze(2);                 // [R, K]
  if (!head.bias.defined()) return logits;
  return logits + head.bias.index_select(0, flat).view_as(tokens);
}

}  // namespace rondo
