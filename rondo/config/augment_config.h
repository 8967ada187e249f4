// What a user may say about augmentation: [augment] of an experiment's TOML file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rondo/base/config.h"

namespace rondo {

// The defaults augment nothing but crop and flip. DeiT's recipe: auto_augment = "rand", erase =
// 0.25, mixup = 0.8, cutmix = 1.0, repeats = 3.
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
          "training crop: random-resized = a random part, resized; pad = the image padded by 4 and "
          "cropped at random, for 32 px and the like; none = the middle",
          one_of({"random-resized", "pad", "none"}));
  v.field("scale_min", c.scale_min, "random-resized: smallest share of the image's area",
          between(0.001, 1));
  v.field("flip", c.flip, "probability of exchanging left and right", between(0, 1));
  v.field("auto_augment", c.auto_augment,
          "rand = RandAugment with timm's increasing operations; trivial = TrivialAugmentWide",
          one_of({"none", "rand", "trivial"}));
  v.field("magnitude", c.magnitude, "rand: strength of the operations", between(0, 10));
  v.field("operations", c.operations,
          "rand: operations drawn for an image; each is carried out with probability 1/2",
          between(1, 15));
  v.field("magnitude_std", c.magnitude_std, "rand: spread of the strength", between(0, 10));
  v.renamed("colour_jitter", "color_jitter");
  v.field("color_jitter", c.color_jitter,
          "brightness, contrast and saturation change by up to this share; 0 = none",
          between(0, 1));
  v.field("erase", c.erase, "probability of replacing a rectangle by noise", between(0, 1));
  v.field("mixup", c.mixup, "alpha of mixup's Beta distribution; 0 = no mixup", between(0, 100));
  v.field("cutmix", c.cutmix, "alpha of cutmix's Beta distribution; 0 = no cutmix",
          between(0, 100));
  v.field("mixup_prob", c.mixup_prob, "probability that a batch is mixed at all", between(0, 1));
  v.field("mixup_switch", c.mixup_switch, "probability of cutmix where both are on", between(0, 1));
  v.field("repeats", c.repeats,
          "times an image comes in an epoch, augmented anew; the epoch keeps its length",
          between(1, 100));
  v.field("mean", c.mean, "of red, green and blue in [0, 1], subtracted", between(0, 1));
  v.field("std", c.std, "of red, green and blue, divided by", between(1e-6, 1000));
  v.field("crop_ratio", c.crop_ratio,
          "evaluation, where crop = random-resized: the share of the shorter side that is seen",
          between(0.1, 1));
  v.field("interpolation", c.interpolation, "of crops and rotations; random = either, by chance",
          one_of({"bicubic", "bilinear", "random"}));
}

// What describe() cannot say: mean and std have three numbers. Error{bad_input}; `where` begins
// the message ("run.toml: augment").
void check_augment(const AugmentConfig& config, const std::string& where);

}  // namespace rondo
