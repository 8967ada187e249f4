// An HTTP/1.1 server (Boost.Beast): accepts connections, and hands requests to a Handler. Its
// threads parse, queue and write; they never compute.
#pragma once

#include <memory>
#include <string>

#include "rondo/http/exchange.h"
#include "rondo/http/limits.h"

namespace rondo::http {

// Where to listen: "127.0.0.1:8080" (port 0: any free one), "[::1]:8080", or "unix:/path.sock".
struct Listen {
  std::string unix_path;  // empty: TCP
  std::string address;
  uint16_t port = 0;
  bool loopback() const;
};
// Error{usage} for anything else.
Listen parse_listen(const std::string& text);

class Server {
 public:
  // Error{io} if the address cannot be had.
  Server(const Listen& listen, const Limits& limits, Handler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:8080" or "unix:/path.sock", with the port that was found.
  const std::string& address() const;
  int64_t connections() const;

  // No new connections; those without a request at hand are closed, others after their answer.
  void retire();
  // Closes everything and ends the threads. The handler is not called afterwards.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rondo::http
