// oneDNN's gemm.
#include "rondo/kernels/gemm.h"

#include <cstdlib>
#include <stdexcept>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#ifdef RONDO_DNNL
#include <dnnl.h>

// Exported by the library, and what its own tests call, but missing from its headers.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n,
                                               dnnl_dim_t k, float alpha, const uint16_t* a,
                                               dnnl_dim_t lda, const uint16_t* b, dnnl_dim_t ldb,
                                               float beta, float* c, dnnl_dim_t ldc);
#endif

namespace rondo::kernels {
namespace {

#ifdef RONDO_DNNL
void require(dnnl_status_t status) {
  if (status != dnnl_success) throw std::runtime_error("oneDNN: gemm failed");
}

char letter(bool transpose) { return transpose ? 'T' : 'N'; }
int64_t row_of_a(const Product& p) { return p.transpose_a ? p.m : p.k; }
int64_t row_of_b(const Product& p) { return p.transpose_b ? p.k : p.n; }
#else
[[noreturn]] void refuse() { throw std::logic_error("built without oneDNN"); }
#endif

// Tile data is state that a process must ask leave for (Linux 5.16 and later).
bool ask_for_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

void prepare_tiles() {
  if (!ask_for_tiles()) setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", /*overwrite=*/0);
}

#ifdef RONDO_DNNL
bool has_gemm() { return true; }

void gemm(const Product& p, const float* a, const float* b, float* c) {
  require(dnnl_sgemm(letter(p.transpose_a), letter(p.transpose_b), p.m, p.n, p.k, p.alpha, a,
                     row_of_a(p), b, row_of_b(p), p.beta, c, p.n));
}

void gemm(const Product& p, const uint16_t* a, const uint16_t* b, float* c) {
  require(dnnl_gemm_bf16bf16f32(letter(p.transpose_a), letter(p.transpose_b), p.m, p.n, p.k,
                                p.alpha, a, row_of_a(p), b, row_of_b(p), p.beta, c, p.n));
}
#else
bool has_gemm() { return false; }
void gemm(const Product& /*p*/, const float* /*a*/, const float* /*b*/, float* /*c*/) { refuse(); }
void gemm(const Product& /*p*/, const uint16_t* /*a*/, const uint16_t* /*b*/, float* /*c*/) {
  refuse();
}
#endif

}  // namespace rondo::kernels
