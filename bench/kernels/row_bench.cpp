// Row-wise operations: norms, activations.
#include "bench/kernels/kernel_bench.h"
#include "rondo/nn/ops.h"

namespace rondo {
namespace {

struct RowShape {
  int64_t rows, width;
  std::string name() const { return std::to_string(rows) + "x" + std::to_string(width); }
};

void register_norms(const RowShape& shape) {
  bench::compare_passes("norm/layer/" + shape.name(), [shape](bool bf16) -> bench::Differentiable {
    const Tensor x = bench::leaf({shape.rows, shape.width}, bench::activations(bf16));
    const Tensor w = bench::leaf({shape.width});
    const Tensor b = bench::leaf({shape.width});
    return {{x, w, b}, [=] { return nn::layer_norm(x, w, b, 1e-5, Scope()); }};
  });
  bench::compare_passes("norm/rms/" + shape.name(), [shape](bool bf16) -> bench::Differentiable {
    const Tensor x = bench::leaf({shape.rows, shape.width}, bench::activations(bf16));
    const Tensor w = bench::leaf({shape.width});
    return {{x, w}, [=] { return nn::rms_norm(x, w, 1e-5, Scope()); }};
  });
  bench::compare_passes("norm/of_sum/" + shape.name(), [shape](bool) -> bench::Differentiable {
    const Tensor x = bench::leaf({shape.rows, shape.width});
    const Tensor y = bench::leaf({shape.rows, shape.width});
    const Tensor w = bench::leaf({shape.width});
    return {{x, y, w}, [=] {
              const nn::NormedSum out = nn::rms_norm({x, y}, w, 1e-5, Scope(), nn::Result::branch);
              return out.sum + out.norm;  // both are used
            }};
  });
}

void register_activations(const RowShape& shape, nn::Activation curve, const char* name) {
  bench::compare_passes(
      std::string("activation/") + name + "/" + shape.name(),
      [shape, curve](bool bf16) -> bench::Differentiable {
        const Tensor x = bench::leaf({shape.rows, shape.width}, bench::activations(bf16));
        const Tensor b = bench::leaf({shape.width});
        return {{x, b}, [=] { return nn::activate(x, curve, b); }};
      });
}

const bool rows_registered = [] {
  for (const RowShape& shape : {RowShape{4096, 256}, RowShape{32, 256}, RowShape{6272, 64}}) {
    register_norms(shape);
  }
  for (const RowShape& shape : {RowShape{4096, 1024}, RowShape{32, 1024}}) {
    register_activations(shape, nn::Activation::gelu, "gelu");
    register_activations(shape, nn::Activation::relu, "relu");
  }
  return true;
}();

}  // namespace
}  // namespace rondo
