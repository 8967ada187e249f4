// TCP connections through which the processes of a group meet: short messages with a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

using Deadline = std::chrono::steady_clock::time_point;
inline Deadline deadline_in(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

// A connection or a listening port. Failures throw std::runtime_error with the system's reason.
class GroupSocket {
 public:
  GroupSocket() = default;
  ~GroupSocket();
  GroupSocket(GroupSocket&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  GroupSocket& operator=(GroupSocket&& other) noexcept;
  GroupSocket(const GroupSocket&) = delete;
  GroupSocket& operator=(const GroupSocket&) = delete;

  // Listens only on the address of `host`; port 0: any free one.
  static GroupSocket listen_at(const std::string& host, int64_t port);
  static GroupSocket connect_to(const std::string& host, int64_t port, Deadline deadline);
  // Empty if nobody connected before the deadline.
  std::optional<GroupSocket> accept(Deadline deadline) const;

  bool is_open() const { return descriptor_ >= 0; }
  std::string own_address() const;  // numeric
  int64_t own_port() const;

  void send_text(const std::string& text, Deadline deadline) const;
  // Throws if the text is longer than `most` bytes.
  std::string receive_text(Deadline deadline, size_t most) const;
  // Whether data has arrived or the peer has closed the connection.
  bool is_readable(Deadline deadline) const;
  void close();

 private:
  explicit GroupSocket(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// Whether all addresses of `host` are loopback (127.0.0.0/8, ::1). std::runtime_error if it has
// none.
bool is_loopback(const std::string& host);

}  // namespace rondo
