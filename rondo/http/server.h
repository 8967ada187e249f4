// An HTTP/1.1 server (Boost.Beast): accepts connections and passes requests to a Handler. Its
// threads parse, queue and write; they never compute.
#pragma once

#include <memory>
#include <string>

#include "rondo/http/exchange.h"
#include "rondo/http/limits.h"

namespace rondo::http {

// Where to listen: "127.0.0.1:8080" (port 0: any free port), "[::1]:8080", or "unix:/path.sock".
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
  // Error{io} if the address is not available.
  Server(const Listen& listen, const Limits& limits, Handler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:8080" or "unix:/path.sock", with the actual port.
  const std::string& address() const;
  int64_t connections() const;

  // Accepts no new connections; closes idle ones immediately and others after their response.
  void retire();
  // Closes everything and ends the threads. The handler is not called afterwards.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rondo::http
