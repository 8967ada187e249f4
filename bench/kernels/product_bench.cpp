// Linear maps: in training by oneDNN's gemm (fused) or torch operations, and for inference with
// fp32, bf16 or int8 weights.
#include "bench/kernels/kernel_bench.h"
#include "rondo/nn/layers.h"

namespace rondo {
namespace {

struct ProductShape {
  int64_t rows, in, out;
  std::string name() const {
    return std::to_string(rows) + "x" + std::to_string(in) + "x" + std::to_string(out);
  }
};

void register_linear(const ProductShape& shape) {
  bench::compare_passes("gemm/" + shape.name(), [shape](bool /*bf16*/) -> bench::Differentiable {
    const Tensor x = bench::leaf({shape.rows, shape.in});
    const Tensor w = bench::leaf({shape.out, shape.in});
    const Tensor b = bench::leaf({shape.out});
    return {{x, w, b}, [=] { return nn::linear(x, w, b, Scope()); }};
  });
}

void register_format(const ProductShape& shape, nn::WeightFormat format, const char* name) {
  bench::compare("weights/" + shape.name() + "/" + name, [shape, format]() -> bench::Work {
    return bench::packed_product(at::randn({shape.out, shape.in}), shape.rows, format);
  });
}

const bool products_registered = [] {
  for (const ProductShape& shape : {ProductShape{4096, 256, 1024}, ProductShape{4096, 1024, 256}}) {
    register_linear(shape);
  }
  // One token, a beam of five, 32 sentences with beams of five; the vocabulary.
  for (const int64_t rows : {1, 5, 32, 160}) {
    for (const ProductShape& shape : {ProductShape{rows, 256, 256}, ProductShape{rows, 256, 1024},
                                      ProductShape{rows, 256, 5000}}) {
      register_format(shape, nn::WeightFormat::fp32, "fp32");
      register_format(shape, nn::WeightFormat::bf16, "bf16");
      register_format(shape, nn::WeightFormat::int8, "int8");
    }
  }
  return true;
}();

}  // namespace
}  // namespace rondo
