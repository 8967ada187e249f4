// numpy's generator, against the draws of numpy 2:
//   r = numpy.random.default_rng(SEED)
//   r.choice(10, size=12), r.choice(1000, size=10), r.choice(3000000000, size=3)
#include "rondo/metrics/numpy_random.h"

#include <gtest/gtest.h>

#include <vector>

namespace rondo {
namespace {

struct Drawn {
  uint64_t seed;
  std::vector<uint32_t> tens;
  std::vector<uint32_t> thousands;
  std::vector<uint32_t> large;
};

const std::vector<Drawn> kDrawn = {
    {12345,
     {6, 2, 7, 3, 2, 7, 6, 6, 9, 3, 8, 3},
     {567, 598, 213, 186, 229, 672, 613, 941, 706, 248},
     {2846643454, 2197300642, 2001712358}},
    {0,
     {8, 6, 5, 2, 3, 0, 0, 0, 1, 8, 6, 9},
     {503, 606, 970, 729, 632, 543, 559, 935, 277, 815},
     {2012629631, 1182447541, 2572212829}},
    {7,
     {9, 6, 6, 8, 5, 7, 8, 2, 0, 3, 2, 8},
     {912, 5, 499, 821, 131, 797, 119, 467, 816, 303},
     {1024810287, 2158412743, 764608762}},
    {(uint64_t{1} << 40) + 3,
     {7, 7, 4, 9, 3, 4, 3, 0, 7, 1, 1, 5},
     {800, 665, 758, 561, 871, 154, 367, 635, 762, 217},
     {88154049, 2885280701, 2335389829}},
};

TEST(NumpyRandom, DrawsAsNumpyDoes) {
  for (const Drawn& expected : kDrawn) {
    NumpyRandom random(expected.seed);
    for (const uint32_t draw : expected.tens) EXPECT_EQ(random.below(10), draw) << expected.seed;
    for (const uint32_t draw : expected.thousands) {
      EXPECT_EQ(random.below(1000), draw) << expected.seed;
    }
    for (const uint32_t draw : expected.large) {
      EXPECT_EQ(random.below(3000000000), draw) << expected.seed;
    }
  }
}

TEST(NumpyRandom, OneChoiceTakesNoDraw) {
  NumpyRandom random(12345);
  EXPECT_EQ(random.below(1), 0U);
  EXPECT_EQ(random.below(10), 6U);
}

}  // namespace
}  // namespace rondo
