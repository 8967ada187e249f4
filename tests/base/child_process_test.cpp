// Child processes: output and log in files, exit codes, signals; no child outlives its parent.
#include "rondo/base/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

void pause_briefly() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

int end_of(ChildProcess& child) {
  std::optional<int> code;
  while (!(code = child.poll()).has_value()) pause_briefly();
  return *code;
}

TEST(ChildProcess, GivesOutputLogAndExitCode) {
  const testing::TempDir folder;
  ChildProcess child({{"/bin/sh", "-c", "echo out; echo log >&2; exit 7"},
                      folder.file("out"),
                      folder.file("log"),
                      0});
  EXPECT_EQ(end_of(child), 7);
  EXPECT_EQ(child.poll(), 7);  // again
  EXPECT_EQ(testing::slurp(folder.file("out")), "out\n");
  EXPECT_EQ(testing::slurp(folder.file("log")), "log\n");
}

TEST(ChildProcess, LogsAreAppendedAndTakeTheOutputWithoutAFileForIt) {
  const testing::TempDir folder;
  testing::spill(folder.file("log"), "before\n");
  ChildProcess child({{"/bin/sh", "-c", "echo out"}, "", folder.file("log"), 0});
  EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(testing::slurp(folder.file("log")), "before\nout\n");
}

TEST(ChildProcess, SignalsCountAsShellsCountThem) {
  const testing::TempDir folder;
  ChildProcess child({{"/bin/sleep", "100"}, "", folder.file("log"), 0});
  EXPECT_FALSE(child.poll().has_value());
  child.send(SIGTERM);
  EXPECT_EQ(end_of(child), 128 + SIGTERM);
}

TEST(ChildProcess, WhatCannotBeStartedIsSaid) {
  const testing::TempDir folder;
  ChildProcess child({{"/no/such/program"}, "", folder.file("log"), 0});
  EXPECT_EQ(end_of(child), 127);
  EXPECT_ANY_THROW(ChildProcess({{"/bin/true"}, "", "/no/such/folder/log", 0}));
}

TEST(ChildProcess, EndsWithItsParentEvenByKill) {
  const testing::TempDir folder;
  const std::string pid_file = folder.file("pid");
  const pid_t parent = fork();
  if (parent == 0) {
    ChildProcess child({{"/bin/sh", "-c", "echo $$ > " + pid_file + "; exec sleep 100"},
                        "",
                        folder.file("log"),
                        0});
    while (true) pause();
  }
  while (testing::slurp(pid_file).find('\n') == std::string::npos) pause_briefly();
  const pid_t child = std::stoi(testing::slurp(pid_file));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  const auto is_there = [&] {
    const std::string status = testing::slurp("/proc/" + std::to_string(child) + "/status");
    return !status.empty() && status.find("State:\tZ") == std::string::npos;
  };
  for (int i = 0; i < 1000 && is_there(); ++i) pause_briefly();
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace rondo
