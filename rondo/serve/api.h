// The endpoints of a server: access control, body limits and responses.
#pragma once

#include <atomic>
#include <functional>

#include "rondo/http/json_reader.h"
#include "rondo/serve/background.h"
#include "rondo/serve/served_models.h"
#include "rondo/serve/state_store.h"

namespace rondo::serve {

struct ApiOptions {
  std::vector<std::string> keys;  // any of them grants access; empty: no key needed
  // Without keys, only requests to a loopback name are answered, so that no other site's page can
  // reach the server through a name of its own (DNS rebinding).
  bool loopback_names_only = true;
};

class Api : public http::Handler {
 public:
  Api(const Limits& limits, Engine& engine, StateStore& states, Metrics& metrics,
      ApiOptions options);
  ~Api() override;

  // Until this is called, everything but /health answers 503. `connections` returns their number.
  void serve(ServedModels& models, std::function<int64_t()> connections);
  // Finishes pending work of the background thread.
  void stop() { background_.stop(); }
  // Also done by the destructor.
  void remove_temporary_files();

  http::BodyPlan begin(const http::Request& head,
                       const std::shared_ptr<http::Exchange>& exchange) override;
  void handle(http::Request request, std::shared_ptr<http::Exchange> exchange) override;
  void answered(int status) override;

 private:
  using Request = http::Request;
  using Client = std::shared_ptr<http::Exchange>;
  using Answer = void (Api::*)(const Request&, const Client&);
  enum class Body { none, text, image, file };
  struct Route {
    const char* method;
    const char* path;  // '*' matches a name
    Body body;
    Answer answer;
    bool open = false;  // needs no key
  };
  static const std::vector<Route>& routes();
  // ApiError{404} or {405} if there is none. `name` receives the text matched by '*'.
  static const Route& find_route(const Request& request, std::string* name = nullptr);
  void check_caller(const Request& request, const Route& route) const;
  ServedModels& models() const;

  // api.cpp, api_props.cpp
  void health(const Request& request, const Client& client);
  void metrics_text(const Request& request, const Client& client);
  void props(const Request& request, const Client& client);
  void list_models(const Request& request, const Client& client);
  void page(const Request& request, const Client& client);
  // api_language.cpp
  void completions(const Request& request, const Client& client);
  void chat(const Request& request, const Client& client);
  void complete(const http::CompletionRequest& request, const Client& client);
  void tokenize(const Request& request, const Client& client);
  void detokenize(const Request& request, const Client& client);
  // api_states.cpp
  void list_states(const Request& request, const Client& client);
  void get_state(const Request& request, const Client& client);
  void put_state(const Request& request, const Client& client);
  void delete_state(const Request& request, const Client& client);
  void fork_state(const Request& request, const Client& client);
  void make_state(const Request& request, const Client& client);
  std::shared_ptr<http::BodySink> receive_document(const Request& head, const Client& client);
  std::shared_ptr<http::BodySink> receive_state(const Request& head, const Client& client);
  SavedState find_state(const std::string& name);
  std::string temporary_file();
  nlohmann::json json_of(const Request& request) const {
    return http::parse_json(request.body, limits_.http.json_depth);
  }
  // api_translate.cpp, api_classify.cpp
  void translate(const Request& request, const Client& client);
  void languages(const Request& request, const Client& client);
  void classify(const Request& request, const Client& client);

  const Limits& limits_;
  Engine& engine_;
  StateStore& states_;
  Metrics& metrics_;
  ApiOptions options_;
  Background background_;
  std::atomic<ServedModels*> models_{nullptr};
  std::function<int64_t()> connections_;
  std::string temporary_folder_;
  std::atomic<int64_t> temporary_files_{0};
};

void reply_json(const std::shared_ptr<http::Exchange>& client, const nlohmann::json& body,
                int status = 200);

// Loads a state file of whichever model it belongs to. ApiError{409} if that is not served.
SavedState load_state_file(const ServedModels& models, const std::string& path);

}  // namespace rondo::serve
