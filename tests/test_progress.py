"""Progress in a log file is made of lines."""

import io

from spec_cascades import progress


def test_a_log_file_gets_lines_that_differ(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    with progress.bar(4, unit="step", description="train", initial=1) as bar:
        for step in (2, 3, 4):
            bar.set_description_str(f"step {step}/4", refresh=False)
            bar.update()
    text = log.getvalue()
    assert "\r" not in text and "\x1b" not in text and "█" not in text
    lines = text.splitlines()
    assert all(lines) and lines[-1].startswith("step 4/4 100 %") and "left" in lines[-1]


def test_little_is_written_within_half_a_minute(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress.bar(1000, unit="step", description="train") as bar:
        for _ in range(1000):
            bar.update()
    assert len(log.getvalue().splitlines()) <= 2  # the first and the last
