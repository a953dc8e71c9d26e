// Prints digests of the streams, and of the values decoded from them, of a fixed set of arrays:
// with FIRN_SIMD set to each target in turn, the output must not change.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/fields.hpp"
#include "support/pipelines.hpp"

namespace {

using firn::test::Kind;

template <class T>
void print_digests(const firn::Shape& shape, Kind kind, const firn::Options& options) {
  auto values = firn::test::make_field<T>(shape, kind, 11);
  if (kind == Kind::noisy) firn::test::sprinkle_specials(values, 5, values.size() / 50);
  const auto stream = firn::compress(firn::test::const_view_of(values, shape), options);
  std::vector<T> decoded(values.size());
  if (!stream || !firn::decompress(*stream, firn::test::view_of(decoded, shape))) std::abort();
  std::printf("%s %s %016" PRIx64 " %016" PRIx64 "\n", name_of(options.pipeline),
              firn::test::name_of(kind), firn::test::digest(stream->data(), stream->size()),
              firn::test::digest(decoded.data(), decoded.size() * sizeof(T)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--targets") == 0) {
    for (const std::string& name : firn::simd_targets()) std::puts(name.c_str());
    return 0;
  }
  // So that a variable that has no effect is noticed.
  if (argc == 2 && std::strcmp(argv[1], "--target") == 0) return std::puts(firn::simd_target()) < 0;
  std::vector<firn::Pipeline> pipelines = firn::test::chosen_pipelines();
  pipelines.push_back(firn::Pipeline::automatic);
  for (const firn::Pipeline pipeline : pipelines) {
    for (const Kind kind : firn::test::kAllKinds) {
      for (const firn::Bound bound : {firn::Bound::lossless(), firn::Bound::abs(1e-3),
                                      firn::Bound::rel(1e-2), firn::Bound::psnr(50)}) {
        firn::Options options;
        options.pipeline = pipeline;
        options.bound = bound;
        for (const firn::Shape& shape : {firn::Shape{3001}, firn::Shape{61, 67},
                                         firn::Shape{17, 18, 19}, firn::Shape{5, 6, 7, 8}}) {
          print_digests<float>(shape, kind, options);
          print_digests<double>(shape, kind, options);
        }
      }
    }
  }
  return 0;
}
