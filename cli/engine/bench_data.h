// rondo bench --data: whether data loading keeps up with the model.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

void bench_data(const BenchOptions& options);

}  // namespace rondo::cli
