// rondo eval of an image network: accuracy on labelled images, in all and by class.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

void evaluate_images(const EvalOptions& options);

}  // namespace rondo::cli
