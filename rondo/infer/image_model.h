// Trained image networks ready for use, with all that belongs to their images: how they are
// prepared and what the classes are called.
#pragma once

#include "rondo/config/trained_files.h"
#include "rondo/model/compiled_image.h"
#include "rondo/model/network.h"

namespace rondo {

struct ImageModel {
  std::shared_ptr<Network> network;  // in evaluation mode
  ModelConfig config;
  AugmentConfig augment;  // as it was trained; ImageNet's for a file that does not say
  ImageDataConfig data;   // of the run; empty for a model file
  ClassNames names;       // as many as classes; numbers where none are known
};

// `given`: a run folder or a model file. `loops`: so many loops (recursive networks) or levels
// (ring and universal ones) instead of those trained with; 0 = those. Error{bad_input} if it is no
// image network, or if more are asked for than it has weights for.
ImageModel load_image_model(const std::string& given, int64_t loops = 0,
                            Verify verify = Verify::checksum);

// The network of an image model as inference runs it; later changes of its weights are not noticed.
std::shared_ptr<const CompiledImageNetwork> compile_image_network(const Network& network);

// Logits [B, classes] of images [B, 3, side, side] by the network's own modules, without gradients.
Tensor image_logits(Network& network, const Tensor& images);

// The names in `path` for the classes of a network. Error{usage} if it is no image network,
// Error{bad_input} unless there are as many as it has classes.
ClassNames read_names_for(const ModelConfig& config, const std::string& path);

}  // namespace rondo
