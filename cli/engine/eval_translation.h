// rondo eval of a translation model: BLEU and chrF of its translations, alone or against another's.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

void evaluate_translation(const EvalOptions& options);

}  // namespace rondo::cli
