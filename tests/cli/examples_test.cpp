// The programs of examples/, which are built with the command, run and print what they should.
#include "tests/cli/process.h"

namespace rondo::testing {
namespace {

// Runs example_NAME; the build makes the examples before these tests run.
#define RUN_EXAMPLE(result, name)                                                       \
  const std::string path =                                                              \
      (std::filesystem::path(RONDO_BINARY).parent_path() / ("example_" name)).string(); \
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is not built";                \
  const Result result = run_program(path, {});                                          \
  ASSERT_EQ(result.code, 0) << result.err

TEST(Examples, ZooForward) {
  RUN_EXAMPLE(result, "zoo_forward");
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 5u) << result.out;
  for (size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].rfind("ringformer/image-small", 0), 0u) << lines[i];
    EXPECT_TRUE(contains(lines[i], "[2, 10]")) << lines[i];
  }
}

TEST(Examples, StreamState) {
  RUN_EXAMPLE(result, "stream_state");
  int64_t differences = 0;
  for (const std::string& line : lines_of(result.out)) {
    const std::string mark = "largest logit difference ";
    const size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    EXPECT_LE(std::stod(line.substr(at + mark.size())), 2e-6) << line;
    ++differences;
  }
  EXPECT_EQ(differences, 2) << result.out;
}

TEST(Examples, ServeDocuments) {
  RUN_EXAMPLE(result, "serve_documents");
  EXPECT_TRUE(contains(result.out, "32 identical to generating each alone")) << result.out;
}

TEST(Examples, WatchAttention) {
  RUN_EXAMPLE(result, "watch_attention");
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 7u) << result.out;  // a heading and six levels
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string name = "stack.level." + std::to_string(i - 1) + ".mixing.probabilities";
    EXPECT_TRUE(contains(lines[i], name)) << lines[i];
  }
}

}  // namespace
}  // namespace rondo::testing
