// Training from the command line, small enough for a test: texts, an experiment that takes about a
// second, processes that run in the background and can be sent signals.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "rondo/base/random.h"
#include "tests/cli/arrays.h"
#include "tests/cli/process.h"

namespace rondo::testing {

constexpr double kPatience = 100.0;  // seconds to wait for something that takes one

inline void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

inline Result in_shell(const std::string& script) { return run_program("/bin/sh", {"-c", script}); }

// The program with these arguments, as a shell runs it.
inline std::string quoted(const Arguments& words) {
  std::string line = "'" RONDO_BINARY "'";
  for (const std::string& word : words) line += " '" + word + "'";
  return line;
}

// Polls; a test failure if it does not become true in time.
inline bool wait_until(const std::function<bool()>& condition, const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  while (!condition()) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > kPatience) {
      ADD_FAILURE() << "waited in vain: " << what;
      return false;
    }
    pause_for(0.01);
  }
  return true;
}

// The program running in the background. Killed at the end of the scope if it is still running.
class Child {
 public:
  explicit Child(const Arguments& arguments) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", /*overwrite=*/0);
    const std::string program = RONDO_BINARY;
    std::vector<char*> words = {const_cast<char*>(program.c_str())};
    for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const int how = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, folder_.file("out").c_str(), how, 0600);
    posix_spawn_file_actions_addopen(&files, 2, folder_.file("err").c_str(), how, 0600);
    if (posix_spawn(&pid_, program.c_str(), &files, nullptr, words.data(), environ) != 0) {
      throw std::runtime_error("cannot run " + program);
    }
    posix_spawn_file_actions_destroy(&files);
  }
  ~Child() {
    if (!ended()) {
      send(SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool ended() {
    if (!ended_) note(waitpid(pid_, &status_, WNOHANG));
    return ended_;
  }
  void send(int signal) const { kill(pid_, signal); }
  // Whether it has loaded the engine: it has printed its first line and has a long way to go.
  bool starts_up() const {
    return slurp("/proc/" + std::to_string(pid_) + "/maps").find("librondo_engine") !=
           std::string::npos;
  }
  // Whether it has installed its own handler for the signal.
  bool catches(int signal) const {
    const std::string status = slurp("/proc/" + std::to_string(pid_) + "/status");
    const size_t at = status.find("SigCgt:");
    if (at == std::string::npos) return false;
    return (std::stoull(status.substr(at + 7), nullptr, 16) >> (signal - 1) & 1U) != 0;
  }
  // Its exit code, as a shell reports it.
  int wait() {
    if (!ended_) note(waitpid(pid_, &status_, 0));
    return code();
  }
  int code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }
  bool died_of(int signal) const { return WIFSIGNALED(status_) && WTERMSIG(status_) == signal; }
  std::string err() const { return slurp(folder_.file("err")); }

 private:
  void note(pid_t answer) { ended_ = answer == pid_; }

  TempDir folder_;
  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

// Texts and an experiment on them. With one thread, since bits are compared.
class Trainee {
 public:
  explicit Trainee(const std::string& optimizer = "adamw") {
    std::filesystem::create_directories(file("texts"));
    for (uint64_t i = 0; i < 5; ++i) spill(file("texts/" + std::to_string(i)), sample_text(i));
    spill(file("valid.txt"), sample_text(77));
    spill(file("tiny.toml"), experiment(optimizer));
  }

  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string config() const { return file("tiny.toml"); }

  Arguments command(const std::string& run, const Arguments& more = {}) const {
    Arguments words = {"train",   config(),      "-o",    file(run),
                       "--cache", file("cache"), "--set", "data.train=" + file("texts")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Result train(const std::string& run, const Arguments& more = {}) const {
    return rondo_ok(command(run, more));
  }
  void remove(const std::string& run) const { std::filesystem::remove_all(file(run)); }

  // Paths of a run's checkpoints, oldest first.
  std::vector<std::string> checkpoints(const std::string& run) const {
    std::vector<std::string> found;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(file(run) + "/checkpoints", none)) {
      if (entry.path().filename().string().front() != '.') found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines;
    for (const std::string& line : lines_of(slurp(file(run) + "/metrics.jsonl"))) {
      const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object()) lines.push_back(json);
    }
    return lines;
  }

  static std::string sample_text(uint64_t seed) {
    static const std::vector<std::string> kWords = {"round ", "and ", "again ", "the ", "wheel\n"};
    CounterRandom random(seed, "sample text");
    std::string text;
    while (text.size() < 700 + 100 * seed % 900) text += kWords[random.below(kWords.size())];
    return text;
  }

 private:
  static std::string experiment(const std::string& optimizer) {
    return R"([model]
kind = "language-model"
width = 16
hidden = 24
heads = 2
head_width = 8
dropout = 0.1

[model.depth]
levels = 2

[model.time]
kind = "block-recurrent"
window = 8
segment = 16
states = 4
recurrent_layers = [2]

[train]
steps = 60
batch = 2
threads = 1
ema = 0.9
log_every = 1
save_every = 2
keep = 2

[optimizer]
kind = ")" +
           optimizer + R"("

[schedule]
kind = "constant"
rate = 0.02
)";
  }

  TempDir folder_;
};

// A run of many hours that saves only when it is stopped.
inline const Arguments kEndless = {"--set", "train.steps=100000000", "--set",
                                   "train.save_every=100000000"};

// The last step in a run's log.
inline int64_t steps_done(const Trainee& t, const std::string& run) {
  const auto lines = t.metrics(run);
  return lines.empty() ? 0 : lines.back().at("step").get<int64_t>();
}

inline bool wait_for_steps(const Trainee& t, const std::string& run, int64_t steps) {
  return wait_until([&] { return steps_done(t, run) >= steps; }, std::to_string(steps) + " steps");
}

inline int64_t step_of(const std::string& checkpoint) {
  return std::stoll(std::filesystem::path(checkpoint).stem().string());
}

// Both runs ended with the same bits: weights, moments, averages, carried state; and at the same
// position in the data.
inline void expect_same_run(const Trainee& t, const std::string& a, const std::string& b) {
  ASSERT_FALSE(t.checkpoints(a).empty());
  ASSERT_FALSE(t.checkpoints(b).empty());
  const std::string last_a = t.checkpoints(a).back();
  const std::string last_b = t.checkpoints(b).back();
  EXPECT_EQ(std::filesystem::path(last_a).filename(), std::filesystem::path(last_b).filename());
  const Arrays arrays_a = read_arrays(last_a);
  const Arrays arrays_b = read_arrays(last_b);
  ASSERT_EQ(arrays_a.size(), arrays_b.size());
  EXPECT_GT(below(arrays_a, "weight.").size(), 10u);
  for (const auto& [name, array] : arrays_a) {
    EXPECT_EQ(array.shape, arrays_b.at(name).shape) << name;
    EXPECT_TRUE(array.bytes == arrays_b.at(name).bytes) << name << " differs";
  }
  EXPECT_EQ(SafetensorsFile::open(last_a).metadata().at("position"),
            SafetensorsFile::open(last_b).metadata().at("position"));
  EXPECT_EQ(slurp(t.file(a) + "/best.safetensors"), slurp(t.file(b) + "/best.safetensors"));
}

}  // namespace rondo::testing
