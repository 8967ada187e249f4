// Images for people to look at: PNG files, and many images on one sheet.
#pragma once

#include <string>
#include <vector>

#include "rondo/image/image.h"

namespace rondo {

// The image as the bytes of a PNG file.
std::string encode_png(const Image& image);

// Side by side in rows of `columns`, each in a cell as large as the largest, on gray.
Image contact_sheet(const std::vector<Image>& images, int64_t columns);

// That sheet as a PNG file, whole or not at all. Error{bad_input} if the sheet would be larger than
// what decode_image() reads, Error{io} from writing.
void write_contact_sheet(const std::vector<Image>& images, int64_t columns,
                         const std::string& path);

}  // namespace rondo
