// Generating text for one request.
#include "rondo/serve/completion.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "rondo/base/text.h"

namespace rondo::serve {
namespace {

// A sequence pauses while its client has more than this many bytes to receive.
constexpr int64_t kMostUnsent = 32 << 10;

uint64_t random_number() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator() >> 11;  // exact as a JavaScript number
}

uint64_t seed_of(const http::CompletionRequest& r) { return r.has_seed ? r.seed : random_number(); }

SamplerOptions sampler_options(const http::CompletionRequest& r, uint64_t seed,
                               const TrainedLanguageModel& model) {
  SamplerOptions o;
  o.temperature = r.temperature;
  o.top_k = r.top_k;
  o.top_p = r.top_p;
  o.repetition_penalty = r.repetition_penalty;
  o.repetition_window = r.repetition_window;
  o.seed = seed;
  o.excluded = tokens_without_text(*model.tokenizer, model.model->config().vocabulary);
  return o;
}

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double log_sum_exp(const std::vector<float>& logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return highest + std::log(sum);
}

}  // namespace

Completion::Completion(const http::CompletionRequest& request,
                       std::shared_ptr<http::Exchange> exchange, ServedLanguageModel& model,
                       StateStore& states, const Limits& limits, Metrics& metrics)
    : request_(request),
      model_(model),
      states_(states),
      metrics_(metrics),
      reply_(std::move(exchange), request, model.name,
             fmt::format("{}-{:016x}", request.chat ? "chatcmpl" : "cmpl", random_number()),
             seconds_since_1970(), request_.seed = seed_of(request)),
      end_token_(model.trained.tokenizer->special_tokens().end) {
  for (const auto& prompt : request_.prompts) {
    prompts_.push_back(tokens_of(prompt));
    if (static_cast<int64_t>(prompts_.back().size()) > limits.completion.max_prompt_tokens) {
      throw http::ApiError(413,
                           fmt::format("prompt: expected at most {} tokens, got {}",
                                       limits.completion.max_prompt_tokens, prompts_.back().size()),
                           "prompt");
    }
  }
  if (!request_.state.empty()) {
    const std::optional<SavedState> found = states_.find(request_.state);
    if (!found)
      throw http::ApiError(404, fmt::format("there is no state '{}'", request_.state), "state");
    if (found->fingerprint != model_.fingerprint) {
      throw foreign_state(request_.state, *found, model_.name);
    }
    from_ = *found;
    has_state_ = true;
  }
  const auto n = static_cast<size_t>(request_.n);
  for (size_t i = 0; i < prompts_.size() * n; ++i) {
    choices_.push_back(std::make_unique<Choice>(
        *this, i, sampler_options(request_, request_.seed + i % n, model_.trained), request_.stop));
  }
  left_ = sequences();
}

Completion::~Completion() = default;

std::vector<int32_t> Completion::tokens_of(const http::CompletionRequest::Prompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return model_.trained.tokenizer->encode(*text);
  }
  const auto& ids = std::get<std::vector<int32_t>>(prompt);
  const int64_t vocabulary = model_.trained.model->config().vocabulary;
  for (const int32_t id : ids) {
    if (id >= vocabulary) {
      throw http::ApiError(
          400, fmt::format("prompt: token {} is not in a vocabulary of {}", id, vocabulary),
          "prompt");
    }
  }
  return ids;
}

void Completion::start() {
  const auto n = static_cast<size_t>(request_.n);
  metrics_.cached_tokens += from_.tokens * static_cast<int64_t>(prompts_.size());
  for (size_t p = 0; p < prompts_.size(); ++p) {
    Choice& first = *choices_[p * n];
    first.sequence.prompt = prompts_[p];
    first.sequence.score_prompt = request_.echo && request_.logprobs >= 0;
    model_.scheduler->add(first.sequence, from_.state);
  }
}

void Completion::stop() {
  for (const auto& choice : choices_) model_.scheduler->remove(choice->sequence);
  if (abandoned()) ++metrics_.abandoned;
  done_ = true;
}

void Completion::fail(const http::ApiError& error) {
  reply_.fail(error);
  done_ = true;
}

void Completion::begin_choice(Choice& choice) {
  const auto prompt = choice.sequence.index / static_cast<size_t>(request_.n);
  choice.sequence.settle = !request_.save_state.empty();
  if (!request_.echo) return;
  http::Utf8Stream text;
  std::string shown = text.push(model_.trained.tokenizer->decode(prompts_[prompt]));
  shown += text.finish();
  reply_.text(choice.sequence.index, shown, std::exchange(choice.logprobs, {}));
}

bool Completion::prompt_read(Sequence& s) {
  const auto n = static_cast<size_t>(request_.n);
  Choice& first = *choices_[s.index];
  if (request_.state_gain && model_.recurrent) {
    const State now = model_.scheduler->state_of(s);
    for (size_t i = 0; i < n; ++i) {
      choices_[s.index + i]->gain = std::make_unique<StateGain>(*model_.trained.model, now);
    }
  }
  for (size_t i = 1; i < n; ++i) {
    Choice& other = *choices_[s.index + i];
    other.logprobs = first.logprobs;
    begin_choice(other);
    model_.scheduler->fork(s, other.sequence);
  }
  begin_choice(first);
  if (request_.max_tokens > 0) return true;
  for (size_t i = 1; i < n; ++i) {
    Choice& other = *choices_[s.index + i];
    other.reason = "length";
    sequence_over(other.sequence);
    model_.scheduler->remove(other.sequence);
  }
  first.reason = "length";
  return false;
}

std::string Completion::token_text(int64_t token) const {
  http::Utf8Stream text;
  const std::string whole =
      text.push(model_.trained.tokenizer->decode({static_cast<int32_t>(token)}));
  return whole + text.finish();
}

http::TokenLogprob Completion::logprob_of(int64_t token, const std::vector<float>& logits) const {
  http::TokenLogprob out;
  out.text = token_text(token);
  out.known = !logits.empty();
  if (!out.known) return out;
  const double norm = log_sum_exp(logits);
  out.logprob = logits[static_cast<size_t>(token)] - norm;
  const auto top = std::min(static_cast<size_t>(request_.logprobs), logits.size());
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(top), order.end(),
                    [&](int64_t a, int64_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (size_t i = 0; i < top; ++i) {
    out.top.emplace_back(token_text(order[i]), logits[static_cast<size_t>(order[i])] - norm);
  }
  return out;
}

void Completion::token_scored(Sequence& s, int64_t token, const std::vector<float>& logits) {
  choices_[s.index]->logprobs.push_back(logprob_of(token, logits));
}

bool Completion::token_written(Sequence& s, int64_t token, const std::vector<float>& logits) {
  Choice& c = *choices_[s.index];
  ++c.written;
  if (c.gain != nullptr) {
    c.gain->add(token, logits[static_cast<size_t>(token)] - log_sum_exp(logits));
    tell_gain(c, /*all=*/false);
  }
  if (token == end_token_) {
    c.reason = "stop";
    return false;
  }
  if (request_.logprobs >= 0) c.logprobs.push_back(logprob_of(token, logits));
  const std::string text =
      c.output.push(model_.trained.tokenizer->decode({static_cast<int32_t>(token)}));
  if (!text.empty()) reply_.text(s.index, text, std::exchange(c.logprobs, {}));
  if (c.output.stopped()) {
    c.reason = "stop";
  } else if (c.written >= request_.max_tokens) {
    c.reason = "length";
  }
  return c.reason.empty();
}

void Completion::tell_gain(Choice& c, bool all) {
  const int64_t first = c.gain->told();
  const std::vector<double> gains = c.gain->take(all);
  if (!gains.empty()) reply_.state_gain(c.sequence.index, first, gains);
}

bool Completion::must_wait(const Sequence&) { return reply_.exchange()->unsent() > kMostUnsent; }

void Completion::sequence_over(Sequence& s) {
  Choice& c = *choices_[s.index];
  if (std::exchange(c.over, true)) return;
  const std::string rest = c.output.finish();
  if (!rest.empty() || !c.logprobs.empty())
    reply_.text(s.index, rest, std::exchange(c.logprobs, {}));
  if (c.gain != nullptr) tell_gain(c, /*all=*/true);
  if (!request_.save_state.empty()) {  // first: it may fail
    states_.put(request_.save_state,
                saved_state(model_.scheduler->state_of(s), model_.name, model_.fingerprint));
  }
  reply_.finish(s.index, c.reason.empty() ? "length" : c.reason);
  if (--left_ == 0) end();
}

void Completion::sequence_failed(Sequence& s, const http::ApiError& error) {
  for (const auto& choice : choices_) {
    if (&choice->sequence != &s) model_.scheduler->remove(choice->sequence);
  }
  fail(error);
}

void Completion::end() {
  http::Usage usage;
  usage.cached_tokens = from_.tokens * static_cast<int64_t>(prompts_.size());
  for (const auto& prompt : prompts_) usage.prompt_tokens += static_cast<int64_t>(prompt.size());
  usage.prompt_tokens += usage.cached_tokens;
  for (const auto& choice : choices_) usage.completion_tokens += choice->written;
  reply_.end(usage);
  done_ = true;
}

}  // namespace rondo::serve
