// Running images through the compiled network, or the network's own modules.
#include "rondo/infer/image_runner.h"

#include "rondo/base/require.h"
#include "rondo/infer/runtime.h"
#include "rondo/nn/precision.h"

namespace rondo {
namespace {

const Network& given_network(const std::shared_ptr<Network>& network) {
  require(network != nullptr, "images: no network given");
  return *network;
}

bool runs_compiled(const Network& network) {
  return network.device().is_cpu() && nn::kernels_in_use() == nn::Kernels::fused &&
         !nn::runs_in_bf16(nn::Operation::linear, at::kFloat);
}

}  // namespace

ImageRunner::ImageRunner(std::shared_ptr<Network> network)
    : network_(std::move(network)),
      compiled_(compile_image_network(given_network(network_))),
      workspace_(std::make_shared<ImageWorkspace>()) {}

void ImageRunner::forward(const float* pixels, int64_t rows, float* logits) const {
  const Runtime::Turn turn(Runtime::get());
  if (runs_compiled(*network_)) {
    return compiled_->forward(pixels, rows, logits, turn.team(), *workspace_);
  }
  const int64_t side = compiled_->side();
  const Tensor images = at::from_blob(const_cast<float*>(pixels), {rows, 3, side, side});
  const Tensor to = at::from_blob(logits, {rows, classes()});
  turn.compute([&] { to.copy_(image_logits(*network_, images)); });
}

Tensor ImageRunner::forward(const Tensor& images) const {
  if (!runs_compiled(*network_)) {
    return image_logits(*network_, images.to(network_->device())).to(at::kCPU);
  }
  const Tensor pixels = images.to(at::kFloat).contiguous();
  const Tensor logits = at::empty({pixels.size(0), classes()});
  forward(pixels.data_ptr<float>(), pixels.size(0), logits.data_ptr<float>());
  return logits;
}

}  // namespace rondo
