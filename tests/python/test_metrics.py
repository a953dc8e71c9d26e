"""The metrics against numpy, and against scikit-image where it is installed."""

import numpy as np
import pytest

import firn
from conftest import smooth_field

SHAPES = [(5000,), (61, 80), (20, 21, 22), (3, 12, 14, 16)]


def pair_of(shape, dtype=np.float64):
    original = smooth_field(shape, dtype)
    noise = np.random.default_rng(1).uniform(-0.05, 0.05, shape)
    return original, (original + noise).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_pointwise_measures(shape, dtype):
    original, decoded = pair_of(shape, dtype)
    measured = firn.metrics(original, decoded)
    x, e = original.astype(float), decoded.astype(float) - original.astype(float)
    span = x.max() - x.min()
    rmse = np.sqrt(np.mean(e**2))
    assert measured.count == x.size and measured.excluded == 0
    assert measured.max_abs_error == np.abs(e).max()
    assert measured.max_range_relative_error == pytest.approx(np.abs(e).max() / span)
    assert measured.max_pointwise_relative_error == pytest.approx(np.max(np.abs(e) / np.abs(x)))
    assert measured.rmse == pytest.approx(rmse)
    assert measured.nrmse == pytest.approx(rmse / span)
    assert measured.psnr_db == pytest.approx(20 * np.log10(span / rmse))
    assert measured.mean_error == pytest.approx(e.mean(), abs=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_autocorrelation(shape):
    original, decoded = pair_of(shape)
    # A smooth error, so that there is something to find.
    decoded = decoded + 0.1 * np.sin(np.arange(original.size) / 9).reshape(shape)
    e = (decoded - original).ravel()
    e = e - e.mean()
    expected = [np.sum(e[:-lag] * e[lag:]) / np.sum(e * e) for lag in range(1, 21)]
    measured = firn.metrics(original, decoded, lags=20)
    assert measured.error_autocorrelation == pytest.approx(expected, abs=1e-10)


def test_histogram():
    original, decoded = pair_of((100, 100))
    e = (decoded - original).ravel()
    limit = np.abs(e).max()
    measured = firn.metrics(original, decoded, histogram_bins=33)
    expected, _ = np.histogram(e, bins=33, range=(-limit, limit))
    # A value on a border may fall to either side.
    assert measured.histogram_limit == limit
    assert np.abs(measured.error_histogram.astype(int) - expected).max() <= 1
    assert measured.error_histogram.sum() == e.size


@pytest.mark.parametrize("shape", SHAPES + [(1, 40), (40, 1, 2)])
def test_gradient(shape):
    original, decoded = pair_of(shape)
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]

    def gradient(field):
        return np.stack([np.gradient(field, axis=axis) for axis in axes])

    difference = np.sqrt(np.sum((gradient(decoded) - gradient(original)) ** 2, axis=0))
    length = np.sqrt(np.sum(gradient(original) ** 2, axis=0))
    measured = firn.metrics(original, decoded).gradient
    assert measured.max_error == pytest.approx(difference.max())
    assert measured.rmse == pytest.approx(np.sqrt(np.mean(difference**2)))
    assert measured.relative_rmse == pytest.approx(
        np.sqrt(np.mean(difference**2) / np.mean(length**2))
    )


def shell_power(field, shells):
    frequencies = np.meshgrid(*[np.fft.fftfreq(n) for n in field.shape], indexing="ij")
    length = np.sqrt(sum(f**2 for f in frequencies))
    shell = np.maximum(1, np.floor(2 * shells * length + 0.5).astype(int))
    power = np.abs(np.fft.fftn(field - field.mean()) / field.size) ** 2
    inside = (length > 0) & (shell <= shells)
    return np.bincount(shell[inside], power[inside], minlength=shells + 1)[1:]


@pytest.mark.parametrize("shape", [(4096,), (5001,), (61, 80), (64, 64), (20, 21, 22)])
def test_spectrum(shape):
    original, decoded = pair_of(shape)
    measured = firn.metrics(original, decoded).spectrum
    shells = min(max(shape) // 2, 512)
    assert len(measured.original) == shells and measured.box == shape
    expected = shell_power(original, shells), shell_power(decoded, shells)
    assert measured.original == pytest.approx(expected[0], rel=1e-6)
    assert measured.decoded == pytest.approx(expected[1], rel=1e-6)
    errors = np.abs(expected[1] / expected[0] - 1)
    assert measured.max_relative_error == pytest.approx(errors.max(), rel=1e-5)
    assert measured.max_relative_error_low_half == pytest.approx(
        errors[: (shells + 1) // 2].max(), rel=1e-5
    )


def test_spectrum_of_a_series_is_the_mean():
    original, decoded = pair_of((3, 12, 14, 16))
    measured = firn.metrics(original, decoded).spectrum
    expected = np.mean([shell_power(frame, 8) for frame in original], axis=0)
    assert measured.original == pytest.approx(expected, rel=1e-6)


def window_means(field, size=7):
    for axis in range(field.ndim):
        field = np.lib.stride_tricks.sliding_window_view(field, size, axis=axis).mean(axis=-1)
    return field


def ssim_by_definition(x, y):
    span = x.max() - x.min()
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    n = 7**x.ndim
    ux, uy = window_means(x), window_means(y)
    vx = (window_means(x * x) - ux * ux) * n / (n - 1)
    vy = (window_means(y * y) - uy * uy) * n / (n - 1)
    vxy = (window_means(x * y) - ux * uy) * n / (n - 1)
    s = (2 * ux * uy + c1) * (2 * vxy + c2) / ((ux**2 + uy**2 + c1) * (vx + vy + c2))
    return s.mean()


@pytest.mark.parametrize("shape", [(61, 80), (20, 21, 22), (7, 7), (100, 150)])
def test_ssim(shape):
    original, decoded = pair_of(shape)
    decoded = decoded + 3 * (decoded - original)
    measured = firn.metrics(original, decoded).ssim
    assert measured == pytest.approx(ssim_by_definition(original, decoded), abs=1e-9)


@pytest.mark.parametrize("shape", [(61, 80), (20, 21, 22)])
def test_ssim_is_scikit_images(shape):
    metrics = pytest.importorskip("skimage.metrics")
    original, decoded = pair_of(shape)
    decoded = decoded + 3 * (decoded - original)
    expected = metrics.structural_similarity(
        original, decoded, data_range=original.max() - original.min()
    )
    assert firn.metrics(original, decoded).ssim == pytest.approx(expected, abs=1e-9)


def test_ssim_of_a_series_is_the_mean():
    original, decoded = pair_of((3, 12, 14, 16))
    for frame in original:  # all of the series' range, so that each frame's is the same
        frame[0, 0, :2] = original.min(), original.max()
    frames = [firn.metrics(x, y).ssim for x, y in zip(original, decoded)]
    assert firn.metrics(original, decoded).ssim == pytest.approx(np.mean(frames))


def test_fill_values_are_left_out():
    original, decoded = pair_of((40, 50))
    clean = firn.metrics(original[:20], decoded[:20])
    for array in (original, decoded):
        array[20:] = 1e20
    measured = firn.metrics(original, decoded, fill=1e20)
    assert measured.excluded == 1000
    for name in ("rmse", "max_abs_error", "psnr_db", "ssim"):
        assert getattr(measured, name) == pytest.approx(getattr(clean, name))


def test_streams_are_decoded_and_their_fill_is_known():
    original = smooth_field((40, 50))
    original[20:] = 1e20
    stream = firn.compress(original, abs=1e-2, fill=1e20)
    measured = firn.metrics(original, stream)
    assert measured.excluded == 1000 and measured.excluded_different == 0
    assert measured.max_abs_error <= 1e-2
    decoded = firn.decompress(stream)
    assert measured.rmse == firn.metrics(original, decoded, fill=1e20).rmse


def test_strides_and_threads_change_nothing():
    original, decoded = pair_of((50, 60, 70), np.float32)
    first = firn.metrics(original, decoded, threads=1)
    second = firn.metrics(
        np.asfortranarray(original), decoded[:, ::-1].copy()[:, ::-1], threads=3
    )
    for name in ("rmse", "mean_error", "ssim"):
        assert getattr(first, name) == getattr(second, name)
    assert np.array_equal(first.spectrum.decoded, second.spectrum.decoded)


def test_parts_can_be_left_out():
    original, decoded = pair_of((30, 30))
    measured = firn.metrics(original, decoded, ssim=False, gradient=False, spectrum=False, lags=0)
    assert measured.ssim is measured.gradient is measured.spectrum is None
    assert len(measured.error_autocorrelation) == 0


def test_arrays_that_differ_are_refused():
    with pytest.raises(firn.InvalidArgument, match="decoded array"):
        firn.metrics(np.zeros((3, 4)), np.zeros((4, 3)))
