#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that read figures compare ratios, and refuse invalid files with a sentence.

    test_tools.py

The two files in figures/ are artificial: in the second one the machine and with it the
synchronous call are half as fast, the launch is slower in relation to the machine, and the
copy is half as fast.
"""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import figures  # noqa: E402
import tap  # noqa: E402

HERE = Path(__file__).resolve().parent
OLD, NEW = (HERE / "figures" / name for name in ("old.json", "new.json"))


def run(tool, *arguments):
    command = [sys.executable, HERE / tool, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def compared_figures_are_judged_by_their_limits():
    done = run("compare", OLD, NEW)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("null/sync_null_call")], lines
    launch = [line for line in lines if line.startswith("null/async_launch: worse, 1.50")]
    copies = [line for line in lines if line.startswith("soft/copy_h2d_pinned_64mib: worse")]
    assert len(launch) == 1 and len(copies) == 1, lines
    told = lines.index("limits that moved, by which all others are judged:")
    assert lines[told + 1].startswith("machine/spin_round_trip: worse, 2.00 times"), lines
    assert run("compare", NEW, OLD).stdout.count("better") == done.stdout.count("worse")


def equal_files_have_not_moved():
    done = run("compare", OLD, OLD)
    assert done.stdout == "15 figures in both, 0 moved more than their spread\n", done


def targets_are_judged():
    table = run("table.py", "--targets", OLD).stdout.splitlines()
    judged = {line.split(" | ")[0]: line for line in table}
    call = judged["| synchronous null call (`null/sync_null_call`)"]
    assert call.endswith("| 1.5 | met |"), call
    call = judged["| the same relative to its limit (`null/sync_null_call`)"]
    assert call.endswith("| 1.5 | met |"), call
    pinned = judged["| pinned copy, h2d, 64 MiB (`soft/copy_h2d_pinned_64mib`)"]
    assert pinned.endswith("| 0.99 | met |"), pinned
    # A figure whose limit is missing is not judged.
    pinned = judged["| pinned copy, d2h, 64 MiB (`soft/copy_d2h_pinned_64mib`)"]
    assert pinned.endswith("|  |  | not judged |"), pinned
    assert "no GPU was available" in judged["| decode, graph"], judged
    table = run("table.py", "--targets", NEW).stdout
    assert "| 0.4 | not met |" in table, table


def tables_say_what_was_not_measured():
    table = run("table.py", OLD).stdout
    assert "| `graph_iteration` | not supported: cuStreamBeginCapture |" in table, table


def limits_have_a_table_of_their_own():
    limits, others = run("table.py", OLD).stdout.split("\n\n")
    assert limits.startswith("| name | `machine` |\n"), limits
    assert others.startswith("| name | `null` |") and "`machine`" not in others, others


def pictures_are_svg_with_the_limits_dashed():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        done = run("plot", OLD, path)
        assert done.returncode == 0, done.stderr
        root = xml.etree.ElementTree.parse(path).getroot()
        dashed = [e for e in root.iter() if "limit" in e.get("class", "").split()]
        # memcpy and the driver alone in both diagrams and the legend, the cache line in
        # one diagram and the legend.
        assert len(dashed) == 8, len(dashed)
        done = run("plot", "--driver", "nvidia", OLD, path)
        assert done.returncode == 1 and "has no copies by nvidia" in done.stderr, done


def changed(change):
    value = json.loads(OLD.read_text(encoding="utf-8"))
    change(value)
    return json.dumps(value).encode()


def set_row(**members):
    return lambda value: value["results"][0].update(members)


def hostile_files_are_refused():
    wrong = {
        "is no JSON": b'{"version": 1,',
        "holds no object": b"[]",
        "is of another version": changed(lambda value: value.update(version=2)),
        "does not describe its machine": changed(lambda value: value.pop("machine")),
        "has no list of results": changed(lambda value: value.update(results={})),
        "is no object": changed(lambda value: value["results"].append(7)),
        "has no name": changed(set_row(name="<svg>")),
        "has no driver": changed(set_row(driver="a b")),
        "has a unit": changed(set_row(unit="µs")),
        "has no number of samples": changed(set_row(n=True)),
        "has no median": changed(set_row(median="1")),
        "has neither": changed(set_row(n=0)),
        "has a note": changed(set_row(n=0, note="a\nb")),
        "nothing can have": changed(set_row(p10=-1)),
        "has a limit": changed(set_row(limit="nothing")),
        "which is not there": changed(set_row(limit="machine/nothing")),
        "twice": changed(lambda value: value["results"].append(value["results"][0])),
        "more than 10000 results": changed(lambda v: v.update(results=[0] * 10001)),
        "more than 16777216 bytes": b" " * ((16 << 20) + 1),
    }
    same = [
        ("has no median", changed(set_row(p90=float("nan")))),
        ("has no median", changed(set_row(p90=10**400))),
        ("has no median", changed(set_row(p10=1e9))),
        ("is no JSON", b"[" * 100000),
        ("is no JSON", b"\xff\xfe{}"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wrong.json"
        for sentence, data in [*wrong.items(), *same]:
            path.write_bytes(data)
            try:
                figures.read(path)
            except figures.Refused as refused:
                assert sentence in str(refused), (sentence, str(refused))
            else:
                raise AssertionError(f"not refused: {sentence}")


def every_tool_says_why_it_refuses():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wrong.json"
        path.write_bytes(changed(set_row(n=-1)))
        for arguments in (
            ("compare", OLD, path),
            ("table.py", path),
            ("table.py", "--targets", OLD, path),
            ("plot", path, Path(folder) / "picture.svg"),
        ):
            done = run(*arguments)
            assert done.returncode == 1 and not done.stdout, (arguments, done)
            assert "has no number of samples" in done.stderr, done.stderr
            assert done.stderr.count("\n") == 1, done.stderr
        missing = run("compare", Path(folder) / "nothing.json", NEW)
        assert missing.returncode == 1 and "No such file" in missing.stderr, missing


def main():
    return tap.run((test.__name__, test) for test in (
        compared_figures_are_judged_by_their_limits,
        equal_files_have_not_moved,
        targets_are_judged,
        tables_say_what_was_not_measured,
        limits_have_a_table_of_their_own,
        pictures_are_svg_with_the_limits_dashed,
        hostile_files_are_refused,
        every_tool_says_why_it_refuses,
    ))


if __name__ == "__main__":
    sys.exit(main())
