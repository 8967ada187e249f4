// Parts of data sets: their syntax, and that complementary parts cover everything once.
#include "rondo/base/part_spec.h"

#include "tests/base/base_test_util.h"

namespace rondo {
namespace {

using testing::error_of;
using testing::TempDir;

int64_t first_of(const std::string& spec, int64_t size) {
  return part_place(parse_part(spec).first, size, 0);
}
int64_t last_of(const std::string& spec, int64_t size) {
  return part_place(parse_part(spec).last, size, size);
}

TEST(PartSpec, NumbersPercentagesAndBytes) {
  EXPECT_FALSE(parse_part("books").is_part);
  EXPECT_EQ(parse_part("a/b#:-5%").path, "a/b");
  EXPECT_EQ(parse_part("a/b#:-5%").written, ":-5%");
  EXPECT_EQ(last_of("x#:-1000", 5000), 4000);
  EXPECT_EQ(first_of("x#-1000:", 5000), 4000);
  EXPECT_EQ(last_of("x#:10", 5), 5) << "no more than there are";
  EXPECT_EQ(first_of("x#-10:", 5), 0);
  EXPECT_EQ(last_of("x#:2.5%", 1000), 25);
  EXPECT_TRUE(parse_part("x#:700B").uses(PartEnd::Unit::bytes));
  EXPECT_TRUE(parse_part("x#3:4/class").by_class);
  EXPECT_EQ(first_of("x#3:4/class", 9), 3);
}

TEST(PartSpec, APartAndTheRestMakeTheWhole) {
  for (const char* end : {"-5%", "90%", "-7", "12", "33.3%", "-99%"}) {
    for (const int64_t size : {0, 1, 7, 19, 20, 21, 999, 12345}) {
      EXPECT_EQ(last_of(std::string("x#:") + end, size),
                first_of(std::string("x#") + end + ":", size))
          << end << " of " << size;
    }
  }
}

TEST(PartSpec, APathThatIsThereIsNoPart) {
  const TempDir folder;
  testing::spill(folder.file("c#:1"), "text");
  EXPECT_FALSE(parse_part(folder.file("c#:1")).is_part);
}

TEST(PartSpec, RefusesWhatIsNoPart) {
  for (const char* spec :
       {"x#", "x#5", "x#a:b", "x#1:2:3", "x#:5kB", "x#:101%", "x#--3:", "x#:1e3", "x#:-", "x#:%"}) {
    const Error error = error_of([&] { parse_part(spec); });
    EXPECT_EQ(error.code(), ExitCode::bad_input) << spec;
    EXPECT_NE(error.advice().find("#FIRST:LAST"), std::string::npos) << spec;
  }
}

}  // namespace
}  // namespace rondo
