// Start-up time of a verb that computes: loading libtorch without the libraries that it never calls
// (tools/stand_ins.py), and our own share, which must be small.
#include <sys/resource.h>

#include "tests/cli/training.h"

namespace rondo::testing {
namespace {

// CPU time of all children that have ended, which a busy machine changes little.
double childrens_seconds() {
  rusage used = {};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The minimum of several runs.
double least_cpu(const Arguments& arguments) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double before = childrens_seconds();
    rondo_ok(arguments);
    least = std::min(least, childrens_seconds() - before);
  }
  return least;
}

TEST(StartUp, AModelAnswersSoonAfterTorchIsLoaded) {
  const Trainee t;
  t.train("run", {"--set", "model.width=256", "--set", "model.hidden=1024", "--set",
                  "model.depth.levels=6", "--set", "train.steps=1"});
  const std::string run = t.file("run");
  rondo_ok({"generate", run, "-n", "1", "--state-out", t.file("state")});
  // The same libraries, and almost no work.
  const double loaded = least_cpu({"state", "info", t.file("state")});
  const double answered = least_cpu({"generate", run, "-n", "1", "--threads", "1"});
#ifdef NDEBUG
  const double most = 1.3;  // relative to loading: machines, and their neighbors, differ
#else
  const double most = 4.0;
#endif
  EXPECT_LT(answered, most * loaded) << loaded << " s of it loading";
}

}  // namespace
}  // namespace rondo::testing
