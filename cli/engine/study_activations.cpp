// rondo study activations: feature maps on images, cross-attention on sentences.
#include <fmt/format.h>

#include "cli/engine/decoding.h"
#include "cli/engine/study_kinds.h"
#include "rondo/base/error.h"
#include "rondo/base/files.h"
#include "rondo/data/parallel_text.h"
#include "rondo/image/augment.h"
#include "rondo/image/decode.h"
#include "rondo/image/image_list.h"
#include "rondo/study/cross_attention.h"
#include "rondo/study/feature_maps.h"

namespace rondo::cli {
namespace {

constexpr int64_t kMaxImageBytes = int64_t{1} << 30;

struct ChosenImages {
  study::Batch batch;
  std::vector<std::string> names;
};

ChosenImages given_images(const std::vector<std::string>& inputs, const Augmenter& augmenter) {
  ChosenImages chosen;
  std::vector<Tensor> pixels;
  for (const std::string& path : list_images(inputs)) {
    const Tensor image = at::empty({3, augmenter.side(), augmenter.side()});
    augmenter.evaluate(decode_image(read_text_file(path, kMaxImageBytes), path),
                       image.data_ptr<float>());
    pixels.push_back(image);
    chosen.names.push_back(path);
  }
  chosen.batch.rows = static_cast<int64_t>(pixels.size());
  chosen.batch.inputs["images"] = at::stack(pixels);
  return chosen;
}

ChosenImages first_images(const study::Subject& subject, const study::SubjectOptions& how) {
  ChosenImages chosen;
  study::SubjectOptions few = how;
  few.rows = how.items;
  if (!study::open_batches(subject, few)->next(chosen.batch)) {
    throw Error(ExitCode::bad_input, "activations: expected images, got none");
  }
  for (int64_t i = 0; i < chosen.batch.rows; ++i) {
    const int64_t label = chosen.batch.labels[i].item<int64_t>();
    chosen.names.push_back(fmt::format("image {}, labeled {}", i + 1,
                                       subject.classes.titles[static_cast<size_t>(label)]));
  }
  return chosen;
}

study::StudyReport study_images(const study::Subject& subject, const StudyOptions& options,
                                const study::SubjectOptions& how) {
  const Augmenter augmenter(subject.augment, image_side(subject.config));
  const ChosenImages chosen =
      options.inputs.empty() ? first_images(subject, how) : given_images(options.inputs, augmenter);
  study::FeatureMapOptions maps;
  maps.levels = options.levels;
  maps.channels = options.channels;
  auto found = study::image_activations(*subject.network, chosen.batch, maps);
  std::vector<Image> pictures;
  for (size_t i = 0; i < found.size(); ++i) {
    found[i].name = chosen.names[i];
    found[i].predicted = subject.classes.titles[std::stoull(found[i].predicted)];
    pictures.push_back(augmenter.picture(found[i].image.contiguous().data_ptr<float>()));
  }
  return study::activations_report(found, pictures);
}

std::vector<std::string> first_sentences(const study::Subject& subject,
                                         const study::SubjectOptions& how) {
  const PairConfig data = subject.run.has_value() ? subject.run->pairs : PairConfig();
  const std::string source =
      how.data.empty() ? run_data(subject.run, subject.name, subject.task, how.split) : how.data;
  PairReader reader(find_parallel(source, data.source, data.target));
  std::vector<std::string> lines;
  std::string line;
  std::string target;
  while (static_cast<int64_t>(lines.size()) < how.items && reader.next(line, target)) {
    lines.push_back(line);
  }
  if (lines.empty()) throw Error(ExitCode::bad_input, fmt::format("{}: is empty", source));
  return lines;
}

study::StudyReport study_sentences(const study::Subject& subject, const StudyOptions& options,
                                   const study::SubjectOptions& how) {
  auto& model = dynamic_cast<EncoderDecoder&>(*subject.network);
  const DecodingOptions decoding;
  const Translator translator(compile(model, decoding), subject.tokenizers,
                              translator_options(decoding));
  const std::vector<std::string> lines =
      options.inputs.empty() ? first_sentences(subject, how) : options.inputs;
  std::vector<study::SentenceAttention> found;
  for (const std::string& line : lines) {
    found.push_back(study::sentence_attention(model, translator, line));
  }
  return study::cross_attention_report(found);
}

}  // namespace

study::StudyReport study_activations(const StudyOptions& options) {
  if (options.runs.size() > 1) {
    throw Error(ExitCode::usage, "activations: expected one model, got several",
                "study one at a time");
  }
  const study::SubjectOptions how = subject_options(options, 3);
  const study::Subject subject = study::load_subject(options.runs[0], how);
  if (subject.task == "image") return study_images(subject, options, how);
  if (subject.task == "translation") return study_sentences(subject, options, how);
  throw Error(ExitCode::bad_input,
              fmt::format("{}: expected an image network or a translation model, got a language "
                          "model",
                          subject.name),
              "for language models: rondo study attention-distance, rondo study state");
}

}  // namespace rondo::cli
