// Accepting connections.
#include "rondo/http/server.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <cstring>
#include <thread>

#include "rondo/base/error.h"
#include "rondo/base/log.h"
#include "rondo/base/text.h"
#include "rondo/http/connection_parts.h"

namespace rondo::http {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using boost::system::error_code;

constexpr int kThreads = 2;
constexpr int kSendBufferBytes = 128 << 10;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // when out of file descriptors

}  // namespace

struct Server::Parts {
  Limits limits;
  Handler& handler;
  Listen listen;
  std::string address;

  std::mutex mutex;
  bool retired = false;
  std::map<std::string, int64_t> by_address;
  std::map<const Connection*, std::weak_ptr<Connection>> connections;

  // Destroyed before the tables above, which ending connections update.
  asio::io_context context{kThreads};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::strand<asio::io_context::executor_type> accepting{asio::make_strand(context)};
  asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor{accepting};
  asio::steady_timer pause{accepting};
  std::vector<std::thread> threads;

  Parts(const Listen& where, const Limits& its_limits, Handler& its_handler)
      : limits(its_limits), handler(its_handler), listen(where) {}

  void open();
  void accept();
  void accepted(error_code ec, Connection::Socket socket);
  void admit(Connection::Socket socket, const std::string& from);
  std::vector<std::shared_ptr<Connection>> all();
};

bool Listen::loopback() const {
  if (!unix_path.empty()) return true;
  error_code ec;
  const auto parsed = asio::ip::make_address(address, ec);
  return !ec && parsed.is_loopback();
}

Listen parse_listen(const std::string& text) {
  Listen listen;
  const auto refuse = [&] {
    throw Error(
        ExitCode::usage,
        fmt::format("--listen: expected ADDRESS:PORT or unix:PATH, got '{}'", printable(text)),
        "for example --listen 127.0.0.1:8080, --listen [::1]:8080, --listen unix:/run/rondo.sock");
  };
  if (text.rfind("unix:", 0) == 0) {
    listen.unix_path = text.substr(5);
    if (listen.unix_path.empty() || listen.unix_path.size() > 100) refuse();
    return listen;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse();
  listen.address = text.substr(0, colon);
  if (listen.address.front() == '[' && listen.address.back() == ']') {
    listen.address = listen.address.substr(1, listen.address.size() - 2);
  }
  if (listen.address == "localhost") listen.address = "127.0.0.1";
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, listen.port);
  error_code ec;
  asio::ip::make_address(listen.address, ec);
  if (ec || read.ec != std::errc() || read.ptr != end) refuse();
  return listen;
}

void Server::Parts::open() {
  try {
    if (!listen.unix_path.empty()) {
      struct stat there = {};
      if (lstat(listen.unix_path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) {
        unlink(listen.unix_path.c_str());  // left behind by a killed server
      }
      const Unix::endpoint endpoint(listen.unix_path);
      acceptor.open(endpoint.protocol());
      const mode_t before = umask(0077);
      error_code ec;
      acceptor.bind(endpoint, ec);
      umask(before);
      if (ec) throw boost::system::system_error(ec);
      address = "unix:" + listen.unix_path;
    } else {
      const Tcp::endpoint endpoint(asio::ip::make_address(listen.address), listen.port);
      acceptor.open(endpoint.protocol());
      acceptor.set_option(asio::socket_base::reuse_address(true));
      acceptor.bind(endpoint);
    }
    acceptor.listen(asio::socket_base::max_listen_connections);
  } catch (const boost::system::system_error& error) {
    const std::string where = listen.unix_path.empty()
                                  ? fmt::format("{}:{}", listen.address, listen.port)
                                  : listen.unix_path;
    throw Error(ExitCode::io, fmt::format("cannot listen on {}: {}", where, error.code().message()),
                "choose another address with --listen");
  }
  if (listen.unix_path.empty()) {
    Tcp::endpoint found;
    const auto local = acceptor.local_endpoint();
    std::memcpy(found.data(), local.data(), local.size());
    found.resize(local.size());
    const bool six = found.address().is_v6();
    address = fmt::format("http://{}{}{}:{}", six ? "[" : "", listen.address, six ? "]" : "",
                          found.port());
  }
}

void Server::Parts::accept() {
  if (!acceptor.is_open()) return;
  acceptor.async_accept(
      asio::make_strand(context),
      [this](error_code ec, Connection::Socket socket) { accepted(ec, std::move(socket)); });
}

void Server::Parts::accepted(error_code ec, Connection::Socket socket) {
  if (ec == asio::error::operation_aborted) return;
  if (ec) {
    log_debug("accept: {}", ec.message());
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
    return;
  }
  // A small buffer, so that a client that does not read is noticed before megabytes are sent.
  error_code no_matter;
  socket.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), no_matter);
  std::string from = "unix";
  error_code lost;
  const auto remote = socket.remote_endpoint(lost);
  if (!lost && listen.unix_path.empty()) {
    Tcp::endpoint peer;
    std::memcpy(peer.data(), remote.data(), remote.size());
    peer.resize(remote.size());
    from = peer.address().to_string();
    socket.set_option(Tcp::no_delay(true), lost);
  }
  if (!lost) admit(std::move(socket), from);
  accept();
}

void Server::Parts::admit(Connection::Socket socket, const std::string& from) {
  std::shared_ptr<Connection> connection;  // must outlive the lock, which its destructor takes
  const std::lock_guard<std::mutex> lock(mutex);
  const bool full = static_cast<int64_t>(connections.size()) >= limits.connections;
  const bool too_many = from != "unix" && by_address[from] >= limits.connections_per_address;
  if (retired) return;
  if (full || too_many) {
    static constexpr std::string_view kRefusal =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        "Connection: close\r\nContent-Length: 102\r\n\r\n"
        R"({"error":{"message":"too many connections","type":"server_error","param":null,"code":"unavailable"}})"
        "\r\n";
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(kRefusal.data(), kRefusal.size()), ignored);
    handler.answered(503);
    return;
  }
  ++by_address[from];
  const auto made = std::make_shared<Connection*>(nullptr);
  connection = std::make_shared<Connection>(std::move(socket), handler, limits, [this, from, made] {
    const std::lock_guard<std::mutex> held(mutex);
    connections.erase(*made);
    if (--by_address[from] == 0) by_address.erase(from);
  });
  *made = connection.get();
  connections[connection.get()] = connection;
  connection->start();
}

std::vector<std::shared_ptr<Connection>> Server::Parts::all() {
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::shared_ptr<Connection>> found;
  for (const auto& [key, weak] : connections) {
    if (auto connection = weak.lock()) found.push_back(std::move(connection));
  }
  return found;
}

Server::Server(const Listen& listen, const Limits& limits, Handler& handler)
    : parts_(std::make_unique<Parts>(listen, limits, handler)) {
  parts_->open();
  parts_->accept();
  for (int i = 0; i < kThreads; ++i) {
    parts_->threads.emplace_back([parts = parts_.get()] { parts->context.run(); });
  }
}

Server::~Server() { stop(); }

const std::string& Server::address() const { return parts_->address; }

int64_t Server::connections() const {
  const std::lock_guard<std::mutex> lock(parts_->mutex);
  return static_cast<int64_t>(parts_->connections.size());
}

void Server::retire() {
  {
    const std::lock_guard<std::mutex> lock(parts_->mutex);
    parts_->retired = true;
  }
  asio::post(parts_->accepting, [parts = parts_.get()] {
    error_code ignored;
    parts->pause.cancel();
    parts->acceptor.close(ignored);
  });
  for (const auto& connection : parts_->all()) connection->retire();
}

void Server::stop() {
  if (parts_->threads.empty()) return;
  parts_->context.stop();
  for (std::thread& thread : parts_->threads) thread.join();
  parts_->threads.clear();
  for (const auto& connection : parts_->all()) connection->close();
  if (!parts_->listen.unix_path.empty()) unlink(parts_->listen.unix_path.c_str());
}

}  // namespace rondo::http
