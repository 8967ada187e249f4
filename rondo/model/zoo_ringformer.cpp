// The named models of the RingFormer paper: translation (Tables 1 and 4) and images (Tables 2, 3).
#include "rondo/model/zoo.h"

namespace rondo {
namespace {

constexpr const char* kRingFormer = "RingFormer";

EncoderDecoderConfig translation(int64_t width, int64_t hidden, int64_t heads, const char* scheme) {
  EncoderDecoderConfig c;
  c.width = width;
  c.hidden = hidden;
  c.heads = heads;
  c.depth.scheme = scheme;
  c.depth.levels = 6;
  // The authors' vanilla layers use one norm module for all of their sub-layers.
  c.one_norm_per_level = c.depth.scheme == "vanilla";
  return c;
}

VisionConfig image(int64_t width, int64_t hidden, int64_t heads, int64_t levels, int64_t classes,
                   const char* scheme) {
  VisionConfig c;
  c.width = width;
  c.hidden = hidden;
  c.heads = heads;
  c.classes = classes;
  c.depth.scheme = scheme;
  c.depth.levels = levels;
  const bool ring = c.depth.scheme == "ring";
  // Only the ring's per-level norms are torch's default; the baselines' say 1e-6.
  c.norm_epsilon = ring ? 1e-5 : 1e-6;
  if (c.depth.scheme == "universal") c.positions = "none";
  return c;
}

PaperFigures exactly(double parameters, bool without_embeddings = false) {
  PaperFigures f;
  f.parameters = parameters;
  f.exact = true;
  f.without_embeddings = without_embeddings;
  return f;
}

PaperFigures millions(double parameters, bool without_embeddings = false, const char* note = "") {
  PaperFigures f;
  f.parameters = parameters * 1e6;
  f.without_embeddings = without_embeddings;
  f.note = note;
  return f;
}

void add_translation(std::vector<ZooEntry>& zoo, const std::string& name, const std::string& row,
                     const EncoderDecoderConfig& c, const PaperFigures& figures) {
  zoo.push_back({"ringformer/" + name, kRingFormer, row, [c] { return ModelConfig{c}; }, figures});
}

void add_image(std::vector<ZooEntry>& zoo, const std::string& name, const std::string& row,
               const VisionConfig& c, PaperFigures figures, double billions = 0) {
  figures.multiply_adds = billions;
  zoo.push_back({"ringformer/" + name, kRingFormer, row, [c] { return ModelConfig{c}; }, figures});
}

void add_table_1(std::vector<ZooEntry>& zoo) {
  const std::string base = "Table 1, 512/2048: ";
  add_translation(zoo, "mt-base", base + "RingFormer", translation(512, 2048, 8, "ring"),
                  exactly(8943616, true));
  add_translation(zoo, "mt-base-vanilla", base + "Vanilla Transformer",
                  translation(512, 2048, 8, "vanilla"), exactly(44052480, true));
  add_translation(zoo, "mt-base-one-wide", base + "One Wide FFN",
                  translation(512, 2048, 8, "one-wide"), exactly(20984832, true));
  add_translation(zoo, "mt-base-universal", base + "Universal",
                  translation(512, 2048, 8, "universal"), exactly(7345152, true));
  const std::string large = "Table 1, 1024/4096: ";
  add_translation(zoo, "mt-large", large + "RingFormer", translation(1024, 4096, 16, "ring"),
                  exactly(35713024, true));
  add_translation(zoo, "mt-large-vanilla", large + "Vanilla Transformer",
                  translation(1024, 4096, 16, "vanilla"), millions(176.18, true));
  add_translation(zoo, "mt-large-one-wide", large + "One Wide FFN",
                  translation(1024, 4096, 16, "one-wide"), millions(83.91, true));
  add_translation(zoo, "mt-large-universal", large + "Universal",
                  translation(1024, 4096, 16, "universal"), exactly(29370368, true));
}

void add_table_4(std::vector<ZooEntry>& zoo) {
  const EncoderDecoderConfig ours = translation(128, 512, 8, "ring");
  const auto variant = [&](auto change) {
    EncoderDecoderConfig c = ours;
    change(c.depth.ring);
    return c;
  };
  const std::string row = "Table 4, 128/512: ";
  add_translation(zoo, "mt-ablation", row + "ours", ours, exactly(20584736));
  add_translation(zoo, "mt-ablation-static", row + "static level signals",
                  translation(128, 512, 8, "universal"), exactly(20480032));
  add_translation(zoo, "mt-ablation-no-attention-signal", row + "w.o. attn",
                  variant([](RingConfig& r) { r.attention = "none"; }), millions(20.51));
  add_translation(zoo, "mt-ablation-no-ffn-signal", row + "w.o. FF",
                  variant([](RingConfig& r) { r.feed_forward = "none"; }),
                  millions(20.56, false, "the paper prints 20.59M"));
  add_translation(zoo, "mt-ablation-before-attention", row + "before attn",
                  variant([](RingConfig& r) { r.attention = "before"; }), millions(20.58));
  add_translation(zoo, "mt-ablation-inter-ffn", row + "inter-FF signal",
                  variant([](RingConfig& r) { r.feed_forward = "inter"; }), PaperFigures{});
  add_translation(zoo, "mt-ablation-rank-32", row + "rank H/32",
                  variant([](RingConfig& r) { r.rank_divisor = 32; }), millions(20.53));
  add_translation(zoo, "mt-ablation-rank-8", row + "rank H/8",
                  variant([](RingConfig& r) { r.rank_divisor = 8; }), millions(20.68));
  add_translation(zoo, "mt-ablation-full-rank", row + "full rank",
                  variant([](RingConfig& r) { r.full_rank = true; }), millions(21.27));
}

void add_table_2(std::vector<ZooEntry>& zoo) {
  const auto small = [](int64_t width, int64_t hidden, const char* scheme) {
    return image(width, hidden, 8, 6, 100, scheme);
  };
  const std::string row = "Table 2, ImageNet-small: ";
  add_image(zoo, "image-small", row + "RingFormer 512/2048", small(512, 2048, "ring"),
            exactly(4395620));
  add_image(zoo, "image-small-vit", row + "ViT 512/2048", small(512, 2048, "vanilla"),
            exactly(19360868));
  add_image(zoo, "image-small-uit", row + "UiT 512/2048", small(512, 2048, "universal"),
            exactly(3598948));
  add_image(zoo, "image-small-owf", row + "OWF 512/2048", small(512, 2048, "one-wide"),
            exactly(8857188));
  add_image(zoo, "image-small-s", row + "RingFormer-s 728/3072", small(728, 3072, "ring"),
            exactly(8824348));
  add_image(zoo, "image-small-uit-s", row + "UiT-s 848/3072", small(848, 3072, "universal"),
            millions(8.83, false, "the paper prints 8.84M"));
  add_image(zoo, "image-small-vit-d", row + "ViT-d 328/1536", small(328, 1536, "vanilla"),
            millions(8.94));
  add_image(zoo, "image-small-owf-d", row + "OWF-d 376/1024", small(376, 1024, "one-wide"),
            millions(4.50, false, "the paper prints 4.51M"));
}

void add_table_3(std::vector<ZooEntry>& zoo) {
  const auto base = [](int64_t width, int64_t hidden, const char* scheme) {
    return image(width, hidden, 12, 12, 1000, scheme);
  };
  const std::string row = "Table 3, ImageNet-1K: ";
  PaperFigures ring = exactly(12022504);
  ring.note = "the paper's 19.03 G forms each d × d signal matrix";
  add_image(zoo, "image-base", row + "RingFormer 768/3072", base(768, 3072, "ring"), ring, 19.03);
  add_image(zoo, "image-base-vit", row + "ViT 768/3072", base(768, 3072, "vanilla"),
            exactly(86416360), 17.6);
  add_image(zoo, "image-base-owf", row + "OWF 768/3072", base(768, 3072, "one-wide"),
            exactly(34452712), 17.6);
  add_image(zoo, "image-base-uit", row + "UiT 768/3072", base(768, 3072, "universal"),
            millions(8.45), 17.6);
  add_image(zoo, "image-base-s", row + "RingFormer-s 1284/5120", base(1284, 5120, "ring"),
            exactly(31953324));
  add_image(zoo, "image-base-uit-s", row + "UiT-s 1560/6240", base(1560, 6240, "universal"),
            millions(31.98, false, "the paper prints 31.99M"));
}

}  // namespace

void add_ringformer(std::vector<ZooEntry>& zoo) {
  add_table_1(zoo);
  add_table_4(zoo);
  add_table_2(zoo);
  add_table_3(zoo);
}

}  // namespace rondo
