/* The HDF5 filter's id and parameters, without HDF5's own header: for netCDF's
 * nc_def_var_filter and whatever else takes a filter as numbers. firn/hdf5.h has the call for
 * HDF5 itself; docs/hdf5-and-netcdf.md explains both. */
#ifndef FIRN_HDF5_PARAMETERS_H_
#define FIRN_HDF5_PARAMETERS_H_

#include <stdint.h>
#include <string.h>

#include "firn/firn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the range that HDF5 leaves to filters without a registered id (256 to 511). The only place
 * that says so: a registered id will replace it here. */
#define FIRN_HDF5_FILTER_ID 478
#define FIRN_HDF5_FILTER_NAME "firn (plugin libh5z_firn)"

/* Numbers that firn_hdf5_parameters writes. */
#define FIRN_HDF5_PARAMETER_COUNT 4

/* How far a value may be from the original. */
typedef struct firn_hdf5_bound {
  firn_bound kind;
  double value;
} firn_hdf5_bound;

static inline firn_hdf5_bound firn_hdf5_lossless(void) {
  firn_hdf5_bound bound = {FIRN_LOSSLESS, 0};
  return bound;
}
static inline firn_hdf5_bound firn_hdf5_abs(double error) {
  firn_hdf5_bound bound = {FIRN_ABS, error};
  return bound;
}
/* A fraction of each value's own magnitude; zeros stay zeros. */
static inline firn_hdf5_bound firn_hdf5_pwrel(double fraction) {
  firn_hdf5_bound bound = {FIRN_PWREL, fraction};
  return bound;
}
/* A fraction of the value range of EACH HDF5 CHUNK BY ITSELF, since a filter sees nothing else:
 * prefer firn_hdf5_abs with a fraction of the range that you know the data have. */
static inline firn_hdf5_bound firn_hdf5_rel_of_chunk(double fraction) {
  firn_hdf5_bound bound = {FIRN_REL, fraction};
  return bound;
}
/* Decibels, met in each chunk by itself. */
static inline firn_hdf5_bound firn_hdf5_psnr_of_chunk(double decibels) {
  firn_hdf5_bound bound = {FIRN_PSNR, decibels};
  return bound;
}

/* The filter's parameters: kind of bound, preset, and the value's bits, high half first. */
static inline void firn_hdf5_parameters(firn_hdf5_bound bound, firn_preset preset,
                                        unsigned int values[FIRN_HDF5_PARAMETER_COUNT]) {
  uint64_t bits;
  memcpy(&bits, &bound.value, sizeof bits);
  values[0] = (unsigned int)bound.kind;
  values[1] = (unsigned int)preset;
  values[2] = (unsigned int)(bits >> 32);
  values[3] = (unsigned int)(bits & 0xffffffffu);
}

#ifdef __cplusplus
}
#endif

#endif /* FIRN_HDF5_PARAMETERS_H_ */
