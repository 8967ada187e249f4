// Compiled convolutions against torch's, with and without batch norm and ReLU: overlapping kernels
// and not, planar and interleaved images, full and depthwise.
#include "rondo/nn/compiled_convolution.h"

#include "rondo/nn/layers.h"
#include "tests/kernels/kernel_test_util.h"

namespace rondo::test {
namespace {

struct Case {
  int64_t in, out, kernel, stride, padding, groups;
};

// Pixels of image [in, height, width] as rows.
Tensor run(const nn::CompiledConvolution& c, const Tensor& image, int threads) {
  kernels::ImageView view;
  view.channels = image.size(0);
  view.height = image.size(1);
  view.width = image.size(2);
  view.planar = c.planar;
  const Tensor pixels =
      c.planar ? image.contiguous() : at::constant_pad_nd(image.permute({1, 2, 0}), {0, 3});
  view.data = pixels.data_ptr<float>();
  view.column = c.planar ? 0 : image.size(0) + 3;
  const int64_t count = c.shape.side(view.height) * c.shape.side(view.width);
  const Tensor y = at::full({count, c.out}, 99.0);
  kernels::Team team(threads);
  team.run(threads, [&](int index) {
    nn::RowBuffer scratch;
    c.forward(view, {y.data_ptr<float>(), count, c.out}, scratch, {&team, index, threads});
  });
  return y.t().view({c.out, c.shape.side(view.height), c.shape.side(view.width)});
}

TEST(CompiledConvolution, EqualsTorchs) {
  const at::NoGradGuard no_grad;
  for (const Case& k : {Case{3, 20, 3, 2, 1, 1}, Case{16, 5, 3, 2, 1, 1}, Case{3, 24, 4, 4, 0, 1},
                        Case{3, 9, 8, 4, 0, 1}, Case{7, 14, 3, 2, 1, 7}, Case{4, 4, 3, 1, 1, 4},
                        Case{2, 3, 5, 1, 2, 1}}) {
    nn::Conv2d layer(k.in, k.out, k.kernel, {k.stride, k.padding, k.groups});
    nn::BatchNorm2d norm(k.out);
    nn::initialize(layer, 1);
    nn::initialize(norm, 2);
    for (auto& item : norm.named_parameters()) item.value().add_(noise({k.out}, 4, at::kFloat));
    for (auto& item : norm.named_buffers()) {
      if (item.value().dim() == 1) item.value().add_(noise({k.out}, 5, at::kFloat).abs());
    }
    norm.eval();
    const Tensor image = noise({k.in, 17, 14}, 3, at::kFloat);
    for (const bool planar : {false, true}) {
      for (const bool normed : {false, true}) {
        if (k.groups > 1 && planar) continue;
        nn::WeightPacker packer(kernels::PackedFormat::fp32);
        nn::Conv2d::CompileOptions how;
        how.planar = planar;
        how.relu = normed && k.groups == 1;
        if (normed) how.norm = &norm;
        const nn::CompiledConvolution compiled = layer.compile(packer, how);
        Tensor want = layer.forward(image.unsqueeze(0), Scope());
        if (normed) want = norm.forward(want, Scope());
        if (how.relu) want = want.relu();
        for (const int threads : {1, 2}) {
          EXPECT_LE(apart(run(compiled, image, threads), want[0]), 1e-5)
              << k.in << " to " << k.out << ", kernel " << k.kernel << (planar ? ", planar" : "")
              << (normed ? ", normed" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace rondo::test
