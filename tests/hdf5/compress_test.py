"""firn h5 compress: whole files, with everything that ties their objects together."""

import json
import os
import signal
import subprocess
import time

import hdf5_support as support
from hdf5_support import ABS, FIRN, h5py, np

import netCDF4
from h5py import h5d, h5p, h5s, h5t


def described(file):
    """Everything in a file but the values of floating-point datasets and their storage."""
    seen = {}
    found = []

    def attributes(item):
        listed = []
        for name in item.attrs:
            value = item.attrs[name]
            attribute = item.attrs.get_id(name)
            listed.append((name, attribute.dtype.str, attribute.shape, readable(value)))
        return listed

    def readable(value):
        if isinstance(value, h5py.RegionReference):
            target = file[value]
            return ("region", target.name, target[value].tolist()) if value else None
        if isinstance(value, h5py.Reference):
            return ("object", file[value].name) if value else None
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":
            return [readable(element) for element in value.ravel()]
        if isinstance(value, np.ndarray) and value.dtype.names:
            return [[readable(field) for field in element] for element in value.ravel()]
        if isinstance(value, np.void) and value.dtype.names:
            return [readable(field) for field in value]
        return repr(value)

    def visit(group):
        for name in group:
            path = f"{group.name.rstrip('/')}/{name}"
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                found.append((path, type(link).__name__, getattr(link, "filename", None), link.path))
                continue
            item = group[name]
            identity = h5py.h5o.get_info(item.id).addr
            if identity in seen:
                found.append((path, "same as", seen[identity]))
                continue
            seen[identity] = path
            entry = [path, type(item).__name__, attributes(item)]
            if isinstance(item, h5py.Dataset):
                entry += [item.dtype.str, item.dtype.descr, item.shape, item.maxshape,
                          bool(item.id.get_type().committed())]
                # Asking h5py 3.7 for the fill value of references ends the process.
                if item.dtype.kind != "O":
                    entry.append(repr(item.fillvalue))
                if item.dtype.kind != "f":
                    entry.append(readable(item[()]))
            found.append(tuple(entry))
            if isinstance(item, h5py.Group):
                visit(item)

    visit(file["/"])
    return [("/", attributes(file["/"]))] + found


class CompressTest(support.Hdf5Test):
    def compress(self, *arguments):
        return json.loads(self.succeeds(FIRN, "h5", "compress", *arguments, "--json"))

    def datasets(self, report):
        return {entry["path"]: entry for entry in report["datasets"]}

    def make_rich_file(self, path, **keywords):
        u = support.smooth_field((30, 40, 50))
        with h5py.File(path, "w", track_order=True, **keywords) as file:
            file.attrs["title"] = "all kinds of things"
            file.attrs["z"] = 1
            file.attrs["a"] = np.arange(6).reshape(2, 3)
            zebra = file.create_group("zebra", track_order=True)
            zebra.create_dataset("u", data=u, chunks=(15, 40, 50), compression="gzip", shuffle=True)
            zebra["u"].attrs["units"] = "m/s"
            zebra.create_dataset("contiguous", data=u.astype(">f8"))
            apple = file.create_group("apple")
            apple["same_u"] = zebra["u"]
            apple["up"] = file["/"]
            apple["soft"] = h5py.SoftLink("/zebra/u")
            apple["dangling"] = h5py.SoftLink("/nowhere")
            apple["outside"] = h5py.ExternalLink("other.h5", "/x")
            file["kind"] = np.dtype([("x", "<f4"), ("n", "<i2")])
            file.create_dataset("records", data=np.zeros(5, file["kind"].dtype), dtype=file["kind"])
            file["kind"].attrs["why"] = "a committed type"
            file.create_dataset("count", data=np.arange(9000), compression="gzip", chunks=(1000,))
            file.create_dataset("text", data=["one", "zwei", "trois"],
                                dtype=h5py.string_dtype())
            file.create_dataset("scalar", data=np.float32(3.5))
            file.create_dataset("empty", data=h5py.Empty("f4"))
            file.create_dataset("none", (0, 5), "f4", maxshape=(None, 5), chunks=(10, 5))
            file.create_dataset("half", data=u.astype("f2"))
            file.create_dataset("never", (100, 100), "f4", chunks=(50, 50))
            file.create_dataset("tiny", data=np.linspace(0, 1, 20))
            file.create_dataset("growing", data=u[0], maxshape=(None, 50), chunks=(20, 50))
            x = file.create_dataset("x", data=np.linspace(0, 1, 2000))
            y = file.create_dataset("y", data=u[:40, 0, :40].repeat(50)[:2000])
            x.make_scale("x")
            y.dims[0].attach_scale(x)
            references = file.create_dataset("references", (4,), h5py.ref_dtype)
            references[0] = zebra["u"].ref
            references[1] = zebra.ref
            references[3] = file["kind"].ref
            file.create_dataset("regions", (1,), h5py.regionref_dtype)[0] = \
                file["count"].regionref[5:9]
            apple.attrs["points at"] = references.ref
        return u

    def test_a_file_of_all_kinds(self):
        u = self.make_rich_file(self.path("in.h5"))
        report = self.compress("in.h5", "out.h5", "--rel", "1e-3")
        with h5py.File(self.path("in.h5")) as before, h5py.File(self.path("out.h5")) as after:
            self.assertEqual(described(after), described(before))
            bound = 1e-3 * float(u.max() - u.min())
            self.assertEqual(list(after), list(before))  # in the order of creation
            for path, data in (("zebra/u", u), ("zebra/contiguous", u.astype(">f8"))):
                self.assert_filtered(after[path])
                self.assert_within(after[path][...], data, bound)
                self.assertGreater(np.abs(after[path][...].astype("f8") - data).max(), bound / 100)
            self.assertEqual(after["zebra/u"].chunks, (15, 40, 50))
            self.assert_filtered(after["x"])
            for path in ("x", "scalar", "half", "tiny", "never"):  # scales lossless, others as is
                self.assert_identical(after[path][()], before[path][()])
            self.assertEqual(after["count"]._filters, before["count"]._filters)
            self.assertEqual(after["y"].dims[0][0].name, "/x")
        entries = self.datasets(report)
        self.assertEqual(entries["/zebra/u"]["action"], "compress")
        self.assertEqual(entries["/x"]["reason"], "dimension scale")
        self.assertEqual(entries["/x"]["bound"]["kind"], "lossless")
        self.assertEqual({path: entries[path]["reason"] for path in entries
                          if entries[path]["action"] == "copy"},
                         {"/records": "not floating-point", "/count": "not floating-point",
                          "/text": "not floating-point", "/references": "not floating-point",
                          "/regions": "not floating-point", "/half": "neither f32 nor f64",
                          "/scalar": "a single value, or none", "/empty": "a single value, or none",
                          "/none": "a single value, or none", "/never": "never written",
                          "/tiny": "too small to gain"})
        with h5py.File(self.path("out.h5")) as after:
            error = np.abs(after["zebra/u"][...].astype("f8") - u).max()
        self.assertGreaterEqual(entries["/zebra/u"]["max_abs_error"], error)
        self.assertLessEqual(entries["/zebra/u"]["max_abs_error"],
                             entries["/zebra/u"]["bound_abs"])
        self.assertEqual(sorted(os.listdir(self.directory)), ["in.h5", "out.h5"])

    def test_h5diff_finds_the_same_structure(self):
        self.make_rich_file(self.path("in.h5"))
        self.succeeds(FIRN, "h5", "compress", "--lossless", "in.h5", "out.h5")
        self.succeeds("h5diff", "in.h5", "out.h5")

    def test_newer_files_and_user_blocks(self):
        for keywords in ({"libver": ("v110", "v110")}, {"libver": ("v108", "v108")},
                         {"userblock_size": 512}):
            with self.subTest(keywords=keywords):
                self.make_rich_file(self.path("in.h5"), **keywords)
                if "userblock_size" in keywords:
                    with open(self.path("in.h5"), "r+b") as raw:
                        raw.write(b"MATLAB 7.3 MAT-file".ljust(512))
                self.succeeds(FIRN, "h5", "compress", "--force", "--abs", "1e-3", "in.h5", "out.h5")
                with h5py.File(self.path("in.h5")) as before, \
                        h5py.File(self.path("out.h5")) as after:
                    self.assertEqual(described(after), described(before))
                    self.assertEqual(after.userblock_size, before.userblock_size)
                block = keywords.get("userblock_size", 0)
                self.assertEqual((self.directory / "out.h5").read_bytes()[:block],
                                 (self.directory / "in.h5").read_bytes()[:block])

    def make_netcdf(self):
        data = support.smooth_field((10, 30, 40)) + 280
        data[:, 5:15, 10:20] = 1e20
        with netCDF4.Dataset(self.path("in.nc"), "w") as file:
            file.title = "a netCDF-4 file"
            file.createDimension("time", None)
            file.createDimension("lat", 30)
            file.createDimension("lon", 40)
            file.createDimension("unused", 2000)
            file.createVariable("zonal", "f4", ("time", "lat", "lon"), fill_value=1e20, zlib=True)
            for name, attribute in (("units", "K"), ("long_name", "a"), ("coordinates", "lat lon")):
                file["zonal"].setncattr(name, attribute)
            file["zonal"][:] = data
            file.createVariable("alpha", "f8", ("lat", "lon"))[:] = data[0]
            file.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-90, 90, 30)
            inner = file.createGroup("inner")
            inner.createDimension("level", 5)
            point = inner.createCompoundType(np.dtype([("x", "f4"), ("y", "i2")]), "point")
            inner.createVariable("points", point, ("level",))[:] = np.zeros(5, point.dtype)
            inner.createVariable("deep", "f4", ("level", "lat", "lon"))[:] = data[:5]
            enum = file.createEnumType(np.uint8, "cloud", {"clear": 0, "grey": 1})
            file.createVariable("sky", enum, ("lat",), fill_value=0)[:] = np.zeros(30, "u1")
        return data

    def test_netcdf_stays_netcdf(self):
        data = self.make_netcdf()
        self.compress("in.nc", "out.nc", "--rel", "1e-4", "--preset", "small")
        sea = data < 1e19
        bound = 1e-4 * float(data[sea].max() - data[sea].min())
        for text in (("-h",), ("-h", "-v", "lat,sky,points")):
            before, after = (self.succeeds("ncdump", *text, "-n", "x", name)
                             for name in ("in.nc", "out.nc"))
            self.assertEqual(after, before)
        self.assertIn("netCDF-4", self.succeeds("ncdump", "-k", "out.nc"))
        hidden = [line for line in self.succeeds("ncdump", "-h", "-s", "out.nc").splitlines()
                  if "_NCProperties" in line]
        self.assertEqual(hidden, [line for line in self.succeeds(
            "ncdump", "-h", "-s", "in.nc").splitlines() if "_NCProperties" in line])
        self.assertEqual(len(hidden), 1)
        with netCDF4.Dataset(self.path("out.nc")) as file:
            file.set_auto_mask(False)
            decoded = file["zonal"][...]
            self.assert_identical(decoded[~sea], data[~sea])
            self.assert_within(decoded[sea], data[sea], bound)
            self.assertEqual(list(file.variables), ["zonal", "alpha", "lat", "sky"])
            self.assertTrue(file.dimensions["time"].isunlimited())
            self.assertEqual(file["inner/points"].datatype.name, "point")
        with h5py.File(self.path("out.nc")) as file:
            for path in ("zonal", "alpha", "inner/deep"):
                self.assert_filtered(file[path])
        # netCDF itself can go on with it.
        with netCDF4.Dataset(self.path("out.nc"), "a") as file:
            file["zonal"][10] = data[0]
            file.createDimension("more", 3)
        with netCDF4.Dataset(self.path("out.nc")) as file:
            file.set_auto_mask(False)
            self.assert_within(file["zonal"][10][sea[0]], data[0][sea[0]], bound)

    def test_bounds_that_the_filter_would_refuse(self):
        with h5py.File(self.path("in.h5"), "w") as file:
            file["u"] = support.smooth_field((40, 50))
        (self.directory / "rules").write_text("u pwrel 3\n")
        for arguments in (("compress", "in.h5", "out.h5", "--pwrel", "2"),
                          ("compress", "in.h5", "--dry-run", "--rules", "rules"),
                          ("params", "--psnr", "1e9")):
            result = self.run_program(FIRN, "h5", *arguments)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("it must be above 0", result.stderr)

    def test_rules(self):
        with h5py.File(self.path("in.h5"), "w") as file:
            u = support.smooth_field((40, 50))
            for path in ("ocean/temp", "ocean/salt", "ocean/deep/temp", "air/temp", "air/lat"):
                file.create_dataset(path, data=u)
        (self.directory / "rules").write_text(
            "# which datasets       how\n"
            "/ocean/deep/*          skip\n"
            "/ocean/*               abs 1e-2 preset=small chunk=20x50\n"
            "\n"
            "lat                    lossless   # coordinates\n"
            "/sea/*                 rel 1e-3\n")
        result = self.run_program(FIRN, "h5", "compress", "in.h5", "out.h5", "--rules", "rules",
                                  "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("rules, line 6: no dataset for the pattern '/sea/*'", result.stderr)
        entries = self.datasets(json.loads(result.stdout))
        self.assertEqual({path: entry["action"] for path, entry in entries.items()},
                         {"/ocean/temp": "compress", "/ocean/salt": "compress",
                          "/ocean/deep/temp": "copy", "/air/temp": "copy", "/air/lat": "compress"})
        self.assertEqual(entries["/ocean/temp"]["preset"], "small")
        self.assertEqual(entries["/ocean/temp"]["chunk"], [20, 50])
        self.assertEqual(entries["/ocean/temp"]["bound"], {"kind": "abs", "value": 0.01})
        self.assertEqual(entries["/air/lat"]["bound"]["kind"], "lossless")
        self.assertEqual(entries["/air/temp"]["reason"], "no rule for it")
        with h5py.File(self.path("out.h5")) as file:
            self.assert_within(file["ocean/temp"][...], u, 1e-2)
            self.assert_identical(file["ocean/deep/temp"][...], u)
            self.assert_identical(file["air/lat"][...], u)
        for text, reason in (("u", "after the pattern"), ("u abs", "needs a number"),
                             ("u abs -1", "positive"), ("u near 1", "near"),
                             ("u skip colour=red", "colour"), ("u abs 1 preset=huge", "huge"),
                             ("temp abs 1 chunk=2x2x2", "3 axes")):
            (self.directory / "bad").write_text(f"# first\n{text}\n")
            message = self.fails(FIRN, "h5", "compress", "in.h5", "bad.h5", "--rules", "bad")
            self.assertIn(reason, message)
            self.assertIn("line 2", message)

    def test_missing_values_are_masks(self):
        data = support.smooth_field((50, 60))
        data[10:20] = -9999
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("u", data=data)
            file["u"].attrs["missing_value"] = np.float32(-9999)
        entry = self.compress("in.h5", "out.h5", "--rel", "1e-3")["datasets"][0]
        sea = data[data > -9999]
        self.assertAlmostEqual(entry["bound_abs"], 1e-3 * float(sea.max() - sea.min()), places=7)
        with h5py.File(self.path("out.h5")) as file:
            self.assertTrue((file["u"][10:20] == -9999).all())
            self.assert_within(file["u"][...], data, entry["bound_abs"])

    def test_of_several_missing_values_the_one_that_occurs_is_the_mask(self):
        # As netCDF writes it: the library's own fill value, and the user's missing_value.
        data = support.smooth_field((50, 60))
        data[10:20] = -9999
        with netCDF4.Dataset(self.path("in.nc"), "w") as file:
            file.createDimension("y", 50)
            file.createDimension("x", 60)
            file.createVariable("u", "f4", ("y", "x")).missing_value = -9999.0
            file["u"][:] = data
        entry = self.datasets(self.compress("in.nc", "out.nc", "--abs", "0.3"))["/u"]
        self.assertEqual(entry["reason"], "")
        with h5py.File(self.path("out.nc")) as file:
            self.assertTrue((file["u"][10:20] == -9999).all())
            self.assert_within(file["u"][...], data, 0.3)
            self.assertGreater(np.abs(file["u"][...] - data).max(), 0.01)

    def test_two_missing_values_in_one_dataset_stay_exact(self):
        data = support.smooth_field((50, 60))
        data[10:20] = -9999
        data[30:40] = 1e20
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("u", data=data, fillvalue=1e20).attrs["missing_value"] = -9999.0
        entry = self.compress("in.h5", "out.h5", "--abs", "0.3")["datasets"][0]
        self.assertIn("-9999", entry["reason"])
        with h5py.File(self.path("out.h5")) as file:
            self.assert_identical(file["u"][...], data)

    def test_a_missing_value_that_was_not_named_is_pointed_out(self):
        data = support.smooth_field((100, 100))
        data[20:40, 30:60] = -9999
        with h5py.File(self.path("in.h5"), "w") as file:
            file["plain"] = data
            file["named"] = data
            file["named"].attrs["missing_value"] = np.float32(-9999)
            file["other"] = data
            file["other"].attrs["_FillValue"] = np.float32(1e20)
            file["without"] = np.where(data < -999, 0, data)
        for bound in ("--rel", "1e-3"), ("--psnr", "60"), ("--abs", "1e-3"):
            result = self.run_program(FIRN, "h5", "compress", "--force", *bound, "in.h5", "out.h5")
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = result.stderr.splitlines()
            self.assertEqual([line.split(": ")[1] for line in lines],
                             [] if bound[0] == "--abs" else ["/other", "/plain"])
            for line in lines:
                self.assertIn("600 values are -9999", line)
                self.assertIn("give --rules a line for it with fill=-9999;", line)

    def test_errors_relative_to_each_value(self):
        data = support.smooth_field((100, 100)) * np.logspace(-9, 9, 100, dtype="f4")
        with h5py.File(self.path("in.h5"), "w") as file:
            file["u"] = data
        entry = self.compress("in.h5", "out.h5", "--pwrel", "1e-3")["datasets"][0]
        with h5py.File(self.path("out.h5")) as file:
            self.assert_filtered(file["u"])
            error = (np.abs(file["u"][...].astype("f8") - data) / np.abs(data)).max()
        self.assertGreater(error, 1e-4)
        self.assertLessEqual(error, 1e-3)
        self.assertGreaterEqual(entry["max_pwrel_error"] * (1 + 1e-6), error)
        self.assertEqual(entry["bound_pwrel"], 1e-3)

    def test_groups_of_many_links(self):
        for keywords in ({}, {"libver": ("v108", "v110")}):
            with h5py.File(self.path("in.h5"), "w", track_order=True, **keywords) as file:
                for number in range(100):
                    file.create_dataset(f"many/{number}", data=float(number))
            self.succeeds(FIRN, "h5", "compress", "--force", "--abs", "1", "in.h5", "out.h5")
            with h5py.File(self.path("out.h5")) as file:
                self.assertEqual(len(file["many"]), 100)
                self.assertEqual(file["many/99"][()], 99)

    def test_psnr_is_met(self):
        data = support.smooth_field((100, 100))
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("u", data=data, chunks=(30, 100))
        self.compress("in.h5", "out.h5", "--psnr", "70")
        with h5py.File(self.path("out.h5")) as file:
            error = np.mean((file["u"][...].astype("f8") - data) ** 2)
        span = float(data.max() - data.min())
        self.assertGreaterEqual(20 * np.log10(span) - 10 * np.log10(error), 70)

    def test_threads_change_nothing(self):
        self.make_rich_file(self.path("in.h5"))
        for threads in (1, 2, 0):
            self.succeeds(FIRN, "h5", "compress", "--abs", "1e-3", "--threads", threads, "in.h5",
                          f"{threads}.h5")
        with h5py.File(self.path("1.h5")) as one:
            for other in ("2.h5", "0.h5"):
                with h5py.File(self.path(other)) as file:
                    self.assertEqual(file["zebra/u"].id.read_direct_chunk((15, 0, 0)),
                                     one["zebra/u"].id.read_direct_chunk((15, 0, 0)))

    def test_compressing_twice_changes_nothing(self):
        self.make_rich_file(self.path("in.h5"))
        self.compress("in.h5", "once.h5", "--rel", "1e-3")
        report = self.compress("once.h5", "twice.h5", "--rel", "1e-2")
        self.assertEqual(self.datasets(report)["/zebra/u"]["reason"], "compressed by Firn before")
        with h5py.File(self.path("once.h5")) as once, h5py.File(self.path("twice.h5")) as twice:
            self.assert_identical(twice["zebra/u"][...], once["zebra/u"][...])

    def test_dry_run_writes_nothing(self):
        self.make_rich_file(self.path("in.h5"))
        shown = self.succeeds(FIRN, "h5", "compress", "--dry-run", "--rel", "1e-3", "in.h5")
        self.assertIn("/zebra/u", shown)
        self.assertIn("rel 0.001", shown)
        self.assertIn("nothing was written", shown)
        self.assertEqual(os.listdir(self.directory), ["in.h5"])
        report = self.compress("--dry-run", "--rel", "1e-3", "in.h5", "out.h5")
        self.assertIsNone(report["output_bytes"])
        self.assertEqual(os.listdir(self.directory), ["in.h5"])

    def test_failures_leave_nothing_behind(self):
        self.make_rich_file(self.path("in.h5"))
        (self.directory / "text").write_text("not HDF5")
        (self.directory / "there.h5").write_text("precious")
        before = sorted(os.listdir(self.directory))
        for arguments, reason in (
                (("in.h5", "there.h5", "--rel", "1e-3"), "--force"),
                (("in.h5", "out.h5"), "how exact"),
                (("in.h5", "--rel", "1e-3"), "OUTPUT"),
                (("in.h5", "out.h5", "--rel", "1e-3", "--abs", "1"), "only one"),
                (("text", "out.h5", "--rel", "1e-3"), "not an HDF5 file"),
                (("absent.h5", "out.h5", "--rel", "1e-3"), "No such file"),
                (("in.h5", "/nowhere/out.h5", "--rel", "1e-3"), "No such file"),
                (("in.h5", "-", "--rel", "1e-3"), "regular file"),
                (("in.h5", "out.h5", "--rules", "absent"), "No such file")):
            with self.subTest(arguments=arguments):
                message = self.fails(FIRN, "h5", "compress", *arguments)
                self.assertIn(reason, message)
                self.assertEqual(len(message.splitlines()), 1)
        self.assertEqual(sorted(os.listdir(self.directory)), before)
        self.assertEqual((self.directory / "there.h5").read_text(), "precious")

    def test_a_damaged_input_leaves_nothing_behind(self):
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("u", data=support.smooth_field((100, 100)), chunks=(50, 100),
                                compression="gzip")
            info = file["u"].id.get_chunk_info(1)
        with open(self.path("in.h5"), "r+b") as raw:
            raw.seek(info.byte_offset)
            raw.write(b"garbage" * 10)
        message = self.fails(FIRN, "h5", "compress", "--abs", "1e-3", "in.h5", "out.h5")
        self.assertIn("/u", message)
        self.assertEqual(os.listdir(self.directory), ["in.h5"])

    def test_a_full_disk_leaves_nothing_behind(self):
        random = np.random.default_rng(1)
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("copied", data=random.integers(0, 1 << 60, size=(300, 1000)))
            file.create_dataset("u", data=random.normal(size=(300, 1000)))
            for number in range(300):
                file.create_group(f"group{number}").attrs["values"] = np.arange(100.0)
        (self.directory / "out.h5").write_text("precious")
        for kilobytes in (0, 20, 500, 3000, 4600):
            with self.subTest(kilobytes=kilobytes):
                result = self.run_program("bash", "-c", f"ulimit -f {kilobytes}; {FIRN} h5 compress "
                                          "--lossless --force in.h5 out.h5")
                self.assertEqual(result.returncode, 23)
                self.assertEqual(result.stderr, "firn: cannot write out.h5: File too large\n")
                self.assertEqual(sorted(os.listdir(self.directory)), ["in.h5", "out.h5"])
                self.assertEqual((self.directory / "out.h5").read_text(), "precious")

    def test_a_signal_leaves_nothing_behind(self):
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("u", data=np.random.default_rng(1).normal(size=(3000, 3000)))
        process = subprocess.Popen([FIRN, "h5", "compress", "--lossless", "--preset", "small",
                                    "--threads", "1", "in.h5", "out.h5"], cwd=self.directory)
        deadline = time.monotonic() + 60
        while len(os.listdir(self.directory)) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        self.assertNotEqual(process.wait(60), 0)
        self.assertEqual(os.listdir(self.directory), ["in.h5"])

    def test_in_place(self):
        data = support.smooth_field((100, 100))
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_dataset("u", data=data)
        self.succeeds(FIRN, "h5", "compress", "--abs", "1e-3", "--force", "in.h5", "in.h5")
        with h5py.File(self.path("in.h5")) as file:
            self.assert_filtered(file["u"])
            self.assert_within(file["u"][...], data, 1e-3)

    def test_unknown_commands_and_values_are_told_what_there_is(self):
        (self.directory / "rules").write_text("u abs 1 fill=land\n")
        for arguments, reason in (
                ((), "a command is needed: compress, params"),
                (("foo", "in.h5"), "there is no command 'h5 foo': compress, params"),
                (("--foo",), "there is no option --foo"),
                (("params", "--psnr", "x"), "--psnr takes a positive number such as 60"),
                (("params", "--abs", "1", "--fill", "nan"), "NaN needs none"),
                (("compress", "--rules", "rules", "in.h5"), "rules, line 1: fill takes a number")):
            with self.subTest(arguments=arguments):
                result = self.run_program(FIRN, "h5", *arguments)
                self.assertEqual(result.returncode, 1)
                self.assertIn(reason, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_help(self):
        for command in ("compress", "params"):
            text = self.succeeds(FIRN, "help", "h5", command)
            self.assertIn(f"firn h5 {command}", text)
            self.assertEqual(self.succeeds(FIRN, "h5", command, "--help"), text)
        self.assertIn("params", self.succeeds(FIRN, "help", "h5"))

    def test_virtual_and_external_datasets_stay(self):
        data = support.smooth_field((64, 64))
        (self.directory / "raw").write_bytes(data.tobytes())
        with h5py.File(self.path("source.h5"), "w") as file:
            file.create_dataset("u", data=data)
        layout = h5py.VirtualLayout(shape=(64, 64), dtype="<f4")
        layout[:] = h5py.VirtualSource("source.h5", "u", shape=(64, 64))
        with h5py.File(self.path("in.h5"), "w") as file:
            file.create_virtual_dataset("virtual", layout)
            creation = h5p.create(h5p.DATASET_CREATE)
            creation.set_external(b"raw", 0, data.nbytes)
            h5d.create(file.id, b"outside", h5t.IEEE_F32LE, h5s.create_simple((64, 64)), creation)
        self.succeeds(FIRN, "h5", "compress", "--abs", "1e-3", "in.h5", "out.h5")
        self.assertEqual((self.directory / "raw").read_bytes(), data.tobytes())
        os.chdir(self.directory)
        with h5py.File("out.h5") as file:
            self.assertTrue(file["virtual"].is_virtual)
            self.assert_identical(file["virtual"][...], data)
            self.assert_identical(file["outside"][...], data)
