"""Statistics of the sampled blocks of a run, as `heapline stats` has them.

Each sampled block counts for as many as it represents. Results have the names of `heapline stats --json`.
"""

import numpy as np

from .phases import phase_ends

#: Blocks of more words go directly to OCaml's major heap.
LARGE = 256
#: Half the width of a 95 % interval, in standard errors.
Z95 = 1.959963984540054
#: Parts of the run among which phases are looked for.
PHASE_PARTS = 128


class Blocks:
    """Columns of sampled blocks, as numpy arrays."""

    def __init__(self, table, info):
        def column(name):
            return table[name].to_numpy()

        self.info = info
        #: Words without the header; bytes for programs that are not OCaml's.
        self.words = column("size_bytes") // max(info["word_bytes"], 1)
        self.sampled = column("sampled_blocks")
        #: Estimated bytes and blocks, and their variances.
        self.bytes, self.bytes_variance = column("estimated_bytes"), column("estimated_bytes_variance")
        self.blocks, self.blocks_variance = column("estimated_blocks"), column("estimated_blocks_variance")
        #: Times in microseconds; NaN if it did not happen.
        self.allocated = column("allocated_us")
        self.promoted = column("promoted_us").astype(float)
        self.collected = column("collected_us").astype(float)
        self.died = ~np.isnan(self.collected)

    def total(self, which=slice(None)):
        """Estimated bytes and blocks with their errors: half of the 95 % interval."""

        def figures(value, variance):
            return {"value": float(value[which].sum()), "error": float(Z95 * np.sqrt(variance[which].sum()))}

        return {"bytes": figures(self.bytes, self.bytes_variance), "blocks": figures(self.blocks, self.blocks_variance)}

    def sizes(self):
        """Sizes in words: mean, variance, quantiles, share of large blocks, histograms."""
        powers = int(self.words.max(initial=1)).bit_length()
        large = self.words > LARGE
        return {
            **self._moments(),
            "quantiles": {f"p{percent}": self._size_quantile(percent / 100) for percent in (50, 90, 99)},
            "max": int(self.words.max(initial=0)),
            "large_blocks_percent": _percent(self.blocks, large),
            "large_bytes_percent": _percent(self.bytes, large),
            "linear": self.histogram(self.words, np.arange(33)),
            "log": self.histogram(self.words, [0, *(1 << np.arange(powers + 1))]),
        }

    def lifetimes(self, bins=20):
        """Lifetimes in seconds of blocks that died; quantiles also count those that were still live."""
        ages = self.ages()[self.died]
        oldest = float(ages.max()) if len(ages) else None
        equal = np.linspace(0, oldest or 0, bins + 1)
        steps = np.outer(10.0 ** np.arange(-6, 7), [1, 2, 5]).ravel()
        return {
            "alive": self.total(~self.died),
            "mean": float(np.average(ages, weights=self.blocks[self.died])) if len(ages) else None,
            "max": oldest,
            "seconds": {f"p{percent}": self._age_quantile(percent / 100) for percent in (50, 90, 99)},
            "linear": self.histogram(ages, equal, self.died, closed=True) if oldest else [],
            "log": _trim(self.histogram(ages, [0, *steps], self.died)),
        }

    def ages(self):
        """Seconds from the allocation of each block to its death, or to the end of the run."""
        end = self.info["duration_s"] * 1e6
        return (np.where(self.died, self.collected, end) - self.allocated) / 1e6

    def histogram(self, values, edges, which=slice(None), closed=False):
        """Estimated blocks and bytes by value: a value at an edge is in the upper bin, or in the last if it is closed."""
        bins = len(edges) - 1
        place = np.searchsorted(edges, values, side="right") - 1
        if closed:
            place[values == edges[-1]] = bins - 1
        is_in = (place >= 0) & (place < bins)
        amounts = [self.blocks, self.bytes, self.sampled]
        sums = [np.bincount(place[is_in], amount[which][is_in], bins) for amount in amounts]
        return [
            {"low": float(low), "high": float(high), "blocks": float(blocks), "bytes": float(bytes), "sampled": int(sampled)}
            for low, high, blocks, bytes, sampled in zip(edges, edges[1:], *sums)
        ]

    def segments(self, parts=10):
        """Equal parts of the run, each with its allocations."""
        return self._parts(self._equal_parts(parts))

    def phases(self):
        """The parts of the run between changes of the rate of allocation."""
        ends = self._equal_parts(PHASE_PARTS)
        allocated = np.bincount(self._part(ends, self.allocated), self.bytes, len(ends))
        return self._parts(ends[np.array(phase_ends(allocated)) - 1])

    def stats(self, bins=20, segments=10):
        """All of the above."""
        return {
            "total": self.total(),
            "sizes": self.sizes(),
            "lifetimes": self.lifetimes(bins),
            "segments": self.segments(segments),
            "phases": self.phases(),
        }

    def _moments(self, which=slice(None)):
        words, blocks = self.words[which], self.blocks[which]
        if not len(words):
            return {"mean": None, "variance": None, "sd": None}
        mean = float(np.average(words, weights=blocks))
        variance = max(float(np.average(words.astype(float) ** 2, weights=blocks)) - mean**2, 0.0)
        return {"mean": mean, "variance": variance, "sd": variance**0.5}

    def _size_quantile(self, share):
        order = np.argsort(self.words, kind="stable")
        below = np.cumsum(self.blocks[order])
        if not len(below):
            return None
        return float(self.words[order][np.searchsorted(below, share * below[-1] * (1 - 1e-12))])

    def _age_quantile(self, share):
        """Kaplan and Meier's estimate; None if more than the rest was still live."""
        ages, alive = self.ages(), 1.0
        order = np.argsort(ages, kind="stable")
        ages, died, weights = ages[order], self.died[order], self.blocks[order]
        at_risk = np.cumsum(weights[::-1])[::-1]
        for age in np.unique(ages[died]):
            first, last = np.searchsorted(ages, age), np.searchsorted(ages, age, side="right")
            alive *= 1 - weights[first:last][died[first:last]].sum() / at_risk[first]
            if alive <= 1 - share + 1e-12:
                return float(age)
        return None

    def _equal_parts(self, parts):
        """The ends of equal parts of the run, in whole microseconds."""
        whole = round(self.info["duration_s"] * 1e6)
        ends = [round(whole * 1000 * (part / parts)) // 1000 for part in range(1, parts)]
        return np.array([*ends, whole])

    def _part(self, ends, times):
        return np.minimum(np.searchsorted(ends, times), len(ends) - 1)

    def _parts(self, ends):
        part = self._part(ends, self.allocated)
        change = np.bincount(part, self.bytes, len(ends))
        change -= np.bincount(self._part(ends, self.collected[self.died]), self.bytes[self.died], len(ends))
        live = np.maximum(np.cumsum(change), 0)
        described, start = [], 0.0
        for number, end in enumerate(ends / 1e6):
            which = part == number
            moments = self._moments(which)
            described.append(
                {
                    "from": start,
                    "to": float(end),
                    "allocated": self.total(which),
                    "mean_size": moments["mean"],
                    "sd_size": moments["sd"],
                    "large_percent": _percent(self.blocks[which], self.words[which] > LARGE),
                    "live_at_end": float(live[number]),
                }
            )
            start = float(end)
        return described


def _percent(amount, which):
    return float(100 * amount[which].sum() / amount.sum()) if len(amount) else None


def _trim(bins):
    """Drops empty bins at both ends."""
    used = [number for number, bin in enumerate(bins) if bin["sampled"]]
    return bins[used[0] : used[-1] + 1] if used else []
