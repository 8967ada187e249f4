// Exceptions where nothing can catch them, such as in a parallel region of a kernel: one message
// and the usual exit code; no abort.
#include "tests/cli/arrays.h"
#include "tests/faults/preload.h"

namespace rondo::testing {
namespace {

class UncaughtExceptions : public ::testing::Test {
 protected:
  void SetUp() override { write_arrays(inputs_, {{"images", ramp({1, 3, 224, 224}, 0.01)}}); }
  Result forward(const std::string& fault) const {
    return rondo_with_fault(fault, inputs_,
                            {"forward", "sret/t", "--input", inputs_, "--output", outputs_});
  }
  TempDir folder_;
  std::string inputs_ = folder_.file("in.safetensors");
  std::string outputs_ = folder_.file("out.safetensors");
};

TEST_F(UncaughtExceptions, NoMemoryIsOneMessage) {
  const Result result = forward("bad_alloc");
  expect_refusal(result, ExitCode::failure, "rondo: out of memory");
  EXPECT_EQ(lines_of(result.err).size(), 2u) << result.err;
  EXPECT_FALSE(std::filesystem::exists(outputs_));
}

TEST_F(UncaughtExceptions, ABugIsOneMessageWithoutATrace) {
  const Result result = forward("bug");
  EXPECT_EQ(result.code, static_cast<int>(ExitCode::failure)) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "rondo: internal error: a bug\n  please report it with the command you ran\n");
}

}  // namespace
}  // namespace rondo::testing
