"""The codecs of numcodecs and Zarr, through Zarr arrays of both versions and xarray."""

import json

import numpy as np
import pytest

import firn
from conftest import smooth_field

numcodecs = pytest.importorskip("numcodecs")
zarr = pytest.importorskip("zarr", minversion="3")


def test_numcodecs_finds_the_codec_by_its_name():
    codec = numcodecs.get_codec({"id": "firn", "rel": 1e-3, "preset": "fast"})
    assert type(codec).__module__ == "firn.numcodecs"
    assert codec.get_config() == {"id": "firn", "rel": 1e-3, "preset": "fast"}
    assert codec == numcodecs.get_codec(codec.get_config())
    assert repr(codec) == "Firn(rel=0.001, preset='fast')"


def test_numcodecs_takes_any_order_and_rank():
    from firn.numcodecs import Firn

    codec = Firn(abs=1e-3)
    for field in (
        smooth_field((20, 30)),
        np.asfortranarray(smooth_field((20, 30), np.float64)),
        smooth_field((2, 3, 4, 5, 6)),
        np.float64(3.25),
    ):
        decoded = codec.decode(codec.encode(field))
        # Codecs keep bytes, in the order of the memory.
        order = "F" if np.ndim(field) > 1 and field.flags.f_contiguous else "C"
        assert np.abs(decoded.ravel() - np.ravel(field, order=order)).max() <= 1e-3
        out = np.empty(np.shape(field), decoded.dtype, order=order)
        flat = out.ravel(order="K") if out.ndim else out.reshape(1)
        codec.decode(codec.encode(field), out=flat)
        assert np.array_equal(flat, decoded.ravel())


@pytest.mark.parametrize(
    "options", [{}, {"abs": 1, "rel": 1}, {"abs": 1, "preset": "tiny"}, {"abs": -1}]
)
def test_wrong_options_are_refused_at_once(options):
    from firn.numcodecs import Firn
    from firn.zarr import FirnCodec

    for kind in (Firn, FirnCodec):
        with pytest.raises(ValueError):
            kind(**options)
    with pytest.raises(TypeError, match="speed"):
        Firn(abs=1, speed=9)


def test_refusals_name_what_a_codec_takes():
    from firn.numcodecs import Firn
    from firn.zarr import FirnCodec

    bounds = "abs=, rel=, pwrel=, psnr= or lossless=True"
    for kind in (Firn, FirnCodec):
        with pytest.raises(firn.InvalidArgument, match=f"one bound is needed, {bounds}, and none"):
            kind()
        with pytest.raises(firn.InvalidArgument, match=f"{bounds}; ratio= is for firn.compress"):
            kind(ratio=10)
        with pytest.raises(firn.InvalidArgument, match="chunks= says"):
            kind(abs=1, chunk=(5, 5))
        with pytest.raises(firn.InvalidArgument, match="tune=, which is for firn.compress"):
            kind(abs=1, tune="psnr")
        with pytest.raises(TypeError, match="no option speed=; there are abs, rel"):
            kind(abs=1, speed=9)
        for bound in ({"abs": 1}, {"rel": 1e-3}, {"pwrel": 1e-3}, {"psnr": 60}, {"lossless": True}):
            kind(**bound)


def test_integers_and_swapped_bytes_are_refused():
    from firn.numcodecs import Firn

    with pytest.raises(TypeError, match="float32 and float64"):
        Firn(abs=1).encode(np.arange(5))
    with pytest.raises(firn.Unsupported, match="byte order"):
        Firn(abs=1).encode(np.arange(5, dtype=">f4"))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zarr_version_2(in_tmp, order, dtype):
    from firn.numcodecs import Firn

    field = smooth_field((50, 60), dtype)
    array = zarr.create_array(
        "u.zarr", shape=field.shape, chunks=(20, 30), dtype=dtype, zarr_format=2, order=order,
        compressors=Firn(abs=1e-3),
    )
    array[:] = field
    again = zarr.open_array("u.zarr", mode="r")
    assert np.abs(again[:] - field).max() <= 1e-3
    assert np.array_equal(again[3:40, 17], again[:][3:40, 17])
    assert json.load(open("u.zarr/.zarray"))["compressor"] == {"id": "firn", "abs": 0.001}


@pytest.mark.parametrize("dtype", ["float32", "float64", ">f4"])
@pytest.mark.parametrize("shape, chunks", [((50, 60), (20, 30)), ((3, 4, 5, 6, 7), (2, 4, 3, 6, 7))])
def test_zarr_version_3(in_tmp, dtype, shape, chunks):
    from firn.zarr import FirnCodec

    field = smooth_field(shape, dtype)
    array = zarr.create_array(
        "u.zarr", shape=shape, chunks=chunks, dtype=dtype, zarr_format=3,
        serializer=FirnCodec(abs=1e-3), compressors=None,
    )
    array[:] = field
    array[0] = field[0] + 1  # a part of a chunk
    array[0] = field[0]
    again = zarr.open_array("u.zarr", mode="r")
    whole = again[:]
    # The metadata of version 3 know no byte order; what is read is this machine's.
    assert whole.dtype == field.dtype.newbyteorder("=")
    # A chunk that was written three times is off by up to three bounds.
    assert np.abs(whole - field).max() <= 3e-3
    for key in (np.s_[3:40, 2], np.s_[::7], np.s_[1, 1], np.s_[-1:, 1::2]):
        assert np.array_equal(again[key], whole[key])
    assert np.array_equal(again.oindex[[0, 2], [1, 3]], whole[np.ix_([0, 2], [1, 3])])
    codecs = json.load(open("u.zarr/zarr.json"))["codecs"]
    assert codecs == [{"name": "firn", "configuration": {"abs": 0.001}}]


def test_zarr_compresses_streams_further(in_tmp):
    from firn.zarr import FirnCodec

    field = smooth_field((64, 64))
    array = zarr.create_array(
        "u.zarr", shape=field.shape, chunks=(64, 32), dtype="float32",
        serializer=FirnCodec(abs=1e-3), compressors=zarr.codecs.ZstdCodec(),
    )
    array[:] = field
    assert np.abs(zarr.open_array("u.zarr")[:] - field).max() <= 1e-3


def test_zarr_sharding(in_tmp):
    from firn.zarr import FirnCodec

    field = smooth_field((64, 64))
    array = zarr.create_array(
        "u.zarr", shape=field.shape, shards=(64, 64), chunks=(16, 16), dtype="float32",
        serializer=FirnCodec(abs=1e-3), compressors=None,
    )
    array[:] = field
    assert np.abs(zarr.open_array("u.zarr")[5:50, 20] - field[5:50, 20]).max() <= 1e-3


def test_padding_does_not_widen_a_relative_bound(in_tmp):
    """Chunks at the edge are padded with the fill value, which does not count."""
    from firn.zarr import FirnCodec

    field = 300 + 0.1 * smooth_field((30,))
    array = zarr.create_array(
        "u.zarr", shape=(30,), chunks=(20,), dtype="float32",
        serializer=FirnCodec(rel=1e-3), compressors=None,
    )
    array[:] = field
    bound = 1e-3 * (field.max() - field.min())
    assert np.abs(array[:] - field).max() <= bound


def test_zarr_refuses_integers(in_tmp):
    from firn.zarr import FirnCodec

    with pytest.raises(ValueError, match="float32 and float64"):
        zarr.create_array(
            "u.zarr", shape=(30,), chunks=(20,), dtype="int32", serializer=FirnCodec(abs=1),
            compressors=None,
        )


@pytest.mark.parametrize("version", [2, 3])
def test_xarray(in_tmp, version):
    xarray = pytest.importorskip("xarray")
    from firn.numcodecs import Firn
    from firn.zarr import FirnCodec

    field = smooth_field((10, 30, 40))
    field[:, :5, :5] = np.nan
    dataset = xarray.Dataset({"t": (("time", "y", "x"), field)}, attrs={"title": "test"})
    how = (
        {"compressors": (Firn(abs=1e-3),)}
        if version == 2
        else {"serializer": FirnCodec(abs=1e-3), "compressors": ()}
    )
    dataset.to_zarr("t.zarr", zarr_format=version, consolidated=False, encoding={"t": how})
    with xarray.open_zarr("t.zarr", consolidated=False) as again:
        assert again.attrs == {"title": "test"}
        values = again["t"].values
    assert np.isnan(values[:, :5, :5]).all()
    assert np.nanmax(np.abs(values - field)) <= 1e-3
