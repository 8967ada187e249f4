// Sockets of a group.
#include "rondo/train/group_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>

namespace rondo {
namespace {

[[noreturn]] void fail(const std::string& doing, int error) {
  throw std::runtime_error(fmt::format("{}: {}", doing, std::strerror(error)));
}

struct AddressList {
  explicit AddressList(const std::string& host, int64_t port) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
    if (error != 0) {
      throw std::runtime_error(fmt::format("cannot resolve '{}': {}", host, gai_strerror(error)));
    }
  }
  ~AddressList() { freeaddrinfo(first); }
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  addrinfo* first = nullptr;
};

int milliseconds_to(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                        deadline - std::chrono::steady_clock::now())
                        .count();
  return static_cast<int>(std::max<int64_t>(0, std::min<int64_t>(left, 1 << 30)));
}

// False on timeout.
bool wait_for(int descriptor, short events, Deadline deadline) {
  while (true) {
    pollfd one = {descriptor, events, 0};
    const int ready = poll(&one, 1, milliseconds_to(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) fail("poll", errno);
  }
}

// Sends or receives `size` bytes; 0 from `move` means that the peer closed the connection.
void move_all(size_t size, const std::function<ssize_t(size_t done)>& move, int descriptor,
              short events, Deadline deadline) {
  size_t done = 0;
  while (done < size) {
    if (!wait_for(descriptor, events, deadline)) throw std::runtime_error("timed out");
    const ssize_t moved = move(done);
    if (moved == 0) throw std::runtime_error("the connection was closed");
    if (moved < 0 && errno != EINTR && errno != EAGAIN) fail("the connection failed", errno);
    if (moved > 0) done += static_cast<size_t>(moved);
  }
}

sockaddr_storage own_name(int descriptor) {
  sockaddr_storage name = {};
  socklen_t length = sizeof(name);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    fail("getsockname", errno);
  }
  return name;
}

void keep_alive(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

GroupSocket::~GroupSocket() { close(); }

void GroupSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

GroupSocket& GroupSocket::operator=(GroupSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

GroupSocket GroupSocket::listen_at(const std::string& host, int64_t port) {
  const AddressList addresses(host, port);
  const addrinfo& a = *addresses.first;
  GroupSocket s(socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a.ai_protocol));
  if (!s.is_open()) fail("socket", errno);
  const int on = 1;
  setsockopt(s.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(s.descriptor_, a.ai_addr, a.ai_addrlen) != 0 || listen(s.descriptor_, 1024) != 0) {
    fail("cannot listen", errno);
  }
  return s;
}

GroupSocket GroupSocket::connect_to(const std::string& host, int64_t port, Deadline deadline) {
  const AddressList addresses(host, port);
  int error = 0;
  for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next) {
    GroupSocket s(
        socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol));
    if (!s.is_open()) fail("socket", errno);
    error = connect(s.descriptor_, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      if (!wait_for(s.descriptor_, POLLOUT, deadline)) {
        error = ETIMEDOUT;
        continue;
      }
      socklen_t size = sizeof(error);
      getsockopt(s.descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) continue;
    keep_alive(s.descriptor_);
    return s;
  }
  fail("cannot connect", error);
}

std::optional<GroupSocket> GroupSocket::accept(Deadline deadline) const {
  while (wait_for(descriptor_, POLLIN, deadline)) {
    GroupSocket s(accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!s.is_open()) continue;  // already disconnected
    keep_alive(s.descriptor_);
    return s;
  }
  return std::nullopt;
}

std::string GroupSocket::own_address() const {
  const sockaddr_storage name = own_name(descriptor_);
  char text[INET6_ADDRSTRLEN] = {};
  const void* address = &reinterpret_cast<const sockaddr_in*>(&name)->sin_addr;
  if (name.ss_family == AF_INET6) {
    address = &reinterpret_cast<const sockaddr_in6*>(&name)->sin6_addr;
  }
  if (inet_ntop(name.ss_family, address, text, sizeof(text)) == nullptr) fail("inet_ntop", errno);
  return text;
}

int64_t GroupSocket::own_port() const {
  const sockaddr_storage name = own_name(descriptor_);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

void GroupSocket::send_text(const std::string& text, Deadline deadline) const {
  const auto size = static_cast<uint32_t>(text.size());
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift & 0xff);
  frame += text;
  const auto move = [&](size_t done) {
    return ::send(descriptor_, frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
  };
  move_all(frame.size(), move, descriptor_, POLLOUT, deadline);
}

std::string GroupSocket::receive_text(Deadline deadline, size_t most) const {
  const auto receive = [&](std::string& into) {
    const auto move = [&](size_t done) {
      return ::recv(descriptor_, into.data() + done, into.size() - done, 0);
    };
    move_all(into.size(), move, descriptor_, POLLIN, deadline);
  };
  std::string head(4, '\0');
  receive(head);
  size_t size = 0;
  for (const char c : head) size = size << 8 | static_cast<uint8_t>(c);
  if (size > most) throw std::runtime_error("the peer does not follow the group protocol");
  std::string text(size, '\0');
  receive(text);
  return text;
}

bool GroupSocket::is_readable(Deadline deadline) const {
  return wait_for(descriptor_, POLLIN, deadline);
}

bool is_loopback(const std::string& host) {
  const AddressList addresses(host, 0);
  for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET6) {
      if (!IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a->ai_addr)->sin6_addr)) {
        return false;
      }
    } else if (ntohl(reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr.s_addr) >> 24 !=
               127) {
      return false;
    }
  }
  return true;
}

}  // namespace rondo
