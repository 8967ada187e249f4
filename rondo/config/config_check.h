// Uniform error reporting for inconsistent configurations.
#pragma once

#include <string>

#include "rondo/base/error.h"

namespace rondo {

class ConfigCheck {
 public:
  // `name`: the file or model that the configuration belongs to.
  explicit ConfigCheck(std::string name) : name_(std::move(name)) {}

  // Throws Error{bad_input} unless `holds`.
  void require(bool holds, const std::string& what, const std::string& advice) const {
    if (!holds) throw Error(ExitCode::bad_input, name_ + ": " + what, advice);
  }

 private:
  std::string name_;
};

}  // namespace rondo
