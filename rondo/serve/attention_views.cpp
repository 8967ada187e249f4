// Attention as images and tables.
#include "rondo/serve/attention_views.h"

#include <fmt/format.h>

#include <algorithm>

#include "rondo/base/text.h"
#include "rondo/http/text_output.h"
#include "rondo/image/contact_sheet.h"
#include "rondo/infer/runtime.h"
#include "rondo/study/feature_maps.h"
#include "rondo/study/rollout.h"

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

// The pixels [3, side, side] in gray, enlarged to be seen well.
Image gray_picture(const std::vector<float>& pixels, int64_t side) {
  constexpr int64_t kLeast = 224;
  const int64_t scale = std::max<int64_t>(1, (kLeast + side - 1) / side);
  const Tensor all = at::from_blob(const_cast<float*>(pixels.data()), {3, side, side});
  const Tensor mean = all.mean(0);  // [side, side]
  const Tensor range = (mean.max() - mean.min()).clamp_min(1e-6);
  const Tensor bytes = ((mean - mean.min()) / range * 255.0).round().to(at::kByte).contiguous();
  Image image(side * scale, side * scale);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = bytes.data_ptr<uint8_t>() + y / scale * side;
    for (int64_t x = 0; x < image.width; ++x) {
      std::fill_n(image.row(y) + 3 * x, 3, from[x / scale]);
    }
  }
  return image;
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
  study::LevelActivations seen(study::attention_endings());
  std::vector<HeatMap> maps;
  Runtime::get().compute([&] {
    const c10::InferenceMode no_gradients;
    State state;
    const Tensor images = at::from_blob(const_cast<float*>(pixels.data()), {1, 3, side, side});
    network.forward({{"images", images}}, state, Scope(&seen));
    const auto stacks = study::attention_of(seen, network, 0, 1);
    const Image picture = gray_picture(pixels, side);
    for (size_t s = 0; s < stacks.size(); ++s) {
      if (stacks[s].levels.empty()) return maps.clear();  // networks without attention
      for (size_t i = 0; i < stacks[s].levels.size(); ++i) {
        const Image view = study::tinted(picture, study::rollout_until(stacks, s, i));
        std::string name = fmt::format("level {}", i + 1);
        if (stacks.size() > 1) name = fmt::format("stage {}, {}", s + 1, name);
        maps.push_back({std::move(name), encode_png(view)});
      }
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
