// Gloo behind a small interface. The engine must run with any libtorch, some of which bring a Gloo
// of their own; so libgloo lives in a library of its own (plugins/gloo.cpp), loaded privately when
// a group of processes is formed. Internal to process_group.cpp and the plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rondo {

enum class WireNumber { fp32, fp64, bf16 };

// Connections between all processes of a group. Every function is called by all of them in the same
// order, but send() and receive(), which are called by two. Failures are std::runtime_error: this
// object is of no use then. Times are milliseconds.
class Collectives {
 public:
  virtual ~Collectives() = default;
  // Sums in place; the same bits everywhere and, for one number of processes, every time.
  virtual void all_reduce(void* data, int64_t count, WireNumber number, int64_t timeout) = 0;
  virtual void broadcast(void* data, int64_t bytes, int64_t root, int64_t timeout) = 0;
  virtual void barrier(int64_t timeout) = 0;
  // In place: rank r brings bytes[r] bytes, which stand behind those of the ranks before it.
  virtual void all_gather(void* all, const std::vector<int64_t>& bytes, int64_t timeout) = 0;
  virtual void send(const void* data, int64_t bytes, int64_t to, int64_t timeout) = 0;
  virtual void receive(void* data, int64_t bytes, int64_t from, int64_t timeout) = 0;
};

struct CollectivesOptions {
  int64_t rank = 0;
  int64_t size = 1;
  std::string address;  // of this process, to listen at: a number, not a name
  int64_t timeout = 0;  // of connecting
  // All processes give a text, and get those of all, by rank.
  std::function<std::vector<std::string>(const std::string&)> exchange;
};

struct GroupLibrary {
  std::unique_ptr<Collectives> (*connect)(const CollectivesOptions& options);
};

// Loads the plugin from beside this program or library. Error{failure} if it is not there.
const GroupLibrary& group_library();

}  // namespace rondo
