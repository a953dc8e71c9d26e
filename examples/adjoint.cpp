// An adjoint in the style of every out-of-core gradient: march a state forward, keep each state in
// a frame store, then march the adjoint backward and read the states in reverse.
#include <cstdio>
#include <firn/store.hpp>
#include <vector>

int main() {
  const std::size_t cells = 1 << 16;
  const std::uint64_t steps = 200;
  firn::StoreOptions options;  // automatic: memory, then compressed memory, then the file
  options.shape = {cells};
  options.path = "adjoint.frames";
  options.memory_budget = 8 << 20;  // the states take 52 MB
  options.compression.bound = firn::Bound::rel(1e-5);
  auto store = firn::FrameStore::create(options);
  if (!store) return std::fprintf(stderr, "%s\n", store.error().message.c_str()), 1;

  // u' = -a u^2, by Euler steps; J = sum of u(T); dJ/da by the adjoint.
  const float a = 0.5f, dt = 0.01f;
  std::vector<float> u(cells), adjoint(cells, 1.0f);
  for (std::size_t i = 0; i < cells; ++i) u[i] = 1.0f + static_cast<float>(i) / cells;
  for (std::uint64_t n = 0; n < steps; ++n) {
    if (!store->put(n, firn::view(u.data(), options.shape)).ok()) return 1;
    for (float& value : u) value -= dt * a * value * value;
  }
  double gradient = 0;
  for (std::uint64_t n = steps; n-- > 0;) {
    const auto state = store->hold(n);
    if (!state) return std::fprintf(stderr, "%s\n", state.error().message.c_str()), 1;
    const auto* v = static_cast<const float*>(state->data());
    for (std::size_t i = 0; i < cells; ++i) {
      gradient -= static_cast<double>(dt * adjoint[i] * v[i] * v[i]);
      adjoint[i] *= 1.0f - 2.0f * dt * a * v[i];
    }
  }
  std::printf("dJ/da = %.4f per cell, peak memory %.1f MB\n", gradient / cells,
              static_cast<double>(store->stats().memory_bytes_max) * 1e-6);
  return 0;
}
