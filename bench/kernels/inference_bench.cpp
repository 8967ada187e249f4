// Inference compared to plain operations: linear maps with packed weights, token-by-token
// generation.
#include "bench/cases/language.h"
#include "bench/kernels/kernel_bench.h"
#include "rondo/infer/generator.h"
#include "rondo/nn/layers.h"

namespace rondo {
namespace {

void register_packed(int64_t rows, int64_t out, int64_t in) {
  for (const auto& [format, name] :
       {std::pair{nn::WeightFormat::fp32, "fp32"}, std::pair{nn::WeightFormat::bf16, "bf16"},
        std::pair{nn::WeightFormat::int8, "int8"}}) {
    const std::string shape =
        std::to_string(rows) + "x" + std::to_string(out) + "x" + std::to_string(in) + "/" + name;
    bench::compare("packed_linear/" + shape, [=, format = format]() -> bench::Work {
      return bench::packed_product(at::randn({out, in}), rows, format);
    });
  }
}

void register_writing() {
  for (const auto& [format, name] : {std::pair{kernels::PackedFormat::fp32, "fp32"},
                                     std::pair{kernels::PackedFormat::bf16, "bf16"},
                                     std::pair{kernels::PackedFormat::int8, "int8"}}) {
    bench::compare(std::string("write_token/256_wide/") + name, [format = format]() -> bench::Work {
      LanguageModelConfig c = causal_model();
      c.time.kind = "window";
      c.time.window = c.time.segment;
      const auto model = std::dynamic_pointer_cast<LanguageModel>(drawn_network(ModelConfig{c}));
      const auto weights = std::make_shared<CompiledLanguageModel>(model, format);
      const auto writer = std::make_shared<Generator>(weights);
      SamplerOptions likeliest;
      likeliest.temperature = 0;
      const auto sampler = std::make_shared<Sampler>(likeliest);
      return [=] { writer->write(*sampler, 0); };
    });
  }
}

const bool inference_registered = [] {
  register_writing();
  register_packed(160, 512, 512);
  register_packed(160, 512, 2048);
  register_packed(32, 2048, 512);
  return true;
}();

}  // namespace
}  // namespace rondo
