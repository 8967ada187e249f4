// Shared by the tests of rondo/base: a directory that removes itself, and catching an Error.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "rondo/base/error.h"
#include "rondo/base/progress.h"

namespace rondo::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rondo-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make a directory like " + pattern);
    }
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  // The number of files inside, to detect leftovers.
  int64_t count() const {
    const auto begin = std::filesystem::directory_iterator(path_);
    return std::distance(begin, std::filesystem::directory_iterator());
  }

 private:
  std::string path_;
};

// Plain reading and writing, independent of the code under test.
inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void spill(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// How loading shows its progress on a terminal when every update takes a second. Output goes to
// `screen`.
inline ProgressOptions slow_loading(std::string& screen) {
  ProgressOptions shown = loading_progress();
  shown.clock = [now = 0.0]() mutable { return ++now; };
  shown.sink = [&screen](std::string_view text) { screen.append(text); };
  shown.terminal = true;
  shown.columns = 80;
  return shown;
}

// The Error that `action` throws; if it throws none, a test failure and an Error that says so.
template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "expected an Error, got none";
  return Error(ExitCode::ok, "no error was thrown");
}

}  // namespace rondo::testing
