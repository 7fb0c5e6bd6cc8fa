"""How far a sweep is: a bar on a terminal, a line for each job elsewhere."""

import statistics
import time


class Lines:
    """A line for each job that is done, with the time that is left."""

    def __init__(self, total, done, stream):
        self.total, self.before, self.done, self.stream = total, done, done, stream
        self.began = time.monotonic()

    def show(self, text):
        pass

    def advance(self, text):
        self.done += 1
        left = ""
        if self.done < self.total:
            each = (time.monotonic() - self.began) / (self.done - self.before)
            left = f", about {span(each * (self.total - self.done))} left"
        self.say(f"[{self.done}/{self.total}] {text}{left}")

    def say(self, text):
        print(text, file=self.stream, flush=True)

    def close(self):
        pass


class Bar:
    """tqdm's bar, with what runs now behind it; failures stay above it."""

    def __init__(self, total, done, stream):
        import tqdm

        self.tqdm = tqdm.tqdm
        self.stream = stream
        self.bar = self.tqdm(
            total=total, initial=done, file=stream, smoothing=0, leave=False, dynamic_ncols=True,
            ascii="-#", bar_format="[{bar:24}] {n_fmt}/{total_fmt}  {desc}  {remaining} left",
        )

    def show(self, text):
        self.bar.set_description_str(text, refresh=True)

    def advance(self, text):
        self.bar.update()

    def say(self, text):
        self.tqdm.write(text, file=self.stream)

    def close(self):
        self.bar.close()


def on(stream, total, done):
    """The kind that suits a stream."""
    return (Bar if stream.isatty() else Lines)(total, done, stream)


def span(seconds):
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def outcome(row):
    """A row in a few words: what it took, or why it failed."""
    if row["status"] != "pass":
        return f"{row['status'].replace('_', ' ')}: {row['reason']}"
    samples = row["samples"]
    if not samples:
        return "pass"
    mine = statistics.median(samples["candidate"])
    words = [f"{mine:.3g} ms"]
    for name, times in samples.items():
        if name != "candidate":
            words.append(f"{statistics.median(times) / mine:.2f}x {name}")
    return ", ".join(words)
