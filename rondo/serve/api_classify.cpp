// Image classification and attention maps.
#include <fmt/format.h>

#include <charconv>

#include "rondo/base/text.h"
#include "rondo/http/target.h"
#include "rondo/image/decode.h"
#include "rondo/serve/api.h"
#include "rondo/serve/attention_views.h"

namespace rondo::serve {
namespace {

using nlohmann::json;

// The image and its options, from the query or the parts of a form.
struct ClassifyRequest {
  std::string_view image;
  std::string model;
  int64_t top = 5;
  bool heat = false;
};

ClassifyRequest read_classify(const http::Request& request) {
  ClassifyRequest r;
  r.image = request.body;
  std::map<std::string, std::string> options = request.query;
  const std::string& type = request.field("content-type");
  if (type.rfind("multipart/form-data", 0) == 0) {
    r.image = {};
    for (const auto& [name, value] : http::parse_multipart(type, request.body)) {
      if (name == "image" || name == "file") {
        r.image = value;
      } else {
        options[name] = std::string(value);
      }
    }
  }
  if (r.image.empty()) {
    throw http::ApiError(400, "expected a JPEG or PNG file as the body or as form field 'image'",
                         "image");
  }
  if (const auto top = options.find("top"); top != options.end()) {
    const std::string& text = top->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), r.top);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || r.top < 1) {
      throw http::ApiError(422, "top: expected a whole number of at least 1", "top");
    }
  }
  r.model = options["model"];
  const std::string heat = options["heat"];
  r.heat = heat == "true" || heat == "1";
  return r;
}

std::vector<float> prepare_image(const ServedImageModel& model, std::string_view image,
                                 const Limits& limits) {
  DecodeLimits bounds;
  bounds.pixels = limits.image_pixels;
  bounds.side = limits.image_side;
  const Augmenter& augmenter = model.classifier->augmenter();
  const int64_t side = model.classifier->side();
  std::vector<float> pixels(static_cast<size_t>(3 * side * side));
  augmenter.evaluate(decode_image(image, "image", 0, bounds), pixels.data());
  return pixels;
}

}  // namespace

void Api::classify(const Request& request, const Client& client) {
  const ClassifyRequest r = read_classify(request);
  ServedImageModel& model = models().find_image(r.model);
  const auto tell = [client, &model, heat = r.heat](const Prediction& prediction,
                                                    const std::vector<float>& pixels) {
    json classes = json::array();
    for (const ClassProbability& c : prediction) {
      const auto number = static_cast<size_t>(c.number);
      classes.push_back({{"class", c.number},
                         {"id", model.model.names.ids[number]},
                         {"name", model.model.names.titles[number]},
                         {"probability", c.probability}});
    }
    json out = {{"model", model.name}, {"classes", classes}};
    if (heat) {
      json maps = json::array();
      const int64_t side = model.classifier->side();
      for (const HeatMap& map : attention_rollout(*model.model.network, pixels, side)) {
        maps.push_back({{"name", map.name}, {"png", base64(map.png)}});
      }
      out["heat"] = maps;
    }
    reply_json(client, out);
  };
  engine_.submit(std::make_shared<ClassifyTask>(prepare_image(model, r.image, limits_), r.top,
                                                client, *model.batcher, tell));
}

}  // namespace rondo::serve
