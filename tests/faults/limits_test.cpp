// Limits and memory: sizes beyond any machine, memory limits of the shell, files with wrong sizes,
// decompression bombs, files truncated while they are read. Each gives one message and the right
// exit code, quickly and without using the machine's memory; never a signal, never an endless wait.
#include "tests/cli/pictures.h"
#include "tests/cli/training.h"
#include "tests/data/data_test_util.h"

namespace rondo::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;
#ifdef NDEBUG
constexpr double kSoon = 3.0;  // seconds; several times what is needed, for busy machines
#else
constexpr double kSoon = 8.0;
#endif

// The command under limits of the shell ("ulimit -v 400000"); 124 if it has not ended after 30 s.
Result under(const std::string& limits, const Arguments& arguments) {
  std::string line = limits + "; exec timeout 30 '" RONDO_BINARY "'";
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  return run_program("/bin/sh", {"-c", line});
}

// Rejected as in expect_refusal(), using at most kSoon of CPU time and at most 64 MiB plus the
// file's size more memory than `usual`.
void expect_cheap_refusal(const Result& result, const std::string& part, const Result& usual,
                          int64_t file_bytes) {
  expect_refusal(result, ExitCode::bad_input, part);
  EXPECT_LT(result.cpu_seconds, usual.cpu_seconds + kSoon);
  EXPECT_LT(result.peak_bytes, usual.peak_bytes + file_bytes + 64 * kMiB);
}

// Documents read earlier, so that no messages are printed about them now.
struct PreparedTrainee : Trainee {
  PreparedTrainee() { usual = train("before", {"--set", "train.steps=1"}); }
  Result usual;
};

// Compressed: `mib` MiB of one byte, as members or frames of one MiB (so that this process, whose
// memory counts for its children, never holds them all).
std::string bomb(std::string (*compress)(const std::string&), char byte, int64_t mib) {
  const std::string part = compress(std::string(kMiB, byte));
  std::string all;
  for (int64_t i = 0; i < mib; ++i) all += part;
  return all;
}

// ---- sizes from a configuration

TEST(LimitsOfConfiguration, BatchOfLongSegments) {
  const PreparedTrainee t;
  const Result result = rondo(
      t.command("run", {"--set", "train.batch=1048576", "--set", "model.time.segment=65536"}));
  expect_refusal(result, ExitCode::bad_input, "train.batch: 1,048,576 rows of 65,536 tokens");
  EXPECT_TRUE(contains(result.err, "needs 4 TiB of memory")) << result.err;
  EXPECT_FALSE(fs::exists(t.file("run")));
}

TEST(LimitsOfConfiguration, BatchOfLargeImages) {
  const Pictures p;
  const Result result =
      rondo(p.command("run", {"--set", "train.batch=1048576", "--set", "model.image=4096"}));
  expect_refusal(result, ExitCode::bad_input, "1,048,576 images of 4096 x 4096 pixels");
  EXPECT_TRUE(contains(result.err, "needs 576 TiB of memory")) << result.err;
  EXPECT_FALSE(fs::exists(p.file("run")));
}

// Each size is within its bounds, but their product exceeds any memory: the message gives the
// bytes.
TEST(LimitsOfConfiguration, WeightsBeyondMemory) {
  const PreparedTrainee t;
  const Result result =
      rondo(t.command("run", {"--set", "model.width=65536", "--set", "model.hidden=1048576"}));
  expect_refusal(result, ExitCode::failure,
                 "out of memory: cannot allocate a tensor of 274877906944 bytes");
}

TEST(LimitsOfConfiguration, Levels) {
  const Arguments lm = {"info", "brt/slide-12l", "--set"};
  const auto with = [&](const std::string& assignment) {
    Arguments words = lm;
    words.push_back(assignment);
    return rondo(words);
  };
  expect_refusal(with("model.depth.levels=100000"), ExitCode::bad_input,
                 "model.depth.levels: expected a whole number between 1 and 10000, got 100000");
  expect_refusal(rondo({"info", "sret/t", "--set", "model.depth.recursive.blocks=[5000,5000,5000]",
                        "--set", "model.depth.recursive.loops=[3000]"}),
                 ExitCode::bad_input, "expected at most 10000 levels, got 15000000");
  expect_refusal(with("model.time.window=9000000000000000000"), ExitCode::bad_input,
                 "model.time.window");
}

// An encoder-decoder on `files`, which are SOURCE,TARGET or a .tsv.
Arguments translation(const TempDir& folder, const std::string& files, const Arguments& more = {}) {
  spill(folder.file("pairs.toml"),
        "[model]\nkind = \"encoder-decoder\"\nsource_vocabulary = 260\ntarget_vocabulary = 260\n"
        "padding = 256\nwidth = 2\nhidden = 1\nheads = 1\n[model.depth]\nlevels = 1\n"
        "[data]\ntokenizer = \"bytes\"\n[train]\nsteps = 1\nbatch = 2\nthreads = 1\n");
  Arguments words = {"train",   folder.file("pairs.toml"), "-o",    folder.file("run"),
                     "--cache", folder.file("cache"),      "--set", "data.train=" + files};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A network that could never be saved is rejected before training starts.
TEST(LimitsOfConfiguration, CheckpointsOfTooManyTensors) {
  const TempDir folder;
  spill(folder.file("few"), "a\nb\n");
  const std::string few = folder.file("few") + "," + folder.file("few");
  rondo_ok(translation(folder, few));
  fs::remove_all(folder.file("run"));
  const Result result = rondo(translation(folder, few, {"--set", "model.depth.levels=4000"}));
  expect_refusal(result, ExitCode::bad_input,
                 "the network has 104,004 weight tensors: expected at most 100,000 for a "
                 "checkpoint to fit in one file");
  EXPECT_TRUE(contains(result.err, "choose fewer levels (model.depth.levels)")) << result.err;
  EXPECT_FALSE(fs::exists(folder.file("run")));
}

TEST(LimitsOfConfiguration, Threads) {
  const Trainee t;
  expect_refusal(rondo(t.command("run", {"--set", "train.threads=4096"})), ExitCode::bad_input,
                 "train.threads");
  if (std::thread::hardware_concurrency() <= 128) {
    expect_refusal(rondo(t.command("run", {"--set", "train.threads=1000"})), ExitCode::bad_input,
                   "train.threads: expected at most");
  }
  EXPECT_FALSE(fs::exists(t.file("run")));
}

// ---- memory limits of the shell

TEST(LimitsOfShell, TooLittleMemoryForTheEngineIsNamed) {
  for (const char* limit : {"ulimit -v 250000", "ulimit -v 400000", "ulimit -v 550000",
                            "ulimit -d 50000", "ulimit -d 250000"}) {
    const Result result = under(limit, {"info", "sret/t"});
    expect_refusal(result, ExitCode::failure, std::string(limit).substr(0, 9) + ": the limit is");
    EXPECT_TRUE(contains(result.err, "needs")) << result.err;
  }
}

// Under any limit, training either works or ends with a message that names the limit.
TEST(LimitsOfShell, TrainingWorksOrNamesTheLimit) {
  const PreparedTrainee t;
  int worked = 0;
  for (const int64_t mib : {600, 760, 900, 1200, 3000}) {
    const std::string limit = "ulimit -v " + std::to_string(mib * 1024);
    const std::string run = "run" + std::to_string(mib);
    const Result result = under(limit, t.command(run, {"--set", "train.steps=4"}));
    worked += result.code == 0 ? 1 : 0;
    if (result.code != 0) expect_refusal(result, ExitCode::failure, "ulimit -v");
  }
  EXPECT_GE(worked, 2);
}

TEST(LimitsOfShell, WithLessRoomFewerThreads) {
  const Result result = under("ulimit -v 920000", {"info", "sret/t"});
  EXPECT_EQ(result.code, 0) << result.err;
}

// Stacks of 1 GB each: whether or not the threads of one pool fit, those of all pools do not.
TEST(LimitsOfShell, ThreadsThatCannotBeStarted) {
  const Trainee t;
  for (const char* limit : {"2500000", "3000000", "5500000", "9000000"}) {
    const Result result = under(std::string("ulimit -s 1000000; ulimit -v ") + limit,
                                t.command("run", {"--set", "train.threads=3"}));
    expect_refusal(result, ExitCode::failure, "cannot start 3 threads");
  }
}

// A tensor that fits the machine's memory but not the limit.
TEST(LimitsOfShell, TensorBeyondTheLimit) {
  const PreparedTrainee t;
  const Result result =
      under("ulimit -v 1000000",
            t.command("run", {"--set", "model.hidden=1048576", "--set", "model.width=256"}));
  expect_refusal(result, ExitCode::failure,
                 "out of memory: cannot allocate a tensor of 1073741824 bytes");
  EXPECT_TRUE(contains(result.err, "ulimit -v: 977 MiB")) << result.err;
}

// ---- files with wrong sizes

class LimitsOfFiles : public ::testing::Test {
 protected:
  std::string model(const std::string& sizes, const std::string& depth) const {
    const std::string path = folder_.file("claims.safetensors");
    const std::vector<float> weights(64, 0.5F);
    write_safetensors(path, {{"embedding.weight", DType::f32, {4, 16}, weights.data()}},
                      {{"rondo.config", "[model]\nkind = \"language-model\"\n" + sizes +
                                            "\n[model.depth]\n" + depth + "\n"}});
    return path;
  }
  std::string put(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(folder_.file(name)).parent_path());
    spill(folder_.file(name), bytes);
    return folder_.file(name);
  }
  const Result& usual() const {
    static const Result result = rondo_ok({"info", "sret/t"});
    return result;
  }

  TempDir folder_;
};

TEST_F(LimitsOfFiles, LevelsAndWidths) {
  const auto check = [&](const std::string& sizes, const std::string& depth,
                         const std::string& part) {
    const std::string path = model(sizes, depth);
    expect_cheap_refusal(rondo({"info", path}), part, usual(), 0);
    expect_cheap_refusal(rondo({"generate", path, "-n", "1"}), part, usual(), 0);
  };
  check("", "levels = 100000", "between 1 and 10000, got 100000");
  check("vocabulary = 1\nwidth = 1\nhidden = 1", "levels = 9999",
        "claims at least 9999 levels or blocks with their own tensors, but the file holds 1");
  check("width = 65536\nhidden = 1048576", "levels = 1",
        "claims at least 137455992832 weights, but the file holds 256 bytes of data");
  check("vocabulary = 16777216\nwidth = 16\nhidden = 1", "scheme = \"universal\"", "weights");
}

TEST_F(LimitsOfFiles, MillionsOfEmptyTensors) {
  std::string header = "{";
  for (int i = 0; i < 1'000'000; ++i) {
    header +=
        "\"t" + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},";
  }
  header.back() = '}';
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  const std::string path = put("empty.safetensors", bytes + header);
  expect_cheap_refusal(rondo({"info", path}), "expected at most 500,000 tensors", usual(),
                       static_cast<int64_t>(bytes.size() + header.size()));
}

TEST_F(LimitsOfFiles, CompressedTextsThatExpandWithoutEnd) {
  const PreparedTrainee t;
  const std::string refused = "expands to more than 200 times its size";
  for (const std::string& path :
       {put("bomb.txt.gz", bomb(gzip, ' ', 200)), put("bomb.txt.zst", bomb(zstd, ' ', 200))}) {
    const auto size = static_cast<int64_t>(fs::file_size(path));
    expect_cheap_refusal(rondo(t.command("run", {"--set", "data.train=" + path})), refused, t.usual,
                         size);
    expect_cheap_refusal(
        rondo({"tokenizer", "train", path, "-o", folder_.file("m"), "--vocab", "300"}), refused,
        t.usual, size);
    expect_cheap_refusal(rondo({"score", path, path}), refused, t.usual, size);
  }
  EXPECT_FALSE(fs::exists(t.file("run")));
}

// On either side, or in a .tsv; as one line or as millions.
TEST_F(LimitsOfFiles, CompressedParallelTextsThatExpandWithoutEnd) {
  const std::string few = put("few", "a\nb\n");
  const Result usual_pairs = rondo_ok(translation(folder_, few + "," + few));
  fs::remove_all(folder_.file("run"));
  const std::string line = put("line.gz", bomb(gzip, ' ', 200));
  const std::string lines = put("lines.zst", bomb(zstd, '\n', 200));
  const std::string table = put("table.tsv.gz", bomb(gzip, '\t', 200));
  for (const std::string& files :
       {line + "," + few, few + "," + lines, lines + "," + lines, table}) {
    SCOPED_TRACE(files);
    expect_cheap_refusal(rondo(translation(folder_, files)),
                         "expands to more than 200 times its size", usual_pairs,
                         static_cast<int64_t>(fs::file_size(line)));
  }
  EXPECT_FALSE(fs::exists(folder_.file("run")));
}

TEST_F(LimitsOfFiles, CompressedImagesThatExpandWithoutEnd) {
  const std::string path = put("bomb.tgz", bomb(gzip, '\0', 200));
  expect_cheap_refusal(rondo({"data", "check", path}), "expands to more than 200 times its size",
                       usual(), static_cast<int64_t>(fs::file_size(path)));
}

// ---- files truncated while they are read

TEST(LimitsOfMappings, CacheCutShortWhileTraining) {
  const Trainee t;
  Child child(t.command("run", {"--set", "train.steps=1000000"}));
  ASSERT_TRUE(wait_until([&] { return t.metrics("run").size() > 3 || child.ended(); }, "steps"));
  ASSERT_FALSE(child.ended()) << child.err();
  for (const auto& entry : fs::directory_iterator(t.file("cache"))) {
    fs::resize_file(entry.path(), 100);
  }
  EXPECT_EQ(child.wait(), static_cast<int>(ExitCode::io)) << child.err();
  EXPECT_TRUE(contains(child.err(), "was truncated while in use")) << child.err();
}

// ---- counting

// Four times as many levels take about four times as long, not sixteen times.
TEST(LimitsOfInfo, TimeIsLinearInLevels) {
  // CPU time, the minimum of two runs: other processes only ever add to it.
  const auto seconds = [](const std::string& scheme, int64_t levels) {
    double least = 1e9;
    for (int i = 0; i < 2; ++i) {
      const Result result =
          rondo_ok({"info", "brt/slide-12l", "--set", "model.depth.scheme=" + scheme, "--set",
                    "model.depth.levels=" + std::to_string(levels)});
      least = std::min(least, result.cpu_seconds);
    }
    return least;
  };
  const double start = seconds("vanilla", 1);
  for (const char* scheme : {"vanilla", "ring"}) {
    const double few = seconds(scheme, 400) - start;
    const double many = seconds(scheme, 1600) - start;
    EXPECT_LT(many, 10 * few) << scheme;
  }
}

}  // namespace
}  // namespace rondo::testing
