// Checks of [augment] beyond describe().
#include "rondo/config/augment_config.h"

#include <fmt/format.h>

#include <utility>

#include "rondo/base/error.h"

namespace rondo {

void check_augment(const AugmentConfig& config, const std::string& where) {
  for (const auto& [key, values] : {std::pair("mean", &config.mean), {"std", &config.std}}) {
    if (values->size() != 3) {
      throw Error(ExitCode::bad_input,
                  fmt::format("{}.{}: expected three numbers, for red, green and blue, got {}",
                              where, key, values->size()));
    }
  }
}

}  // namespace rondo
