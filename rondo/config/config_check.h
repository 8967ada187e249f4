// How contradictions in a configuration are reported: one form, whoever checks.
#pragma once

#include <string>

#include "rondo/base/error.h"

namespace rondo {

class ConfigCheck {
 public:
  // `name`: whose configuration it is, a file or a model.
  explicit ConfigCheck(std::string name) : name_(std::move(name)) {}

  // Error{bad_input} unless it holds.
  void require(bool holds, const std::string& what, const std::string& advice) const {
    if (!holds) throw Error(ExitCode::bad_input, name_ + ": " + what, advice);
  }

 private:
  std::string name_;
};

}  // namespace rondo
