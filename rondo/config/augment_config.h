// Configuration of image augmentation: [augment] in an experiment's TOML file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/config.h"

namespace rondo {

// The defaults only crop and flip. DeiT's recipe: auto_augment = "rand", erase = 0.25, mixup = 0.8,
// cutmix = 1.0, repeats = 3.
struct AugmentConfig {
  std::string crop = "random-resized";
  double scale_min = 0.08;
  double flip = 0.5;
  std::string auto_augment = "none";
  double magnitude = 9.0;
  int64_t operations = 2;
  double magnitude_std = 0.5;
  double color_jitter = 0.0;
  double erase = 0.0;
  double mixup = 0.0;
  double cutmix = 0.0;
  double mixup_prob = 1.0;
  double mixup_switch = 0.5;
  int64_t repeats = 1;
  std::vector<double> mean = {0.485, 0.456, 0.406};
  std::vector<double> std = {0.229, 0.224, 0.225};
  double crop_ratio = 0.875;
  std::string interpolation = "bicubic";
};

template <class V>
void describe(V& v, AugmentConfig& c) {
  v.field("crop", c.crop,
          "training crop: random-resized = a random region, resized; pad = pad by 4 pixels, then "
          "crop at random (for images of about 32 px); none = center crop",
          one_of({"random-resized", "pad", "none"}));
  v.field("scale_min", c.scale_min,
          "random-resized: smallest crop, as a fraction of the image area", between(0.001, 1));
  v.field("flip", c.flip, "probability of a horizontal flip", between(0, 1));
  v.field("auto_augment", c.auto_augment,
          "rand = RandAugment with timm's increasing operations; trivial = TrivialAugmentWide",
          one_of({"none", "rand", "trivial"}));
  v.field("magnitude", c.magnitude, "rand: strength of the operations", between(0, 10));
  v.field("operations", c.operations,
          "rand: operations drawn per image; each is applied with probability 1/2", between(1, 15));
  v.field("magnitude_std", c.magnitude_std, "rand: standard deviation of the strength",
          between(0, 10));
  v.renamed("colour_jitter", "color_jitter");
  v.field("color_jitter", c.color_jitter,
          "brightness, contrast and saturation vary by up to this fraction; 0 = off",
          between(0, 1));
  v.field("erase", c.erase, "probability of replacing a rectangle with noise", between(0, 1));
  v.field("mixup", c.mixup, "alpha of mixup's Beta distribution; 0 = off", between(0, 100));
  v.field("cutmix", c.cutmix, "alpha of cutmix's Beta distribution; 0 = off", between(0, 100));
  v.field("mixup_prob", c.mixup_prob, "probability of mixing a batch", between(0, 1));
  v.field("mixup_switch", c.mixup_switch, "probability of cutmix when both are on", between(0, 1));
  v.field("repeats", c.repeats,
          "repeated augmentation: copies of an image per epoch, each augmented differently; the "
          "epoch length stays the same",
          between(1, 100));
  v.field("mean", c.mean, "per-channel mean to subtract: red, green, blue in [0, 1]",
          between(0, 1));
  v.field("std", c.std, "per-channel standard deviation to divide by: red, green, blue",
          between(1e-6, 1000));
  v.field("crop_ratio", c.crop_ratio,
          "evaluation with crop = random-resized: center crop, as a fraction of the shorter side",
          between(0.1, 1));
  v.field("interpolation", c.interpolation,
          "interpolation of crops and rotations; random = either, at random",
          one_of({"bicubic", "bilinear", "random"}));
}

// Checks what describe() cannot express: mean and std have three values. Throws Error{bad_input};
// `where` is the prefix of the message ("run.toml: augment").
void check_augment(const AugmentConfig& config, const std::string& where);

}  // namespace rondo
