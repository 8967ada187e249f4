// TCP connections over which the processes of a group find each other: short texts with a deadline.
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

// A connection, or a port that is listened at. Failures are std::runtime_error with the system's
// reason.
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

  // Listens at the address of this name alone; port 0: any that is free.
  static GroupSocket listen_at(const std::string& host, int64_t port);
  static GroupSocket connect_to(const std::string& host, int64_t port, Deadline deadline);
  // Empty if nobody came until then.
  std::optional<GroupSocket> accept(Deadline deadline) const;

  bool is_open() const { return descriptor_ >= 0; }
  std::string own_address() const;  // as a number
  int64_t own_port() const;

  void send_text(const std::string& text, Deadline deadline) const;
  // At most `most` bytes long, or it is refused.
  std::string receive_text(Deadline deadline, size_t most) const;
  // Whether something has arrived, or the other side is gone.
  bool is_readable(Deadline deadline) const;
  void close();

 private:
  explicit GroupSocket(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// Whether all addresses of this name are of the machine itself (127.0.0.0/8, ::1).
// std::runtime_error if there are none.
bool is_loopback(const std::string& host);

}  // namespace rondo
