// Importing timm's vision transformers: an independent implementation with timm's names and plain
// operations gives the logits of our network after the import.
#include "rondo/model/import.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"
#include "tests/support/reference.h"
#include "tests/support/shrink.h"

namespace rondo::test {
namespace {

constexpr int64_t kTimmWidth = 12;
constexpr int64_t kTimmHeads = 3;
constexpr int64_t kTimmBlocks = 2;

ModelConfig timm_config(const std::string& pool) {
  VisionConfig c = std::get<VisionConfig>(shrink(find_model("sret/deit-t").config()).network);
  c.width = kTimmWidth;
  c.heads = kTimmHeads;
  c.depth.levels = kTimmBlocks;
  c.pool = pool;
  return ModelConfig{c};
}

// In the form saved by timm: 16 px, patches of 4, 7 classes.
NamedTensors timm_weights(bool class_token) {
  const int64_t d = kTimmWidth;
  std::map<std::string, Shape> shapes = {{"patch_embed.proj.weight", {d, 3, 4, 4}},
                                         {"patch_embed.proj.bias", {d}},
                                         {"pos_embed", {1, class_token ? 17 : 16, d}},
                                         {"norm.weight", {d}},
                                         {"norm.bias", {d}},
                                         {"head.weight", {7, d}},
                                         {"head.bias", {7}}};
  if (class_token) shapes["cls_token"] = {1, 1, d};
  for (int64_t block = 0; block < kTimmBlocks; ++block) {
    const std::string at = "blocks." + std::to_string(block) + ".";
    shapes[at + "attn.qkv.weight"] = {3 * d, d};
    shapes[at + "attn.qkv.bias"] = {3 * d};
    shapes[at + "attn.proj.weight"] = {d, d};
    shapes[at + "attn.proj.bias"] = {d};
    shapes[at + "mlp.fc1.weight"] = {20, d};
    shapes[at + "mlp.fc1.bias"] = {20};
    shapes[at + "mlp.fc2.weight"] = {d, 20};
    shapes[at + "mlp.fc2.bias"] = {d};
    for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}) {
      shapes[at + norm] = {d};
    }
  }
  NamedTensors weights;
  uint64_t seed = 1;
  for (const auto& [name, shape] : shapes) weights[name] = 0.4 * noise(shape, seed++, at::kFloat);
  return weights;
}

// timm's computation with them.
class TimmVit {
 public:
  explicit TimmVit(NamedTensors weights) : weights_(std::move(weights)) {}

  Tensor logits(const Tensor& images) const {
    Tensor x = at::conv2d(images, w("patch_embed.proj.weight"), w("patch_embed.proj.bias"), 4)
                   .flatten(2)
                   .transpose(1, 2);  // [B, T, D]
    const bool token = weights_.count("cls_token") > 0;
    if (token) x = at::cat({w("cls_token").expand({x.size(0), -1, -1}), x}, 1);
    x = x + w("pos_embed");
    for (int64_t block = 0; block < kTimmBlocks; ++block) {
      const std::string at = "blocks." + std::to_string(block) + ".";
      x = x + attention(norm(x, at + "norm1."), at + "attn.");
      const Tensor hidden = at::gelu(linear(norm(x, at + "norm2."), at + "mlp.fc1."));
      x = x + linear(hidden, at + "mlp.fc2.");
    }
    x = norm(x, "norm.");
    return linear(token ? x.select(1, 0) : x.mean(1), "head.");
  }

 private:
  const Tensor& w(const std::string& name) const { return weights_.at(name); }
  Tensor linear(const Tensor& x, const std::string& at) const {
    return at::linear(x, w(at + "weight"), w(at + "bias"));
  }
  Tensor norm(const Tensor& x, const std::string& at) const {
    return at::layer_norm(x, {kTimmWidth}, w(at + "weight"), w(at + "bias"), 1e-6);
  }
  Tensor attention(const Tensor& x, const std::string& at) const {
    const int64_t b = x.size(0), t = x.size(1), d = kTimmWidth / kTimmHeads;
    const Tensor qkv = linear(x, at + "qkv.")
                           .reshape({b, t, 3, kTimmHeads, d})
                           .permute({2, 0, 3, 1, 4});  // [3, B, H, T, d]
    const Tensor scores = qkv[0].matmul(qkv[1].transpose(-2, -1)) / std::sqrt(double(d));
    const Tensor mixed = scores.softmax(-1).matmul(qkv[2]);  // [B, H, T, d]
    return linear(mixed.transpose(1, 2).reshape({b, t, kTimmWidth}), at + "proj.");
  }

  NamedTensors weights_;
};

class ImportTimm : public ::testing::TestWithParam<const char*> {};

TEST_P(ImportTimm, ComputesWhatTimmComputes) {
  const at::NoGradGuard no_grad;
  const std::string pool = GetParam();
  const NamedTensors weights = timm_weights(pool == "class");
  const TinyModel ours(timm_config(pool));
  const TemporaryFile file(".safetensors");
  save_tensors(file.path(), weights);
  import_weights(*ours.network, SafetensorsFile::open(file.path()),
                 *make_layout("timm-vit", ours.config));
  const Tensor images = noise({3, 3, 16, 16}, 99, at::kFloat);
  const Tensor expected = TimmVit(weights).logits(images);
  EXPECT_GT(expected.abs().max().item<double>(), 0.1);
  expect_near(ours.logits({{"images", images}}), expected, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Pools, ImportTimm, ::testing::Values("class", "mean"));

TEST(ImportTimmVit, NeedsAVisionTransformer) {
  for (const char* model : {"sret/t", "ringformer/image-small", "sret/mixer-b16", "brt/xl-512"}) {
    expect_error(ExitCode::bad_input, "import from timm-vit: expected kind vision",
                 [&] { make_layout("timm-vit", find_model(model).config()); });
  }
}

}  // namespace
}  // namespace rondo::test
