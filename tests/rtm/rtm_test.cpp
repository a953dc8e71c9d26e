// Reverse-time migration: the stencil against its reference, the physics, and that the store's
// policy does not change the image.
#include <gtest/gtest.h>

#include <cmath>

#include "migration.hpp"
#include "propagator.hpp"
#include "stencil.hpp"
#include "team.hpp"
#include "velocity_model.hpp"

namespace rtm {
namespace {

Grid grid_of(int z, int y, int x, int sponge) {
  Grid grid;
  grid.imaged = {z, y, x};
  grid.sponge = sponge;
  return grid;
}

Team& team_of(int members) {
  static Team one(1, [](int) {}), three(3, [](int) {});
  return members == 1 ? one : three;
}

float noise(std::uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
}

TEST(Stencil, SimdAgreesWithTheReference) {
  std::uint32_t state = 1;
  for (const auto& [z, y, x] :
       {std::array{5, 7, 1}, std::array{4, 9, 17}, std::array{3, 5, 61}, std::array{8, 70, 33}}) {
    const Grid grid = grid_of(z, y, x, 0);
    Field now(grid), factor(grid), old(grid), expected(grid);
    std::vector<float> damping(static_cast<std::size_t>(std::max({x, y, z})) + 64, 0.0f);
    for (int i = 0; i < std::max({x, y, z}); ++i) damping[static_cast<std::size_t>(i)] = 0.97f;
    std::vector<float> damping_x = damping;
    std::fill(damping_x.begin() + x, damping_x.end(), 0.0f);
    for (int k = 0; k < z; ++k) {
      for (int j = 0; j < y; ++j) {
        for (int i = 0; i < x; ++i) {
          const std::ptrdiff_t at = grid.at(k, j, i);
          now[at] = noise(state);
          factor[at] = 0.1f + 0.1f * noise(state);
          old[at] = expected[at] = noise(state);
        }
      }
    }
    const auto input = [&](Field& out) {
      return StepInput{now.data(),     factor.data(),  damping_x.data(),
                       damping.data(), damping.data(), out.data()};
    };
    step(grid, input(old), 0, z);
    step_reference(grid, input(expected), 0, z);
    for (std::size_t i = 0; i < grid.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      // Halo and padding included: they stay zero.
      ASSERT_NEAR(old[at], expected[at], 1e-5f) << x << " " << i;
    }
  }
}

// <F s, r> = <s, F* r> for random s at a source and r at receivers, F* being the same steps
// backward in time.
TEST(Propagator, IsItsOwnAdjoint) {
  const Grid grid = grid_of(30, 26, 28, 8);
  const Field velocity = make_model(grid, "salt");
  const float dt = Propagator::stable_step(grid, velocity);
  const std::ptrdiff_t source = grid.imaged_at(3, 13, 14);
  const std::vector<std::ptrdiff_t> receivers{grid.imaged_at(3, 2, 5), grid.imaged_at(20, 13, 9),
                                              grid.at(2, 3, 4)};  // one in the sponge
  constexpr int kSteps = 150;
  std::uint32_t state = 7;
  std::vector<float> s(kSteps), r(kSteps * receivers.size());
  for (float& value : s) value = noise(state);
  for (float& value : r) value = noise(state);
  double forward = 0, backward = 0, scale = 0;
  Propagator waves(grid, velocity, dt, team_of(3));
  for (int n = 0; n < kSteps; ++n) {
    waves.step();
    waves.inject(source, s[static_cast<std::size_t>(n)]);
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      const double product = double{waves.value(receivers[i])} *
                             double{r[static_cast<std::size_t>(n) * receivers.size() + i]};
      forward += product;
      scale += std::abs(product);
    }
  }
  waves.clear();
  for (int n = kSteps - 1; n >= 0; --n) {
    waves.step();
    for (std::size_t i = 0; i < receivers.size(); ++i) {
      waves.inject(receivers[i], r[static_cast<std::size_t>(n) * receivers.size() + i]);
    }
    backward += double{waves.value(source)} * double{s[static_cast<std::size_t>(n)]};
  }
  EXPECT_GT(scale, 0);
  EXPECT_NEAR(forward, backward, 1e-4 * scale);
}

TEST(Propagator, TheSpongeAbsorbs) {
  const Grid grid = grid_of(40, 40, 40, 20);
  Field velocity(grid);
  for (std::size_t i = 0; i < grid.size(); ++i) velocity[static_cast<std::ptrdiff_t>(i)] = 2000;
  const float dt = Propagator::stable_step(grid, velocity);
  Propagator waves(grid, velocity, dt, team_of(1));
  const auto energy = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < grid.size(); ++i) sum += std::pow(waves.field()[i], 2);
    return sum;
  };
  const double frequency = 2000.0 / (10 * 10);
  double highest = 0;
  for (int n = 0; n < 500; ++n) {
    const double phase = 3.14159 * frequency * (n * double{dt} - 1.2 / frequency);
    waves.step();
    waves.inject(grid.imaged_at(20, 20, 20),
                 static_cast<float>((1 - 2 * phase * phase) * std::exp(-phase * phase)));
    highest = std::max(highest, energy());
  }
  EXPECT_GT(highest, 0);
  EXPECT_LT(energy(), 1e-3 * highest);
}

struct SmallSurvey {
  explicit SmallSurvey(int members = 1)
      : grid(grid_of(48, 40, 40, 16)),
        velocity(make_model(grid, "layers")),
        smooth(smoothed(grid, velocity, 4)) {
    survey.grid = grid;
    survey.frame_interval = 6;
    migrator.emplace(survey, velocity, smooth, team_of(members));
    observed = migrator->observe();
  }
  Migration migrate(firn::StorePolicy policy, firn::Bound bound) {
    firn::StoreOptions options;
    options.policy = policy;
    options.path = ::testing::TempDir() + "firn-rtm-test-" + std::to_string(getpid());
    options.temporary = true;
    options.compression.bound = bound;
    return migrator->migrate(observed, options);
  }
  Grid grid;
  Survey survey;
  Field velocity, smooth;
  std::optional<Migrator> migrator;
  std::vector<Traces> observed;
};

TEST(Migration, AnInterfaceIsImagedAtItsDepth) {
  SmallSurvey small;
  const Migration result = small.migrate(firn::StorePolicy::memory, firn::Bound::lossless());
  const std::vector<float> sharp = sharpened(small.grid, result.image);
  // Below the shot, between the survey's own marks at the top and the second interface.
  int deepest = 0;
  float strongest = 0;
  for (int z = 10; z < 28; ++z) {
    const float value = std::abs(sharp[(static_cast<std::size_t>(z) * 40 + 20) * 40 + 20]);
    if (value > strongest) strongest = value, deepest = z;
  }
  EXPECT_NEAR(deepest, first_interface(small.grid), 2);
}

TEST(Migration, EveryPolicyAndTeamGivesTheSameImage) {
  SmallSurvey small(3);
  const auto lossless = firn::Bound::lossless();
  const Migration memory = small.migrate(firn::StorePolicy::memory, lossless);
  EXPECT_EQ(memory.frames, memory.store.gets);
  for (const auto policy : {firn::StorePolicy::disk, firn::StorePolicy::compressed_memory,
                            firn::StorePolicy::compressed_disk, firn::StorePolicy::automatic}) {
    EXPECT_EQ(small.migrate(policy, lossless).image, memory.image) << name_of(policy);
  }
  EXPECT_EQ(SmallSurvey(1).migrate(firn::StorePolicy::memory, lossless).image, memory.image);
}

TEST(Migration, CompressedFramesHardlyChangeTheImage) {
  SmallSurvey small;
  const Migration exact = small.migrate(firn::StorePolicy::memory, firn::Bound::lossless());
  const Migration lossy =
      small.migrate(firn::StorePolicy::compressed_memory, firn::Bound::rel(1e-4));
  double signal = 0, difference = 0;
  for (std::size_t i = 0; i < exact.image.size(); ++i) {
    signal += std::pow(exact.image[i], 2);
    difference += std::pow(exact.image[i] - lossy.image[i], 2);
  }
  EXPECT_GT(difference, 0);
  EXPECT_GT(10 * std::log10(signal / difference), 50);
  EXPECT_GT(lossy.store.encoded_raw_bytes, 4 * lossy.store.encoded_bytes);
}

}  // namespace
}  // namespace rtm
