// Groups of processes.
#include "rondo/train/process_group.h"

#include <fmt/format.h>

#include <csignal>
#include <numeric>
#include <sstream>

#include "rondo/base/error.h"
#include "rondo/base/plugin.h"

namespace rondo {
namespace {

constexpr int64_t kPatientMilliseconds = int64_t{24} * 3600 * 1000;

int64_t milliseconds(double seconds) { return static_cast<int64_t>(seconds * 1000); }

// Rejects a loopback address for several machines, and an address that strangers can reach without
// a secret.
const GroupPlace& checked(const GroupPlace& place) {
  bool loopback = true;
  try {
    loopback = is_loopback(place.address);
  } catch (const std::runtime_error& error) {
    throw Error(ExitCode::group,
                fmt::format("rank {}: the address of rank 0: {}", place.shard.rank, error.what()),
                "set MASTER_ADDR to the address of rank 0's machine");
  }
  if (loopback && place.local_size < place.shard.size && place.file.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("MASTER_ADDR: {} is a loopback address, but {} of {} "
                            "processes are on other machines",
                            place.address, place.shard.size - place.local_size, place.shard.size),
                "set it to the address at which the other machines reach rank 0's");
  }
  if (!loopback && place.secret.empty() && place.file.empty()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: a group whose address is open to other machines needs a secret",
                            place.address),
                "pass --group-secret-file FILE, the same in all processes; make one with: "
                "(umask 077; head -c 32 /dev/urandom | base64 > FILE)");
  }
  return place;
}

}  // namespace

const GroupLibrary& group_library() {
  using Library = const GroupLibrary* (*)();
  static const GroupLibrary& library = *reinterpret_cast<Library>(
      plugin_function("librondo_gloo.so", "rondo_group_library", "Gloo"))();
  return library;
}

std::string first_difference(const std::string& expected, const std::string& got) {
  std::istringstream a(expected);
  std::istringstream b(got);
  std::string section;
  for (std::string x, y;;) {
    const bool more_a = static_cast<bool>(std::getline(a, x));
    const bool more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) return "";
    if (!more_a) x = "nothing more";
    if (!more_b) y = "nothing more";
    if (x != y) return fmt::format("expected {}{}, got {}", section, x, y);
    if (!x.empty() && x.front() == '[') section = x + " ";
  }
}

ProcessGroup::ProcessGroup(const GroupPlace& place) : place_(checked(place)), meeting_(place) {
  std::signal(SIGPIPE, SIG_IGN);  // a lost process makes the call fail instead
  CollectivesOptions options;
  options.rank = rank();
  options.size = size();
  options.address = meeting_.own_address();
  options.timeout = milliseconds(place_.timeout);
  options.exchange = [this](const std::string& mine) { return meeting_.exchange(mine); };
  attempt([&] { collectives_ = group_library().connect(options); });
}

ProcessGroup::~ProcessGroup() = default;

template <class Operation>
void ProcessGroup::attempt(const Operation& operation) {
  const Deadline deadline = deadline_in(place_.timeout);
  try {
    operation();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    // Rank 0, which finds out who was lost, may be waiting for this process.
    if (collectives_ != nullptr) collectives_->close();
    const std::string heard = meeting_.hear(deadline);
    throw Error(ExitCode::group,
                fmt::format("rank {} of {}: {}", rank(), size(),
                            heard.empty() ? fmt::format("another process does not answer (timeout "
                                                        "{} s): {}",
                                                        place_.timeout, error.what())
                                          : heard),
                "the group ends; restart it to resume from its newest checkpoint");
  }
}

void ProcessGroup::all_reduce(float* data, int64_t count) {
  attempt([&] {
    collectives_->all_reduce(data, count, WireNumber::fp32, milliseconds(place_.timeout), false);
  });
}

void ProcessGroup::all_reduce(double* data, int64_t count) {
  attempt([&] {
    collectives_->all_reduce(data, count, WireNumber::fp64, milliseconds(place_.timeout), false);
  });
}

void ProcessGroup::all_reduce_bf16(uint16_t* data, int64_t count) {
  attempt([&] {
    collectives_->all_reduce(data, count, WireNumber::bf16, milliseconds(place_.timeout), false);
  });
}

std::future<void> ProcessGroup::start(void* data, int64_t count, WireNumber number,
                                      std::future<void> before) {
  return std::async(std::launch::async, [=, before = std::move(before)]() mutable {
    if (before.valid()) before.get();
    collectives_->all_reduce(data, count, number, milliseconds(place_.timeout), true);
  });
}

std::future<void> ProcessGroup::start_all_reduce(float* data, int64_t count,
                                                 std::future<void> before) {
  return start(data, count, WireNumber::fp32, std::move(before));
}

std::future<void> ProcessGroup::start_all_reduce_bf16(uint16_t* data, int64_t count,
                                                      std::future<void> before) {
  return start(data, count, WireNumber::bf16, std::move(before));
}

void ProcessGroup::wait(std::future<void>& started) {
  attempt([&] { started.get(); });
}

void ProcessGroup::broadcast(void* data, int64_t bytes, int64_t root) {
  attempt([&] { collectives_->broadcast(data, bytes, root, milliseconds(place_.timeout)); });
}

void ProcessGroup::barrier() {
  attempt([&] { collectives_->barrier(milliseconds(place_.timeout)); });
}

void ProcessGroup::wait_patiently() {
  attempt([&] { collectives_->barrier(kPatientMilliseconds); });
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& mine) {
  std::vector<double> lengths(static_cast<size_t>(size()), 0.0);  // exact up to 2^53
  lengths[static_cast<size_t>(rank())] = static_cast<double>(mine.size());
  all_reduce(lengths.data(), size());
  const std::vector<int64_t> bytes(lengths.begin(), lengths.end());
  std::string all(static_cast<size_t>(std::accumulate(bytes.begin(), bytes.end(), int64_t{0})), 0);
  const int64_t before = std::accumulate(bytes.begin(), bytes.begin() + rank(), int64_t{0});
  all.replace(static_cast<size_t>(before), mine.size(), mine);
  if (!all.empty()) {
    attempt([&] { collectives_->all_gather(all.data(), bytes, milliseconds(place_.timeout)); });
  }
  std::vector<std::string> texts;
  size_t at = 0;
  for (const int64_t length : bytes) {
    texts.push_back(all.substr(at, static_cast<size_t>(length)));
    at += static_cast<size_t>(length);
  }
  return texts;
}

void ProcessGroup::all_gather(float* all, const std::vector<int64_t>& counts) {
  std::vector<int64_t> bytes;
  for (const int64_t count : counts) bytes.push_back(count * static_cast<int64_t>(sizeof(float)));
  attempt([&] { collectives_->all_gather(all, bytes, milliseconds(place_.timeout)); });
}

void ProcessGroup::send(const void* data, int64_t bytes, int64_t to) {
  attempt([&] { collectives_->send(data, bytes, to, milliseconds(place_.timeout)); });
}

void ProcessGroup::receive(void* data, int64_t bytes, int64_t from) {
  attempt([&] { collectives_->receive(data, bytes, from, milliseconds(place_.timeout)); });
}

void ProcessGroup::require_same(const std::string& what, const std::string& mine) {
  const std::vector<std::string> all = all_gather(mine);
  for (size_t other = 1; other < all.size(); ++other) {
    const std::string difference = first_difference(all[0], all[other]);
    if (difference.empty()) continue;
    throw Error(ExitCode::bad_input,
                fmt::format("rank {} differs from rank 0 in its {}: {}", other, what, difference),
                "start every process of a group with the same command and the same build");
  }
}

void ProcessGroup::abort(const std::string& why) noexcept {
  try {
    meeting_.tell(fmt::format("rank {} ended: {}", rank(), why));
  } catch (const std::exception&) {  // out of memory for the message
  }
}

}  // namespace rondo
