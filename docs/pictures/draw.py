#!/usr/bin/env python3
"""Draws the pictures of docs/how-it-works.md from the field in data/ (needs numpy and matplotlib).

    docs/pictures/draw.py
"""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
FIELD = HERE.parents[1] / "data" / "mitgcm_conv_u_50x100x100.f32"
COLOURS = ["#333333", "#c44e52", "#dd8452", "#55a868", "#4c72b0", "#8172b3"]


def entropy(codes):
    counts = np.unique(codes, return_counts=True)[1] / codes.size
    return -(counts * np.log2(counts)).sum()


def save(figure, name):
    figure.savefig(HERE / f"{name}.png", dpi=90, bbox_inches="tight", pil_kwargs={"optimize": True})
    plt.close(figure)


def differences(codes):
    along_x = np.diff(codes, axis=1, prepend=0)
    both = np.diff(along_x, axis=0, prepend=0)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4))
    for axis, (title, image) in zip(axes, [("codes", codes), ("differences along x", along_x),
                                           ("along x, then y (Lorenzo)", both)]):
        limit = np.quantile(np.abs(image), 0.99)
        axis.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axis.set_title(f"{title}\n{entropy(image):.2f} bits a value", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    save(figure, "differences")


def levels():
    size = 17
    figure, axis = plt.subplots(figsize=(4.6, 4.6))
    for y in range(size):
        for x in range(size):
            step = next(s for s in (16, 8, 4, 2, 1) if x % s == 0 and y % s == 0)
            level = {16: 0, 8: 1, 4: 2, 2: 3, 1: 4}[step]
            axis.scatter(x, y, s=150 - 30 * level, color=COLOURS[level], zorder=2)
    for level, text in enumerate(["first", "spacing 8", "spacing 4", "spacing 2", "spacing 1"]):
        axis.scatter([], [], s=150 - 30 * level, color=COLOURS[level], label=text)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncol=5, frameon=False, fontsize=8,
                handletextpad=0.1, columnspacing=0.8)
    axis.set_aspect("equal")
    axis.axis("off")
    save(figure, "levels")


def classes():
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6))
    stages = [("class x: along x", (0, 1)), ("class y: along y", (1, 0)),
              ("class xy: along both, averaged", (1, 1))]
    known = {(0, 0)}
    for axis, (title, parity) in zip(axes, stages):
        for y in range(7):
            for x in range(7):
                kind = (y % 2, x % 2)
                colour = COLOURS[0] if kind in known else COLOURS[1] if kind == parity else "#dddddd"
                axis.scatter(x, y, s=70, color=colour, zorder=2)
        centre = (3 if parity[0] else 2, 3 if parity[1] else 2)
        for along in (0, 1):
            if not parity[along]:
                continue
            for tap in (-3, -1, 1, 3):
                end = list(centre)
                end[along] += tap
                bend = 0.25 if abs(tap) == 3 else 0.0
                axis.annotate("", xy=(centre[1], centre[0]), xytext=(end[1], end[0]), zorder=3,
                              arrowprops={"arrowstyle": "->", "color": COLOURS[4], "lw": 1.3,
                                          "connectionstyle": f"arc3,rad={bend}"})
        known.add(parity)
        axis.set_title(title, fontsize=10)
        axis.set_xlim(-0.5, 6.5)
        axis.set_ylim(6.5, -0.5)
        axis.set_aspect("equal")
        axis.axis("off")
    save(figure, "classes")


def contexts(codes):
    residual = np.diff(np.diff(codes, axis=1, prepend=0), axis=0, prepend=0)
    size = np.abs(residual)
    around = np.zeros(size.shape)
    around[1:] += 2 * size[:-1]
    around[1:, 1:] += size[:-1, :-1]
    around[1:, :-1] += size[:-1, 1:]
    context = np.minimum(np.floor(2 * np.log2(around + 1)), 11).astype(int)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), gridspec_kw={"width_ratios": [1, 1, 1.3]})
    axes[0].imshow(np.minimum(size, 8), cmap="magma")
    axes[0].set_title("sizes of the residuals", fontsize=10)
    axes[1].imshow(context, cmap="viridis")
    axes[1].set_title("contexts, from the row above", fontsize=10)
    for axis in axes[:2]:
        axis.set_xticks([])
        axis.set_yticks([])
    values = np.arange(-8, 9)
    total = 0.0
    for number in range(context.max() + 1):
        total += entropy(residual[context == number]) * (context == number).mean()
    for colour, number in zip(COLOURS[1:], (0, 3, 6, 9)):
        mine = residual[context == number]
        if mine.size:
            share = [(mine == value).mean() for value in values]
            axes[2].plot(values, share, ".-", color=colour,
                         label=f"context {number}: {entropy(mine):.2f} bits")
    axes[2].legend(fontsize=8, frameon=False)
    axes[2].set_title(f"residuals in four contexts\n{entropy(residual):.2f} bits with one table, "
                      f"{total:.2f} with one each", fontsize=10)
    save(figure, "contexts")


def books(codes):
    residual = np.diff(np.diff(codes, axis=1, prepend=0), axis=0, prepend=0)
    values = np.arange(-12, 13)
    grid = np.arange(-400, 401)

    def member(shape, scale):
        weight = np.exp(-((np.abs(grid) / scale) ** shape))
        weight /= weight.sum()
        return weight[np.searchsorted(grid, values)]

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
    for colour, scale in zip(plt.cm.viridis(np.linspace(0, 0.9, 6)), 0.35 * 2.0 ** np.arange(6)):
        axes[0].semilogy(values, member(1.0, scale), color=colour, lw=1.4)
    axes[0].set_ylim(1e-4, 1.2)
    axes[0].set_title("one shape, a ladder of scales", fontsize=10)
    share = np.array([(residual == value).mean() for value in values])
    axes[1].semilogy(values, np.maximum(share, 1e-6), "k.", label="residuals of the slice")
    inside = share > 0
    best = min(
        ((-(share[inside] * np.log2(np.maximum(member(shape, scale)[inside], 1e-9))).sum(), shape, scale)
         for shape in (0.4, 0.55, 0.75, 1.0, 1.4) for scale in 0.02 * 2.0 ** (np.arange(60) / 4)),
    )
    axes[1].semilogy(values, member(best[1], best[2]), color=COLOURS[1],
                     label="the member that fits best")
    axes[1].set_ylim(1e-4, 1.2)
    axes[1].legend(fontsize=8, frameon=False)
    axes[1].set_title("a byte instead of a table", fontsize=10)
    save(figure, "books")


def main():
    field = np.fromfile(FIELD, "<f4").reshape(50, 100, 100)
    step = 2e-5 * (field.max() - field.min())
    codes = np.rint(field[12] / step).astype(int)
    differences(codes)
    levels()
    classes()
    contexts(codes)
    books(codes)


main()
