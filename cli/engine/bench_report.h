// Reports of rondo bench, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/bench.h"

namespace rondo::cli {

// Rate of each machine limit, by name.
struct MachineLimits {
  struct Entry {
    std::string name;
    std::string unit;
    double rate = 0;
  };
  std::vector<Entry> entries;
};
MachineLimits measure_limits();

std::string describe(const MachineDescription& machine, int64_t threads);
std::string describe(const MachineLimits& limits);
std::string describe(const BenchCase& which, const BenchResult& result);

nlohmann::json to_json(const MachineDescription& machine, int64_t threads);
nlohmann::json to_json(const MachineLimits& limits);
nlohmann::json to_json(const BenchResult& result);

}  // namespace rondo::cli
