"""Rows, taps and order of visits in section "causal (11)" of docs/format.md.

Padding is filled in step by step, as cells are visited.
"""

import itertools

WINDOW = 32  # rows under way at a time
TRAIL, ABOVE, BELOW = 2, 2, 1  # padding


class CausalFront:
    """The padded rows of a chunk, and the order in which their cells are visited."""

    def __init__(self, chunk, fast):
        rank = len(chunk.extents)
        axes = [axis for axis in range(rank) if axis != fast and chunk.extents[axis] > 1]
        self.is_line = fast == rank or not axes
        if self.is_line:
            length = -(-chunk.count // WINDOW)
            self.extents = [1, 1, 1, length]
            self.lead, self.skew, self.plane_rows, self.planes = 6, 0, WINDOW, 1
            self.row_starts = [min(row * length, chunk.count) for row in range(WINDOW)]
            self.row_lengths = [min(length, chunk.count - start) for start in self.row_starts]
            self.along = 1
            self.runs = [(0, WINDOW, 0)]
            self.shape = (WINDOW, 6 + length + TRAIL)
            return
        lags = chunk.lags()
        axes = [None] * (3 - len(axes)) + axes + [fast]
        self.extents = [1 if axis is None else chunk.extents[axis] for axis in axes]
        steps = [0 if axis is None else lags[axis] for axis in axes]
        self.along = steps[3]
        self.lead = 2 if self.extents[1] > 1 else 6
        columns = self.lead + self.extents[3] + TRAIL
        self.skew = max(2, -(-columns // WINDOW))
        self.plane_rows = ABOVE + self.extents[2] + BELOW
        before = 1 if self.extents[1] > 1 else 0
        self.planes = self.extents[1] + before
        self.shape = (self.extents[0] * self.planes * self.plane_rows, columns)
        self.row_starts = [None] * self.shape[0]  # of padding: None
        self.runs = []
        for w in range(self.extents[0]):
            first = (w * self.planes + before) * self.plane_rows
            for z in range(self.extents[1]):
                for y in range(self.extents[2]):
                    self.row_starts[first + z * self.plane_rows + ABOVE + y] = (
                        w * steps[0] + z * steps[1] + y * steps[2])
            kind = 2 if w else 0
            self.runs.append((first, first + self.plane_rows, kind))
            if before:
                self.runs.append((first + self.plane_rows,
                                  first + self.extents[1] * self.plane_rows, kind | 1))

    def rows_apart(self, w, z, y):
        return (w * self.planes + z) * self.plane_rows + y

    def taps(self, kind):
        """Rows and columns to each tap, nearest first."""
        found = []
        for w, z, y, x in itertools.product((-1, 0), (-2, -1, 0), (-2, -1, 0, 1), range(-6, 3)):
            axes = [offset for offset in (w, z, y, x) if offset]
            reach = max((abs(offset) for offset in axes), default=0)
            if (not axes or x < -self.lead or (w and not kind & 2) or (z and not kind & 1)
                    or (w and z == -2) or (self.is_line and y)
                    or (len(axes) > 1 and reach > 2) or (len(axes) > 2 and reach > 1)):
                continue
            if w == z == 0 and (y > 0 or (x >= 0 if y == 0 else x > -y)):
                continue
            square = sum(offset * offset for offset in axes) * (6 if len(axes) == 1 else 10)
            found.append((square, (-w, -z, -y, -x)))
        nearest = [tuple(-offset for offset in tap) for _, tap in sorted(found)[:24]]
        return [(self.rows_apart(w, z, y), x) for w, z, y, x in nearest]

    def context_taps(self, kind):
        """Class, rows and columns of each magnitude that counts."""
        if self.is_line:
            return [(0, 0, -1), (1, 0, -2), (2, 0, -3), (2, 0, -4)]
        z, w = (-1, 0) if kind & 1 else (0, -1)
        taps = [(0, 0, -1), (1, -1, 0), (2, -1, -1), (2, -1, 1), (2, 0, -2), (2, -2, 0)]
        if kind & 1:
            taps.append((3, self.rows_apart(0, -1, 0), 0))
        if kind & 2:
            taps.append((3, self.rows_apart(-1, 0, 0), 0))
        if kind:
            taps += [(4, self.rows_apart(w, z, y), x) for y, x in ((0, -1), (0, 1), (-1, 0), (1, 0))]
        return taps

    def steps(self, cells):
        """Each step's kind and its lanes: row, column and place in the chunk. Fills in padding."""
        if self.is_line:
            for x in range(self.extents[3]):
                yield 0, {row: (row, self.lead + x, self.row_starts[row] + x)
                          for row in range(WINDOW) if x < self.row_lengths[row]}
                if x == 0:
                    cells[:, : self.lead] = cells[:, self.lead : self.lead + 1]
            return
        for begin, end, kind in self.runs:
            for time in range(self.skew * begin, self.skew * (end - 1 + WINDOW)):
                first_row = time // self.skew - (WINDOW - 1)
                lanes, padding = {}, []
                for lane in range(WINDOW):
                    row = first_row + lane
                    column = time - self.skew * row
                    if not begin <= row < end or column >= self.shape[1]:
                        continue
                    x = column - self.lead
                    if self.row_starts[row] is None or not 0 <= x < self.extents[3]:
                        padding.append((row, column))
                    else:
                        lanes[lane] = row, column, self.row_starts[row] + x * self.along
                if lanes:
                    yield kind, lanes
                for row, column in padding:
                    source = self.source_of_padding(row, column, kind)
                    if source[1] >= 0:
                        cells[row, column] = cells[source]
            if self.planes > 1 and not kind & 1:
                cells[begin - self.plane_rows : end - self.plane_rows] = cells[begin:end]

    def source_of_padding(self, row, column, kind):
        if self.row_starts[row] is not None:
            return (row - 1, column + 1) if column < self.lead else (row, column - 1)
        place = row % self.plane_rows
        if place >= ABOVE:
            return row - 1, column
        to_first = ABOVE - place
        if kind == 0:  # the plane's first row, a step ago
            return row + to_first, column - self.skew * to_first - 1
        plane_before = self.plane_rows * (1 if kind & 1 else self.planes)
        return row + to_first - plane_before, column
