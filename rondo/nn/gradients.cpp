// Switches for gradients.
#include "rondo/nn/gradients.h"

namespace rondo::nn {
namespace {

thread_local bool adds_in_place = false;
thread_local StagesOfGradients::Listener stage_listener;

}  // namespace

GradientsInPlace::GradientsInPlace() : before_(adds_in_place) { adds_in_place = true; }
GradientsInPlace::~GradientsInPlace() { adds_in_place = before_; }

bool gradients_in_place() { return adds_in_place; }

StagesOfGradients::StagesOfGradients(Listener listener) : before_(std::move(stage_listener)) {
  stage_listener = std::move(listener);
}
StagesOfGradients::~StagesOfGradients() { stage_listener = std::move(before_); }

void ends_stage(const Tensor& x, int64_t stage) {
  if (!stage_listener || !x.requires_grad()) return;
  x.register_hook([listener = stage_listener, stage](const Tensor&) { listener(stage); });
}

}  // namespace rondo::nn
