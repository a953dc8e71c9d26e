// What a worker keeps between chunks: its SIMD target and all memory that pipelines need. Memory
// is taken as chunks ask for it and then reused; docs/architecture.md states how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/scratch.hpp"
#include "base/simd_target.hpp"
#include "encode/context_rans.hpp"
#include "encode/exact_points.hpp"
#include "encode/huffman.hpp"
#include "encode/huffman_books.hpp"
#include "encode/lossless.hpp"
#include "pipelines/causal_model.hpp"
#include "pipelines/wavefront.hpp"
#include "predict/robust_fit.hpp"

namespace firn::pipelines {

// The second best way to encode a chunk in a trial.
struct RunnerUp {
  std::uint8_t pipeline = 0;  // 0: there was no trial, or it says little
  std::uint8_t percent = 0;   // by which it was larger, at most 255
};

struct Workspace {
  explicit Workspace(int thread_number, simd::Target simd_target = simd::default_target())
      : thread(thread_number), target(simd_target) {}

  int thread;  // 0 to threads - 1
  simd::Target target;
  encode::Lossless lossless;
  RunnerUp runner_up;  // of the chunk being encoded, for its payload's head

  ScratchArray<std::int64_t> codes;  // also as shorter integers; only reserve_codes() has them
  std::size_t code_history = 0;      // bytes of zeros at their begin
  ScratchArray<std::int64_t> residuals;
  ScratchArray<std::int64_t> sampled_residuals;  // of a choice of orders
  ScratchArray<std::uint8_t> sampled_output;
  ScratchArray<std::uint8_t> row;  // gathered values of a strided row, or a whole chunk
  ScratchArray<std::uint8_t> output;
  ScratchArray<std::uint8_t> trial;

  ScratchArray<std::uint8_t> partial_sums;  // of a pass over the whole array

  ScratchArray<std::uint64_t> row_flags;
  ScratchArray<std::uint8_t> unmasked;  // values of a piece of a row
  encode::BitMap exact_map;
  encode::BitMap sign_map;  // of a point-wise bound: which values are negative
  ScratchArray<std::uint8_t> exact_bytes;
  encode::ExactPointsScratch exact_scratch;

  encode::ContextRansEncoder rans_encoder;
  encode::ContextRansDecoder rans_decoder;
  ScratchArray<std::uint16_t> magnitudes;
  ScratchArray<std::uint8_t> contexts;

  ScratchArray<std::uint8_t> values;  // of the array's type
  ScratchArray<std::uint8_t> wanted;
  ScratchArray<std::uint8_t> points;
  ScratchArray<std::uint8_t> point_magnitudes;
  ScratchArray<std::uint8_t> cells;
  ScratchArray<std::uint8_t> stencil_contexts;
  std::vector<std::size_t> segments;
  std::vector<std::size_t> row_offsets;  // in the chunk, of rows that are quantised together
  std::vector<std::uint8_t> bases;
  Wavefront wavefront;
  CausalModel causal_model;
  predict::RobustFit fit;

  ScratchArray<std::uint16_t> symbols;
  ScratchArray<std::uint32_t> histogram;
  ScratchArray<std::uint8_t> code_lengths;
  ScratchArray<std::uint8_t> shared_lengths;
  encode::OfflineBooks offline_books;
  ScratchArray<std::uint64_t> huffman_build;
  ScratchArray<encode::EncodeTable> encode_table;
  ScratchArray<encode::DecodeTable> decode_table;
  ScratchArray<std::uint8_t> streams;
  ScratchArray<std::uint8_t> extra;
};

}  // namespace firn::pipelines
