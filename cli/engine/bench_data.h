// rondo bench --data: whether data keep up with the model they are for.
#pragma once

#include "cli/verbs.h"

namespace rondo::cli {

void bench_data(const BenchOptions& options);

}  // namespace rondo::cli
