// Several processes that train one network together. What they say to each other goes through here:
// sums, copies, meeting points. All processes of a group call the same functions in the same order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rondo/base/shard.h"
#include "rondo/train/group_library.h"
#include "rondo/train/group_place.h"
#include "rondo/train/meeting.h"

namespace rondo {

// Every function may fail with Error{group}, saying which process was lost as far as it is known:
// at once if a process has ended, after the time-out if it does not answer. The group is of no use
// then.
class ProcessGroup {
 public:
  // Meets the others. Error{group} if they do not come in time, Error{bad_input} if they were
  // started for another group, Error{usage} if the place is open to strangers and there is no
  // secret.
  explicit ProcessGroup(const GroupPlace& place);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const Shard& shard() const { return place_.shard; }
  int64_t rank() const { return place_.shard.rank; }
  int64_t size() const { return place_.shard.size; }
  int64_t local_size() const { return place_.local_size; }

  // The sum over all processes, in place. It has the same bits in all of them and, for one number
  // of processes, every time. bf16: numbers are rounded to 8 bits of precision before every
  // addition, with half the bytes to send.
  void all_reduce(float* data, int64_t count);
  void all_reduce(double* data, int64_t count);
  void all_reduce_bf16(uint16_t* data, int64_t count);
  void broadcast(void* data, int64_t bytes, int64_t root = 0);
  void barrier();
  // A barrier for work that one process does alone and that may take long, such as writing a
  // checkpoint: a process that ends is noticed at once, one that hangs is waited for.
  void wait_patiently();
  // The texts of all, by rank. For small ones.
  std::vector<std::string> all_gather(const std::string& mine);
  // In place: rank r brings counts[r] numbers, which stand behind those of the ranks before it.
  void all_gather(float* all, const std::vector<int64_t>& counts);
  void send(const void* data, int64_t bytes, int64_t to);
  void receive(void* data, int64_t bytes, int64_t from);

  // Error{bad_input} naming ranks and what differs unless all give the same text, which is made of
  // lines "key = value"; `what` says of what ("recipe").
  void require_same(const std::string& what, const std::string& mine);

  // Tells the others why this process ends. Never throws.
  void abort(const std::string& why) noexcept;

 private:
  template <class Operation>
  void attempt(const Operation& operation);

  GroupPlace place_;
  Meeting meeting_;
  std::unique_ptr<Collectives> collectives_;
};

// What differs between two texts of lines, as "x = 1, got x = 2"; empty if nothing does.
std::string first_difference(const std::string& expected, const std::string& got);

}  // namespace rondo
