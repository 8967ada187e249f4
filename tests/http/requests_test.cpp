// Parsing of client requests: JSON, targets, forms and keys.
#include <gtest/gtest.h>

#include "rondo/http/completion_request.h"
#include "rondo/http/limits.h"
#include "rondo/http/target.h"

namespace rondo::http {
namespace {

int status_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const ApiError& error) {
    EXPECT_NE(std::string(error.what()), "");
    return error.status();
  }
  return 200;
}

nlohmann::json parsed(std::string_view text) { return parse_json(text, Limits().json_depth); }

int completion_status(const std::string& body) {
  return status_of([&] { read_completion(parsed(body), CompletionLimits()); });
}

TEST(Json, BoundedAndValid) {
  EXPECT_EQ(status_of([] { parsed(std::string(100000, '[')); }), 400);
  EXPECT_EQ(status_of([] { parsed(std::string(32, '[') + std::string(32, ']')); }), 200);
  EXPECT_EQ(status_of([] { parsed(std::string(33, '[') + std::string(33, ']')); }), 400);
  for (const char* bad : {"", "{", "NaN", "{\"a\":1e999}", "\"\\ud800\"", "\"\xff\"", "{} x"}) {
    EXPECT_EQ(status_of([&] { parsed(bad); }), 400) << bad;
  }
  EXPECT_EQ(status_of([] { parsed(std::string_view("{}\0{", 4)); }), 400);
}

TEST(CompletionRequest, TypesAre400AndRanges422) {
  EXPECT_EQ(completion_status(R"({"prompt":"a"})"), 200);
  EXPECT_EQ(completion_status(R"({"prompt":[1,2]})"), 200);
  EXPECT_EQ(completion_status(R"({"prompt":["a",[1]]})"), 200);
  EXPECT_EQ(completion_status(R"({"prompt":"a","top_p":null,"unknown":1})"), 200);
  for (const char* wrong :
       {R"({"prompt":1})", R"({"prompt":[]})", R"({"prompt":[1,-2]})", R"({"prompt":[1.5]})",
        R"({"max_tokens":"5"})", R"({"max_tokens":1.5})", R"({"stream":1})", R"({"stop":[1]})",
        R"({"logit_bias":{"1":2}})", R"({"suffix":"x"})", R"({"best_of":2})", "[]"}) {
    EXPECT_EQ(completion_status(wrong), 400) << wrong;
  }
  for (const char* large :
       {R"({"max_tokens":65537})", R"({"max_tokens":18446744073709551615})", R"({"max_tokens":-1})",
        R"({"n":9})", R"({"n":0})", R"({"temperature":-1})", R"({"top_p":1.1})", R"({"stop":[""]})",
        R"({"logprobs":21})", R"({"state":"a/b"})", R"({"save_state":"","state":"."})",
        R"({"prompt":["a","b"],"save_state":"s"})", R"({"prompt":["a","b","c"],"n":8})"}) {
    EXPECT_EQ(completion_status(large), 422) << large;
  }
  CompletionLimits limits;
  limits.max_prompt_tokens = 2;
  EXPECT_EQ(status_of([&] { read_completion(parsed(R"({"prompt":[1,2,3]})"), limits); }), 413);
}

TEST(CompletionRequest, ChatsFollowTheTemplate) {
  const CompletionRequest r =
      read_chat(parsed(R"({"messages":[{"role":"system","content":"Be brief."},
                     {"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":3})"),
                CompletionLimits());
  EXPECT_EQ(std::get<std::string>(r.prompts.front()),
            "System: Be brief.\n\nUser: Hi\n\nAssistant:");
  EXPECT_EQ(r.stop.back(), "\n\nUser:");
  EXPECT_EQ(
      status_of([] { read_chat(parsed(R"({"messages":[{"role":"x","content":"a"}]})"), {}); }),
      400);
}

TEST(Target, PathAndQuery) {
  Request request;
  request.target = "/states/a%2Fb?name=x+y&q=%41&empty";
  parse_target(request);
  EXPECT_EQ(request.path, "/states/a/b");
  EXPECT_EQ(request.query.at("name"), "x y");
  EXPECT_EQ(request.query.at("q"), "A");
  EXPECT_EQ(request.query.at("empty"), "");
  for (const char* bad : {"", "*", "http://x/", "/%", "/%4", "/%zz"}) {
    request.target = bad;
    EXPECT_EQ(status_of([&] { parse_target(request); }), 400) << bad;
  }
}

TEST(Target, FormsAndKeys) {
  const std::string type = "multipart/form-data; boundary=\"b\"";
  const std::string form =
      "--b\r\nContent-Disposition: form-data; name=\"top\"\r\n\r\n3\r\n--b\r\n"
      "content-disposition: form-data; filename=f; name=image\r\n\r\nx\r\ny\r\n--b--\r\n";
  const auto parts = parse_multipart(type, form);
  EXPECT_EQ(parts.at("top"), "3");
  EXPECT_EQ(parts.at("image"), "x\r\ny");
  for (size_t cut = 0; cut < form.size() - 4; ++cut) {
    EXPECT_EQ(status_of([&] { parse_multipart(type, form.substr(0, cut)); }), 400) << cut;
  }
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  for (const char* wrong : {"", "secre", "secretsecret", "Secret"}) {
    EXPECT_FALSE(equal_in_constant_time(wrong, "secret"));
  }
  EXPECT_FALSE(equal_in_constant_time("x", ""));
  EXPECT_EQ(host_of("[::1]:80"), "::1");
  EXPECT_EQ(host_of("localhost:8080"), "localhost");
}

}  // namespace
}  // namespace rondo::http
