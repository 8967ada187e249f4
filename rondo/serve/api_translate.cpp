// Translation, compatible with LibreTranslate.
#include <fmt/format.h>

#include "rondo/base/text.h"
#include "rondo/serve/api.h"
#include "rondo/serve/attention_views.h"

namespace rondo::serve {
namespace {

using nlohmann::json;

const std::map<std::string, std::string>& language_names() {
  static const std::map<std::string, std::string> names = {
      {"cs", "Czech"},   {"de", "German"},   {"en", "English"}, {"es", "Spanish"}, {"fr", "French"},
      {"it", "Italian"}, {"ro", "Romanian"}, {"ru", "Russian"}, {"tr", "Turkish"}};
  return names;
}

std::string language_name(const std::string& code) {
  const auto found = language_names().find(code);
  return found == language_names().end() ? code : found->second;
}

ServedTranslationModel& find_pair(const ServedModels& models, const http::JsonReader& in) {
  const std::string source = in.text("source", "auto");
  const std::string target = in.text("target", "");
  if (in.has("model")) return models.find_translation(in.text("model", ""));
  models.find_translation("");  // throws 404 if none is served
  for (const auto& model : models.translation) {
    const PairConfig& pair = model->trained.data;
    const bool from = source == "auto" || source.empty() || source == pair.source;
    if (from && (target.empty() || target == pair.target)) return *model;
  }
  throw http::ApiError(400,
                       fmt::format("no model translates from '{}' to '{}'; see /languages",
                                   printable(source, 40), printable(target, 40)),
                       "target");
}

// The translation of one text: its lines joined again.
struct Joined {
  std::vector<std::string> texts;  // best first
  json details = json::array();
};

Joined join_lines(const std::vector<Translation>& all, size_t first, size_t count, size_t n_best) {
  Joined joined;
  joined.texts.resize(n_best);
  for (size_t i = first; i < first + count; ++i) {
    const auto& candidates = all[i].candidates;
    json scores = json::array();
    for (size_t k = 0; k < n_best; ++k) {
      if (i > first) joined.texts[k] += "\n";
      if (candidates.empty()) continue;
      const auto& c = candidates[std::min(k, candidates.size() - 1)];
      joined.texts[k] += c.text;
      if (k < candidates.size()) scores.push_back(c.score);
    }
    joined.details.push_back(
        {{"scores", scores}, {"source_tokens", all[i].source_tokens}, {"cut", all[i].cut}});
  }
  return joined;
}

json attention_json(const ServedTranslationModel& model, const std::string& line,
                    const Translation& translation) {
  if (translation.cut || translation.candidates.empty()) return nullptr;
  const CrossAttentionView view = cross_attention(*model.trained.model, model.trained.tokenizers,
                                                  line, translation.candidates.front().tokens);
  return {{"source", view.source}, {"target", view.target}, {"weights", view.weights}};
}

}  // namespace

void Api::translate(const Request& request, const Client& client) {
  const json body = json_of(request);
  const http::JsonReader in(body);
  ServedTranslationModel& model = find_pair(models(), in);
  if (!in.has("q")) throw http::ApiError(400, "q: expected a text or a list of texts", "q");
  const bool list = in.find("q")->is_array();
  const std::vector<std::string> texts = in.texts("q", static_cast<size_t>(limits_.lines));
  TranslateRequest wanted;
  const int64_t alternatives = in.integer("alternatives", 0, 0, limits_.beam - 1);
  wanted.n_best = 1 + alternatives;
  wanted.beam = std::max(in.integer("beam", 5, 1, limits_.beam), wanted.n_best);
  std::vector<size_t> counts;  // lines of each text
  for (const std::string& text : texts) {
    const std::vector<std::string> lines = split(text, '\n');
    counts.push_back(lines.size());
    wanted.lines.insert(wanted.lines.end(), lines.begin(), lines.end());
  }
  if (static_cast<int64_t>(wanted.lines.size()) > limits_.lines) {
    throw http::ApiError(
        422,
        fmt::format("q: expected at most {} lines, got {}", limits_.lines, wanted.lines.size()),
        "q");
  }
  if (wanted.lines.empty()) return reply_json(client, {{"translatedText", json::array()}});
  const auto n_best = static_cast<size_t>(wanted.n_best);
  // Attention of the first line only, to be displayed.
  const std::string watched = in.boolean("attention", false) ? wanted.lines.front() : "";
  const auto tell = [client, list, counts, n_best, watched,
                     &model](const std::vector<Translation>& all) {
    json best = json::array();
    json others = json::array();
    json details = json::array();
    size_t first = 0;
    for (const size_t count : counts) {
      Joined joined = join_lines(all, first, count, n_best);
      first += count;
      best.push_back(joined.texts.front());
      others.push_back(std::vector<std::string>(joined.texts.begin() + 1, joined.texts.end()));
      details.push_back(std::move(joined.details));
    }
    json out = {{"translatedText", list ? best : best.front()},
                {"details", list ? details : details.front()}};
    if (n_best > 1) out["alternatives"] = list ? others : others.front();
    if (!is_blank(watched)) out["attention"] = attention_json(model, watched, all.front());
    reply_json(client, out);
  };
  engine_.submit(std::make_shared<TranslateTask>(std::move(wanted), client, *model.batcher, tell));
}

void Api::languages(const Request&, const Client& client) {
  json all = json::array();
  for (const auto& model : models().translation) {
    const PairConfig& pair = model->trained.data;
    all.push_back({{"code", pair.source},
                   {"name", language_name(pair.source)},
                   {"targets", {pair.target}},
                   {"model", model->name}});
  }
  reply_json(client, all);
}

}  // namespace rondo::serve
