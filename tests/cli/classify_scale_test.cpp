// Eight thousand images through rondo classify, one in a hundred broken: the broken ones are listed
// exactly, all others are classified in order, and memory use does not grow.
#include <sys/resource.h>

#include "tests/cli/pictures.h"

namespace rondo::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMeasuresMemory = false;  // freed memory is kept there
#elif defined(__has_feature)
constexpr bool kMeasuresMemory = !__has_feature(address_sanitizer);
#else
constexpr bool kMeasuresMemory = true;
#endif

constexpr int64_t kMany = 8000;
constexpr int64_t kFew = 1000;

std::string numbered_name(int64_t i) {
  const std::string digits = std::to_string(i);
  return "many/" + std::string(5 - digits.size(), '0') + digits + ".png";
}

bool is_broken(int64_t i) { return i % 100 == 37; }

// Damaged in turn: truncated, empty, or not an image.
std::string damaged(const std::string& bytes, int64_t i) {
  const int64_t kind = i / 100 % 3;
  return kind == 0 ? bytes.substr(0, bytes.size() / 2) : kind == 1 ? "" : "no image at all";
}

struct Measured {
  int code = 0;
  int64_t peak_kib = 0;
};

// Runs the program with its outputs in files, and reads its peak memory from the system.
Measured run_measured(const Arguments& arguments, const std::string& out, const std::string& err) {
  setenv("ASAN_OPTIONS", "detect_leaks=0", /*overwrite=*/0);
  std::vector<char*> words = {const_cast<char*>(RONDO_BINARY)};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int how = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), how, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), how, 0600);
  pid_t child = 0;
  if (posix_spawn(&child, RONDO_BINARY, &files, nullptr, words.data(), environ) != 0) {
    throw std::runtime_error("cannot run " RONDO_BINARY);
  }
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  struct rusage usage = {};
  wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, usage.ru_maxrss};
}

TEST(ClassifyScale, EightThousandImagesInFlatMemory) {
  const Pictures pictures;
  rondo_ok(pictures.command("run", {"--set", "train.steps=2"}));
  std::filesystem::create_directories(pictures.file("many"));
  std::string few_list;
  std::vector<std::string> good;
  std::vector<std::string> broken;
  for (int64_t i = 0; i < kMany; ++i) {
    const std::string path = pictures.file(numbered_name(i));
    const std::string bytes = encode_png(Pictures::picture(i % Pictures::kClasses, i));
    spill(path, is_broken(i) ? damaged(bytes, i) : bytes);
    (is_broken(i) ? broken : good).push_back(path);
    if (i < kFew) {
      few_list += path + "\n";
    }
  }
  pictures.put("few.list", few_list);
  const Measured few = run_measured(
      {"classify", pictures.file("run"), "--list", pictures.file("few.list"), "--top", "1"},
      pictures.file("few.out"), pictures.file("few.err"));
  EXPECT_EQ(few.code, 3);
  const Measured many = run_measured({"classify", pictures.file("run"), pictures.file("many")},
                                     pictures.file("out"), pictures.file("err"));
  EXPECT_EQ(many.code, 3);
  if (kMeasuresMemory) {
    EXPECT_LT(many.peak_kib, few.peak_kib + 16 * 1024) << "KiB at 8,000 and at 1,000 images";
  }
  std::vector<std::string> answered;
  for (const std::string& line : lines_of(slurp(pictures.file("out")))) {
    answered.push_back(line.substr(0, line.find('\t')));
  }
  EXPECT_EQ(answered, good);
  std::vector<std::string> named;
  const std::string warning = "warning: ";
  for (const std::string& line : lines_of(slurp(pictures.file("err")))) {
    if (line.rfind(warning, 0) == 0) {
      named.push_back(line.substr(warning.size(), broken.front().size()));
    }
  }
  EXPECT_EQ(named, broken);
  EXPECT_TRUE(
      contains(slurp(pictures.file("err")), "rondo: 80 of 8,000 images could not be read\n"));
}

}  // namespace
}  // namespace rondo::testing
