// CKA against the numbers of the program that RingFormer's authors used, and against the
// definition.
#include "rondo/study/cka.h"

#include "rondo/base/error.h"
#include "rondo/nn/tensor_file.h"
#include "tests/support/expect.h"
#include "tests/support/gradcheck.h"

namespace rondo::test {
namespace {

using study::BatchedCka;
using study::WholeCka;

constexpr double kAsTheAuthors = 1e-6;

struct CkaReference {
  NamedTensors all = load_tensors(RONDO_FIXTURES "/studies.safetensors");
  Tensor x = all.at("x");  // [16, 12, 24]
  Tensor y = all.at("y");  // [16, 12, 20]
  double number(const char* name) const { return all.at(name)[0].item<double>(); }
};

// HSIC₁ by its definition, for two Gram matrices.
double hsic_of(const Tensor& k_whole, const Tensor& l_whole) {
  const Tensor k = k_whole.clone().fill_diagonal_(0);
  const Tensor l = l_whole.clone().fill_diagonal_(0);
  const auto n = static_cast<double>(k.size(0));
  double trace = 0, both = 0;
  for (int64_t i = 0; i < k.size(0); ++i) {
    for (int64_t j = 0; j < k.size(0); ++j) trace += (k[i][j] * l[j][i]).item<double>();
    both += (k[i].sum() * l[i].sum()).item<double>();
  }
  const double totals = (k.sum() * l.sum()).item<double>();
  return (trace + totals / ((n - 1) * (n - 2)) - 2 / (n - 2) * both) / (n * (n - 3));
}

TEST(Cka, OfTokensIsTheAuthors) {
  const CkaReference r;
  BatchedCka cka;
  for (int64_t i = 0; i < r.x.size(0); ++i)
    EXPECT_TRUE(cka.add({r.x[i], r.y[i]}, {r.x[i], r.y[i]}));
  const Tensor got = cka.result();
  EXPECT_NEAR(got[0][1].item<double>(), r.number("cka.tokens"), kAsTheAuthors);
  EXPECT_NEAR(got[1][0].item<double>(), r.number("cka.tokens"), kAsTheAuthors);
  EXPECT_NEAR(got[0][0].item<double>(), r.number("cka.tokens.xx"), kAsTheAuthors);
  EXPECT_EQ(cka.batches(), 16);
}

TEST(Cka, OfItemsInMinibatchesIsTheAuthors) {
  const CkaReference r;
  BatchedCka cka;
  for (int64_t first = 0; first < 16; first += 4) {
    cka.add({r.x.narrow(0, first, 4).flatten(1)}, {r.y.narrow(0, first, 4).flatten(1)});
  }
  EXPECT_NEAR(cka.result().item<double>(), r.number("cka.items.4batches"), kAsTheAuthors);
}

TEST(Cka, OfAllRowsIsTheAuthorsHoweverTheyCome) {
  const CkaReference r;
  for (const int64_t piece : {1, 7, 192}) {
    WholeCka cka;
    const Tensor x = r.x.flatten(0, 1);  // [192, 24]
    const Tensor y = r.y.flatten(0, 1);
    for (int64_t first = 0; first < x.size(0); first += piece) {
      const int64_t count = std::min(piece, x.size(0) - first);
      cka.add({x.narrow(0, first, count)}, {y.narrow(0, first, count)});
    }
    EXPECT_EQ(cka.samples(), 192);
    EXPECT_NEAR(cka.biased().item<double>(), r.number("cka.all"), kAsTheAuthors);
    EXPECT_NEAR(cka.unbiased().item<double>(), r.number("cka.all.unbiased"), kAsTheAuthors);
  }
}

TEST(Cka, EqualsItsDefinition) {
  const Tensor a = noise({6, 5}, 1).to(at::kDouble);
  const Tensor b = noise({6, 3}, 2).to(at::kDouble);
  const Tensor k = at::matmul(a, a.t());
  const Tensor l = at::matmul(b, b.t());
  const double want = hsic_of(k, l) / std::sqrt(hsic_of(k, k) * hsic_of(l, l));
  BatchedCka batched;
  batched.add({a}, {b});
  EXPECT_NEAR(batched.result().item<double>(), want, 1e-12);
  WholeCka whole;
  whole.add({a}, {b});
  EXPECT_NEAR(whole.unbiased().item<double>(), want, 1e-12);
}

// Rotating and scaling a network's features changes nothing.
TEST(Cka, DoesNotDependOnTheBasis) {
  const Tensor a = noise({20, 6}, 1).to(at::kDouble);
  const Tensor turned =
      at::matmul(a, std::get<0>(at::linalg_qr(noise({6, 6}, 2).to(at::kDouble)))) * 3;
  BatchedCka cka;
  cka.add({a}, {turned});
  EXPECT_NEAR(cka.result().item<double>(), 1.0, 1e-12);
}

TEST(Cka, ReportsWhatCannotBeCompared) {
  BatchedCka cka;
  EXPECT_FALSE(cka.add({noise({3, 5}, 1)}, {noise({3, 5}, 2)}));  // too few for an estimate
  EXPECT_THROW(cka.result(), Error);
  EXPECT_THROW(cka.add({noise({5, 5}, 1)}, {noise({6, 5}, 2)}), Error);
  EXPECT_THROW(cka.add({}, {noise({6, 5}, 2)}), Error);
  EXPECT_TRUE(cka.add({noise({6, 5}, 1)}, {noise({6, 5}, 2)}));
  EXPECT_THROW(cka.add({noise({6, 5}, 1), noise({6, 5}, 3)}, {noise({6, 5}, 2)}), Error);
  EXPECT_THROW(WholeCka().biased(), Error);
  WholeCka few;
  few.add({noise({3, 5}, 1)}, {noise({3, 5}, 2)});
  EXPECT_NO_THROW(few.biased());
  EXPECT_THROW(few.unbiased(), Error);
}

}  // namespace
}  // namespace rondo::test
