// Attention as images and tables.
#include "rondo/serve/attention_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rondo/base/text.h"
#include "rondo/http/text_output.h"
#include "rondo/image/contact_sheet.h"
#include "rondo/infer/runtime.h"

namespace rondo::serve {
namespace {

// Keeps every tensor whose name matches, in the order of the forward pass.
class Watch : public Observer {
 public:
  explicit Watch(const char* pattern) : pattern_(pattern) {}
  bool wants(const std::string& name) override { return glob_match(pattern_, name); }
  void activation(const std::string& name, const Tensor& value) override {
    seen.emplace_back(name, value.detach().to(at::kDouble));
  }
  std::vector<std::pair<std::string, Tensor>> seen;

 private:
  const char* pattern_;
};

// "stage.0.stack.level.3.mixing.probabilities" → "stage 1, level 4".
std::string level_name(const std::string& name) {
  std::string out;
  for (const char* part : {"stage", "level"}) {
    const size_t at = name.find(std::string(part) + ".");
    if (at == std::string::npos) continue;
    const int64_t number = std::atoll(name.c_str() + at + std::string_view(part).size() + 1);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", part, number + 1);
  }
  return out.empty() ? name : out;
}

// The side of a square of `tokens` patches, with or without a class token; 0 if there is none.
int64_t square_side(int64_t tokens, bool& class_token) {
  for (const int64_t extra : {0, 1}) {
    const auto side =
        static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(tokens - extra))));
    class_token = extra == 1;
    if (side > 0 && side * side == tokens - extra) return side;
  }
  return 0;
}

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::clamp(value, 0.0, 1.0) * 255.0 + 0.5);
}

// The image in gray, redder where `heat` [h, h] is large, enlarged for display.
std::string heat_png(const Tensor& heat, const std::vector<float>& pixels, int64_t side) {
  constexpr int64_t kLeast = 224;
  const int64_t scale = std::max<int64_t>(1, (kLeast + side - 1) / side);
  const auto [least, most] = std::minmax_element(pixels.begin(), pixels.end());
  const double range = std::max(1e-6, static_cast<double>(*most) - *least);
  const Tensor scaled =
      ((heat - heat.min()) / (heat.max() - heat.min()).clamp_min(1e-12)).contiguous();
  const int64_t cells = heat.size(0);
  const double* weights = scaled.data_ptr<double>();
  Image image(side * scale, side * scale);
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.row(y);
    for (int64_t x = 0; x < image.width; ++x) {
      const auto at = static_cast<size_t>((y / scale) * side + x / scale);
      double gray = 0;
      for (size_t c = 0; c < 3; ++c) {
        gray += pixels[c * static_cast<size_t>(side * side) + at] / 3.0;
      }
      gray = (gray - *least) / range;
      const double w = weights[(y * cells / image.height) * cells + x * cells / image.width];
      row[3 * x] = to_byte(0.55 * gray + 0.45 * w + 0.1 * w);
      row[3 * x + 1] = to_byte(0.55 * gray + 0.25 * w * w);
      row[3 * x + 2] = to_byte(0.55 * gray + 0.35 * (1 - w) * 0.6);
    }
  }
  return encode_png(image);
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> texts;
  for (const int32_t id : ids) {
    http::Utf8Stream text;
    std::string piece = text.push(tokenizer.decode({id}));
    piece += text.finish();
    texts.push_back(piece.empty() ? "</s>" : piece);
  }
  return texts;
}

Tensor id_row(const std::vector<int32_t>& ids) {
  return at::tensor(std::vector<int64_t>(ids.begin(), ids.end()), at::kLong)
      .unsqueeze(0);  // [1, T]
}

}  // namespace

std::vector<HeatMap> attention_rollout(Network& network, const std::vector<float>& pixels,
                                       int64_t side) {
  Watch watch("*.mixing.probabilities");
  std::vector<HeatMap> maps;
  Runtime::get().compute([&] {
    const c10::InferenceMode no_gradients;
    State state;
    const Tensor images = at::from_blob(const_cast<float*>(pixels.data()), {1, 3, side, side});
    network.forward({{"images", images}}, state, Scope(&watch));
    Tensor rollout;
    for (const auto& [name, p] : watch.seen) {  // [B, H, T, T]
      bool class_token = false;
      const int64_t tokens = p.size(-1);
      const int64_t cells = square_side(tokens, class_token);
      if (p.size(0) != 1 || p.size(-2) != tokens || cells == 0) continue;
      const Tensor one = at::eye(tokens, at::kDouble);
      const Tensor level = 0.5 * p[0].mean(0) + 0.5 * one;  // [T, T]
      const bool begins = !rollout.defined() || rollout.size(0) != tokens;
      rollout = begins ? level : level.matmul(rollout);
      const Tensor reached = class_token ? rollout[0].slice(0, 1) : rollout.mean(0);
      maps.push_back({level_name(name), heat_png(reached.view({cells, cells}), pixels, side)});
    }
  });
  return maps;
}

CrossAttentionView cross_attention(EncoderDecoder& model, const PairTokenizers& tokenizers,
                                   const std::string& source, const std::vector<int32_t>& target) {
  std::vector<int32_t> source_ids = tokenizers.source->encode(source);
  source_ids.push_back(tokenizers.source->special_tokens().end);
  std::vector<int32_t> read = {tokenizers.target->special_tokens().begin};
  read.insert(read.end(), target.begin(), target.end());
  std::vector<int32_t> written = target;
  written.push_back(tokenizers.target->special_tokens().end);
  CrossAttentionView view;
  Watch watch("*.cross.probabilities");
  Runtime::get().compute([&] {
    const c10::InferenceMode no_gradients;
    State state;
    model.forward({{"source", id_row(source_ids)}, {"target", id_row(read)}}, state, Scope(&watch));
    if (watch.seen.empty()) return;
    const Tensor p = watch.seen.back().second[0].mean(0).contiguous();  // [T, S]
    for (int64_t t = 0; t < p.size(0); ++t) {
      const double* row = p.data_ptr<double>() + t * p.size(1);
      view.weights.emplace_back(row, row + p.size(1));
    }
  });
  view.source = token_texts(*tokenizers.source, source_ids);
  view.target = token_texts(*tokenizers.target, written);
  return view;
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

}  // namespace rondo::serve
