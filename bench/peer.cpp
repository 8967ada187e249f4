// Starts peers and communicates with them.
#include "bench/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "rondo/base/files.h"
#include "rondo/base/text.h"
#include "rondo/config/share.h"

extern char** environ;

namespace rondo {
namespace {

constexpr double kStartSeconds = 300;   // importing torch and building a network
constexpr double kAnswerSeconds = 600;  // the longest sample

// Passes on our environment, so that both wait for threads and choose OpenBLAS kernels the same
// way.
std::vector<std::string> peer_environment(int64_t threads) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("OMP_NUM_THREADS=", 0) != 0) all.push_back(text);
  }
  all.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Peer::Peer(const PeerOptions& options, const std::string& script,
           const std::vector<std::string>& arguments)
    : name_(script) {
  const bool node = script.size() > 3 && script.compare(script.size() - 3, 3, ".js") == 0;
  std::vector<std::string> words = {node ? "node" : options.python, options.folder + "/" + script,
                                    "--threads", std::to_string(options.threads)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (options.processor_time) words.insert(words.end(), {"--clock", "processor"});
  if (node) words.insert(words.end(), {"--python", options.python});  // for lm.py
  start(words);
  if (channel_ >= 0) greet();
}

void Peer::greet() {
  std::string line;
  if (!read_line(line, kStartSeconds)) return fail(how_it_ended());
  if (line.rfind("ready ", 0) != 0) return fail(printable(line));
  metadata_ = nlohmann::json::parse(line.substr(6), nullptr, /*allow_exceptions=*/false);
  ready_ = metadata_.is_object();
  if (!ready_) fail("unexpected output: " + printable(line));
}

void Peer::start(const std::vector<std::string>& given) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(fmt::format("cannot create a socket: {}", std::strerror(errno)));
  }
  std::vector<std::string> words = given;
  std::vector<std::string> environment = peer_environment(std::stoll(given[3]));
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawnp(&child_, words[0].c_str(), &files, nullptr,
                                 pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  channel_ = ends[0];
  if (error == 0) return;
  child_ = -1;
  fail(fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
}

Peer::~Peer() {
  if (channel_ >= 0) close(channel_);  // end of input makes it exit
  if (child_ < 0) return;
  for (int i = 0; i < 50; ++i) {
    if (waitpid(child_, nullptr, WNOHANG) != 0) return;
    usleep(20000);
  }
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void Peer::fail(const std::string& why) {
  ready_ = false;
  trouble_ = why;
  if (channel_ >= 0) close(channel_);
  channel_ = -1;
}

std::string Peer::how_it_ended() {
  int status = 0;
  for (int i = 0; i < 50 && child_ >= 0; ++i) {
    if (waitpid(child_, &status, WNOHANG) == child_) {
      child_ = -1;
      if (WIFSIGNALED(status)) {
        return fmt::format("{} was killed: {}", name_, strsignal(WTERMSIG(status)));
      }
      return fmt::format("{} exited with code {}", name_, WEXITSTATUS(status));
    }
    usleep(20000);
  }
  return name_ + " does not respond";
}

bool Peer::read_line(std::string& line, double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const auto end = unread_.find('\n');
    if (end != std::string::npos) {
      line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return true;
    }
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    pollfd wait = {channel_, POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count() * 1e3) + 1) <= 0) {
      if (errno == EINTR && left.count() > 0) continue;
      return false;
    }
    char buffer[4096];
    const ssize_t got = read(channel_, buffer, sizeof(buffer));
    if (got <= 0) return false;
    unread_.append(buffer, static_cast<size_t>(got));
  }
}

std::string Peer::ask(const std::string& question) {
  if (!ready_) return {};
  const std::string line = question + "\n";
  std::string answer;
  if (send(channel_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()) ||
      !read_line(answer, kAnswerSeconds)) {
    fail(how_it_ended());
    return {};
  }
  return answer;
}

double Peer::go(int64_t times) {
  const std::string answer = ask(fmt::format("go {}", times));
  char* end = nullptr;
  const double seconds = std::strtod(answer.c_str(), &end);
  const bool number = !answer.empty() && *end == '\0' && seconds > 0;
  if (!number && ready_) fail("unexpected output: " + printable(answer));
  return number ? seconds : std::numeric_limits<double>::quiet_NaN();
}

int64_t Peer::peak_bytes() {
  const std::string answer = ask("memory");
  return std::strtoll(answer.c_str(), nullptr, 10);
}

std::string usual_python() {
  constexpr const char* kDebian = "/usr/bin/python3";
  return access(kDebian, X_OK) == 0 ? kDebian : "python3";
}

std::string find_peers() {
  const std::string folder = share_folder() + "/bench/peers";
  return exists(folder + "/protocol.py") ? folder : "";
}

}  // namespace rondo
