"""``hamr tune`` without a device: what is made of times, the file, and what cannot be done."""

import json
import math
import os
import threading

import pytest

from hamr._tuning import choosing, files, running, settings
from hamr._tuning.choosing import KIB, MIB, NEVER, Choice

ENTRY = {"cpu": "Tester", "processors": "8", "backend": "cuda", "device": "T = 1", "driver": "13.0"}
CHOICES = {"up_from": "1048576", "up_threads": "3", "down_from": "never", "down_threads": "1"}


def seconds(direction, nbytes, threads):
    """A driver of 8 GB/s; staging begins late and wins by up to four threads, to the device."""
    if threads == 0:
        return nbytes / 8e9
    speed = 4e9 * min(threads, 4) if direction == "up" else 4e9
    return 100e-6 + nbytes / speed


def test_the_crossover_and_the_fewest_threads_are_found():
    counts = choosing.thread_counts(16)
    times = choosing.measure(seconds, "up", choosing.SIZES, counts, 3)
    assert choosing.choose(times) == Choice(2 * MIB, 4)
    times = choosing.measure(seconds, "down", choosing.SIZES, counts, 3)
    assert choosing.choose(times) == Choice(NEVER, 1)


def test_one_size_that_is_no_better_moves_the_crossover():
    times = {512 * KIB << n: {0: 2.0, 1: 1.0} for n in range(5)}
    assert choosing.choose(times) == Choice(512 * KIB, 1)
    times[1 * MIB] = {0: 1.0, 1: 1.0}
    assert choosing.choose(times) == Choice(2 * MIB, 1)
    assert choosing.combine([Choice(MIB, 4), Choice(2 * MIB, 2)]) == Choice(2 * MIB, 2)
    assert choosing.combine([Choice(MIB, 4), Choice(NEVER, 6)]) == Choice(NEVER, 4)


def test_numbers_of_threads_stay_within_the_processors():
    assert choosing.thread_counts(1) == [1]
    assert choosing.thread_counts(2) == [1]
    assert choosing.thread_counts(4) == [1, 2, 3]
    assert choosing.thread_counts(16) == [1, 2, 3, 4, 6, 8, 12, 15]
    assert choosing.thread_counts(16, quick=True) == [1, 2, 4, 8, 15]
    assert choosing.thread_counts(224) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 31]


def test_measurements_are_in_turns():
    order = []
    choosing.measure(lambda *way: order.append(way[2]) or 1.0, "up", [MIB], [1, 2], 3)
    assert order == [0, 1, 2, 1, 2, 0, 2, 0, 1]


def test_a_file_keeps_other_machines(tmp_path):
    path = str(tmp_path / "tuning.txt")
    other = {**ENTRY, "driver": "12.0", **CHOICES}
    files.write_entries(path, [other])
    files.write_entries(path, [{**ENTRY, **CHOICES}])
    files.write_entries(path, [{**ENTRY, **CHOICES, "up_threads": "5"}])
    with open(path, encoding="utf-8") as file:
        found = files.entries_of(file.read())
    assert found == [{**ENTRY, **CHOICES, "up_threads": "5"}, other]
    assert os.listdir(tmp_path) == ["tuning.txt"]


@pytest.mark.parametrize("text", ["[tuning]\nhalf a line\n", "cpu = x\n[tuning]\n", "\x00\xff", ""])
def test_a_malformed_file_is_replaced(tmp_path, text):
    path = tmp_path / "tuning.txt"
    path.write_bytes(text.encode("latin-1"))
    files.write_entries(str(path), [{**ENTRY, **CHOICES}])
    assert files.entries_of(path.read_text()) == [{**ENTRY, **CHOICES}]


def test_a_link_stays_a_link(tmp_path):
    there, link = tmp_path / "there", tmp_path / "link"
    link.symlink_to(there)
    files.check_writable(str(link))
    files.write_entries(str(link), [{**ENTRY, **CHOICES}])
    assert link.is_symlink()
    assert there.is_file()


def test_two_tunings_at_once(tmp_path):
    """A reader finds a whole file, whoever wins."""
    path = str(tmp_path / "tuning.txt")
    entries = [{**ENTRY, **CHOICES, "up_threads": str(n)} for n in (1, 22)]
    files.write_entries(path, entries[:1])
    errors = []

    def write(entry):
        try:
            for _ in range(60):
                files.write_entries(path, [entry])
        except Exception as error:  # for the main thread
            errors.append(error)

    threads = [threading.Thread(target=write, args=(entry,)) for entry in entries]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with open(path, encoding="utf-8") as file:
            (found,) = files.entries_of(file.read())
        assert found in entries
    assert errors == []
    assert os.listdir(tmp_path) == ["tuning.txt"]


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "tuning.txt"
    path.write_text("as it was")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        files.write_entries(str(path), [ENTRY])
    assert os.listdir(tmp_path) == ["tuning.txt"]
    assert path.read_text() == "as it was"


class Copies:
    """In place of copies of a device."""

    made = 0
    fails = None

    def __init__(self, backend, device, allocator, largest):
        assert (backend, allocator, largest) == ("cuda", "cuda", 64 * MIB)
        Copies.made += 1
        self.seconds = seconds

    def prepare(self, threads):
        if self.fails:
            raise self.fails

    def close(self):
        Copies.made -= 1


def target(path, number=0, **changed):
    report = {
        "from_up": ("1048576", "default"), "from_down": ("never", "default"),
        "threads_up": ("7", "default"), "threads_down": ("7", "default"),
        "tuning": (path, "there is none" if path else "HAMR_TUNING says so"),
        **{name: (value, "") for name, value in ENTRY.items() if name != "backend"}, **changed,
    }  # fmt: skip
    return running.Target("cuda", number, "cuda", report)


@pytest.fixture
def on_devices(monkeypatch):
    """Have hamr tune find devices."""

    def choose(*devices):
        monkeypatch.setattr(running, "targets", lambda: list(devices))

    monkeypatch.setattr(Copies, "fails", None)
    yield choose
    assert Copies.made == 0


def test_devices_of_a_kind_have_one_entry(on_devices, tmp_path, capsys):
    path = str(tmp_path / "folder" / "tuning.txt")
    other = target(path, 2, device=("T2", ""))
    on_devices(target(path), target(path, 1), other)
    assert running.main(running.Request(), Copies) == 0
    text = capsys.readouterr().out
    assert "cuda device 1: T = 1, driver 13.0, Tester, 8 processors" in text
    assert "staged from 2 MiB on, by 4 beside the caller's thread (until now: 1 MiB, 7)" in text
    assert "staged never, by 1 beside the caller's thread (until now: never, 7)" in text
    assert text.endswith(f"written to {path}\n")
    with open(path, encoding="utf-8") as file:
        entries = files.entries_of(file.read())
    choices = {"up_from": "2097152", "up_threads": "4", "down_from": "never", "down_threads": "1"}
    assert entries == [{**ENTRY, **choices}, {**ENTRY, "device": "T2", **choices}]


def test_json_and_dry_run(on_devices, tmp_path, capsys):
    on_devices(target("", 0), target("", 1))
    assert running.main(running.Request(as_json=True, dry_run=True, quick=True), Copies) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["written"] == []
    (device,) = facts["devices"]
    assert {**ENTRY, "processors": 8, "number": 0}.items() <= device.items()
    assert device["up"]["from"] == 4 * MIB
    assert device["down"]["from"] is None
    assert [row["nbytes"] for row in device["up"]["rows"]] == list(choosing.QUICK_SIZES)
    assert set(device["up"]["rows"][0]["staged_us"]) == {"1", "2", "4", "7"}
    assert math.isclose(device["up"]["rows"][0]["driver_us"], 131.07)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_measured(on_devices, tmp_path, capsys, monkeypatch):
    def words(*devices, **request):
        on_devices(*devices)
        assert running.main(running.Request(**request), Copies) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        return said.err

    path = str(tmp_path / "tuning.txt")
    assert "no backend that is available here stages copies" in words()
    assert "no file to write (HAMR_TUNING says so): use --dry-run" in words(target(""))
    assert f"{tmp_path} cannot be written: " in words(target(str(tmp_path)))
    nowhere = "/proc/nowhere/tuning.txt"  # where not even root writes
    assert f"{nowhere} cannot be written: No such file" in words(target(nowhere))
    lost = target(path, 4)
    lost.report["tuning"] = "", "it is lost"
    del lost.report["cpu"]
    assert "nothing is known of cuda device 4: it is lost" in words(lost)
    monkeypatch.setenv("HAMR_COPY_THREADS", "3")
    chosen = target(path, threads_up=("3", "environment"))
    assert "HAMR_COPY_THREADS chooses already: unset it" in words(chosen, dry_run=True)
    monkeypatch.setattr(Copies, "fails", RuntimeError("a copy is wrong"))
    assert words(target(path)) == "hamr tune: a copy is wrong\n"
    assert os.listdir(tmp_path) == []


def test_an_interrupt_writes_nothing(on_devices, tmp_path, capsys, monkeypatch):
    path = str(tmp_path / "tuning.txt")
    monkeypatch.setattr(Copies, "fails", KeyboardInterrupt())
    on_devices(target(path))
    assert running.main(running.Request(), Copies) == 130
    assert capsys.readouterr().err == "interrupted: nothing is written\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_a_home_that_becomes_read_only_meanwhile(
    on_devices, tmp_path, capsys, monkeypatch, as_json
):
    """What was measured is printed, and what can be written is."""
    refused, path = str(tmp_path / "refused.txt"), str(tmp_path / "tuning.txt")

    def refuse(path, entries):
        if path == refused:
            raise PermissionError(13, "Permission denied")
        files.write_entries(path, entries)

    on_devices(target(refused), target(path, 1))
    monkeypatch.setattr(running, "write_entries", refuse)
    assert running.main(running.Request(as_json=as_json), Copies) == 1
    said = capsys.readouterr()
    assert said.err == f"hamr tune: {refused} cannot be written: Permission denied\n"
    if as_json:
        facts = json.loads(said.out)
        assert len(facts["devices"]) == 2
        assert facts["written"] == [path]
    else:
        assert "cuda device 0: T = 1" in said.out
        assert said.out.endswith(f"written to {path}\n")
    assert os.listdir(tmp_path) == ["tuning.txt"]


def test_the_hosts_backend_stages_nothing():
    assert settings.report_of("host", 0) is None


@pytest.mark.parametrize(
    ("own", "tree", "limit"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "250000 100000"}, 2.5),
        ("0::/a\n", {"a/cpu.max": "400000 100000", "cpu.max": "150000 100000"}, 1.5),
        ("0::/\n", {}, None),
        ("0::/a\n", {"a/cpu.max": "nonsense"}, None),
        (
            "3:cpu,cpuacct:/a\n0::/\n",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "50000",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            },
            0.5,
        ),
        ("3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("nonsense\n", {}, None),
    ],
)
def test_limits_of_a_cgroup(tmp_path, own, tree, limit):
    (tmp_path / "own").write_text(own)
    for name, text in tree.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert settings.cgroup_limit(str(tmp_path / "own"), str(tmp_path / "root")) == limit
