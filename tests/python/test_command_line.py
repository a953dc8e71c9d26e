"""`python -m firn` and the script `firn` are the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest

import firn
from conftest import smooth_field


def run(*arguments, check=True):
    return subprocess.run(
        [sys.executable, "-m", "firn", *arguments], capture_output=True, text=True, check=check
    )


def test_versions_agree():
    assert run("--version").stdout.startswith(f"firn {firn.version()} ")


def test_files_of_both_are_the_same(in_tmp):
    field = smooth_field((20, 30, 40))
    np.save("u.npy", field)
    run("compress", "--rel", "1e-3", "u.npy", "program.firn")
    firn.save("module.firn", field, rel=1e-3)
    assert open("program.firn", "rb").read() == open("module.firn", "rb").read()


def test_exit_codes_come_through(in_tmp):
    open("x.firn", "w").write("this is certainly not a stream")
    result = run("info", "x.firn", check=False)
    assert result.returncode == firn.ErrorCode.NOT_FIRN and result.stderr.startswith("firn: ")


def test_metrics_of_both_are_the_same(in_tmp):
    field = smooth_field((20, 30, 40))
    field[:5] = 1e20
    np.save("u.npy", field)
    firn.save("u.firn", field, rel=1e-3, fill=1e20)
    expected = firn.metrics(field, firn.load("u.firn"), fill=1e20)
    np.save("decoded.npy", firn.load("u.firn"))
    for arguments in (["u.firn"], ["decoded.npy", "--fill", "1e20"]):
        measured = json.loads(run("metrics", "u.npy", *arguments, "--json").stdout)
        assert measured["dims"] == [20, 30, 40] and measured["type"] == "f32"
        assert measured["excluded"] == 5 * 30 * 40
        for name in ("rmse", "psnr_db", "ssim", "max_abs_error", "mean_error"):
            assert measured[name] == pytest.approx(getattr(expected, name), rel=1e-12)
        assert measured["gradient"] == pytest.approx(vars(expected.gradient))
        assert measured["spectrum"]["original"] == pytest.approx(expected.spectrum.original)
        assert measured["error_histogram"] == expected.error_histogram.tolist()
    text = run("metrics", "u.npy", "u.firn").stdout
    assert "PSNR" in text and "SSIM" in text
    quick = json.loads(run("metrics", "u.npy", "u.firn", "--point-wise", "--json").stdout)
    assert quick["ssim"] is None and quick["rmse"] == measured["rmse"]


def test_metrics_refuse_what_does_not_fit(in_tmp):
    np.save("a.npy", smooth_field((20, 30)))
    np.save("b.npy", smooth_field((30, 20)))
    result = run("metrics", "a.npy", "b.npy", check=False)
    assert result.returncode != 0 and "20x30" in result.stderr
