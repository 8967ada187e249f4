// Loads trained image networks, with their image preprocessing and class names.
#pragma once

#include "rondo/config/trained_files.h"
#include "rondo/model/compiled_image.h"
#include "rondo/model/network.h"

namespace rondo {

struct ImageModel {
  std::shared_ptr<Network> network;  // in evaluation mode
  ModelConfig config;
  AugmentConfig augment;  // as in training; ImageNet's if the file has none
  ImageDataConfig data;   // of the run; empty for a model file
  ClassNames names;       // one per class; numbers where names are unknown
};

// `given`: a run folder or a model file. `loops`: the number of loops (recursive networks) or
// levels (ring and universal ones); 0 = as in training. Throws Error{bad_input} if it is not an
// image network, or has no weights for that many.
ImageModel load_image_model(const std::string& given, int64_t loops = 0,
                            Verify verify = Verify::checksum);

// Compiles an image network for inference; later changes to its weights have no effect.
std::shared_ptr<const CompiledImageNetwork> compile_image_network(const Network& network);

// Logits [B, classes] of images [B, 3, side, side] by the network's own modules, without gradients.
Tensor image_logits(Network& network, const Tensor& images);

// The class names in `path` for a network. Throws Error{usage} if it is not an image network,
// Error{bad_input} unless there is one name per class.
ClassNames read_names_for(const ModelConfig& config, const std::string& path);

}  // namespace rondo
