// The cache of the parallel corpus: rebuilt exactly when necessary, safe to build concurrently, and
// rejected if damaged or forged.
#include "rondo/data/parallel_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "rondo/data/pair_batches.h"
#include "tests/data/parallel_test_util.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;
using testing::made_up_text;
using testing::slurp;
using testing::small_model;
using testing::spill;
using ParallelCacheTest = testing::ParallelFixture;

TEST_F(ParallelCacheTest, IsBuiltOnceAndFollowsChanges) {
  put("first\n", "1\n");
  make_old();
  EXPECT_TRUE(opening_rebuilds());
  EXPECT_FALSE(opening_rebuilds());
  // However the paths are written, and wherever the objects are moved in memory.
  fs::create_symlink(options_.files.source, folder_.file("link.de"));
  ParallelOptions other = options_;
  other.files = {folder_.file("link.de"), folder_.file("cache/../text.en")};
  const auto time = fs::last_write_time(open_path_);
  ParallelCorpus one = ParallelCorpus::open(other, *bytes_, *bytes_);
  const ParallelCorpus two = std::move(one);
  EXPECT_EQ(two.path(), open_path_);
  EXPECT_EQ(fs::last_write_time(open_path_), time);
  EXPECT_EQ(source_text(two, 0), "first");

  spill(options_.files.target, "2\n");  // the same size
  EXPECT_TRUE(opening_rebuilds());
  EXPECT_EQ(text(open().target(0), *bytes_), "2");
  // Changed again at once, with the old time restored: detected by content, because the change is
  // recent.
  const auto stamp = fs::last_write_time(options_.files.target);
  spill(options_.files.target, "3\n");
  fs::last_write_time(options_.files.target, stamp);
  EXPECT_TRUE(opening_rebuilds());
  make_old();  // another time, the same contents
  EXPECT_FALSE(opening_rebuilds());
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.cache_folder), {}), 1);
}

TEST_F(ParallelCacheTest, CutShortMeanwhileIsAnError) {
  put(made_up_text(30, 1), made_up_text(30, 1));
  const ParallelCorpus corpus = open();
  PairBatches batches(corpus, {});
  PairBatch batch;
  EXPECT_TRUE(batches.next(batch));
  fs::resize_file(corpus.path(), 64);
  const Error error = testing::error_of([&] { batches.next(batch); });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_NE(error.message().find("was truncated while in use"), std::string::npos) << error.what();
}

TEST_F(ParallelCacheTest, OptionsAndTokenizersHaveTheirOwnCaches) {
  put(made_up_text(30, 1), made_up_text(30, 1));
  const auto model = small_model("bpe");
  const std::vector<std::function<ParallelCorpus()>> ways = {
      [&] { return open(); },
      [&] { return ParallelCorpus::open(options_, *model, *bytes_); },
      [&] { return ParallelCorpus::open(options_, *bytes_, *model); },
      [&] { return ParallelCorpus::open(options_, *model, *model); },
      [&] {
        ParallelOptions options = options_;
        options.max_tokens = 20;
        return ParallelCorpus::open(options, *bytes_, *bytes_);
      },
      [&] {
        ParallelOptions options = options_;
        options.max_tokens = 20;
        options.cut = true;
        return ParallelCorpus::open(options, *bytes_, *bytes_);
      },
  };
  std::vector<std::string> paths;
  std::vector<std::string> fingerprints;
  for (const auto& way : ways) {
    paths.push_back(way().path());
    fingerprints.push_back(way().fingerprint());
    for (size_t i = 0; i + 1 < paths.size(); ++i) {
      EXPECT_NE(paths[i], paths.back());
      EXPECT_NE(fingerprints[i], fingerprints.back());
    }
  }
  // A cache file copied over another's is rejected.
  for (size_t i = 0; i < ways.size(); ++i) {
    const size_t foreign = (i + 1) % ways.size();
    fs::copy_file(paths[foreign], paths[i], fs::copy_options::overwrite_existing);
    EXPECT_EQ(ways[i]().fingerprint(), fingerprints[i]);
  }
  // So is one made of other files; the same pairs elsewhere have the same fingerprint.
  const std::string path = open().path();
  options_.files = {folder_.file("z.de"), folder_.file("z.en")};
  put("\n" + made_up_text(30, 1), "\n" + made_up_text(30, 1));
  EXPECT_EQ(open().fingerprint(), fingerprints[0]);
  EXPECT_EQ(open().line(0), 2);
  put("x\n", "y\n");
  fs::copy_file(path, open().path(), fs::copy_options::overwrite_existing);
  EXPECT_EQ(open().count(), 1);
}

TEST_F(ParallelCacheTest, EveryDamageIsFound) {
  put(made_up_text(9, 1), made_up_text(9, 2));
  const std::string path = open().path();
  const std::string fingerprint = open().fingerprint();
  const std::string whole = slurp(path);
  CounterRandom random(1, "damage");
  for (int i = 0; i < 150; ++i) {
    spill(path, testing::damaged(whole, i, random));
    const ParallelCorpus corpus = open();
    ASSERT_EQ(corpus.fingerprint(), fingerprint);
    ASSERT_EQ(corpus.counts().lines, 9);
  }
}

// A cache of the pairs "ab" = "1", "c" = "23", where one array is another.
using Array = std::vector<int64_t>;
bool accepts(const std::string& path, const std::string& changed, const Array& values,
             int64_t max_tokens = 2) {
  std::map<std::string, Array> arrays = {
      {"counts", {2, 2, 0, 0, 0}},  {"lines", {1, 2}},           {"source_starts", {0, 2, 3}},
      {"target_starts", {0, 1, 3}}, {"source", {'a', 'b', 'c'}}, {"target", {'1', '2', '3'}},
  };
  arrays[changed] = values;
  const std::vector<int16_t> source(arrays["source"].begin(), arrays["source"].end());
  const std::string target(arrays["target"].begin(), arrays["target"].end());
  std::vector<TensorRef> tensors;
  for (const char* name : {"counts", "lines", "source_starts", "target_starts"}) {
    const Array& array = arrays[name];
    tensors.push_back({name, DType::i64, {static_cast<int64_t>(array.size())}, array.data()});
  }
  tensors.push_back({"source", DType::i16, {static_cast<int64_t>(source.size())}, source.data()});
  tensors.push_back({"target", DType::u8, {static_cast<int64_t>(target.size())}, target.data()});
  tensors.push_back({"files", DType::u8, {0}, nullptr});
  write_safetensors(path, tensors);
  const ParallelLimits limits{DType::i16, DType::u8, 'c', '3', max_tokens};
  return map_parallel(SafetensorsFile::open(path), limits).has_value();
}

// Inconsistent arrays are rejected even if the checksums match, since an attacker would update
// those.
TEST_F(ParallelCacheTest, LyingFilesAreRefused) {
  const std::string path = folder_.file("lies");
  EXPECT_TRUE(accepts(path, "lines", {1, 2}));
  const std::vector<std::pair<const char*, Array>> lies = {
      {"counts", {2, 2, 0, 0}},
      {"counts", {3, 2, 0, 0, 0}},
      {"counts", {2, 3, -1, 0, 0}},
      {"counts", {2, 2, INT64_MAX, INT64_MIN, 1}},
      {"counts", {2, 2, 0, 0, 3}},
      {"lines", {1}},
      {"lines", {}},
      {"lines", {0, 1}},
      {"lines", {2, 2}},
      {"lines", {1, 3}},
      {"source_starts", {0, 3}},
      {"source_starts", {1, 2, 3}},
      {"source_starts", {0, 0, 3}},
      {"source_starts", {0, 3, 3}},
      {"source_starts", {0, 4, 3}},
      {"source_starts", {0, -5, 3}},
      {"source_starts", {0, INT64_MIN, 3}},
      {"source_starts", {0, 2, 4}},
      {"target_starts", {0, 1, 2}},
      {"source", {'a', 'b', 'd'}},
      {"source", {'a', -1, 'c'}},
      {"source", {'a', 'b'}},
      {"target", {'1', '2', '4'}},
      {"target", {'1', '2', '3', '3'}},
  };
  for (const auto& [name, values] : lies) {
    EXPECT_FALSE(accepts(path, name, values)) << name << " " << ::testing::PrintToString(values);
  }
  EXPECT_FALSE(accepts(path, "lines", {1, 2}, 1)) << "sentences of two tokens";
}

TEST_F(ParallelCacheTest, ProcessesMayBuildAtOnce) {
  put(made_up_text(2000, 1), made_up_text(2000, 2));
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool good = false;
      try {
        good = open().counts().lines == 2000 && open().count() > 1000;
      } catch (const std::exception&) {
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.cache_folder), {}), 1);
}

}  // namespace
}  // namespace rondo
