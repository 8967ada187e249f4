// Checkpoint files: they read back as written; truncation and changes are detected and the previous
// one is used; a save that fails loses nothing.
#include "rondo/train/checkpoint.h"

#include "tests/support/gradcheck.h"
#include "tests/train/file_size_limit.h"
#include "tests/train/train_test_util.h"

namespace rondo::test {
namespace {

Checkpoint small_checkpoint(uint64_t seed) {
  Checkpoint c;
  c.add("weight.", {{"map", noise({2, 3}, seed, at::kFloat)}, {"bias", noise({3}, seed + 1)}});
  c.add("moment.", {{"mean.map", noise({2, 3}, seed + 2, at::kFloat)}});
  c.add("carried.", {{"position", at::tensor({4, 9}, at::kLong)},
                     {"fresh", at::tensor({0, 1}, at::kInt).to(at::kBool)},
                     {"none", at::zeros({2, 0, 3})}});
  c.metadata["counters"] = R"({"best":1.5,"step":7})";
  c.metadata["position"] = R"({"row":[[3,128],[0,64]],"seed":1})";
  return c;
}

void expect_same_checkpoint(const Checkpoint& got, const Checkpoint& want) {
  expect_identical_tensors(got.tensors, want.tensors);
  for (const auto& [key, value] : want.metadata) EXPECT_EQ(got.metadata.at(key), value);
}

// A folder with the checkpoints of steps 1 and 2; the latter may be damaged.
class DamagedFolder {
 public:
  DamagedFolder() : checkpoints(folder_.file("checkpoints")) {
    checkpoints.save(1, small_checkpoint(1), 10);
    checkpoints.save(2, small_checkpoint(9), 10);
    whole = testing::slurp(checkpoints.path(2));
  }
  void replace(const std::string& bytes) const { testing::spill(checkpoints.path(2), bytes); }
  // The file of step 2 is rejected, and step 1 used instead.
  void expect_refused_for_the_other(const std::string& what) const {
    expect_refused(what);
    const auto found = checkpoints.newest();
    ASSERT_TRUE(found.has_value()) << what;
    EXPECT_EQ(found->step, 1) << what;
  }
  void expect_refused(const std::string& what) const {
    try {
      load_checkpoint(checkpoints.path(2));
      ADD_FAILURE() << what << ": was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input) << what;
      EXPECT_NE(error.message().find(checkpoints.path(2)), std::string::npos) << error.what();
    }
  }

 private:
  testing::TempDir folder_;
  QuietLog quiet_;

 public:
  CheckpointFolder checkpoints;
  std::string whole;
};

TEST(Checkpoints, ReturnBitForBit) {
  const DamagedFolder f;
  const auto found = f.checkpoints.newest();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, 2);
  expect_same_checkpoint(found->checkpoint, small_checkpoint(9));
  expect_same_checkpoint(load_checkpoint(f.checkpoints.path(1)), small_checkpoint(1));
}

TEST(Checkpoints, KnowWhatLiesBelowAPrefix) {
  const Checkpoint c = small_checkpoint(1);
  const NamedTensors weights = c.below("weight.");
  EXPECT_EQ(weights.size(), 2U);
  expect_identical(weights.at("map"), c.tensors.at("weight.map"));
  EXPECT_EQ(c.below("carried.").size(), 3U);
  EXPECT_TRUE(c.below("average.").empty());
}

TEST(Checkpoints, CutShortAnywhereAreRefusedAndTheOneBeforeIsUsed) {
  const DamagedFolder f;
  ASSERT_GT(f.whole.size(), 600U);
  for (size_t size = 0; size < f.whole.size(); ++size) {
    f.replace(f.whole.substr(0, size));
    f.expect_refused_for_the_other("cut to " + std::to_string(size));
  }
  f.replace(f.whole + '\0');
  f.expect_refused_for_the_other("one byte more");
  f.replace(f.whole);
  EXPECT_EQ(f.checkpoints.newest()->step, 2);
}

TEST(Checkpoints, WithAnyByteChangedAreRefused) {
  const DamagedFolder f;
  for (size_t at = 0; at < f.whole.size(); ++at) {
    for (const int flip : {0x01, 0x0f, 0xA0}) {
      std::string bytes = f.whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      f.replace(bytes);
      f.expect_refused("byte " + std::to_string(at) + " flipped by " + std::to_string(flip));
    }
  }
}

// A file of a one-step run before checkpoints had the checksum of all files.
TEST(Checkpoints, OfEarlierVersionsAreReadAndChecked) {
  const std::string whole = testing::slurp(RONDO_FIXTURES "/earlier_checkpoint.safetensors");
  const testing::TempDir folder;
  const std::string file = folder.file("1.safetensors");
  testing::spill(file, whole);
  EXPECT_EQ(SafetensorsFile::open(file).metadata().count(kFileChecksumKey), 0U);
  EXPECT_EQ(load_checkpoint(file).below("weight.").at("embedding").numel(), 260);
  std::string damaged = whole;
  damaged[whole.size() - 9] = static_cast<char>(damaged[whole.size() - 9] ^ 1);
  testing::spill(file, damaged);
  expect_error(ExitCode::bad_input, "damaged, its checksum does not match",
               [&] { load_checkpoint(file); });
  EXPECT_EQ(load_checkpoint(file, Verify::nothing).below("weight.").count("embedding"), 1U);
}

TEST(Checkpoints, OtherFilesAreNone) {
  const DamagedFolder f;
  save_tensors(f.checkpoints.path(2), {{"w", at::zeros({2})}});
  expect_error(ExitCode::bad_input, "not a checkpoint",
               [&] { load_checkpoint(f.checkpoints.path(2)); });
  expect_error(ExitCode::io, "nowhere", [] { load_checkpoint("/nowhere/1.safetensors"); });
}

TEST(Checkpoints, AllDamagedIsAnErrorWithEachReason) {
  const DamagedFolder f;
  f.replace("");
  testing::spill(f.checkpoints.path(1), "x");
  const Error error = error_of([&] { f.checkpoints.newest(); });
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  const std::string said = error.what();
  EXPECT_NE(said.find("no checkpoint is intact"), std::string::npos) << said;
  for (const int64_t step : {1, 2}) {
    EXPECT_NE(said.find(f.checkpoints.path(step) + ": expected"), std::string::npos) << said;
  }
}

TEST(Checkpoints, NoneAreNone) {
  const testing::TempDir folder;
  EXPECT_FALSE(CheckpointFolder("/nowhere").newest().has_value());
  EXPECT_FALSE(CheckpointFolder(folder.path()).newest().has_value());
}

// One that cannot be read may be intact: it is not reported as damaged, and no older one is used.
TEST(Checkpoints, ThatCannotBeReadAreNotPassedOver) {
  const DamagedFolder f;
  const std::string two = f.checkpoints.path(2);
  std::filesystem::remove(two);
  std::filesystem::create_symlink(two, two);  // as unreadable for root as for anyone
  const Error error = error_of([&] { f.checkpoints.newest(); });
  EXPECT_EQ(error.code(), ExitCode::io) << error.what();
  EXPECT_NE(std::string(error.what()).find(two + ": cannot open"), std::string::npos)
      << error.what();
  // The same when the newest is damaged and the one before it unreadable.
  f.checkpoints.save(3, small_checkpoint(3), 10);
  testing::spill(f.checkpoints.path(3), "x");
  const Error mixed = error_of([&] { f.checkpoints.newest(); });
  EXPECT_EQ(mixed.code(), ExitCode::io) << mixed.what();
  EXPECT_NE(std::string(mixed.what()).find(f.checkpoints.path(3)), std::string::npos);
}

TEST(Checkpoints, FoldersThatCannotBeReadAreErrors) {
  const testing::TempDir folder;
  testing::spill(folder.file("file"), "no folder");
  std::filesystem::create_symlink("/nowhere/at/all", folder.file("unmounted"));
  for (const char* name : {"file", "unmounted"}) {
    const CheckpointFolder checkpoints(folder.file(name));
    expect_error(ExitCode::io, folder.file(name) + ": cannot read the folder",
                 [&] { checkpoints.steps(); });
    expect_error(ExitCode::io, folder.file(name), [&] { checkpoints.newest(); });
  }
}

TEST(Checkpoints, PassingOneOverIsSaidInOneLine) {
  const DamagedFolder f;
  f.replace(f.whole.substr(0, f.whole.size() - 1));
  init_log(0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(f.checkpoints.newest()->step, 1);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find(f.checkpoints.path(2)), std::string::npos) << said;
  EXPECT_NE(said.find("skipped in favor of the checkpoint of step 1"), std::string::npos) << said;
}

TEST(Checkpoints, AreNotSavedWhereTheRunFolderIsGone) {
  const testing::TempDir folder;
  const CheckpointFolder checkpoints(folder.file("run/checkpoints"));
  expect_error(ExitCode::io, "cannot create the folder",
               [&] { checkpoints.save(1, small_checkpoint(1), 1); });
  EXPECT_FALSE(std::filesystem::exists(folder.file("run")));
}

TEST(Checkpoints, FilesOfOtherNamesAreNotLookedAt) {
  const DamagedFolder f;
  const std::string folder = std::filesystem::path(f.checkpoints.path(1)).parent_path();
  for (const char* name :
       {"best.safetensors", "00000003.safetensors.txt", ".00000004.safetensors.tmp",
        "99999999999999999999999999.safetensors", "12"}) {
    testing::spill(folder + "/" + name, f.whole);
  }
  EXPECT_EQ(f.checkpoints.steps(), (std::vector<int64_t>{1, 2}));
}

TEST(CheckpointRetention, KeepsTheNewest) {
  const testing::TempDir folder;
  const CheckpointFolder checkpoints(folder.path());
  for (const int64_t step : {5, 10, 15, 20, 123456789}) {
    checkpoints.save(step, small_checkpoint(static_cast<uint64_t>(step)), 3);
  }
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{15, 20, 123456789}));
  checkpoints.save(123456790, small_checkpoint(1), 1);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{123456790}));
  EXPECT_EQ(folder.count(), 1) << "nothing else is left in the folder";
}

// A damaged one of a later step must not displace what a restarted run has just saved.
TEST(CheckpointRetention, DoesNotCountLaterSteps) {
  const testing::TempDir folder;
  const QuietLog quiet;
  const CheckpointFolder checkpoints(folder.path());
  testing::spill(checkpoints.path(900), "damaged");
  checkpoints.save(10, small_checkpoint(1), 1);
  ASSERT_TRUE(checkpoints.newest().has_value());
  EXPECT_EQ(checkpoints.newest()->step, 10);
  checkpoints.save(20, small_checkpoint(1), 1);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{20, 900}));
  checkpoints.save(1000, small_checkpoint(1), 1);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1000})) << "once passed, it goes";
}

// ---- saves that fail --------------------------------------------------------------------------

TEST(FailingSave, LeavesTheEarlierOnesWholeAndNothingElse) {
  const testing::TempDir folder;
  const CheckpointFolder checkpoints(folder.path());
  checkpoints.save(1, small_checkpoint(1), 1);
  Checkpoint large = small_checkpoint(2);
  large.tensors["weight.map"] = at::zeros({1 << 16});
  const Error error = error_of([&] {
    const FileSizeLimit limit(100000);
    checkpoints.save(2, large, 1);
  });
  EXPECT_EQ(error.code(), ExitCode::io);
  const std::string said = error.what();
  EXPECT_NE(said.find(checkpoints.path(2)), std::string::npos) << said;
  EXPECT_NE(said.find("the checkpoint needs 262,2"), std::string::npos) << said;
  EXPECT_EQ(folder.count(), 1);
  EXPECT_EQ(checkpoints.newest()->step, 1);
  expect_same_checkpoint(checkpoints.newest()->checkpoint, small_checkpoint(1));
  checkpoints.save(2, large, 1);  // space again
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{2}));
}

TEST(FailingSave, OnAFullDeviceSaysHowMuchIsNeeded) {
  const testing::TempDir folder;
  const CheckpointFolder checkpoints(folder.path());
  checkpoints.save(1, small_checkpoint(1), 5);
  std::filesystem::create_symlink("/dev/full", checkpoints.path(2));
  const Error error = error_of([&] { checkpoints.save(2, small_checkpoint(2), 5); });
  EXPECT_EQ(error.code(), ExitCode::io);
  const std::string said = error.what();
  EXPECT_NE(said.find(checkpoints.path(2)), std::string::npos) << said;
  EXPECT_NE(said.find("No space left on device"), std::string::npos) << said;
  EXPECT_NE(said.find("bytes needed"), std::string::npos) << said;
  EXPECT_NE(said.find("free some space"), std::string::npos) << said;
  expect_same_checkpoint(load_checkpoint(checkpoints.path(1)), small_checkpoint(1));
}

TEST(FailingSave, WhereNoFolderCanBeIsAnErrorWithThePath) {
  const testing::TempDir folder;
  testing::spill(folder.file("taken"), "a file");
  expect_error(ExitCode::io, folder.file("taken") + "/checkpoints: cannot create the folder", [&] {
    CheckpointFolder(folder.file("taken") + "/checkpoints").save(1, small_checkpoint(1), 1);
  });
}

}  // namespace
}  // namespace rondo::test
