// The arrays and options behind the golden streams. Never change a case: add new ones.
#pragma once

#include <algorithm>
#include <firn/firn.hpp>
#include <firn/stream.hpp>
#include <string>
#include <vector>

#include "support/fields.hpp"

namespace firn::test {

struct GoldenCase {
  std::string name;
  Type type = Type::f32;
  Shape shape;
  Kind kind = Kind::smooth;
  std::size_t specials = 0;  // special values strewn in
  Options options;
  // A series: so many steps a part, and whether it is two series, joined.
  std::uint64_t part = 0;
  bool joined = false;
};

inline Options golden_options(Pipeline pipeline, Bound bound, Shape chunk = {},
                              std::optional<double> fill = {}) {
  Options options;
  options.pipeline = pipeline;
  options.bound = bound;
  options.chunk = chunk;
  options.fill = fill;
  return options;
}

inline std::vector<GoldenCase> golden_cases() {
  using P = Pipeline;
  const Bound loose = Bound::abs(0.125), tight = Bound::abs(0x1p-12);
  std::vector<GoldenCase> list{
      {"empty_f32", Type::f32, {3, 0, 5}, Kind::smooth, 0, golden_options(P::automatic, loose)},
      {"raw_f32", Type::f32, {50}, Kind::any_bits, 0, golden_options(P::raw, Bound::lossless())},
      {"raw_f64", Type::f64, {5, 7}, Kind::any_bits, 0, golden_options(P::raw, Bound::lossless())},
      {"constant_f32", Type::f32, {30, 40}, Kind::constant, 0, golden_options(P::automatic, loose)},
      {"constant_f64",
       Type::f64,
       {3, 4, 5},
       Kind::constant,
       0,
       golden_options(P::automatic, Bound::rel(1e-3))},
      {"fill_f32",
       Type::f32,
       {40, 50},
       Kind::steps,
       0,
       golden_options(P::lorenzo, Bound::rel(0.01), {}, 0.25)},
      {"psnr_f64",
       Type::f64,
       {40, 50},
       Kind::noisy,
       0,
       golden_options(P::lorenzo, Bound::psnr(60))},
      {"wide_f64",
       Type::f64,
       {20, 30},
       Kind::noisy,
       0,
       golden_options(P::lorenzo, Bound::abs(0x1p-45))},
  };
  struct Named {
    P pipeline;
    const char* name;
  };
  for (const Named& named :
       {Named{P::shuffle, "shuffle"}, Named{P::bits, "bits"}, Named{P::lorenzo, "lorenzo"},
        Named{P::blockpack, "blockpack"}, Named{P::ceresz, "ceresz"}, Named{P::ceresz4, "ceresz4"},
        Named{P::contexts, "contexts"}, Named{P::interp, "interp"}, Named{P::causal, "causal"}}) {
    const std::string name = named.name;
    const bool lossless = named.pipeline == P::shuffle || named.pipeline == P::bits;
    const Bound coarse = lossless ? Bound::lossless() : loose;
    const Bound fine = lossless ? Bound::lossless() : tight;
    list.push_back({name + "_1d_f32",
                    Type::f32,
                    {1500},
                    Kind::noisy,
                    0,
                    golden_options(named.pipeline, coarse)});
    list.push_back({name + "_2d_f32",
                    Type::f32,
                    {37, 53},
                    Kind::smooth,
                    40,
                    golden_options(named.pipeline, fine)});
    list.push_back({name + "_3d_f64",
                    Type::f64,
                    {13, 14, 15},
                    Kind::noisy,
                    10,
                    golden_options(named.pipeline, fine, {7, 14, 8})});
    list.push_back({name + "_4d_f64",
                    Type::f64,
                    {5, 6, 7, 8},
                    Kind::smooth,
                    0,
                    golden_options(named.pipeline, coarse, {3, 6, 7, 5})});
  }
  // Enough points for stencils to be trained.
  list.push_back({"interp_trained_2d_f32",
                  Type::f32,
                  {90, 100},
                  Kind::noisy,
                  20,
                  golden_options(P::interp, tight)});
  list.push_back({"interp_trained_3d_f64",
                  Type::f64,
                  {22, 23, 24},
                  Kind::noisy,
                  20,
                  golden_options(P::interp, tight)});
  for (GoldenCase* trained : {&list.end()[-2], &list.end()[-1]}) {
    trained->options.preset = Preset::small;
  }
  for (const Named& named : {Named{P::lorenzo, "lorenzo"}, Named{P::blockpack, "blockpack"},
                             Named{P::contexts, "contexts"}, Named{P::interp, "interp"},
                             Named{P::fre, "fre"}, Named{P::fre_round, "fre_round"}}) {
    const std::string name = std::string("pwrel_") + named.name;
    list.push_back({name + "_1d_f32",
                    Type::f32,
                    {4500},
                    Kind::noisy,
                    50,
                    golden_options(named.pipeline, Bound::pwrel(0x1p-6))});
    list.push_back({name + "_3d_f64",
                    Type::f64,
                    {13, 14, 15},
                    Kind::noise,
                    10,
                    golden_options(named.pipeline, Bound::pwrel(1e-3), {7, 14, 8})});
  }
  // Bounds near the last bits: steps of a grain.
  for (const Named& named : {Named{P::blockpack, "blockpack"}, Named{P::contexts, "contexts"},
                             Named{P::interp, "interp"}, Named{P::causal, "causal"}}) {
    const std::string name = std::string("grain_") + named.name;
    list.push_back({name + "_2d_f32",
                    Type::f32,
                    {37, 53},
                    Kind::noisy,
                    10,
                    golden_options(named.pipeline, Bound::abs(0x1.4p-10))});
    list.push_back({name + "_3d_f64",
                    Type::f64,
                    {13, 14, 15},
                    Kind::smooth,
                    10,
                    golden_options(named.pipeline, Bound::abs(0x1.cp-38), {7, 14, 8})});
  }
  // Half of the values within a step: codes with a phase.
  for (const Named& named : {Named{P::lorenzo, "lorenzo"}, Named{P::blockpack, "blockpack"},
                             Named{P::contexts, "contexts"}}) {
    const std::string name = std::string("phase_") + named.name;
    list.push_back({name + "_2d_f32",
                    Type::f32,
                    {512, 256},
                    Kind::dense,
                    10,
                    golden_options(named.pipeline, Bound::abs(5))});
    list.push_back({name + "_3d_f64",
                    Type::f64,
                    {32, 32, 64},
                    Kind::dense,
                    10,
                    golden_options(named.pipeline, Bound::abs(16))});
  }
  list.push_back({"ratio_blockpack_3d_f32",
                  Type::f32,
                  {20, 24, 32},
                  Kind::noisy,
                  20,
                  golden_options(P::blockpack, Bound::ratio(5), {4, 24, 32})});
  list.push_back({"ratio_3d_f64",
                  Type::f64,
                  {24, 20, 22},
                  Kind::noisy,
                  20,
                  golden_options(P::automatic, Bound::ratio(9), {6, 20, 22})});
  list.push_back({"lorenzo_shared_books_1d_f32",
                  Type::f32,
                  {16 * 1024},
                  Kind::comb,
                  0,
                  golden_options(P::lorenzo, Bound::abs(0.49), {1024})});
  list.push_back({"series_3d_f32",
                  Type::f32,
                  {11, 20, 30},
                  Kind::noisy,
                  10,
                  golden_options(P::automatic, tight),
                  4});
  list.push_back({"series_joined_2d_f64",
                  Type::f64,
                  {40, 60},
                  Kind::noisy,
                  10,
                  golden_options(P::blockpack, loose),
                  8,
                  true});
  return list;
}

// The case's values as bytes.
inline std::vector<std::uint8_t> golden_bytes(const GoldenCase& golden) {
  const auto bytes_from = [&](auto values) {
    if (golden.specials != 0) sprinkle_specials(values, 7, golden.specials);
    const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
    return std::vector<std::uint8_t>(begin, begin + values.size() * sizeof values[0]);
  };
  return golden.type == Type::f32 ? bytes_from(make_field<float>(golden.shape, golden.kind))
                                  : bytes_from(make_field<double>(golden.shape, golden.kind));
}

// The stream of a case's values. Nothing when it fails.
inline std::vector<std::uint8_t> golden_stream(const GoldenCase& golden,
                                               const std::vector<std::uint8_t>& values) {
  std::vector<std::uint8_t> stream;
  const ArrayView array{values.data(), golden.type, golden.shape, {}};
  if (golden.part == 0) {
    const auto written = compress(array, golden.options);
    if (written) stream.assign(written->data(), written->data() + written->size());
    return stream;
  }
  Shape step = golden.shape;
  --step.rank;
  std::copy_n(golden.shape.extents.begin() + 1, step.rank, step.extents.begin());
  const std::uint64_t steps = golden.shape.extents[0];
  const std::size_t step_bytes = values.size() / static_cast<std::size_t>(steps);
  const std::uint64_t each = golden.joined ? steps / 2 : steps;
  for (std::uint64_t first = 0; first < steps; first += each) {
    auto writer = StreamWriter::create(golden.type, step, golden.options);
    if (!writer) return {};
    const std::uint64_t end = std::min(steps, first + each);
    for (std::uint64_t at = first; at < end; at += golden.part) {
      ArrayView part = array;
      part.data = values.data() + static_cast<std::size_t>(at) * step_bytes;
      part.shape.extents[0] = std::min(golden.part, end - at);
      if (!writer->push(part) || !writer->flush()) return {};
    }
    if (!writer->finish()) return {};
    stream.insert(stream.end(), writer->ready().begin(), writer->ready().end());
  }
  return stream;
}

}  // namespace firn::test
