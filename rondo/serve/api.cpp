// Routing, authentication, and information about the server.
#include "rondo/serve/api.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "rondo/base/error.h"
#include "rondo/base/text.h"
#include "rondo/base/version.h"
#include "rondo/http/page.h"
#include "rondo/http/target.h"

namespace rondo::serve {
namespace {

using nlohmann::json;

constexpr int64_t kLargeBody = 64 << 10;  // bytes; takes too long for an HTTP thread
constexpr size_t kMostInBackground = 64;
const std::string kTemporaryPrefix = "rondo-serve-";

bool matches(std::string_view pattern, std::string_view path, std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == path;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (path.size() < before.size() + after.size() || path.substr(0, before.size()) != before) {
    return false;
  }
  if (path.substr(path.size() - after.size()) != after) return false;
  name = std::string(path.substr(before.size(), path.size() - before.size() - after.size()));
  return name.find('/') == std::string::npos;
}

// 127.0.0.0/8, and not a name that begins like it (127.example.org).
bool is_loopback_address(const std::string& host) {
  in_addr address = {};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

// Folders of servers that were killed: /dev/shm/rondo-serve-PID-*.
void remove_abandoned(const std::string& place) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
    const std::string name = entry.path().filename();
    if (name.rfind(kTemporaryPrefix, 0) != 0) continue;
    const long process = std::strtol(name.c_str() + kTemporaryPrefix.size(), nullptr, 10);
    const bool ended = process > 0 && kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
    if (ended)
      std::filesystem::remove_all(entry.path(), ignored);  // fails for other users' folders
  }
}

bool is_loopback_name(const std::string& host) {
  // Browsers, against which this protects, always send a name.
  return host.empty() || host == "localhost" || host == "::1" || is_loopback_address(host);
}

}  // namespace

void reply_json(const std::shared_ptr<http::Exchange>& client, const json& body, int status) {
  http::Response response;
  response.status = status;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  client->reply(std::move(response));
}

Api::Api(const Limits& limits, Engine& engine, StateStore& states, Metrics& metrics,
         ApiOptions options)
    : limits_(limits),
      engine_(engine),
      states_(states),
      metrics_(metrics),
      options_(std::move(options)),
      background_(kMostInBackground) {
  // In memory if possible: state files are flushed to disk as they are written.
  for (const std::string& place : {std::string("/dev/shm"), std::string("/tmp")}) {
    remove_abandoned(place);
    std::string folder = fmt::format("{}/{}{}-XXXXXX", place, kTemporaryPrefix, getpid());
    if (mkdtemp(folder.data()) == nullptr) continue;
    temporary_folder_ = folder;
    return;
  }
  throw Error(ExitCode::io, "cannot create a temporary folder in /dev/shm or /tmp");
}

Api::~Api() { remove_temporary_files(); }

void Api::remove_temporary_files() {
  std::error_code ignored;
  std::filesystem::remove_all(temporary_folder_, ignored);
}

void Api::serve(ServedModels& models, std::function<int64_t()> connections) {
  connections_ = std::move(connections);
  models_ = &models;
}

ServedModels& Api::models() const {
  ServedModels* models = models_;
  if (models == nullptr) throw http::ApiError(503, "the models are still loading").retry_after(1);
  return *models;
}

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> all = {
      {"GET", "/health", Body::none, &Api::health, true},
      {"GET", "/metrics", Body::none, &Api::metrics_text},
      {"GET", "/props", Body::none, &Api::props},
      {"GET", "/v1/models", Body::none, &Api::list_models},
      {"GET", "/models", Body::none, &Api::list_models},
      {"POST", "/v1/completions", Body::text, &Api::completions},
      {"POST", "/v1/chat/completions", Body::text, &Api::chat},
      {"POST", "/tokenize", Body::text, &Api::tokenize},
      {"POST", "/detokenize", Body::text, &Api::detokenize},
      {"GET", "/states", Body::none, &Api::list_states},
      {"POST", "/states", Body::file, &Api::make_state},
      {"GET", "/states/*", Body::none, &Api::get_state},
      {"PUT", "/states/*", Body::file, &Api::put_state},
      {"DELETE", "/states/*", Body::none, &Api::delete_state},
      {"POST", "/states/*/fork", Body::text, &Api::fork_state},
      {"POST", "/translate", Body::text, &Api::translate},
      {"GET", "/languages", Body::none, &Api::languages},
      {"POST", "/classify", Body::image, &Api::classify},
      {"GET", "/", Body::none, &Api::page, true},
      {"GET", "/assets/*", Body::none, &Api::page, true},
  };
  return all;
}

const Api::Route& Api::find_route(const Request& request, std::string* name) {
  std::string found;
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  bool known = false;
  for (const Route& route : routes()) {
    if (!matches(route.path, request.path, found)) continue;
    known = true;
    if (method != route.method) continue;
    if (name != nullptr) *name = found;
    return route;
  }
  if (known) throw http::ApiError(405, request.path + ": method not allowed");
  throw http::ApiError(404, "not found: " + printable(request.path));
}

void Api::check_caller(const Request& request, const Route& route) const {
  const std::string host = http::host_of(request.field("host"));
  if (options_.keys.empty() && options_.loopback_names_only && !is_loopback_name(host)) {
    throw http::ApiError(403, "this server only accepts requests to localhost", "Host");
  }
  const std::string& origin = request.field("origin");
  const size_t scheme = origin.find("://");
  if (!origin.empty() &&
      (scheme == std::string::npos || origin.substr(scheme + 3) != request.field("host"))) {
    throw http::ApiError(403, "requests from other sites' pages are not allowed", "Origin");
  }
  if (options_.keys.empty() || route.open) return;
  std::string given = request.field("x-api-key");
  const std::string& authorization = request.field("authorization");
  if (authorization.rfind("Bearer ", 0) == 0) given = authorization.substr(7);
  bool fits = false;
  for (const std::string& key : options_.keys) {
    fits = http::equal_in_constant_time(given, key) || fits;
  }
  if (!fits) throw http::ApiError(401, "a valid API key is required: Authorization: Bearer KEY");
}

http::BodyPlan Api::begin(const Request& head, const Client& client) {
  const Route& route = find_route(head);
  check_caller(head, route);
  http::BodyPlan plan;
  if (route.body == Body::text) plan.limit = limits_.text_bytes;
  if (route.body == Body::image) plan.limit = limits_.image_bytes;
  if (route.body == Body::file) {
    const bool document = route.answer == &Api::make_state;
    plan.limit = document ? INT64_MAX : limits_.state_file_bytes;
    plan.sink = document ? receive_document(head, client) : receive_state(head, client);
  }
  return plan;
}

void Api::handle(Request request, Client client) {
  std::string name;
  const Route& route = find_route(request, &name);
  request.query["*"] = name;
  const bool large = static_cast<int64_t>(request.body.size()) > kLargeBody;
  if (!large && route.body != Body::image) {
    return answer_errors(*client, [&] { (this->*route.answer)(request, client); });
  }
  background_.post(client, [this, &route, client, request = std::move(request)] {
    (this->*route.answer)(request, client);
  });
}

void Api::answered(int status) {
  if (status > 0 && status < static_cast<int>(metrics_.responses.size())) {
    ++metrics_.responses[static_cast<size_t>(status)];
  }
}

void Api::health(const Request&, const Client& client) {
  const bool ready = models_ != nullptr;
  reply_json(client, {{"status", ready ? "ok" : "loading"}}, ready ? 200 : 503);
}

void Api::metrics_text(const Request&, const Client& client) {
  models();
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = prometheus_text(metrics_, {engine_.queued(), engine_.running(), connections_(),
                                             states_.count(), states_.bytes()});
  client->reply(std::move(response));
}

void Api::list_models(const Request&, const Client& client) {
  json data = json::array();
  const ServedModels& all = models();
  const auto add = [&](const std::string& name, const char* task) {
    data.push_back({{"id", name},
                    {"object", "model"},
                    {"created", all.loaded},
                    {"owned_by", "rondo"},
                    {"task", task}});
  };
  for (const auto& model : all.language) add(model->name, "lm");
  for (const auto& model : all.translation) add(model->name, "translation");
  for (const auto& model : all.image) add(model->name, "image");
  reply_json(client, {{"object", "list"}, {"data", data}});
}

void Api::page(const Request& request, const Client& client) {
  const http::PageFile* file = http::find_page_file(request.path);
  if (file == nullptr) throw http::ApiError(404, "not found: " + printable(request.path));
  http::Response response;
  response.content_type = file->content_type;
  response.body = std::string(file->text);
  response.fields.emplace_back("Content-Security-Policy",
                               "default-src 'none'; script-src 'self'; style-src 'self'; "
                               "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
                               "form-action 'none'; frame-ancestors 'none'");
  client->reply(std::move(response));
}

}  // namespace rondo::serve
