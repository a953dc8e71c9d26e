// Properties over shapes, types, bounds, specials and pipelines. RapidCheck shrinks what fails;
// RC_PARAMS (max_success=N) sets how many cases are tried.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/pipelines.hpp"
#include "support/round_trip.hpp"

namespace firn {
namespace {

using test::Kind;

template <class T>
struct Field {
  Shape shape;
  Kind kind = Kind::smooth;
  std::uint64_t seed = 0;
  std::size_t specials = 0;
  Options options;
  std::vector<T> values() const {
    auto list = test::make_field<T>(shape, kind, seed);
    if (specials != 0) test::sprinkle_specials(list, seed, specials);
    if (options.fill) {
      for (std::size_t i = seed % 5; i < list.size(); i += 2 + seed % 7) {
        list[i] = static_cast<T>(*options.fill);
      }
    }
    return list;
  }
};

template <class T>
std::ostream& operator<<(std::ostream& out, const Field<T>& field) {
  return out << test::text_of(field.shape) << " " << test::name_of(field.kind) << " seed "
             << field.seed << " specials " << field.specials << ", "
             << test::text_of(field.options);
}

Shape shape_of(const std::vector<std::uint64_t>& extents) {
  Shape shape;
  shape.rank = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), shape.extents.begin());
  return shape;
}

rc::Gen<Shape> shapes() {
  return rc::gen::exec([] {
    const int rank = *rc::gen::inRange(1, 5);
    constexpr std::uint64_t kLargest[] = {0, 5000, 70, 18, 9};
    std::vector<std::uint64_t> extents;
    for (int k = 0; k < rank; ++k) {
      extents.push_back(*rc::gen::inRange<std::uint64_t>(0, kLargest[rank] + 1));
    }
    // Now and then an axis of one value.
    if (*rc::gen::inRange(0, 4) == 0)
      extents[static_cast<std::size_t>(*rc::gen::inRange(0, rank))] = 1;
    return shape_of(extents);
  });
}

rc::Gen<Bound> bounds() {
  return rc::gen::exec([] {
    const double mantissa = 1 + *rc::gen::inRange(0, 1000) / 1000.0;
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        return Bound::lossless();
      case 1:
        return Bound::abs(std::ldexp(mantissa, *rc::gen::inRange(-40, 12)));
      case 2:
        return Bound::abs(std::ldexp(1.0, *rc::gen::inRange(-40, 12)));
      case 6:  // near the last bits of dense f32 fields
        return Bound::abs(std::ldexp(mantissa, *rc::gen::inRange(-9, -2)));
      case 3:
        return Bound::rel(std::ldexp(mantissa, *rc::gen::inRange(-40, 0)));
      case 4:
        return Bound::pwrel(std::ldexp(mantissa, *rc::gen::inRange(-46, -1)));
      case 5:
        return Bound::pwrel(std::ldexp(1.0, *rc::gen::inRange(-20, 0)));
      default:
        return Bound::psnr(*rc::gen::inRange(1, 160) + mantissa);
    }
  });
}

template <class T>
rc::Gen<Field<T>> fields() {
  return rc::gen::exec([] {
    Field<T> field;
    field.shape = *shapes();
    field.kind = *rc::gen::elementOf(
        std::vector<Kind>(std::begin(test::kAllKinds), std::end(test::kAllKinds)));
    field.seed = *rc::gen::inRange<std::uint64_t>(0, 1000000);
    field.specials = *rc::gen::elementOf(std::vector<std::size_t>{0, 0, 1, 20, 500});
    field.options.bound = *bounds();
    std::vector<Pipeline> pipelines = field.options.bound.kind == BoundKind::pwrel
                                          ? test::pointwise_pipelines()
                                          : test::chosen_pipelines();
    pipelines.push_back(Pipeline::automatic);
    field.options.pipeline = *rc::gen::elementOf(pipelines);
    field.options.preset = *rc::gen::element(Preset::fast, Preset::balanced, Preset::small);
    if (*rc::gen::inRange(0, 3) == 0) field.options.fill = *rc::gen::element(1e20, 0.0, -9999.0);
    if (*rc::gen::inRange(0, 2) == 0) {
      field.options.chunk.rank = field.shape.rank;
      for (int k = 0; k < field.shape.rank; ++k) {
        field.options.chunk.extents[k] =
            *rc::gen::inRange<std::uint64_t>(1, field.shape.extents[k] / 2 + 3);
      }
      // Not too many chunks.
      while (field.shape.count() / field.options.chunk.count() > 60) {
        for (int k = 0; k < field.shape.rank; ++k) ++field.options.chunk.extents[k];
      }
    }
    return field;
  });
}

template <class T>
std::vector<std::uint8_t> compressed(const Field<T>& field, int threads) {
  const auto values = field.values();
  const auto stream =
      compress(test::const_view_of(values, field.shape), field.options, test::threads(threads));
  if (!stream.ok()) RC_FAIL(stream.error().message);
  return test::bytes_of(*stream);
}

template <class T>
void keeps_every_promise(const Field<T>& field) {
  const auto values = field.values();
  const auto stream = compressed(field, 1);
  const auto info = inspect(stream);
  RC_ASSERT(info.ok());
  RC_ASSERT(info->complete);
  if (field.options.bound.kind == BoundKind::abs) {
    RC_ASSERT(info->bound_abs <= field.options.bound.value);
  }
  RC_ASSERT(stream.size() <= *worst_case_size(test::kTypeOf<T>, field.shape, field.options));
  std::vector<T> decoded(values.size(), T(5));
  const Status status = decompress(stream, test::view_of(decoded, field.shape), test::threads(2));
  if (!status.ok()) RC_FAIL(status.error().message);
  if (field.options.bound.kind == BoundKind::pwrel) {
    RC_ASSERT(info->bound_pwrel <= field.options.bound.value);
  }
  const auto broken = test::broken_promise(values, decoded, *info, field.options.fill);
  if (broken) RC_FAIL(*broken);
  const auto understated = test::understated_error(values, decoded, *info, field.options.fill);
  if (understated) RC_FAIL("beyond the stated error: " + *understated);
  const auto comparison = verify(test::const_view_of(values, field.shape), stream);
  RC_ASSERT(comparison.ok());
  RC_ASSERT(comparison->violations == 0u);
  if (field.options.bound.kind == BoundKind::psnr) {
    RC_ASSERT(comparison->psnr_db >= field.options.bound.value - 1e-9);
  }
}

RC_GTEST_PROP(RoundTrip, SinglePrecisionKeepsEveryPromise, ()) {
  keeps_every_promise(*fields<float>().as("field"));
}
RC_GTEST_PROP(RoundTrip, DoublePrecisionKeepsEveryPromise, ()) {
  keeps_every_promise(*fields<double>().as("field"));
}

template <class T>
void gives_the_same_bytes(const Field<T>& field) {
  const auto one = compressed(field, 1);
  for (const int threads : {2, 3, 4}) RC_ASSERT(compressed(field, threads) == one);
}

RC_GTEST_PROP(Threads, SinglePrecisionGivesTheSameBytes, ()) {
  gives_the_same_bytes(*fields<float>().as("field"));
}
RC_GTEST_PROP(Threads, DoublePrecisionGivesTheSameBytes, ()) {
  gives_the_same_bytes(*fields<double>().as("field"));
}

template <class T>
void lossless_is_idempotent(Field<T> field) {
  field.options.bound = Bound::lossless();
  const auto values = field.values();
  const auto stream = compressed(field, 1);
  std::vector<T> decoded(values.size());
  RC_ASSERT(decompress(stream, test::view_of(decoded, field.shape)).ok());
  RC_ASSERT(test::same_bits(decoded, values));
  const auto again = compress(test::const_view_of(decoded, field.shape), field.options);
  RC_ASSERT(again.ok());
  RC_ASSERT(test::bytes_of(*again) == stream);
}

RC_GTEST_PROP(Lossless, SinglePrecisionIsIdempotent, ()) {
  lossless_is_idempotent(*fields<float>().as("field"));
}
RC_GTEST_PROP(Lossless, DoublePrecisionIsIdempotent, ()) {
  lossless_is_idempotent(*fields<double>().as("field"));
}

RC_GTEST_PROP(Regions, EqualTheSlicesOfTheWhole, ()) {
  const auto field = *fields<float>().as("field");
  RC_PRE(field.shape.count() > 0u);
  const auto stream = compressed(field, 1);
  const auto whole = test::decompressed<float>(stream, field.shape);
  Region region;
  region.shape.rank = field.shape.rank;
  for (int k = 0; k < field.shape.rank; ++k) {
    region.origin[k] = *rc::gen::inRange<std::uint64_t>(0, field.shape.extents[k]);
    region.shape.extents[k] =
        *rc::gen::inRange<std::uint64_t>(1, field.shape.extents[k] - region.origin[k] + 1);
  }
  std::vector<float> part(region.shape.count());
  RC_ASSERT(decompress_region(stream, region, test::view_of(part, region.shape)).ok());
  for (std::size_t n = 0; n < part.size(); ++n) {
    std::uint64_t rest = n, index = 0, stride = 1;
    for (int k = field.shape.rank - 1; k >= 0; --k) {
      index += (region.origin[k] + rest % region.shape.extents[k]) * stride;
      rest /= region.shape.extents[k];
      stride *= field.shape.extents[k];
    }
    RC_ASSERT(test::bits_of(part[n]) == test::bits_of(whole[index]));
  }
}

RC_GTEST_PROP(Damage, IsAnErrorOrHarmless, ()) {
  const auto field = *fields<float>().as("field");
  auto stream = compressed(field, 1);
  const auto whole = test::decompressed<float>(stream, field.shape);
  const int changes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < changes; ++i) {
    stream[*rc::gen::inRange<std::size_t>(0, stream.size())] = *rc::gen::arbitrary<std::uint8_t>();
  }
  std::vector<float> decoded(whole.size());
  const Status status = decompress(stream, test::view_of(decoded, field.shape));
  if (status.ok()) RC_ASSERT(test::same_bits(decoded, whole));
}

}  // namespace
}  // namespace firn
