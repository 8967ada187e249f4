// How a group is formed.
#include "rondo/train/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/base/log.h"
#include "rondo/base/sha256.h"
#include "rondo/base/text.h"

namespace rondo {
namespace {

constexpr size_t kMostGreeting = 4096;         // bytes, before authentication
constexpr size_t kMostText = size_t{1} << 26;  // bytes, within the group
constexpr double kGreetingSeconds = 5;         // a silent guest blocks the others
constexpr double kLastWordsSeconds = 2;
constexpr const char* kMeetingFormat = "rondo group 1";

std::string random_text() {
  std::random_device device;
  std::string text;
  for (int i = 0; i < 8; ++i) text += fmt::format("{:08x}", device());
  return text;
}

// Proves knowledge of the secret; valid only for this handshake.
std::string proof(const std::string& secret, const char* side, const std::string& asked,
                  const std::string& answered, int64_t rank, int64_t size) {
  return hmac_sha256(
      secret, fmt::format("{} {} {} {} {}/{}", kMeetingFormat, side, asked, answered, rank, size));
}

nlohmann::json parsed(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw std::runtime_error("the peer does not follow the group protocol");
  return json;
}

// The contents of the file through which the others find rank 0.
struct MeetingFile {
  std::string address;
  int64_t port = 0;
  std::string secret;
};

MeetingFile read_meeting_file(const std::string& path) {
  const nlohmann::json json = parsed(read_text_file(path, kMostGreeting));
  return {json.value("address", ""), json.value("port", int64_t{0}), json.value("secret", "")};
}

// Readable only by its owner: it holds a secret.
void write_meeting_file(const std::string& path, const MeetingFile& content) {
  unlink(path.c_str());  // left over from a killed group
  const mode_t before = umask(0077);
  try {
    write_file(path,
               nlohmann::json{
                   {"address", content.address}, {"port", content.port}, {"secret", content.secret}}
                   .dump());
  } catch (...) {
    umask(before);
    throw;
  }
  umask(before);
}

[[noreturn]] void refuse_group(const std::string& message, const std::string& advice) {
  throw Error(ExitCode::group, message, advice);
}

}  // namespace

Meeting::Meeting(const GroupPlace& place) : place_(place) {
  if (place_.shard.is_first()) {
    receive_all();
  } else {
    join();
  }
}

std::string Meeting::missing() const {
  std::vector<int64_t> ranks;
  for (int64_t rank = 1; rank < place_.shard.size; ++rank) {
    if (others_.count(rank) == 0) ranks.push_back(rank);
  }
  return fmt::format("{}", fmt::join(ranks, ", "));
}

void Meeting::receive_all() {
  GroupSocket door;
  try {
    door = GroupSocket::listen_at(place_.address, place_.port);
  } catch (const std::runtime_error& error) {
    refuse_group(fmt::format("rank 0: {}, port {}: {}", place_.address, place_.port, error.what()),
                 "another group may be running: choose another MASTER_PORT; MASTER_ADDR must be an "
                 "address of rank 0's machine");
  }
  own_address_ = door.own_address();
  std::string secret = place_.secret;
  if (!place_.file.empty()) {
    if (secret.empty()) secret = random_text();
    write_meeting_file(place_.file, {own_address_, door.own_port(), secret});
  }
  const Deadline deadline = deadline_in(place_.timeout);
  while (static_cast<int64_t>(others_.size()) + 1 < place_.shard.size) {
    auto guest = door.accept(deadline);
    if (!guest.has_value()) {
      const std::string who = missing();
      for (auto& [rank, other] : others_) {
        try {
          other.send_text(fmt::format("rank {} did not arrive", who), deadline_in(1));
        } catch (const std::runtime_error&) {  // it has ended too
        }
      }
      refuse_group(fmt::format("rank {} of {} did not arrive within {} s", who, place_.shard.size,
                               place_.timeout),
                   "see its own messages; --group-timeout sets a longer timeout");
    }
    greet(std::move(*guest), secret);
  }
  if (!place_.file.empty()) unlink(place_.file.c_str());
  for (auto& [rank, other] : others_) other.send_text("all here", deadline_in(kGreetingSeconds));
}

// Rejects a guest that does not know the secret; one that was started for another group by mistake
// ends the meeting.
void Meeting::greet(GroupSocket guest, const std::string& secret) {
  const Deadline deadline = deadline_in(kGreetingSeconds);
  std::string problem;
  try {
    const std::string asked = random_text();
    guest.send_text(nlohmann::json{{"format", kMeetingFormat}, {"asked", asked}}.dump(), deadline);
    const nlohmann::json card = parsed(guest.receive_text(deadline, kMostGreeting));
    const auto rank = card.value("rank", int64_t{-1});
    const auto size = card.value("size", int64_t{-1});
    const std::string answered = card.value("asked", "");
    if (!equal_in_constant_time(card.value("proof", ""),
                                proof(secret, "guest", asked, answered, rank, size))) {
      guest.send_text(R"({"refused": "the secrets differ"})", deadline);
      log_warn("rejected a process that does not know the group's secret");
      return;
    }
    if (size != place_.shard.size) {
      problem = fmt::format("rank {} was started for {} processes, rank 0 for {}", rank, size,
                            place_.shard.size);
    } else if (rank < 1 || rank >= size || others_.count(rank) > 0) {
      problem = fmt::format("two processes were started as rank {}", rank);
    }
    const nlohmann::json answer = {{"refused", problem},
                                   {"proof", proof(secret, "host", answered, asked, rank, size)}};
    guest.send_text(answer.dump(), deadline);
    if (problem.empty()) others_[rank] = std::move(guest);
  } catch (const std::runtime_error& error) {
    log_debug("a process connected to the group and left: {}", error.what());
  } catch (const nlohmann::json::exception& error) {
    log_debug("a process connected to the group and did not identify itself: {}", error.what());
  }
  if (problem.empty()) return;
  tell(problem);
  throw Error(ExitCode::bad_input, problem,
              "start every process with the same WORLD_SIZE and a unique RANK");
}

// Retries until the timeout: rank 0 may not be up yet, or its file may be from an earlier group.
void Meeting::join() {
  const Deadline deadline = deadline_in(place_.timeout);
  std::string reason = fmt::format("{} does not exist", place_.file);
  std::string where = place_.file;
  while (std::chrono::steady_clock::now() < deadline) {
    try {
      MeetingFile at = {place_.address, place_.port, place_.secret};
      if (!place_.file.empty() && exists(place_.file)) at = read_meeting_file(place_.file);
      if (!place_.secret.empty()) at.secret = place_.secret;
      if (at.port > 0) {
        where = fmt::format("{}, port {}", at.address, at.port);
        reason = join_once(at.address, at.port, at.secret);
        if (reason.empty()) return;
      }
    } catch (const std::runtime_error& error) {
      reason = error.what();
    } catch (const nlohmann::json::exception& error) {
      reason = error.what();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  refuse_group(fmt::format("rank {}: cannot reach rank 0 at {} within {} s: {}", place_.shard.rank,
                           where, place_.timeout, reason),
               "check that rank 0 is running there and that this machine can connect to it");
}

// Empty when all have arrived, otherwise why joining rank 0 failed. Throws Error if it refused us.
std::string Meeting::join_once(const std::string& host, int64_t port, const std::string& secret) {
  const Deadline greeting = deadline_in(kGreetingSeconds);
  const auto& [rank, size] = place_.shard;
  GroupSocket host_socket = GroupSocket::connect_to(host, port, greeting);
  const nlohmann::json welcome = parsed(host_socket.receive_text(greeting, kMostGreeting));
  if (const std::string format = welcome.value("format", ""); format != kMeetingFormat) {
    throw Error(ExitCode::bad_input,
                fmt::format("rank {}: expected '{}' from rank 0 at {}, port {}, got '{}'", rank,
                            kMeetingFormat, host, port, printable(format)),
                "start every process of a group with the same build");
  }
  const std::string asked = welcome.value("asked", "");
  const std::string mine = random_text();
  const nlohmann::json card = {{"rank", rank},
                               {"size", size},
                               {"asked", mine},
                               {"proof", proof(secret, "guest", asked, mine, rank, size)}};
  host_socket.send_text(card.dump(), greeting);
  const nlohmann::json answer = parsed(host_socket.receive_text(greeting, kMostGreeting));
  const std::string refused = answer.value("refused", "");
  if (!equal_in_constant_time(answer.value("proof", ""),
                              proof(secret, "host", mine, asked, rank, size))) {
    return refused.empty() ? "it does not know the group's secret" : refused;
  }
  if (!refused.empty()) {
    throw Error(ExitCode::bad_input, refused,
                "start every process with the same WORLD_SIZE and a unique RANK");
  }
  own_address_ = host_socket.own_address();
  // A little longer than rank 0 waits for the others, so that it can say who did not arrive.
  const Deadline arrival = deadline_in(place_.timeout + kGreetingSeconds);
  const std::string all = host_socket.receive_text(arrival, kMostGreeting);
  if (all != "all here") {
    throw Error(ExitCode::group, fmt::format("rank {}: {}", rank, all),
                "start the whole group again");
  }
  others_[0] = std::move(host_socket);
  return "";
}

std::vector<std::string> Meeting::exchange(const std::string& mine) {
  const Deadline deadline = deadline_in(place_.timeout);
  try {
    if (!place_.shard.is_first()) {
      others_.at(0).send_text(mine, deadline);
      return nlohmann::json::from_msgpack(others_.at(0).receive_text(deadline, kMostText))
          .get<std::vector<std::string>>();
    }
    std::vector<std::string> all = {mine};
    for (auto& [rank, other] : others_) all.push_back(other.receive_text(deadline, kMostText));
    const std::vector<uint8_t> packed = nlohmann::json::to_msgpack(all);
    for (auto& [rank, other] : others_) {
      other.send_text(std::string(packed.begin(), packed.end()), deadline);
    }
    return all;
  } catch (const std::exception& error) {
    const std::string heard = hear(deadline);
    refuse_group(
        fmt::format("rank {}: {}", place_.shard.rank,
                    heard.empty() ? fmt::format("lost the group: {}", error.what()) : heard),
        "start the whole group again");
  }
}

void Meeting::tell(const std::string& why) noexcept {
  for (auto& [rank, other] : others_) {
    try {
      other.send_text(why, deadline_in(1));
    } catch (const std::exception&) {  // it has ended itself
    }
  }
}

std::string Meeting::heard_from(int64_t rank, Deadline deadline) noexcept {
  const GroupSocket& other = others_.at(rank);
  try {
    if (!other.is_readable(deadline)) return "";
    return other.receive_text(deadline_in(1), kMostText);
  } catch (const std::exception&) {
    return fmt::format("rank {} ended without a word", rank);
  }
}

std::string Meeting::hear(Deadline until) noexcept {
  const Deadline deadline = deadline_in(kLastWordsSeconds);
  if (!place_.shard.is_first()) {
    // Rank 0 may not notice before its own timeout.
    const Deadline late = until + std::chrono::duration_cast<Deadline::duration>(
                                      std::chrono::duration<double>(kLastWordsSeconds));
    return others_.count(0) == 0 ? "" : heard_from(0, std::max(deadline, late));
  }
  // Prefer an explicit reason to silence: a process that loses a peer ends soon after it.
  std::string silence;
  std::string words;
  while (words.empty() && silence.empty() && std::chrono::steady_clock::now() < deadline) {
    for (const auto& [rank, other] : others_) {
      const std::string heard = heard_from(rank, deadline_in(0));
      if (heard.empty()) continue;
      (heard.find("without a word") == std::string::npos ? words : silence) = heard;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::string known = words.empty() ? silence : words;
  if (!known.empty()) tell(known);
  return known;
}

}  // namespace rondo
