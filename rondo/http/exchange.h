// One request and its response, between the HTTP side (server.h) and the computing side.
// Independent of sockets and models, so that both sides can be tested separately.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::http {

struct Request {
  std::string method;
  std::string target;  // as sent
  std::string path;    // without the query, percent-decoded
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> fields;  // lower-case names; the last of duplicates
  std::string body;                           // empty if a BodySink took it

  // "" if it does not exist.
  const std::string& field(const std::string& name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;  // additional header fields
};

// The way back to a client. Thread-safe; calls for a disconnected client do nothing. Either reply()
// once, or begin_stream(), any number of send(), end().
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void reply(Response response) = 0;
  virtual void begin_stream(const std::string& content_type) = 0;
  virtual void send(std::string_view data) = 0;
  virtual void end() = 0;
  // The client has closed the connection or stopped reading for too long.
  virtual bool gone() const = 0;
  // Bytes passed to send() that the system has not accepted yet.
  virtual int64_t unsent() const = 0;
};

// Receives a body as it arrives, instead of Request::body.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // False: no room for more until `resume` is called, from any thread.
  virtual bool write(std::string_view data, const std::function<void()>& resume) = 0;
  virtual void finish() = 0;
  // The body will not be completed.
  virtual void abandon() = 0;
};

struct BodyPlan {
  int64_t limit = 0;               // bytes
  std::shared_ptr<BodySink> sink;  // null: collected in Request::body
};

// Handles requests. Both begin() and handle() are called by threads that must not be blocked, and
// may throw ApiError.
class Handler {
 public:
  virtual ~Handler() = default;
  // After the header: how large a body is accepted, and where it goes.
  virtual BodyPlan begin(const Request& head, const std::shared_ptr<Exchange>& exchange) = 0;
  // After the complete body.
  virtual void handle(Request request, std::shared_ptr<Exchange> exchange) = 0;
  // After each response.
  virtual void answered(int status) = 0;
};

}  // namespace rondo::http
