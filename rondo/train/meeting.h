// How the processes of a group find each other: all connect to rank 0, prove that they know the
// group's secret, and keep that connection for telling why they end.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rondo/train/group_place.h"
#include "rondo/train/group_socket.h"

namespace rondo {

class Meeting {
 public:
  // Returns when all have arrived. Error{group} if they do not in time, Error{bad_input} if they
  // were started for groups of different sizes or with another secret.
  explicit Meeting(const GroupPlace& place);

  // The address by which this process reaches the others.
  const std::string& own_address() const { return own_address_; }

  // Every process gives a text and gets all, by rank. Called by all of them.
  std::vector<std::string> exchange(const std::string& mine);

  // Tells the others why this process ends. Never throws.
  void tell(const std::string& why) noexcept;
  // After a failure: who ended and why, as far as it is known; rank 0 passes it on to the others.
  std::string hear() noexcept;

 private:
  void receive_all();
  void greet(GroupSocket guest, const std::string& secret);
  void join();
  std::string join_once(const std::string& host, int64_t port, const std::string& secret);
  std::string missing() const;
  std::string heard_from(int64_t rank, Deadline deadline) noexcept;

  GroupPlace place_;
  std::string own_address_;
  std::map<int64_t, GroupSocket> others_;  // rank 0: of all others; else of rank 0
};

}  // namespace rondo
