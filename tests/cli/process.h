// Running the built program, or an example next to it, as a user would: arguments in, exit code and
// both outputs out.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/base/base_test_util.h"

extern char** environ;

namespace rondo::testing {

struct Result {
  int code = -1;  // as a shell reports it: 128 + the signal that ended it
  std::string out;
  std::string err;
  double seconds = 0;
  double cpu_seconds = 0;
  int64_t peak_bytes = 0;  // peak memory

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

using Arguments = std::vector<std::string>;

inline Result run_program(const std::string& program, const Arguments& arguments) {
  setenv("ASAN_OPTIONS", "detect_leaks=0", /*overwrite=*/0);  // libtorch's own, under sanitizers
  const TempDir folder;
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int how = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, folder.file("out").c_str(), how, 0600);
  posix_spawn_file_actions_addopen(&files, 2, folder.file("err").c_str(), how, 0600);
  Result result;
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), &files, nullptr, words.data(), environ) != 0) {
    throw std::runtime_error("cannot run " + program);
  }
  int status = 0;
  struct rusage use {};
  wait4(child, &status, 0, &use);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  posix_spawn_file_actions_destroy(&files);
  result.seconds = took.count();
  result.cpu_seconds = double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                       1e-6 * double(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  result.peak_bytes = int64_t{use.ru_maxrss} * 1024;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = slurp(folder.file("out"));
  result.err = slurp(folder.file("err"));
  return result;
}

inline Result rondo(const Arguments& arguments) { return run_program(RONDO_BINARY, arguments); }

// The same, expecting success.
inline Result rondo_ok(const Arguments& arguments) {
  Result result = rondo(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  return result;
}

// The shortest of several runs: the time it takes when the machine is not otherwise busy.
inline double quickest(int runs, const Arguments& arguments) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) best = std::min(best, rondo_ok(arguments).seconds);
  return best;
}

// Half of the runs are faster.
inline double median_seconds(int runs, const Arguments& arguments) {
  std::vector<double> all;
  for (int i = 0; i < runs; ++i) all.push_back(rondo_ok(arguments).seconds);
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The command exits with `code`, prints no data, and one clear message that contains `part`.
inline void expect_refusal(const Result& result, ExitCode code, const std::string& part) {
  EXPECT_EQ(result.code, static_cast<int>(code)) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("rondo: ", 0), 0u) << result.err;
  EXPECT_TRUE(contains(result.err, part)) << result.err;
  for (const char* trace : {"internal error", "frame #", "Exception raised from", "terminate"}) {
    EXPECT_FALSE(contains(result.err, trace)) << result.err;
  }
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace rondo::testing
