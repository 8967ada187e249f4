// The named models of the Block-Recurrent Transformer paper (Tables 1 and 2 and its ablations), and
// Rondo's own combination of both axes.
#include "rondo/config/zoo.h"

namespace rondo {
namespace {

constexpr const char* kBlockRecurrent = "Block-Recurrent Transformer";

LanguageModelConfig language_model(int64_t levels, const char* kind) {
  LanguageModelConfig c;
  c.depth.levels = levels;
  c.time.kind = kind;
  return c;
}

LanguageModelConfig transformer_xl(int64_t window) {
  LanguageModelConfig c = language_model(12, "window");
  c.time.window = window;
  c.time.segment = window;
  return c;
}

LanguageModelConfig recurrent(const char* gate, const char* configuration,
                              const char* kind = "block-recurrent") {
  LanguageModelConfig c = language_model(12, kind);
  c.time.gate = gate;
  c.time.configuration = configuration;
  return c;
}

LanguageModelConfig on_layers(std::vector<int64_t> layers) {
  LanguageModelConfig c = recurrent("fixed", "skip");
  c.time.recurrent_layers = std::move(layers);
  return c;
}

LanguageModelConfig memorizing() {
  LanguageModelConfig c = language_model(12, "memorizing");
  c.time.segment = c.time.window;
  return c;
}

LanguageModelConfig large(LanguageModelConfig c) {
  c.heads = 16;
  c.hidden = 8192;
  return c;
}

// `millions`: as printed in the paper, which does not say whether embeddings are included. `code`:
// the count of the authors' code with an embedding of 260 rows.
void add_brt(std::vector<ZooEntry>& zoo, const std::string& name, const std::string& row,
             const LanguageModelConfig& c, const char* millions = "", const char* code = "") {
  zoo.push_back({"brt/" + name, kBlockRecurrent, row, [c] { return ModelConfig{c}; },
                 printed(millions).code(code)});
}

}  // namespace

void add_block_recurrent(std::vector<ZooEntry>& zoo) {
  // "between 151 million (12 layer) and 164 million (13 layer)", Section 4.1
  add_brt(zoo, "xl-512", "Table 1, XL:512", transformer_xl(512), "151");
  add_brt(zoo, "xl-1024", "Table 1, XL:1024", transformer_xl(1024), "151");
  add_brt(zoo, "xl-2048", "Table 1, XL:2048", transformer_xl(2048), "151");
  add_brt(zoo, "slide-12l", "Table 1, Slide:12L", language_model(12, "window"), "151", "151.29M");
  add_brt(zoo, "slide-13l", "Table 1, Slide:13L", language_model(13, "window"), "164", "163.88M");
  add_brt(zoo, "rec-fixed-dual", "Table 1, Rec:fixed:dual", recurrent("fixed", "dual"), "",
          "169.12M");
  add_brt(zoo, "rec-fixed-single", "Table 1, Rec:fixed:single", recurrent("fixed", "single"), "",
          "171.21M");
  add_brt(zoo, "rec-fixed-skip", "Table 1, Rec:fixed:skip", recurrent("fixed", "skip"), "",
          "160.73M");
  add_brt(zoo, "rec-lstm-dual", "Table 1, Rec:lstm:dual", recurrent("lstm", "dual"), "", "181.70M");
  add_brt(zoo, "rec-lstm-single", "Table 1, Rec:lstm:single", recurrent("lstm", "single"), "",
          "179.60M");
  add_brt(zoo, "rec-lstm-skip", "Table 1, Rec:lstm:skip", recurrent("lstm", "skip"), "", "164.92M");
  add_brt(zoo, "feedback-fixed-skip", "Table 1, Feedback:fixed:skip",
          recurrent("fixed", "skip", "feedback"), "", "183.80M");
  add_brt(zoo, "feedback-lstm-single", "Table 1, Feedback:lstm:single",
          recurrent("lstm", "single", "feedback"), "", "202.67M");
  add_brt(zoo, "memorizing-32k", "Table 1, Memorizing Transformer 32k", memorizing());
  add_brt(zoo, "slide-13l-large", "Table 2, Slide:13L:large", large(language_model(13, "window")),
          "327");
  add_brt(zoo, "rec-lstm-single-large", "Table 2, Rec:lstm:single:large",
          large(recurrent("lstm", "single")), "375");
  add_brt(zoo, "rec-fixed-skip-large", "Table 2, Rec:fixed:skip:large",
          large(recurrent("fixed", "skip")), "320");
  add_brt(zoo, "rec-fixed-skip-adjacent", "Section 4.5, layers 9 and 10", on_layers({9, 10}));
  add_brt(zoo, "rec-fixed-skip-apart", "Section 4.5, layers 4 and 10", on_layers({4, 10}));
}

void add_own(std::vector<ZooEntry>& zoo) {
  LanguageModelConfig c = recurrent("fixed", "skip");
  c.depth.scheme = "ring";
  zoo.push_back({"rondo/ring-brt", "Rondo", "Rec:fixed:skip with its ordinary layers as a ring",
                 [c] { return ModelConfig{c}; }, PaperFigures{}});
}

}  // namespace rondo
