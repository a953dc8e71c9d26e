/* Firn as an HDF5 filter, for C and C++ programs that create datasets:
 *
 *     H5Pset_chunk(dcpl, 3, chunk);
 *     H5Pset_firn(dcpl, firn_hdf5_abs(1e-3), FIRN_BALANCED);
 *
 * Nothing of Firn needs to be linked: HDF5 loads the plugin from HDF5_PLUGIN_PATH. */
#ifndef FIRN_HDF5_H_
#define FIRN_HDF5_H_

#include <hdf5.h>

#include "firn/hdf5_parameters.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the filter to a dataset creation property list that is chunked already and has no filter
 * yet: Firn must see the values themselves. Creating a dataset whose type is not f32 or f64 then
 * fails. */
static inline herr_t H5Pset_firn(hid_t dataset_creation, firn_hdf5_bound bound,
                                 firn_preset preset) {
  unsigned int values[FIRN_HDF5_PARAMETER_COUNT];
  firn_hdf5_parameters(bound, preset, values);
  return H5Pset_filter(dataset_creation, FIRN_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY,
                       FIRN_HDF5_PARAMETER_COUNT, values);
}

/* The same, but a dataset of another type is stored without the filter instead of failing, and so
 * is a chunk that cannot be compressed. */
static inline herr_t H5Pset_firn_optional(hid_t dataset_creation, firn_hdf5_bound bound,
                                          firn_preset preset) {
  unsigned int values[FIRN_HDF5_PARAMETER_COUNT];
  firn_hdf5_parameters(bound, preset, values);
  return H5Pset_filter(dataset_creation, FIRN_HDF5_FILTER_ID, H5Z_FLAG_OPTIONAL,
                       FIRN_HDF5_PARAMETER_COUNT, values);
}

#ifdef __cplusplus
}
#endif

#endif /* FIRN_HDF5_H_ */
