// Images for viewing: PNG files, and many images on one sheet.
#pragma once

#include <string>
#include <vector>

#include "rondo/image/image.h"

namespace rondo {

// The image as a PNG file in memory.
std::string encode_png(const Image& image);

// A grid with `columns` columns on gray; every cell is as large as the largest image.
Image contact_sheet(const std::vector<Image>& images, int64_t columns);

// Writes that sheet as a PNG file, atomically. Error{bad_input} if the sheet would exceed the
// limits of decode_image(), Error{io} from writing.
void write_contact_sheet(const std::vector<Image>& images, int64_t columns,
                         const std::string& path);

}  // namespace rondo
