// Compresses a field within a bound and checks that it comes back.
#include <cmath>
#include <cstdio>
#include <firn/firn.hpp>
#include <vector>

int main() {
  std::vector<float> field(20 * 30 * 40);
  for (std::size_t i = 0; i < field.size(); ++i) {
    field[i] = std::sin(0.01f * static_cast<float>(i));
  }
  firn::Options options;
  options.bound = firn::Bound::abs(1e-3);
  const auto stream = firn::compress(firn::view(field.data(), {20, 30, 40}), options);
  if (!stream) {
    std::fprintf(stderr, "%s\n", stream.error().message.c_str());
    return 1;
  }
  std::vector<float> decoded(field.size());
  if (!firn::decompress(*stream, firn::mutable_view(decoded.data(), {20, 30, 40}))) return 1;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (std::fabs(decoded[i] - field[i]) > 1e-3f) return 1;
  }
  std::printf("Firn %s: %zu bytes became %zu\n", firn::version(), field.size() * sizeof(float),
              stream->size());
  return stream->size() < field.size() ? 0 : 1;
}
