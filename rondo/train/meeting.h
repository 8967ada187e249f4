// How the processes of a group meet: all connect to rank 0, prove that they know the group's
// secret, and keep that connection to report why they end.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rondo/train/group_place.h"
#include "rondo/train/group_socket.h"

namespace rondo {

class Meeting {
 public:
  // Returns when all have arrived. Error{group} on timeout, also if the secrets differ;
  // Error{bad_input} if processes were started for groups of different sizes or with the same rank.
  explicit Meeting(const GroupPlace& place);

  // The address at which the others can reach this process.
  const std::string& own_address() const { return own_address_; }

  // An all-gather of text: every process passes its own and gets all, by rank.
  std::vector<std::string> exchange(const std::string& mine);

  // Tells the others why this process ends. Never throws.
  void tell(const std::string& why) noexcept;
  // After a failure: which process ended and why, if known; rank 0 forwards it to the others, which
  // wait for its word until two seconds after the deadline of what failed.
  std::string hear(Deadline until) noexcept;

 private:
  void receive_all();
  void greet(GroupSocket guest, const std::string& secret);
  void join();
  std::string join_once(const std::string& host, int64_t port, const std::string& secret);
  std::string missing() const;
  std::string heard_from(int64_t rank, Deadline deadline) noexcept;

  GroupPlace place_;
  std::string own_address_;
  std::map<int64_t, GroupSocket> others_;  // on rank 0: to all others; otherwise: to rank 0
};

}  // namespace rondo
