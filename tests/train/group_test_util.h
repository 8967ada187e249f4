// Groups of processes in tests: threads that each join as one rank.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "rondo/base/error.h"
#include "rondo/train/process_group.h"
#include "tests/base/base_test_util.h"

namespace rondo::testing {

// Runs `work` as every rank of a group; returns each rank's error ("" if none).
inline std::vector<std::string> in_group(int64_t size,
                                         const std::function<void(ProcessGroup&)>& work,
                                         double timeout = 20) {
  const TempDir folder;
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      GroupPlace place;
      place.shard = {rank, size};
      place.local_size = size;
      place.address = "127.0.0.1";
      place.file = folder.file("meeting");
      place.timeout = timeout;
      try {
        ProcessGroup group(place);
        work(group);
        group.barrier();
      } catch (const Error& error) {
        errors[static_cast<size_t>(rank)] =
            std::to_string(static_cast<int>(error.code())) + ": " + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline void expect_well(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace rondo::testing
