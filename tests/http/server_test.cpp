// The HTTP server with a handler that computes nothing: keep-alive, pipelining, streams from
// another thread, bodies read piece by piece, limits and timeouts, disconnecting clients, orderly
// shutdown.
#include "rondo/http/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "rondo/base/error.h"
#include "rondo/http/api_error.h"

namespace rondo::http {
namespace {

// Counts a body, reporting from time to time that there is no space.
class CountingSink : public BodySink {
 public:
  explicit CountingSink(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  bool write(std::string_view data, const std::function<void()>& resume) override {
    bytes_ += static_cast<int64_t>(data.size());
    if (++writes_ % 3 != 0) return true;
    std::thread([resume] { resume(); }).detach();
    return false;
  }
  void finish() override { exchange_->reply({200, "text/plain", std::to_string(bytes_), {}}); }
  void abandon() override {}

 private:
  std::shared_ptr<Exchange> exchange_;
  int64_t bytes_ = 0;
  int64_t writes_ = 0;
};

class TestHandler : public Handler {
 public:
  ~TestHandler() override {
    for (std::thread& thread : threads_) thread.join();
  }
  BodyPlan begin(const Request& head, const std::shared_ptr<Exchange>& exchange) override {
    if (head.path == "/forbidden") throw ApiError(403, "no");
    if (head.path == "/count") return {int64_t{1} << 40, std::make_shared<CountingSink>(exchange)};
    return {1000, nullptr};
  }
  void handle(Request request, std::shared_ptr<Exchange> exchange) override {
    if (request.path == "/fail") throw ApiError(422, "wrong");
    if (request.path != "/stream") return exchange->reply({200, "text/plain", request.body, {}});
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.emplace_back([this, exchange] {
      exchange->begin_stream("text/plain");
      for (int i = 0; i < 2000 && !exchange->gone(); ++i) exchange->send("piece ");
      exchange->end();
      ++ended;
    });
  }
  void answered(int status) override { ++statuses[static_cast<size_t>(status)]; }

  std::array<std::atomic<int>, 600> statuses{};
  std::atomic<int> ended{0};

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

class HttpServer : public ::testing::Test {
 protected:
  void start(const Limits& limits = {}) {
    server_ = std::make_unique<Server>(parse_listen("127.0.0.1:0"), limits, handler_);
  }
  int connect() const {
    const std::string& address = server_->address();
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const timeval wait = {10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  static void send_text(int fd, const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }
  static std::string read_to_end(int fd) {
    std::string all;
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      all.append(buffer, static_cast<size_t>(n));
    }
    close(fd);
    return all;
  }
  // The whole response to one request.
  std::string call(const std::string& request) const {
    const int fd = connect();
    send_text(fd, request);
    return read_to_end(fd);
  }
  static std::string get(const std::string& path, bool last = true) {
    return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" +
           (last ? "Connection: close\r\n\r\n" : "\r\n");
  }
  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }

  TestHandler handler_;
  std::unique_ptr<Server> server_;
};

TEST_F(HttpServer, AnswersOneAfterTheOther) {
  start();
  const std::string answers = call(get("/a", false) + get("/fail", false) + get("/b"));
  EXPECT_EQ(count(answers, "HTTP/1.1 200 OK"), 2);
  EXPECT_EQ(count(answers, "HTTP/1.1 422 "), 1);
  EXPECT_LT(answers.find("422"), answers.rfind("200 OK"));
  const std::string body = call(
      "POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(body.substr(body.size() - 5), "abcde");
}

TEST_F(HttpServer, StreamsFromOtherThreads) {
  start();
  std::vector<std::thread> clients;
  std::atomic<int> whole{0};
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const std::string answer = call(get("/stream"));
        if (count(answer, "piece ") == 2000 && answer.substr(answer.size() - 5) == "0\r\n\r\n")
          ++whole;
      }
    });
  }
  clients.emplace_back([&] {  // disconnects early
    for (int i = 0; i < 10; ++i) {
      const int fd = connect();
      send_text(fd, get("/stream"));
      char some[10];
      EXPECT_GT(recv(fd, some, sizeof some, 0), 0);
      close(fd);
    }
  });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(whole, 20);
  for (int i = 0; i < 500 && handler_.ended < 30; ++i) usleep(10000);
  EXPECT_EQ(handler_.ended, 30);
}

TEST_F(HttpServer, BodiesGoToSinksThatMayPause) {
  start();
  const std::string big(1 << 20, 'x');
  const std::string answer = call(
      "POST /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1048576\r\n\r\n" +
      big);
  EXPECT_EQ(answer.substr(answer.size() - 7), "1048576");
}

TEST_F(HttpServer, RefusesWhatIsTooLarge) {
  start();
  EXPECT_EQ(call("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n").substr(9, 3),
            "413");
  EXPECT_EQ(call(get("/" + std::string(20000, 'a'))).substr(9, 3), "431");
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "F" + std::to_string(i) + ": x\r\n";
  EXPECT_EQ(call("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n").substr(9, 3), "431");
  EXPECT_EQ(call(get("/forbidden")).substr(9, 3), "403");
}

TEST_F(HttpServer, CutsOffWhoIsSlow) {
  Limits limits;
  limits.header_seconds = limits.body_idle_seconds = 0.2;
  limits.keep_alive_seconds = 0.2;
  start(limits);
  EXPECT_EQ(call("GET / HT").substr(9, 3), "408");
  EXPECT_EQ(call("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab").substr(9, 3), "408");
  EXPECT_EQ(call(""), "");
  EXPECT_EQ(call(get("/a", false)).substr(9, 3), "200");  // then closed: nothing followed
}

TEST_F(HttpServer, LimitsConnections) {
  Limits limits;
  limits.connections_per_address = 3;
  start(limits);
  std::vector<int> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(connect());
    send_text(waiting.back(), get("/a", false));
    char some[10];
    EXPECT_GT(recv(waiting.back(), some, sizeof some, 0), 0);
  }
  const std::string refused = read_to_end(connect());
  EXPECT_EQ(refused.substr(9, 3), "503");
  const size_t body = refused.find("\r\n\r\n") + 4;
  EXPECT_NE(refused.find("Content-Length: " + std::to_string(refused.size() - body)),
            std::string::npos);
  for (const int fd : waiting) close(fd);
  for (int i = 0; i < 500 && server_->connections() > 0; ++i) usleep(10000);
  EXPECT_EQ(call(get("/a")).substr(9, 3), "200");
}

TEST_F(HttpServer, RetiresInOrder) {
  start();
  const int idle = connect();
  send_text(idle, get("/a", false));
  char some[10];
  EXPECT_GT(recv(idle, some, sizeof some, 0), 0);
  const int busy = connect();
  send_text(busy, get("/stream", false));
  EXPECT_GT(recv(busy, some, sizeof some, 0), 0);
  server_->retire();
  EXPECT_EQ(count(read_to_end(busy), "0\r\n\r\n"), 1);
  read_to_end(idle);  // ends
  for (int i = 0; i < 500 && server_->connections() > 0; ++i) usleep(10000);
  EXPECT_EQ(server_->connections(), 0);
  server_->stop();
}

TEST(Listen, AddressesAndMistakes) {
  EXPECT_TRUE(parse_listen("127.0.0.1:80").loopback());
  EXPECT_TRUE(parse_listen("[::1]:80").loopback());
  EXPECT_TRUE(parse_listen("unix:/x").loopback());
  EXPECT_FALSE(parse_listen("0.0.0.0:80").loopback());
  for (const char* bad :
       {"", "80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "name:80", "unix:"}) {
    EXPECT_THROW(parse_listen(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace rondo::http
