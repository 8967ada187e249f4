// Color operations, in place. Each matches the Pillow ImageOps or ImageEnhance operation of that
// name bit for bit.
#pragma once

#include <cstdint>

#include "rondo/image/image.h"

namespace rondo {

void auto_contrast(Image& image);                     // ImageOps.autocontrast
void equalize(Image& image);                          // ImageOps.equalize
void invert(Image& image);                            // ImageOps.invert
void posterize(Image& image, int bits);               // ImageOps.posterize; keeps 0 to 8 bits
void solarize(Image& image, double threshold);        // ImageOps.solarize
void solarize_add(Image& image, int add, int below);  // timm: adds to values below a threshold
void adjust_color(Image& image, double factor);       // ImageEnhance.Color
void adjust_contrast(Image& image, double factor);    // ImageEnhance.Contrast
void adjust_brightness(Image& image, double factor);  // ImageEnhance.Brightness
void adjust_sharpness(Image& image, double factor);   // ImageEnhance.Sharpness

}  // namespace rondo
