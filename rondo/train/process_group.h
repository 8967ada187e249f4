// Several processes that train one network together, and their collectives: reductions, broadcasts,
// barriers. All processes of a group call the same functions in the same order.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/train/group_library.h"
#include "rondo/train/group_place.h"
#include "rondo/train/meeting.h"

namespace rondo {

// Every function may throw Error{group} naming the lost process if known: immediately if a process
// has ended, after the timeout if it does not answer. The group is unusable afterwards.
class ProcessGroup {
 public:
  // Connects to the others. Error{group} on timeout, Error{bad_input} if they were started for
  // another group, Error{usage} if the address is reachable from other machines and there is no
  // secret.
  explicit ProcessGroup(const GroupPlace& place);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const Shard& shard() const { return place_.shard; }
  int64_t rank() const { return place_.shard.rank; }
  int64_t size() const { return place_.shard.size; }
  int64_t local_size() const { return place_.local_size; }

  // The sum over all processes, in place. Bitwise equal in all of them and, for a given group size,
  // from run to run. bf16: values are rounded to 8 bits of precision before every addition, which
  // halves the bytes sent.
  void all_reduce(float* data, int64_t count);
  void all_reduce(double* data, int64_t count);
  void all_reduce_bf16(uint16_t* data, int64_t count);
  // The same on another thread, after `before` (may be invalid); `data` must stay until wait(), or
  // until the result is destroyed, which waits too.
  std::future<void> start_all_reduce(float* data, int64_t count, std::future<void> before);
  std::future<void> start_all_reduce_bf16(uint16_t* data, int64_t count, std::future<void> before);
  void wait(std::future<void>& started);
  void broadcast(void* data, int64_t bytes, int64_t root = 0);
  void barrier();
  // A barrier for work that one process does alone and that may take long, such as writing a
  // checkpoint: a process that ends is noticed immediately, one that hangs is waited for.
  void wait_patiently();
  // The texts of all processes, by rank. For short texts.
  std::vector<std::string> all_gather(const std::string& mine);
  // In place: rank r contributes counts[r] numbers, stored after those of the lower ranks.
  void all_gather(float* all, const std::vector<int64_t>& counts);
  void send(const void* data, int64_t bytes, int64_t to);
  void receive(void* data, int64_t bytes, int64_t from);

  // Throws Error{bad_input} with the rank and the difference unless all processes pass the same
  // text, made of lines "key = value"; `what` names it ("recipe").
  void require_same(const std::string& what, const std::string& mine);

  // Tells the others why this process ends. Never throws.
  void abort(const std::string& why) noexcept;

 private:
  template <class Operation>
  void attempt(const Operation& operation);
  std::future<void> start(void* data, int64_t count, WireNumber number, std::future<void> before);

  GroupPlace place_;
  Meeting meeting_;
  std::unique_ptr<Collectives> collectives_;
};

// The first difference of two texts, as "expected x = 1, got x = 2"; empty if they are equal.
std::string first_difference(const std::string& expected, const std::string& got);

}  // namespace rondo
