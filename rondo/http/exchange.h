// One request and its answer, between those who speak HTTP (server.h) and those who compute. Knows
// neither sockets nor models, so that both sides are tested without the other.
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
  std::string target;  // as it was sent
  std::string path;    // without the query, percent-decoded
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> fields;  // names in lower case; of equals the last
  std::string body;                           // empty where a BodySink took it

  // "" if there is none.
  const std::string& field(const std::string& name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;  // further header fields
};

// The way back to a client. Thread-safe; calls for a client that has gone do nothing. Either
// reply() once, or begin_stream(), any number of send(), end().
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void reply(Response response) = 0;
  virtual void begin_stream(const std::string& content_type) = 0;
  virtual void send(std::string_view data) = 0;
  virtual void end() = 0;
  // The client has closed the connection, or stopped reading for too long.
  virtual bool gone() const = 0;
  // Bytes given to send() that the system has not taken yet.
  virtual int64_t unsent() const = 0;
};

// Takes a body as it arrives, instead of Request::body.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // False: there is no room for more until `resume` has been called, from any thread.
  virtual bool write(std::string_view data, const std::function<void()>& resume) = 0;
  virtual void finish() = 0;
  // The body will not be completed.
  virtual void abandon() = 0;
};

struct BodyPlan {
  int64_t limit = 0;               // bytes
  std::shared_ptr<BodySink> sink;  // null: collected in Request::body
};

// What a server does with requests. Both are called by threads that must not be held up, and may
// throw ApiError.
class Handler {
 public:
  virtual ~Handler() = default;
  // When the header is there: how much of a body is taken, and by whom.
  virtual BodyPlan begin(const Request& head, const std::shared_ptr<Exchange>& exchange) = 0;
  // When the body is complete.
  virtual void handle(Request request, std::shared_ptr<Exchange> exchange) = 0;
  // After each answer.
  virtual void answered(int status) = 0;
};

}  // namespace rondo::http
