// A whole server in one process, used by several clients at once: texts equal those generated
// alone, disconnected clients leave nothing behind, states are kept.
#include <fmt/format.h>

#include <thread>

#include "rondo/infer/generator.h"
#include "tests/serve/serve_test_util.h"

namespace rondo::serve {
namespace {

std::string asked(uint64_t seed, int64_t tokens = 24) {
  return fmt::format(
      R"({{"prompt":"{}","max_tokens":{},"seed":{},"temperature":0.9,"logprobs":1}})",
      std::string(3 + 11 * (seed % 5), 'a'), tokens, seed);
}

// The output of the library without a server, as ids.
std::vector<int64_t> written_alone(const WholeServer& s, uint64_t seed, int64_t tokens) {
  const ServedLanguageModel& model = *s.models.language.front();
  Generator generator(
      std::make_shared<CompiledLanguageModel>(model.trained.model, kernels::PackedFormat::fp32));
  generator.read(model.trained.tokenizer->encode(std::string(3 + 11 * (seed % 5), 'a')));
  SamplerOptions options;
  options.seed = seed;
  options.temperature = 0.9;
  options.excluded = tokens_without_text(*model.trained.tokenizer, /*model_vocabulary=*/260);
  Sampler sampler(options);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(generator.write(sampler, '\n'));
  return ids;
}

TEST(WholeServer, TextsBesideOthersAreThoseWrittenAlone) {
  WholeServer s;
  std::vector<nlohmann::json> alone;
  for (uint64_t i = 0; i < 6; ++i) {
    alone.push_back(body_of(s.call("POST", "/v1/completions", asked(i)))["choices"]);
    std::string bytes;
    for (const int64_t id : written_alone(s, i, 24)) bytes += static_cast<char>(id);
    http::Utf8Stream text;
    std::string expected = text.push(bytes);
    expected += text.finish();
    EXPECT_EQ(alone.back()[0]["text"], expected);
  }
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (uint64_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (uint64_t i = 0; i < 12; ++i) {
        const uint64_t seed = (c + i) % 6;
        if (body_of(s.call("POST", "/v1/completions", asked(seed)))["choices"] != alone[seed])
          ++wrong;
      }
    });
  }
  clients.emplace_back([&] {  // hostile: requests much, reads little, disconnects
    for (int i = 0; i < 10; ++i) {
      const int fd = s.connect();
      WholeServer::send_all(fd, WholeServer::request("POST", "/v1/completions",
                                                     R"({"max_tokens":60000,"stream":true})"));
      char some[64];
      EXPECT_GT(recv(fd, some, sizeof some, 0), 0);
      close(fd);
    }
  });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(s.engine.drain(10));
  EXPECT_EQ(s.models.language.front()->scheduler->session().rows(), 0);
}

TEST(WholeServer, StatesAreSharedByClients) {
  WholeServer s;
  const std::string document(5000, 'x');
  EXPECT_NE(s.call("POST", "/states?name=doc", document).find("\"tokens\":5000"),
            std::string::npos);
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  const std::string body = R"({"state":"doc","prompt":"y","max_tokens":10,"seed":3})";
  const nlohmann::json expected = body_of(s.call("POST", "/v1/completions", body))["choices"];
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 5; ++i) {
        if (body_of(s.call("POST", "/v1/completions", body))["choices"] != expected) ++wrong;
        s.call("POST", "/states/doc/fork", fmt::format(R"({{"to":"copy{}"}})", c));
        s.call("GET", fmt::format("/states/copy{}", c));
        s.call("GET", "/states");
        s.call("GET", "/metrics");
        s.call("DELETE", fmt::format("/states/copy{}", c));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(s.states.count(), 1);
}

TEST(WholeServer, FullQueueRefusesAndDrainsCleanly) {
  Limits limits;
  limits.running = 1;
  limits.queue = 2;
  WholeServer s(limits);
  std::vector<std::thread> clients;
  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  for (uint64_t c = 0; c < 12; ++c) {
    clients.emplace_back([&, c] {
      const std::string answer = s.call("POST", "/v1/completions", asked(c, 200));
      if (answer.rfind("HTTP/1.1 200", 0) == 0) ++done;
      if (answer.rfind("HTTP/1.1 429", 0) == 0) ++refused;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(done + refused, 12);
  EXPECT_GE(done, 2);
  EXPECT_TRUE(s.engine.drain(10));
  EXPECT_EQ(s.call("POST", "/v1/completions", asked(1)).rfind("HTTP/1.1 503", 0), 0U);
}

bool answered(const std::string& answer, int status) {
  return answer.rfind(fmt::format("HTTP/1.1 {}", status), 0) == 0;
}

TEST(WholeServer, StatesLargerThanAllRoomAreRefused) {
  Limits limits;
  limits.state_bytes = 100;
  WholeServer s(limits);
  for (const int tokens : {0, 4}) {
    const std::string body =
        fmt::format(R"({{"prompt":"abc","max_tokens":{},"save_state":"big"}})", tokens);
    const std::string answer = s.call("POST", "/v1/completions", body);
    EXPECT_TRUE(answered(answer, 413)) << answer;
  }
  const std::string answer = s.call("POST", "/states?name=big", "abc");
  EXPECT_TRUE(answered(answer, 413)) << answer;
  EXPECT_EQ(s.states.count(), 0);
  EXPECT_TRUE(answered(s.call("POST", "/v1/completions", asked(1)), 200));
  EXPECT_TRUE(s.engine.drain(10));
  EXPECT_EQ(s.models.language.front()->scheduler->session().rows(), 0);
}

TEST(WholeServer, OtherSitesAreRefused) {
  const WholeServer s;
  const auto get = [&](const std::string& host, const std::string& field) {
    std::string request = WholeServer::request("GET", "/v1/models", "", host);
    request.insert(request.find("\r\n") + 2, field);
    return s.send_and_receive(request);
  };
  EXPECT_TRUE(answered(get("127.0.0.1", ""), 200));
  EXPECT_TRUE(answered(get("127.9.9.9:80", ""), 200));
  EXPECT_TRUE(answered(get("127.example.org", ""), 403));
  EXPECT_TRUE(answered(get("localhost", "Origin: null\r\n"), 403));
  EXPECT_TRUE(answered(get("localhost", "Origin: http://localhost\r\n"), 200));
}

TEST(WholeServer, RequestsThatWaitedAreAnswered) {
  Limits limits;
  limits.running = 1;
  limits.http.request_seconds = 0.3;
  limits.http.queue_seconds = 5;
  limits.http.write_stall_seconds = 0.05;
  const WholeServer s(limits);
  std::vector<std::thread> clients;
  std::atomic<int> answers{0};
  for (uint64_t c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      if (s.call("POST", "/v1/completions", asked(c, 60000)).rfind("HTTP/1.1 ", 0) == 0) ++answers;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answers, 3);
}

TEST(WholeServer, SlowUploadsHaveNoDeadline) {
  Limits limits;
  limits.http.request_seconds = 0.2;
  const WholeServer s(limits);
  const std::string document(3000, 'x');
  const std::string request = WholeServer::request("POST", "/states?name=slow", document);
  const int fd = s.connect();
  WholeServer::send_all(fd, request.substr(0, request.size() - 1000));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  WholeServer::send_all(fd, request.substr(request.size() - 1000));
  char answer[16] = {};
  EXPECT_GT(recv(fd, answer, sizeof answer - 1, 0), 0);
  close(fd);
  EXPECT_TRUE(answered(answer, 201)) << answer;
}

TEST(WholeServer, RefusedStateFilesDoNotNameTheServersFile) {
  const WholeServer s;
  const std::string answer = s.call("PUT", "/states/broken", "not a state");
  EXPECT_TRUE(answered(answer, 400)) << answer;
  EXPECT_EQ(answer.find("rondo-serve-"), std::string::npos) << answer;
  EXPECT_NE(answer.find("the uploaded file"), std::string::npos) << answer;
}

TEST(StateStore, LeastRecentlyUsedLeave) {
  Limits limits;
  limits.states = 2;
  limits.state_bytes = 100;
  StateStore store(limits, "");
  const auto state = [](int64_t numbers) {
    State s;
    s.set("x", at::zeros({1, numbers}));
    return saved_state(s, "m", "f");
  };
  store.put("a", state(5));
  store.put("b", state(5));
  EXPECT_TRUE(store.find("a"));
  store.put("c", state(5));
  EXPECT_TRUE(store.find("a") && store.find("c"));
  EXPECT_FALSE(store.find("b"));
  store.put("d", state(20));
  EXPECT_EQ(store.count(), 2);
  EXPECT_EQ(store.bytes(), 100);
  EXPECT_THROW(store.put("e", state(26)), http::ApiError);
  EXPECT_TRUE(store.remove("d"));
  EXPECT_FALSE(store.remove("d"));
}

}  // namespace
}  // namespace rondo::serve
