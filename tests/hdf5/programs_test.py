"""Programs that know nothing of Firn: HDF5's and netCDF's tools, xarray, C programs."""

import json
import shlex
import textwrap

import hdf5_support as support
from hdf5_support import ABS, BALANCED, SMALL, h5py, np

import netCDF4
import xarray


def user_defined(*arguments, flags=0):
    """h5repack's UD= text."""
    numbers = support.parameters(*arguments)
    return f"UD={support.FILTER_ID},{flags},{len(numbers)}," + ",".join(map(str, numbers))


def filter_text(*arguments):
    """nccopy's -F text without the variables."""
    return ",".join(map(str, (support.FILTER_ID, *support.parameters(*arguments))))


class Hdf5ToolsTest(support.Hdf5Test):
    def setUp(self):
        super().setUp()
        self.data = support.smooth_field((40, 50, 60))
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("group/u", data=self.data)
            file.create_dataset("chunked", data=self.data.astype(">f8"), chunks=(10, 50, 60),
                                compression="gzip")
            file.create_dataset("count", data=np.arange(5000, dtype="<i4"), chunks=(100,))

    def test_h5repack_compresses_one_dataset(self):
        self.succeeds("h5repack", "-l", "/group/u:CHUNK=20x25x30",
                      "-f", f"/group/u:{user_defined(ABS, 1e-3)}", "in.h5", "out.h5")
        with h5py.File(self.path("out.h5")) as file:
            self.assert_filtered(file["group/u"])
            self.assert_within(file["group/u"][...], self.data, 1e-3)
            self.assertGreater(self.data.nbytes / file["group/u"].id.get_storage_size(), 3)
            self.assert_identical(file["count"][...], np.arange(5000, dtype="<i4"))

    def test_h5repack_compresses_a_whole_file(self):
        for flags in (0, 1):  # mandatory, optional
            with self.subTest(flags=flags):
                self.succeeds("h5repack", "-f", user_defined(ABS, 1e-3, flags=flags), "in.h5",
                              "out.h5")
                with h5py.File(self.path("out.h5")) as file:
                    self.assert_filtered(file["group/u"])
                    self.assert_within(file["group/u"][...], self.data, 1e-3)
                    self.assert_filtered(file["chunked"])
                    self.assert_within(file["chunked"][...], self.data.astype(">f8"), 1e-3)
                    self.assert_identical(file["count"][...], np.arange(5000, dtype="<i4"))

    def test_h5repack_takes_firn_away_and_changes_chunks(self):
        self.succeeds("h5repack", "-f", f"/group/u:{user_defined(ABS, 1e-3)}", "in.h5", "firn.h5")
        self.succeeds("h5repack", "-f", "NONE", "firn.h5", "plain.h5")
        self.succeeds("h5repack", "-l", "/group/u:CHUNK=8x50x60", "firn.h5", "again.h5")
        self.succeeds("h5diff", "--delta=2e-3", "firn.h5", "plain.h5")
        # The stored parameters of the old chunks are no use for the new ones.
        with h5py.File(self.path("again.h5")) as file:
            self.assertEqual(file["group/u"].chunks, (8, 50, 60))
            self.assert_filtered(file["group/u"])
            self.assert_within(file["group/u"][...], self.data, 2e-3)
        with h5py.File(self.path("plain.h5")) as file:
            self.assertEqual(file["group/u"]._filters, {})

    def test_h5dump_and_h5ls_read_it(self):
        self.succeeds("h5repack", "-f", f"/group/u:{user_defined(ABS, 1e-3)}", "in.h5", "out.h5")
        shown = self.succeeds("h5dump", "-p", "-d", "/group/u", "-s", "1,2,3", "-c", "1,1,2",
                              "out.h5")
        self.assertIn(f"FILTER_ID {support.FILTER_ID}", shown)
        self.assertIn("firn", shown)
        values = shown.split("(1,2,3):")[1].split("}")[0].split(",")
        self.assert_within(np.array(values, "f8"), self.data[1, 2, 3:5].astype("f8"), 1.1e-3)
        listed = self.succeeds("h5ls", "-v", "-d", "out.h5/group/u")
        self.assertIn("firn", listed)
        self.assertIn(str(support.FILTER_ID), listed)

    def test_without_the_plugin_it_says_so(self):
        self.succeeds("h5repack", "-f", f"/group/u:{user_defined(ABS, 1e-3)}", "in.h5", "out.h5")
        nowhere = {"HDF5_PLUGIN_PATH": self.path("")}
        result = self.run_program("h5dump", "--enable-error-stack", "-d", "/group/u", "out.h5",
                                  environment=nowhere)
        self.assertIn("required filter 'firn (plugin libh5z_firn)'", result.stderr)

    def test_printed_settings_work_as_printed(self):
        printed = self.succeeds(support.FIRN, "h5", "params", "--abs", "1e-3", "--preset", "small")
        commands = [line.split(None, 1)[1] for line in printed.splitlines()
                    if line.startswith("h5repack")]
        self.assertEqual(len(commands), 1)
        self.succeeds(*shlex.split(commands[0]))
        with h5py.File(self.path("out.h5")) as file:
            stored = file["group/u"]._filters[str(support.FILTER_ID)]
            self.assertEqual(stored[2:5], (ABS | SMALL << 8, *support.parameters(ABS, 1e-3)[2:]))
        script = printed[printed.index("f.create_dataset"):printed.index("xarray")]
        with h5py.File(self.path("p.h5"), "w") as file:
            exec(script, {"f": file, "u": self.data})
            self.assert_filtered(file["u"])
        self.assertIn("H5Pset_firn(dcpl, firn_hdf5_abs(0.001), FIRN_SMALL);", printed)
        self.assertNotIn("WARNING", printed)

    def test_relative_settings_come_with_a_warning(self):
        printed = self.succeeds(support.FIRN, "h5", "params", "--rel", "1e-3")
        self.assertIn("EACH CHUNK", printed)
        in_range = self.succeeds(support.FIRN, "h5", "params", "--rel", "1e-3",
                                 "--range", "180,330")
        self.assertNotIn("WARNING", in_range)
        self.assertEqual(in_range, self.succeeds(support.FIRN, "h5", "params", "--abs", "0.15"))
        self.fails(support.FIRN, "h5", "params", "--abs", "1", "--range", "1,2")
        self.fails(support.FIRN, "h5", "params")


class NetcdfTest(support.Hdf5Test):
    def setUp(self):
        super().setUp()
        self.data = support.smooth_field((12, 40, 50))
        self.data[:, 10:20, 10:30] = 1e20
        with netCDF4.Dataset(self.path("in.nc"), "w") as file:
            file.createDimension("time", None)
            file.createDimension("lat", 40)
            file.createDimension("lon", 50)
            file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-90, 90, 40)
            file.createVariable("day", "i4", ("time",))[:] = np.arange(12)
            variable = file.createVariable("u", "f4", ("time", "lat", "lon"), fill_value=1e20,
                                           chunksizes=(4, 40, 50))
            variable.units = "m/s"
            variable[:] = self.data

    def check_copy(self, path, bound=1e-3):
        with h5py.File(path) as file:
            self.assert_filtered(file["u"])
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            land = self.data > 1e19
            decoded = file["u"][...]
            self.assert_identical(decoded[land], self.data[land])
            self.assert_within(decoded, self.data, bound)
            self.assertEqual(file["u"].units, "m/s")
            self.assert_identical(file["lat"][...], np.linspace(-90, 90, 40))

    def test_nccopy_and_ncdump(self):
        self.succeeds("nccopy", "-F", f"u,{filter_text(ABS, 1e-3)}", "in.nc", "out.nc")
        self.check_copy(self.path("out.nc"))
        shown = self.succeeds("ncdump", "-s", "-h", "out.nc")
        self.assertIn(f'u:_Filter = "{support.FILTER_ID},', shown)
        plain = self.succeeds("ncdump", "-v", "day,lat", "in.nc").split("\n", 1)[1]
        copied = self.succeeds("ncdump", "-v", "day,lat", "out.nc").split("\n", 1)[1]
        self.assertEqual(copied, plain)
        self.succeeds("ncdump", "-v", "u", "out.nc")
        # Copied again, with the stored parameters that come with the file, and without the filter.
        self.succeeds("nccopy", "-c", "u:2,20,50", "out.nc", "again.nc")
        self.check_copy(self.path("again.nc"), 2e-3)
        self.succeeds("nccopy", "-F", "none", "out.nc", "plain.nc")
        with h5py.File(self.path("plain.nc")) as file:
            self.assertEqual(file["u"]._filters, {})

    def test_nccopy_with_a_mask_of_moderate_size(self):
        # nccopy writes every value and so does not set HDF5's fill value: the numbers name it.
        self.data[self.data > 1e19] = -9999
        with netCDF4.Dataset(self.path("mask.nc"), "w") as file:
            for name, size in zip("zyx", self.data.shape):
                file.createDimension(name, size)
            file.createVariable("u", "f4", ("z", "y", "x"), fill_value=-9999)[:] = self.data
        settings = json.loads(self.succeeds(support.FIRN, "h5", "params", "--abs", "0.3", "--fill",
                                            "-9999", "--json"))
        numbers = ",".join(map(str, [settings["filter_id"], *settings["parameters"]]))
        self.succeeds("nccopy", "-F", f"u,{numbers}", "mask.nc", "out.nc")
        with h5py.File(self.path("out.nc")) as file:
            self.assert_filtered(file["u"])
            decoded = file["u"][...]
        self.assertTrue(((decoded == -9999) == (self.data == -9999)).all())
        self.assert_within(decoded, self.data, 0.3)

    def test_a_netcdf_program_in_c(self):
        source = textwrap.dedent("""
            #include <netcdf.h>
            #include <stdio.h>
            #include "firn/hdf5_parameters.h"
            #define CHECK(call) do { int s = (call); if (s != NC_NOERR) { \\
                fprintf(stderr, "%s\\n", nc_strerror(s)); return 1; } } while (0)
            int main(void) {
              static float u[64][80];
              int file, dims[2], variable, i, j;
              unsigned int firn[FIRN_HDF5_PARAMETER_COUNT];
              size_t chunk[2] = {32, 40};
              for (i = 0; i < 64; ++i) for (j = 0; j < 80; ++j) u[i][j] = 0.01f * i * j;
              CHECK(nc_create("c.nc", NC_NETCDF4, &file));
              CHECK(nc_def_dim(file, "y", 64, &dims[0]));
              CHECK(nc_def_dim(file, "x", 80, &dims[1]));
              CHECK(nc_def_var(file, "u", NC_FLOAT, 2, dims, &variable));
              CHECK(nc_def_var_chunking(file, variable, NC_CHUNKED, chunk));
              firn_hdf5_parameters(firn_hdf5_abs(1e-2), FIRN_BALANCED, firn);
              CHECK(nc_def_var_filter(file, variable, FIRN_HDF5_FILTER_ID,
                                      FIRN_HDF5_PARAMETER_COUNT, firn));
              CHECK(nc_enddef(file));
              CHECK(nc_put_var_float(file, variable, &u[0][0]));
              CHECK(nc_close(file));
              return 0;
            }
            """)
        (self.directory / "c.c").write_text(source)
        flags = self.succeeds("pkg-config", "--cflags", "--libs", "netcdf").split()
        self.succeeds(support.CC, "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", "c", "c.c",
                      *support.INCLUDE_FLAGS, *flags)
        self.succeeds(self.path("c"))
        with h5py.File(self.path("c.nc")) as file:
            self.assert_filtered(file["u"])
            expected = (np.float32(0.01) * np.arange(64, dtype="f4")[:, None]
                        * np.arange(80, dtype="f4"))
            self.assert_within(file["u"][...], expected, 1e-2)

    def test_xarray(self):
        original = xarray.Dataset(
            {"t": (("y", "x"), support.smooth_field((60, 70)))}, {"y": np.arange(60.0)})
        original["t"][3, 4] = np.nan
        original.to_netcdf(self.path("x.nc"), engine="h5netcdf", encoding={"t": {
            "chunksizes": (30, 70), **support.with_firn(ABS, 1e-3)}})
        with h5py.File(self.path("x.nc")) as file:
            self.assert_filtered(file["t"])
        for engine in ("netcdf4", "h5netcdf"):
            with xarray.open_dataset(self.path("x.nc"), engine=engine) as opened:
                self.assert_within(opened["t"].values, original["t"].values, 1e-3)
                self.assert_identical(opened["y"].values, original["y"].values)


class CompilerTest(support.Hdf5Test):
    OPTIONAL = textwrap.dedent("""
        #include "firn/hdf5.h"
        int main(void) {
          static int numbers[64];
          const hsize_t extents[1] = {64};
          hid_t file = H5Fcreate("o.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
          hid_t space = H5Screate_simple(1, extents, NULL);
          hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
          hid_t dataset;
          int i, failed;
          for (i = 0; i < 64; ++i) numbers[i] = i;
          H5Pset_chunk(creation, 1, extents);
          H5Pset_firn_optional(creation, firn_hdf5_abs(1e-3), FIRN_BALANCED);
          dataset = H5Dcreate2(file, "n", H5T_NATIVE_INT, space, H5P_DEFAULT, creation,
                               H5P_DEFAULT);
          failed = H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) < 0;
          H5Dclose(dataset); H5Pclose(creation); H5Sclose(space);
          return H5Fclose(file) < 0 || failed;
        }
        """)
    # Like the one above, but the filter is mandatory.
    MANDATORY = OPTIONAL.replace("H5Pset_firn_optional", "H5Pset_firn")

    SOURCE = textwrap.dedent("""
        #include <stdio.h>
        #include "firn/hdf5.h"
        int main(void) {
          static double u[30][40];
          const hsize_t extents[2] = {30, 40}, chunk[2] = {16, 40};
          hid_t file, space, creation, dataset;
          int i, j, failed;
          for (i = 0; i < 30; ++i) for (j = 0; j < 40; ++j) u[i][j] = i + 0.5 * j;
          file = H5Fcreate("c.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
          space = H5Screate_simple(2, extents, NULL);
          creation = H5Pcreate(H5P_DATASET_CREATE);
          H5Pset_chunk(creation, 2, chunk);
          if (H5Pset_firn(creation, firn_hdf5_abs(0.25), FIRN_FAST) < 0) return 1;
          dataset = H5Dcreate2(file, "u", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
          failed = H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, u) < 0;
          H5Dclose(dataset); H5Pclose(creation); H5Sclose(space);
          return H5Fclose(file) < 0 || failed;
        }
        """)

    def compile(self, source, name="c.c", compiler=support.CC, standard="-std=c99"):
        (self.directory / name).write_text(source)
        flags = self.succeeds("pkg-config", "--cflags", "--libs", "hdf5").split()
        self.succeeds(compiler, standard, "-Wall", "-Wextra", "-Werror", "-o", "c", name,
                      *support.INCLUDE_FLAGS, *flags)

    def test_integers_where_the_filter_is_optional(self):
        self.compile(self.OPTIONAL)
        result = self.run_program(self.path("c"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))  # HDF5 has nothing to print
        with h5py.File(self.path("o.h5")) as file:
            self.assert_identical(file["n"][...], np.arange(64, dtype="<i4"))

    def test_integers_where_the_filter_is_not_optional(self):
        self.compile(self.MANDATORY)
        self.assertIn("Firn compresses 32-bit and 64-bit IEEE floating-point values; this dataset's "
                      "type is not floating-point", self.fails(self.path("c")))

    def test_the_header_in_c_and_cpp(self):
        expected = np.arange(30.0)[:, None] + 0.5 * np.arange(40.0)
        for compiler, name, standard in ((support.CC, "c.c", "-std=c99"),
                                         (support.CXX, "c.cpp", "-std=c++11")):
            with self.subTest(compiler=compiler):
                self.compile(self.SOURCE, name, compiler, standard)
                self.succeeds(self.path("c"))
                with h5py.File(self.path("c.h5")) as file:
                    self.assert_filtered(file["u"])
                    self.assert_within(file["u"][...], expected, 0.25)


