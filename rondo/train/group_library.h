// Gloo behind a small interface. The engine must run with any libtorch, and some include their own
// Gloo; so libgloo is linked into a separate library (plugins/gloo.cpp), loaded privately when a
// process group is formed. Internal to process_group.cpp and the plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rondo {

enum class WireNumber { fp32, fp64, bf16 };

// Connections between all processes of a group. All processes call every function in the same
// order, except send() and receive(), which only two call. Failures throw std::runtime_error and
// leave the object unusable. Timeouts are in milliseconds. Only sums in the background may run on
// another thread than everything else, one at a time.
class Collectives {
 public:
  virtual ~Collectives() = default;
  // Sums in place; bitwise equal on all ranks and, for a given group size, from run to run.
  virtual void all_reduce(void* data, int64_t count, WireNumber number, int64_t timeout,
                          bool background) = 0;
  virtual void broadcast(void* data, int64_t bytes, int64_t root, int64_t timeout) = 0;
  virtual void barrier(int64_t timeout) = 0;
  // In place: rank r contributes bytes[r] bytes, stored after those of the lower ranks.
  virtual void all_gather(void* all, const std::vector<int64_t>& bytes, int64_t timeout) = 0;
  virtual void send(const void* data, int64_t bytes, int64_t to, int64_t timeout) = 0;
  virtual void receive(void* data, int64_t bytes, int64_t from, int64_t timeout) = 0;
  // Closes the connections, so that processes that wait for this one fail at once. From any thread.
  virtual void close() noexcept = 0;
};

struct CollectivesOptions {
  int64_t rank = 0;
  int64_t size = 1;
  std::string address;  // numeric address at which this process listens
  int64_t timeout = 0;  // for connecting
  // An all-gather of text: every process passes its own and gets all of them, by rank.
  std::function<std::vector<std::string>(const std::string&)> exchange;
};

struct GroupLibrary {
  std::unique_ptr<Collectives> (*connect)(const CollectivesOptions& options);
};

// Loads the plugin from the folder of this program or library. Error{failure} if it is missing.
const GroupLibrary& group_library();

}  // namespace rondo
