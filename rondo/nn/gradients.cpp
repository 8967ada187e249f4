// Switch for in-place gradient accumulation.
#include "rondo/nn/gradients.h"

namespace rondo::nn {
namespace {

thread_local bool adds_in_place = false;

}  // namespace

GradientsInPlace::GradientsInPlace() : before_(adds_in_place) { adds_in_place = true; }
GradientsInPlace::~GradientsInPlace() { adds_in_place = before_; }

bool gradients_in_place() { return adds_in_place; }

}  // namespace rondo::nn
