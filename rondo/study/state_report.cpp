// The report on the contribution of recurrent states.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rondo/base/text.h"
#include "rondo/report/charts.h"
#include "rondo/study/state_use.h"

namespace rondo::study {
namespace {

Series buckets_series(const std::string& name, const std::vector<GainBucket>& buckets) {
  constexpr int64_t kFewest = 10;  // fewer are not meaningful
  Series series{name};
  for (const GainBucket& b : buckets) {
    if (b.count < kFewest) continue;
    const double middle =
        std::sqrt(static_cast<double>(std::max<int64_t>(1, b.first)) * static_cast<double>(b.last));
    series.points.emplace_back(middle, b.mean());
    series.band.emplace_back(b.mean() - b.error(), b.mean() + b.error());
  }
  return series;
}

nlohmann::json buckets_json(const std::vector<GainBucket>& buckets) {
  nlohmann::json json = nlohmann::json::array();
  for (const GainBucket& b : buckets) {
    if (b.count == 0) continue;
    json.push_back({{"first", b.first},
                    {"last", b.last},
                    {"count", b.count},
                    {"gain_bits", b.mean()},
                    {"error", b.error()}});
  }
  return json;
}

// Translucent over the page's own background, so that text stays legible in light and dark mode.
std::string color_of(double bits, double most) {
  return fmt::format("rgba({},{:.2f})", bits > 0 ? "224,130,20" : "47,127,208",
                     0.7 * std::min(1.0, std::abs(bits) / most));
}

// The text, each piece shaded by its gain.
void add_excerpt(Page& page, const StateUse& use) {
  double squares = 0;
  for (const ShadedText& piece : use.excerpt) squares += piece.bits * piece.bits;
  const double most =
      std::max(1e-6, 2.5 * std::sqrt(squares / std::max<double>(1, use.excerpt.size())));
  std::string markup = "<p class=\"shaded\">";
  for (const ShadedText& piece : use.excerpt) {
    const std::string text = valid_utf8(piece.text) ? piece.text : printable(piece.text);
    if (std::abs(piece.bits) < 0.02 * most) {
      markup += escape_html(text);
      continue;
    }
    markup += fmt::format("<mark style=\"background:{}\" title=\"{:+.2f} bits\">{}</mark>",
                          color_of(piece.bits, most), piece.bits, escape_html(text));
  }
  page.paragraph(
      fmt::format("{}, tokens from {} of the first document. Orange: the states helped; blue: they "
                  "hurt. Full color is {:.2f} bits.",
                  use.name, with_commas(use.excerpt_from), most));
  page.raw(markup + "</p>\n");
}

void add_words(Page& page, const StateUse& use) {
  std::vector<std::vector<std::string>> lines = {{"word", "count", "bits each", "total bits"}};
  for (const WordGain& w : use.words) {
    lines.push_back({printable(w.word), with_commas(w.count),
                     fmt::format("{:.3f}", w.bits / static_cast<double>(w.count)),
                     fmt::format("{:.1f}", w.bits)});
  }
  page.heading(fmt::format("{}: words that gain the most", use.name));
  page.table(lines);
}

void add_gain_charts(Page& page, const std::vector<StateUse>& found) {
  LineChart position;
  position.x = {"position in the document (tokens)", true};
  position.y.label = "gain (bits per token)";
  position.marks = true;
  LineChart distance;
  distance.x = {"tokens since the last occurrence of the same word", true};
  distance.y.label = "gain (bits per word)";
  distance.marks = true;
  std::string fresh;
  for (const StateUse& use : found) {
    position.series.push_back(buckets_series(use.name, use.by_position));
    distance.series.push_back(buckets_series(use.name, use.by_distance));
    if (use.new_words.count > 0) {
      fresh += fmt::format(" {}: {:.3f} ± {:.3f}.", use.name, use.new_words.mean(),
                           use.new_words.error());
    }
  }
  page.figure(line_chart(position), "Gain by position, with 95 % intervals of the mean.");
  page.figure(line_chart(distance),
              "Gain of whole words by distance to the last occurrence of the same word. Gain of "
              "words that are new in the document, in bits:" +
                  fresh);
}

// "stack.level.2.mixing.cell.attention_gate" → "level 3, attention": short enough for a legend.
std::string gate_title(const std::string& name) {
  const size_t level = name.find("level.");
  if (level == std::string::npos) return name;
  std::string part = name.substr(name.rfind('.') + 1);
  if (const size_t end = part.find("_gate"); end != std::string::npos) part.resize(end);
  std::replace(part.begin(), part.end(), '_', '-');
  return fmt::format("level {}, {}", std::atoll(name.c_str() + level + 6) + 1, part);
}

void add_state_charts(Page& page, const std::vector<StateUse>& found) {
  const auto draw = [&](double StateSample::*value, const char* label, const char* caption) {
    LineChart chart;
    chart.x.label = "position in the first document (tokens)";
    chart.y.label = label;
    for (const StateUse& use : found) {
      for (const auto& [level, samples] : use.states) {
        Series series{fmt::format("{}, level {}", use.name, level)};
        for (const StateSample& s : samples) series.points.emplace_back(s.position, s.*value);
        chart.series.push_back(series);
      }
    }
    page.figure(line_chart(chart), caption);
  };
  page.heading("The states themselves");
  draw(&StateSample::norm, "norm", "Mean norm of the state vectors.");
  draw(&StateSample::rank, "effective rank",
       "Effective rank of the state: 1 if all vectors are equal up to scale, at most their "
       "number. A rank that falls to 1 is the collapse of Section 3.3.");
  draw(&StateSample::similarity, "mean cosine", "Mean pairwise similarity of the state vectors.");
  LineChart gates;
  gates.x.label = "position in the first document (tokens)";
  gates.y.label = "mean gate";
  for (const StateUse& use : found) {
    for (const auto& [name, points] : use.gates) {
      const std::string title = gate_title(name);
      gates.series.push_back({found.size() > 1 ? use.name + ", " + title : title, points, {}});
    }
  }
  if (!gates.series.empty()) {
    page.figure(line_chart(gates), "How much of the old state the gates keep, on average.");
  }
}

nlohmann::json numbers_of(const StateUse& use) {
  nlohmann::json json = {{"name", use.name},
                         {"tokens", use.tokens},
                         {"bits_per_token_with", use.bits_with},
                         {"bits_per_token_without", use.bits_without},
                         {"tokens_per_second", static_cast<double>(use.tokens) / use.seconds},
                         {"by_position", buckets_json(use.by_position)},
                         {"by_distance", buckets_json(use.by_distance)},
                         {"new_words", buckets_json({use.new_words})}};
  for (const WordGain& w : use.words) {
    json["words"].push_back({{"word", w.word}, {"count", w.count}, {"bits", w.bits}});
  }
  for (const auto& [level, samples] : use.states) {
    for (const StateSample& s : samples) {
      json["states"].push_back({{"level", level},
                                {"position", s.position},
                                {"norm", s.norm},
                                {"rank", s.rank},
                                {"similarity", s.similarity}});
    }
  }
  for (const auto& [name, points] : use.gates) json["gates"][name] = points;
  return json;
}

}  // namespace

StudyReport state_report(const std::vector<StateUse>& found) {
  StudyReport report("Contribution of the recurrent states");
  report.page.paragraph(
      "The gain of a token is its log-probability with the recurrent states minus that with zeros "
      "in their place, in bits.");
  std::vector<std::vector<std::string>> lines = {
      {"run", "tokens", "bits per token", "without states", "gain"}};
  for (const StateUse& use : found) {
    const double gain = use.bits_without - use.bits_with;
    lines.push_back({use.name, with_commas(use.tokens), fmt::format("{:.4f}", use.bits_with),
                     fmt::format("{:.4f}", use.bits_without), fmt::format("{:.4f}", gain)});
    report.numbers["runs"].push_back(numbers_of(use));
    report.summary += fmt::format(
        "{}: {:.4f} bits per token, {:.4f} without states, gain {:.4f}; {:.0f} tokens/s\n",
        use.name, use.bits_with, use.bits_without, gain,
        static_cast<double>(use.tokens) / use.seconds);
  }
  report.page.table(lines);
  add_gain_charts(report.page, found);
  report.page.heading("In the text");
  for (const StateUse& use : found) add_excerpt(report.page, use);
  for (const StateUse& use : found) add_words(report.page, use);
  add_state_charts(report.page, found);
  return report;
}

}  // namespace rondo::study
