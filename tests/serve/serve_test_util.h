// A small language model and a whole server in this process, for tests of rondo/serve.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rondo/http/server.h"
#include "rondo/serve/api.h"
#include "rondo/serve/completion.h"

namespace rondo::serve {

inline std::unique_ptr<ServedLanguageModel> small_model(Metrics& metrics) {
  auto served = std::make_unique<ServedLanguageModel>();
  served->name = "small";
  const ModelConfig config =
      resolve_model(
          "brt/rec-fixed-skip",
          {"model.width=32", "model.hidden=64", "model.heads=2", "model.head_width=16",
           "model.depth.levels=4", "model.time.window=8", "model.time.segment=16",
           "model.time.states=4", "model.time.recurrent_layers=[2]", "model.vocabulary=260"})
          .config;
  served->trained.config = config;
  served->trained.model = std::dynamic_pointer_cast<LanguageModel>(build_network(config));
  nn::initialize(*served->trained.model, /*seed=*/1);
  served->trained.tokenizer = make_tokenizer("bytes");
  served->fingerprint = served->trained.fingerprint();
  served->recurrent = true;
  served->scheduler = std::make_unique<LanguageScheduler>(
      std::make_shared<CompiledLanguageModel>(served->trained.model, kernels::PackedFormat::fp32),
      '\n', metrics);
  return served;
}

// Everything except the command line.
class WholeServer {
 public:
  explicit WholeServer(const Limits& its_limits = {})
      : limits(its_limits),
        states(limits, ""),
        engine(limits),
        api(limits, engine, states, metrics, {}),
        server(http::parse_listen("127.0.0.1:0"), limits.http, api) {
    models.language.push_back(small_model(metrics));
    engine.add(*models.language.front()->scheduler);
    engine.start();
    api.serve(models, [this] { return server.connections(); });
  }
  ~WholeServer() {
    engine.stop();
    api.stop();
    server.stop();
  }
  WholeServer(const WholeServer&) = delete;
  WholeServer& operator=(const WholeServer&) = delete;

  // A connected socket.
  int connect() const {
    const std::string& address = server.address();
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return fd;
  }

  static void send_all(int fd, const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

  static std::string request(const std::string& method, const std::string& target,
                             const std::string& body, const std::string& host = "localhost") {
    return method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  // The whole response, header included.
  std::string call(const std::string& method, const std::string& target,
                   const std::string& body = "") const {
    return send_and_receive(request(method, target, body));
  }

  std::string send_and_receive(const std::string& sent) const {
    const int fd = connect();
    send_all(fd, sent);
    std::string answer;
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(n));
    }
    close(fd);
    return answer;
  }

  Limits limits;
  Metrics metrics;
  ServedModels models;
  StateStore states;
  Engine engine;
  Api api;
  http::Server server;
};

inline nlohmann::json body_of(const std::string& answer) {
  return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

}  // namespace rondo::serve
