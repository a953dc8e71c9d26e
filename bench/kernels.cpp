// Speed of each stage, in bytes of the array's values, for every SIMD target of this machine, next
// to memcpy of as many bytes. Data fit the second-level cache, as they do in the pipelines.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/simd_target.hpp"
#include "encode/blockpack.hpp"
#include "encode/huffman.hpp"
#include "encode/residual_symbols.hpp"
#include "predict/contexts.hpp"
#include "predict/difference.hpp"
#include "quantize/quantize.hpp"

namespace {

using firn::simd::Target;

constexpr std::size_t kCount = 65536;
constexpr std::size_t kRow = 256;
constexpr std::size_t kHistory = 2 * kRow + 64;

// A smooth field with a little noise, by integers only.
struct Data {
  std::vector<float> values;
  std::vector<std::int32_t> codes_with_history;
  std::vector<std::int32_t> residuals;
  firn::predict::Lags lags;
  firn::quantize::Scale<float> scale{0.05f, 10};

  Data() : values(kCount), codes_with_history(kHistory + kCount + 64), residuals(kCount + 64) {
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < kCount; ++i) {
      state = state * 1664525u + 1013904223u;
      const std::size_t x = i % kRow, y = i / kRow;
      const auto wave = static_cast<float>((x * (kRow - x) + y * (kRow - y)) % 4096) / 64.0f;
      values[i] = wave + static_cast<float>(state >> 24) / 256.0f;
    }
    lags.add(1);
    lags.add(kRow);
    firn::quantize::kernels<float, std::int32_t>(Target::reference)
        .quantize(values.data(), kCount, scale, 0, codes());
    firn::predict::kernels<std::int32_t>(Target::reference)
        .difference(codes(), kCount, lags, residuals.data());
  }
  std::int32_t* codes() { return codes_with_history.data() + kHistory; }
};

Data& data() {
  static Data instance;
  return instance;
}

void finish(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(kCount * sizeof(float)));
}

void copy(benchmark::State& state) {
  std::vector<float> to(kCount);
  for (auto _ : state) {
    std::memcpy(to.data(), data().values.data(), kCount * sizeof(float));
    benchmark::ClobberMemory();
  }
  finish(state);
}

void quantize(benchmark::State& state, Target target) {
  const auto& kernels = firn::quantize::kernels<float, std::int32_t>(target);
  std::vector<std::int32_t> codes(kCount);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        kernels.quantize(data().values.data(), kCount, data().scale, 0, codes.data()));
  }
  finish(state);
}

void dequantize(benchmark::State& state, Target target) {
  const auto& kernels = firn::quantize::kernels<float, std::int32_t>(target);
  std::vector<float> values(kCount);
  for (auto _ : state) {
    kernels.dequantize(data().codes(), kCount, data().scale.levels(), 0, values.data());
    benchmark::ClobberMemory();
  }
  finish(state);
}

void difference(benchmark::State& state, Target target) {
  const auto& kernels = firn::predict::kernels<std::int32_t>(target);
  std::vector<std::int32_t> residuals(kCount);
  for (auto _ : state) {
    kernels.difference(data().codes(), kCount, data().lags, residuals.data());
    benchmark::ClobberMemory();
  }
  finish(state);
}

void reconstruct(benchmark::State& state, Target target) {
  const auto& kernels = firn::predict::kernels<std::int32_t>(target);
  std::vector<std::int32_t> codes(kHistory + kCount + 64);
  for (auto _ : state) {
    firn::predict::Carry<std::int32_t> carry;
    kernels.reconstruct(data().residuals.data(), kCount, data().lags, carry,
                        codes.data() + kHistory);
    benchmark::ClobberMemory();
  }
  finish(state);
}

void contexts(benchmark::State& state, Target target) {
  const auto& kernels = firn::predict::context_kernels<std::int32_t>(target);
  const auto rule = firn::predict::context_rule(2, {kRow, 1, 0, 0});
  std::vector<std::uint16_t> magnitudes(kHistory + kCount + 64);
  std::vector<std::uint8_t> ids(kCount + 64);
  for (auto _ : state) {
    kernels.magnitudes(data().residuals.data(), kCount, 0, magnitudes.data() + kHistory);
    kernels.contexts(magnitudes.data() + kHistory, kCount, rule, ids.data());
    benchmark::ClobberMemory();
  }
  finish(state);
}

void pack(benchmark::State& state, Target target) {
  const auto& kernels = firn::encode::blockpack_kernels<std::int32_t>(target);
  std::vector<std::uint8_t> out(firn::encode::blockpack_capacity(kCount, 4));
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels.encode(data().residuals.data(), kCount, out.data()));
  }
  finish(state);
}

void unpack(benchmark::State& state, Target target) {
  const auto& kernels = firn::encode::blockpack_kernels<std::int32_t>(target);
  std::vector<std::uint8_t> out(firn::encode::blockpack_capacity(kCount, 4));
  const std::uint8_t* end = kernels.encode(data().residuals.data(), kCount, out.data());
  std::vector<std::int32_t> residuals(kCount);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels.decode(out.data(), end, residuals.data(), kCount));
  }
  finish(state);
}

// A Huffman code for the residuals, ready to encode and decode.
struct Huffman {
  static constexpr int kRangeLog2 = 8;
  std::vector<std::uint16_t> symbols;
  std::vector<std::uint8_t> extra, lengths, streams, scratch;
  std::vector<firn::encode::EncodeTable> table;
  firn::encode::DecodeTable decode_table;
  std::span<const std::uint8_t> encoded;

  explicit Huffman(Target target)
      : symbols(kCount + 64),
        extra(firn::encode::max_extra_bytes<std::int32_t>(kCount)),
        lengths(firn::encode::alphabet_size(kRangeLog2)),
        streams(firn::encode::huffman_capacity(kCount)),
        scratch(firn::encode::huffman_capacity(kCount)),
        table(lengths.size()) {
    firn::encode::ExtraBitsWriter writer(extra.data());
    firn::encode::symbol_kernels<std::int32_t>(target).to_symbols(
        data().residuals.data(), kCount, kRangeLog2, symbols.data(), writer);
    std::vector<std::uint32_t> counts(lengths.size());
    for (std::size_t i = 0; i < kCount; ++i) ++counts[symbols[i]];
    firn::ScratchArray<std::uint64_t> build;
    firn::encode::build_code_lengths(counts, lengths.data(), build);
    firn::encode::build_encode_table(lengths, table.data());
    firn::encode::build_decode_table(lengths, decode_table);
    const std::uint8_t* end = firn::encode::huffman_kernels(target).encode(
        symbols.data(), kCount, table.data(), streams.data(), scratch.data());
    encoded = {streams.data(), end};
  }
};

void huffman_encode(benchmark::State& state, Target target) {
  Huffman huffman(target);
  const auto& kernels = firn::encode::huffman_kernels(target);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels.encode(huffman.symbols.data(), kCount, huffman.table.data(),
                                            huffman.streams.data(), huffman.scratch.data()));
  }
  finish(state);
}

void huffman_decode(benchmark::State& state, Target target) {
  const auto huffman = std::make_unique<Huffman>(target);
  const auto& kernels = firn::encode::huffman_kernels(target);
  std::vector<std::uint16_t> symbols(kCount + 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        kernels.decode(huffman->encoded, huffman->decode_table, kCount, symbols.data()));
  }
  finish(state);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("memcpy", copy);
  const std::pair<const char*, void (*)(benchmark::State&, Target)> stages[] = {
      {"quantize", quantize},
      {"difference", difference},
      {"contexts", contexts},
      {"blockpack encode", pack},
      {"huffman encode", huffman_encode},
      {"huffman decode", huffman_decode},
      {"blockpack decode", unpack},
      {"reconstruct", reconstruct},
      {"dequantize", dequantize},
  };
  for (const auto& [name, stage] : stages) {
    for (const Target target : firn::simd::available_targets()) {
      const std::string label = std::string(name) + "/" + firn::simd::name_of(target);
      benchmark::RegisterBenchmark(label.c_str(), stage, target);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
