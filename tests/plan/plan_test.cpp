// From options and data to a plan: bounds, margins, ranges, chunk shapes.
#include "plan/plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "container/format.hpp"
#include "support/fields.hpp"

namespace firn::plan {
namespace {

using test::const_view_of;
using test::Kind;
using test::make_field;

template <class T>
Plan plan_for(const std::vector<T>& values, const Shape& shape, const Options& options,
              int threads = 1) {
  pipelines::Workers workers(threads);
  auto plan = make_plan(const_view_of(values, shape), options, workers);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

TEST(CheckOptions, RefusesBoundsThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, nan, infinity, -infinity}) {
    for (const Bound bound : {Bound::abs(value), Bound::rel(value), Bound::psnr(value)}) {
      Options options;
      options.bound = bound;
      const auto plan = check_options(Type::f32, {10}, options);
      ASSERT_FALSE(plan.ok()) << name_of(bound.kind) << " " << value;
      EXPECT_EQ(plan.error().code, ErrorCode::invalid_argument);
      EXPECT_NE(plan.error().message.find(name_of(bound.kind)), std::string::npos);
    }
  }
  Options options;
  options.bound = Bound::psnr(1001);
  EXPECT_FALSE(check_options(Type::f32, {10}, options).ok());
}

TEST(CheckOptions, ClipsTheChunkToTheArray) {
  Options options;
  options.chunk = {100, 100};
  const auto plan = check_options(Type::f32, {10, 200}, options);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->header.chunk, (Shape{10, 100}));
}

TEST(MakePlan, AbsoluteBoundsAreExactInTheType) {
  const auto values = make_field<float>({100}, Kind::smooth);
  Options options;
  options.bound = Bound::abs(1e-3);
  const Plan plan = plan_for(values, {100}, options);
  EXPECT_LE(plan.header.bound_abs, 1e-3);
  EXPECT_EQ(plan.header.bound_abs, static_cast<double>(static_cast<float>(plan.header.bound_abs)));
  EXPECT_NEAR(plan.header.bound_abs, 1e-3, 1e-10);
  options.bound = Bound::abs(0.1);  // the nearest float is above
  EXPECT_LT(plan_for(values, {100}, options).header.bound_abs, 0.1);
}

TEST(MakePlan, MarginsFollowThePrecisionThatIsLeft) {
  Options options;
  const std::vector<float> f32{3, -100, 77, 5};  // neighbours of 100 are 2^-17 apart
  const std::vector<double> f64(f32.begin(), f32.end());
  const auto margins = [&](Bound bound) {
    options.bound = bound;
    return std::pair(plan_for(f32, {4}, options).header.margin,
                     plan_for(f64, {4}, options).header.margin);
  };
  const int usual = format::kMaxMargin;
  EXPECT_EQ(margins(Bound::abs(1e6)), std::pair(usual, usual));
  EXPECT_EQ(margins(Bound::abs(100.0 / 4096)), std::pair(usual, usual));
  EXPECT_EQ(margins(Bound::abs(0.0244)), std::pair(usual - 1, usual));
  EXPECT_EQ(margins(Bound::abs(100.0 / 32768)), std::pair(7, usual));
  EXPECT_EQ(margins(Bound::abs(0.00305)), std::pair(format::kGrid + 9, usual));
  EXPECT_EQ(margins(Bound::rel(0.00305 / 177)), std::pair(format::kGrid + 9, usual));
  EXPECT_EQ(margins(Bound::abs(0x1.8p-15)), std::pair(format::kGrid + 3, usual));
  EXPECT_EQ(margins(Bound::abs(0x1p-17)), std::pair(format::kGrid + 1, usual));
  EXPECT_EQ(margins(Bound::abs(0x1p-18)), std::pair(format::kGrid, usual));
  EXPECT_EQ(margins(Bound::abs(0x1p-30)), std::pair(format::kGrid, usual));
  EXPECT_EQ(margins(Bound::abs(0x1p-44)), std::pair(format::kGrid, format::kGrid + 3));
}

// A sample of the values tells whether the bound is tight; where it is, all of them count.
TEST(MakePlan, GrainsAreForTheLargestValue) {
  std::vector<float> values(100000, 1.5f);
  values[54321] = 200;
  Options options;
  options.bound = Bound::abs(3e-5);
  EXPECT_EQ(plan_for(values, {100000}, options).header.margin, format::kGrid + 1);
  values[54321] = -values[54321];
  EXPECT_EQ(plan_for(values, {100000}, options).header.margin, format::kGrid + 1);
  // But not those that no code can hold, nor what is masked.
  values[0] = values[54321] = 1e30f;
  EXPECT_EQ(plan_for(values, {100000}, options).header.margin, format::kGrid + 8);
  values[1] = -999;
  options.fill = -999;
  EXPECT_EQ(plan_for(values, {100000}, options).header.margin, format::kGrid + 8);
}

TEST(MakePlan, BoundsBelowTheTypesResolutionKeepEveryBit) {
  Options options;
  options.bound = Bound::abs(1e-44);
  EXPECT_EQ(plan_for(make_field<float>({100}, Kind::smooth), {100}, options).header.bound_abs, 0);
  options.bound = Bound::abs(std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(plan_for(make_field<double>({100}, Kind::smooth), {100}, options).header.bound_abs, 0);
}

TEST(MakePlan, HugeBoundsStayFinite) {
  Options options;
  options.bound = Bound::abs(std::numeric_limits<double>::max());
  const Plan f32 = plan_for(make_field<float>({100}, Kind::smooth), {100}, options);
  EXPECT_LE(f32.header.bound_abs, static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_GT(f32.header.bound_abs, 1e37);
  const Plan f64 = plan_for(make_field<double>({100}, Kind::smooth), {100}, options);
  EXPECT_TRUE(std::isfinite(f64.header.bound_abs));
}

TEST(MakePlan, RelativeBoundsAreOfTheRangeOfWhatCounts) {
  std::vector<double> values{1, 2, 3, 4, 5};
  Options options;
  options.bound = Bound::rel(0.25);
  EXPECT_EQ(plan_for(values, {5}, options).header.bound_abs, 1.0);
  values = {1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
            1e20, 5};
  options.fill = 1e20;
  EXPECT_EQ(plan_for(values, {5}, options).header.bound_abs, 1.0);
  values.assign(5, 7.0);
  EXPECT_EQ(plan_for(values, {5}, options).header.bound_abs, 0) << "a constant field has no range";
  values.assign(5, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(plan_for(values, {5}, options).header.bound_abs, 0);
}

TEST(MakePlan, ARangeThatOverflowsIsStillABound) {
  const std::vector<double> values{std::numeric_limits<double>::max(),
                                   std::numeric_limits<double>::lowest(), 1, 2};
  Options options;
  options.bound = Bound::rel(1e-3);
  const Plan plan = plan_for(values, {4}, options);
  EXPECT_TRUE(std::isfinite(plan.header.bound_abs));
  EXPECT_GE(plan.header.bound_abs, 0);
}

TEST(MakePlan, ThePlanDoesNotDependOnThreads) {
  const auto values = make_field<float>({3, 401, 523}, Kind::noisy);
  for (const Bound bound : {Bound::rel(1e-3), Bound::psnr(60), Bound::abs(0.01)}) {
    Options options;
    options.bound = bound;
    const Plan one = plan_for(values, {3, 401, 523}, options, 1);
    for (const int threads : {2, 3}) {
      const Plan plan = plan_for(values, {3, 401, 523}, options, threads);
      EXPECT_EQ(plan.header.bound_abs, one.header.bound_abs);
      EXPECT_EQ(plan.header.margin, one.header.margin);
    }
  }
}

TEST(ValueRangeOf, IgnoresFillAndWhatIsNotFinite) {
  pipelines::Workers workers(1);
  std::vector<float> values(1000, 2.0f);
  values[3] = -7;
  values[500] = 1e20f;
  values[600] = -1e20f;
  values[700] = std::numeric_limits<float>::infinity();
  values[800] = std::numeric_limits<float>::quiet_NaN();
  ValueRange range = value_range(const_view_of(values, {1000}), 1e20, workers);
  EXPECT_EQ(range.low, static_cast<double>(-1e20f));
  EXPECT_EQ(range.high, 2);
  values[600] = 9;
  range = value_range(const_view_of(values, {1000}), 1e20, workers);
  EXPECT_EQ(range.low, -7);
  EXPECT_EQ(range.high, 9);
  values.assign(1000, 1e20f);
  range = value_range(const_view_of(values, {1000}), 1e20, workers);
  EXPECT_GT(range.low, range.high);
}

TEST(ValueRangeOf, ReadsStridedMemory) {
  pipelines::Workers workers(1);
  std::vector<double> values(100);
  for (int i = 0; i < 100; ++i) values[static_cast<std::size_t>(i)] = i;
  ArrayView view{values.data() + 90, Type::f64, {3, 4}, {{-20, 2}}};
  const ValueRange range = value_range(view, {}, workers);
  EXPECT_EQ(range.low, 50);
  EXPECT_EQ(range.high, 96);
}

}  // namespace
}  // namespace firn::plan
