// Steps, and processing prompts in pieces.
#include "rondo/serve/language_scheduler.h"

#include <algorithm>

#include "rondo/base/error.h"
#include "rondo/base/log.h"

namespace rondo::serve {
namespace {

// A piece blocks everyone: large enough to amortize a pass over the weights, and whole blocks.
constexpr int64_t kPieceTokens = 256;

// While others generate, steps get this many times the time that a piece has taken.
constexpr double kReadingCosts = 1.5;

size_t piece_tokens(const LanguageModelConfig& config) {
  const int64_t window = std::max<int64_t>(1, config.time.window);
  const int64_t blocks = std::max<int64_t>(1, kPieceTokens / window);
  return static_cast<size_t>(std::min(blocks * window, config.time.segment));
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

LanguageScheduler::LanguageScheduler(std::shared_ptr<const CompiledLanguageModel> model,
                                     int64_t start_token, Metrics& metrics)
    : session_(std::move(model)),
      start_token_(start_token),
      metrics_(metrics),
      piece_(piece_tokens(session_.model().config())) {}

void LanguageScheduler::add(Sequence& s, const State& state) {
  s.row = session_.add(state.without(RecentTokens::kName));
  s.position = session_.tokens_seen(s.row);
  s.recent = RecentTokens(state);
  for (const int64_t token : s.recent.tokens()) s.sampler.remember(token);
  if (s.score_prompt || (s.prompt.empty() && s.source == nullptr)) {
    begin_writing(s);
  } else {
    readers_.push_front(&s);  // its first piece is next: short prompts do not wait
  }
}

void LanguageScheduler::fork(const Sequence& s, Sequence& copy) {
  copy.row = session_.fork(s.row);
  copy.position = s.position;
  copy.recent = s.recent;
  copy.prompt.clear();
  for (const int64_t token : copy.recent.tokens()) copy.sampler.remember(token);
  writers_.push_back(&copy);
}

void LanguageScheduler::remove(Sequence& s) {
  if (s.row < 0) return;
  readers_.remove(&s);
  writers_.remove(&s);
  session_.remove(s.row);
  s.row = -1;
}

State LanguageScheduler::state_of(const Sequence& s) const {
  State state = session_.state(s.row);
  s.recent.keep_in(state);
  return state;
}

void LanguageScheduler::fail(Sequence& s, const std::exception& error) {
  log_error("generation failed: {}", error.what());
  s.over_ = true;
  s.owner.sequence_failed(s, http::ApiError(500, "generation failed"));
}

bool LanguageScheduler::guarded(Sequence& s, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const http::ApiError& error) {  // the client's mistake, or a limit
    s.over_ = true;
    s.owner.sequence_failed(s, error);
  } catch (const std::exception& error) {
    fail(s, error);
  }
  return false;
}

void LanguageScheduler::sweep() {
  for (std::list<Sequence*>* list : {&readers_, &writers_}) {
    for (auto at = list->begin(); at != list->end();) {
      Sequence* s = *at++;
      if (s->over_) remove(*s);  // `at` has already advanced
    }
  }
}

bool LanguageScheduler::work() {
  const bool read = read_some();
  const bool stepped = step();
  return read || stepped;
}

// While others generate, prompts get a share of the time; the first piece of a prompt goes first.
bool LanguageScheduler::read_some() {
  for (size_t tries = readers_.size(); tries > 0; --tries) {
    Sequence& s = *readers_.front();
    if (!writers_.empty() && debt_ > 0 && s.pieces_ > 0) return false;
    readers_.splice(readers_.end(), readers_, readers_.begin());  // to the back
    const auto began = Clock::now();
    bool worked = false;
    const bool ok = guarded(s, [&] { worked = read_piece(s); });
    if (s.over_) remove(s);
    if (ok && !worked) continue;
    const double took = seconds_between(began, Clock::now());
    metrics_.read_microseconds += static_cast<int64_t>(took * 1e6);
    if (!writers_.empty()) debt_ += kReadingCosts * took;
    return true;
  }
  return false;
}

// Returns false if no input is available yet.
bool LanguageScheduler::read_piece(Sequence& s) {
  std::vector<int32_t> tokens;
  if (s.source != nullptr) {
    tokens = s.source->take(piece_);
    if (tokens.empty() && !s.source->at_end()) return false;
  } else {
    const size_t end = std::min(s.prompt.size(), s.read_ + piece_);
    tokens.assign(s.prompt.begin() + static_cast<int64_t>(s.read_),
                  s.prompt.begin() + static_cast<int64_t>(end));
    s.read_ = end;
  }
  session_.read(s.row, tokens);
  ++s.pieces_;
  s.position += static_cast<int64_t>(tokens.size());
  metrics_.prompt_tokens += static_cast<int64_t>(tokens.size());
  for (const int32_t token : tokens) {
    s.recent.add(token);
    s.sampler.remember(token);
  }
  const bool ended = s.source != nullptr ? s.source->at_end() : s.read_ == s.prompt.size();
  if (ended) begin_writing(s);
  return true;
}

void LanguageScheduler::begin_writing(Sequence& s) {
  readers_.remove(&s);
  if (s.score_prompt && s.read_ < s.prompt.size()) {
    writers_.push_back(&s);
    return;
  }
  if (s.owner.prompt_read(s)) {
    if (std::find(writers_.begin(), writers_.end(), &s) == writers_.end()) writers_.push_back(&s);
    return;
  }
  s.over_ = true;
  s.owner.sequence_over(s);
  remove(s);
}

// The next token that a row consumes: one of a scored prompt, the one that starts an empty
// document, or one generated now. Returns false if there is none.
bool LanguageScheduler::next_token(Sequence& s, std::vector<Session::Token>& tokens) {
  const std::vector<float>& logits = session_.logits(s.row);
  if (s.read_ < s.prompt.size()) {
    const int64_t token = s.prompt[s.read_++];
    s.owner.token_scored(s, token, logits);
    s.recent.add(token);
    s.sampler.remember(token);
    ++metrics_.prompt_tokens;
    tokens.push_back({s.row, token});
    return true;
  }
  if (logits.empty()) {
    tokens.push_back({s.row, start_token_});
    return true;
  }
  const int64_t token = s.sampler.sample(logits, static_cast<uint64_t>(s.position));
  s.recent.add(token);
  ++metrics_.completion_tokens;
  s.over_ = !s.owner.token_written(s, token, logits);
  if (s.over_ && !s.settle) return false;
  tokens.push_back({s.row, token});
  return true;
}

void LanguageScheduler::finish_step(Sequence& s) {
  if (s.row < 0) return;  // removed together with another choice that failed
  ++s.position;
  const bool scored = s.score_prompt && s.read_ == s.prompt.size() && s.read_ > 0;
  guarded(s, [&] {
    if (s.over_) {
      s.owner.sequence_over(s);
    } else if (scored) {
      s.score_prompt = false;
      begin_writing(s);
    }
  });
  if (s.over_) remove(s);
}

bool LanguageScheduler::step() {
  const auto began = Clock::now();
  std::vector<Session::Token> tokens;
  std::vector<Sequence*> stepped;
  for (Sequence* s : writers_) {
    if (s->owner.must_wait(*s)) continue;
    guarded(*s, [&] {
      if (next_token(*s, tokens)) {
        stepped.push_back(s);
      } else {
        s->owner.sequence_over(*s);
      }
    });
  }
  // A failed sequence takes the other choices of its request along.
  for (size_t i = stepped.size(); i-- > 0;) {
    if (stepped[i]->row >= 0) continue;
    stepped.erase(stepped.begin() + static_cast<int64_t>(i));
    tokens.erase(tokens.begin() + static_cast<int64_t>(i));
  }
  try {
    session_.step(tokens);
  } catch (const std::exception& error) {
    for (Sequence* s : stepped) fail(*s, error);
    stepped.clear();
  }
  for (Sequence* s : stepped) finish_step(*s);
  sweep();
  if (tokens.empty()) return false;
  const double took = seconds_between(began, Clock::now());
  debt_ = std::max(0.0, debt_ - took);
  ++metrics_.steps;
  metrics_.step_rows += static_cast<int64_t>(tokens.size());
  metrics_.step_microseconds += static_cast<int64_t>(took * 1e6);
  return true;
}

}  // namespace rondo::serve
